/* family-load.c - reads config.json by the tables of its family.
 *
 * architectures[0] selects the family, because different layouts share a model_type; model_type
 * selects it where no architecture is given. A key that only one family has goes before both. Then
 * every key must be one of these: a row of `numbers` or `fixed`, a key that the code below or the
 * family reads, a key that changes no result, null, or a key that the caller ignores by name. Other
 * keys are refused. */
#include "lib/checkpoint/family.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/checkpoint/hub.h"
#include "lib/checkpoint/quantization.h"
#include "lib/record/json.h"

enum { CONFIG_MAX_BYTES = 4 << 20, SHOWN = 300 };

/* Keys that change no result of a forward pass in any family, ended by NULL. */
static const char *const harmless[] = {
    "auto_map", "transformers_version", "torch_dtype", "dtype", "_name_or_path",
    "_model_name_or_path", "_commit_hash", "_attn_implementation", "attn_implementation",
    "_attn_implementation_autoset", "is_llama_config", "max_sequence_length",
    "neftune_noise_alpha", "transformers.js_config", "transformers_weights", "unk_token_id",
    "unsloth_fixed", "unsloth_version",
    "use_cache", "initializer_range", "initializer_factor", "pretraining_tp", "tokenizer_class",
    "attention_dropout", "attention_probs_dropout_prob", "hidden_dropout", "task_specific_params",
    "problem_type", "finetuning_task", "id2label", "label2id", "num_labels", "return_dict",
    "return_dict_in_generate", "output_attentions", "output_hidden_states", "output_scores",
    "torchscript", "use_bfloat16", "tf_legacy_loss", "gradient_checkpointing", "prefix",
    "chunk_size_feed_forward", "pruned_heads", "cross_attention_hidden_size",
    "tie_encoder_decoder", "decoder_start_token_id", "sep_token_id",
    /* how to generate: set by flags of the generators instead */
    "max_length", "min_length", "max_new_tokens", "do_sample", "early_stopping", "num_beams",
    "num_beam_groups", "diversity_penalty", "temperature", "top_k", "top_p", "typical_p",
    "repetition_penalty", "length_penalty", "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size", "bad_words_ids", "num_return_sequences",
    "forced_bos_token_id", "forced_eos_token_id", "remove_invalid_values",
    "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens", NULL,
};
/* Keys that the code below reads for every family. */
static const char *const read_always[] = {
    "architectures", "model_type",  "rms_norm_eps", "rope_theta",      "rope_scaling",
    "bos_token_id",  "layer_types", "eos_token_id", "rope_parameters", "pad_token_id",
    "quantization",  "quantization_config", NULL,
};

/* 1: the value of the key is read. */
static int is_read(const struct family *f, const char *key)
{
    for (const struct family_number *n = f->numbers; n->key; n++)
        if (!strcmp(n->key, key))
            return 1;
    for (const struct family_fixed *x = f->fixed; x->key; x++)
        if (!strcmp(x->key, key))
            return 1;
    return !strcmp(key, f->tied_key) || family_lists(read_always, key) ||
           family_lists(f->finished, key) ||
           (config_denoises(&f->start) && !strcmp(key, "mask_token_id"));
}

/* 1: the key is in the list "KEY,KEY". */
static int is_in_list(const char *list, const char *key)
{
    size_t n = strlen(key);
    for (const char *at = list; n && at; at = strchr(at, ',')) {
        at += *at == ',';
        if (!strncmp(at, key, n) && (!at[n] || at[n] == ','))
            return 1;
    }
    return 0;
}

static void add_name(struct buf *list, const char *between, const char *key)
{
    buf_format(list, "%s%s", list->len ? between : "", key);
}

/* Refuses unknown keys, as many as fit one message: each may change the network. */
static int refuse_unknown(const struct family_source *s, const struct buf *keys)
{
    struct buf values = {0};
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)s->json, key, v) {
        if (values.len >= SHOWN)
            break;
        if (json_is_null(v) || !is_in_list(keys->data, key))
            continue;
        char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII |
                                       JSON_REAL_PRECISION(15));
        add_name(&values, ", ", key);
        buf_format(&values, " = %.60s", text ? text : "");
        free(text);
    }
    err_set(s->e, EXIT_BAD_DATA, "%s: %.*s: unknown key, not supported: if it does not change "
            "the network, remove it or pass --ignore-config %.*s", s->path, SHOWN,
            values.len ? values.data : "", SHOWN, keys->data);
    buf_free(&values);
    return -1;
}

/* Refuses to ignore a key that is read. */
static int refuse_ignoring(const struct family_source *s, const char *key)
{
    return err_set(s->e, EXIT_BAD_USAGE, "--ignore-config: expected a key of %s that this program "
                   "does not know, got %.100s, which it reads", s->path, key);
}

/* Sorts the keys into read, harmless, ignored and unknown. */
static int sort_keys(const struct family_source *s, const struct family *f,
                     struct family_extras *x)
{
    struct buf harmless_keys = {0}, ignored = {0}, unknown = {0};
    const char *key;
    json_t *v;
    int bad = 0;
    json_object_foreach((json_t *)s->json, key, v) {
        int to_ignore = is_in_list(x->ignore, key);
        if (json_is_null(v) || bad)
            continue;
        if (is_read(f, key))
            bad = to_ignore ? refuse_ignoring(s, key) : 0;
        else if (family_lists(harmless, key) || family_lists(f->ignored, key))
            add_name(&harmless_keys, ", ", key);
        else
            add_name(to_ignore ? &ignored : &unknown, ",", *key ? key : "\"\"");
    }
    if (!bad && unknown.len)
        bad = refuse_unknown(s, &unknown);
    buf_free(&unknown);
    x->harmless = harmless_keys.data;
    x->ignored = ignored.data;
    return bad;
}

static int read_number(struct config *c, const struct family_source *s,
                       const struct family_number *k)
{
    size_t now, got;
    int64_t v;
    memcpy(&now, (const char *)c + k->offset, sizeof now);
    int same = k->use == KEY_SAME;
    if (json_int(s->json, s->path, k->key, same ? (int64_t)now : k->lo,
                 same ? (int64_t)now : k->hi, &v, s->e))
        return -1;
    got = (size_t)v;
    memcpy((char *)c + k->offset, &got, sizeof got);
    return 0;
}

static int read_numbers(struct config *c, const struct family_source *s,
                        const struct family_number *k)
{
    for (; k->key; k++)
        if ((k->use == KEY_REQUIRED || json_has(s->json, k->key)) && read_number(c, s, k))
            return -1;
    return 0;
}

static int read_id(const struct config *c, const struct family_source *s, const char *key,
                   int64_t *id)
{
    return json_has(s->json, key)
               ? json_int(s->json, s->path, key, 0, (int64_t)c->vocab - 1, id, s->e)
               : 0;
}

/* Early conversions of LLaMA write -1 for none. */
static int read_pad(struct config *c, const struct family_source *s)
{
    const json_t *v = json_object_get(s->json, "pad_token_id");
    if (!json_is_integer(v) || json_integer_value(v) != -1)
        return read_id(c, s, "pad_token_id", &c->pad);
    c->pad = -1;
    return 0;
}

/* One id, or a list of them; replaces the ids read before. */
static int read_eos(struct config *c, const struct family_source *s)
{
    const json_t *v = json_object_get(s->json, "eos_token_id");
    if (!json_has(s->json, "eos_token_id"))
        return 0;
    size_t n = json_is_array(v) ? json_array_size(v) : 1;
    if (n < 1 || n > CONFIG_MAX_EOS)
        return family_refuse(s, "eos_token_id", "an id, or a list of 1 to 32");
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_is_array(v) ? json_array_get(v, i) : v;
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            (size_t)json_integer_value(id) >= c->vocab)
            return family_refuse(s, "eos_token_id", "ids from 0 to vocab_size - 1");
        c->eos[i] = json_integer_value(id);
    }
    c->n_eos = n;
    return 0;
}

static int read_ids(struct config *c, const struct family_source *s)
{
    return read_id(c, s, "bos_token_id", &c->bos) || read_pad(c, s) || read_eos(c, s) ? -1 : 0;
}

static const char *key_of(const struct family *f, size_t offset)
{
    const struct family_number *k = f->numbers;
    while (k->offset != offset)
        k++;
    return k->key;
}

/* Computes head counts and sizes that follow from others, and checks that they fit. */
static int settle_shape(struct config *c, const struct family_source *s)
{
    const char *heads_key = key_of(c->family, FAMILY_AT(heads));
    char expected[96];
    if (!c->kv_heads)
        c->kv_heads = c->heads;
    if (c->kv_heads > c->heads || c->heads % c->kv_heads) {
        snprintf(expected, sizeof expected, "a divisor of %s %zu", heads_key, c->heads);
        return family_refuse(s, key_of(c->family, FAMILY_AT(kv_heads)), expected);
    }
    if (!c->head_dim && c->width % c->heads) {
        snprintf(expected, sizeof expected, "a divisor of the width %zu", c->width);
        return family_refuse(s, heads_key, expected);
    }
    if (!c->head_dim)
        c->head_dim = c->width / c->heads;
    if (c->head_dim % 2 || c->head_dim > 4096)
        return err_set(s->e, EXIT_BAD_DATA,
                       "%s: head_dim: expected an even number up to 4096, got %zu", s->path,
                       c->head_dim);
    if (c->heads * c->head_dim > (size_t)FAMILY_WIDTH_MAX)
        return err_set(s->e, EXIT_BAD_DATA, "%s: heads x head_dim: expected at most %lld, got %zu",
                       s->path, (long long)FAMILY_WIDTH_MAX, c->heads * c->head_dim);
    c->rope_dims = c->head_dim;
    return 0;
}

/* Reads norm, rotation, tied head: required where the family has no default. */
static int read_block(struct config *c, const struct family_source *s)
{
    const char *tied = c->family->tied_key;
    if ((c->norm_eps <= 0 || json_has(s->json, "rms_norm_eps")) &&
        json_number(s->json, s->path, "rms_norm_eps", 1e-12, 0.1, &c->norm_eps, s->e))
        return -1;
    if (json_has(s->json, "rope_theta") &&
        json_number(s->json, s->path, "rope_theta", 1, 1e12, &c->rope_theta, s->e))
        return -1;
    if ((c->tied < 0 || json_has(s->json, tied)) &&
        json_flag(s->json, s->path, tied, &c->tied, s->e))
        return -1;
    c->rope_yarn = 0; /* that of the family's start is for `synth:` shapes */
    if (family_read_rope(c, s, "rope_scaling") || family_read_rope(c, s, "rope_parameters") ||
        (c->rope_theta <= 0 &&
         json_number(s->json, s->path, "rope_theta", 1, 1e12, &c->rope_theta, s->e)))
        return -1;
    return settle_shape(c, s);
}

/* Refuses layers with different kinds of attention. */
static int check_layer_types(const struct family_source *s)
{
    static const char expected[] =
        "a list with \"full_attention\" for every layer: others are not supported";
    const json_t *list = json_object_get(s->json, "layer_types");
    size_t i;
    json_t *type;
    json_array_foreach((json_t *)list, i, type) {
        const char *name = json_string_value(type);
        if (!name || strcmp(name, "full_attention"))
            return family_refuse(s, "layer_types", expected);
    }
    return json_has(s->json, "layer_types") && !json_is_array(list)
               ? family_refuse(s, "layer_types", expected)
               : 0;
}

/* "\"llama\", \"llada\"": one member of every family. */
static void list_families(char *text, size_t bytes, int types)
{
    size_t n = 0;
    *text = 0;
    for (size_t i = 0; family_at(i) && n < bytes; i++) {
        const struct family *f = family_at(i);
        n += (size_t)snprintf(text + n, bytes - n, "%s\"%s\"", i ? ", " : "one of ",
                              types ? f->model_type : f->architecture);
    }
}

static int has_architecture(const struct family *f, const char *architecture)
{
    return architecture && (!strcmp(architecture, f->architecture) ||
                            family_lists(f->aliases, architecture));
}

/* The family of the file. NULL: refused. */
static const struct family *find_family(const struct family_source *s)
{
    const json_t *list = json_object_get(s->json, "architectures");
    const int has = json_has(s->json, "architectures");
    const char *named = json_string_value(json_array_get(list, 0)), *type;
    char expected[800];
    size_t n = 0;
    if (json_text(s->json, s->path, "model_type", &type, s->e))
        return NULL;
    while (family_at(n))
        n++;
    for (size_t i = 0; i < 2 * n; i++) { /* those with such a key first */
        const struct family *f = family_at(i % n);
        if (i < n && !(f->key && json_has(s->json, f->key)))
            continue;
        if (has ? !has_architecture(f, named) : strcmp(type, f->model_type) != 0)
            continue;
        int of_type = !strcmp(type, f->model_type) || family_lists(f->other_types, type);
        if (of_type && (!has || json_array_size(list) == 1))
            return f;
        snprintf(expected, sizeof expected,
                 "\"%s\", which goes with the architectures: others are not supported",
                 f->model_type);
        family_refuse(s, "model_type", expected);
        return NULL;
    }
    list_families(expected, sizeof expected - 40, !has);
    strcat(expected, ": others are not supported");
    family_refuse(s, has ? "architectures" : "model_type", expected);
    return NULL;
}

static int load_family(struct config *c, const struct family_source *s, struct family_extras *x)
{
    const struct family *f = find_family(s);
    if (!f)
        return -1;
    char name[sizeof c->name];
    memcpy(name, c->name, sizeof name);
    family_start(c, f);
    memcpy(c->name, name, sizeof name);
    if (f->named)
        f->named(c);
    if (sort_keys(s, f, x) || read_numbers(c, s, f->numbers) || family_check_fixed(s, f->fixed) ||
        read_block(c, s) || check_layer_types(s) || (f->finish && f->finish(c, s)) ||
        read_ids(c, s))
        return -1;
    if (config_denoises(c) && (!f->mask_token || json_has(s->json, "mask_token_id")) &&
        json_int(s->json, s->path, "mask_token_id", 0, (int64_t)c->vocab - 1, &c->mask, s->e))
        return -1;
    return quantization_read(c, s->json, s->path, s->e);
}

/* Reads the eos list of generation_config.json, which takes precedence in generation. */
static int load_generation(struct config *c, const char *folder, struct err *e)
{
    char *path = mem_format("%s/generation_config.json", folder);
    json_t *j = NULL;
    int bad = 0;
    if (file_exists(path)) {
        j = json_file(path, CONFIG_MAX_BYTES, e);
        const struct family_source s = {j, path, e};
        if (j && !json_is_object(j))
            bad = err_set(e, EXIT_BAD_DATA, "%s: expected a JSON object", path);
        bad = bad || !j || read_ids(c, &s);
    }
    json_decref(j);
    free(path);
    return bad ? -1 : 0;
}

void family_extras_free(struct family_extras *x)
{
    free(x->harmless);
    free(x->ignored);
    x->harmless = x->ignored = NULL;
}

/* A denoiser stops at an eos. */
static int check_eos(struct config *c, const struct family_source *s)
{
    const int64_t authors = c->family->eos_id;
    const int64_t eos = authors > 0 && (size_t)authors >= c->vocab ? c->pad : authors;
    if (!c->n_eos && authors > 0 && eos >= 0)
        c->eos[c->n_eos++] = eos;
    return !c->n_eos && config_denoises(c)
               ? family_refuse(s, "eos_token_id", "an id, here or in generation_config.json")
               : 0;
}

int family_read(struct config *c, const json_t *config, const char *path,
                struct family_extras *extras, struct err *e)
{
    const struct family_source s = {config, path, e};
    *c = (struct config){0};
    hub_model_name(path, c->name);
    return load_family(c, &s, extras) || check_eos(c, &s) ? -1 : 0;
}

int family_load(struct config *c, const char *folder, struct family_extras *extras, struct err *e)
{
    struct family_extras none = {0}, *x = extras ? extras : &none;
    *c = (struct config){0};
    hub_model_name(folder, c->name);
    char *path = mem_format("%s/config.json", folder);
    json_t *j = json_file(path, CONFIG_MAX_BYTES, e);
    const struct family_source s = {j, path, e};
    int bad = !j;
    if (j && !json_is_object(j))
        bad = err_set(e, EXIT_BAD_DATA, "%s: expected a JSON object", path);
    bad = bad || load_family(c, &s, x) || load_generation(c, folder, e) || check_eos(c, &s);
    family_extras_free(&none);
    json_decref(j);
    free(path);
    return bad ? -1 : 0;
}
