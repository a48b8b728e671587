/* test-mixing-slopes.c - compares gradients of RWKV 6 and 7 networks in fp32 with finite
 * differences of the papers' definitions in double (naive-mixing.h), because only double still has
 * digits at the small steps that are needed. */
#include <math.h>

#include "lib/train/backprop.h"
#include "tests/model/naive-mixing.h"

enum { SHORT = 21 };
static char folder[] = "/tmp/crossover-test-mixing-slopes-XXXXXX";

/* The parameters of a checkpoint with their gradients, and the arrays of a batch. */
struct learner {
    struct parameters *p;
    struct backprop *t;
    struct train_batch batch;
};

static void make_learner(struct learner *w, struct backend *b, const struct checkpoint *c,
                         const int32_t *ids)
{
    w->p = parameters_make(&c->config, b, train_ops_of(b->ops), 1);
    w->t = w->p ? backprop_make(w->p, SHORT, 1, DTYPE_F32) : NULL;
    if (!w->t)
        exit(1);
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t l = 0; l < role_layers(&c->config, (enum role)r); l++)
            checkpoint_floats(c, (enum role)r, l, parameters_values(w->p, (enum role)r, l));
    float *weight = mem_alloc(SHORT * sizeof *weight);
    for (size_t i = 0; i < SHORT; i++)
        weight[i] = 1;
    w->batch = (struct train_batch){
        .seqs = 1, .len = SHORT - 1, .token = (int32_t *)(uintptr_t)ids,
        .target = (int32_t *)(uintptr_t)(ids + 1), .weight = weight,
        .z = mem_zero(c->config.layers * c->config.latents * c->config.width, sizeof(float))};
    backprop_loss(w->t, &w->batch, BACKPROP_PARAMETERS);
}

static void free_learner(struct learner *w)
{
    free(w->batch.weight);
    free((void *)(uintptr_t)w->batch.z);
    backprop_free(w->t);
    parameters_free(w->p);
}

static double nats(struct naive *m, size_t ffn, const int32_t *ids)
{
    double out[LEN], sum = 0;
    by_definition(m, ffn, ids, SHORT, out);
    for (size_t t = 0; t + 1 < SHORT; t++)
        sum -= out[t];
    return sum;
}

/* The slope of the definition's loss along u[n], a unit vector of the values w. */
static double slope_along(struct naive *m, size_t ffn, const int32_t *ids, double *w,
                          const double *u, size_t n)
{
    const double h = 1e-4;
    double side[2], *old = mem_alloc(n * sizeof *old);
    memcpy(old, w, n * sizeof *old);
    for (int s = 0; s < 2; s++) {
        for (size_t i = 0; i < n; i++)
            w[i] = old[i] + (s ? -h : h) * u[i];
        side[s] = nats(m, ffn, ids);
    }
    memcpy(w, old, n * sizeof *old);
    free(old);
    return (side[0] - side[1]) / (2 * h);
}

/* u = g / |g|, or a random direction. */
static void direct(double *u, const float *g, size_t n, struct rng *rng)
{
    double size = 0;
    for (size_t i = 0; i < n; i++) {
        u[i] = rng ? rng_normal(rng) : g[i];
        size += u[i] * u[i];
    }
    for (size_t i = 0; i < n; i++)
        u[i] /= sqrt(size);
}

/* The largest error of a slope as a share of the gradient: along the gradient, and along random
 * directions, which also show errors at right angles to it. A random direction through n values
 * shows e / sqrt(n) of an error of length e. */
static double off_role(const struct checkpoint *c, struct naive *m, const int32_t *ids,
                       const struct learner *w, enum role r, size_t l)
{
    enum { WAYS = 3 };
    size_t rows, cols;
    role_shape(&c->config, r, &rows, &cols);
    size_t n = rows * cols;
    const float *g = parameters_gradients(w->p, r, l);
    struct rng rng = {3, (uint64_t)r << 32 | l, 0};
    double norm = 0, most = 0, *u = mem_alloc(n * sizeof *u);
    for (size_t i = 0; i < n; i++)
        norm += (double)g[i] * g[i];
    norm = sqrt(norm);
    for (int way = norm > 0 ? 0 : 1; way < WAYS; way++) {
        direct(u, g, n, way ? &rng : NULL);
        double want = slope_along(m, c->config.ffn, ids, m->w[r][l], u, n), got = 0;
        for (size_t i = 0; i < n; i++)
            got += g[i] * u[i];
        double off = fabs(want - got) * (way ? sqrt((double)n) : 1);
        most = fmax(most, norm > 0 ? off / norm : off > 1e-6 ? (double)INFINITY : 0);
    }
    free(u);
    return most;
}

static void gradients(const struct checkpoint *c, struct naive *m, const int32_t *ids)
{
    struct backend *b = backend_open("cpu", NULL, 2, 0, NULL);
    struct learner w;
    size_t held = 0;
    double most = 0;
    const char *worst = "";
    make_learner(&w, b, c, ids);
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t l = 0; l < role_layers(&c->config, (enum role)r); l++, held++) {
            double off = off_role(c, m, ids, &w, (enum role)r, l);
            worst = off > most ? role_name((enum role)r) : worst;
            most = isnan(off) ? (double)INFINITY : fmax(most, off);
        }
    ok(held > 40 && most < 2e-4, "%s: gradients of %zu tensors by differences in double, off by "
       "%.1e of themselves at most (%s)", config_mixer_name(c->config.mixer), held, most, worst);
    free_learner(&w);
    backend_close(b);
}

static void mixer(const char *shape)
{
    struct checkpoint c;
    int32_t ids[LEN];
    open_mixer(&c, shape, folder, ids);
    struct naive *m = read_naive(&c);
    gradients(&c, m, ids);
    free_naive(m);
    checkpoint_close(&c);
}

int main(void)
{
    if (!mkdtemp(folder)) {
        printf("Bail out! no folder in /tmp\n");
        return 1;
    }
    mixer("tiny-ltm-rwkv6");
    mixer("tiny-ltm-rwkv7");
    planted_forget(folder);
    return tap_done();
}
