/* family-load.c - reads config.json by the tables of its family.
 *
 * architectures[0] selects the family, because different layouts share a model_type. If the file
 * states no architecture, model_type selects the family. Families with a key of their own
 * (family.key) are tried first. Then every key of the file must be one of these: a row of `numbers`
 * or `fixed`, a key that the code below or `finish` reads, a key that changes no result, a key with
 * the value null, or a key that the caller ignores by name. Other keys are refused. */
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
    /* keys that say how to generate: here options of the generators say this */
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
static int is_read(const struct family *family, const char *key)
{
    for (const struct family_number *n = family->numbers; n->key; n++)
        if (!strcmp(n->key, key))
            return 1;
    for (const struct family_fixed *fixed = family->fixed; fixed->key; fixed++)
        if (!strcmp(fixed->key, key))
            return 1;
    return !strcmp(key, family->tied_key) || family_lists(read_always, key) ||
           family_lists(family->finished, key) ||
           (config_denoises(&family->start) && !strcmp(key, "mask_token_id"));
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

/* Refuses unknown keys, because each may change the network. The message has as many as fit. */
static int refuse_unknown(const struct family_source *source, const struct buf *keys)
{
    struct buf values = {0};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)source->json, key, value) {
        if (values.len >= SHOWN)
            break;
        if (json_is_null(value) || !is_in_list(keys->data, key))
            continue;
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII |
                                       JSON_REAL_PRECISION(15));
        add_name(&values, ", ", key);
        buf_format(&values, " = %.60s", text ? text : "");
        free(text);
    }
    err_set(source->e, EXIT_BAD_DATA, "%s: %.*s: unknown key, not supported: if it does not change "
            "the network, remove it or pass --ignore-config %.*s", source->path, SHOWN,
            values.len ? values.data : "", SHOWN, keys->data);
    buf_free(&values);
    return -1;
}

/* Refuses --ignore-config for a key that is read. */
static int refuse_ignoring(const struct family_source *source, const char *key)
{
    return err_set(source->e, EXIT_BAD_USAGE,
                   "--ignore-config: expected a key of %s that this program "
                   "does not know, got %.100s, which it reads", source->path, key);
}

/* Sorts the keys into read, harmless, ignored and unknown. */
static int sort_keys(const struct family_source *source, const struct family *family,
                     struct family_extras *extras)
{
    struct buf harmless_keys = {0}, ignored = {0}, unknown = {0};
    const char *key;
    json_t *value;
    int bad = 0;
    json_object_foreach((json_t *)source->json, key, value) {
        int to_ignore = is_in_list(extras->ignore, key);
        if (json_is_null(value) || bad)
            continue;
        if (is_read(family, key))
            bad = to_ignore ? refuse_ignoring(source, key) : 0;
        else if (family_lists(harmless, key) || family_lists(family->ignored, key))
            add_name(&harmless_keys, ", ", key);
        else
            add_name(to_ignore ? &ignored : &unknown, ",", *key ? key : "\"\"");
    }
    if (!bad && unknown.len)
        bad = refuse_unknown(source, &unknown);
    buf_free(&unknown);
    extras->harmless = harmless_keys.data;
    extras->ignored = ignored.data;
    return bad;
}

static int read_number(struct config *config, const struct family_source *source,
                       const struct family_number *k)
{
    size_t now, got;
    int64_t v;
    memcpy(&now, (const char *)config + k->offset, sizeof now);
    int same = k->use == KEY_SAME;
    if (json_int(source->json, source->path, k->key, same ? (int64_t)now : k->lo,
                 same ? (int64_t)now : k->hi, &v, source->e))
        return -1;
    got = (size_t)v;
    memcpy((char *)config + k->offset, &got, sizeof got);
    return 0;
}

static int read_numbers(struct config *config, const struct family_source *source,
                        const struct family_number *k)
{
    for (; k->key; k++)
        if ((k->use == KEY_REQUIRED || json_has(source->json, k->key)) &&
            read_number(config, source, k))
            return -1;
    return 0;
}

static int read_id(const struct config *config, const struct family_source *source, const char *key,
                   int64_t *id)
{
    return json_has(source->json, key) ? json_int(source->json, source->path, key, 0,
                                                  (int64_t)config->vocab - 1, id, source->e)
                                       : 0;
}

/* Reads pad_token_id. In early conversions of LLaMA -1 means that there is no padding. */
static int read_pad(struct config *config, const struct family_source *source)
{
    const json_t *value = json_object_get(source->json, "pad_token_id");
    if (!json_is_integer(value) || json_integer_value(value) != -1)
        return read_id(config, source, "pad_token_id", &config->pad);
    config->pad = -1;
    return 0;
}

/* Reads eos_token_id, one id or a list of ids. The new ids replace those read before. */
static int read_eos(struct config *config, const struct family_source *source)
{
    const json_t *value = json_object_get(source->json, "eos_token_id");
    if (!json_has(source->json, "eos_token_id"))
        return 0;
    size_t n = json_is_array(value) ? json_array_size(value) : 1;
    if (n < 1 || n > CONFIG_MAX_EOS)
        return family_refuse(source, "eos_token_id", "an id, or a list of 1 to 32");
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_is_array(value) ? json_array_get(value, i) : value;
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            (size_t)json_integer_value(id) >= config->vocab)
            return family_refuse(source, "eos_token_id", "ids from 0 to vocab_size - 1");
        config->eos[i] = json_integer_value(id);
    }
    config->n_eos = n;
    return 0;
}

static int read_ids(struct config *config, const struct family_source *source)
{
    return read_id(config, source, "bos_token_id", &config->bos) || read_pad(config, source) ||
                   read_eos(config, source)
               ? -1
               : 0;
}

static const char *key_of(const struct family *family, size_t offset)
{
    const struct family_number *k = family->numbers;
    while (k->offset != offset)
        k++;
    return k->key;
}

/* Sets kv_heads and head_dim where the file has none, and checks that the sizes fit together. */
static int settle_shape(struct config *config, const struct family_source *source)
{
    const char *heads_key = key_of(config->family, FAMILY_AT(heads));
    char expected[96];
    if (!config->kv_heads)
        config->kv_heads = config->heads;
    if (config->kv_heads > config->heads || config->heads % config->kv_heads) {
        snprintf(expected, sizeof expected, "a divisor of %s %zu", heads_key, config->heads);
        return family_refuse(source, key_of(config->family, FAMILY_AT(kv_heads)), expected);
    }
    if (!config->head_dim && config->width % config->heads) {
        snprintf(expected, sizeof expected, "a divisor of the width %zu", config->width);
        return family_refuse(source, heads_key, expected);
    }
    if (!config->head_dim)
        config->head_dim = config->width / config->heads;
    if (config->head_dim % 2 || config->head_dim > 4096)
        return err_set(source->e, EXIT_BAD_DATA,
                       "%s: head_dim: expected an even number up to 4096, got %zu", source->path,
                       config->head_dim);
    if (config->heads * config->head_dim > (size_t)FAMILY_WIDTH_MAX)
        return err_set(source->e, EXIT_BAD_DATA,
                       "%s: heads x head_dim: expected at most %lld, got %zu", source->path,
                       (long long)FAMILY_WIDTH_MAX, config->heads * config->head_dim);
    config->rope_dims = config->head_dim;
    return 0;
}

/* Reads norm, rotation and tied head. A key is required if the family has no default for it. */
static int read_block(struct config *config, const struct family_source *source)
{
    const char *tied = config->family->tied_key;
    if ((config->norm_eps <= 0 || json_has(source->json, "rms_norm_eps")) &&
        json_number(source->json, source->path, "rms_norm_eps", 1e-12, 0.1, &config->norm_eps,
                    source->e))
        return -1;
    if (json_has(source->json, "rope_theta") &&
        json_number(source->json, source->path, "rope_theta", 1, 1e12, &config->rope_theta,
                    source->e))
        return -1;
    if ((config->tied < 0 || json_has(source->json, tied)) &&
        json_flag(source->json, source->path, tied, &config->tied, source->e))
        return -1;
    config->rope_yarn = 0; /* rope_yarn of family->start is only for shapes of synth: */
    if (family_read_rope(config, source, "rope_scaling") ||
        family_read_rope(config, source, "rope_parameters") ||
        (config->rope_theta <= 0 && json_number(source->json, source->path, "rope_theta", 1, 1e12,
                                                &config->rope_theta, source->e)))
        return -1;
    return settle_shape(config, source);
}

/* Refuses layers with different kinds of attention. */
static int check_layer_types(const struct family_source *source)
{
    static const char expected[] =
        "a list with \"full_attention\" for every layer: others are not supported";
    const json_t *list = json_object_get(source->json, "layer_types");
    size_t i;
    json_t *type;
    json_array_foreach((json_t *)list, i, type) {
        const char *name = json_string_value(type);
        if (!name || strcmp(name, "full_attention"))
            return family_refuse(source, "layer_types", expected);
    }
    return json_has(source->json, "layer_types") && !json_is_array(list)
               ? family_refuse(source, "layer_types", expected)
               : 0;
}

/* text = one of "llama", "llada", ...: the model_type (types 1) or architecture of each family. */
static void list_families(char *text, size_t bytes, int types)
{
    size_t n = 0;
    *text = 0;
    for (size_t i = 0; family_at(i) && n < bytes; i++) {
        const struct family *family = family_at(i);
        n += (size_t)snprintf(text + n, bytes - n, "%s\"%s\"", i ? ", " : "one of ",
                              types ? family->model_type : family->architecture);
    }
}

static int has_architecture(const struct family *family, const char *architecture)
{
    return architecture && (!strcmp(architecture, family->architecture) ||
                            family_lists(family->aliases, architecture));
}

/* The family of the file. NULL: the file is refused. */
static const struct family *find_family(const struct family_source *source)
{
    const json_t *list = json_object_get(source->json, "architectures");
    const int has = json_has(source->json, "architectures");
    const char *named = json_string_value(json_array_get(list, 0)), *type;
    char expected[800];
    size_t n = 0;
    if (json_text(source->json, source->path, "model_type", &type, source->e))
        return NULL;
    while (family_at(n))
        n++;
    for (size_t i = 0; i < 2 * n; i++) { /* i < n: only families whose own key is in the file */
        const struct family *family = family_at(i % n);
        if (i < n && !(family->key && json_has(source->json, family->key)))
            continue;
        if (has ? !has_architecture(family, named) : strcmp(type, family->model_type) != 0)
            continue;
        int of_type = !strcmp(type, family->model_type) || family_lists(family->other_types, type);
        if (of_type && (!has || json_array_size(list) == 1))
            return family;
        snprintf(expected, sizeof expected,
                 "\"%s\", which goes with the architectures: others are not supported",
                 family->model_type);
        family_refuse(source, "model_type", expected);
        return NULL;
    }
    list_families(expected, sizeof expected - 40, !has);
    strcat(expected, ": others are not supported");
    family_refuse(source, has ? "architectures" : "model_type", expected);
    return NULL;
}

static int load_family(struct config *config, const struct family_source *source,
                       struct family_extras *extras)
{
    const struct family *family = find_family(source);
    if (!family)
        return -1;
    char name[sizeof config->name];
    memcpy(name, config->name, sizeof name);
    family_start(config, family);
    memcpy(config->name, name, sizeof name);
    if (family->named)
        family->named(config);
    if (sort_keys(source, family, extras) || read_numbers(config, source, family->numbers) ||
        family_check_fixed(source, family->fixed) || read_block(config, source) ||
        check_layer_types(source) || (family->finish && family->finish(config, source)) ||
        read_ids(config, source))
        return -1;
    if (config_denoises(config) &&
        (!family->mask_token || json_has(source->json, "mask_token_id")) &&
        json_int(source->json, source->path, "mask_token_id", 0, (int64_t)config->vocab - 1,
                 &config->mask, source->e))
        return -1;
    return quantization_read(config, source->json, source->path, source->e);
}

/* Reads bos, pad and eos of generation_config.json. They replace the ids of config.json. */
static int load_generation(struct config *config, const char *folder, struct err *e)
{
    char *path = mem_format("%s/generation_config.json", folder);
    json_t *j = NULL;
    int bad = 0;
    if (file_exists(path)) {
        j = json_file(path, CONFIG_MAX_BYTES, e);
        const struct family_source source = {j, path, e};
        if (j && !json_is_object(j))
            bad = err_set(e, EXIT_BAD_DATA, "%s: expected a JSON object", path);
        bad = bad || !j || read_ids(config, &source);
    }
    json_decref(j);
    free(path);
    return bad ? -1 : 0;
}

void family_extras_free(struct family_extras *extras)
{
    free(extras->harmless);
    free(extras->ignored);
    extras->harmless = extras->ignored = NULL;
}

/* Sets the eos of the authors' code if the files state none. -1: a denoiser has no eos; it needs
 * one, because its answers end there. */
static int check_eos(struct config *config, const struct family_source *source)
{
    const int64_t authors = config->family->eos_id;
    const int64_t eos = authors > 0 && (size_t)authors >= config->vocab ? config->pad : authors;
    if (!config->n_eos && authors > 0 && eos >= 0)
        config->eos[config->n_eos++] = eos;
    return !config->n_eos && config_denoises(config)
               ? family_refuse(source, "eos_token_id", "an id, here or in generation_config.json")
               : 0;
}

int family_read(struct config *c, const json_t *config, const char *path,
                struct family_extras *extras, struct err *e)
{
    const struct family_source source = {config, path, e};
    *c = (struct config){0};
    hub_model_name(path, c->name);
    return load_family(c, &source, extras) || check_eos(c, &source) ? -1 : 0;
}

int family_load(struct config *config, const char *folder, struct family_extras *extras,
                struct err *e)
{
    struct family_extras none = {0}, *family_extras = extras ? extras : &none;
    *config = (struct config){0};
    hub_model_name(folder, config->name);
    char *path = mem_format("%s/config.json", folder);
    json_t *j = json_file(path, CONFIG_MAX_BYTES, e);
    const struct family_source source = {j, path, e};
    int bad = !j;
    if (j && !json_is_object(j))
        bad = err_set(e, EXIT_BAD_DATA, "%s: expected a JSON object", path);
    bad = bad || load_family(config, &source, family_extras) ||
          load_generation(config, folder, e) || check_eos(config, &source);
    family_extras_free(&none);
    json_decref(j);
    free(path);
    return bad ? -1 : 0;
}
