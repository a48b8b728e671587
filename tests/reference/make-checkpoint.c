/* make-checkpoint - writes a tiny checkpoint folder: random weights in the Hugging Face layout of a
 * family (--arch, see `kinds`), with a byte-level tokenizer. It shares no code with the engine.
 *
 * Every matrix is normal with deviation gain / sqrt(columns); a gain above 1 makes decisions clear
 * (logits a few units apart). --values gives tensors their numbers by name, for hand-made cases.
 *
 * One file because each family is a few lines in each part: kinds, tensors, config.json. */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BOS = 256, EOS, MASK, EOT, PIECES };

/* A family: its name, the base family whose file and tensors it shares, and its differences. */
struct kind {
    const char *arch, *base, *class, *type, *mask; /* mask: its token in tokenizer.json */
};
static const struct kind kinds[] = {
    {"llama", "llama", "LlamaForCausalLM", "llama", "<|reserved|>"},
    {"llada", "llada", "LLaDAModelLM", "llada", "<|mdm_mask|>"},
    {"qwen2", "qwen2", "Qwen2ForCausalLM", "qwen2", "<|im_start|>"},
    {"qwen3", "qwen3", "Qwen3ForCausalLM", "qwen3", "<|im_start|>"},
    {"illada", "llama", "ILLaDAForCausalLM", "illada", "<[MASK]>"},
    {"a2d-llama", "llama", "A2DLlamaLMHeadModel", "a2d-llama", "<|mask|>"},
    {"a2d-qwen2", "qwen2", "A2DQwen2LMHeadModel", "a2d-qwen2", "<|mask|>"},
    {"a2d-qwen3", "qwen3", "A2DQwen3LMHeadModel", "a2d-qwen3", "<|mask|>"},
    {"sdar", "qwen3", "SDARForCausalLM", "sdar", "<|MASK|>"},
    {"stable-diffcoder", "llama", "StableDiffcoderForCausalLM", "llama", "<[MASK_TOKEN]>"},
    {"dream", "qwen2", "DreamModel", "Dream", "<|mask|>"},
    {"fast-dllm", "qwen2", "Fast_dLLM_QwenForCausalLM", "Fast_dLLM_Qwen", "|<MASK>|"},
    {"mistral", "llama", "MistralForCausalLM", "mistral", "<|reserved|>"},
    {"ministral3", "llama", "Ministral3ForCausalLM", "ministral3", "<|reserved|>"},
    {"smollm3", "llama", "SmolLM3ForCausalLM", "smollm3", "<|reserved|>"},
    {"llada-moe", "mixture", "LLaDAMoEModelLM", "llada", "<|mask|>"},
    {"nemotron", "llama", "NemotronLabsDiffusionModel", "nemotron_labs_diffusion", "<SPECIAL_100>"},
    {"llada2", "grouped", "LLaDA2MoeModelLM", "llada2_moe", "<|mask|>"},
    {"dflash", "qwen3", "DFlashDraftModel", "qwen3", "<|im_start|>"},
    {"eagle3", "llama", "LlamaForCausalLMEagle3", "llama", "<|reserved|>"},
    {"ling", "grouped", "BailingMoeV2ForCausalLM", "bailing_moe_v2", "<|reserved|>"},
};

struct options {
    const struct kind *kind;
    const char *arch, *dtype, *values, *folder, *taps;
    long width, layers, heads, kv_heads, head_dim, ffn, vocab, shards, context;
    long experts, used, shared, dense, groups, groups_used, rotated, answers;
    int embeds, tied, hf_names, rope_llama3, rope_parameters;
    double theta, factor, low, high, gain, eps;
    long original;
    uint64_t seed;
};

struct tensor {
    char name[96];
    size_t rows, cols; /* cols = 0: one dimension */
    const char *dtype; /* "I64" or "BOOL"; NULL: the dtype of the options */
    double *v;
};

struct list {
    struct tensor t[512];
    size_t n;
};

static _Noreturn void stop(const char *what, const char *which)
{
    fprintf(stderr, "make-checkpoint: %s: %s\n", what, which);
    exit(64);
}

static FILE *create(const char *folder, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    if (!f) stop("cannot create", path);
    return f;
}

static void write_json(const char *folder, const char *name, json_t *j)
{
    FILE *f = create(folder, name);
    if (!j || json_dumpf(j, f, JSON_INDENT(1)) || fclose(f)) stop("cannot write", name);
    json_decref(j);
}

/* ---- numbers ---- */

static uint64_t random_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double normal(uint64_t *state)
{
    const double u = (double)(random_bits(state) >> 11) * 0x1p-53;
    const double v = (double)(random_bits(state) >> 11) * 0x1p-53;
    return sqrt(-2 * log(1 - u)) * cos(2 * acos(-1) * v);
}

/* Rounds to an IEEE half, to the nearest even. */
static unsigned half_bits(double v)
{
    const unsigned sign = signbit(v) ? 0x8000u : 0;
    int e = v == 0 ? -14 : ilogb(v);
    if (e < -14) e = -14;
    double q = nearbyint(fabs(v) * ldexp(1, 10 - e)); /* 1024..2048, less when subnormal */
    if (q >= 2048) {
        q /= 2;
        e++;
    }
    return sign | (q < 1024 ? (unsigned)q : (unsigned)(e + 15) << 10 | ((unsigned)q - 1024));
}

static size_t size_of(const char *dtype)
{
    return !strcmp(dtype, "I64") ? 8 : !strcmp(dtype, "F32") ? 4 : strcmp(dtype, "BOOL") ? 2 : 1;
}

static void write_value(FILE *f, const char *dtype, double v)
{
    const float x = (float)v;
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    uint64_t bits = word;
    if (!strcmp(dtype, "F16"))
        bits = half_bits(v);
    else if (!strcmp(dtype, "BF16"))
        bits = (word + 0x7fff + (word >> 16 & 1)) >> 16;
    else if (strcmp(dtype, "F32"))
        bits = (uint64_t)(int64_t)v;
    for (size_t i = 0; i < size_of(dtype); i++)
        putc((int)(bits >> 8 * i & 255), f);
}

/* ---- tensors ---- */

static void add(struct list *l, const struct options *o, const char *name, long rows, long cols,
                const json_t *values)
{
    struct tensor *t = &l->t[l->n++];
    const size_t count = (size_t)(rows * (cols ? cols : 1));
    snprintf(t->name, sizeof t->name, "%s", name);
    t->rows = (size_t)rows;
    t->cols = (size_t)cols;
    t->v = calloc(count, sizeof *t->v);
    if (!t->v) stop("no memory", name);
    uint64_t state = o->seed * 1000003;
    for (const char *p = name; *p; p++)
        state = (state ^ (unsigned char)*p) * 0x100000001b3u;
    if (!strcmp(o->kind->arch, "nemotron")) /* its random values come from the usual name */
        snprintf(t->name, sizeof t->name, "%s",
                 !strcmp(name, "lm_head.weight") ? "diffusion_head.weight" : name);
    if (!strcmp(o->kind->arch, "nemotron") && !strncmp(name, "model.", 6))
        snprintf(t->name, sizeof t->name, "encoder.%s", name + 6);
    const json_t *given = json_object_get(values, name);
    if (given && json_array_size(given) != count) stop("--values: wrong number of values", name);
    const int embedding = strstr(name, "wte") || strstr(name, "embed");
    for (size_t i = 0; i < count; i++)
        t->v[i] = given  ? json_number_value(json_array_get(given, i))
                  : strstr(name, ".bias") ? normal(&state)
                  : strstr(name, "expert_bias") ? 0.2 * normal(&state)
                  : !cols ? 1 + 0.1 * normal(&state)
                          : normal(&state) * (embedding ? 1 : o->gain / sqrt((double)cols));
}

/* Adds the router and the experts of layer i. */
static void add_mixture(struct list *l, const struct options *o, long i, const json_t *values)
{
    static const char *const parts[] = {"gate_proj", "up_proj", "down_proj"};
    char name[96];
    snprintf(name, sizeof name, "model.layers.%ld.mlp.gate.weight", i);
    add(l, o, name, o->experts, o->width, values);
    for (long e = 0; e < o->experts; e++)
        for (int j = 0; j < 3; j++) {
            snprintf(name, sizeof name, "model.layers.%ld.mlp.experts.%ld.%s.weight", i, e,
                     parts[j]);
            add(l, o, name, j < 2 ? o->ffn : o->width, j < 2 ? o->width : o->ffn, values);
        }
    for (int j = 0; o->shared && j < 3; j++) {
        snprintf(name, sizeof name, "model.layers.%ld.shared_expert.%s.weight", i, parts[j]);
        add(l, o, name, j < 2 ? o->shared : o->width, j < 2 ? o->width : o->shared, values);
    }
}

/* Adds gate, up and down, of f hidden values. */
static void add_feed(struct list *l, const struct options *o, const char *prefix, long f,
                     const json_t *values)
{
    static const char *const parts[] = {"gate_proj", "up_proj", "down_proj"};
    char name[96];
    for (int j = 0; j < 3; j++) {
        snprintf(name, sizeof name, "%.70s.%s.weight", prefix, parts[j]);
        add(l, o, name, j < 2 ? f : o->width, j < 2 ? o->width : f, values);
    }
}

/* Adds layer i of LLaDA2 and Ling. */
static void add_grouped(struct list *l, const struct options *o, long i, const json_t *values)
{
    const long d = o->width, e = o->head_dim, q = e * o->heads, qkv = q + 2 * e * o->kv_heads;
    const struct {
        const char *name;
        long rows, cols;
    } parts[] = {{"input_layernorm.weight", d, 0}, {"attention.query_key_value.weight", qkv, d},
                 {"attention.dense.weight", d, q}, {"attention.query_layernorm.weight", e, 0},
                 {"attention.key_layernorm.weight", e, 0},
                 {"post_attention_layernorm.weight", d, 0},
                 {"mlp.gate.weight", o->experts, d}, {"mlp.gate.expert_bias", o->experts, 0}};
    char name[96];
    for (int j = 0; j < (i < o->dense ? 6 : 8); j++) {
        snprintf(name, sizeof name, "model.layers.%ld.%s", i, parts[j].name);
        add(l, o, name, parts[j].rows, parts[j].cols, values);
    }
    snprintf(name, sizeof name, "model.layers.%ld.mlp", i);
    if (i < o->dense) {
        add_feed(l, o, name, 2 * o->ffn, values);
        return;
    }
    for (long x = 0; x < o->experts; x++) {
        snprintf(name, sizeof name, "model.layers.%ld.mlp.experts.%ld", i, x);
        add_feed(l, o, name, o->ffn, values);
    }
    snprintf(name, sizeof name, "model.layers.%ld.mlp.shared_experts", i);
    if (o->shared) add_feed(l, o, name, o->shared * o->ffn, values);
}

static void add_layer(struct list *l, const struct options *o, int llada, long i,
                      const json_t *values)
{
    static const char *const names[2][9] = {
        {"input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
         "self_attn.o_proj", "post_attention_layernorm", "mlp.gate_proj", "mlp.up_proj",
         "mlp.down_proj"},
        {"attn_norm", "q_proj", "k_proj", "v_proj", "attn_out", "ff_norm", "ff_proj", "up_proj",
         "ff_out"}};
    const long d = o->width, e = o->head_dim, q = e * o->heads, k = e * o->kv_heads;
    const long shape[9][2] = {{d, 0}, {q, d}, {k, d}, {k, d}, {d, q}, {d, 0}, {o->ffn, d},
                              {o->ffn, d}, {d, o->ffn}};
    const int mixture = !strcmp(o->arch, "mixture");
    if (!strcmp(o->arch, "grouped")) {
        add_grouped(l, o, i, values);
        return;
    }
    if (mixture) add_mixture(l, o, i, values);
    for (int j = 0; j < (mixture ? 6 : 9); j++) {
        char name[96];
        snprintf(name, sizeof name, "model.%s.%ld.%s.weight",
                 llada ? "transformer.blocks" : "layers", i, names[llada][j]);
        add(l, o, name, shape[j][0], shape[j][1], values);
    }
    static const char *const more[2][3] = {{"q_proj.bias", "k_proj.bias", "v_proj.bias"},
                                           {"q_norm.weight", "k_norm.weight", NULL}};
    const long sizes[2][3] = {{q, k, k}, {e, e, 0}};
    const int which = !strcmp(o->arch, "qwen2") ? 0 : !strcmp(o->arch, "qwen3") || mixture ? 1 : -1;
    for (int j = 0; which >= 0 && j < 3 && more[which][j]; j++) {
        char name[96];
        snprintf(name, sizeof name, "model.layers.%ld.self_attn.%s", i, more[which][j]);
        add(l, o, name, sizes[which][j], 0, values);
    }
}

static int is_drafter(const struct options *o)
{
    return !strcmp(o->kind->arch, "dflash");
}

static long count_taps(const struct options *o)
{
    long n = 1;
    for (const char *p = o->taps; *p; p++)
        n += *p == ',';
    return n;
}

/* Makes a DFlash drafter. It has no embedding and no head, and names without "model.". */
static void make_drafter(struct list *l, const struct options *o, const json_t *values)
{
    add(l, o, "fc.weight", o->width, count_taps(o) * o->width, values);
    add(l, o, "hidden_norm.weight", o->width, 0, values);
    for (long i = 0; i < o->layers; i++)
        add_layer(l, o, 0, i, values);
    add(l, o, "model.norm.weight", o->width, 0, values);
    for (size_t i = 0; i < l->n; i++)
        if (!strncmp(l->t[i].name, "model.", 6))
            memmove(l->t[i].name, l->t[i].name + 6, strlen(l->t[i].name) - 5);
}

/* Adds whole numbers (d2t, t2d): how far the id of a row of the head is from the row, or which ids
 * have a row. Ids are spread unevenly. */
static void add_whole(struct list *l, const struct options *o, const char *name)
{
    struct tensor *t = &l->t[l->n];
    const int has = !strcmp(name, "t2d");
    add(l, o, name, has ? o->vocab : o->answers, 0, NULL);
    t->dtype = has ? "BOOL" : "I64";
    for (size_t i = 0; i < t->rows; i++)
        t->v[i] = 0;
    for (long r = 0, id; r < o->answers; r++) {
        id = r + (o->vocab - o->answers) * r * r / (o->answers * o->answers);
        t->v[has ? id : r] = has ? 1 : (double)(id - r);
    }
}

/* Makes an EAGLE-3 drafter, which guesses one id after another. */
static void make_chain(struct list *l, const struct options *o, const json_t *values)
{
    const long d = o->width, q = o->head_dim * o->heads, k = o->head_dim * o->kv_heads;
    add(l, o, "fc.weight", d, 3 * d, values);
    add(l, o, "midlayer.hidden_norm.weight", d, 0, values);
    add(l, o, "midlayer.input_layernorm.weight", d, 0, values);
    add(l, o, "midlayer.self_attn.q_proj.weight", q, 2 * d, values);
    add(l, o, "midlayer.self_attn.k_proj.weight", k, 2 * d, values);
    add(l, o, "midlayer.self_attn.v_proj.weight", k, 2 * d, values);
    add(l, o, "midlayer.self_attn.o_proj.weight", d, q, values);
    add(l, o, "midlayer.post_attention_layernorm.weight", d, 0, values);
    add_feed(l, o, "midlayer.mlp", o->ffn, values);
    add(l, o, "norm.weight", d, 0, values);
    add(l, o, "lm_head.weight", o->answers, d, values);
    if (o->embeds) add(l, o, "embed_tokens.weight", o->vocab, d, values);
    if (o->answers == o->vocab && o->embeds) return; /* every id has its row: no list is needed */
    add_whole(l, o, "d2t");
    add_whole(l, o, "t2d");
}

static void make_tensors(struct list *l, const struct options *o, const json_t *values)
{
    if (!strcmp(o->kind->arch, "eagle3")) {
        make_chain(l, o, values);
        return;
    }
    if (is_drafter(o)) {
        make_drafter(l, o, values);
        return;
    }
    const int llada = !strcmp(o->arch, "llada") && !o->hf_names;
    const char *embed = !strcmp(o->arch, "grouped") ? "model.word_embeddings.weight"
                        : llada                     ? "model.transformer.wte.weight"
                                                    : "model.embed_tokens.weight";
    add(l, o, embed, o->vocab, o->width, values);
    for (long i = 0; i < o->layers; i++)
        add_layer(l, o, llada, i, values);
    add(l, o, llada ? "model.transformer.ln_f.weight" : "model.norm.weight", o->width, 0, values);
    if (!o->tied)
        add(l, o, llada ? "model.transformer.ff_out.weight" : "lm_head.weight", o->vocab, o->width,
            values);
}

static const char *dtype_of(const struct tensor *t, const struct options *o)
{
    return t->dtype ? t->dtype : o->dtype;
}

/* Writes the tensors first, first + step, ... of the list to one file. */
static size_t write_shard(const struct list *l, const struct options *o, const char *name,
                          size_t first, size_t step)
{
    json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    size_t at = 0;
    for (size_t i = first; i < l->n; i += step) {
        const struct tensor *t = &l->t[i];
        const size_t bytes = t->rows * (t->cols ? t->cols : 1) * size_of(dtype_of(t, o));
        json_t *shape = json_pack("[I]", (json_int_t)t->rows);
        if (t->cols) json_array_append_new(shape, json_integer((json_int_t)t->cols));
        json_object_set_new(header, t->name,
                            json_pack("{s:s,s:o,s:[I,I]}", "dtype", dtype_of(t, o), "shape", shape,
                                      "data_offsets", (json_int_t)at, (json_int_t)(at + bytes)));
        at += bytes;
    }
    char *text = json_dumps(header, JSON_COMPACT);
    const size_t length = strlen(text), padded = (length + 7) / 8 * 8;
    FILE *f = create(o->folder, name);
    for (int i = 0; i < 8; i++)
        putc((int)(padded >> 8 * i & 255), f);
    fprintf(f, "%s%*s", text, (int)(padded - length), "");
    for (size_t i = first; i < l->n; i += step)
        for (size_t j = 0; j < l->t[i].rows * (l->t[i].cols ? l->t[i].cols : 1); j++)
            write_value(f, dtype_of(&l->t[i], o), l->t[i].v[j]);
    if (fclose(f)) stop("cannot write", name);
    free(text);
    json_decref(header);
    return at;
}

static void write_tensors(const struct list *l, const struct options *o)
{
    if (o->shards == 1) {
        write_shard(l, o, "model.safetensors", 0, 1);
        return;
    }
    json_t *map = json_object();
    size_t total = 0;
    for (long s = 0; s < o->shards; s++) {
        char name[64];
        snprintf(name, sizeof name, "model-%05ld-of-%05ld.safetensors", s + 1, o->shards);
        total += write_shard(l, o, name, (size_t)s, (size_t)o->shards);
        for (size_t i = (size_t)s; i < l->n; i += (size_t)o->shards)
            json_object_set_new(map, l->t[i].name, json_string(name));
    }
    write_json(o->folder, "model.safetensors.index.json",
               json_pack("{s:{s:I},s:o}", "metadata", "total_size", (json_int_t)total, "weight_map",
                         map));
}

/* ---- config.json, generation_config.json ---- */

static const char *torch_dtype(const struct options *o)
{
    return !strcmp(o->dtype, "F32") ? "float32" : !strcmp(o->dtype, "F16") ? "float16" : "bfloat16";
}

static json_t *llama_config(const struct options *o)
{
    json_t *c = json_pack(
        "{s:[s],s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:s,s:f,s:b,s:b,s:b,s:i,s:i,s:s,s:f}",
        "architectures", "LlamaForCausalLM", "model_type", "llama", "hidden_size", (int)o->width,
        "intermediate_size", (int)o->ffn, "num_hidden_layers", (int)o->layers,
        "num_attention_heads", (int)o->heads, "num_key_value_heads", (int)o->kv_heads, "vocab_size",
        (int)o->vocab, "max_position_embeddings", (int)o->context, "hidden_act", "silu",
        "rms_norm_eps", o->eps, "tie_word_embeddings", o->tied, "attention_bias", 0, "mlp_bias", 0,
        "bos_token_id", BOS, "eos_token_id", EOS, "torch_dtype", torch_dtype(o),
        "initializer_range", 0.02);
    json_t *rope = o->rope_llama3
                       ? json_pack("{s:s,s:f,s:f,s:f,s:i}", "rope_type", "llama3", "factor",
                                   o->factor, "low_freq_factor", o->low, "high_freq_factor",
                                   o->high, "original_max_position_embeddings", (int)o->original)
                       : json_null();
    if (o->rope_parameters) {
        if (json_is_null(rope)) rope = json_pack("{s:s}", "rope_type", "default");
        json_object_set_new(rope, "rope_theta", json_real(o->theta));
        json_object_set_new(c, "rope_parameters", rope);
    } else {
        json_object_set_new(c, "rope_theta", json_real(o->theta));
        json_object_set_new(c, "rope_scaling", rope);
    }
    return c;
}

static json_t *llada_config(const struct options *o)
{
    json_t *c = json_pack(
        "{s:[s],s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:b,s:i,s:i,s:i,s:f,s:f}", "architectures",
        "LLaDAModelLM", "model_type", "llada", "d_model", (int)o->width, "n_layers", (int)o->layers,
        "n_heads", (int)o->heads, "n_kv_heads", (int)o->kv_heads, "mlp_hidden_size", (int)o->ffn,
        "vocab_size", (int)o->vocab, "embedding_size", (int)o->vocab, "max_sequence_length",
        (int)o->context, "weight_tying", o->tied, "mask_token_id", MASK, "eos_token_id", EOS,
        "pad_token_id", EOS, "rms_norm_eps", o->eps, "rope_theta", o->theta);
    json_t *fixed = json_pack(
        "{s:s,s:s,s:i,s:s,s:b,s:b,s:b,s:b,s:b,s:b,s:b,s:b,s:b,s:b,s:b,s:s,s:i,s:f,s:n,s:f}",
        "activation_type", "silu", "block_type", "llama", "block_group_size", 1, "layer_norm_type",
        "rms", "layer_norm_with_affine", 1, "include_bias", 0, "include_qkv_bias", 0,
        "bias_for_layer_norm", 0, "attention_layer_norm", 0, "alibi", 0, "rope", 1,
        "rope_full_precision", 1, "input_emb_norm", 0, "scale_logits", 0, "use_cache", 0,
        "precision", "amp_bf16", "mlp_ratio", 4, "attention_dropout", 0.0, "multi_query_attention",
        "residual_dropout", 0.0);
    json_object_update(c, fixed);
    json_decref(fixed);
    return c;
}

/* The config.json of a Qwen is LLaMA's, except for what its class can do. */
static json_t *qwen_config(const struct options *o)
{
    const int three = !strcmp(o->arch, "qwen3");
    json_t *c = llama_config(o);
    json_object_set_new(c, "sliding_window", json_null());
    json_object_set_new(c, "use_sliding_window", json_false());
    json_object_set_new(c, "max_window_layers", json_integer(o->layers));
    json_object_del(c, "mlp_bias");
    json_object_set_new(c, "head_dim", json_integer(o->head_dim));
    if (!three) json_object_del(c, "attention_bias");
    return c;
}

/* LLaMA's config.json, except for the experts. Keys that the authors' code does not read have odd
 * values. */
static json_t *mixture_config(const struct options *o)
{
    json_t *c = llama_config(o), *layers = json_array();
    for (long i = 0; i < o->layers; i++)
        json_array_append_new(layers, json_integer(1));
    json_t *own = json_pack(
        "{s:i,s:i,s:i,s:n,s:i,s:o,s:b,s:b,s:b,s:s,s:f,s:i,s:n,s:f}", "expert_intermediate_size",
        (int)o->ffn, "num_experts", (int)o->experts, "num_experts_per_tok", (int)o->used,
        "shared_expert_intermediate_size", "dense_intermediate_size", 77, "moe_layer_freq", layers,
        "norm_topk_prob", 1, "qk_layernorm", 1, "moe_router_enable_expert_bias", 0,
        "moe_router_score_function", "softmax", "routed_scaling_factor", 2.5, "router_num_group", 3,
        "clip_qkv", "partial_rotary_factor", 1.0);
    json_object_update(c, own);
    json_decref(own);
    if (o->shared)
        json_object_set_new(c, "shared_expert_intermediate_size", json_integer(o->shared));
    json_object_del(c, "intermediate_size");
    json_object_del(c, "mlp_bias");
    return c;
}

/* LLaMA's config.json, except for the experts and the rotation; no file names the mask token. */
static json_t *grouped_config(const struct options *o)
{
    json_t *c = llama_config(o);
    json_t *own = json_pack(
        "{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:f,s:f,s:i,s:b,s:b,s:b,s:b,s:b,s:s,s:s,s:b,s:f}",
        "intermediate_size", (int)(2 * o->ffn), "moe_intermediate_size", (int)o->ffn,
        "first_k_dense_replace", (int)o->dense, "num_experts", (int)o->experts,
        "num_experts_per_tok", (int)o->used, "num_shared_experts", (int)o->shared, "n_group",
        (int)o->groups, "topk_group", (int)o->groups_used, "head_dim", (int)o->head_dim,
        "partial_rotary_factor", (double)o->rotated / (double)o->head_dim,
        "routed_scaling_factor", 2.5, "rotary_dim", (int)o->rotated, "use_bias", 0, "use_qkv_bias",
        0, "norm_topk_prob", 1, "moe_router_enable_expert_bias", 1, "norm_head", 0,
        "score_function", "sigmoid", "router_dtype", "fp32", "use_sliding_window", 0,
        "embedding_dropout", 0.0);
    json_object_update(c, own);
    json_decref(own);
    json_object_del(c, "attention_bias");
    json_object_del(c, "mlp_bias");
    return c;
}

/* Sets the rotation of Ministral 3 and Nemotron: 256 positions are stretched to all positions. */
static void stretch(const struct options *o, json_t *c)
{
    json_object_del(c, "rope_theta");
    json_object_del(c, "rope_scaling");
    json_object_set_new(c, "rope_parameters",
                        json_pack("{s:s,s:f,s:f,s:f,s:f,s:i,s:f,s:f,s:f}", "rope_type", "yarn",
                                  "rope_theta", o->theta, "factor", (double)o->context / 256,
                                  "beta_fast", 32.0, "beta_slow", 1.0,
                                  "original_max_position_embeddings", 256, "mscale", 1.0,
                                  "mscale_all_dim", 1.0, "llama_4_scaling_beta", 0.1));
    json_object_set_new(c, "head_dim", json_integer(o->head_dim));
    json_object_set_new(c, "sliding_window", json_null());
}

static void add_nemotron(json_t *c)
{
    json_t *own = json_pack("{s:i,s:i,s:s,s:f,s:n,s:b,s:s}", "mask_token_id", MASK, "block_size",
                            8, "dlm_paradigm", "bidirectional", "ar_loss_weight", 1.0,
                            "dlm_loss_weight", "dp_varying_mask_ratio", 0, "attn_implementation",
                            "sdpa");
    json_object_update(c, own);
    json_decref(own);
}

static void add_dflash(const struct options *o, json_t *c)
{
    char list[128];
    snprintf(list, sizeof list, "[%.100s]", o->taps);
    json_object_set_new(c, "block_size", json_integer(8));
    json_object_set_new(c, "num_target_layers", json_integer(4));
    json_object_set_new(c, "dflash_config",
                        json_pack("{s:i,s:o}", "mask_token_id", MASK, "target_layer_ids",
                                  json_loads(list, 0, NULL)));
}

/* Sets the members that differ from the config.json of the base family. */
static json_t *own_config(const struct options *o, json_t *c)
{
    json_object_set_new(c, "architectures", json_pack("[s]", o->kind->class));
    json_object_set_new(c, "model_type", json_string(o->kind->type));
    if (is_drafter(o))
        add_dflash(o, c);
    if (!strcmp(o->kind->arch, "eagle3")) {
        json_object_set_new(c, "num_hidden_layers", json_integer(1));
        json_object_set_new(c, "draft_vocab_size", json_integer(o->answers));
    }
    if (!strcmp(o->kind->arch, "dream"))
        json_object_set_new(c, "mask_token_id", json_integer(MASK));
    if (!strcmp(o->kind->arch, "fast-dllm"))
        json_object_set_new(c, "bd_size", json_integer(8));
    if (!strcmp(o->kind->arch, "nemotron") || !strcmp(o->kind->arch, "ministral3"))
        stretch(o, c);
    if (!strcmp(o->kind->arch, "nemotron"))
        add_nemotron(c);
    if (!strcmp(o->kind->arch, "mistral"))
        json_object_set_new(c, "sliding_window", json_integer(6));
    if (!strcmp(o->kind->arch, "smollm3"))
        json_object_set_new(c, "no_rope_layer_interval", json_integer(2));
    if (!strcmp(o->kind->arch, "mistral") || !strcmp(o->kind->arch, "smollm3"))
        json_object_set_new(c, "head_dim", json_integer(o->head_dim));
    return c;
}

/* ---- tokenizer.json ---- */

static void append_utf8(char *to, unsigned code)
{
    if (code < 128)
        snprintf(to, 4, "%c", (int)code);
    else
        snprintf(to, 4, "%c%c", (int)(0xc0 | code >> 6), (int)(0x80 | (code & 63)));
}

/* Pieces 0..255 are the bytes in their printable spelling, then come the special tokens. No
 * merges. */
static json_t *tokenizer(int which, const char *mask)
{
    const char *const special[3][PIECES - BOS] = {
        {"<|begin_of_text|>", "<|end_of_text|>", mask, "<|eot_id|>"},
        {"<|startoftext|>", "<|endoftext|>", mask, "<|eot_id|>"},
        {"<|object_ref_start|>", "<|endoftext|>", mask, "<|im_end|>"}};
    json_t *vocab = json_object(), *added = json_array();
    unsigned next = 256;
    for (unsigned b = 0; b < 256; b++) {
        const int plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        char piece[4];
        append_utf8(piece, plain ? b : next++);
        json_object_set_new(vocab, piece, json_integer(b));
    }
    for (int i = 0; i < PIECES - BOS; i++)
        json_array_append_new(
            added, json_pack("{s:i,s:s,s:b,s:b,s:b,s:b,s:b}", "id", BOS + i, "content",
                             special[which][i], "single_word", 0, "lstrip", 0, "rstrip", 0,
                             "normalized", 0, "special", 1));
    json_t *bytes = json_pack("{s:s,s:b,s:b,s:b}", "type", "ByteLevel", "add_prefix_space", 0,
                              "trim_offsets", 1, "use_regex", 1);
    json_t *model = json_pack("{s:s,s:n,s:n,s:n,s:n,s:b,s:b,s:o,s:[]}", "type", "BPE", "dropout",
                              "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                              "fuse_unk", 0, "byte_fallback", 0, "vocab", vocab, "merges");
    return json_pack("{s:s,s:n,s:n,s:o,s:n,s:O,s:n,s:o,s:o}", "version", "1.0", "truncation",
                     "padding", "added_tokens", added, "normalizer", "pre_tokenizer", bytes,
                     "post_processor", "decoder", bytes, "model", model);
}

static const struct kind *kind_of(const char *arch)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(arch, kinds[i].arch)) return &kinds[i];
    stop("--arch", arch);
}

static void parse(struct options *o, int argc, char **argv)
{
    static const struct option table[] = {
        {"arch", 1, 0, 'a'}, {"dtype", 1, 0, 'd'}, {"values", 1, 0, 'v'}, {"seed", 1, 0, 's'},
        {"width", 1, 0, 'w'}, {"layers", 1, 0, 'l'}, {"heads", 1, 0, 'h'}, {"kv-heads", 1, 0, 'k'},
        {"head-dim", 1, 0, 'e'},
        {"ffn", 1, 0, 'f'}, {"vocab", 1, 0, 'V'}, {"shards", 1, 0, 'S'}, {"tied", 0, 0, 't'},
        {"hf-names", 0, 0, 'n'}, {"rope-llama3", 1, 0, 'r'}, {"rope-parameters", 0, 0, 'p'},
        {"gain", 1, 0, 'g'}, {"theta", 1, 0, 'T'}, {"experts", 1, 0, 'x'}, {"used", 1, 0, 'u'},
        {"shared", 1, 0, 'X'}, {"dense", 1, 0, 'D'}, {"groups", 1, 0, 'G'},
        {"groups-used", 1, 0, 'U'}, {"taps", 1, 0, 'y'}, {"rotated", 1, 0, 'R'},
        {"answers", 1, 0, 'A'}, {"embeds", 0, 0, 'E'}, {0, 0, 0, 0}};
    for (int c; (c = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        if (c == 'a') o->arch = optarg;
        else if (c == 'd') o->dtype = optarg;
        else if (c == 'v') o->values = optarg;
        else if (c == 'y') o->taps = optarg;
        else if (c == 's') o->seed = strtoull(optarg, NULL, 10);
        else if (c == 'w') o->width = atol(optarg);
        else if (c == 'l') o->layers = atol(optarg);
        else if (c == 'h') o->heads = atol(optarg);
        else if (c == 'k') o->kv_heads = atol(optarg);
        else if (c == 'e') o->head_dim = atol(optarg);
        else if (c == 'f') o->ffn = atol(optarg);
        else if (c == 'V') o->vocab = atol(optarg);
        else if (c == 'S') o->shards = atol(optarg);
        else if (c == 't') o->tied = 1;
        else if (c == 'n') o->hf_names = 1;
        else if (c == 'p') o->rope_parameters = 1;
        else if (c == 'g') o->gain = atof(optarg);
        else if (c == 'T') o->theta = atof(optarg);
        else if (c == 'x') o->experts = atol(optarg);
        else if (c == 'u') o->used = atol(optarg);
        else if (c == 'X') o->shared = atol(optarg);
        else if (c == 'D') o->dense = atol(optarg);
        else if (c == 'G') o->groups = atol(optarg);
        else if (c == 'U') o->groups_used = atol(optarg);
        else if (c == 'R') o->rotated = atol(optarg);
        else if (c == 'A') o->answers = atol(optarg);
        else if (c == 'E') o->embeds = 1;
        else if (c == 'r' && sscanf(optarg, "%lf,%lf,%lf,%ld", &o->factor, &o->low, &o->high,
                                    &o->original) == 4) o->rope_llama3 = 1;
        else stop("usage", "--rope-llama3 FACTOR,LOW,HIGH,ORIGINAL, or see the option table");
    }
    if (optind != argc - 1) stop("usage", "make-checkpoint [options] FOLDER");
    o->folder = argv[optind];
    o->kind = kind_of(o->arch);
    o->arch = o->kind->base;
    if (!o->kv_heads) o->kv_heads = o->heads;
    if (!o->head_dim) o->head_dim = o->width / o->heads;
    if (!o->rotated) o->rotated = o->head_dim / 2;
}

int main(int argc, char **argv)
{
    struct options o = {.arch = "llama", .dtype = "F32", .width = 32, .layers = 2, .heads = 4,
                        .ffn = 48, .vocab = 264, .shards = 1, .context = 512, .theta = 10000,
                        .gain = 1.5, .eps = 1e-5, .seed = 1, .experts = 6, .used = 2, .dense = 1,
                        .groups = 3, .groups_used = 2, .taps = "0,2",
                        .answers = 101};
    static struct list l;
    parse(&o, argc, argv);
    const int llada = !strcmp(o.arch, "llada"), qwen = !strncmp(o.arch, "qwen", 4);
    json_t *values = o.values ? json_load_file(o.values, 0, NULL) : NULL;
    if (o.values && !values) stop("--values: not JSON", o.values);
    if (mkdir(o.folder, 0777) && errno != EEXIST) stop("cannot create", o.folder);
    make_tensors(&l, &o, values);
    write_tensors(&l, &o);
    json_t *config = llada  ? llada_config(&o)
                     : qwen ? qwen_config(&o)
                     : !strcmp(o.arch, "mixture") ? mixture_config(&o)
                     : !strcmp(o.arch, "grouped") ? grouped_config(&o)
                                                  : llama_config(&o);
    write_json(o.folder, "config.json", own_config(&o, config));
    write_json(o.folder, "generation_config.json",
               json_pack("{s:i,s:i}", "bos_token_id", BOS, "eos_token_id", EOS));
    write_json(o.folder, "tokenizer.json", tokenizer(llada ? 1 : qwen ? 2 : 0, o.kind->mask));
    for (size_t i = 0; i < l.n; i++)
        free(l.t[i].v);
    json_decref(values);
    return 0;
}
