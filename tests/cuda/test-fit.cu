/* test-fit.cu - tests fitting latents on the device: gradients of whole networks against the
 * reference, with every mixer and texts of unequal length. Steps are replayed instead of recorded
 * again, and a fit has the same bits with and without replay. */
extern "C" {
#include "kernels/train.h"
#include "lib/network/network.h"
#include "lib/train/posterior.h"
}
#include "tests/cuda/rows-fixture.h"

enum { TEXTS = 3, LEN = 21, STEPS = 7 };
static const size_t lengths[TEXTS] = {LEN, 1, 9};

static void must(int bad, const struct err *e)
{
    if (bad) {
        printf("Bail out! %s\n", e->text);
        exit(1);
    }
}

/* A network on a back end, and the data for fitting latents to its texts. */
struct model {
    struct backend *b;
    struct checkpoint c;
    struct network n;
    struct parameters *p;
    struct backprop *t;
    struct posterior q;
    struct train_batch in;
};

static struct train_batch texts(const struct config *c)
{
    struct train_batch b = {};
    b.seqs = TEXTS, b.len = LEN;
    b.token = (int32_t *)mem_zero(TEXTS * LEN, 4);
    b.target = (int32_t *)mem_zero(TEXTS * LEN, 4);
    b.weight = (float *)mem_zero(TEXTS * LEN, 4);
    struct rng r = {3, 0, 0};
    for (size_t i = 0; i < TEXTS * LEN; i++)
        b.token[i] = (int32_t)rng_below(&r, c->vocab);
    for (size_t s = 0; s < TEXTS; s++)
        for (size_t i = s * LEN; i + 1 < s * LEN + lengths[s]; i++) {
            b.target[i] = b.token[i + 1];
            b.weight[i] = 1;
        }
    return b;
}

static struct model open_model(struct backend *b, const char *shape, size_t window)
{
    struct model m = {};
    struct err e = {};
    struct precision how = {};
    how.dtype = "f32";
    m.b = b;
    must(checkpoint_open(&m.c, shape, 3, &e), &e);
    m.c.config.window = window;
    must(network_load(&m.n, b, &m.c, &how, &e), &e);
    struct backprop_how back = {};
    back.products = DTYPE_F32;
    back.latents = 1;
    m.p = parameters_read(&m.n);
    m.t = backprop_make_as(m.p, TEXTS * LEN, TEXTS, &back);
    must(!m.t || posterior_make(&m.q, &m.n.config, b, TEXTS), &e);
    m.in = texts(&m.n.config);
    m.in.z = m.q.z;
    return m;
}

static void close_model(struct model *m)
{
    free(m->in.token), free(m->in.target), free(m->in.weight);
    posterior_free(&m->q);
    backprop_free(m->t);
    parameters_free(m->p);
    network_free(&m->n);
    checkpoint_close(&m->c);
}

static size_t values_of(const struct model *m)
{
    return TEXTS * m->n.config.layers * m->n.config.latents * m->n.config.width;
}

/* Returns max |x - y| / max |y|. */
static double apart(const float *x, const float *y, size_t n)
{
    double far = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = fabs((double)x[i] - y[i]);
        far = isnan(d) ? INFINITY : fmax(far, d);
        most = fmax(most, fabs((double)y[i]));
    }
    return most > 0 ? far / most : INFINITY;
}

static void gradients(struct fixture *f, const char *shape, size_t window)
{
    struct model a = open_model(f->cuda, shape, window), b = open_model(f->ref, shape, window);
    const size_t n = values_of(&a);
    struct rng r = {6, 0, 0};
    for (size_t i = 0; i < n; i++)
        a.q.z[i] = b.q.z[i] = (float)rng_normal(&r);
    const double x = backprop_loss(a.t, &a.in, BACKPROP_LATENTS);
    const double y = backprop_loss(b.t, &b.in, BACKPROP_LATENTS);
    const double far = apart(backprop_latents(a.t), backprop_latents(b.t), n);
    double losses = 0;
    for (int s = 0; s < TEXTS; s++)
        losses = fmax(losses, fabs(backprop_losses(a.t)[s] - backprop_losses(b.t)[s]));
    ok(far < 2e-5 && fabs(x - y) < 1e-6 * y && losses < 1e-5 * y,
       "%s, window %zu: gradients are off by %.1e, losses by %.1e of %.1f", shape, window, far,
       losses, y);
    memset(a.in.weight, 0, TEXTS * LEN * sizeof(float));
    const double none = backprop_loss(a.t, &a.in, BACKPROP_LATENTS);
    int zeros = none == 0;
    for (size_t i = 0; i < n; i++)
        zeros &= backprop_latents(a.t)[i] == 0;
    ok(zeros, "%s: where nothing is scored, nothing pulls", shape);
    close_model(&a);
    close_model(&b);
}

/* A table that counts the requested products. */
static struct ops counting;
static struct train_ops counting_train;
static const struct ops *counted;
static size_t asked;

static void count_gemm(struct backend *b, const struct gemm *g, size_t n, void *work)
{
    asked++;
    counted->train->gemm(b, g, n, work);
}

/* Fits latents, and counts the products that the fit requested. The caller frees the result. */
static float *fitted(struct backend *b, const char *shape, size_t window, int prepares)
{
    static const uint64_t keys[TEXTS] = {7, 8, 9};
    struct model m = open_model(b, shape, window);
    struct posterior_fit how = {};
    how.steps = STEPS, how.rate = POSTERIOR_RATE, how.seed = 5;
    posterior_start(&m.q, how.seed, keys, TEXTS);
    if (prepares)
        backprop_prepare(m.t, &m.in);
    asked = 0;
    posterior_run(&m.q, m.t, &m.in, &how, keys, 0, NULL);
    float *mean = floats(values_of(&m));
    memcpy(mean, m.q.mean, values_of(&m) * sizeof *mean);
    close_model(&m);
    return mean;
}

static void replays(struct fixture *f, const char *shape, size_t window)
{
    counted = f->cuda->ops;
    counting = *counted;
    counting_train = *counted->train;
    counting_train.gemm = count_gemm;
    counting.train = &counting_train;
    f->cuda->ops = &counting;
    float *a = fitted(f->cuda, shape, window, 1);
    const size_t replayed = asked;
    float *b = fitted(f->cuda, shape, window, 0);
    const size_t third = asked; /* products of the first step, of a later step, and of its record */
    f->cuda->unrecorded = 1;
    float *c = fitted(f->cuda, shape, window, 0);
    const size_t made = asked;
    f->cuda->unrecorded = 0;
    f->cuda->ops = counted;
    float *want = fitted(f->ref, shape, window, 0);
    const size_t n = TEXTS * 2 * 64; /* two layers of 64, or more */
    ok(replayed == 0 && third > 0 && third < made * 3 / (STEPS - 1),
       "%s: steps of a fit are replayed: %zu products asked for, %zu without preparation, "
       "%zu without records", shape, replayed, third, made);
    ok(!memcmp(a, b, n * sizeof *a) && !memcmp(a, c, n * sizeof *a),
       "%s: and the latents have the same bits", shape);
    const double far = apart(a, want, n);
    ok(far < 1e-3, "%s: latents after %d steps are off by %.1e of the reference's", shape, STEPS,
       far);
    free(a), free(b), free(c), free(want);
}

int main(void)
{
    struct fixture f = fixture_open();
    f.cuda->act = DTYPE_F32;
    gradients(&f, "synth:tiny-ltm", 5);
    gradients(&f, "synth:tiny-ltm", 100);
    gradients(&f, "synth:tiny-ltm-rwkv6", 0);
    gradients(&f, "synth:tiny-ltm-rwkv7", 0);
    replays(&f, "synth:tiny-ltm", 5);
    replays(&f, "synth:tiny-ltm-rwkv7", 0);
    fixture_close(&f);
    return tap_done();
}
