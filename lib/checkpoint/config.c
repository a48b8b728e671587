/* config.c - see config.h.
 *
 * Three tables per family say what becomes of a key: `number_key` rows are read, `fixed_key` rows
 * must have the one value that this engine computes with, and names in `harmless` change no result.
 * A key in none of them is refused unless it is null: a checkpoint that asks for something unknown
 * would otherwise run, and be wrong.
 */
#include "lib/checkpoint/config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/checkpoint/quantization.h"

enum { CONFIG_MAX_BYTES = 4 << 20 };
#define WIDTH_MAX (INT64_C(1) << 20)
#define VOCAB_MAX (INT64_C(1) << 20)
#define CONTEXT_MAX (INT64_C(1) << 24)

/* A size in the file. `required` 0: may be absent (the field keeps its value). */
struct number_key {
    const char *key;
    size_t offset;
    int64_t lo, hi;
    int required;
};
#define AT(field) offsetof(struct config, field)
static const struct number_key llama_numbers[] = {
    {"hidden_size", AT(width), 1, WIDTH_MAX, 1},
    {"num_hidden_layers", AT(layers), 1, 1024, 1},
    {"num_attention_heads", AT(heads), 1, 4096, 1},
    {"num_key_value_heads", AT(kv_heads), 1, 4096, 0},
    {"head_dim", AT(head_dim), 2, 4096, 0},
    {"intermediate_size", AT(ffn), 1, WIDTH_MAX, 1},
    {"vocab_size", AT(vocab), 1, VOCAB_MAX, 1},
    {"max_position_embeddings", AT(context), 1, CONTEXT_MAX, 1},
    {0},
};
static const struct number_key llada_numbers[] = {
    {"d_model", AT(width), 1, WIDTH_MAX, 1},
    {"n_layers", AT(layers), 1, 1024, 1},
    {"n_heads", AT(heads), 1, 4096, 1},
    {"n_kv_heads", AT(kv_heads), 1, 4096, 0},
    {"mlp_hidden_size", AT(ffn), 1, WIDTH_MAX, 0},
    {"vocab_size", AT(vocab), 1, VOCAB_MAX, 1},
    {"max_sequence_length", AT(context), 1, CONTEXT_MAX, 1},
    {0},
};

/* A key that must have this value. `required`: the value when absent would be another one. */
struct fixed_key {
    const char *key, *value; /* value as JSON */
    int required;
};
static const struct fixed_key llama_fixed[] = {
    {"hidden_act", "\"silu\"", 0}, {"attention_bias", "false", 0}, {"mlp_bias", "false", 0},
    {"is_decoder", "false", 0},    {"is_encoder_decoder", "false", 0},
    {"add_cross_attention", "false", 0}, {"partial_rotary_factor", "1.0", 0},
    {"embedding_multiplier", "1.0", 0}, {0},
};
static const struct fixed_key llada_fixed[] = {
    {"activation_type", "\"silu\"", 1},    {"block_type", "\"llama\"", 1},
    {"block_group_size", "1", 0},          {"layer_norm_type", "\"rms\"", 1},
    {"layer_norm_with_affine", "true", 0}, {"rope", "true", 1},
    {"rope_full_precision", "true", 0},    {"alibi", "false", 0},
    {"include_bias", "false", 1},          {"include_qkv_bias", "false", 0},
    {"bias_for_layer_norm", "false", 0},   {"attention_layer_norm", "false", 0},
    {"multi_query_attention", "false", 0}, {"input_emb_norm", "false", 0},
    {"scale_logits", "false", 0},          {0},
};

/* Keys that change no result of a forward pass, of both families, ended by NULL. */
static const char *const harmless[] = {
    "architectures", "model_type", "auto_map", "transformers_version", "torch_dtype", "dtype",
    "_name_or_path", "_commit_hash", "_attn_implementation_autoset", "attn_implementation",
    "use_cache", "initializer_range", "initializer_factor", "pretraining_tp", "tokenizer_class",
    "attention_dropout", "attention_probs_dropout_prob", "hidden_dropout", "task_specific_params",
    "problem_type", "finetuning_task", "id2label", "label2id", "num_labels", "return_dict",
    "return_dict_in_generate", "output_attentions", "output_hidden_states", "output_scores",
    "torchscript", "use_bfloat16", "tf_legacy_loss", "gradient_checkpointing", "prefix",
    "chunk_size_feed_forward", "pruned_heads", "cross_attention_hidden_size",
    "tie_encoder_decoder", "decoder_start_token_id", "sep_token_id",
    /* how to generate: flags of the generators say it here */
    "max_length", "min_length", "max_new_tokens", "do_sample", "early_stopping", "num_beams",
    "num_beam_groups", "diversity_penalty", "temperature", "top_k", "top_p", "typical_p",
    "repetition_penalty", "length_penalty", "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size", "bad_words_ids", "num_return_sequences",
    "forced_bos_token_id", "forced_eos_token_id", "remove_invalid_values",
    "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens",
    /* how LLaDA was trained and started */
    "residual_dropout", "embedding_dropout", "flash_attention",
    "precision", "init_device", "init_fn", "init_std", "init_cutoff_factor", "alibi_bias_max",
    "attention_layer_norm_with_affine", "mlp_ratio", NULL,
};
/* Keys that the code below reads by hand. */
static const char *const llama_read[] = {
    "rms_norm_eps", "rope_theta", "rope_scaling", "rope_parameters", "tie_word_embeddings",
    "bos_token_id", "eos_token_id", "pad_token_id", "quantization", NULL,
};
static const char *const llada_read[] = {
    "rms_norm_eps", "rope_theta", "weight_tying", "tie_word_embeddings", "embedding_size",
    "bos_token_id", "eos_token_id", "pad_token_id", "mask_token_id",
    "quantization", NULL,
};

struct family {
    const char *architecture;
    const struct number_key *numbers;
    const struct fixed_key *fixed;
    const char *const *read;
};
static const struct family llama_family = {"LlamaForCausalLM", llama_numbers, llama_fixed,
                                           llama_read};
static const struct family llada_family = {"LLaDAModelLM", llada_numbers, llada_fixed, llada_read};

struct source { /* where a value comes from, for messages */
    const json_t *json;
    const char *path;
    struct err *e;
};

static int listed(const char *const *list, const char *key)
{
    for (; *list; list++)
        if (!strcmp(*list, key))
            return 1;
    return 0;
}

static int known(const struct family *f, const char *key)
{
    for (const struct number_key *n = f->numbers; n->key; n++)
        if (!strcmp(n->key, key))
            return 1;
    for (const struct fixed_key *x = f->fixed; x->key; x++)
        if (!strcmp(x->key, key))
            return 1;
    return listed(harmless, key) || listed(f->read, key);
}

/* "key value" of a refused member. */
static int refuse(const struct source *s, const char *key, const char *expected)
{
    const json_t *v = json_object_get(s->json, key);
    char *got = v ? json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
    err_set(s->e, EXIT_BAD_DATA, "%s: %.100s: expected %s, got %.200s", s->path, key, expected,
            got ? got : "nothing (the key is missing)");
    free(got);
    return -1;
}

static int refuse_unknown(const struct source *s, const struct family *f)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)s->json, key, v) {
        if (!json_is_null(v) && !known(f, key))
            return refuse(s, key, "no such key: it is not supported and may change the result");
    }
    return 0;
}

static int read_numbers(struct config *c, const struct source *s, const struct number_key *k)
{
    for (; k->key; k++) {
        int64_t v;
        if (!k->required && !json_has(s->json, k->key))
            continue;
        if (json_int(s->json, s->path, k->key, k->lo, k->hi, &v, s->e))
            return -1;
        size_t size = (size_t)v;
        memcpy((char *)c + k->offset, &size, sizeof size);
    }
    return 0;
}

/* 1 when two JSON values are the same, a number being one whether written 1 or 1.0. */
static int same_value(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    return json_equal(a, b);
}

static int check_fixed(const struct source *s, const struct fixed_key *k)
{
    for (; k->key; k++) {
        if (!json_has(s->json, k->key)) {
            if (k->required)
                return refuse(s, k->key, k->value);
            continue;
        }
        json_t *want = json_loads(k->value, JSON_DECODE_ANY, NULL);
        int same = same_value(want, json_object_get(s->json, k->key));
        json_decref(want);
        if (!same)
            return refuse(s, k->key, k->value);
    }
    return 0;
}

static int read_id(const struct config *c, const struct source *s, const char *key, int64_t *id)
{
    return json_has(s->json, key)
               ? json_int(s->json, s->path, key, 0, (int64_t)c->vocab - 1, id, s->e)
               : 0;
}

/* One id, or a list of them; replaces what was read before. */
static int read_eos(struct config *c, const struct source *s)
{
    const json_t *v = json_object_get(s->json, "eos_token_id");
    if (!json_has(s->json, "eos_token_id"))
        return 0;
    size_t n = json_is_array(v) ? json_array_size(v) : 1;
    if (n < 1 || n > CONFIG_MAX_EOS)
        return refuse(s, "eos_token_id", "an id, or a list of 1 to 8");
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_is_array(v) ? json_array_get(v, i) : v;
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            (size_t)json_integer_value(id) >= c->vocab)
            return refuse(s, "eos_token_id", "ids from 0 to vocab_size - 1");
        c->eos[i] = json_integer_value(id);
    }
    c->n_eos = n;
    return 0;
}

static int read_ids(struct config *c, const struct source *s)
{
    return read_id(c, s, "bos_token_id", &c->bos) || read_id(c, s, "pad_token_id", &c->pad) ||
                   read_eos(c, s)
               ? -1
               : 0;
}

/* Members of rope_scaling or rope_parameters: nothing, type "default", or type "llama3". */
static int read_rope(struct config *c, const struct source *s, const char *key)
{
    static const char *const members[] = {
        "rope_type", "type", "rope_theta", "factor", "low_freq_factor", "high_freq_factor",
        "original_max_position_embeddings", "partial_rotary_factor", NULL};
    static const struct fixed_key fixed[] = {{"partial_rotary_factor", "1.0", 0}, {0}};
    if (!json_has(s->json, key))
        return 0;
    char *where = mem_format("%s: %s", s->path, key);
    const struct source in = {json_object_get(s->json, key), where, s->e};
    const char *type = "default", *member;
    json_t *v;
    int bad = 0;
    if (!json_is_object(in.json))
        bad = refuse(s, key, "null or an object");
    else
        json_object_foreach((json_t *)in.json, member, v)
            if (!bad && !json_is_null(v) && !listed(members, member))
                bad = refuse(&in, member, "no such key: it is not supported");
    const char *type_key = json_has(in.json, "rope_type") ? "rope_type" : "type";
    if (!bad && json_has(in.json, type_key))
        bad = json_text(in.json, where, type_key, &type, s->e);
    if (!bad && json_has(in.json, "rope_theta"))
        bad = json_number(in.json, where, "rope_theta", 1, 1e12, &c->rope_theta, s->e);
    bad = bad || check_fixed(&in, fixed);
    if (!bad && !strcmp(type, "llama3")) {
        const char *const o = "original_max_position_embeddings";
        c->rope_llama3 = 1;
        bad =
            json_number(in.json, where, "factor", 1, 1e6, &c->rope_factor, s->e) ||
            json_number(in.json, where, "low_freq_factor", 1e-6, 1e6, &c->rope_low_freq, s->e) ||
            json_number(in.json, where, "high_freq_factor", 1e-6, 1e6, &c->rope_high_freq, s->e) ||
            json_number(in.json, where, o, 1, 1e9, &c->rope_original_context, s->e);
        if (!bad && c->rope_high_freq <= c->rope_low_freq)
            bad = refuse(&in, "high_freq_factor", "more than low_freq_factor");
    } else if (!bad && strcmp(type, "default")) {
        bad = refuse(&in, type_key, "\"default\" or \"llama3\": others are not supported");
    }
    free(where);
    return bad;
}

/* Head counts and sizes that follow from others, and how they must fit. */
static int settle_shape(struct config *c, const struct source *s, const char *heads_key,
                        const char *kv_key)
{
    char expected[96];
    if (!c->kv_heads)
        c->kv_heads = c->heads;
    if (c->kv_heads > c->heads || c->heads % c->kv_heads) {
        snprintf(expected, sizeof expected, "a divisor of %s %zu", heads_key, c->heads);
        return refuse(s, kv_key, expected);
    }
    if (!c->head_dim && c->width % c->heads) {
        snprintf(expected, sizeof expected, "a divisor of the width %zu", c->width);
        return refuse(s, heads_key, expected);
    }
    if (!c->head_dim)
        c->head_dim = c->width / c->heads;
    if (c->head_dim % 2 || c->head_dim > 4096)
        return err_set(s->e, EXIT_BAD_DATA,
                       "%s: head_dim: expected an even number up to 4096, got %zu", s->path,
                       c->head_dim);
    if (c->heads * c->head_dim > (size_t)WIDTH_MAX)
        return err_set(s->e, EXIT_BAD_DATA, "%s: heads x head_dim: expected at most %lld, got %zu",
                       s->path, (long long)WIDTH_MAX, c->heads * c->head_dim);
    return 0;
}

static int load_llama(struct config *c, const struct source *s)
{
    c->arch = ARCH_LLAMA;
    c->rope_theta = 10000; /* the published default of this family, when the key is absent */
    if (settle_shape(c, s, "num_attention_heads", "num_key_value_heads"))
        return -1;
    if (json_has(s->json, "rope_theta") &&
        json_number(s->json, s->path, "rope_theta", 1, 1e12, &c->rope_theta, s->e))
        return -1;
    if (json_has(s->json, "tie_word_embeddings") &&
        json_flag(s->json, s->path, "tie_word_embeddings", &c->tied, s->e))
        return -1;
    return read_rope(c, s, "rope_scaling") || read_rope(c, s, "rope_parameters") ? -1 : 0;
}

static int load_llada(struct config *c, const struct source *s)
{
    int64_t vocab = (int64_t)c->vocab, rows, ratio;
    int tied;
    c->arch = ARCH_LLADA;
    if (json_number(s->json, s->path, "rope_theta", 1, 1e12, &c->rope_theta, s->e) ||
        json_flag(s->json, s->path, "weight_tying", &c->tied, s->e) ||
        settle_shape(c, s, "n_heads", "n_kv_heads"))
        return -1;
    if (!c->ffn) {
        if (json_int(s->json, s->path, "mlp_ratio", 1, 64, &ratio, s->e))
            return -1;
        c->ffn = c->width * (size_t)ratio;
    }
    /* A longer embedding would give ids that the vocabulary does not have. */
    if (json_has(s->json, "embedding_size") &&
        json_int(s->json, s->path, "embedding_size", vocab, vocab, &rows, s->e))
        return -1;
    /* The Hugging Face wrapper's own key; the network obeys weight_tying. */
    if (json_has(s->json, "tie_word_embeddings")) {
        if (json_flag(s->json, s->path, "tie_word_embeddings", &tied, s->e))
            return -1;
        if (tied && !c->tied)
            return refuse(s, "tie_word_embeddings", "the same as weight_tying (false)");
    }
    return json_int(s->json, s->path, "mask_token_id", 0, vocab - 1, &c->mask, s->e);
}

/* `architectures`, when there, is the one class that goes with the model_type. */
static int check_architecture(const struct source *s, const struct family *f)
{
    const json_t *list = json_object_get(s->json, "architectures");
    const char *named = json_string_value(json_array_get(list, 0));
    if (json_has(s->json, "architectures") &&
        (json_array_size(list) != 1 || !named || strcmp(named, f->architecture)))
        return refuse(s, "architectures", f->architecture);
    return 0;
}

/* The family by model_type, then what both families have, then the rest. */
static int load_family(struct config *c, const struct source *s)
{
    const char *type;
    if (json_text(s->json, s->path, "model_type", &type, s->e))
        return -1;
    int llama = !strcmp(type, "llama");
    if (!llama && strcmp(type, "llada"))
        return refuse(s, "model_type", "\"llama\" or \"llada\": others are not supported");
    const struct family *f = llama ? &llama_family : &llada_family;
    if (check_architecture(s, f) || refuse_unknown(s, f) || read_numbers(c, s, f->numbers) ||
        check_fixed(s, f->fixed) ||
        json_number(s->json, s->path, "rms_norm_eps", 1e-12, 0.1, &c->norm_eps, s->e))
        return -1;
    return (llama ? load_llama(c, s) : load_llada(c, s)) || read_ids(c, s) ||
                   quant_read(c, s->json, s->path, s->e)
               ? -1
               : 0;
}

/* generation_config.json: its eos list is the one that generation obeys. */
static int load_generation(struct config *c, const char *folder, struct err *e)
{
    char *path = mem_format("%s/generation_config.json", folder);
    json_t *j = NULL;
    int bad = 0;
    if (file_exists(path)) {
        j = json_file(path, CONFIG_MAX_BYTES, e);
        const struct source s = {j, path, e};
        if (j && !json_is_object(j))
            bad = err_set(e, EXIT_BAD_DATA, "%s: expected a JSON object", path);
        bad = bad || !j || read_ids(c, &s);
    }
    json_decref(j);
    free(path);
    return bad ? -1 : 0;
}

/* "a/llada-demo/" -> "llada-demo"; a snapshot of the cache -> the name of its repository. Bytes
 * that would need quoting become '_': the name is part of the records' `config`. */
static void name_from(char name[64], const char *folder)
{
    char *real = realpath(folder, NULL), *base = real ? strrchr(real, '/') : NULL;
    if (!real && errno == ENOMEM)
        err_machine(__FILE__, __LINE__, "out of host memory");
    if (base && base > real) {
        *base = 0;
        char *parent = strrchr(real, '/');
        if (parent && parent > real && !strcmp(parent, "/snapshots")) {
            *parent = 0;
            char *cache = strrchr(real, '/'), *dashes = NULL;
            for (char *p = cache; p && (p = strstr(p, "--")); p += 2)
                dashes = p + 1;
            base = dashes ? dashes : base;
        }
    }
    snprintf(name, 64, "%s", base && base[1] ? base + 1 : "model");
    for (char *p = name; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-", *p))
            *p = '_';
    free(real);
}

int config_load(struct config *c, const char *folder, struct err *e)
{
    *c = (struct config){.bos = -1, .pad = -1, .mask = -1, .eot = -1};
    name_from(c->name, folder);
    char *path = mem_format("%s/config.json", folder);
    json_t *j = json_file(path, CONFIG_MAX_BYTES, e);
    const struct source s = {j, path, e};
    int bad = !j;
    if (j && !json_is_object(j))
        bad = err_set(e, EXIT_BAD_DATA, "%s: expected a JSON object", path);
    bad = bad || load_family(c, &s) || load_generation(c, folder, e);
    if (!bad && !c->n_eos)
        bad = refuse(&s, "eos_token_id", "an id, here or in generation_config.json");
    json_decref(j);
    free(path);
    return bad ? -1 : 0;
}

size_t config_parameters(const struct config *c)
{
    size_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    size_t layer = 2 * c->width + 2 * q * c->width + 2 * kv * c->width + 3 * c->ffn * c->width;
    return (c->tied ? 1 : 2) * c->vocab * c->width + c->layers * layer + c->width;
}

void config_rope(const struct config *c, float *inv_freq)
{
    const float theta = (float)c->rope_theta, factor = (float)c->rope_factor;
    const float low = (float)c->rope_low_freq, high = (float)c->rope_high_freq;
    const float context = (float)c->rope_original_context;
    for (size_t j = 0; j < c->head_dim / 2; j++) {
        float f = 1.0f / powf(theta, (float)(2 * j) / (float)c->head_dim);
        float wave = 6.28318530717958647692f / f;
        if (c->rope_llama3 && wave > context / low) {
            f /= factor;
        } else if (c->rope_llama3 && wave >= context / high) {
            float s = (context / wave - low) / (high - low);
            f = (1 - s) * f / factor + s * f;
        }
        inv_freq[j] = f;
    }
}
