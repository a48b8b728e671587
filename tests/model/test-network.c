/* test-network.c - tests the forward pass: cpu agrees with ref; a cache, a batch or a subset of
 * rows does not change results; likelihoods agree with sums made here. */
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/decode/likelihood.h"
#include "lib/network/forward.h"
#include "lib/network/network.h"
#include "tests/tap.h"

enum { T = 21 };

static struct network open_network(struct backend *b, const char *name)
{
    struct err e = {0};
    struct checkpoint c;
    struct network n = {0};
    const struct precision p = {.dtype = "f32"};
    ok(!checkpoint_open(&c, name, 7, &e) && !network_load(&n, b, &c, &p, &e), "%s on %s %s", name,
       b->ops->name, e.text);
    checkpoint_close(&c);
    return n;
}

/* Computes log-probabilities of the next ids of one sequence, all rows at once and without a
 * cache. */
static void plain(const struct network *n, const int32_t *ids, enum mask mask, double *out)
{
    int32_t pos[T], wanted[T], target[T];
    struct head_row rows[T];
    for (int i = 0; i < T; i++) {
        pos[i] = wanted[i] = i;
        target[i] = ids[(i + 1) % T];
    }
    struct forward_seq seq = {.rows = T};
    struct forward f = {.token = ids,
                        .pos = pos,
                        .seqs = &seq,
                        .n_seqs = 1,
                        .mask = mask,
                        .mask_block = 4,
                        .wanted = wanted,
                        .n_wanted = T,
                        .query = {.target = target}};
    struct work *w = work_make(n, &(struct work_size){.rows = T, .seqs = 1, .slots = T,
                                                    .listed = T, .wanted = T});
    forward(n, NULL, w, &f, rows, NULL);
    for (int i = 0; i < T; i++)
        out[i] = rows[i].target_log_prob;
    work_free(w, n);
}

/* Computes the values of plain() with a cache, `step` rows at a time, in slots in reverse order. */
static void cached(const struct network *n, const int32_t *ids, int step, double *out)
{
    struct kv kv;
    kv_make(&kv, n, T);
    const struct work_size size = {.rows = (size_t)step, .seqs = 1, .slots = T, .listed = T,
                                   .wanted = (size_t)step, .cached = 1};
    struct work *w = work_make(n, &size);
    int32_t slots[T];
    for (int i = 0; i < T; i++)
        slots[i] = T - 1 - i;
    for (int at = 0; at < T; at += step) {
        int rows = T - at < step ? T - at : step;
        int32_t pos[T], wanted[T], target[T];
        struct head_row out_rows[T];
        for (int i = 0; i < rows; i++) {
            pos[i] = at + i;
            wanted[i] = i;
            target[i] = ids[(at + i + 1) % T];
        }
        struct forward_seq seq = {(size_t)rows, slots, (size_t)(at + rows), 0};
        struct forward f = {.token = ids + at,
                            .pos = pos,
                            .slot = slots + at,
                            .seqs = &seq,
                            .n_seqs = 1,
                            .mask = MASK_CAUSAL,
                            .wanted = wanted,
                            .n_wanted = (size_t)rows,
                            .query = {.target = target}};
        forward(n, &kv, w, &f, out_rows, NULL);
        for (int i = 0; i < rows; i++)
            out[at + i] = out_rows[i].target_log_prob;
    }
    work_free(w, n);
    kv_free(&kv, n);
}

static double apart(const double *a, const double *b)
{
    double far = 0;
    for (int i = 0; i < T; i++)
        far = fmax(far, fabs(a[i] - b[i]));
    return far;
}

/* Computes the values of plain() for the second of two copies of the sequence, with a shorter
 * sequence between them, in one batch. */
static void batched(const struct network *n, const int32_t *ids, enum mask mask, double *out)
{
    int32_t token[3 * T], pos[3 * T], wanted[T], target[T];
    struct head_row rows[T];
    struct forward_seq seqs[3] = {{.rows = T}, {.rows = 5}, {.rows = T}};
    for (int i = 0; i < T; i++) {
        token[i] = token[T + 5 + i] = ids[i];
        pos[i] = pos[T + 5 + i] = i;
        wanted[i] = T + 5 + i;
        target[i] = ids[(i + 1) % T];
    }
    for (int i = 0; i < 5; i++) {
        token[T + i] = ids[3 * i];
        pos[T + i] = i;
    }
    struct forward f = {.token = token,
                        .pos = pos,
                        .seqs = seqs,
                        .n_seqs = 3,
                        .mask = mask,
                        .wanted = wanted,
                        .n_wanted = T,
                        .query = {.target = target}};
    struct work *w = work_make(n, &(struct work_size){.rows = 3 * T, .seqs = 3, .slots = T,
                                                    .listed = 3 * T, .wanted = T});
    forward(n, NULL, w, &f, rows, NULL);
    for (int i = 0; i < T; i++)
        out[i] = rows[i].target_log_prob;
    work_free(w, n);
}

static void passes(const struct network *cpu, const struct network *ref, const int32_t *ids)
{
    static const enum mask masks[] = {MASK_CAUSAL, MASK_FULL, MASK_BLOCK_CAUSAL};
    double a[T], b[T];
    for (int i = 0; i < 3; i++) {
        plain(cpu, ids, masks[i], a);
        plain(ref, ids, masks[i], b);
        ok(apart(a, b) < 1e-4, "cpu agrees with ref, mask %d (%g)", (int)masks[i], apart(a, b));
    }
    plain(cpu, ids, MASK_FULL, a);
    batched(cpu, ids, MASK_FULL, b);
    ok(apart(a, b) == 0, "a batch of unequal sequences gives the same bits");
    plain(cpu, ids, MASK_CAUSAL, a);
    cached(cpu, ids, 1, b);
    ok(apart(a, b) < 1e-5, "a cache, one row at a time (%g)", apart(a, b));
    cached(cpu, ids, 8, b);
    ok(apart(a, b) < 1e-5, "a cache, eight rows at a time (%g)", apart(a, b));
}

static void nll(const struct network *n, const int32_t *ids)
{
    struct err e = {0};
    struct likelihood l;
    double rows[T], sum = 0;
    plain(n, ids, MASK_CAUSAL, rows);
    for (int i = 0; i + 1 < T; i++)
        sum -= rows[i];
    ok(!likelihood_nll(n, ids, T, 1, &l, &e) && l.scored == T - 1 && fabs(l.nats - sum) < 1e-9,
       "nll is the sum over targets");
    struct network narrow = *n;
    narrow.config.context = 8;
    ok(!likelihood_nll(&narrow, ids, T, 1, &l, &e) && l.scored == T - 1 && l.nats > 0 &&
           fabs(l.nats - sum) > 1e-9,
       "windows score every token once");
    narrow.config.context = T;
    ok(!likelihood_nll(&narrow, ids, T, 1, &l, &e) && fabs(l.nats - sum) < 1e-9,
       "a window as long as the text gives the nll without windows");
    ok(likelihood_nll(n, ids, 1, 1, &l, &e) == -1 && e.code == EXIT_BAD_DATA,
       "a likelihood of one token is refused: %s", e.text);
}

static void bounds(const struct network *n, const int32_t *ids)
{
    struct err e = {0};
    struct likelihood k1, one, many, full;
    ok(!likelihood_kstep(n, ids, T, 4, 1, 3, 1, 2, &k1, &e) && k1.scored == T - 4, "K = 1 %s",
       e.text);
    ok(fabs(k1.se) < 1e-9, "with one group every order is the same");
    ok(!likelihood_elbo(n, ids, T, T - 1, 5, 1, 2, &one, &e) && fabs(one.se) < 1e-9,
       "the elbo of one token is exact");
    likelihood_kstep(n, ids, T, T - 1, 9, 2, 1, 2, &many, &e);
    ok(fabs(one.nats - many.nats) < 1e-9, "the elbo of one token equals its K-step bound");
    likelihood_elbo(n, ids, T, 4, 600, 1, 2, &many, &e);
    likelihood_kstep(n, ids, T, 4, T - 4, 100, 1, 2, &full, &e);
    ok(fabs(many.nats - full.nats) < 5 * (many.se + full.se),
       "K = L in random order has the elbo's mean: %.3f +- %.3f, %.3f +- %.3f", many.nats, many.se,
       full.nats, full.se);
    struct likelihood again;
    likelihood_elbo(n, ids, T, 4, 600, 1, 2, &again, &e);
    ok(again.nats == many.nats, "the same seed and key give the same bits");
}

int main(void)
{
    struct backend *cpu = backend_open("cpu", NULL, 2, 0, NULL);
    struct backend *ref = backend_open("ref", NULL, 1, 0, NULL);
    int32_t ids[T];
    struct rng r = {.seed = 5};
    static const char *const names[] = {"synth:tiny-llama", "synth:tiny-llada"};
    for (int k = 0; k < 2; k++) {
        struct network a = open_network(cpu, names[k]), b = open_network(ref, names[k]);
        for (int i = 0; i < T; i++)
            ids[i] = (int32_t)rng_below(&r, a.config.vocab / 2);
        passes(&a, &b, ids);
        if (k)
            bounds(&a, ids);
        else
            nll(&a, ids);
        network_free(&a);
        network_free(&b);
    }
    ok(cpu->memory.allocated == 0 && ref->memory.allocated == 0,
       "all memory of a network is freed");
    struct checkpoint c;
    struct network n;
    struct err e = {0};
    struct backend *small = backend_open("cpu", NULL, 1, 100000, NULL);
    checkpoint_open(&c, names[0], 7, &e);
    const struct precision any = {.dtype = "auto"};
    ok(network_load(&n, small, &c, &any, &e) == -1 && e.code == EXIT_FAILED_RECORDS &&
           small->memory.allocated == 0,
       "a network that does not fit is refused: %s", e.text);
    checkpoint_close(&c);
    backend_close(small);
    backend_close(cpu);
    backend_close(ref);
    return tap_done();
}
