/* make-gguf FORMAT FOLDER - converts a checkpoint of make-checkpoint (F32, one file) to model.gguf
 * in the same folder: matrices in FORMAT, the rest in F32. model.safetensors is rewritten with the
 * values that the formats stand for, so that a reader of either file must find the same network.
 * rope_scaling of type llama3 becomes rope_freqs.weight, the last tensor. This program shares no
 * code with the engine. The quantizers are crude: nothing is lost between the two files. */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void stop(const char *what, const char *which)
{
    fprintf(stderr, "make-gguf: %s: %s\n", what, which);
    exit(64);
}

/* ---- formats: n values to bytes, and the values that the bytes stand for ---- */

/* Rounds to an IEEE half, to the nearest even; *v gets the value of the half. */
static unsigned to_half(double *v)
{
    int e = *v == 0 ? -14 : ilogb(*v);
    if (e < -14) e = -14;
    double q = nearbyint(fabs(*v) * ldexp(1, 10 - e));
    if (q >= 2048) {
        q /= 2;
        e++;
    }
    const unsigned sign = signbit(*v) ? 0x8000u : 0;
    *v = copysign(ldexp(q, e - 10), *v);
    return sign | (q < 1024 ? (unsigned)q : (unsigned)(e + 15) << 10 | ((unsigned)q - 1024));
}

static void put_half(unsigned char *to, double *v)
{
    const unsigned h = to_half(v);
    to[0] = (unsigned char)h;
    to[1] = (unsigned char)(h >> 8);
}

static double range(const float *x, int n, double *low)
{
    double high = x[0];
    *low = x[0];
    for (int i = 1; i < n; i++) {
        if (x[i] > high) high = x[i];
        if (x[i] < *low) *low = x[i];
    }
    return high;
}

static double largest(const float *x, int n)
{
    double low, high = range(x, n, &low);
    return high > -low ? high : -low;
}

static int code(double v, int low, int high)
{
    const double q = nearbyint(v);
    return q < low ? low : q > high ? high : (int)q;
}

static void f16(float *x, unsigned char *b)
{
    double v = *x;
    put_half(b, &v);
    *x = (float)v;
}

static void bf16(float *x, unsigned char *b)
{
    uint32_t bits;
    memcpy(&bits, x, 4);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(x, &bits, 4);
    b[0] = (unsigned char)(bits >> 16);
    b[1] = (unsigned char)(bits >> 24);
}

static void f32(float *x, unsigned char *b)
{
    memcpy(b, x, 4);
}

static void q8_0(float *x, unsigned char *b)
{
    double d = largest(x, 32) / 127;
    put_half(b, &d);
    for (int i = 0; i < 32; i++) {
        const int q = code(x[i] / d, -127, 127);
        b[2 + i] = (unsigned char)q;
        x[i] = (float)(d * q);
    }
}

static void q4_0(float *x, unsigned char *b)
{
    double d = -largest(x, 32) / 8;
    put_half(b, &d);
    for (int i = 0; i < 32; i++) {
        const int q = code(x[i] / d + 8, 0, 15);
        b[2 + i % 16] |= (unsigned char)(q << i / 16 * 4);
        x[i] = (float)(d * (q - 8));
    }
}

static void q4_1(float *x, unsigned char *b)
{
    double m, d = range(x, 32, &m);
    d = (d - m) / 15;
    put_half(b, &d);
    put_half(b + 2, &m);
    for (int i = 0; i < 32; i++) {
        const int q = code((x[i] - m) / d, 0, 15);
        b[4 + i % 16] |= (unsigned char)(q << i / 16 * 4);
        x[i] = (float)((float)(d * q) + (float)m);
    }
}

static void q4_k(float *x, unsigned char *b)
{
    double scale[8], least[8], d = 0, m = 0;
    for (int g = 0; g < 8; g++) {
        scale[g] = range(x + g * 32, 32, &least[g]);
        scale[g] = (scale[g] - least[g]) / 15;
        if (scale[g] > d) d = scale[g];
        if (-least[g] > m) m = -least[g];
    }
    d /= 63;
    m /= 63;
    put_half(b, &d);
    put_half(b + 2, &m);
    for (int g = 0; g < 8; g++) {
        const int s = code(scale[g] / d, 1, 63), t = code(-least[g] / m, 0, 63);
        if (g < 4) {
            b[4 + g] |= (unsigned char)s;
            b[8 + g] |= (unsigned char)t;
        } else {
            b[g + 8] = (unsigned char)((s & 15) | (t & 15) << 4);
            b[g] |= (unsigned char)(s >> 4 << 6);
            b[g + 4] |= (unsigned char)(t >> 4 << 6);
        }
        for (int i = 0; i < 32; i++) {
            float *v = &x[g * 32 + i];
            const int q = code((*v + m * t) / (d * s), 0, 15);
            b[16 + g / 2 * 32 + i] |= (unsigned char)(q << g % 2 * 4);
            *v = (float)(d * s) * (float)q - (float)(m * t);
        }
    }
}

static void q6_k(float *x, unsigned char *b)
{
    double d = largest(x, 256) / 31 / 127;
    put_half(b + 208, &d);
    for (int g = 0; g < 16; g++) {
        const int s = (g % 3 ? 1 : -1) * code(largest(x + g * 16, 16) / 31 / d, 1, 127);
        b[192 + g] = (unsigned char)s;
        for (int i = g * 16; i < g * 16 + 16; i++) {
            const int q = code(x[i] / (d * s) + 32, 0, 63), half = i / 128, quarter = i % 128 / 32;
            b[half * 64 + quarter % 2 * 32 + i % 32] |=
                (unsigned char)((q & 15) << (quarter / 2 * 4));
            b[128 + half * 32 + i % 32] |= (unsigned char)(q >> 4 << 2 * quarter);
            x[i] = (float)d * (float)s * (float)(q - 32);
        }
    }
}

static const struct format {
    const char *name;
    unsigned id;
    size_t values, bytes;
    void (*encode)(float *x, unsigned char *b);
} formats[] = {{"F32", 0, 1, 4, f32},       {"F16", 1, 1, 2, f16},       {"BF16", 30, 1, 2, bf16},
               {"Q4_0", 2, 32, 18, q4_0},   {"Q4_1", 3, 32, 20, q4_1},   {"Q8_0", 8, 32, 34, q8_0},
               {"Q4_K", 12, 256, 144, q4_k}, {"Q6_K", 14, 256, 210, q6_k}};

/* ---- the file ---- */

static void put(FILE *f, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        putc((int)(v >> 8 * i & 255), f);
}

static void put_text(FILE *f, const char *s)
{
    put(f, strlen(s), 8);
    fputs(s, f);
}

static unsigned keys;

static void key(FILE *f, const char *family, const char *name, unsigned type)
{
    char full[128];
    snprintf(full, sizeof full, "%s%s%s", family, *family ? "." : "", name);
    put_text(f, full);
    put(f, type, 4);
    keys++;
}

static void key_text(FILE *f, const char *name, const char *value)
{
    key(f, "", name, 8);
    put_text(f, value);
}

static void key_int(FILE *f, const char *family, const char *name, json_t *v)
{
    if (!json_is_integer(v)) return;
    key(f, family, name, 4);
    put(f, (uint64_t)json_integer_value(v), 4);
}

static void key_float(FILE *f, const char *family, const char *name, json_t *v)
{
    const float x = (float)json_number_value(v);
    uint32_t bits;
    memcpy(&bits, &x, 4);
    key(f, family, name, 6);
    put(f, bits, 4);
}

static json_t *either(const json_t *c, const char *a, const char *b)
{
    json_t *v = json_object_get(c, a);
    return v ? v : json_object_get(c, b);
}

static void put_config(FILE *f, const char *arch, const json_t *c)
{
    static const char *const names[][3] = {
        {"embedding_length", "hidden_size", "d_model"},
        {"block_count", "num_hidden_layers", "n_layers"},
        {"attention.head_count", "num_attention_heads", "n_heads"},
        {"attention.head_count_kv", "num_key_value_heads", "n_kv_heads"},
        {"attention.key_length", "head_dim", "head_dim"},
        {"attention.value_length", "head_dim", "head_dim"},
        {"feed_forward_length", "intermediate_size", "mlp_hidden_size"},
        {"context_length", "max_position_embeddings", "max_sequence_length"},
        {"vocab_size", "vocab_size", "vocab_size"}};
    key_text(f, "general.architecture", arch);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        key_int(f, arch, names[i][0], either(c, names[i][1], names[i][2]));
    key_float(f, arch, "attention.layer_norm_rms_epsilon", json_object_get(c, "rms_norm_eps"));
    key_float(f, arch, "rope.freq_base", json_object_get(c, "rope_theta"));
    key(f, arch, "attention.causal", 7);
    put(f, !json_object_get(c, "mask_token_id"), 1);
    key_int(f, "tokenizer.ggml", "bos_token_id", json_object_get(c, "bos_token_id"));
    key_int(f, "tokenizer.ggml", "eos_token_id", json_object_get(c, "eos_token_id"));
    key_int(f, "tokenizer.ggml", "mask_token_id", json_object_get(c, "mask_token_id"));
}

/* Writes the pieces of a tokenizer without merges, and unused tokens up to the size of the
 * vocabulary. */
static void put_tokenizer(FILE *f, const json_t *j, size_t vocab)
{
    const char **text = calloc(vocab, sizeof *text), *piece;
    json_t *id, *token, *model = json_object_get(j, "model");
    char unused[32];
    size_t i;
    json_object_foreach(json_object_get(model, "vocab"), piece, id)
        text[json_integer_value(id)] = piece;
    json_array_foreach(json_object_get(j, "added_tokens"), i, token)
        text[json_integer_value(json_object_get(token, "id"))] =
            json_string_value(json_object_get(token, "content"));
    key_text(f, "tokenizer.ggml.model", "gpt2");
    key_text(f, "tokenizer.ggml.pre", "gpt-2");
    key(f, "", "tokenizer.ggml.tokens", 9);
    put(f, 8, 4);
    put(f, vocab, 8);
    for (i = 0; i < vocab; i++) {
        snprintf(unused, sizeof unused, "[PAD%zu]", i);
        put_text(f, text[i] ? text[i] : unused);
    }
    key(f, "", "tokenizer.ggml.token_type", 9);
    put(f, 5, 4);
    put(f, vocab, 8);
    for (i = 0; i < vocab; i++)
        put(f, !text[i] ? 5 : i < 256 ? 1 : 3, 4);
    key(f, "", "tokenizer.ggml.merges", 9);
    put(f, 8, 4);
    put(f, 0, 8);
    free(text);
}

/* Renames a tensor: "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight" */
static void rename_tensor(const char *name, char to[96])
{
    static const char *const names[][2] = {
        {"input_layernorm", "attn_norm"}, {"self_attn.q_proj", "attn_q"},
        {"self_attn.k_proj", "attn_k"},   {"self_attn.v_proj", "attn_v"},
        {"self_attn.o_proj", "attn_output"}, {"post_attention_layernorm", "ffn_norm"},
        {"mlp.gate_proj", "ffn_gate"},    {"mlp.up_proj", "ffn_up"},
        {"mlp.down_proj", "ffn_down"},    {"self_attn.q_norm", "attn_q_norm"},
        {"self_attn.k_norm", "attn_k_norm"}};
    int layer, at = 0;
    if (!strncmp(name, "model.embed", 11)) strcpy(to, "token_embd.weight");
    else if (!strncmp(name, "model.norm", 10)) strcpy(to, "output_norm.weight");
    else if (!strncmp(name, "lm_head", 7)) strcpy(to, "output.weight");
    if (sscanf(name, "model.layers.%d.%n", &layer, &at) != 1) return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t n = strlen(names[i][0]);
        if (!strncmp(name + at, names[i][0], n) && name[(size_t)at + n] == '.')
            snprintf(to, 96, "blk.%d.%s%s", layer, names[i][1], name + (size_t)at + n);
    }
}

struct tensor {
    char name[96];
    float *v; /* points into the bytes of model.safetensors */
    size_t rows, cols;
    const struct format *format;
    int paired;
};

/* Adds the rescaled rotation of LLaMA 3.1 as GGUF has it: the divisor of each frequency. A
 * frequency with fewer than `low` turns over the original context is divided by the factor, one
 * with more than `high` turns stays. A frequency between is a blend of the divided and the kept
 * one. */
static size_t add_rope(const json_t *c, size_t head_dim, struct tensor *to)
{
    static const char *const names[4] = {"factor", "low_freq_factor", "high_freq_factor",
                                         "original_max_position_embeddings"};
    double v[4];
    const json_t *rope = json_object_get(c, "rope_scaling");
    if (!json_is_object(rope)) return 0;
    for (int i = 0; i < 4; i++)
        v[i] = json_number_value(json_object_get(rope, names[i]));
    const double theta = json_number_value(json_object_get(c, "rope_theta"));
    *to = (struct tensor){.name = "rope_freqs.weight", .rows = head_dim / 2, .format = formats};
    to->v = malloc(to->rows * sizeof *to->v);
    for (size_t j = 0; j < to->rows; j++) {
        const double length = 2 * acos(-1) * pow(theta, 2.0 * (double)j / (double)head_dim);
        const double share = (v[3] / length - v[1]) / (v[2] - v[1]);
        const double kept = share < 0 ? 0 : share > 1 ? 1 : share;
        to->v[j] = (float)(1 / ((1 - kept) / v[0] + kept));
    }
    return 1;
}

static unsigned char *read_all(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END)) stop("cannot read", path);
    *n = (size_t)ftell(f);
    rewind(f);
    unsigned char *bytes = malloc(*n);
    if (!bytes || fread(bytes, 1, *n, f) != *n || fclose(f)) stop("cannot read", path);
    return bytes;
}

static size_t list_tensors(unsigned char *bytes, const struct format *format, int paired,
                           struct tensor *list)
{
    uint64_t n;
    size_t count = 0;
    memcpy(&n, bytes, 8);
    json_t *header = json_loadb((char *)bytes + 8, (size_t)n, 0, NULL), *t;
    const char *name;
    json_object_foreach(header, name, t) {
        if (!strcmp(name, "__metadata__")) continue;
        struct tensor *x = &list[count++];
        const json_t *shape = json_object_get(t, "shape");
        rename_tensor(name, x->name);
        x->rows = (size_t)json_integer_value(json_array_get(shape, 0));
        x->cols = (size_t)json_integer_value(json_array_get(shape, 1));
        x->v = (float *)(void *)(bytes + 8 + n +
               json_integer_value(json_array_get(json_object_get(t, "data_offsets"), 0)));
        x->format = x->cols ? format : formats;
        x->paired = paired && (strstr(x->name, "attn_q.w") || strstr(x->name, "attn_k.w"));
    }
    json_decref(header);
    return count;
}

static size_t bytes_of(const struct tensor *t)
{
    return t->rows * (t->cols ? t->cols : 1) / t->format->values * t->format->bytes;
}

/* Writes a tensor. The rows of a head are in pairs: row 2i + s of the file is row s E/2 + i. */
static void put_tensor(FILE *f, const struct tensor *t, size_t head_dim)
{
    const size_t cols = t->cols ? t->cols : 1, values = t->cols ? t->format->values : 1;
    for (size_t row = 0; row < t->rows; row++) {
        const size_t at = row % head_dim;
        const size_t from = t->paired ? row - at + at % 2 * (head_dim / 2) + at / 2 : row;
        for (size_t i = 0; i < cols; i += values) {
            unsigned char b[256] = {0};
            t->format->encode(t->v + from * cols + i, b);
            fwrite(b, 1, t->format->bytes, f);
        }
    }
    while (ftell(f) % 32)
        putc(0, f);
}

int main(int argc, char **argv)
{
    static struct tensor list[512];
    char path[3][1024];
    const struct format *format = NULL;
    for (size_t i = 0; argc == 3 && i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(argv[1], formats[i].name)) format = &formats[i];
    if (!format) stop("usage", "make-gguf FORMAT FOLDER");
    static const char *const names[3] = {"config.json", "tokenizer.json", "model.safetensors"};
    for (int i = 0; i < 3; i++)
        snprintf(path[i], sizeof path[i], "%s/%s", argv[2], names[i]);
    json_t *c = json_load_file(path[0], 0, NULL), *t = json_load_file(path[1], 0, NULL);
    size_t size, at = 0;
    unsigned char *bytes = read_all(path[2], &size);
    const char *arch = json_string_value(json_object_get(c, "model_type"));
    const size_t heads = (size_t)json_integer_value(either(c, "num_attention_heads", "n_heads"));
    const size_t width = (size_t)json_integer_value(either(c, "hidden_size", "d_model"));
    json_t *said = json_object_get(c, "head_dim");
    const size_t head_dim = said ? (size_t)json_integer_value(said) : width / heads;
    const size_t stored = list_tensors(bytes, format, strncmp(arch, "qwen", 4), list);
    const size_t n = stored + add_rope(c, head_dim, list + stored);
    char *body = NULL;
    size_t length = 0;
    FILE *f = open_memstream(&body, &length);
    put_config(f, arch, c);
    put_tokenizer(f, t, (size_t)json_integer_value(json_object_get(c, "vocab_size")));
    for (size_t i = 0; i < n; i++) {
        put_text(f, list[i].name);
        put(f, list[i].cols ? 2 : 1, 4);
        if (list[i].cols) put(f, list[i].cols, 8);
        put(f, list[i].rows, 8);
        put(f, list[i].format->id, 4);
        put(f, at, 8);
        at += (bytes_of(&list[i]) + 31) / 32 * 32;
    }
    fclose(f);
    snprintf(path[0], sizeof path[0], "%s/model.gguf", argv[2]);
    f = fopen(path[0], "wb");
    if (!f) stop("cannot create", path[0]);
    fputs("GGUF", f);
    put(f, 3, 4);
    put(f, n, 8);
    put(f, keys, 8);
    fwrite(body, 1, length, f);
    while (ftell(f) % 32)
        putc(0, f);
    for (size_t i = 0; i < n; i++)
        put_tensor(f, &list[i], head_dim);
    if (fclose(f)) stop("cannot write", path[0]);
    f = fopen(path[2], "wb");
    if (!f || fwrite(bytes, 1, size, f) != size || fclose(f)) stop("cannot write", path[2]);
    json_decref(c);
    json_decref(t);
    if (n > stored) free(list[stored].v);
    free(body);
    free(bytes);
    return 0;
}
