/* checkpoint.c - see checkpoint.h.
 *
 * config.json says which tensors there must be and of what shape; the safetensors headers say what
 * there is. Both must say the same, in both directions, before a byte of weights is used: nothing
 * is ever sized by one and filled by the other.
 */
#include "lib/model/checkpoint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/io/hub.h"
#include "lib/io/json.h"
#include "lib/model/roles.h"
#include "lib/model/synth.h"

enum { TOKENIZER_MAX_BYTES = 128 << 20 };

static size_t place(const struct checkpoint *c, enum role r, size_t layer)
{
    return (size_t)r * c->config.layers + (role_per_layer(r) ? layer : 0);
}

/* "[4096, 1024]" */
static void shape_text(char text[160], const size_t *shape, size_t rank)
{
    size_t n = 0;
    text[n++] = '[';
    for (size_t i = 0; i < rank; i++)
        n += (size_t)snprintf(text + n, 160 - n, "%s%zu", i ? ", " : "", shape[i]);
    snprintf(text + n, 160 - n, "]");
}

/* Shape and dtype of one tensor against its role. */
static int check_tensor(const struct checkpoint *c, enum role r, const struct tensor *t,
                        struct err *e)
{
    size_t want[2], rank = role_is_norm(r) ? 1 : 2;
    role_shape(&c->config, r, &want[0], &want[1]);
    if (t->rank != rank || memcmp(t->shape, want, rank * sizeof *want)) {
        char expected[160], got[160];
        shape_text(expected, want, rank);
        shape_text(got, t->shape, t->rank);
        return err_set(e, EXIT_BAD_DATA,
                       "%s: tensor %.200s: shape expected %s by config.json, got %s", c->folder,
                       t->name, expected, got);
    }
    if (strcmp(t->dtype, "F32") && strcmp(t->dtype, "F16") && strcmp(t->dtype, "BF16"))
        return err_set(e, EXIT_BAD_DATA,
                       "%s: tensor %.200s: dtype expected F32, F16 or BF16, got %s", c->folder,
                       t->name, t->dtype);
    return 0;
}

/* The tensor of a role; a tied head is the embedding, stored twice or not. */
static int find_role(struct checkpoint *c, enum scheme scheme, enum role r, size_t layer,
                     unsigned char *used, struct err *e)
{
    char name[ROLE_NAME_MAX];
    role_tensor_name(name, scheme, r, layer);
    const struct tensor *t = tensors_find(c->tensors, name);
    const struct tensor *embed = c->role[place(c, ROLE_EMBED, 0)];
    int tied = r == ROLE_HEAD && c->config.tied;
    if (!t && !tied)
        return err_set(e, EXIT_BAD_DATA, "%s: tensor %s is missing%s", c->folder, name,
                       r == ROLE_HEAD ? " (and config.json does not tie it to the embedding)" : "");
    if (t && check_tensor(c, r, t, e))
        return -1;
    if (t && tied && (t->bytes != embed->bytes || memcmp(t->data, embed->data, t->bytes)))
        return err_set(e, EXIT_BAD_DATA, "%s: tensor %s differs from the embedding, to which "
                       "config.json ties it", c->folder, name);
    if (t)
        used[t - tensors_at(c->tensors, 0)] = 1;
    c->role[place(c, r, layer)] = tied ? embed : t;
    return 0;
}

/* A buffer of older exports that the config already says. */
static int is_buffer(const char *name)
{
    static const char tail[] = "rotary_emb.inv_freq";
    size_t n = strlen(name), m = sizeof tail - 1;
    return n >= m && !strcmp(name + n - m, tail);
}

/* Fills c->role; every tensor has a role, every role a tensor. */
static int find_roles(struct checkpoint *c, struct err *e)
{
    char name[ROLE_NAME_MAX];
    role_tensor_name(name, SCHEME_LLADA, ROLE_EMBED, 0);
    enum scheme scheme = c->config.arch == ARCH_LLADA && tensors_find(c->tensors, name)
                             ? SCHEME_LLADA : SCHEME_LLAMA;
    size_t n = tensors_count(c->tensors);
    unsigned char *used = mem_zero(n, 1);
    int bad = 0;
    c->role = mem_zero((size_t)ROLE_COUNT * c->config.layers, sizeof *c->role);
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t l = 0; !bad && l < role_layers(&c->config, (enum role)r); l++)
            bad = find_role(c, scheme, (enum role)r, l, used, e);
    for (size_t i = 0; !bad && i < n; i++)
        if (!used[i] && !is_buffer(tensors_at(c->tensors, i)->name))
            bad = err_set(e, EXIT_BAD_DATA,
                          "%s: tensor \"%.200s\" has no place in a %s of %zu layers", c->folder,
                          tensors_at(c->tensors, i)->name,
                          c->config.arch == ARCH_LLADA ? "llada" : "llama", c->config.layers);
    free(used);
    return bad;
}

/* Chat header tokens and the end-of-turn id, from the added tokens of tokenizer.json. A missing or
 * broken file is for tokenizer_load to report. */
static void read_chat_tokens(struct config *c, const char *folder)
{
    char *path = mem_format("%s/tokenizer.json", folder);
    json_t *j = file_exists(path) ? json_file(path, TOKENIZER_MAX_BYTES, NULL) : NULL, *token;
    size_t i;
    json_array_foreach(json_object_get(j, "added_tokens"), i, token) {
        const char *text = json_string_value(json_object_get(token, "content"));
        json_int_t id = json_integer_value(json_object_get(token, "id"));
        if (text && !strcmp(text, "<|start_header_id|>"))
            c->instruct = 1;
        if (text && !strcmp(text, "<|eot_id|>") && id >= 0 && (size_t)id < c->vocab)
            c->eot = id;
    }
    json_decref(j);
    free(path);
}

/* Folder, config, tensors, roles, in this order: what is cheap to refuse is refused first. */
static int open_files(struct checkpoint *c, const char *name, struct err *e)
{
    c->folder = hub_folder(name, e);
    if (!c->folder || config_load(&c->config, c->folder, e))
        return -1;
    c->tensors = tensors_open_folder(c->folder, e);
    if (!c->tensors || find_roles(c, e))
        return -1;
    read_chat_tokens(&c->config, c->folder);
    return 0;
}

int checkpoint_open(struct checkpoint *c, const char *name, uint64_t synth_seed, struct err *e)
{
    static const char synth[] = "synth:";
    *c = (struct checkpoint){0};
    if (!strncmp(name, synth, sizeof synth - 1)) {
        if (config_synth(&c->config, name + sizeof synth - 1, e))
            return -1;
        c->config.synth_seed = synth_seed;
        c->normal = synth_table();
        return 0;
    }
    if (!open_files(c, name, e))
        return 0;
    checkpoint_close(c);
    return -1;
}

const struct tensor *checkpoint_tensor(const struct checkpoint *c, enum role r, size_t layer)
{
    return c->role ? c->role[place(c, r, layer)] : NULL;
}

static float from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* IEEE half to float, exactly. */
static float from_half(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 1023;
    if (exponent == 31)
        return from_bits(sign | 0x7f800000 | mantissa << 13);
    if (exponent == 0) {
        float f = (float)mantissa * 0x1p-24f;
        return sign ? -f : f;
    }
    return from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

/* n values of a tensor, from value `first` on. Its data have any alignment. */
static void widen(const struct tensor *t, size_t first, size_t n, float *out)
{
    if (!strcmp(t->dtype, "F32")) {
        memcpy(out, t->data + 4 * first, 4 * n);
        return;
    }
    int half = !strcmp(t->dtype, "F16");
    for (size_t i = 0; i < n; i++) {
        uint16_t v;
        memcpy(&v, t->data + 2 * (first + i), 2);
        out[i] = half ? from_half(v) : from_bits((uint32_t)v << 16);
    }
}

void checkpoint_floats(const struct checkpoint *c, enum role r, size_t layer, float *out)
{
    size_t rows, cols;
    role_shape(&c->config, r, &rows, &cols);
    if (c->role) {
        widen(c->role[place(c, r, layer)], 0, rows * cols, out);
    } else if (role_is_norm(r)) {
        for (size_t i = 0; i < rows; i++)
            out[i] = 1;
    } else {
        enum role drawn = r == ROLE_HEAD && c->config.tied ? ROLE_EMBED : r;
        synth_floats(c->normal, c->config.synth_seed, (uint32_t)drawn,
                     (uint32_t)(role_per_layer(r) ? layer : 0), rows * cols, out);
    }
}

static int check_values(const struct checkpoint *c, const struct tensor *t, enum role r,
                        struct err *e)
{
    enum { CHUNK = 4096 };
    float v[CHUNK];
    size_t rows, cols, n;
    int zero = 1;
    role_shape(&c->config, r, &rows, &cols);
    for (size_t i = 0; i < rows * cols; i += n) {
        n = rows * cols - i < CHUNK ? rows * cols - i : CHUNK;
        widen(t, i, n, v);
        for (size_t j = 0; j < n; j++) {
            if (!isfinite(v[j]))
                return err_set(e, EXIT_BAD_DATA, "%s: tensor %s: value %zu expected finite, got %f",
                               c->folder, t->name, i + j, (double)v[j]);
            zero &= v[j] == 0;
        }
    }
    return zero
             ? err_set(e, EXIT_BAD_DATA, "%s: tensor %s: every value is zero", c->folder, t->name)
             : 0;
}

int checkpoint_check_values(const struct checkpoint *c, struct err *e)
{
    for (int r = 0; c->role && r < ROLE_COUNT; r++)
        for (size_t l = 0; l < role_layers(&c->config, (enum role)r); l++)
            if (check_values(c, c->role[place(c, (enum role)r, l)], (enum role)r, e))
                return -1;
    return c->tensors ? tensors_unchanged(c->tensors, e) : 0;
}

const char *checkpoint_dtype(const struct checkpoint *c)
{
    if (!c->role)
        return "BF16";
    const char *dtype = c->role[place(c, ROLE_EMBED, 0)]->dtype;
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t l = 0; l < role_layers(&c->config, (enum role)r); l++)
            if (!role_is_norm((enum role)r) &&
                strcmp(dtype, c->role[place(c, (enum role)r, l)]->dtype))
                return "F32";
    return dtype;
}

void checkpoint_close(struct checkpoint *c)
{
    tensors_close(c->tensors);
    free(c->role);
    free(c->normal);
    free(c->folder);
    c->tensors = NULL;
    c->role = NULL;
    c->normal = NULL;
    c->folder = NULL;
}
