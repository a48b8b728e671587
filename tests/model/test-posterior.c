/* test-posterior.c - tests posteriors of latents. The estimate is a bound on a model with a known
 * likelihood, and is no bound if the noise of the fit also scores it. The numbers of a text do not
 * depend on other texts. A trained latent model predicts a text better with the latents of this
 * text than without latents or with the latents of another text. */
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/train/posterior.h"
#include "lib/train/trainer.h"
#include "tests/tap.h"

static struct config shape(const struct family *f, size_t width, size_t vocab, size_t window)
{
    return (struct config){.family = f, .paradigm = f->start.paradigm, .attends = MASK_CAUSAL,
                           .name = "tiny", .width = width, .layers = 1, .heads = 1, .kv_heads = 1,
                           .head_dim = width, .rope_dims = width, .ffn = 2 * width, .vocab = vocab,
                           .context = 128, .tied = 0, .norm_eps = 1e-5, .rope_theta = 10000,
                           .bos = -1, .pad = -1, .mask = -1, .eot = -1, .window = window,
                           .latents = f == &ltm_family ? 1 : 0};
}

static struct train_batch room_for(size_t seqs, size_t len)
{
    struct train_batch b = train_batch_room(seqs * len);
    b.seqs = seqs;
    b.len = len;
    for (size_t i = 0; i < seqs * len; i++)
        b.weight[i] = 1;
    return b;
}

/* ---- a known likelihood ---- */

/* z has two dimensions, so p(x) is an integral over a plane, and there are 81 texts x. */
enum { LEN = 4, VOCAB = 3, TEXTS = 81, SIDE = 61, POINTS = SIDE * SIDE };

static void write_text(struct train_batch *b, size_t s, size_t text)
{
    int32_t last = 0;
    for (size_t i = 0; i < LEN; i++, text /= VOCAB) {
        b->token[s * LEN + i] = last;
        b->target[s * LEN + i] = last = (int32_t)(text % VOCAB);
    }
}

/* log of the integral of p(x|z) N(z; 0, I), by the trapezoidal rule on [-6, 6]^2. The function is
 * smooth and almost 0 at the border, so the error of the rule falls faster than any power of the
 * step. */
static double exact(struct backprop *t, struct train_batch *all, size_t text)
{
    const double step = 12.0 / (SIDE - 1);
    double sum = 0;
    for (size_t s = 0; s < POINTS; s++)
        write_text(all, s, text);
    backprop_loss(t, all, BACKPROP_LOSS);
    for (size_t s = 0; s < POINTS; s++) {
        double x = (double)all->z[2 * s], y = (double)all->z[2 * s + 1];
        sum += exp(-backprop_losses(t)[s] - 0.5 * (x * x + y * y)) * step * step / (2 * M_PI);
    }
    return log(sum);
}

static void all_exact(struct parameters *p, double *truth)
{
    struct backprop *t = backprop_make(p, POINTS * LEN, POINTS, DTYPE_F32);
    struct train_batch all = room_for(POINTS, LEN);
    float *z = mem_alloc(2 * POINTS * sizeof *z);
    double total = 0;
    for (size_t s = 0; s < POINTS; s++) {
        z[2 * s] = (float)(-6 + 12.0 * (double)(s % SIDE) / (SIDE - 1));
        z[2 * s + 1] = (float)(-6 + 12.0 * (double)(s / SIDE) / (SIDE - 1));
    }
    all.z = z;
    for (size_t i = 0; i < TEXTS; i++)
        total += exp(truth[i] = exact(t, &all, i));
    ok(fabs(total - 1) < 1e-5, "the likelihoods of all texts add up to %.7f", total);
    train_batch_free(&all);
    free(z);
    backprop_free(t);
}

static struct parameters *strong(const struct config *c, struct backend *b)
{
    struct parameters *p = parameters_make(c, b, train_ops_of(b->ops), 5);
    struct rng r = {.seed = 2};
    for (size_t i = 0; i < p->n; i++)
        p->w[i] = (float)(1.5 * rng_normal(&r)); /* large, so that z changes the text much */
    return p;
}

struct tally {
    size_t above; /* number of bounds above the truth by more than four standard errors */
    double gap;   /* sum of truth - bound */
};

static void add(struct tally *t, double truth, double bound, double se)
{
    t->above += bound > truth + 4 * se;
    t->gap += truth - bound;
}

/* The fit with one draw of noise for all its steps and also for its score. */
static double fixed_noise(struct posterior *q, struct backprop *t, struct train_batch *in,
                          const struct posterior_fit *fit, uint64_t key)
{
    posterior_start(q, fit->seed, &key, 1);
    memset(q->moment[0], 0, 2 * sizeof(float));
    memset(q->moment[1], 0, 2 * sizeof(float));
    memset(q->moment[2], 0, 2 * sizeof(float));
    memset(q->moment[3], 0, 2 * sizeof(float));
    for (size_t i = 0; i < fit->steps; i++) {
        posterior_draw(q, fit->seed, &key, 1, 0);
        posterior_step(q, t, in, 0.1, (int64_t)i + 1);
    }
    posterior_draw(q, fit->seed, &key, 1, 0);
    in->z = q->z;
    return -backprop_loss(t, in, BACKPROP_LOSS) - posterior_kl(q, 1, 0);
}

static void test_bound(void)
{
    enum { FITS = 1000, DRAWS = 64 };
    struct backend *b = backend_open("cpu", NULL, 1, 0, NULL);
    struct config c = shape(&ltm_family, 2, VOCAB, 3);
    struct parameters *p = strong(&c, b);
    double truth[TEXTS], work[DRAWS];
    all_exact(p, truth);
    struct backprop *t = backprop_make(p, LEN, 1, DTYPE_F32);
    struct train_batch in = room_for(1, LEN);
    struct posterior q;
    struct tally elbo = {0}, iwae = {0}, last = {0}, fixed = {0};
    ok(!posterior_make(&q, &c, b, 1), "room for a posterior");
    for (size_t i = 0; i < FITS; i++) {
        const struct posterior_fit fit = {16 + i % 3 * 24, POSTERIOR_RATE, 9};
        const uint64_t key = i;
        double one;
        write_text(&in, 0, i % TEXTS);
        posterior_start(&q, fit.seed, &key, 1);
        posterior_run(&q, t, &in, &fit, &key, 0, &one);
        struct posterior_bound v = posterior_score(&q, t, &in, DRAWS, 0, fit.seed, key, work);
        add(&elbo, truth[i % TEXTS], -v.nats, v.se);
        v = posterior_score(&q, t, &in, DRAWS, 1, fit.seed, key, work);
        add(&iwae, truth[i % TEXTS], -v.nats, v.se);
        add(&last, truth[i % TEXTS], -one, 0);
        add(&fixed, truth[i % TEXTS], fixed_noise(&q, t, &in, &fit, key), 0);
    }
    ok(elbo.above == 0 && elbo.gap > 0, "ELBO: %zu of %d above, %.3f nats below in the mean",
       elbo.above, FITS, elbo.gap / FITS);
    ok(iwae.above == 0 && iwae.gap > 0 && iwae.gap < elbo.gap,
       "IWAE: %zu of %d above, %.3f nats below in the mean", iwae.above, FITS, iwae.gap / FITS);
    ok(last.gap > 0, "the last step's one draw: %.3f nats below in the mean", last.gap / FITS);
    ok(fixed.above > FITS / 5, "scored by the noise of its fit it is no bound: %zu of %d above",
       fixed.above, FITS);
    posterior_free(&q);
    train_batch_free(&in);
    backprop_free(t);
    parameters_free(p);
    backend_close(b);
}

/* ---- the numbers of a text do not depend on other texts ---- */

static void test_alone(void)
{
    enum { SEQS = 3, MOST = 9 };
    struct backend *b = backend_open("cpu", NULL, 2, 0, NULL);
    struct config c = shape(&ltm_family, 8, 20, 4);
    c.latents = 2;
    struct parameters *p = strong(&c, b);
    struct backprop *t = backprop_make(p, SEQS * MOST, SEQS, DTYPE_F32);
    const struct posterior_fit fit = {5, POSTERIOR_RATE, 3};
    const uint64_t keys[SEQS] = {7, 8, 9};
    struct train_batch all = room_for(SEQS, MOST), one = room_for(1, 6);
    struct posterior q, r;
    double bound[SEQS], own;
    for (size_t i = 0; i < SEQS * MOST; i++) {
        all.token[i] = (int32_t)(i * 7 % 20);
        all.target[i] = (int32_t)((i + 1) * 7 % 20);
        all.weight[i] = i / MOST == 1 && i % MOST >= 6 ? 0 : 1; /* the second text has six ids */
    }
    memcpy(one.token, all.token + MOST, 6 * sizeof *one.token);
    memcpy(one.target, all.target + MOST, 6 * sizeof *one.target);
    posterior_make(&q, &c, b, SEQS);
    posterior_make(&r, &c, b, 1);
    posterior_start(&q, fit.seed, keys, SEQS);
    posterior_run(&q, t, &all, &fit, keys, 0, bound);
    posterior_start(&r, fit.seed, keys + 1, 1);
    posterior_run(&r, t, &one, &fit, keys + 1, 0, &own);
    size_t n = c.latents * c.width;
    ok(!memcmp(q.mean + n, r.mean, n * sizeof *r.mean) &&
           !memcmp(q.spread + n, r.spread, n * sizeof *r.spread) && bound[1] == own &&
           posterior_kl(&q, SEQS, 1) == posterior_kl(&r, 1, 0),
       "a posterior among others, behind it padding, has the bits that it has alone");
    ok(memcmp(q.mean, r.mean, n * sizeof *r.mean) != 0, "another text has another posterior");
    posterior_free(&q);
    posterior_free(&r);
    train_batch_free(&all);
    train_batch_free(&one);
    backprop_free(t);
    parameters_free(p);
    backend_close(b);
}

/* ---- the gain of latents ---- */

/* A text has a topic: half of its words, at random. Two words hardly show the topic. */
enum { WORDS = 32, TOPICS = 16, LONG = 120, MANY = 8 };

static void draw_topics(struct train_batch *b, uint64_t seed)
{
    struct rng r = {.seed = seed};
    for (size_t s = 0; s < b->seqs; s++) {
        uint64_t topic = rng_below(&r, TOPICS);
        int32_t last = 0;
        for (size_t i = 0; i < b->len;) {
            uint64_t word = rng_below(&r, WORDS);
            if (rng_at(77, topic, word) & 1)
                continue;
            b->token[s * b->len + i] = last;
            b->target[s * b->len + i++] = last = (int32_t)word;
        }
    }
}

/* Loss a token on texts that were not trained on. */
static double learned(struct trainer *t, struct train_batch *b, float weight)
{
    enum { STEPS = 320, HELD = 8 };
    double loss = 0;
    for (size_t i = 0; i < b->seqs * b->len; i++)
        b->weight[i] = weight;
    for (int i = 0; i < STEPS; i++) {
        draw_topics(b, 1000 + (uint64_t)i);
        trainer_loss(t, b, 1);
        trainer_update(t, 1e-2 * (1 - (double)i / STEPS), 0.01, 1);
    }
    for (uint64_t i = 0; i < HELD; i++) {
        draw_topics(b, i);
        loss += trainer_loss(t, b, 0) / HELD;
    }
    return loss;
}

/* The loss of texts whose posteriors were fitted, with the text's own latents or its
 * neighbour's. */
static void test_shuffled(struct trainer *t, const struct config *c, struct backend *b,
                          struct train_batch *in)
{
    struct parameters *p = parameters_make(c, b, train_ops_of(b->ops), 1);
    struct backprop *back = backprop_make(p, MANY * LONG, MANY, DTYPE_F32);
    const struct posterior_fit fit = {16, POSTERIOR_RATE, 4};
    uint64_t keys[MANY];
    struct posterior q;
    size_t piece = c->latents * c->width;
    for (int r = 0; r < ROLE_COUNT; r++)
        if (role_layers(c, (enum role)r)) {
            size_t rows, cols;
            role_shape(c, (enum role)r, &rows, &cols);
            memcpy(parameters_values(p, (enum role)r, 0), trainer_values(t, (enum role)r, 0),
                   rows * cols * sizeof(float));
        }
    for (size_t s = 0; s < MANY; s++)
        keys[s] = s;
    draw_topics(in, 3);
    posterior_make(&q, c, b, MANY);
    posterior_start(&q, 1, keys, MANY);
    posterior_run(&q, back, in, &fit, keys, 0, NULL);
    in->z = q.mean;
    double own = backprop_loss(back, in, BACKPROP_LOSS), kl = 0;
    for (size_t s = 0; s < MANY; s++)
        kl += posterior_kl(&q, MANY, s);
    memcpy(q.z, q.mean + piece, (MANY - 1) * piece * sizeof(float));
    memcpy(q.z + (MANY - 1) * piece, q.mean, piece * sizeof(float));
    in->z = q.z;
    double other = backprop_loss(back, in, BACKPROP_LOSS);
    ok(other > own + 0.2 * MANY * LONG, "another text's latents: %.3f nats a token, its own %.3f",
       other / MANY / LONG, own / MANY / LONG);
    ok(kl > MANY, "the posteriors are %.2f nats from the prior in the mean", kl / MANY);
    posterior_free(&q);
    backprop_free(back);
    parameters_free(p);
}

static void test_latents_help(void)
{
    struct backend *b = backend_open("cpu", NULL, 1, 0, NULL);
    struct config plain = shape(&llama_family, 16, WORDS, 2), c = shape(&ltm_family, 16, WORDS, 2);
    struct err e = {0};
    struct trainer *without = trainer_make(&plain, b, 3, MANY * LONG, DTYPE_F32, &e);
    struct trainer *with = trainer_make(&c, b, 3, MANY * LONG, DTYPE_F32, &e);
    trainer_fit(with, &(struct posterior_fit){16, POSTERIOR_RATE, 3});
    struct train_batch in = room_for(MANY, LONG);
    double nll = learned(without, &in, 1.0f / (MANY * LONG)), bound = learned(with, &in, 1);
    ok(bound < nll - 0.05, "held out: -ELBO %.3f nats a token, without latents %.3f", bound, nll);
    test_shuffled(with, &c, b, &in);
    train_batch_free(&in);
    trainer_free(with);
    trainer_free(without);
    backend_close(b);
}

int main(void)
{
    test_bound();
    test_alone();
    test_latents_help();
    return tap_done();
}
