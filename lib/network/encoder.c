/* encoder.c - runs a text through the blocks of an encoder (encoder.h).
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

/* s without white space at either end; *n: its length. */
static const char *trim(const char *s, size_t *n)
{
    size_t len, end = 0;
    while (*s && utf8_is_space(utf8_read(s, &len)))
        s += len;
    for (size_t i = 0; s[i]; i += len)
        if (!utf8_is_space(utf8_read(s + i, &len)))
            end = i + len;
    *n = end;
    return s;
}

int encoder_ids(const struct encoder *n, const char *text, struct ids *out, struct err *e)
{
    struct buf b = {0};
    size_t len;
    const char *s = trim(text, &len);
    out->n = 0;
    if (n->is_roberta && len)
        buf_char(&b, ' '); /* a first word is encoded like any other word */
    buf_put(&b, s, len);
    int bad = 0;
    if (n->is_roberta)
        bad = tokenizer_encode(n->bpe, b.data, b.len, ENCODE_SPECIAL | ENCODE_PLAIN, out, e);
    else
        wordpiece_encode(n->pieces, b.data, out);
    buf_free(&b);
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

struct encoder_work { /* for a text of T tokens; x [T, D], the others as a block needs them */
    size_t T;
    float *x, *q, *k, *v, *y, *h;
    int32_t *place;       /* 0..T-1: positions and slots */
    struct attn_seq *seq;
    void *scratch;
};

static void *take(const struct encoder *n, size_t count, size_t size)
{
    struct backend *b = n->backend;
    size_t bytes;
    void *p = mem_size_mul(count, size, &bytes) ? NULL
                                                : b->ops->alloc(b, bytes, MEMORY_ACTIVATIONS);
    if (!p)
        err_machine(__FILE__, __LINE__, "no memory for the activations of an encoder");
    return p;
}

static struct encoder_work work_make(const struct encoder *n, size_t T)
{
    struct backend *b = n->backend;
    size_t D = n->width, F = n->ffn;
    size_t most = b->ops->attention_work(b, T, 1, T, n->heads, n->heads, n->head_dim, 0);
    most = order_max(most, b->ops->matmul_work(b, T, D, 3 * D));
    most = order_max(most, b->ops->matmul_work(b, T, D, F));
    most = order_max(most, b->ops->matmul_work(b, T, F, D));
    struct encoder_work w = {T, take(n, T * D, sizeof(float)), take(n, T * D, sizeof(float)),
                             take(n, T * D, sizeof(float)), take(n, T * D, sizeof(float)),
                             take(n, T * D, sizeof(float)), take(n, T * F, sizeof(float)),
                             take(n, T, sizeof(int32_t)), take(n, 1, sizeof(struct attn_seq)),
                             take(n, most, 1)};
    for (size_t t = 0; t < T; t++)
        w.place[t] = (int32_t)t;
    *w.seq = (struct attn_seq){0, (int32_t)T, 0, (int32_t)T};
    return w;
}

static void work_free(const struct encoder *n, struct encoder_work *w)
{
    void *all[] = {w->x, w->q, w->k, w->v, w->y, w->h, w->place, w->seq, w->scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        n->backend->ops->free(n->backend, all[i]);
}

/* x[T, D] = LN(x + y); y NULL: LN(x). */
static void norm(const struct encoder *n, float *x, const float *y, size_t T,
                 const struct encoder_norm *by)
{
    size_t D = n->width;
    for (size_t t = 0; t < T; t++, x += D, y = y ? y + D : NULL) {
        double mean = 0, variance = 0;
        for (size_t d = 0; d < D; d++) {
            x[d] += y ? y[d] : 0;
            mean += (double)x[d];
        }
        mean /= (double)D;
        for (size_t d = 0; d < D; d++)
            variance += ((double)x[d] - mean) * ((double)x[d] - mean);
        double scale = 1 / sqrt(variance / (double)D + n->eps);
        for (size_t d = 0; d < D; d++)
            x[d] = (float)(((double)x[d] - mean) * scale) * by->gain[d] + by->bias[d];
    }
}

/* y[T, rows] = in[T, cols] W^T + bias. */
static void linear(const struct encoder *n, const struct encoder_linear *by, const float *in,
                   float *y, const struct encoder_work *w)
{
    const struct product p = {&by->w, y, 0};
    n->backend->ops->matmul(n->backend, &p, 1, (struct input){.x = in}, w->T, w->scratch);
    for (size_t t = 0; t < w->T; t++)
        for (size_t i = 0; i < by->w.rows; i++)
            y[t * by->w.rows + i] += by->bias[i];
}

static void gelu(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(0.5 * (double)x[i] * (1 + erf((double)x[i] * 0.70710678118654752)));
}

static void block(const struct encoder *n, const struct encoder_layer *l,
                  const struct encoder_work *w)
{
    const struct attn attn = {.q = w->q, .y = w->y, .kv = {w->k, w->v, DTYPE_F32},
                              .pos = w->place, .seqs = w->seq, .slots = w->place,
                              .slot_pos = w->place, .n_seqs = 1, .T = w->T, .max_rows = w->T,
                              .max_slots = w->T, .heads = n->heads, .kv_heads = n->heads,
                              .head_dim = n->head_dim, .mask = MASK_FULL};
    linear(n, &l->q, w->x, w->q, w);
    linear(n, &l->k, w->x, w->k, w);
    linear(n, &l->v, w->x, w->v, w);
    n->backend->ops->attention(n->backend, &attn, w->scratch);
    linear(n, &l->o, w->y, w->q, w);
    norm(n, w->x, w->q, w->T, &l->attention);
    linear(n, &l->up, w->x, w->h, w);
    gelu(w->h, w->T * n->ffn);
    linear(n, &l->down, w->h, w->y, w);
    norm(n, w->x, w->y, w->T, &l->output);
}

static void embed(const struct encoder *n, const struct ids *ids, const struct encoder_work *w)
{
    size_t D = n->width;
    for (size_t t = 0; t < ids->n; t++) {
        float *x = w->x + t * D, *position = w->q, *type = w->k;
        tensor_floats(n->word, (size_t)ids->v[t] * D, D, x);
        tensor_floats(n->position, (t + n->first_position) * D, D, position);
        tensor_floats(n->type, 0, D, type);
        for (size_t d = 0; d < D; d++)
            x[d] += position[d] + type[d];
    }
    norm(n, w->x, NULL, ids->n, &n->start);
}

int encoder_run(const struct encoder *n, const struct ids *ids, float *out, struct err *e)
{
    struct encoder_work w = work_make(n, ids->n);
    embed(n, ids, &w);
    for (size_t l = 0; l < n->layers; l++)
        block(n, &n->layer[l], &w);
    memcpy(out, w.x, ids->n * n->width * sizeof *out);
    work_free(n, &w);
    for (size_t i = 0; i < ids->n * n->width; i++)
        if (!isfinite(out[i]))
            return err_set(e, EXIT_BAD_DATA, "%s: layer %zu: expected finite values, got %f",
                           n->name, n->layers, (double)out[i]);
    return 0;
}
