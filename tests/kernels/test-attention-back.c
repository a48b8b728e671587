/* test-attention-back.c - compares the gradients of attention (struct attn_back of kernels/train.h)
 * of every level of the cpu back end with ref: several sequences, fewer rows than keys, causal,
 * full, windowed and block-causal masks, key heads shared by several query heads; in fp32, and with
 * factors rounded to bf16, which level amx multiplies on tiles (test-gemm.c). 1, 2 and 3 threads
 * must give the same bits. */
#include "kernels/train.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "tests/emulate/tmm.h"
#include "tests/kernels/levels.h"
#include "tests/tap.h"

enum { SEQS = 3, MOST = 400 };

static struct rng rng = {.seed = 17};

static float *draw(size_t n) { return levels_draw(&rng, n); }

struct heads {
    size_t kv, group, E;
    int32_t rows[SEQS], slots[SEQS]; /* rows: number of the last keys that are also rows */
    int causal; /* 0: full mask; else the length of a block, which sees itself and earlier blocks */
    size_t window;
};
static const struct heads shapes[] = {
    {1, 1, 6, {1, 0, 0}, {1, 0, 0}, 1, 0},       {2, 2, 34, {7, 1, 40}, {7, 1, 40}, 1, 0},
    {1, 3, 64, {70, 3, 9}, {70, 5, 33}, 1, 0},   {2, 1, 64, {33, 64, 2}, {65, 64, 2}, 1, 5},
    {1, 2, 80, {50, 1, 20}, {100, 90, 20}, 1, 40}, {1, 1, 128, {40, 16, 3}, {40, 33, 3}, 1, 1},
    {2, 2, 16, {37, 5, 1}, {3, 3, 3}, 0, 0},     {1, 2, 20, {130, 8, 0}, {130, 8, 2}, 0, 0},
    {2, 2, 34, {70, 1, 40}, {70, 7, 40}, 32, 0},   {1, 3, 64, {50, 9, 20}, {99, 9, 33}, 5, 0}};

/* The inputs; and dq, dk, dv of one back end, one after another. */
struct given {
    struct attn_back a;
    struct attn_seq seqs[SEQS];
    int32_t pos[MOST];
    float *in;
    size_t rows, slots, outs;
};

static void prepare(struct given *g, const struct heads *h)
{
    *g = (struct given){0};
    for (int i = 0; i < SEQS; i++) {
        g->seqs[i] = (struct attn_seq){(int32_t)g->rows, h->rows[i], (int32_t)g->slots,
                                       h->slots[i]};
        for (int32_t r = 0; r < h->rows[i]; r++) {
            const int32_t pos = h->slots[i] - h->rows[i] + r, B = h->causal ? h->causal : 1;
            const int32_t end = (pos / B + 1) * B;
            g->pos[g->rows + (size_t)r] = end < h->slots[i] ? end - 1 : h->slots[i] - 1;
        }
        g->rows += (size_t)h->rows[i];
        g->slots += (size_t)h->slots[i];
        size_t most = (size_t)(h->rows[i] > h->slots[i] ? h->rows[i] : h->slots[i]);
        g->a.max_slots = most > g->a.max_slots ? most : g->a.max_slots;
    }
    size_t q = g->rows * h->kv * h->group * h->E, k = g->slots * h->kv * h->E;
    g->outs = q + 2 * k;
    g->in = draw(2 * q + 2 * k);
    g->a.q = g->in, g->a.dy = g->in + q, g->a.k = g->in + 2 * q, g->a.v = g->in + 2 * q + k;
    g->a.n_seqs = SEQS, g->a.pos = g->pos;
    g->a.heads = h->kv * h->group, g->a.kv_heads = h->kv, g->a.head_dim = h->E;
    g->a.causal = h->causal > 0, g->a.window = h->window;
}

/* Computes out[outs] by a table; tests that the requested work area is enough and that its contents
 * do not matter. */
static int run(const struct ops *ops, size_t threads, struct given *g, int half, float *out)
{
    struct backend *b = levels_open(ops, threads);
    struct attn_back a = g->a;
    size_t q = g->rows * a.heads * a.head_dim, k = g->slots * a.kv_heads * a.head_dim;
    const struct train_ops *train = train_ops_of(b->ops);
    size_t room = train->attention_back_work(b, g->rows, a.max_slots, a.heads, a.head_dim);
    float *work = mem_aligned((room + 16) * sizeof *work);
    int kept = 1;
    memset(work, 0xff, room * sizeof *work);
    memset(out, 0xff, g->outs * sizeof *out);
    for (size_t i = 0; i < 16; i++)
        work[room + i] = 3;
    a.seqs = g->seqs, a.half = half;
    a.dq = out, a.dk = out + q, a.dv = out + q + k;
    train->attention_back(b, &a, work);
    for (size_t i = 0; i < 16; i++)
        kept &= work[room + i] == 3;
    backend_close(b);
    free(work);
    return kept;
}

static void against_ref(const struct ops *ops, const struct heads *h, int half)
{
    struct given g;
    prepare(&g, h);
    float *y = draw(g.outs), *z = draw(g.outs), *two = draw(g.outs), *one = draw(g.outs);
    int kept = run(ops, 3, &g, half, y) & run(ops, 2, &g, half, two) & run(ops, 1, &g, half, one);
    run(&ops_ref, 1, &g, 0, z);
    double far = worst(y, z, g.outs);
    ok(far < (half ? 1e-2 : 5e-6) && kept,
       "%s half %d: %zu rows, %zu heads of %zu, window %zu: off by %.1e", ops->level, half, g.rows,
       g.a.heads, h->E, h->window, far);
    ok(!memcmp(y, two, g.outs * sizeof *y) && !memcmp(y, one, g.outs * sizeof *y),
       "%s half %d: %zu rows: the same bits at 1, 2 and 3 threads", ops->level, half, g.rows);
    free(g.in), free(y), free(z), free(two), free(one);
}

static void all(const struct ops *ops)
{
    for (int half = 0; half < 2; half++) {
        long before = tmm_products();
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            against_ref(ops, &shapes[i], half);
        int emulated = levels_tiles(ops) && ops != ops_cpu("amx");
        ok((tmm_products() > before) == (emulated && half) && !tmm_open(),
           "%s half %d: %ld products of emulated tiles, all of them released", ops->level, half,
           tmm_products() - before);
    }
}

int main(void)
{
    const struct ops *ops;
    size_t ran = 0;
    for (; (ops = levels_at(ran)); ran++)
        all(ops);
    if ((ops = levels_trapped()))
        all(ops);
    else if (!ops_cpu("amx"))
        skip("level amx is not built, or this processor cannot run the level below it");
    ok(ran > 0, "%zu instruction sets ran", ran);
    return tap_done();
}
