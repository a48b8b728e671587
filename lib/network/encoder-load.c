/* encoder-load.c - loads config.json, tensors and tokenizer of a BERT or RoBERTa checkpoint; see
 * encoder.h.
 *
 * Tensor names may start with "bert." or "roberta.", or have no prefix. Old files call the gain and
 * bias of a norm gamma and beta. Each tensor must have the shape that config.json gives. Tensors of
 * heads for other tasks are ignored. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/checkpoint/hub.h"
#include "lib/network/encoder.h"
#include "lib/record/filehash.h"
#include "lib/record/json.h"

struct load {
    struct encoder *n;
    const char *folder;
    const char *prefix; /* of all tensor names: "", "bert." or "roberta." */
    struct err *e;
};

/* The layer that bert_score 0.3 uses for 12 and 24 layers; for other depths the last layer. */
static size_t best_layer(const struct encoder *n)
{
    return n->blocks == 24   ? (n->is_roberta ? 17 : 18)
           : n->blocks == 12 ? (n->is_roberta ? 10 : 9)
                             : n->blocks;
}

static int read_size(const json_t *j, const char *path, const char *key, size_t *out,
                     struct err *e)
{
    int64_t v = 0;
    if (json_int(j, path, key, 1, 1 << 20, &v, e))
        return -1;
    *out = (size_t)v;
    return 0;
}

static int is_other(const json_t *j, const char *key, const char *expected)
{
    const char *got = json_string_value(json_object_get(j, key));
    return got && strcmp(got, expected) != 0;
}

static int read_config(struct encoder *n, const json_t *j, const char *path, struct err *e)
{
    const char *type = NULL;
    size_t positions;
    int64_t pad = 1;
    if (json_text(j, path, "model_type", &type, e))
        return -1;
    n->is_roberta = !strcmp(type, "roberta");
    if (!n->is_roberta && strcmp(type, "bert") != 0)
        return err_set(e, EXIT_BAD_DATA, "%s: model_type: expected bert or roberta, got '%.40s'",
                       path, type);
    if (is_other(j, "hidden_act", "gelu") || is_other(j, "position_embedding_type", "absolute") ||
        json_is_true(json_object_get(j, "is_decoder")))
        return err_set(e, EXIT_BAD_DATA, "%s: expected hidden_act gelu, position_embedding_type "
                       "absolute and no decoder", path);
    if (read_size(j, path, "hidden_size", &n->width, e) ||
        read_size(j, path, "num_hidden_layers", &n->blocks, e) ||
        read_size(j, path, "num_attention_heads", &n->heads, e) ||
        read_size(j, path, "intermediate_size", &n->ffn, e) ||
        read_size(j, path, "vocab_size", &n->vocab, e) ||
        read_size(j, path, "max_position_embeddings", &positions, e))
        return -1;
    n->eps = 1e-12;
    if (json_has(j, "layer_norm_eps") &&
        json_number(j, path, "layer_norm_eps", 0, 1, &n->eps, e))
        return -1;
    if (json_has(j, "pad_token_id") && json_int(j, path, "pad_token_id", 0, 1 << 20, &pad, e))
        return -1;
    n->first_position = n->is_roberta ? (size_t)pad + 1 : 0;
    if (n->width % n->heads || positions < n->first_position + 3)
        return err_set(e, EXIT_BAD_DATA, "%s: expected hidden_size a multiple of %zu heads, and "
                       "positions for 3 tokens, got %zu and %zu", path, n->heads, n->width,
                       positions);
    n->head_dim = n->width / n->heads;
    n->tokens = positions - n->first_position;
    return 0;
}

/* The tensor PREFIX+name+"."+end, or else PREFIX+name+"."+old. Its shape must be [rows, cols], or
 * [rows] if cols is 0. NULL: *load->e. */
static const struct tensor *find(const struct load *load, const char *name, const char *end,
                                 const char *old, size_t rows, size_t cols)
{
    const size_t want[2] = {rows, cols};
    char *full = mem_format("%s%s.%s", load->prefix, name, end);
    char *other = mem_format("%s%s.%s", load->prefix, name, old);
    const struct tensor *tensor = safetensors_find(load->n->tensors, full);
    tensor = tensor ? tensor : safetensors_find(load->n->tensors, other);
    if (!tensor)
        err_set(load->e, EXIT_BAD_DATA, "%s: tensor %s is missing", load->folder, full);
    else if (tensor_check_shape(load->folder, tensor, want, cols ? 2 : 1, load->e))
        tensor = NULL;
    else if (strcmp(tensor->dtype, "F32") && strcmp(tensor->dtype, "F16") &&
             strcmp(tensor->dtype, "BF16")) {
        err_set(load->e, EXIT_BAD_DATA, "%s: tensor %s: expected F32, F16 or BF16, got %s",
                load->folder, full, tensor->dtype);
        tensor = NULL;
    }
    free(full);
    free(other);
    return tensor;
}

static float *read_vector(const struct load *load, const char *name, const char *end,
                          const char *old, size_t n)
{
    const struct tensor *tensor = find(load, name, end, old, n, 0);
    float *v = tensor ? mem_alloc(n * sizeof *v) : NULL;
    if (v)
        tensor_floats(tensor, 0, n, v);
    return v;
}

static int read_norm(const struct load *load, const char *name, struct encoder_norm *to)
{
    to->gain = read_vector(load, name, "weight", "gamma", load->n->width);
    to->bias = to->gain ? read_vector(load, name, "bias", "beta", load->n->width) : NULL;
    return to->bias ? 0 : -1;
}

/* The function mat_source.floats: rows of the tensor source->ctx as floats. */
static void rows_of(const struct mat_source *source, size_t first, size_t count, float *out)
{
    tensor_floats(source->ctx, first * source->cols, count * source->cols, out);
}

static int read_linear(const struct load *load, const char *name, size_t rows, size_t cols,
                       struct encoder_linear *to)
{
    struct backend *backend = load->n->backend;
    const struct tensor *tensor = find(load, name, "weight", "weight", rows, cols);
    struct mat_source source = {.rows = rows, .cols = cols, .floats = rows_of, .ctx = tensor};
    if (!tensor)
        return -1;
    if (backend->ops->mat_make(backend, &to->w, &source, DTYPE_F32))
        return err_set(load->e, EXIT_INTERNAL, "%s: out of memory for the weights", load->folder);
    to->bias = read_vector(load, name, "bias", "bias", rows);
    return to->bias ? 0 : -1;
}

static int read_layer(const struct load *load, size_t i)
{
    struct encoder_layer *weights = &load->n->layer[i];
    size_t D = load->n->width, F = load->n->ffn;
    const struct { const char *name; size_t rows, cols; struct encoder_linear *to; } linear[] = {
        {"attention.self.query", D, D, &weights->q}, {"attention.self.key", D, D, &weights->k},
        {"attention.self.value", D, D, &weights->v}, {"attention.output.dense", D, D, &weights->o},
        {"intermediate.dense", F, D, &weights->up},  {"output.dense", D, F, &weights->down}};
    int bad = 0;
    for (size_t k = 0; k < sizeof linear / sizeof *linear && !bad; k++) {
        char *name = mem_format("encoder.layer.%zu.%s", i, linear[k].name);
        bad = read_linear(load, name, linear[k].rows, linear[k].cols, linear[k].to);
        free(name);
    }
    for (int k = 0; k < 2 && !bad; k++) {
        char *name = mem_format("encoder.layer.%zu.%soutput.LayerNorm", i, k ? "" : "attention.");
        bad = read_norm(load, name, k ? &weights->output : &weights->attention);
        free(name);
    }
    return bad;
}

static int read_tensors(struct load *load)
{
    static const char *const prefixes[] = {"", "bert.", "roberta."};
    struct encoder *n = load->n;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes && !load->prefix; i++) {
        char *name = mem_format("%sembeddings.word_embeddings.weight", prefixes[i]);
        load->prefix = safetensors_find(n->tensors, name) ? prefixes[i] : NULL;
        free(name);
    }
    load->prefix = load->prefix ? load->prefix : "";
    size_t positions = n->tokens + n->first_position;
    const struct tensor *type;
    char *name = mem_format("%sembeddings.token_type_embeddings.weight", load->prefix);
    type = safetensors_find(n->tensors, name);
    free(name);
    size_t types = type && type->rank == 2 ? type->shape[0] : 2;
    n->word = find(load, "embeddings.word_embeddings", "weight", "weight", n->vocab, n->width);
    n->position = n->word ? find(load, "embeddings.position_embeddings", "weight", "weight",
                                 positions, n->width) : NULL;
    n->type = n->position ? find(load, "embeddings.token_type_embeddings", "weight", "weight",
                                 types, n->width) : NULL;
    if (!n->type || read_norm(load, "embeddings.LayerNorm", &n->start))
        return -1;
    n->layer = mem_zero(n->layers, sizeof *n->layer);
    for (size_t i = 0; i < n->layers; i++)
        if (read_layer(load, i))
            return -1;
    return 0;
}

static int read_tokenizer(const struct load *load)
{
    struct encoder *n = load->n;
    if (n->is_roberta)
        n->bpe = tokenizer_load(load->folder, load->e);
    else
        n->pieces = wordpiece_load(load->folder, load->e);
    if (!n->bpe && !n->pieces)
        return -1;
    size_t size = n->bpe ? tokenizer_size(n->bpe) : wordpiece_size(n->pieces);
    return size <= n->vocab ? 0
                            : err_set(load->e, EXIT_BAD_DATA,
                                      "%s: the tokenizer has ids up to %zu, "
                                      "expected below %zu (vocab_size of config.json)",
                                      load->folder, size - 1, n->vocab);
}

static int hash_files(struct encoder *n, struct err *e)
{
    struct buf all = {0};
    char hex[65];
    int bad = 0;
    for (size_t i = 0; i < safetensors_files(n->tensors) && !bad; i++) {
        bad = filehash(safetensors_file(n->tensors, i), FILEHASH_LARGE, hex, e) < 0;
        buf_format(&all, "%s\n", hex);
    }
    if (!bad)
        hash_bytes(all.data, all.len, n->hash);
    buf_free(&all);
    return bad ? -1 : 0;
}

/* Loads everything from the folder. */
static int load(struct load *from, size_t layer)
{
    struct encoder *n = from->n;
    char *path = mem_format("%s/config.json", from->folder);
    json_t *j = json_file(path, 1 << 20, from->e);
    int bad = !j || read_config(n, j, path, from->e);
    json_decref(j);
    free(path);
    if (bad)
        return -1;
    n->layers = layer ? layer : best_layer(n);
    if (n->layers > n->blocks)
        return err_set(from->e, EXIT_BAD_USAGE,
                       "--layer: expected at most %zu, the layers of %s, got "
                       "%zu", n->blocks, from->folder, layer);
    if (!(n->tensors = safetensors_open_folder(from->folder, from->e)))
        return -1;
    return read_tensors(from) || read_tokenizer(from) || hash_files(n, from->e) ? -1 : 0;
}

int encoder_open(struct encoder *n, const char *name, size_t layer, struct backend *backend,
                 struct err *e)
{
    *n = (struct encoder){.backend = backend};
    char *folder = hub_folder(name, e);
    if (!folder)
        return -1;
    size_t end = strlen(name);
    while (end && name[end - 1] == '/')
        end--;
    size_t start = end;
    while (start && name[start - 1] != '/')
        start--;
    snprintf(n->name, sizeof n->name, "%.*s", (int)(end - start), name + start);
    struct load from = {n, folder, NULL, e};
    int bad = load(&from, layer);
    free(folder);
    if (bad)
        encoder_close(n);
    return bad;
}

static void free_linear(struct backend *backend, struct encoder_linear *linear)
{
    if (linear->w.data)
        backend->ops->mat_free(backend, &linear->w);
    free(linear->bias);
}

static void free_norm(struct encoder_norm *norm)
{
    free(norm->gain);
    free(norm->bias);
}

void encoder_close(struct encoder *n)
{
    for (size_t i = 0; n->layer && i < n->layers; i++) {
        struct encoder_layer *weights = &n->layer[i];
        struct encoder_linear *linear[] = {&weights->q, &weights->k,  &weights->v,
                                           &weights->o, &weights->up, &weights->down};
        for (size_t k = 0; k < sizeof linear / sizeof *linear; k++)
            free_linear(n->backend, linear[k]);
        free_norm(&weights->attention);
        free_norm(&weights->output);
    }
    free(n->layer);
    free_norm(&n->start);
    tokenizer_free(n->bpe);
    wordpiece_free(n->pieces);
    safetensors_close(n->tensors);
    *n = (struct encoder){0};
}
