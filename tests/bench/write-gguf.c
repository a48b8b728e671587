/* write-gguf - converts a synth: shape into a GGUF file of the same network, so that the tools of
 * llama.cpp can be timed on it.
 *
 * The weights are those that -m synth:SHAPE draws with seed 0. Types are chosen as llama.cpp's own
 * llama-quantize chooses them: norms are f32; with q4_0 the head is Q6_K (with tied weights the
 * embedding). The vocabulary is made up: one token for each byte, the shape's special tokens, and
 * names for the rest; a prompt of n ASCII characters is n tokens. Source: the GGUF specification,
 * version 3. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cli/opt.h"
#include "lib/base/mem.h"
#include "lib/base/out.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/role.h"
#include "tests/bench/ggml-blocks.h"

enum { VERSION = 3, ALIGNMENT = 32, ROPE_FREQS = ROLE_COUNT };
/* Types of metadata values. */
enum { U32 = 4, I32 = 5, F32 = 6, BOOL = 7, TEXT = 8, LIST = 9 };
enum { TOKEN_NORMAL = 1, TOKEN_UNKNOWN = 2, TOKEN_CONTROL = 3, TOKEN_BYTE = 6, FIRST_BYTE = 3 };

static const char tool_name[] = "write-gguf";

struct header {
    struct buf metadata;
    uint64_t entries;
    const char *arch;
};

struct entry { /* one tensor; for a matrix of experts one tensor with all experts of a layer */
    int role;
    size_t layer, rows, cols, each;
    enum ggml_type type;
};

struct gguf {
    struct checkpoint *checkpoint;
    enum ggml_type type, head_type;
    struct entry *entry;
    size_t n, cap;
    FILE *out;
};

static void put32(struct buf *b, uint32_t v) { buf_put(b, &v, sizeof v); }
static void put64(struct buf *b, uint64_t v) { buf_put(b, &v, sizeof v); }

static void put_text(struct buf *b, const char *s)
{
    put64(b, strlen(s));
    buf_text(b, s);
}

/* ---- metadata ---- */

/* Begins an entry. A name that begins with a dot gets the architecture in front. */
static struct buf *entry(struct header *h, const char *name, uint32_t type)
{
    char text[64];
    snprintf(text, sizeof text, "%s%s", name[0] == '.' ? h->arch : "", name);
    put_text(&h->metadata, text);
    put32(&h->metadata, type);
    h->entries++;
    return &h->metadata;
}

static void entry_u32(struct header *h, const char *name, size_t v)
{
    put32(entry(h, name, U32), (uint32_t)v);
}

static void entry_id(struct header *h, const char *name, int64_t id)
{
    if (id >= 0)
        entry_u32(h, name, (size_t)id);
}

static void entry_f32(struct header *h, const char *name, double v)
{
    float f = (float)v;
    buf_put(entry(h, name, F32), &f, sizeof f);
}

static void entry_bool(struct header *h, const char *name, int v)
{
    buf_char(entry(h, name, BOOL), (char)v);
}

static void entry_text(struct header *h, const char *name, const char *v)
{
    put_text(entry(h, name, TEXT), v);
}

static struct buf *entry_list(struct header *h, const char *name, uint32_t type, size_t n)
{
    struct buf *b = entry(h, name, LIST);
    put32(b, type);
    put64(b, n);
    return b;
}

static int is_control(const struct config *c, int64_t id)
{
    return id == c->bos || id == c->eos[0] || id == c->mask || id == c->eot;
}

static int token_type(const struct config *c, size_t id)
{
    return id == 0                      ? TOKEN_UNKNOWN
           : is_control(c, (int64_t)id) ? TOKEN_CONTROL
           : id >= FIRST_BYTE && id < FIRST_BYTE + 256 ? TOKEN_BYTE : TOKEN_NORMAL;
}

static void vocabulary(struct header *h, const struct config *c)
{
    struct buf *b = entry_list(h, "tokenizer.ggml.tokens", TEXT, c->vocab);
    for (size_t i = 0; i < c->vocab; i++) {
        char text[32];
        int byte = token_type(c, i) == TOKEN_BYTE;
        snprintf(text, sizeof text, byte ? "<0x%02zX>" : "<token %zu>", byte ? i - FIRST_BYTE : i);
        put_text(b, text);
    }
    b = entry_list(h, "tokenizer.ggml.scores", F32, c->vocab);
    for (size_t i = 0; i < c->vocab; i++)
        put32(b, 0);
    b = entry_list(h, "tokenizer.ggml.token_type", I32, c->vocab);
    for (size_t i = 0; i < c->vocab; i++)
        put32(b, (uint32_t)token_type(c, i));
}

static void tokenizer(struct header *h, const struct config *c)
{
    entry_text(h, "tokenizer.ggml.model", "llama");
    vocabulary(h, c);
    entry_id(h, "tokenizer.ggml.bos_token_id", c->bos);
    entry_id(h, "tokenizer.ggml.eos_token_id", c->eos[0]);
    entry_id(h, "tokenizer.ggml.eot_token_id", c->eot);
    entry_id(h, "tokenizer.ggml.mask_token_id", c->mask);
    entry_u32(h, "tokenizer.ggml.unknown_token_id", 0);
    entry_bool(h, "tokenizer.ggml.add_bos_token", 0);
    entry_bool(h, "tokenizer.ggml.add_space_prefix", 0);
    entry_text(h, "tokenizer.chat_template", "{{ messages[0]['content'] }}");
}

/* The number that the metadata have for the type of the whole file, by ggml type. */
static size_t file_type(enum ggml_type t)
{
    return t == GGML_F32 ? 0 : t == GGML_Q4_0 ? 2 : t == GGML_Q8_0 ? 7 : 32;
}

static void describe(struct header *h, const struct config *c, enum ggml_type t)
{
    entry_text(h, "general.architecture", h->arch);
    entry_text(h, "general.name", c->name);
    entry_u32(h, "general.file_type", file_type(t));
    entry_u32(h, "general.quantization_version", 2);
    entry_u32(h, "general.alignment", ALIGNMENT);
    entry_u32(h, ".vocab_size", c->vocab);
    entry_u32(h, ".context_length", c->context);
    entry_u32(h, ".embedding_length", c->width);
    entry_u32(h, ".block_count", c->layers);
    entry_u32(h, ".feed_forward_length", c->ffn);
    entry_u32(h, ".attention.head_count", c->heads);
    entry_u32(h, ".attention.head_count_kv", c->kv_heads);
    entry_u32(h, ".attention.key_length", c->head_dim);
    entry_u32(h, ".attention.value_length", c->head_dim);
    entry_f32(h, ".attention.layer_norm_rms_epsilon", c->norm_eps);
    entry_u32(h, ".rope.dimension_count", c->head_dim);
    entry_f32(h, ".rope.freq_base", c->rope_theta);
    if (c->experts) {
        entry_u32(h, ".expert_count", c->experts);
        entry_u32(h, ".expert_used_count", c->used);
        entry_u32(h, ".expert_feed_forward_length", c->ffn);
    }
    if (c->paradigm != PARADIGM_AUTOREGRESSIVE)
        entry_bool(h, "diffusion.shift_logits", 0);
}

/* ---- tensors ---- */

static void tensor_name(const struct entry *t, char name[64])
{
    static const char *const names[] = {
        [ROLE_EMBED] = "token_embd", [ROLE_ATTN_NORM] = "attn_norm", [ROLE_Q] = "attn_q",
        [ROLE_K] = "attn_k", [ROLE_V] = "attn_v", [ROLE_O] = "attn_output",
        [ROLE_FFN_NORM] = "ffn_norm", [ROLE_GATE] = "ffn_gate", [ROLE_UP] = "ffn_up",
        [ROLE_DOWN] = "ffn_down", [ROLE_NORM] = "output_norm", [ROLE_HEAD] = "output",
        [ROLE_Q_NORM] = "attn_q_norm", [ROLE_K_NORM] = "attn_k_norm",
        [ROLE_ROUTER] = "ffn_gate_inp", [ROPE_FREQS] = "rope_freqs"};
    if (t->role != ROPE_FREQS && role_per_layer((enum role)t->role))
        snprintf(name, 64, "blk.%zu.%s%s.weight", t->layer, names[t->role],
                 t->each > 1 ? "_exps" : "");
    else
        snprintf(name, 64, "%s.weight", names[t->role]);
}

static size_t entry_bytes(const struct entry *t)
{
    return t->each * t->rows * t->cols / ggml_block_values(t->type) * ggml_block_bytes(t->type);
}

static size_t tensor_place(const struct entry *t)
{
    return (entry_bytes(t) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void list_tensors(struct gguf *g)
{
    const struct config *c = &g->checkpoint->config;
    for (int r = 0; r < ROLE_COUNT; r++) {
        enum role role = (enum role)r;
        for (size_t l = 0; !(role == ROLE_HEAD && c->tied) && l < role_layers(c, role); l++) {
            struct entry t = {.role = r, .layer = l, .type = g->type, .each = role_each(c, role)};
            role_shape(c, role, &t.rows, &t.cols);
            if (role_is_norm(role) || role == ROLE_ROUTER)
                t.type = GGML_F32;
            else if (role == ROLE_HEAD || (role == ROLE_EMBED && c->tied))
                t.type = g->head_type;
            MEM_GROW(g->entry, g->n, g->cap);
            g->entry[g->n++] = t;
        }
    }
    MEM_GROW(g->entry, g->n, g->cap);
    if (c->rope_llama3)
        g->entry[g->n++] = (struct entry){ROPE_FREQS, 0, c->head_dim / 2, 1, 1, GGML_F32};
}

static int check_blocks(const struct gguf *g, struct err *e)
{
    for (size_t i = 0; i < g->n; i++) {
        const struct entry *t = &g->entry[i];
        char name[64];
        tensor_name(t, name);
        if (t->cols > 1 && t->cols % ggml_block_values(t->type))
            return err_set(e, EXIT_BAD_USAGE, "%s of %s has rows of %zu values, expected a "
                           "multiple of %zu for this type; choose bf16 or f32", name,
                           g->checkpoint->config.name, t->cols, ggml_block_values(t->type));
    }
    return 0;
}

static void directory(const struct gguf *g, struct buf *b)
{
    uint64_t at = 0;
    for (size_t i = 0; i < g->n; i++) {
        const struct entry *t = &g->entry[i];
        char name[64];
        tensor_name(t, name);
        put_text(b, name);
        put32(b, t->each > 1 ? 3 : t->cols > 1 ? 2 : 1);
        if (t->cols > 1)
            put64(b, t->cols);
        put64(b, t->rows);
        if (t->each > 1)
            put64(b, t->each);
        put32(b, t->type);
        put64(b, at);
        at += tensor_place(t);
    }
}

/* Puts LLaMA 3.1's rescaling of frequencies in the form of GGUF: the divisor of each frequency. */
static void rope_factors(const struct config *c, float *out)
{
    struct config plain = *c;
    float *scaled = mem_alloc(c->head_dim / 2 * sizeof *scaled);
    plain.rope_llama3 = 0;
    config_rope(&plain, out);
    config_rope(c, scaled);
    for (size_t j = 0; j < c->head_dim / 2; j++)
        out[j] /= scaled[j];
    free(scaled);
}

/* In LLaMA and LLaDA the peer rotates neighbours (2j, 2j + 1) of a head, while we rotate (j, j +
 * E/2). So the peer's rows of Wq and Wk have another order. In families that normalise queries and
 * keys the peer rotates as we do. */
static size_t source_row(const struct config *c, const struct entry *t, size_t row)
{
    size_t E = c->head_dim, at = row % E;
    int rotated = !c->qk_norm && (t->role == ROLE_Q || t->role == ROLE_K);
    return rotated ? row - at + at / 2 + at % 2 * (E / 2) : row;
}

static void write_tensor(const struct gguf *g, const struct entry *t)
{
    const struct config *c = &g->checkpoint->config;
    float *x = mem_alloc(t->rows * t->cols * sizeof *x);
    size_t row_bytes = t->cols / ggml_block_values(t->type) * ggml_block_bytes(t->type);
    unsigned char *bytes = mem_alloc(row_bytes);
    for (size_t i = 0; i < t->each; i++) {
        if (t->role == ROPE_FREQS)
            rope_factors(c, x);
        else
            checkpoint_floats(g->checkpoint, (enum role)t->role, t->layer * t->each + i, x);
        for (size_t r = 0; r < t->rows; r++) {
            ggml_encode(t->type, x + source_row(c, t, r) * t->cols, t->cols, bytes);
            fwrite(bytes, 1, row_bytes, g->out); /* errors are found when the file is committed */
        }
    }
    for (size_t i = entry_bytes(t); i < tensor_place(t); i++)
        fputc(0, g->out);
    free(bytes);
    free(x);
}

static void write_file(struct gguf *g)
{
    const struct config *c = &g->checkpoint->config;
    struct header h = {.arch = c->family->name};
    struct buf b = {0};
    describe(&h, c, g->type);
    tokenizer(&h, c);
    buf_text(&b, "GGUF");
    put32(&b, VERSION);
    put64(&b, g->n);
    put64(&b, h.entries);
    buf_put(&b, h.metadata.data, h.metadata.len);
    directory(g, &b);
    while (b.len % ALIGNMENT)
        buf_char(&b, 0);
    fwrite(b.data, 1, b.len, g->out);
    for (size_t i = 0; i < g->n; i++)
        write_tensor(g, &g->entry[i]);
    buf_free(&h.metadata);
    buf_free(&b);
}

static int run(const char *shape, const char *type, const char *path, struct err *e)
{
    struct checkpoint checkpoint = {0};
    struct gguf g = {.checkpoint = &checkpoint};
    struct out out = {0};
    g.type = !strcmp(type, "f32") ? GGML_F32 : !strcmp(type, "q8_0") ? GGML_Q8_0
             : !strcmp(type, "q4_0") ? GGML_Q4_0 : GGML_BF16;
    g.head_type = g.type == GGML_Q4_0 ? GGML_Q6_K : g.type;
    char *name = mem_format("synth:%s", shape);
    int bad = checkpoint_open(&checkpoint, name, 0, e);
    if (!bad) {
        list_tensors(&g);
        bad = check_blocks(&g, e) || out_open(&out, path, e);
    }
    if (!bad) {
        g.out = out.f;
        write_file(&g);
        bad = out_commit(&out, e);
    }
    checkpoint_close(&checkpoint);
    free(g.entry);
    free(name);
    return bad ? -1 : 0;
}

int main(int argc, char **argv)
{
    const char *shape = NULL, *type = "bf16";
    const struct opt options[] = {
        {"shape", 's', OPT_TEXT, &shape, .arg = "SHAPE", .help = "a shape of -m synth:SHAPE"},
        {"type", 't', OPT_CHOICE, &type, .choices = "f32|bf16|q8_0|q4_0", .arg = "TYPE",
         .help = "number format of the matrices (bf16)"},
        {0}};
    const struct tool tool = {tool_name, "a synth: shape in, the same network as a GGUF file out",
                              "write-gguf --shape small-llama --type q8_0 small.gguf\n", NULL,
                              options, NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv);
    struct err e = {0};
    if (!shape || argc - first != 1)
        opt_usage(&tool, "expected --shape and one file to write, got %d", argc - first);
    if (run(shape, type, argv[first], &e))
        err_die(tool_name, &e);
    return 0;
}
