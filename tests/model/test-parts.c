/* test-parts.c - tests a batch in parts. One trainer that computes the parts in turn, and one
 * trainer per part whose gradients are summed in the order of parts, learn the same bits. The loss
 * equals that of the whole batch up to the order of sums. Only the activations of one part exist at
 * a time. Trainers that share a batch are threads here, and processes in lib/train/ranks.h. */
#include <pthread.h>

#include "tests/model/trained.h"
#include "tests/tap.h"

enum { LEN = 16, SEQS = 5, CUT = 3, STEPS = 4, WIDTH = 24 };

static struct config shape(const struct family *f)
{
    return trained_config(f, MIXER_ATTENTION, 0, WIDTH, 40);
}

/* Makes the batch of a step. The third batch has fewer sequences than there are parts. */
static void fill(struct train_batch *b, uint64_t step, int latent)
{
    struct rng r = {.seed = step};
    b->seqs = step == 2 ? CUT - 1 : SEQS;
    b->len = LEN;
    for (size_t i = 0; i < b->seqs * LEN; i++) {
        b->token[i] = (int32_t)rng_below(&r, TRAINED_VOCAB);
        b->target[i] = (int32_t)rng_below(&r, TRAINED_VOCAB);
        b->weight[i] = i % 4 == 3 ? 0 : latent ? 1 : 1 / (float)(b->seqs * LEN);
    }
}

struct outcome {
    double loss[STEPS], held; /* held: loss of a batch without a gradient */
    float embed[TRAINED_VOCAB * WIDTH];
};

static void learn(const struct config *c, const struct trainer_how *how, struct outcome *out)
{
    struct backend *be = backend_open("cpu", NULL, 1, 0, NULL);
    struct err e = {0};
    struct trainer *t = trainer_make_as(c, be, 5, SEQS * LEN, how, &e);
    struct train_batch b = train_batch_room(SEQS * LEN);
    trainer_fit(t, &(struct posterior_fit){3, POSTERIOR_RATE, 7});
    for (uint64_t step = 0; step < STEPS; step++) {
        fill(&b, step, c->latents > 0);
        out->loss[step] = trainer_loss(t, &b, 1);
        trainer_update(t, 1e-2, 0.1, 1);
    }
    out->held = trainer_loss(t, &b, 0);
    memcpy(out->embed, trainer_values(t, ROLE_EMBED, 0), sizeof out->embed);
    train_batch_free(&b);
    trainer_free(t);
    backend_close(be);
}

/* ---- trainers that share a batch ---- */

struct meeting {
    pthread_barrier_t here;
    float *g[CUT];
    double loss[CUT];
};
struct member {
    struct meeting *at;
    const struct config *c;
    size_t me;
    struct outcome out;
};

static void sum(void *ctx, double *loss, float *g, size_t n, float *work)
{
    const struct member *m = ctx;
    struct meeting *at = m->at;
    at->g[m->me] = g;
    at->loss[m->me] = *loss;
    pthread_barrier_wait(&at->here);
    double all = at->loss[0];
    memcpy(work, at->g[0], n * sizeof *work);
    for (size_t p = 1; p < CUT; p++) {
        all += at->loss[p];
        for (size_t i = 0; i < n; i++)
            work[i] += at->g[p][i];
    }
    pthread_barrier_wait(&at->here);
    memcpy(g, work, n * sizeof *g);
    *loss = all;
}

static void *learn_part(void *ctx)
{
    struct member *m = ctx;
    const struct trainer_how how = {.parts = CUT, .longest = LEN, .me = m->me, .sum = sum,
                                    .ctx = m};
    learn(m->c, &how, &m->out);
    return NULL;
}

static int same(const struct outcome *a, const struct outcome *b)
{
    return !memcmp(a->loss, b->loss, sizeof a->loss) && !memcmp(a->embed, b->embed,
           sizeof a->embed) && !memcmp(&a->held, &b->held, sizeof a->held);
}

static void together(const struct config *c, const struct outcome *one)
{
    struct meeting at;
    struct member *m = mem_zero(CUT, sizeof *m);
    pthread_t thread[CUT];
    int good = 1;
    pthread_barrier_init(&at.here, NULL, CUT);
    for (size_t i = 0; i < CUT; i++) {
        m[i] = (struct member){.at = &at, .c = c, .me = i};
        pthread_create(&thread[i], NULL, learn_part, &m[i]);
    }
    for (size_t i = 0; i < CUT; i++) {
        pthread_join(thread[i], NULL);
        good &= same(&m[i].out, one);
    }
    ok(good, "%s: %d trainers, a part each, and one that takes all parts: the same bits",
       c->family->name, CUT);
    pthread_barrier_destroy(&at.here);
    free(m);
}

static void check(const struct family *f)
{
    const struct config c = shape(f);
    const struct trainer_how whole = {.parts = 1}, parts = {.parts = CUT, .longest = LEN};
    struct outcome *a = mem_zero(2, sizeof *a), *b = a + 1;
    double far = 0;
    learn(&c, &whole, a);
    learn(&c, &parts, b);
    for (int i = 0; i < STEPS; i++)
        far = fmax(far, fabs(a->loss[i] - b->loss[i]) / a->loss[i]);
    far = fmax(far, fabs(a->held - b->held) / a->held);
    ok(far > 0 && far < 2e-5, "%s: in %d parts the losses of %d steps are off by %.1g at most",
       f->name, CUT, STEPS, far);
    together(&c, b);
    free(a);
}

/* Two parts of eight sequences need half of the activations; the memory for a sum is planned
 * too. */
static void bytes(void)
{
    struct backend *be = backend_open("cpu", NULL, 1, 0, NULL);
    const struct config c = shape(&ltm_family);
    const struct trainer_how one = {.parts = 1}, four = {.parts = 4, .longest = LEN};
    struct err e = {0};
    const struct trainer_need all = trainer_need(&c, be, 64 * LEN, &one, QUANT_NONE);
    const struct trainer_need need = trainer_need(&c, be, 64 * LEN, &four, QUANT_NONE);
    struct trainer *t = trainer_make_as(&c, be, 5, 64 * LEN, &four, &e);
    ok(t && be->memory.kind[MEMORY_WEIGHTS] == need.parameters &&
           be->memory.kind[MEMORY_ACTIVATIONS] == need.activations && need.activations * 3 <
           all.activations, "in 4 parts: %zu bytes of activations for %zu, as planned",
       need.activations, all.activations);
    trainer_free(t);
    ok(be->memory.allocated == 0, "the trainer frees all that it allocated");
    backend_close(be);
}

int main(void)
{
    check(&llama_family);
    check(&llada_family);
    check(&ltm_family);
    bytes();
    return tap_done();
}
