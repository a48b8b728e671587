/* parts.c - attributes the time of a pass to its operations. Its table of operations runs the
 * operations of one part and skips all others. So each part is timed as passes are: recorded, many
 * behind each other. With small shapes a cache holds the weights of a part, and the sum of the
 * parts is too small. With 8B no cache holds these weights; that sum has not been measured.
 *
 * The rows of the pass stay as the last operation left them. Parts out and down add to x, the input
 * of other parts, so they are timed last. Part rest sets x to the embeddings first. */
#include <string.h>

#include "tests/bench/bench.h"

enum share { REST, HEAD, QKV, ATTENTION, GATED, OUT, DOWN, SHARES, ALL = SHARES };
static const char *const names[SHARES] = {"rest_ns", "head_ns", "qkv_ns", "attention_ns",
                                         "gated_ns", "out_ns", "down_ns"};

struct parts {
    struct ops ops; /* first, so that the table in a back end is this struct */
    const struct ops *real;
    const struct network *net;
    enum share only;
    size_t calls[SHARES]; /* operations of each part so far */
};

static struct parts *parts_of(const struct backend *b)
{
    return (struct parts *)(uintptr_t)b->ops;
}

/* Counts an operation. If the operation is to run, returns 1 and sets the real table, because an
 * operation may call others; the caller then calls leave() after the operation. */
static int enter(struct backend *b, enum share share)
{
    struct parts *p = parts_of(b);
    p->calls[share]++;
    if (p->only != ALL && p->only != share)
        return 0;
    b->ops = p->real;
    return 1;
}

static void leave(struct backend *b, struct parts *p)
{
    b->ops = &p->ops;
}

static enum share share_of(const struct network *n, const struct mat *w)
{
    for (size_t l = 0; l < n->config.layers; l++)
        if (w == &n->layer[l].o || w == &n->layer[l].down)
            return w == &n->layer[l].o ? OUT : DOWN;
    return REST;
}

static void embed(struct backend *b, act *y, const struct mat *weight, const int32_t *token,
                  size_t T)
{
    struct parts *p = parts_of(b);
    if (enter(b, REST)) {
        b->ops->embed(b, y, weight, token, T);
        leave(b, p);
    }
}

static void rope_table(struct backend *b, float *table, const int32_t *pos, const float *inv_freq,
                       float scale, size_t T, size_t E)
{
    struct parts *p = parts_of(b);
    if (enter(b, REST)) {
        b->ops->rope_table(b, table, pos, inv_freq, scale, T, E);
        leave(b, p);
    }
}

static void rmsnorm(struct backend *b, act *y, const act *x, const int32_t *row, const float *gain,
                    size_t T, size_t D, double eps)
{
    struct parts *p = parts_of(b);
    if (enter(b, REST)) {
        b->ops->rmsnorm(b, y, x, row, gain, T, D, eps);
        leave(b, p);
    }
}

static void qkv(struct backend *b, const struct qkv *a, size_t T, void *work)
{
    struct parts *p = parts_of(b);
    if (enter(b, QKV)) {
        b->ops->qkv(b, a, T, work);
        leave(b, p);
    }
}

static void attention(struct backend *b, const struct attn *attn, void *work)
{
    struct parts *p = parts_of(b);
    if (enter(b, ATTENTION)) {
        b->ops->attention(b, attn, work);
        leave(b, p);
    }
}

static void matmul(struct backend *b, const struct product *product, size_t n, struct input in,
                   size_t T, void *work)
{
    struct parts *p = parts_of(b);
    if (enter(b, share_of(p->net, product->w))) {
        b->ops->matmul(b, product, n, in, T, work);
        leave(b, p);
    }
}

static void gated(struct backend *b, act *y, struct input in, const struct mat *gate,
                  const struct mat *up, size_t T, void *work)
{
    struct parts *p = parts_of(b);
    if (enter(b, GATED)) {
        b->ops->gated(b, y, in, gate, up, T, work);
        leave(b, p);
    }
}

static void experts(struct backend *b, const struct experts *a, size_t T, void *work)
{
    struct parts *p = parts_of(b);
    if (enter(b, DOWN)) {
        b->ops->experts(b, a, T, work);
        leave(b, p);
    }
}

static void head(struct backend *b, const struct mat *weight, const act *x, const act *xu,
                 size_t rows, const struct head_query *query, struct head_row *out, float *logits,
                 void *work)
{
    struct parts *p = parts_of(b);
    if (enter(b, HEAD)) {
        b->ops->head(b, weight, x, xu, rows, query, out, logits, work);
        leave(b, p);
    }
}

void parts_time(struct models *m, void (*call)(void *ctx, size_t i), void *ctx, json_t *fields)
{
    struct bench *b = m->bench;
    struct parts p = {.ops = *b->backend->ops, .real = b->backend->ops, .net = &m->net,
                      .only = ALL};
    p.ops.embed = embed;
    p.ops.rope_table = rope_table;
    p.ops.rmsnorm = rmsnorm;
    p.ops.qkv = qkv;
    p.ops.attention = attention;
    p.ops.matmul = matmul;
    p.ops.gated = gated;
    p.ops.experts = experts;
    p.ops.head = head;
    b->backend->ops = &p.ops;
    double pass = walk_s(b, call, ctx, 1, MEDIAN), sum = 0;
    rec_set_number(fields, "pass_ns", pass * 1e9, NULL);
    for (p.only = REST; p.only < SHARES; p.only++) {
        double took = p.calls[p.only] && !*b->stop ? walk_s(b, call, ctx, 1, MEDIAN) : 0;
        rec_set_number(fields, names[p.only], took * 1e9, NULL);
        sum += took;
    }
    rec_set_number(fields, "parts_fraction", sum / pass, NULL);
    b->backend->ops = p.real;
}
