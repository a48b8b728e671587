/* checkpoint.c - opens a checkpoint by name, and reads the values of a role.
 *
 * config.json implies the tensors and their shapes; the safetensors headers list those that exist.
 * Both must agree exactly before any weight is used: no buffer gets its size from one and its
 * contents from the other. */
#include "lib/checkpoint/checkpoint.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/finite.h"
#include "lib/base/mem.h"
#include "lib/base/file.h"
#include "lib/checkpoint/gguf.h"
#include "lib/checkpoint/hub.h"
#include "lib/checkpoint/synth.h"
#include "lib/record/json.h"

static size_t place(const struct checkpoint *c, enum role r, size_t number)
{
    return (size_t)r * role_tensors_most(&c->config) + (role_per_layer(r) ? number : 0);
}

/* Checks shape and dtype of a tensor. */
static int check_tensor(const struct checkpoint *c, const struct tensor *t, const size_t want[2],
                        size_t rank, struct err *e)
{
    if (tensor_check_shape(c->folder, t, want, rank, e))
        return -1;
    if (!tensor_is_readable(t->dtype))
        return err_set(e, EXIT_BAD_DATA,
                       "%s: tensor %.200s: dtype expected F32, F16 or BF16, got %s", c->folder,
                       t->name, t->dtype);
    return 0;
}

/* Finds the codes of a quantized role; a tied head is the embedding and not stored again. */
static int find_codes(struct checkpoint *c, const char *name, enum dtype d, enum role r,
                      size_t layer, unsigned char *used, struct err *e)
{
    size_t rows, cols, at = place(c, r, layer), embed = place(c, ROLE_EMBED, 0);
    if (r == ROLE_HEAD && c->config.tied) {
        c->role[at] = c->role[embed];
        return 0;
    }
    role_shape(&c->config, r, &rows, &cols);
    int bad = quantization_open(&c->codes[at], c->tensors, c->folder, name, d, rows, cols, used, e);
    c->role[at] = bad ? NULL : safetensors_find(c->tensors, name);
    return bad;
}

/* The part of a tensor with the rows of q, k and v that belongs to role r. Its name is that of the
 * second naming, in which each has a tensor of its own. */
static const struct tensor *cut_piece(struct checkpoint *c, const struct tensor *all, enum role r,
                                      size_t layer)
{
    const size_t L = c->config.layers, row = all->bytes / all->shape[0];
    size_t rows, cols, first = 0;
    char name[FAMILY_NAME_MAX];
    if (!c->piece)
        c->piece = mem_zero(3 * L, sizeof *c->piece);
    for (int before = ROLE_Q; before < (int)r; before++) {
        role_shape(&c->config, (enum role)before, &rows, &cols);
        first += rows;
    }
    role_shape(&c->config, r, &rows, &cols);
    family_tensor_name(name, c->config.family->naming[1], &c->config, r, layer);
    struct tensor *piece = &c->piece[(size_t)(r - ROLE_Q) * L + layer];
    *piece = *all;
    piece->name = mem_text(name);
    piece->shape[0] = rows;
    piece->bytes = rows * row;
    piece->data = all->data + first * row;
    return piece;
}

/* Finds q, k or v in the tensor that has all three. */
static int find_piece(struct checkpoint *c, const char *name, enum role r, size_t layer,
                      unsigned char *used, struct err *e)
{
    const struct config *f = &c->config;
    const struct tensor *t = safetensors_find(c->tensors, name);
    const size_t want[2] = {(f->heads + 2 * f->kv_heads) * f->head_dim, f->width};
    if (!t)
        return err_set(e, EXIT_BAD_DATA, "%s: tensor %s is missing", c->folder, name);
    if (check_tensor(c, t, want, 2, e))
        return -1;
    used[t - safetensors_at(c->tensors, 0)] = 1;
    c->role[place(c, r, layer)] = cut_piece(c, t, r, layer);
    return 0;
}

/* Finds the tensor of a role; a tied head is the embedding, stored once or twice. */
static int find_role(struct checkpoint *c, const struct family_naming *names, enum role r,
                     size_t layer, unsigned char *used, struct err *e)
{
    char name[FAMILY_NAME_MAX];
    size_t want[2];
    family_tensor_name(name, names, &c->config, r, layer);
    enum dtype d = quantization_dtype(c->config.quant, &c->config, r, layer, DTYPE_F32);
    if (d != DTYPE_F32)
        return find_codes(c, name, d, r, layer, used, e);
    if (family_is_fused(names) && r >= ROLE_Q && r <= ROLE_V)
        return find_piece(c, name, r, layer, used, e);
    role_shape(&c->config, r, &want[0], &want[1]);
    const struct tensor *t = safetensors_find(c->tensors, name);
    const struct tensor *embed = c->role[place(c, ROLE_EMBED, 0)];
    int tied = r == ROLE_HEAD && c->config.tied;
    if (!t && !tied)
        return err_set(e, EXIT_BAD_DATA, "%s: tensor %s is missing%s", c->folder, name,
                       r == ROLE_HEAD ? " (and config.json does not tie it to the embedding: was "
                                        "the model saved without its head?)" : "");
    if (t && check_tensor(c, t, want, role_is_vector(r) ? 1 : 2, e))
        return -1;
    if (t && tied && (t->bytes != embed->bytes || memcmp(t->data, embed->data, t->bytes)))
        return err_set(e, EXIT_BAD_DATA, "%s: tensor %s differs from the embedding, to which "
                       "config.json ties it", c->folder, name);
    if (t)
        used[t - safetensors_at(c->tensors, 0)] = 1;
    c->role[place(c, r, layer)] = tied ? embed : t;
    return 0;
}

/* 1: a buffer that follows from the config: of the rotation, of the causal mask. */
static int is_buffer(const char *name)
{
    static const char *const tails[] = {"rotary_emb.inv_freq", "rotary_emb.original_inv_freq",
                                        "cos_cached", "sin_cached", "masked_bias", "causal_mask",
                                        "position_ids"};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        size_t m = strlen(tails[i]);
        if (n >= m && !strcmp(name + n - m, tails[i]) && (n == m || name[n - m - 1] == '.'))
            return 1;
    }
    return 0;
}

/* 1: `t` is the bias of a weight that has a role, and all zeros. */
static int is_zero_bias(const struct checkpoint *c, const struct tensor *t,
                        const unsigned char *used)
{
    static const char tail[] = ".bias";
    size_t n = strlen(t->name), m = sizeof tail - 1, zeros = 0;
    if (n < m || strcmp(t->name + n - m, tail))
        return 0;
    char *name = mem_format("%.*s.weight", (int)(n - m), t->name);
    const struct tensor *weight = safetensors_find(c->tensors, name);
    free(name);
    while (zeros < t->bytes && !t->data[zeros])
        zeros++;
    return zeros == t->bytes && weight && used[weight - safetensors_at(c->tensors, 0)];
}

/* The naming of the files, by the q of their first layer; else the family's own. */
static const struct family_naming *find_naming(const struct checkpoint *c)
{
    const struct family_naming *const *n = c->config.family->naming;
    char name[FAMILY_NAME_MAX];
    if (c->tokenizer)
        return &checkpoint_gguf_names;
    for (size_t i = 0; i < FAMILY_NAMINGS && n[i]; i++) {
        family_tensor_name(name, n[i], &c->config, ROLE_Q, 0);
        if (safetensors_find(c->tensors, name))
            return n[i];
    }
    return n[0];
}

/* Fills c->role. -1: a role without tensor, or a tensor without role. */
static int find_roles(struct checkpoint *c, struct err *e)
{
    const struct family_naming *names = find_naming(c);
    size_t n = safetensors_count(c->tensors);
    unsigned char *used = mem_zero(n, 1);
    int bad = checkpoint_find_ids(c, used, e);
    c->role = mem_zero(ROLE_COUNT * role_tensors_most(&c->config), sizeof *c->role);
    if (c->config.quant != QUANT_NONE)
        c->codes = mem_zero(ROLE_COUNT * role_tensors_most(&c->config), sizeof *c->codes);
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t l = 0; !bad && l < role_tensors(&c->config, (enum role)r); l++)
            bad = find_role(c, names, (enum role)r, l, used, e);
    for (size_t i = 0; !bad && i < n; i++) {
        const struct tensor *t = safetensors_at(c->tensors, i);
        if (!used[i] && !is_buffer(t->name) && !is_zero_bias(c, t, used))
            bad = err_set(e, EXIT_BAD_DATA,
                          "%s: tensor \"%.200s\" has no place in a %s of %zu layers", c->folder,
                          t->name, c->config.family->name, c->config.layers);
    }
    free(used);
    return bad;
}

/* The ids that only the added tokens of tokenizer.json state: the end of a turn in the family's
 * chat template, and a mask token that config.json does not name. */
static void take_token(struct config *c, const char *text, json_int_t id)
{
    if (!text || id < 0 || (size_t)id >= c->vocab)
        return;
    if (c->chat != CHAT_NONE && !strcmp(text, chat_end(c->chat)))
        c->eot = id;
    if (config_denoises(c) && c->mask < 0 && !strcmp(text, c->family->mask_token))
        c->mask = id;
}

static int take_tokens(struct config *c, const json_t *tokenizer, const char *folder,
                       struct err *e)
{
    json_t *token;
    size_t i;
    json_array_foreach(json_object_get(tokenizer, "added_tokens"), i, token)
        take_token(c, json_string_value(json_object_get(token, "content")),
                   json_integer_value(json_object_get(token, "id")));
    if (config_denoises(c) && c->mask < 0 && c->family->mask_id > 0 &&
        (size_t)c->family->mask_id < c->vocab)
        c->mask = c->family->mask_id;
    return config_denoises(c) && c->mask < 0
               ? err_set(e, EXIT_BAD_DATA, "%s: no mask token: expected the added token %s in "
                         "tokenizer.json, or mask_token_id in config.json", folder,
                         c->family->mask_token)
               : 0;
}

static int read_tokens(struct config *c, const char *folder, struct err *e)
{
    char *path = mem_format("%s/tokenizer.json", folder);
    int masked = !config_denoises(c) || c->mask >= 0;
    int none = (masked && c->chat == CHAT_NONE) || /* reading reports other errors */
               (access(path, F_OK) && errno == ENOENT);
    json_t *j = none ? NULL : json_file(path, TOKENIZER_FILE_LIMIT, e);
    int bad = none || j ? take_tokens(c, j, folder, e) : -1;
    json_decref(j);
    free(path);
    return bad;
}

/* Opens folder, config, tensors, roles, in this order: cheap checks come first. */
static int open_files(struct checkpoint *c, const char *name, struct err *e)
{
    if (gguf_is(name) && file_is_regular(name))
        return checkpoint_open_gguf(c, name, e) || find_roles(c, e) ||
               take_tokens(&c->config, c->tokenizer, name, e);
    c->folder = hub_folder(name, e);
    if (!c->folder || family_load(&c->config, c->folder, &c->extras, e))
        return -1;
    c->tensors = safetensors_open_folder(c->folder, e);
    return !c->tensors || find_roles(c, e) ? -1 : read_tokens(&c->config, c->folder, e);
}

/* Sets the seeds of the matrices of synth:; a tied head has that of the embedding. */
static void draw_all(struct checkpoint *c, uint64_t seed)
{
    c->config.synth_seed = seed;
    c->normal = synth_table();
    c->draw = mem_zero(ROLE_COUNT * role_tensors_most(&c->config), sizeof *c->draw);
    checkpoint_spread_ids(c);
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t l = 0; l < role_tensors(&c->config, (enum role)r); l++) {
            enum role drawn = r == ROLE_HEAD && c->config.tied ? ROLE_EMBED : (enum role)r;
            c->draw[place(c, (enum role)r, l)] =
                (struct draw){c->normal, seed, (uint32_t)drawn, (uint32_t)l};
        }
}

void checkpoint_draw(struct checkpoint *c, const struct config *shape, uint64_t seed)
{
    *c = (struct checkpoint){.config = *shape};
    c->config.synth = 1;
    draw_all(c, seed);
}

int checkpoint_open(struct checkpoint *c, const char *name, uint64_t synth_seed, struct err *e)
{
    return checkpoint_open_ignoring(c, name, synth_seed, NULL, e);
}

int checkpoint_open_ignoring(struct checkpoint *c, const char *name, uint64_t synth_seed,
                             const char *keys, struct err *e)
{
    static const char synth[] = "synth:";
    *c = (struct checkpoint){.extras.ignore = keys};
    if (!strncmp(name, synth, sizeof synth - 1)) {
        if (synth_config(&c->config, name + sizeof synth - 1, e))
            return -1;
        draw_all(c, synth_seed);
        return 0;
    }
    if (!open_files(c, name, e))
        return 0;
    checkpoint_close(c);
    return -1;
}

/* The codes of a packed matrix, or NULL. */
static const struct codes *codes_of(const struct checkpoint *c, enum role r, size_t layer)
{
    enum role stored = r == ROLE_HEAD && c->config.tied ? ROLE_EMBED : r;
    const struct codes *q = c->codes ? &c->codes[place(c, stored, layer)] : NULL;
    return q && q->scale ? q : NULL;
}

/* The place in the file of value s E/2 + i of a head, where s is 0 or 1. In pairs it is 2i + s.
 * Where only the first R values are rotated, the file has these in halves of R/2. */
static size_t place_of_value(const struct checkpoint *c, size_t at)
{
    const size_t half = c->config.head_dim / 2, turned = c->config.rope_dims / 2;
    const size_t i = at % half, s = at / half;
    if (c->pairs)
        return 2 * i + s;
    return i < turned ? s * turned + i : 2 * turned + s * (half - turned) + i - turned;
}

/* The rows of q or k, or their gains, in the order of the rotation. */
static void turn_rows(const struct checkpoint *c, const struct tensor *t, size_t first,
                      size_t count, float *out)
{
    const size_t cols = t->rank > 1 ? t->shape[1] : 1;
    for (size_t row = first; row < first + count; row++) {
        const size_t at = row % c->config.head_dim;
        tensor_floats(t, (row - at + place_of_value(c, at)) * cols, cols,
                      out + (row - first) * cols);
    }
}

/* 1: values of heads have another order in the file (checkpoint-gguf.c, or a partial rotation).
 * Codes have the order of the rotation. */
static int is_turned(const struct checkpoint *c, enum role r)
{
    const int partial = c->config.rope_dims < c->config.head_dim;
    return r == ROLE_Q || r == ROLE_K ? c->pairs || partial
                                      : (r == ROLE_Q_NORM || r == ROLE_K_NORM) && partial;
}

/* Rows first..first+count of a role. */
static void read_rows(const struct checkpoint *c, enum role r, size_t layer, size_t first,
                      size_t count, float *out)
{
    size_t rows, cols;
    const struct codes *q = codes_of(c, r, layer);
    role_shape(&c->config, r, &rows, &cols);
    if (q) {
        quant_floats(q, cols, first, count, out);
    } else if (c->role && is_turned(c, r)) {
        turn_rows(c, c->role[place(c, r, layer)], first, count, out);
    } else if (c->role) {
        tensor_floats(c->role[place(c, r, layer)], first * cols, count * cols, out);
    } else if (role_is_norm(r)) {
        for (size_t i = 0; i < count; i++)
            out[i] = 1;
    } else {
        synth_floats(&c->draw[place(c, r, layer)], first * cols, count * cols, out);
    }
}

void checkpoint_floats(const struct checkpoint *c, enum role r, size_t layer, float *out)
{
    size_t rows, cols;
    role_shape(&c->config, r, &rows, &cols);
    read_rows(c, r, layer, 0, rows, out);
}

static void source_floats(const struct mat_source *s, size_t first, size_t count, float *out)
{
    const struct weight *w = s->ctx;
    read_rows(w->checkpoint, w->role, w->layer, first, count, out);
    if (s->odd && !finite_floats(out, count * s->cols))
        finite_mark(s);
}

const struct tensor *checkpoint_tensor(const struct checkpoint *c, enum role r, size_t layer)
{
    return c->role ? c->role[place(c, r, layer)] : NULL;
}

/* The stored values if they can be read in place; NULL: unaligned. */
static const uint16_t *in_place(const struct tensor *t)
{
    if (!t || strcmp(t->dtype, "BF16") || (uintptr_t)t->data % _Alignof(uint16_t))
        return NULL;
    return (const uint16_t *)(const void *)t->data;
}

struct mat_source checkpoint_source(const struct weight *w)
{
    struct mat_source s = {.floats = source_floats, .ctx = w};
    role_shape(&w->checkpoint->config, w->role, &s.rows, &s.cols);
    if (!is_turned(w->checkpoint, w->role))
        s.bf16 = in_place(checkpoint_tensor(w->checkpoint, w->role, w->layer));
    s.q = codes_of(w->checkpoint, w->role, w->layer);
    if (w->checkpoint->draw)
        s.draw = &w->checkpoint->draw[place(w->checkpoint, w->role, w->layer)];
    return s;
}

/* A chunk of values, the first of them number `at` of its tensor. */
static int check_chunk(const struct checkpoint *c, const struct tensor *t, const float *v,
                       size_t n, size_t at, int *zero, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(v[i]))
            return err_set(e, EXIT_BAD_DATA, "%s: tensor %s: value %zu expected finite, got %f",
                           c->folder, t->name, at + i, (double)v[i]);
        *zero &= v[i] == 0;
    }
    return 0;
}

void checkpoint_advise(const struct weight *w, int need)
{
    const struct tensor *t = checkpoint_tensor(w->checkpoint, w->role, w->layer);
    if (!t)
        return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)t->data / page * page;
    madvise((void *)begin, (uintptr_t)t->data + t->bytes - begin,
            need ? MADV_WILLNEED : MADV_DONTNEED);
}

int checkpoint_check_tensor(const struct checkpoint *c, enum role r, size_t layer, struct err *e)
{
    const struct tensor *t = checkpoint_tensor(c, r, layer);
    size_t rows, cols, n;
    role_shape(&c->config, r, &rows, &cols);
    size_t most = cols < 4096 ? 4096 / cols : 1; /* rows at a time */
    float *v = mem_alloc(most * cols * sizeof *v);
    int zero = 1, bad = 0;
    for (size_t i = 0; i < rows && !bad; i += n) {
        n = rows - i < most ? rows - i : most;
        read_rows(c, r, layer, i, n, v);
        bad = check_chunk(c, t, v, n * cols, i * cols, &zero, e);
    }
    free(v);
    if (!bad && zero && (role_is_norm(r) || !role_is_vector(r))) /* a bias may be all zeros */
        bad = err_set(e, EXIT_BAD_DATA, "%s: tensor %s: every value is zero", c->folder, t->name);
    return bad;
}

int checkpoint_check_values(const struct checkpoint *c, struct err *e)
{
    for (int r = 0; c->role && r < ROLE_COUNT; r++)
        for (size_t l = 0; l < role_tensors(&c->config, (enum role)r); l++) {
            const struct weight w = {c, (enum role)r, l};
            int bad = checkpoint_check_tensor(c, w.role, l, e);
            checkpoint_advise(&w, 0);
            if (bad)
                return -1;
        }
    return c->tensors ? safetensors_unchanged(c->tensors, e) : 0;
}

const char *checkpoint_dtype(const struct checkpoint *c)
{
    if (!c->role)
        return "BF16";
    if (c->config.quant != QUANT_NONE)
        return c->config.source_dtype;
    const enum role first = c->config.taps ? ROLE_FUSE : ROLE_EMBED;
    const char *dtype = c->role[place(c, first, 0)]->dtype;
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t l = 0; l < role_tensors(&c->config, (enum role)r); l++)
            if (!role_is_vector((enum role)r) &&
                strcmp(dtype, c->role[place(c, (enum role)r, l)]->dtype))
                return "F32";
    return tensor_has_blocks(dtype) ? "F32" : dtype;
}

void checkpoint_close(struct checkpoint *c)
{
    for (size_t i = 0; c->codes && i < ROLE_COUNT * role_tensors_most(&c->config); i++)
        quantization_close(&c->codes[i]);
    free(c->codes);
    c->codes = NULL;
    for (size_t i = 0; c->piece && i < 3 * c->config.layers; i++)
        free(c->piece[i].name);
    free(c->piece);
    c->piece = NULL;
    free(c->ids);
    c->ids = NULL;
    safetensors_close(c->tensors);
    free(c->role);
    free(c->normal);
    free(c->draw);
    free(c->folder);
    json_decref(c->tokenizer);
    c->tokenizer = NULL;
    family_extras_free(&c->extras);
    c->tensors = NULL;
    c->role = NULL;
    c->normal = NULL;
    c->draw = NULL;
    c->folder = NULL;
}
