/* checkpoint.c - opens a checkpoint by name, and reads the values of a role.
 * config.json implies the tensors and their shapes; the safetensors headers list those that exist.
 * Both must agree exactly: no buffer gets its size from one and its contents from the other. */
#include "lib/checkpoint/checkpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/finite.h"
#include "lib/base/mem.h"
#include "lib/base/file.h"
#include "lib/checkpoint/gguf.h"
#include "lib/checkpoint/hub.h"
#include "lib/checkpoint/read_ahead.h"
#include "lib/checkpoint/synth.h"

static size_t place(const struct checkpoint *model, enum role role, size_t number)
{
    return (size_t)role * role_tensors_most(&model->config) + (role_per_layer(role) ? number : 0);
}

/* Checks shape and dtype of a tensor. */
static int check_tensor(const struct checkpoint *model, const struct tensor *tensor,
                        const size_t want[2], size_t rank, struct err *e)
{
    if (tensor_check_shape(model->folder, tensor, want, rank, e))
        return -1;
    if (!tensor_is_readable(tensor->dtype))
        return err_set(e, EXIT_BAD_DATA,
                       "%s: tensor %.200s: dtype expected F32, F16 or BF16, got %s", model->folder,
                       tensor->name, tensor->dtype);
    return 0;
}

/* Opens the codes of a quantized role. A tied head is the embedding, which is stored once. */
static int find_codes(struct checkpoint *model, const char *name, enum dtype dtype, enum role role,
                      size_t layer, unsigned char *used, struct err *e)
{
    size_t rows, cols, at = place(model, role, layer), embed = place(model, ROLE_EMBED, 0);
    if (role == ROLE_HEAD && model->config.tied) {
        model->role[at] = model->role[embed];
        return 0;
    }
    role_shape(&model->config, role, &rows, &cols);
    int bad = quantization_open(&model->codes[at], model->tensors, model->folder, name, dtype, rows,
                                cols, used, e);
    model->role[at] = bad ? NULL : safetensors_find(model->tensors, name);
    return bad;
}

/* Cuts the rows of one role out of a tensor that holds the rows of q, k and v. The second naming of
 * the family, in which each role has a tensor, names the result. */
static const struct tensor *cut_piece(struct checkpoint *model, const struct tensor *all,
                                      enum role role, size_t layer)
{
    const size_t L = model->config.layers, row = all->bytes / all->shape[0];
    size_t rows, cols, first = 0;
    char name[FAMILY_NAME_MAX];
    if (!model->piece)
        model->piece = mem_zero(3 * L, sizeof *model->piece);
    for (int before = ROLE_Q; before < (int)role; before++) {
        role_shape(&model->config, (enum role)before, &rows, &cols);
        first += rows;
    }
    role_shape(&model->config, role, &rows, &cols);
    family_tensor_name(name, model->config.family->naming[1], &model->config, role, layer);
    struct tensor *piece = &model->piece[(size_t)(role - ROLE_Q) * L + layer];
    *piece = *all;
    piece->name = mem_text(name);
    piece->shape[0] = rows;
    piece->bytes = rows * row;
    piece->data = all->data + first * row;
    return piece;
}

/* Finds q, k or v in the tensor that has all three. */
static int find_piece(struct checkpoint *model, const char *name, enum role role, size_t layer,
                      unsigned char *used, struct err *e)
{
    const struct config *shape = &model->config;
    const struct tensor *tensor = safetensors_find(model->tensors, name);
    const size_t want[2] = {(shape->heads + 2 * shape->kv_heads) * shape->head_dim, shape->width};
    if (!tensor)
        return err_set(e, EXIT_BAD_DATA, "%s: tensor %s is missing", model->folder, name);
    if (check_tensor(model, tensor, want, 2, e))
        return -1;
    used[tensor - safetensors_at(model->tensors, 0)] = 1;
    model->role[place(model, role, layer)] = cut_piece(model, tensor, role, layer);
    return 0;
}

/* Finds the tensor of a role. A tied head may be stored too; then it must equal the embedding. */
static int find_role(struct checkpoint *model, const struct family_naming *names, enum role role,
                     size_t layer, unsigned char *used, struct err *e)
{
    char name[FAMILY_NAME_MAX];
    size_t want[2];
    family_tensor_name(name, names, &model->config, role, layer);
    enum dtype dtype = quantization_dtype(model->config.quant, &model->config, role, layer,
                                          DTYPE_F32);
    if (dtype != DTYPE_F32)
        return find_codes(model, name, dtype, role, layer, used, e);
    if (family_is_fused(names) && role >= ROLE_Q && role <= ROLE_V)
        return find_piece(model, name, role, layer, used, e);
    role_shape(&model->config, role, &want[0], &want[1]);
    const struct tensor *tensor = safetensors_find(model->tensors, name);
    const struct tensor *embed = model->role[place(model, ROLE_EMBED, 0)];
    int tied = role == ROLE_HEAD && model->config.tied;
    if (!tensor && !tied)
        return err_set(e, EXIT_BAD_DATA, "%s: tensor %s is missing%s", model->folder, name,
                       role == ROLE_HEAD ? " (and config.json does not tie it to the embedding: "
                                           "was the model saved without its head?)" : "");
    if (tensor && check_tensor(model, tensor, want, role_is_vector(role) ? 1 : 2, e))
        return -1;
    if (tensor && tied &&
        (tensor->bytes != embed->bytes || memcmp(tensor->data, embed->data, tensor->bytes)))
        return err_set(e, EXIT_BAD_DATA, "%s: tensor %s differs from the embedding, to which "
                       "config.json ties it", model->folder, name);
    if (tensor)
        used[tensor - safetensors_at(model->tensors, 0)] = 1;
    model->role[place(model, role, layer)] = tied ? embed : tensor;
    return 0;
}

/* 1: a buffer of the rotation or of the causal mask, whose values follow from the config. */
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

/* 1: `tensor` is the bias of a weight that has a role, and all zeros. */
static int is_zero_bias(const struct checkpoint *model, const struct tensor *tensor,
                        const unsigned char *used)
{
    static const char tail[] = ".bias";
    size_t n = strlen(tensor->name), m = sizeof tail - 1, zeros = 0;
    if (n < m || strcmp(tensor->name + n - m, tail))
        return 0;
    char *name = mem_format("%.*s.weight", (int)(n - m), tensor->name);
    const struct tensor *weight = safetensors_find(model->tensors, name);
    free(name);
    while (zeros < tensor->bytes && !tensor->data[zeros])
        zeros++;
    return zeros == tensor->bytes && weight && used[weight - safetensors_at(model->tensors, 0)];
}

/* The naming that has a tensor for q of the first layer; if none has, the family's first naming. */
static const struct family_naming *find_naming(const struct checkpoint *model)
{
    const struct family_naming *const *n = model->config.family->naming;
    char name[FAMILY_NAME_MAX];
    if (model->tokenizer)
        return &checkpoint_gguf_names;
    for (size_t i = 0; i < FAMILY_NAMINGS && n[i]; i++) {
        family_tensor_name(name, n[i], &model->config, ROLE_Q, 0);
        if (safetensors_find(model->tensors, name))
            return n[i];
    }
    return n[0];
}

/* Fills model->role. -1: a role without tensor, or a tensor without role. */
static int find_roles(struct checkpoint *model, struct err *e)
{
    const struct family_naming *names = find_naming(model);
    size_t n = safetensors_count(model->tensors);
    unsigned char *used = mem_zero(n, 1);
    int bad = checkpoint_find_ids(model, used, e) || checkpoint_gguf_rope(model, used, e);
    model->role = mem_zero(ROLE_COUNT * role_tensors_most(&model->config), sizeof *model->role);
    if (model->config.quant != QUANT_NONE)
        model->codes = mem_zero(ROLE_COUNT * role_tensors_most(&model->config),
                                sizeof *model->codes);
    for (int at = 0; at < ROLE_COUNT; at++)
        for (size_t layer = 0; !bad && layer < role_tensors(&model->config, (enum role)at); layer++)
            bad = find_role(model, names, (enum role)at, layer, used, e);
    for (size_t i = 0; !bad && i < n; i++) {
        const struct tensor *tensor = safetensors_at(model->tensors, i);
        if (!used[i] && !is_buffer(tensor->name) && !is_zero_bias(model, tensor, used))
            bad = err_set(e, EXIT_BAD_DATA,
                          "%s: tensor \"%.200s\" has no place in a %s of %zu layers", model->folder,
                          tensor->name, model->config.family->name, model->config.layers);
    }
    free(used);
    return bad;
}

/* Sets eot or mask if `text` is this token. Only the added tokens of tokenizer.json state them. */
static void take_token(struct config *config, const char *text, json_int_t id)
{
    if (!text || id < 0 || (size_t)id >= config->vocab)
        return;
    if (config->chat != CHAT_NONE && !strcmp(text, chat_end(config->chat)))
        config->eot = id;
    if (config_denoises(config) && config->mask < 0 && !strcmp(text, config->family->mask_token))
        config->mask = id;
}

static int take_tokens(struct config *config, const json_t *tokenizer, const char *folder,
                       struct err *e)
{
    json_t *token;
    size_t i;
    json_array_foreach(json_object_get(tokenizer, "added_tokens"), i, token)
        take_token(config, json_string_value(json_object_get(token, "content")),
                   json_integer_value(json_object_get(token, "id")));
    if (config_denoises(config) && config->mask < 0 && config->family->mask_id > 0 &&
        (size_t)config->family->mask_id < config->vocab)
        config->mask = config->family->mask_id;
    return config_denoises(config) && config->mask < 0
               ? err_set(e, EXIT_BAD_DATA, "%s: no mask token: expected the added token %s in "
                         "tokenizer.json, or mask_token_id in config.json", folder,
                         config->family->mask_token)
               : 0;
}

static int read_tokens(struct checkpoint *model, struct err *e)
{
    struct config *config = &model->config;
    char *path = mem_format("%s/tokenizer.json", model->folder);
    int masked = !config_denoises(config) || config->mask >= 0;
    int none = (masked && config->chat == CHAT_NONE) || /* reading reports other errors */
               (access(path, F_OK) && errno == ENOENT);
    free(path);
    if (!none && tokenizer_read(&model->file, model->folder, e))
        return -1;
    return take_tokens(config, model->file.json, model->folder, e);
}

/* Opens folder, config, tensors, roles in this order, so that cheap checks come first. */
static int open_files(struct checkpoint *model, const char *name, struct err *e)
{
    if (gguf_is(name) && file_is_regular(name))
        return checkpoint_open_gguf(model, name, e) || find_roles(model, e) ||
               take_tokens(&model->config, model->tokenizer, name, e);
    model->folder = hub_folder(name, e);
    if (!model->folder || family_load(&model->config, model->folder, &model->extras, e))
        return -1;
    model->tensors = safetensors_open_folder(model->folder, e);
    if (!model->tensors || find_roles(model, e))
        return -1;
    if (model->reads_all)
        model->ahead = read_ahead_start(model->tensors, READ_AHEAD_BYTES);
    return read_tokens(model, e);
}

/* Sets the seeds of all matrices of synth:. A tied head has the seed of the embedding. */
static void draw_all(struct checkpoint *model, uint64_t seed)
{
    model->config.synth_seed = seed;
    model->normal = synth_table();
    model->draw = mem_zero(ROLE_COUNT * role_tensors_most(&model->config), sizeof *model->draw);
    checkpoint_spread_ids(model);
    for (int at = 0; at < ROLE_COUNT; at++)
        for (size_t layer = 0; layer < role_tensors(&model->config, (enum role)at); layer++) {
            enum role drawn = at == ROLE_HEAD && model->config.tied ? ROLE_EMBED : (enum role)at;
            model->draw[place(model, (enum role)at, layer)] =
                (struct draw){model->normal, seed, (uint32_t)drawn, (uint32_t)layer};
        }
}

void checkpoint_draw(struct checkpoint *model, const struct config *shape, uint64_t seed)
{
    *model = (struct checkpoint){.config = *shape};
    model->config.synth = 1;
    draw_all(model, seed);
}

int checkpoint_open(struct checkpoint *model, const char *name, uint64_t synth_seed, struct err *e)
{
    const struct checkpoint_opening how = {.synth_seed = synth_seed};
    return checkpoint_open_with(model, name, &how, e);
}

int checkpoint_open_with(struct checkpoint *model, const char *name,
                         const struct checkpoint_opening *how, struct err *e)
{
    static const char synth[] = "synth:";
    *model = (struct checkpoint){.extras.ignore = how->ignore, .reads_all = how->reads_all};
    if (!strncmp(name, synth, sizeof synth - 1)) {
        if (synth_config(&model->config, name + sizeof synth - 1, e))
            return -1;
        draw_all(model, how->synth_seed);
        return 0;
    }
    if (!open_files(model, name, e))
        return 0;
    checkpoint_close(model);
    return -1;
}

/* The codes of a packed matrix, or NULL. */
static const struct codes *codes_of(const struct checkpoint *model, enum role role, size_t layer)
{
    enum role stored = role == ROLE_HEAD && model->config.tied ? ROLE_EMBED : role;
    const struct codes *codes = model->codes ? &model->codes[place(model, stored, layer)] : NULL;
    return codes && codes->scale ? codes : NULL;
}

/* The place in the file of value `at` = s E/2 + i of a head, s = 0, 1. In pairs (checkpoint-gguf.c)
 * it is 2i + s. If only the first R values are rotated, the file has them in two halves of R/2. */
static size_t place_of_value(const struct checkpoint *model, size_t at)
{
    const size_t half = model->config.head_dim / 2, turned = model->config.rope_dims / 2;
    const size_t i = at % half, s = at / half;
    if (model->pairs)
        return 2 * i + s;
    return i < turned ? s * turned + i : 2 * turned + s * (half - turned) + i - turned;
}

/* out = rows of q or k, or values of their gains, in the order that the rotation here needs. */
static void turn_rows(const struct checkpoint *model, const struct tensor *tensor, size_t first,
                      size_t count, float *out)
{
    const size_t cols = tensor->rank > 1 ? tensor->shape[1] : 1;
    for (size_t row = first; row < first + count; row++) {
        const size_t at = row % model->config.head_dim;
        tensor_floats(tensor, (row - at + place_of_value(model, at)) * cols, cols,
                      out + (row - first) * cols);
    }
}

/* 1: the file has the values of heads in another order than the rotation here: pairs of GGUF, or a
 * partial rotation. Codes already have the order of the rotation. */
static int is_turned(const struct checkpoint *model, enum role of)
{
    const int partial = model->config.rope_dims < model->config.head_dim;
    return of == ROLE_Q || of == ROLE_K ? model->pairs || partial
                                        : (of == ROLE_Q_NORM || of == ROLE_K_NORM) && partial;
}

/* out[count, cols] = rows first..first+count-1 of a tensor of a role. */
static void read_rows(const struct checkpoint *model, enum role role, size_t layer, size_t first,
                      size_t count, float *out)
{
    size_t rows, cols;
    const struct codes *codes = codes_of(model, role, layer);
    role_shape(&model->config, role, &rows, &cols);
    if (codes) {
        quant_floats(codes, cols, first, count, out);
    } else if (model->role && is_turned(model, role)) {
        turn_rows(model, model->role[place(model, role, layer)], first, count, out);
    } else if (model->role) {
        tensor_floats(model->role[place(model, role, layer)], first * cols, count * cols, out);
    } else if (role_is_norm(role)) {
        for (size_t i = 0; i < count; i++)
            out[i] = 1;
    } else {
        synth_floats(&model->draw[place(model, role, layer)], first * cols, count * cols, out);
    }
}

void checkpoint_floats(const struct checkpoint *model, enum role role, size_t layer, float *out)
{
    size_t rows, cols;
    role_shape(&model->config, role, &rows, &cols);
    read_rows(model, role, layer, 0, rows, out);
}

static void source_floats(const struct mat_source *source, size_t first, size_t count, float *out)
{
    const struct weight *of = source->ctx;
    read_rows(of->checkpoint, of->role, of->layer, first, count, out);
    if (source->odd && !finite_floats(out, count * source->cols))
        finite_mark(source);
}

const struct tensor *checkpoint_tensor(const struct checkpoint *model, enum role role, size_t layer)
{
    return model->role ? model->role[place(model, role, layer)] : NULL;
}

/* The stored values if they can be read in place; NULL: not bf16, or not aligned. */
static const uint16_t *in_place(const struct tensor *tensor)
{
    if (!tensor || strcmp(tensor->dtype, "BF16") || (uintptr_t)tensor->data % _Alignof(uint16_t))
        return NULL;
    return (const uint16_t *)(const void *)tensor->data;
}

struct mat_source checkpoint_source(const struct weight *of)
{
    struct mat_source source = {.floats = source_floats, .ctx = of};
    role_shape(&of->checkpoint->config, of->role, &source.rows, &source.cols);
    if (!is_turned(of->checkpoint, of->role))
        source.bf16 = in_place(checkpoint_tensor(of->checkpoint, of->role, of->layer));
    source.q = codes_of(of->checkpoint, of->role, of->layer);
    if (of->checkpoint->draw)
        source.draw = &of->checkpoint->draw[place(of->checkpoint, of->role, of->layer)];
    return source;
}

void checkpoint_reached(const struct checkpoint *model, const struct weight *of)
{
    const struct tensor *raw = of ? checkpoint_tensor(model, of->role, of->layer) : NULL;
    if (raw || !of)
        read_ahead_reached(model->ahead, raw);
}

void checkpoint_drop(const struct weight *of)
{
    const struct tensor *raw = checkpoint_tensor(of->checkpoint, of->role, of->layer);
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = raw ? (uintptr_t)raw->data : 0;
    if (raw)
        madvise((void *)(at / page * page), at % page + raw->bytes, MADV_DONTNEED);
}

const char *checkpoint_dtype(const struct checkpoint *model)
{
    if (!model->role)
        return "BF16";
    if (model->config.quant != QUANT_NONE)
        return model->config.source_dtype;
    const enum role first = model->config.taps ? ROLE_FUSE : ROLE_EMBED;
    const char *dtype = model->role[place(model, first, 0)]->dtype;
    for (int at = 0; at < ROLE_COUNT; at++)
        for (size_t layer = 0; layer < role_tensors(&model->config, (enum role)at); layer++)
            if (!role_is_vector((enum role)at) &&
                strcmp(dtype, model->role[place(model, (enum role)at, layer)]->dtype))
                return "F32";
    return tensor_has_blocks(dtype) ? "F32" : dtype;
}

void checkpoint_close(struct checkpoint *model)
{
    for (size_t i = 0; model->codes && i < ROLE_COUNT * role_tensors_most(&model->config); i++)
        quantization_close(&model->codes[i]);
    free(model->codes);
    model->codes = NULL;
    for (size_t i = 0; model->piece && i < 3 * model->config.layers; i++)
        free(model->piece[i].name);
    free(model->piece);
    model->piece = NULL;
    free(model->ids);
    model->ids = NULL;
    read_ahead_stop(model->ahead);
    model->ahead = NULL;
    safetensors_close(model->tensors);
    free(model->role);
    free(model->normal);
    free(model->draw);
    free(model->folder);
    json_decref(model->tokenizer);
    json_decref(model->file.json);
    model->tokenizer = model->file.json = NULL;
    family_extras_free(&model->extras);
    model->tensors = NULL;
    model->role = NULL;
    model->normal = NULL;
    model->draw = NULL;
    model->folder = NULL;
}
