/* Gradients against finite differences, for both families; saving and resuming gives the same run;
 * a few steps lower the loss. */
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/train/trainer.h"
#include "tests/tap.h"

static struct config tiny(const struct family *f, int tied)
{
    struct config c = {.family = f,
                       .paradigm = f->start.paradigm,
                       .attends = f->start.attends,
                       .name = "tiny",
                       .width = 24,
                       .layers = 2,
                       .heads = 4,
                       .kv_heads = 2,
                       .head_dim = 6,
                       .rope_dims = 6,
                       .ffn = 40,
                       .vocab = 50,
                       .context = 64,
                       .tied = tied,
                       .norm_eps = 1e-5,
                       .rope_theta = 10000,
                       .bos = -1,
                       .pad = -1,
                       .mask = f == &llada_family ? 49 : -1,
                       .eot = -1};
    return c;
}

static struct train_batch make_batch(size_t seqs, size_t len, size_t vocab)
{
    size_t T = seqs * len;
    struct train_batch b = {seqs, len, mem_zero(T, 4), mem_zero(T, 4), mem_zero(T, 4)};
    struct rng r = {.seed = 3};
    for (size_t i = 0; i < T; i++) {
        b.token[i] = (int32_t)rng_below(&r, vocab);
        b.target[i] = (int32_t)rng_below(&r, vocab);
        b.weight[i] = i % 3 ? 0.2f + (float)rng_uniform(&r) : 0;
    }
    return b;
}

static void free_batch(struct train_batch *b)
{
    free(b->token);
    free(b->target);
    free(b->weight);
}

/* Larger weights than at the start of training, so that every path carries signal. */
static void enlarge(struct parameters *p, const struct config *c)
{
    struct rng r = {.seed = 11};
    for (size_t l = 0; l < c->layers; l++)
        for (int k = 0; k < ROLE_COUNT; k++) {
            size_t rows, cols;
            role_shape(c, (enum role)k, &rows, &cols);
            if (!role_layers(c, (enum role)k))
                continue;
            float *w = parameters_values(p, (enum role)k, l);
            for (size_t i = 0; i < rows * cols; i++)
                w[i] = (float)((cols == 1 ? 1.0 : 0.0) + 0.25 * rng_normal(&r));
        }
}

/* Directional derivative of each role's gradient: (f(w + h u) - f(w - h u)) / 2h against g.u with
 * u = g / |g|, where the quotient is best conditioned. */
static void check_role(struct backprop *t, struct parameters *p, const struct train_batch *b,
                       enum role r, size_t l)
{
    size_t rows, cols;
    role_shape(&p->c, r, &rows, &cols);
    size_t n = rows * cols;
    backprop_loss(t, b, 1);
    float *w = parameters_values(p, r, l), *g = parameters_gradients(p, r, l);
    float *old = mem_alloc(n * sizeof *old), *u = mem_alloc(n * sizeof *u);
    double norm = 0;
    for (size_t i = 0; i < n; i++)
        norm += (double)g[i] * g[i];
    norm = sqrt(norm);
    for (size_t i = 0; i < n; i++) {
        old[i] = w[i];
        u[i] = (float)(g[i] / norm);
    }
    double h = 0.02, f[2];
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < n; i++)
            w[i] = old[i] + (float)((side ? -h : h) * u[i]);
        f[side] = backprop_loss(t, b, 0);
    }
    for (size_t i = 0; i < n; i++)
        w[i] = old[i];
    double slope = (f[0] - f[1]) / (2 * h);
    ok(norm > 1e-4 && fabs(slope - norm) < 0.01 * norm + 1e-4,
       "%s %s layer %zu: gradient %.6g, finite difference %.6g",
       p->c.attends == MASK_CAUSAL ? "causal" : "full", role_name(r), l, norm, slope);
    free(old);
    free(u);
}

static void gradients(const struct family *f, int tied)
{
    struct backend *be = backend_open("cpu", NULL, 2, 0, NULL);
    struct config c = tiny(f, tied);
    struct parameters *p = parameters_make(&c, be, be->ops->train, 5);
    struct backprop *t = p ? backprop_make(p, 3 * 11) : NULL;
    if (!ok(t != NULL, "room for parameters and their gradients"))
        return;
    enlarge(p, &c);
    struct train_batch b = make_batch(3, 11, c.vocab);
    for (size_t l = 0; l < c.layers; l++)
        for (int r = 0; r < ROLE_COUNT; r++)
            if (role_layers(&c, (enum role)r) > l)
                check_role(t, p, &b, (enum role)r, l);
    free_batch(&b);
    backprop_free(t);
    parameters_free(p);
    backend_close(be);
}

/* What the way back does not know is refused before anything is made. */
static void refused(void)
{
    struct backend *be = backend_open("cpu", NULL, 1, 0, NULL);
    for (int which = 0; which < 3; which++) {
        struct err e = {0};
        struct config c = tiny(&llama_family, 0);
        c.qkv_bias = which == 0;
        c.qk_norm = which == 1;
        c.rope_dims = which == 2 ? 4 : 6;
        ok(!trainer_make(&c, be, 5, 33, &e) && e.code == EXIT_BAD_USAGE &&
               strstr(e.text, "cannot be trained"), "a block that cannot be trained: %s", e.text);
    }
    backend_close(be);
}

static void resume(void)
{
    struct err e = {0};
    struct backend *be = backend_open("cpu", NULL, 2, 0, NULL);
    struct config c = tiny(&llada_family, 1);
    struct train_batch b = make_batch(3, 11, c.vocab);
    struct trainer *t = trainer_make(&c, be, 5, 33, &e), *s = trainer_make(&c, be, 6, 33, &e);
    char path[] = "/tmp/crossover-state-XXXXXX";
    close(mkstemp(path));
    double first = trainer_loss(t, &b, 1), last = first;
    for (int i = 0; i < 10; i++) {
        last = trainer_loss(t, &b, 1);
        trainer_update(t, 1e-2, 0.1, 1);
    }
    ok(last < 0.9 * first, "ten steps lower the loss from %.3f to %.3f", first, last);
    json_t *note = json_pack("{s:s}", "schedule", "x"), *back = NULL;
    ok(!trainer_save(t, path, note, &e), "state saved: %s", e.text);
    ok(!trainer_restore(s, path, &back, &e) && trainer_step(s) == 10, "state restored: %s", e.text);
    ok(back && !strcmp(json_string_value(json_object_get(back, "schedule")), "x"), "with its note");
    double x = trainer_loss(t, &b, 1), y = trainer_loss(s, &b, 1);
    trainer_update(t, 1e-2, 0.1, 1);
    trainer_update(s, 1e-2, 0.1, 1);
    ok(x == y && trainer_loss(t, &b, 0) == trainer_loss(s, &b, 0),
       "and goes on with the same bits");
    struct config other = tiny(&llada_family, 0);
    struct trainer *o = trainer_make(&other, be, 5, 33, &e);
    json_t *none = NULL;
    ok(trainer_restore(o, path, &none, &e) == -1 && e.code == EXIT_BAD_DATA,
       "a state of another shape is refused: %s", e.text);
    unlink(path);
    json_decref(note);
    json_decref(back);
    free_batch(&b);
    trainer_free(t);
    trainer_free(s);
    trainer_free(o);
    backend_close(be);
}

int main(void)
{
    gradients(&llama_family, 0);
    gradients(&llada_family, 1);
    refused();
    resume();
    return tap_done();
}
