/* test-variants.c - tests ways to compute the same (struct variant, network.row_tile): on ref and
 * cpu they give the same bits, except for scores that are summed in another order. Also tests the
 * memory of each variant by formula. */
#include "lib/base/mem.h"
#include "lib/network/estimate.h"
#include "lib/network/forward.h"
#include "tests/tap.h"

enum { T = 41, SEQS = 2, ROWS = SEQS * T };

static int load(struct network *n, struct backend *b, const char *name, const char *dtype)
{
    struct err e = {0};
    struct checkpoint c;
    const struct precision p = {.dtype = dtype};
    int bad = checkpoint_open(&c, name, 7, &e) || network_load(n, b, &c, &p, &e);
    ok(!bad, "%s as %s on %s %s", name, dtype, b->ops->name, e.text);
    checkpoint_close(&c);
    return bad;
}

static struct work_size size_of(struct variant how)
{
    return (struct work_size){.rows = ROWS, .seqs = SEQS, .slots = T, .listed = ROWS,
                              .wanted = ROWS, .cached = 1, .how = how};
}

/* The answers and logits of two sequences through a cache, in batches of `step` ids of each. */
struct told {
    struct head_row answer[ROWS];
    float *logits; /* [ROWS, V] */
};

static struct told run(const struct network *n, struct variant how, size_t row_tile, int step)
{
    struct network m = *n;
    struct kv kv;
    struct work_size size = size_of(how);
    struct told t = {.logits = mem_zero(ROWS * n->config.vocab, sizeof(float))};
    m.row_tile = row_tile;
    size.logits = 1;
    kv_make(&kv, &m, ROWS);
    struct work *w = work_make(&m, &size);
    int32_t token[ROWS], pos[ROWS], slot[ROWS], wanted[ROWS], slots[SEQS][T];
    for (int at = 0; at < T; at += step) {
        int rows = T - at < step ? T - at : step, all = 0;
        struct forward_seq seqs[SEQS];
        for (int s = 0; s < SEQS; s++) {
            for (int i = 0; i < rows; i++, all++) {
                token[all] = (at + i) * 13 % 90 + s;
                pos[all] = at + i;
                slot[all] = slots[s][at + i] = ROWS - 1 - s - SEQS * (at + i);
                wanted[all] = all;
            }
            seqs[s] = (struct forward_seq){.rows = (size_t)rows, .slots = slots[s],
                                           .n_slots = (size_t)(at + rows)};
        }
        const struct forward f = {.token = token, .pos = pos, .slot = slot, .seqs = seqs,
                                  .n_seqs = SEQS, .mask = n->config.attends, .wanted = wanted,
                                  .n_wanted = (size_t)all};
        forward(&m, &kv, w, &f, t.answer + SEQS * at,
                t.logits + (size_t)(SEQS * at) * n->config.vocab);
    }
    work_free(w, &m);
    kv_free(&kv, &m);
    return t;
}

/* The largest difference of a logit, relative to the largest logit. */
static double apart(const struct network *n, const struct told *x, const struct told *y)
{
    double far = 0, most = 0;
    for (size_t i = 0; i < ROWS * n->config.vocab; i++) {
        double d = fabs((double)x->logits[i] - (double)y->logits[i]);
        far = d > far || d != d ? d : far;
        most = fmax(most, fabs((double)x->logits[i]));
    }
    return far / most;
}

static void compare(const struct network *n, const struct told *usual, int step,
                    struct variant how, size_t row_tile, double tolerance, const char *what)
{
    struct told t = run(n, how, row_tile, step);
    double far = apart(n, &t, usual);
    int answers = memcmp(t.answer, usual->answer, sizeof t.answer) != 0;
    ok(far <= tolerance && (tolerance > 0 || !answers), "%s, %d ids at a time: logits by %.1e%s",
       what, step, far, answers ? "" : ", answers the same to the bit");
    free(t.logits);
}

static void all(struct backend *b, const char *name, const char *dtype)
{
    struct network n;
    if (load(&n, b, name, dtype))
        return;
    /* bf16 probabilities are rounded before or after they are divided by their sum */
    double tolerance = strcmp(b->ops->name, "ref") ? strcmp(dtype, "bf16") ? 1e-5 : 3e-2 : 0;
    for (int step = T; step > 1; step = step > 9 ? 9 : 1) {
        struct told usual = run(&n, (struct variant){0}, 0, step);
        const size_t all_heads = SIZE_MAX;
        compare(&n, &usual, step, (struct variant){.scores = all_heads}, 0, tolerance,
                "all scores at once");
        compare(&n, &usual, step, (struct variant){.scores = 1}, 0, tolerance,
                "scores of a head at a time");
        compare(&n, &usual, step, (struct variant){.unfused = 1}, 0, 0, "unfused");
        compare(&n, &usual, step, (struct variant){.dense_head = 1}, 0, 0, "all logits at once");
        for (size_t tile = 1; tile < ROWS; tile = 3 * tile)
            compare(&n, &usual, step, (struct variant){.unfused = tile % 2}, tile, 0, "row tiles");
        free(usual.logits);
    }
    network_free(&n);
}

/* The estimated memory of the variants, at a size where the variants differ. test-load.c compares
 * the estimate with the allocated bytes. */
static void memory(struct backend *b)
{
    struct network n;
    struct err e = {0};
    struct checkpoint c;
    const struct precision p = {.dtype = "f32"};
    const size_t rows = 8 * 256, S = 256;
    const struct work_size size = {.rows = rows, .seqs = 8, .slots = S, .listed = rows,
                                   .wanted = rows / 2};
    if (!ok(!checkpoint_open(&c, "synth:llama3.2-1b", 7, &e) &&
                !network_settle(&n, b, &c, &p, &e), "synth:llama3.2-1b %s", e.text))
        return;
    const struct config *k = &n.config;
    size_t usual = estimate_of(&n, &size, 0).activations;
    struct work_size with = size;
    with.how = (struct variant){.scores = SIZE_MAX};
    size_t dense = estimate_of(&n, &with, 0).activations;
    with.how.scores = 1;
    size_t sliced = estimate_of(&n, &with, 0).activations;
    with.how = (struct variant){.unfused = 1};
    size_t unfused = estimate_of(&n, &with, 0).activations;
    with.how = (struct variant){.dense_head = 1};
    size_t logits = estimate_of(&n, &with, 0).activations;
    n.row_tile = 512;
    size_t tiled = estimate_of(&n, &size, 0).activations;
    n.row_tile = 0;
    /* operations share scratch memory, so an operation shows only where it needs the most */
    ok(dense >= 4 * k->heads * rows * S && sliced <= dense && sliced >= usual,
       "activations %zu; with all scores %zu, with those of a head %zu", usual, dense, sliced);
    ok(unfused == usual + 4 * rows * k->ffn, "unfused %zu", unfused);
    ok(logits >= 4 * size.wanted * k->vocab && logits > 2 * usual, "with all logits %zu", logits);
    ok(tiled < usual / 2, "512 rows at a time %zu, %.2f of them", tiled,
       (double)tiled / (double)usual);
    checkpoint_close(&c);
}

int main(void)
{
    struct backend *ref = backend_open("ref", NULL, 1, 0, NULL);
    struct backend *cpu = backend_open("cpu", NULL, 2, 0, NULL);
    static const char *const shapes[] = {"synth:tiny-llama", "synth:tiny-llada"};
    for (size_t i = 0; i < 2; i++) {
        all(ref, shapes[i], "f32");
        all(cpu, shapes[i], "f32");
        all(cpu, shapes[i], "bf16");
    }
    memory(cpu);
    backend_close(ref);
    backend_close(cpu);
    return tap_done();
}
