/* model.c - computes the network by its definition. One block is
 *     x += O attention(R(Q n1(x)), R(K n1(x)), V n1(x));   x += D (silu(G n2(x)) * U n2(x))
 * with n the root-mean-square norm and R the rotation of pairs (j, j + E/2) by position * f_j. Q,
 * K, V and O are the matrices of attention, G, U and D the gate, up and down matrices, S the
 * router.
 *
 * Qwen2 adds a bias to the outputs of Q, K and V. Qwen3 norms each head of Q and K before R.
 * LLaDA-MoE norms heads too, and has many G, U, D (experts). With p = softmax(S n2(x)) a row takes
 * the experts with the largest p, each with weight p. LLaDA2 and Ling have s = sigmoid(S n2(x)) and
 * a bias b instead. A row chooses the groups whose two largest s + b have the largest sum, and in
 * these groups the experts with the largest s + b. The weight of an expert is s / (sum of the taken
 * s), times a factor. The first layers of LLaDA2 and Ling have one G, U, D, and R turns the pairs
 * (j, j + R/2) of the first R values of a head.
 *
 * A DFlash drafter has, in every block, rows c = n(F [streams of another model]) in place of n1(x)
 * for the text, and ordinary blocks for the rows after the text. A row of an EAGLE-3 drafter has a
 * state h = F [streams] and the id e after it; [n1(e); n(h)] stands in place of n1(x), and h in
 * place of x. The h of a guess is the x of the row before.
 *
 * The files are read without checks, because only tests write them. One file because a definition
 * is checked in one reading, from its files to its logits. */
#include "tests/reference/model.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void fail(const char *format, ...)
{
    va_list ap;
    fputs("reference: ", stderr);
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(70);
}

void *room(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p) fail("no memory");
    return p;
}

/* ---- files ---- */

struct shard {
    char name[256];
    unsigned char *bytes;
    json_t *header;
    size_t data; /* offset of the tensors' bytes in the file */
};

struct files {
    const char *folder;
    struct shard shard[64];
    size_t count;
    json_t *index; /* the member weight_map of the index, or NULL */
};

static unsigned char *read_all(const char *folder, const char *name, size_t *size)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    unsigned char *bytes = room(*size + 1, 1);
    if (fread(bytes, 1, *size, f) != *size) fail("%s: cannot read", path);
    fclose(f);
    return bytes;
}

static json_t *read_json(const char *folder, const char *name)
{
    size_t size;
    unsigned char *bytes = read_all(folder, name, &size);
    if (!bytes) return NULL;
    json_t *j = json_loadb((char *)bytes, size, 0, NULL);
    free(bytes);
    if (!j) fail("%s/%s: not JSON", folder, name);
    return j;
}

static struct shard *shard_get(struct files *f, const char *name)
{
    for (size_t i = 0; i < f->count; i++)
        if (!strcmp(f->shard[i].name, name)) return &f->shard[i];
    if (f->count == 64) fail("too many shards");
    struct shard *s = &f->shard[f->count++];
    size_t size;
    snprintf(s->name, sizeof s->name, "%s", name);
    s->bytes = read_all(f->folder, name, &size);
    if (!s->bytes || size < 8) fail("%s: not there or too short", name);
    uint64_t header = 0;
    for (int i = 7; i >= 0; i--)
        header = header << 8 | s->bytes[i];
    s->data = 8 + (size_t)header;
    if (s->data > size) fail("%s: header longer than the file", name);
    s->header = json_loadb((char *)s->bytes + 8, (size_t)header, 0, NULL);
    if (!s->header) fail("%s: header is not JSON", name);
    return s;
}

static const json_t *find_tensor(struct files *f, const char *name, const struct shard **where)
{
    const char *file = "model.safetensors";
    if (f->index && !(file = json_string_value(json_object_get(f->index, name)))) return NULL;
    *where = shard_get(f, file);
    return json_object_get((*where)->header, name);
}

static double half_value(unsigned h)
{
    const int exponent = (int)(h >> 10 & 31), fraction = (int)(h & 1023);
    const double size = exponent == 0 ? ldexp(fraction, -24)
                                      : ldexp(1024 + fraction, exponent - 25);
    return h >> 15 ? -size : size;
}

static double value_at(const unsigned char *p, const char *dtype, size_t i)
{
    uint32_t bits;
    int64_t whole;
    float x;
    if (!strcmp(dtype, "I64")) {
        memcpy(&whole, p + 8 * i, sizeof whole);
        return (double)whole;
    }
    if (!strcmp(dtype, "F16")) return half_value((unsigned)(p[2 * i] | p[2 * i + 1] << 8));
    if (!strcmp(dtype, "BF16"))
        bits = (uint32_t)p[2 * i] << 16 | (uint32_t)p[2 * i + 1] << 24;
    else if (!strcmp(dtype, "F32"))
        bits = (uint32_t)p[4 * i] | (uint32_t)p[4 * i + 1] << 8 | (uint32_t)p[4 * i + 2] << 16 |
               (uint32_t)p[4 * i + 3] << 24;
    else
        fail("dtype %s", dtype);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Returns a tensor as doubles, or NULL if there is none. Its shape must be [rows, cols], or [rows]
 * if cols is 0. */
static double *tensor(struct files *f, const char *name, size_t rows, size_t cols)
{
    const struct shard *s;
    const json_t *t = find_tensor(f, name, &s);
    if (!t) return NULL;
    const json_t *shape = json_object_get(t, "shape");
    size_t count = 1;
    for (size_t i = 0; i < json_array_size(shape); i++)
        count *= (size_t)json_integer_value(json_array_get(shape, i));
    if (count != rows * (cols ? cols : 1) || json_array_size(shape) != (cols ? 2 : 1))
        fail("%s: %zu values, expected %zu x %zu", name, count, rows, cols);
    const char *dtype = json_string_value(json_object_get(t, "dtype"));
    const unsigned char *p = s->bytes + s->data +
        json_integer_value(json_array_get(json_object_get(t, "data_offsets"), 0));
    double *v = room(count, sizeof *v);
    for (size_t i = 0; i < count; i++)
        v[i] = value_at(p, dtype, i);
    return v;
}

/* Returns Nemotron's name of a tensor that other families call `name`. */
static const char *renamed(char to[128], const char *name)
{
    if (!strcmp(name, "lm_head.weight")) return "diffusion_head.weight";
    snprintf(to, 128, "encoder.%.100s", strncmp(name, "model.", 6) ? name : name + 6);
    return to;
}

/* Returns the tensor with the first of two names that exists (printf patterns with the layer's
 * number). */
static double *tensor_either(struct files *f, const char *a, const char *b, size_t layer,
                             size_t rows, size_t cols)
{
    char name[2][128];
    const char *const pattern[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        const char *mark = strchr(pattern[i], '#');
        if (mark)
            snprintf(name[i], sizeof name[i], "%.*s%zu%s", (int)(mark - pattern[i]), pattern[i],
                     layer, mark + 1);
        else
            snprintf(name[i], sizeof name[i], "%s", pattern[i]);
        double *v = tensor(f, name[i], rows, cols);
        char other[128];
        if (!v) v = tensor(f, renamed(other, name[i]), rows, cols);
        if (!v && !strncmp(name[i], "model.", 6)) v = tensor(f, name[i] + 6, rows, cols);
        if (v) return v;
    }
    fail("neither %s nor %s", name[0], name[1]);
}

/* ---- config.json ---- */

static double number(const json_t *j, const char *key, double otherwise)
{
    const json_t *v = json_object_get(j, key);
    return json_is_number(v) ? json_number_value(v) : otherwise;
}

static size_t count_of(const json_t *j, const char *key, size_t otherwise)
{
    return (size_t)number(j, key, (double)otherwise);
}

/* The share of YaRN's f_j that is not divided. It falls from 1, at the index that makes beta_fast
 * turns over the original length, to 0, at the index that makes beta_slow. Source: arXiv
 * 2309.00071; whole indices as in modeling_rope_utils.py of transformers. */
static double kept_by_yarn(const struct model *m, const json_t *p, double theta, double j)
{
    const double e = (double)m->head_dim, pi = acos(-1);
    const double long_ago = number(p, "original_max_position_embeddings", 0);
    const double most = number(p, "beta_fast", 32) * 2 * pi;
    const double least = number(p, "beta_slow", 1) * 2 * pi;
    double first = floor(e * log(long_ago / most) / (2 * log(theta)));
    double last = ceil(e * log(long_ago / least) / (2 * log(theta)));
    if (first < 0) first = 0;
    if (last > e - 1) last = e - 1;
    if (first == last) last += 0.001;
    const double over = (j - first) / (last - first);
    return 1 - (over < 0 ? 0 : over > 1 ? 1 : over);
}

/* YaRN's factor of cosines and sines. Source: modeling_rope_utils.py of transformers. */
static double attention_factor(const json_t *p)
{
    const double factor = number(p, "factor", 1), x = number(p, "mscale", 0);
    const double y = number(p, "mscale_all_dim", 0), ln = factor > 1 ? 0.1 * log(factor) : 0;
    return number(p, "attention_factor", x > 0 && y > 0 ? (x * ln + 1) / (y * ln + 1) : ln + 1);
}

/* Sets f_j = theta^(-2j/E). With rope_type llama3 long wavelengths are stretched by `factor`, short
 * ones are kept, those between are blended. Source: the LLaMA 3.1 frequency rule. */
static void set_frequencies(struct model *m, const json_t *config)
{
    const json_t *p = json_object_get(config, "rope_parameters");
    const json_t *scaling = json_is_object(p) ? p : json_object_get(config, "rope_scaling");
    const double theta = number(p, "rope_theta", number(config, "rope_theta", 10000));
    const char *type = json_string_value(json_object_get(scaling, "rope_type"));
    const double pi = acos(-1);
    m->frequency = room(m->rotated / 2, sizeof(double));
    for (size_t j = 0; j < m->rotated / 2; j++) {
        double f = pow(theta, -2.0 * (double)j / (double)m->rotated);
        if (type && !strcmp(type, "llama3")) {
            const double factor = number(scaling, "factor", 1);
            const double low = number(scaling, "low_freq_factor", 1);
            const double high = number(scaling, "high_freq_factor", 4);
            const double turns =
                number(scaling, "original_max_position_embeddings", 8192) * f / (2 * pi);
            double keep = (turns - low) / (high - low);
            keep = keep < 0 ? 0 : keep > 1 ? 1 : keep;
            f = (1 - keep) * f / factor + keep * f;
        }
        if (type && !strcmp(type, "linear")) f /= number(scaling, "factor", 1);
        if (type && !strcmp(type, "yarn")) {
            const double keep = kept_by_yarn(m, scaling, theta, (double)j);
            f = (1 - keep) * f / number(scaling, "factor", 1) + keep * f;
        }
        m->frequency[j] = f;
    }
    m->turned = type && !strcmp(type, "yarn") ? attention_factor(scaling) : 1;
}

/* The families by model_type. */
static const struct kind {
    const char *type;
    int qwen, sees;
} kinds[] = {{"llama", 0, SEES_BEFORE}, {"qwen2", 2, SEES_BEFORE}, {"qwen3", 3, SEES_BEFORE},
             {"llada", 0, SEES_ALL},    {"illada", 0, SEES_ALL},   {"a2d-llama", 0, SEES_ALL},
             {"a2d-qwen2", 2, SEES_ALL}, {"a2d-qwen3", 3, SEES_ALL}, {"sdar", 3, SEES_BLOCKS},
             {"Dream", 2, SEES_ALL},    {"Fast_dLLM_Qwen", 2, SEES_BLOCKS},
             {"mistral", 0, SEES_BEFORE}, {"smollm3", 0, SEES_BEFORE},
             {"lladamoe", 3, SEES_ALL}, {"nemotron_labs_diffusion", 0, SEES_BEFORE},
             {"ministral3", 0, SEES_BEFORE}, {"llada2_moe", 3, SEES_BLOCKS},
             {"bailing_moe_v2", 3, SEES_BEFORE}};

static const struct kind *kind_of(const char *type)
{
    for (size_t i = 0; type && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(type, kinds[i].type)) return &kinds[i];
    fail("model_type %s", type ? type : "missing");
}

static void find_unrotated(struct model *m, const json_t *config)
{
    const json_t *list = json_object_get(config, "no_rope_layers");
    const size_t interval = count_of(config, "no_rope_layer_interval", 4);
    for (size_t i = 0; i < m->layers; i++)
        m->layer[i].unrotated = json_is_array(list)
                                    ? !json_integer_value(json_array_get(list, i))
                                    : (i + 1) % interval == 0;
}

/* Reads the keys of LLaDA2 and Ling. */
static void read_groups(struct model *m, const json_t *c)
{
    m->groups = count_of(c, "n_group", 0);
    m->groups_used = count_of(c, "topk_group", 0);
    m->scale = number(c, "routed_scaling_factor", 0);
    m->dense = count_of(c, "first_k_dense_replace", 0);
    m->dense_ffn = count_of(c, "intermediate_size", 0);
    m->ffn = count_of(c, "moe_intermediate_size", 0);
    m->shared = m->ffn * count_of(c, "num_shared_experts", 0);
    m->rotated = (size_t)((double)m->head_dim * number(c, "partial_rotary_factor", 0));
}

/* Reads the members of a drafter. */
static void read_taps(struct model *m, const json_t *config)
{
    const json_t *own = json_object_get(config, "dflash_config");
    const json_t *list = json_object_get(own, "target_layer_ids");
    m->taps = json_array_size(list);
    m->masks = count_of(config, "block_size", 16) - 1;
    for (size_t i = 0; i < m->taps; i++)
        m->tap[i] = (size_t)json_integer_value(json_array_get(list, i));
    m->mask = (long)number(own, "mask_token_id", -1);
    m->sees = SEES_ALL;
}

/* Reads config.json. Returns 1 if the head is the embedding. */
static int read_config(struct model *m, const char *folder)
{
    json_t *c = read_json(folder, "config.json");
    if (!c) fail("%s: no config.json", folder);
    const struct kind *kind = kind_of(json_string_value(json_object_get(c, "model_type")));
    const int hf = !json_object_get(c, "d_model"); /* 1: the keys of LLaMA's file */
    m->qwen = kind->qwen;
    m->sees = kind->sees;
    m->width = count_of(c, hf ? "hidden_size" : "d_model", 0);
    m->layers = count_of(c, hf ? "num_hidden_layers" : "n_layers", 0);
    m->heads = count_of(c, hf ? "num_attention_heads" : "n_heads", 0);
    m->kv_heads = count_of(c, hf ? "num_key_value_heads" : "n_kv_heads", m->heads);
    m->head_dim = count_of(c, "head_dim", m->width / m->heads);
    m->experts = count_of(c, "num_experts", 0);
    m->used = count_of(c, "num_experts_per_tok", 0);
    m->shared = count_of(c, "shared_expert_intermediate_size", 0);
    if (json_is_true(json_object_get(c, "qk_layernorm"))) m->qwen = 3;
    m->ffn = count_of(c, m->experts ? "expert_intermediate_size"
                         : hf       ? "intermediate_size"
                                    : "mlp_hidden_size", 0);
    m->rotated = m->head_dim;
    if (json_object_get(c, "n_group")) read_groups(m, c);
    m->vocab = count_of(c, "embedding_size", count_of(c, "vocab_size", 0));
    m->eps = number(c, "rms_norm_eps", 1e-5);
    m->mask = (long)number(c, "mask_token_id", -1);
    const json_t *eos = json_object_get(c, "eos_token_id");
    if (json_is_array(eos)) eos = json_array_get(eos, 0);
    m->eos = json_is_number(eos) ? (long)json_number_value(eos) : -1;
    const json_t *tied = json_object_get(c, hf ? "tie_word_embeddings" : "weight_tying");
    const int is_tied = tied ? json_is_true(tied) : !hf;
    m->window = !strcmp(kind->type, "mistral") ? count_of(c, "sliding_window", 0) : 0;
    m->layer = room(m->layers, sizeof *m->layer);
    if (!strcmp(kind->type, "smollm3")) find_unrotated(m, c);
    set_frequencies(m, c);
    if (json_object_get(c, "dflash_config")) read_taps(m, c);
    m->answers = count_of(c, "draft_vocab_size", 0);
    m->taps = m->answers ? 3 : m->taps; /* model_chain() has the numbers of the three layers */
    json_decref(c);
    return is_tied;
}

/* Loads one part (gate_proj..) of all experts of layer i, one after another. */
static double *load_experts(struct model *m, struct files *f, size_t i, const char *part,
                            size_t rows, size_t cols)
{
    double *all = room(m->experts * rows * cols, sizeof *all);
    for (size_t e = 0; e < m->experts; e++) {
        char name[128];
        snprintf(name, sizeof name, "model.layers.%zu.mlp.experts.%zu.%s.weight", i, e, part);
        double *v = tensor_either(f, name, "-", i, rows, cols);
        memcpy(all + e * rows * cols, v, rows * cols * sizeof *v);
        free(v);
    }
    return all;
}

static void load_mixture(struct model *m, struct files *f, size_t i)
{
    struct layer *y = &m->layer[i];
    y->router = tensor_either(f, "model.layers.#.mlp.gate.weight", "-", i, m->experts, m->width);
    y->gate = load_experts(m, f, i, "gate_proj", m->ffn, m->width);
    y->up = load_experts(m, f, i, "up_proj", m->ffn, m->width);
    y->down = load_experts(m, f, i, "down_proj", m->width, m->ffn);
    if (!m->shared) return;
#define S "model.layers.#.shared_expert."
    y->shared[0] = tensor_either(f, S "gate_proj.weight", "-", i, m->shared, m->width);
    y->shared[1] = tensor_either(f, S "up_proj.weight", "-", i, m->shared, m->width);
    y->shared[2] = tensor_either(f, S "down_proj.weight", "-", i, m->width, m->shared);
#undef S
}

/* Copies rows from..from+rows-1 of a matrix. */
static double *cut_rows(const double *all, size_t from, size_t rows, size_t cols)
{
    double *v = room(rows * cols, sizeof *v);
    memcpy(v, all + from * cols, rows * cols * sizeof *v);
    return v;
}

/* Loads layer i of LLaDA2 and Ling. */
static void load_grouped(struct model *m, struct files *f, size_t i)
{
#define L "model.layers.#."
    static const char *const shared[] = {"gate_proj", "up_proj", "down_proj"};
    struct layer *y = &m->layer[i];
    const size_t d = m->width, e = m->head_dim, q = m->heads * e, k = m->kv_heads * e;
    double *qkv = tensor_either(f, L "attention.query_key_value.weight", "-", i, q + 2 * k, d);
    y->q = cut_rows(qkv, 0, q, d);
    y->k = cut_rows(qkv, q, k, d);
    y->v = cut_rows(qkv, q + k, k, d);
    free(qkv);
    y->attn_norm = tensor_either(f, L "input_layernorm.weight", "-", i, d, 0);
    y->ffn_norm = tensor_either(f, L "post_attention_layernorm.weight", "-", i, d, 0);
    y->o = tensor_either(f, L "attention.dense.weight", "-", i, d, q);
    y->q_norm = tensor_either(f, L "attention.query_layernorm.weight", "-", i, e, 0);
    y->k_norm = tensor_either(f, L "attention.key_layernorm.weight", "-", i, e, 0);
    if (i < m->dense) {
        y->gate = tensor_either(f, L "mlp.gate_proj.weight", "-", i, m->dense_ffn, d);
        y->up = tensor_either(f, L "mlp.up_proj.weight", "-", i, m->dense_ffn, d);
        y->down = tensor_either(f, L "mlp.down_proj.weight", "-", i, d, m->dense_ffn);
        return;
    }
    y->router = tensor_either(f, L "mlp.gate.weight", "-", i, m->experts, d);
    y->bias = tensor_either(f, L "mlp.gate.expert_bias", "-", i, m->experts, 0);
    y->gate = load_experts(m, f, i, "gate_proj", m->ffn, d);
    y->up = load_experts(m, f, i, "up_proj", m->ffn, d);
    y->down = load_experts(m, f, i, "down_proj", d, m->ffn);
    for (int j = 0; m->shared && j < 3; j++) {
        char name[128];
        snprintf(name, sizeof name, L "mlp.shared_experts.%s.weight", shared[j]);
        y->shared[j] = tensor_either(f, name, "-", i, j < 2 ? m->shared : d, j < 2 ? d : m->shared);
    }
#undef L
}

static void load_layer(struct model *m, struct files *f, size_t i)
{
#define B "model.transformer.blocks.#."
#define L "model.layers.#."
    struct layer *y = &m->layer[i];
    const size_t d = m->width, q = m->heads * m->head_dim, k = m->kv_heads * m->head_dim;
    y->attn_norm = tensor_either(f, B "attn_norm.weight", L "input_layernorm.weight", i, d, 0);
    y->q = tensor_either(f, B "q_proj.weight", L "self_attn.q_proj.weight", i, q, d);
    y->k = tensor_either(f, B "k_proj.weight", L "self_attn.k_proj.weight", i, k, d);
    y->v = tensor_either(f, B "v_proj.weight", L "self_attn.v_proj.weight", i, k, d);
    y->o = tensor_either(f, B "attn_out.weight", L "self_attn.o_proj.weight", i, d, q);
    y->ffn_norm =
        tensor_either(f, B "ff_norm.weight", L "post_attention_layernorm.weight", i, d, 0);
    if (m->experts) {
        load_mixture(m, f, i);
    } else {
        y->gate = tensor_either(f, B "ff_proj.weight", L "mlp.gate_proj.weight", i, m->ffn, d);
        y->up = tensor_either(f, B "up_proj.weight", L "mlp.up_proj.weight", i, m->ffn, d);
        y->down = tensor_either(f, B "ff_out.weight", L "mlp.down_proj.weight", i, d, m->ffn);
    }
    if (m->qwen == 2) {
        y->q_bias = tensor_either(f, L "self_attn.q_proj.bias", "-", i, q, 0);
        y->k_bias = tensor_either(f, L "self_attn.k_proj.bias", "-", i, k, 0);
        y->v_bias = tensor_either(f, L "self_attn.v_proj.bias", "-", i, k, 0);
    }
    if (m->qwen == 3) {
        y->q_norm = tensor_either(f, L "self_attn.q_norm.weight", "-", i, m->head_dim, 0);
        y->k_norm = tensor_either(f, L "self_attn.k_norm.weight", "-", i, m->head_dim, 0);
    }
#undef B
#undef L
}

/* Loads all tensors of an EAGLE-3 drafter, which guesses one id after another. */
static void load_chain(struct model *m, struct files *f)
{
#define M "midlayer."
#define L "layers.0."
    struct layer *y = &m->layer[0];
    const size_t d = m->width, q = m->heads * m->head_dim, k = m->kv_heads * m->head_dim;
    m->fuse = tensor_either(f, "fc.weight", "-", 0, d, m->taps * d);
    m->fuse_norm = tensor_either(f, M "hidden_norm.weight", L "hidden_norm.weight", 0, d, 0);
    m->embed = tensor(f, "embed_tokens.weight", m->vocab, d);
    m->head = tensor_either(f, "lm_head.weight", "-", 0, m->answers, d);
    m->norm = tensor_either(f, "norm.weight", "-", 0, d, 0);
    m->more = tensor(f, "d2t", m->answers, 0);
    y->attn_norm = tensor_either(f, M "input_layernorm.weight", L "input_layernorm.weight", 0, d,
                                 0);
    y->q = tensor_either(f, M "self_attn.q_proj.weight", L "self_attn.q_proj.weight", 0, q, 2 * d);
    y->k = tensor_either(f, M "self_attn.k_proj.weight", L "self_attn.k_proj.weight", 0, k, 2 * d);
    y->v = tensor_either(f, M "self_attn.v_proj.weight", L "self_attn.v_proj.weight", 0, k, 2 * d);
    y->o = tensor_either(f, M "self_attn.o_proj.weight", L "self_attn.o_proj.weight", 0, d, q);
    y->ffn_norm = tensor_either(f, M "post_attention_layernorm.weight",
                                L "post_attention_layernorm.weight", 0, d, 0);
    y->gate = tensor_either(f, M "mlp.gate_proj.weight", L "mlp.gate_proj.weight", 0, m->ffn, d);
    y->up = tensor_either(f, M "mlp.up_proj.weight", L "mlp.up_proj.weight", 0, m->ffn, d);
    y->down = tensor_either(f, M "mlp.down_proj.weight", L "mlp.down_proj.weight", 0, d, m->ffn);
#undef M
#undef L
}

/* Loads all tensors of a model that is no EAGLE-3 drafter. */
static void load_all(struct model *m, struct files *f, int tied)
{
    if (m->taps) {
        m->fuse = tensor_either(f, "fc.weight", "-", 0, m->width, m->taps * m->width);
        m->fuse_norm = tensor_either(f, "hidden_norm.weight", "-", 0, m->width, 0);
    } else {
        m->embed = tensor_either(f, "model.transformer.wte.weight",
                                 m->groups ? "model.word_embeddings.weight"
                                           : "model.embed_tokens.weight", 0, m->vocab, m->width);
    }
    m->norm = tensor_either(f, "model.transformer.ln_f.weight", "model.norm.weight", 0, m->width,
                            0);
    m->head = tied || m->taps ? m->embed : tensor_either(f, "model.transformer.ff_out.weight",
                                              "lm_head.weight", 0, m->vocab, m->width);
    for (size_t i = 0; i < m->layers; i++)
        (m->groups ? load_grouped : load_layer)(m, f, i);
}

void model_load(struct model *m, const char *folder)
{
    struct files *f = room(1, sizeof *f);
    memset(m, 0, sizeof *m);
    const int tied = read_config(m, folder);
    f->folder = folder;
    json_t *index = read_json(folder, "model.safetensors.index.json");
    f->index = json_object_get(index, "weight_map");
    if (m->answers)
        load_chain(m, f);
    else
        load_all(m, f, tied);
    for (size_t i = 0; i < f->count; i++) {
        free(f->shard[i].bytes);
        json_decref(f->shard[i].header);
    }
    json_decref(index);
    free(f);
}

void model_free(struct model *m)
{
    for (size_t i = 0; i < m->layers; i++) {
        struct layer *y = &m->layer[i];
        double *const all[] = {y->attn_norm, y->q,      y->k,      y->v,      y->o,
                               y->ffn_norm,  y->gate,   y->up,     y->down,   y->q_bias,
                               y->k_bias,    y->v_bias, y->q_norm, y->k_norm, y->router,
                               y->shared[0], y->shared[1], y->shared[2], y->bias};
        for (size_t j = 0; j < sizeof all / sizeof *all; j++)
            free(all[j]);
    }
    if (m->head != m->embed) free(m->head);
    free(m->embed);
    free(m->norm);
    free(m->fuse);
    free(m->fuse_norm);
    free(m->more);
    free(m->layer);
    free(m->frequency);
}

/* ---- the forward pass ---- */

/* y[n][rows] = x[n][cols] w[rows][cols]^T */
static void product(const double *x, const double *w, size_t n, size_t rows, size_t cols, double *y)
{
    for (size_t t = 0; t < n; t++)
        for (size_t r = 0; r < rows; r++) {
            double sum = 0;
            for (size_t c = 0; c < cols; c++)
                sum += x[t * cols + c] * w[r * cols + c];
            y[t * rows + r] = sum;
        }
}

/* Normalizes n rows of `width` values each; y may be x. */
static void normalize_rows(const double *x, const double *weight, size_t n, size_t width,
                           double eps, double *y)
{
    for (size_t t = 0; t < n; t++) {
        double sum = 0;
        for (size_t i = 0; i < width; i++)
            sum += x[t * width + i] * x[t * width + i];
        const double scale = 1 / sqrt(sum / (double)width + eps);
        for (size_t i = 0; i < width; i++)
            y[t * width + i] = x[t * width + i] * scale * weight[i];
    }
}

static void normalize(const struct model *m, const double *x, const double *weight, size_t n,
                      double *y)
{
    normalize_rows(x, weight, n, m->width, m->eps, y);
}

/* Applies bias and norm to a projection to `heads` heads, before the rotation. */
static void finish_heads(const struct model *m, double *x, const double *bias, const double *norm,
                         size_t n, size_t heads)
{
    const size_t width = heads * m->head_dim;
    for (size_t i = 0; bias && i < n * width; i++)
        x[i] += bias[i % width];
    if (norm) normalize_rows(x, norm, n * heads, m->head_dim, m->eps, x);
}

static void rotate(const struct model *m, double *x, size_t n, size_t heads)
{
    const size_t half = m->rotated / 2;
    for (size_t t = 0; t < n; t++)
        for (size_t h = 0; h < heads; h++) {
            double *v = x + (t * heads + h) * m->head_dim;
            for (size_t j = 0; j < half; j++) {
                const double a = (double)t * m->frequency[j];
                const double p = m->turned * v[j], q = m->turned * v[j + half];
                v[j] = p * cos(a) - q * sin(a);
                v[j + half] = q * cos(a) + p * sin(a);
            }
        }
}

/* The number of keys that row t sees. */
static size_t seen_from(const struct model *m, size_t t, size_t n)
{
    if (m->sees == SEES_BEFORE) return t + 1;
    if (m->sees == SEES_ALL) return n;
    if (m->sees == SEES_OPEN) return t < m->open ? t + 1 : n;
    if (t < m->joined) return m->joined;
    const size_t end = ((t + m->offset) / m->block + 1) * m->block - m->offset;
    return end < n ? end : n;
}

/* Computes attention. map: NULL, or [n][n], to which `share` times the mean of the heads' weights
 * is added. */
static void attend(const struct model *m, const double *q, const double *k, const double *v,
                   size_t n, double *map, double share, double *out)
{
    const size_t e = m->head_dim, group = m->heads / m->kv_heads;
    double *weight = room(n, sizeof *weight);
    for (size_t t = 0; t < n; t++)
        for (size_t h = 0; h < m->heads; h++) {
            const size_t seen = seen_from(m, t, n);
            const size_t first = m->window && seen > m->window ? seen - m->window : 0;
            double top = -INFINITY, total = 0;
            for (size_t s = first; s < seen; s++) {
                double dot = 0;
                for (size_t i = 0; i < e; i++)
                    dot += q[(t * m->heads + h) * e + i] * k[(s * m->kv_heads + h / group) * e + i];
                weight[s] = dot / sqrt((double)e);
                if (weight[s] > top) top = weight[s];
            }
            for (size_t s = first; s < seen; s++)
                total += weight[s] = exp(weight[s] - top);
            for (size_t s = first; s < seen && map; s++)
                map[t * n + s] += share * weight[s] / total / (double)m->heads;
            for (size_t i = 0; i < e; i++) {
                double sum = 0;
                for (size_t s = first; s < seen; s++)
                    sum += weight[s] / total * v[(s * m->kv_heads + h / group) * e + i];
                out[(t * m->heads + h) * e + i] = sum;
            }
        }
    free(weight);
}

static void add(double *x, const double *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] += y[i];
}

/* Adds to x[d] the feed-forward of one row h[d]: share w[2] (silu(w[0] h) * w[1] h). */
static void feed(const double *const w[3], size_t f, size_t d, double share, const double *h,
                 double *x)
{
    double *gate = room(f, sizeof *gate), *up = room(f, sizeof *up), *out = room(d, sizeof *out);
    product(h, w[0], 1, f, d, gate);
    product(h, w[1], 1, f, d, up);
    for (size_t i = 0; i < f; i++)
        gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
    product(gate, w[2], 1, d, f, out);
    for (size_t i = 0; i < d; i++)
        x[i] += share * out[i];
    free(gate);
    free(up);
    free(out);
}

/* feed() with the matrices of expert e. */
static void feed_expert(const struct model *m, const struct layer *y, size_t e, double share,
                        const double *h, double *x)
{
    const size_t at = e * m->ffn * m->width;
    const double *const w[3] = {y->gate + at, y->up + at, y->down + at};
    feed(w, m->ffn, m->width, share, h, x);
}

/* Returns 1 if fewer than `count` of the n values rank before value i: larger values, and equal
 * values with a lower index. */
static int is_taken(const double *v, size_t n, size_t i, size_t count)
{
    size_t before = 0;
    for (size_t o = 0; o < n; o++)
        before += v[o] > v[i] || (v[o] == v[i] && o < i);
    return before < count;
}

/* Notes how far the `count` largest values lead over the next. */
static void note_lead(const struct model *m, const double *v, size_t n, size_t count)
{
    double least = INFINITY, next = -INFINITY;
    for (size_t i = 0; i < n; i++)
        if (is_taken(v, n, i, count))
            least = v[i] < least ? v[i] : least;
        else
            next = v[i] > next ? v[i] : next;
    if (m->router_gap && least - next < *m->router_gap) *m->router_gap = least - next;
}

/* Adds to x the experts that a router in groups chooses for a row, and the shared expert. */
static void grouped(const struct model *m, const struct layer *y, const double *h, double *x)
{
    const double *const shared[3] = {y->shared[0], y->shared[1], y->shared[2]};
    const size_t n = m->experts, each = n / m->groups;
    double *s = room(n, sizeof *s), *v = room(n, sizeof *v), sum = 0;
    double *score = room(m->groups, sizeof *score);
    product(h, y->router, 1, n, m->width, s);
    for (size_t e = 0; e < n; e++) {
        s[e] = 1 / (1 + exp(-s[e]));
        v[e] = s[e] + y->bias[e];
    }
    for (size_t e = 0; e < n; e++)
        if (is_taken(v + e / each * each, each, e % each, 2)) score[e / each] += v[e];
    for (size_t e = 0; e < n; e++)
        if (!is_taken(score, m->groups, e / each, m->groups_used)) v[e] = -INFINITY;
    note_lead(m, score, m->groups, m->groups_used);
    note_lead(m, v, n, m->used);
    for (size_t e = 0; e < n; e++)
        sum += is_taken(v, n, e, m->used) ? s[e] : 0;
    if (m->used == 1) sum = 1;
    for (size_t e = 0; e < n; e++)
        if (is_taken(v, n, e, m->used)) feed_expert(m, y, e, m->scale * s[e] / sum, h, x);
    if (m->shared) feed(shared, m->shared, m->width, 1, h, x);
    free(s);
    free(v);
    free(score);
}

/* Adds to x the experts of a row that fewer than `used` others exceed, and the shared expert. */
static void mixture(const struct model *m, const struct layer *y, const double *h, double *x)
{
    const double *const shared[3] = {y->shared[0], y->shared[1], y->shared[2]};
    double *logit = room(m->experts, sizeof *logit), sum = 0;
    product(h, y->router, 1, m->experts, m->width, logit);
    for (size_t e = 0; e < m->experts; e++)
        sum += exp(logit[e]);
    for (size_t e = 0; e < m->experts; e++) {
        size_t before = 0;
        for (size_t o = 0; o < m->experts; o++)
            before += logit[o] > logit[e] || (logit[o] == logit[e] && o < e);
        if (before < m->used) feed_expert(m, y, e, exp(logit[e]) / sum, h, x);
    }
    if (m->shared) feed(shared, m->shared, m->width, 1, h, x);
    free(logit);
}

static void block(const struct model *m, const struct layer *y, double *x, size_t n)
{
    const size_t d = m->width, wq = m->heads * m->head_dim, wk = m->kv_heads * m->head_dim;
    double *h = room(n * d, sizeof *h), *q = room(n * wq, sizeof *q);
    double *k = room(n * wk, sizeof *k), *v = room(n * wk, sizeof *v);
    double *mix = room(n * wq, sizeof *mix);
    normalize(m, x, y->attn_norm, n, h);
    product(h, y->q, n, wq, d, q);
    product(h, y->k, n, wk, d, k);
    product(h, y->v, n, wk, d, v);
    finish_heads(m, q, y->q_bias, y->q_norm, n, m->heads);
    finish_heads(m, k, y->k_bias, y->k_norm, n, m->kv_heads);
    finish_heads(m, v, y->v_bias, NULL, n, m->kv_heads);
    if (!y->unrotated) {
        rotate(m, q, n, m->heads);
        rotate(m, k, n, m->kv_heads);
    }
    const size_t left = m->layers - (size_t)(y - m->layer), some = m->layers < 4 ? m->layers : 4;
    attend(m, q, k, v, n, left <= some ? m->map : NULL, 1 / (double)some, mix);
    product(mix, y->o, n, d, wq, h);
    add(x, h, n * d);
    normalize(m, x, y->ffn_norm, n, h);
    const double *const one[3] = {y->gate, y->up, y->down};
    for (size_t t = 0; t < n; t++)
        if (y->router)
            (y->bias ? grouped : mixture)(m, y, h + t * d, x + t * d);
        else
            feed(one, m->experts ? m->dense_ffn : m->ffn, d, 1, h + t * d, x + t * d);
    double *const work[] = {h, q, k, v, mix};
    for (size_t i = 0; i < sizeof work / sizeof *work; i++)
        free(work[i]);
}

void model_logits(const struct model *m, const long *ids, size_t n, double *logits)
{
    const size_t d = m->width;
    double *x = room(n * d, sizeof *x), *h = room(n * d, sizeof *h);
    for (size_t t = 0; t < n; t++) {
        if (ids[t] < 0 || (size_t)ids[t] >= m->vocab) fail("id %ld of %zu", ids[t], m->vocab);
        memcpy(x + t * d, m->embed + (size_t)ids[t] * d, d * sizeof *x);
    }
    for (size_t i = 0; i < m->layers; i++) {
        block(m, &m->layer[i], x, n);
        if (m->heard) memcpy(m->heard + i * n * d, x, n * d * sizeof *x);
    }
    normalize(m, x, m->norm, n, h);
    product(h, m->head, n, m->vocab, d, logits);
    free(x);
    free(h);
}

/* Computes layer y of a DFlash drafter: x[rows] after context[n], which no layer changes. */
static void draft_block(const struct model *m, const struct layer *y, const double *context,
                        size_t n, double *x, size_t rows)
{
    const size_t d = m->width, all = n + rows;
    const size_t wq = m->heads * m->head_dim, wk = m->kv_heads * m->head_dim;
    double *h = room(all * d, sizeof *h), *q = room(all * wq, sizeof *q);
    double *k = room(all * wk, sizeof *k), *v = room(all * wk, sizeof *v);
    double *mix = room(all * wq, sizeof *mix);
    memcpy(h, context, n * d * sizeof *h);
    normalize(m, x, y->attn_norm, rows, h + n * d);
    product(h, y->q, all, wq, d, q);
    product(h, y->k, all, wk, d, k);
    product(h, y->v, all, wk, d, v);
    finish_heads(m, q, NULL, y->q_norm, all, m->heads);
    finish_heads(m, k, NULL, y->k_norm, all, m->kv_heads);
    rotate(m, q, all, m->heads);
    rotate(m, k, all, m->kv_heads);
    attend(m, q, k, v, all, NULL, 1, mix);
    product(mix + n * wq, y->o, rows, d, wq, h);
    add(x, h, rows * d);
    normalize(m, x, y->ffn_norm, rows, h);
    const double *const one[3] = {y->gate, y->up, y->down};
    for (size_t t = 0; t < rows; t++)
        feed(one, m->ffn, d, 1, h + t * d, x + t * d);
    double *const work[] = {h, q, k, v, mix};
    for (size_t i = 0; i < sizeof work / sizeof *work; i++)
        free(work[i]);
}

void model_draft(const struct model *m, const struct model *target, const double *heard, size_t n,
                 const long *ids, size_t rows, double *logits)
{
    const size_t d = m->width;
    double *both = room(n * m->taps * d, sizeof *both), *context = room(n * d, sizeof *context);
    double *x = room(rows * d, sizeof *x), *h = room(rows * d, sizeof *h);
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < m->taps; i++)
            memcpy(both + (t * m->taps + i) * d, heard + (m->tap[i] * n + t) * d, d * sizeof *x);
    product(both, m->fuse, n, d, m->taps * d, context);
    normalize(m, context, m->fuse_norm, n, context);
    for (size_t t = 0; t < rows; t++)
        memcpy(x + t * d, target->embed + (size_t)ids[t] * d, d * sizeof *x);
    for (size_t i = 0; i < m->layers; i++)
        draft_block(m, &m->layer[i], context, n, x, rows);
    normalize(m, x, m->norm, rows, h);
    product(h, target->head, rows, m->vocab, d, logits);
    free(both);
    free(context);
    free(x);
    free(h);
}

/* Computes x[n], the layer of an EAGLE-3 drafter for states[n] and ids[n]. */
static void chain_block(const struct model *m, const double *embed, const double *states, size_t n,
                        const long *ids, double *x)
{
    const struct layer *y = &m->layer[0];
    const size_t d = m->width, wq = m->heads * m->head_dim, wk = m->kv_heads * m->head_dim;
    double *both = room(2 * n * d, sizeof *both), *h = room(n * d, sizeof *h);
    double *q = room(n * wq, sizeof *q), *k = room(n * wk, sizeof *k);
    double *v = room(n * wk, sizeof *v), *mix = room(n * wq, sizeof *mix);
    for (size_t t = 0; t < n; t++) {
        normalize(m, embed + (size_t)ids[t] * d, y->attn_norm, 1, both + 2 * t * d);
        normalize(m, states + t * d, m->fuse_norm, 1, both + (2 * t + 1) * d);
    }
    product(both, y->q, n, wq, 2 * d, q);
    product(both, y->k, n, wk, 2 * d, k);
    product(both, y->v, n, wk, 2 * d, v);
    rotate(m, q, n, m->heads);
    rotate(m, k, n, m->kv_heads);
    attend(m, q, k, v, n, NULL, 1, mix);
    product(mix, y->o, n, d, wq, x);
    add(x, states, n * d);
    normalize(m, x, y->ffn_norm, n, h);
    const double *const one[3] = {y->gate, y->up, y->down};
    for (size_t t = 0; t < n; t++)
        feed(one, m->ffn, d, 1, h + t * d, x + t * d);
    double *const work[] = {both, h, q, k, v, mix};
    for (size_t i = 0; i < sizeof work / sizeof *work; i++)
        free(work[i]);
}

/* Row t has the id at position t + 1 and the streams at position t. */
double model_chain(const struct model *m, const struct model *target, const double *heard, size_t n,
                   const long *ids, size_t most, long *guess)
{
    const size_t d = m->width, all = n + most, L = target->layers;
    const size_t before[3] = {2, L / 2, L - 3}; /* the drafter reads the inputs of these layers */
    double *both = room(3 * n * d, sizeof *both), *states = room(all * d, sizeof *states);
    double *x = room(all * d, sizeof *x), *h = room(d, sizeof *h), least = INFINITY;
    double *logits = room(m->answers, sizeof *logits);
    long *id = room(all, sizeof *id);
    memcpy(id, ids + 1, n * sizeof *id);
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < 3; i++)
            memcpy(both + (3 * t + i) * d, heard + ((before[i] - 1) * n + t) * d, d * sizeof *x);
    product(both, m->fuse, n, d, 3 * d, states);
    for (size_t i = 0; i < most; i++) {
        size_t best = 0;
        double second = -INFINITY;
        chain_block(m, m->embed ? m->embed : target->embed, states, n + i, id, x);
        normalize(m, x + (n + i - 1) * d, m->norm, 1, h);
        product(h, m->head, 1, m->answers, d, logits);
        for (size_t r = 1; r < m->answers; r++)
            if (logits[r] > logits[best]) {
                second = logits[best];
                best = r;
            } else if (logits[r] > second) {
                second = logits[r];
            }
        least = logits[best] - second < least ? logits[best] - second : least;
        id[n + i] = guess[i] = (long)best + (m->more ? (long)m->more[best] : 0);
        memcpy(states + (n + i) * d, x + (n + i - 1) * d, d * sizeof *x);
    }
    free(both);
    free(states);
    free(x);
    free(h);
    free(logits);
    free(id);
    return least;
}

double model_nll(const double *logits, size_t n, size_t id)
{
    double top = logits[0], sum = 0;
    for (size_t i = 1; i < n; i++)
        if (logits[i] > top) top = logits[i];
    for (size_t i = 0; i < n; i++)
        sum += exp(logits[i] - top);
    return top + log(sum) - logits[id];
}
