/* encoder.c - runs a text through the blocks of an encoder; see encoder.h.
 *
 * The back end computes products and attention. Operations that it lacks (layer norm, GELU, biases,
 * learned positions) are loops here, over memory that host and back end share. Texts run one at a
 * time, so no padding must be masked and the vectors of a text do not depend on other texts. */
#include "lib/network/encoder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/base/order.h"
#include "lib/text/utf8.h"

/* ---- text to ids ---- */

/* The text without white space at either end: returns its start, and sets *n to its length. */
static const char *trim(const char *text, size_t *n)
{
    size_t len, end = 0;
    while (*text && utf8_is_space(utf8_read(text, &len)))
        text += len;
    for (size_t i = 0; text[i]; i += len)
        if (!utf8_is_space(utf8_read(text + i, &len)))
            end = i + len;
    *n = end;
    return text;
}

int encoder_ids(const struct encoder *n, const char *text, struct ids *out, struct err *e)
{
    struct buf buffer = {0};
    size_t len;
    const char *bytes = trim(text, &len);
    out->n = 0;
    if (n->is_roberta && len)
        buf_char(&buffer, ' '); /* a first word is encoded like any other word */
    buf_put(&buffer, bytes, len);
    int bad = 0;
    if (n->is_roberta)
        bad = tokenizer_encode(n->bpe, buffer.data, buffer.len, ENCODE_SPECIAL | ENCODE_PLAIN, out,
                               e);
    else
        wordpiece_encode(n->pieces, buffer.data, out);
    buf_free(&buffer);
    if (!bad && out->n < 2)
        bad = err_set(e, EXIT_BAD_DATA, "%s: expected a tokenizer that puts a token in front of a "
                      "text and one behind it", n->name);
    if (bad || out->n <= n->tokens)
        return bad;
    out->v[n->tokens - 1] = out->v[out->n - 1];
    out->n = n->tokens;
    return 1;
}

/* ---- the blocks ---- */

struct encoder_work { /* for a text of T tokens: x, q, k, v, y [T, D], h [T, F] */
    size_t T;
    float *x, *q, *k, *v, *y, *h;
    int32_t *place;       /* 0..T-1: positions and slots */
    struct attn_seq *seq;
    void *scratch;
};

static void *take(const struct encoder *n, size_t count, size_t size)
{
    struct backend *backend = n->backend;
    size_t bytes;
    void *p = mem_size_mul(count, size, &bytes)
                  ? NULL
                  : backend->ops->alloc(backend, bytes, MEMORY_ACTIVATIONS);
    if (!p)
        err_machine(__FILE__, __LINE__, "no memory for the activations of an encoder");
    return p;
}

static struct encoder_work work_make(const struct encoder *n, size_t T)
{
    struct backend *backend = n->backend;
    size_t D = n->width, F = n->ffn;
    size_t most = backend->ops->attention_work(backend, T, 1, T, n->heads, n->heads, n->head_dim,
                                               0);
    most = order_max(most, backend->ops->matmul_work(backend, T, D, 3 * D));
    most = order_max(most, backend->ops->matmul_work(backend, T, D, F));
    most = order_max(most, backend->ops->matmul_work(backend, T, F, D));
    struct encoder_work work = {T, take(n, T * D, sizeof(float)), take(n, T * D, sizeof(float)),
                                take(n, T * D, sizeof(float)), take(n, T * D, sizeof(float)),
                                take(n, T * D, sizeof(float)), take(n, T * F, sizeof(float)),
                                take(n, T, sizeof(int32_t)), take(n, 1, sizeof(struct attn_seq)),
                                take(n, most, 1)};
    for (size_t token = 0; token < T; token++)
        work.place[token] = (int32_t)token;
    *work.seq = (struct attn_seq){0, (int32_t)T, 0, (int32_t)T};
    return work;
}

static void work_free(const struct encoder *n, struct encoder_work *work)
{
    void *all[] = {work->x, work->q,     work->k,   work->v,      work->y,
                   work->h, work->place, work->seq, work->scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        n->backend->ops->free(n->backend, all[i]);
}

/* x[T, D] = LN(x + y); y NULL: LN(x). */
static void norm(const struct encoder *n, float *x, const float *y, size_t T,
                 const struct encoder_norm *by)
{
    size_t D = n->width;
    for (size_t token = 0; token < T; token++, x += D, y = y ? y + D : NULL) {
        double mean = 0, variance = 0;
        for (size_t column = 0; column < D; column++) {
            x[column] += y ? y[column] : 0;
            mean += (double)x[column];
        }
        mean /= (double)D;
        for (size_t column = 0; column < D; column++)
            variance += ((double)x[column] - mean) * ((double)x[column] - mean);
        double scale = 1 / sqrt(variance / (double)D + n->eps);
        for (size_t column = 0; column < D; column++)
            x[column] = (float)(((double)x[column] - mean) * scale) * by->gain[column] +
                        by->bias[column];
    }
}

/* y[T, rows] = in[T, cols] W^T + bias. */
static void linear(const struct encoder *n, const struct encoder_linear *by, const float *in,
                   float *y, const struct encoder_work *work)
{
    const struct product product = {&by->w, y, 0};
    n->backend->ops->matmul(n->backend, &product, 1, (struct input){.x = in}, work->T,
                            work->scratch);
    for (size_t token = 0; token < work->T; token++)
        for (size_t i = 0; i < by->w.rows; i++)
            y[token * by->w.rows + i] += by->bias[i];
}

static void gelu(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(0.5 * (double)x[i] * (1 + erf((double)x[i] * 0.70710678118654752)));
}

static void block(const struct encoder *n, const struct encoder_layer *layer,
                  const struct encoder_work *work)
{
    const struct attn attn = {.q = work->q, .y = work->y, .kv = {work->k, work->v, DTYPE_F32},
                              .pos = work->place, .seqs = work->seq, .slots = work->place,
                              .slot_pos = work->place, .n_seqs = 1, .T = work->T,
                              .max_rows = work->T, .max_slots = work->T, .heads = n->heads,
                              .kv_heads = n->heads, .head_dim = n->head_dim, .mask = MASK_FULL};
    linear(n, &layer->q, work->x, work->q, work);
    linear(n, &layer->k, work->x, work->k, work);
    linear(n, &layer->v, work->x, work->v, work);
    n->backend->ops->attention(n->backend, &attn, work->scratch);
    linear(n, &layer->o, work->y, work->q, work);
    norm(n, work->x, work->q, work->T, &layer->attention);
    linear(n, &layer->up, work->x, work->h, work);
    gelu(work->h, work->T * n->ffn);
    linear(n, &layer->down, work->h, work->y, work);
    norm(n, work->x, work->y, work->T, &layer->output);
}

static void embed(const struct encoder *n, const struct ids *ids, const struct encoder_work *work)
{
    size_t D = n->width;
    for (size_t token = 0; token < ids->n; token++) {
        float *x = work->x + token * D, *position = work->q, *type = work->k;
        tensor_floats(n->word, (size_t)ids->v[token] * D, D, x);
        tensor_floats(n->position, (token + n->first_position) * D, D, position);
        tensor_floats(n->type, 0, D, type);
        for (size_t d = 0; d < D; d++)
            x[d] += position[d] + type[d];
    }
    norm(n, work->x, NULL, ids->n, &n->start);
}

int encoder_run(const struct encoder *n, const struct ids *ids, float *out, struct err *e)
{
    struct encoder_work work = work_make(n, ids->n);
    embed(n, ids, &work);
    for (size_t layer = 0; layer < n->layers; layer++)
        block(n, &n->layer[layer], &work);
    memcpy(out, work.x, ids->n * n->width * sizeof *out);
    work_free(n, &work);
    for (size_t i = 0; i < ids->n * n->width; i++)
        if (!isfinite(out[i]))
            return err_set(e, EXIT_BAD_DATA, "%s: layer %zu: expected finite values, got %f",
                           n->name, n->layers, (double)out[i]);
    return 0;
}
