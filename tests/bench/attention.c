/* attention.c - measures attention at the heads of a network, for four kinds of work: prompts,
 * canvases, blocks of a canvas beside a cache, and texts that grow by a token. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "tests/bench/bench.h"

struct kase {
    size_t seqs, rows, keys; /* a sequence has `keys` positions; the last `rows` of them are rows */
    enum mask mask;
};
static const struct kase kases[] = {
    {1, 512, 512, MASK_CAUSAL}, {1, 128, 128, MASK_FULL},  {1, 1024, 1024, MASK_FULL},
    {1, 32, 1032, MASK_FULL},   {1, 1, 2048, MASK_CAUSAL}, {8, 1, 512, MASK_CAUSAL},
    {32, 1, 192, MASK_CAUSAL}};

struct run {
    struct bench *bench;
    struct attn attn; /* arguments for the first copy */
    size_t copy_bytes;
    void *work;
};

static void call_attention(void *ctx, size_t i)
{
    struct run *r = ctx;
    struct attn a = r->attn;
    a.kv.k = (char *)a.kv.k + i * r->copy_bytes;
    a.kv.v = (char *)a.kv.v + i * r->copy_bytes;
    r->bench->backend->ops->attention(r->bench->backend, &a, r->work);
}

/* Gives sequence i the i-th c->keys slots. Returns -1 without memory. */
static int send_lists(struct bench *b, struct attn *a, const struct kase *c)
{
    size_t S = c->seqs * c->keys, T = c->seqs * c->rows;
    int32_t *slots = mem_alloc(S * sizeof *slots), *slot_pos = mem_alloc(S * sizeof *slots);
    int32_t *pos = mem_alloc(T * sizeof *pos);
    struct attn_seq *seqs = mem_alloc(c->seqs * sizeof *seqs);
    for (size_t i = 0; i < S; i++) {
        slots[i] = (int32_t)i;
        slot_pos[i] = (int32_t)(i % c->keys);
    }
    for (size_t i = 0; i < T; i++)
        pos[i] = (int32_t)(c->keys - c->rows + i % c->rows);
    for (size_t i = 0; i < c->seqs; i++)
        seqs[i] = (struct attn_seq){(int32_t)(i * c->rows), (int32_t)c->rows,
                                    (int32_t)(i * c->keys), (int32_t)c->keys};
    a->slots = data_sent(b, slots, S * sizeof *slots);
    a->slot_pos = data_sent(b, slot_pos, S * sizeof *slot_pos);
    a->pos = data_sent(b, pos, T * sizeof *pos);
    a->seqs = data_sent(b, seqs, c->seqs * sizeof *seqs);
    free(slots);
    free(slot_pos);
    free(pos);
    free(seqs);
    return !a->slots || !a->slot_pos || !a->pos || !a->seqs ? -1 : 0;
}

static double visible_keys(const struct kase *c)
{
    double rows = (double)c->rows, keys = (double)c->keys;
    double all = rows * keys, hidden = c->mask == MASK_CAUSAL ? rows * (rows - 1) / 2 : 0;
    return (double)c->seqs * (all - hidden);
}

static int time_case(struct run *r, const struct kase *c, const struct pair *pair,
                     const char *kind, size_t copies, struct err *e)
{
    const struct attn *a = &r->attn;
    char text[96];
    struct task task = task_begin(r->bench, dtype_info[a->kv.dtype].unit);
    double operations = 4.0 * (double)(a->heads * a->head_dim) * visible_keys(c);
    double took = walk_s(r->bench, call_attention, r, copies, QUICKEST);
    ceilings_bracket(r->bench);
    task_add(&task, &r->bench->roof, operations, 2 * (double)r->copy_bytes);
    int n = snprintf(text, sizeof text, "%s, %zu x %zu row%s, %zu keys",
                     c->mask == MASK_CAUSAL ? "causal" : "full", c->seqs, c->rows,
                     c->rows > 1 ? "s" : "", c->keys);
    if (bench_on_device(r->bench) && a->kv_heads == a->heads)
        snprintf(text + n, sizeof text - (size_t)n, ", %zu key heads", a->kv_heads);
    json_t *fields = kernel_fields("attention", pair, kind, text, c->rows * c->seqs);
    return bench_point(r->bench, fields, &task, took, e);
}

static int run_case(struct bench *b, const struct config *f, const struct kase *c,
                    const struct pair *pair, const char *kind, enum dtype dtype, struct err *e)
{
    const struct ops *ops = b->backend->ops;
    size_t T = c->seqs * c->rows, keys = c->seqs * c->keys, width = f->heads * f->head_dim;
    size_t values = keys * f->kv_heads * f->head_dim;
    struct run r = {.bench = b, .copy_bytes = values * dtype_value_bytes(dtype)};
    size_t copies = walk_copies(b, pair, 2 * (double)r.copy_bytes);
    act *q = data_random(b, T * width, b->backend->act, MEMORY_ACTIVATIONS);
    act *y = data_random(b, T * width, b->backend->act, MEMORY_ACTIVATIONS);
    void *k = data_random(b, copies * values, dtype, MEMORY_KV);
    void *v = data_random(b, copies * values, dtype, MEMORY_KV);
    r.work = ops->alloc(b->backend,
                        ops->attention_work(b->backend, T, c->seqs, c->keys, f->heads, f->kv_heads,
                                            f->head_dim, 0),
                        MEMORY_ACTIVATIONS);
    r.attn = (struct attn){.q = q, .y = y, .kv = {k, v, dtype}, .half = dtype == DTYPE_BF16,
                           .n_seqs = c->seqs, .T = T, .max_rows = c->rows, .max_slots = c->keys,
                           .heads = f->heads, .kv_heads = f->kv_heads, .head_dim = f->head_dim,
                           .mask = c->mask};
    int bad = !q || !y || !k || !v || !r.work || send_lists(b, &r.attn, c)
                  ? err_set(e, EXIT_FAILED_RECORDS, "attention: no memory for %zu copies", copies)
                  : time_case(&r, c, pair, kind, copies, e);
    void *blocks[] = {q, y, k, v, r.work, (void *)r.attn.slots, (void *)r.attn.slot_pos,
                      (void *)r.attn.pos, (void *)r.attn.seqs};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        ops->free(b->backend, blocks[i]);
    return bad;
}

int bench_attention(struct bench *b, const struct config *f, const struct pair *pair,
                    const char *kind, enum dtype dtype, struct err *e)
{
    int bad = 0;
    for (size_t i = 0; !bad && i < sizeof kases / sizeof *kases; i++) {
        struct kase c = kases[i];
        c.keys = shrunk(pair, c.keys);
        c.rows = shrunk(pair, c.rows) < c.keys ? shrunk(pair, c.rows) : c.keys;
        bad = run_case(b, f, &c, pair, kind, dtype, e);
    }
    return bad;
}
