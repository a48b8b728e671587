/* test-train.c - compares gradients with finite differences, for every block and mask and both
 * precisions. Also tests that saving and resuming gives the same run, that new tokens begin as a
 * mean of rows, that a few steps lower the loss, and that bf16 products lower it as f32 products
 * do. */
#include <unistd.h>

#include "tests/model/trained.h"
#include "tests/tap.h"

enum { WIDTH = 24, FFN = 40 };

/* Sets larger weights than at the start of training, so that every path carries signal. A
 * recurrence is steeper than a window, so its weights are smaller, and its steps change the loss by
 * little. */
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
                w[i] = (float)((cols == 1 ? 1.0 : 0.0) +
                               (config_recurs(c) ? 0.15 : 0.25) * rng_normal(&r));
        }
}

/* The allowed error of a difference quotient, as a share of the gradient. GroupNorm divides by the
 * spread of twelve values, the norm of a head by the size of six values. If these are small, the
 * error of rounding to bf16 becomes larger. There is no other cause: in fp32 the same code is held
 * to 1 % here, and in test-mixing-slopes.c to 2e-4 of differences in double, along the gradient and
 * across it. */
static double slack_of(int exact, const struct config *c)
{
    return exact ? 0.01 : config_recurs(c) ? 0.08 : c->qk_norm ? 0.04 : 0.02;
}

/* A bias of 1, and heads without rotation, make scores steeper. */
static double step_of(const struct config *c)
{
    return c->qkv_bias || c->qk_norm || config_leaves_unrotated(c) ? 0.2 : 0.66;
}

/* The gradients of the gains of heads are small sums of large terms of both signs. So their error
 * from rounded factors is larger as a share of the sum. */
static double slack_of_role(int exact, const struct config *c, enum role r)
{
    return slack_of(exact, c) * (!exact && (r == ROLE_Q_NORM || r == ROLE_K_NORM) ? 4 : 1);
}

/* Compares the slope (f(w + h u) - f(w - h u)) / 2h with g.u for each role, where u = g / |g|:
 * along the gradient the quotient is best conditioned. f is the loss in f32 for both precisions,
 * because with rounded factors the loss has steps, and no small h would measure a slope.
 *
 * A factor rounded to bf16 is off by at most 2^-9 = 0.2 % of itself. Sums over many factors are
 * nearer, but a score of ten, as these weights make, is off by 0.02, and so its probability by 2 %.
 * The error is nearly at a right angle to u: an error of 5 % of a gradient changes its length by
 * 0.1 %. */
static void check_role(struct backprop *t, struct backprop *smooth, struct parameters *p,
                       const struct train_batch *b, enum role r, size_t l)
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
    double h = step_of(&p->c) / (double)(b->seqs * b->len), f[2]; /* the loss is a sum over rows */
    if (config_recurs(&p->c))
        h = fmin(h / 3, 0.02 / norm);
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < n; i++)
            w[i] = old[i] + (float)((side ? -h : h) * u[i]);
        f[side] = backprop_loss(smooth, b, 0);
    }
    for (size_t i = 0; i < n; i++)
        w[i] = old[i];
    double slope = (f[0] - f[1]) / (2 * h);
    ok(norm > 1e-4 && fabs(slope - norm) < slack_of_role(t == smooth, &p->c, r) * norm + 1e-4,
       "%s %s layer %zu%s: gradient %.6g, finite difference %.6g",
       p->c.family->name, role_name(r), l,
       t == smooth ? "" : " bf16", norm, slope);
    free(old);
    free(u);
}

/* Compares the gradient of the latents with finite differences, of the loss of a batch and of one
 * sequence: latents of a sequence affect no other sequence's loss. The gradient has the same bits
 * without the gradients of weights, and for a batch that was computed before. */
static void check_latents(struct backprop *t, struct backprop *smooth, const struct train_batch *b,
                          const struct config *c)
{
    size_t piece = c->latents * c->width, n = c->layers * b->seqs * piece;
    float *z = (float *)(uintptr_t)b->z, *old = mem_alloc(n * sizeof *z);
    float *g = mem_alloc(n * sizeof *g);
    double norm = 0, f[2], own[2], h = 0.66 / (double)(b->seqs * b->len);
    double loss = backprop_loss(t, b, BACKPROP_PARAMETERS);
    memcpy(g, backprop_latents(t), n * sizeof *g);
    struct train_batch again = *b;
    int same = backprop_loss(t, b, BACKPROP_LATENTS) == loss &&
               !memcmp(g, backprop_latents(t), n * sizeof *g);
    again.again = 1;
    same &= backprop_loss(t, &again, BACKPROP_LATENTS) == loss &&
            !memcmp(g, backprop_latents(t), n * sizeof *g);
    ok(same, "latents alone, and of a batch that was there before: the same bits");
    memcpy(old, z, n * sizeof *z);
    for (size_t i = 0; i < n; i++)
        norm += i / piece % b->seqs == 1 ? (double)g[i] * g[i] : 0;
    norm = sqrt(norm);
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < n; i++)
            z[i] = i / piece % b->seqs == 1
                       ? old[i] + (float)((side ? -h : h) * (double)g[i] / norm) : old[i];
        f[side] = backprop_loss(smooth, b, BACKPROP_LOSS);
        own[side] = backprop_losses(smooth)[1];
    }
    memcpy(z, old, n * sizeof *z);
    double slope = (f[0] - f[1]) / (2 * h), mine = (own[0] - own[1]) / (2 * h);
    ok(norm > 1e-4 && fabs(slope - norm) < slack_of(t == smooth, c) * norm + 1e-4 &&
           fabs(mine - slope) < 1e-3 * norm,
       "latents of a sequence: gradient %.6g, finite difference %.6g, of its own loss %.6g", norm,
       slope, mine);
    free(old);
    free(g);
}

/* Returns 1 for roles that no pass reads in the first layer of RWKV 7. */
static int is_first_of_7(enum role r)
{
    return r == ROLE_FIRST || r == ROLE_FIRST_DOWN || r == ROLE_FIRST_UP;
}

/* Compares the whole gradient with rounded factors with the gradient in f32: the difference is as
 * small as check_role() explains, and not zero. */
static void check_rounding(struct backprop *t, struct backprop *f32, struct parameters *p,
                           const struct train_batch *b)
{
    float *g = mem_alloc(p->n * sizeof *g);
    double rounded = backprop_loss(t, b, 1), far = 0, size = 0;
    memcpy(g, p->g, p->n * sizeof *g);
    double exact = backprop_loss(f32, b, 1);
    for (size_t i = 0; i < p->n; i++) {
        far += pow((double)g[i] - p->g[i], 2);
        size += pow(p->g[i], 2);
    }
    ok(rounded != exact && fabs(rounded - exact) < 0.01 * exact,
       "%s: loss %.6g with bf16 products, %.6g with f32", p->b->ops->level, rounded, exact);
    ok(far > 1e-6 * size && far < (config_recurs(&p->c) ? 1e-2 : 25e-4) * size,
       "gradient %.3g %% off", 100 * sqrt(far / size));
    free(g);
}

/* Without a target there is no loss and no gradient. */
static void check_nothing(struct backprop *t, struct parameters *p, struct train_batch *b)
{
    memset(b->weight, 0, b->seqs * b->len * sizeof *b->weight);
    double loss = backprop_loss(t, b, 1), sum = 0;
    for (size_t i = 0; i < p->n; i++)
        sum += fabs(p->g[i]);
    ok(loss == 0 && sum == 0, "no target, no gradient: %g, %g", loss, sum);
}

/* The attention factor of YaRN must be in the loss, not only in its gradient. */
static void check_scale(struct backprop *t, struct parameters *p, const struct train_batch *b)
{
    const double scale = p->c.rope_scale, loss = backprop_loss(t, b, 0);
    p->c.rope_scale = 1;
    struct backprop *plain = backprop_make(p, b->seqs * b->len, b->seqs, DTYPE_F32);
    const double other = backprop_loss(plain, b, 0);
    ok(fabs(loss - other) > 1e-4 * loss, "loss %.6g with attention factor %g, %.6g with 1", loss,
       scale, other);
    p->c.rope_scale = scale;
    backprop_free(plain);
}

static void gradients(const struct family *f, enum mixer mixer, int tied, size_t seqs, size_t len,
                      const char *level)
{
    const int ref = level && !strcmp(level, "ref");
    struct backend *be = backend_open(ref ? "ref" : "cpu", ref ? NULL : level, 2, 0, NULL);
    struct config c = trained_config(f, mixer, tied, WIDTH, FFN);
    if (mixer) { /* larger heads: GroupNorm divides by the spread of a head's values */
        c.heads = c.kv_heads = 2;
        c.head_dim = c.rope_dims = WIDTH / 2;
    }
    if (f == &qwen3_family) { /* with YaRN, which also makes the rotated values larger */
        c.rope_yarn = 1;
        c.rope_scale = 1.2;
        c.rope_factor = 4;
        c.rope_low_freq = 1;
        c.rope_high_freq = 32;
        c.rope_original_context = (double)c.context / 4;
    }
    struct parameters *p = parameters_make(&c, be, train_ops_of(be->ops), 5);
    struct backprop *t = backprop_make(p, seqs * len, seqs, DTYPE_F32);
    struct backprop *half = backprop_make(p, seqs * len, seqs, DTYPE_BF16);
    if (!ok(t && half, "room for parameters and their gradients"))
        return;
    enlarge(p, &c);
    struct train_batch b = trained_batch(&c, seqs, len, 3);
    if (c.latents) {
        check_latents(t, t, &b, &c);
        check_latents(half, t, &b, &c);
    }
    for (size_t l = 0; l < c.layers; l++)
        for (int r = 0; r < ROLE_COUNT; r++)
            if (role_layers(&c, (enum role)r) > l && (l || !is_first_of_7((enum role)r))) {
                check_role(t, t, p, &b, (enum role)r, l);
                check_role(half, t, p, &b, (enum role)r, l);
            }
    if (c.rope_yarn)
        check_scale(t, p, &b);
    check_rounding(half, t, p, &b);
    check_nothing(t, p, &b);
    trained_batch_free(&b);
    backprop_free(t);
    backprop_free(half);
    parameters_free(p);
    backend_close(be);
}

/* Mean loss over the last quarter of a training of a few hundred steps. */
static double final_loss(struct backend *be, uint64_t seed, enum dtype products, double *first)
{
    enum { STEPS = 240 };
    struct config c = trained_config(&llama_family, MIXER_ATTENTION, 0, WIDTH, FFN);
    struct err e = {0};
    struct trainer *t = trainer_make(&c, be, seed, 96, products, &e);
    struct train_batch b = trained_batch(&c, 8, 12, 3);
    struct rng r = {.seed = seed};
    double sum = 0;
    for (int i = 0; i < STEPS; i++) {
        trained_chains(&b, &r);
        double loss = trainer_loss(t, &b, 1);
        trainer_update(t, 1e-2 * (1 - (double)i / STEPS), 0.1, 1);
        *first = i ? *first : loss;
        sum += i >= STEPS * 3 / 4 ? loss : 0;
    }
    trained_batch_free(&b);
    trainer_free(t);
    return sum / (STEPS / 4);
}

/* From one seed, bf16 products end nearer to f32 products than two f32 trainings from different
 * seeds end to each other. */
static void same_curve(void)
{
    enum { SEEDS = 5 };
    struct backend *be = backend_open("cpu", NULL, 1, 0, NULL);
    double f32[SEEDS], mean = 0, square = 0, shift = 0, first = 0;
    for (int i = 0; i < SEEDS; i++) {
        f32[i] = final_loss(be, (uint64_t)i + 1, DTYPE_F32, &first);
        mean += f32[i] / SEEDS;
    }
    for (int i = 0; i < SEEDS; i++) {
        shift += (final_loss(be, (uint64_t)i + 1, DTYPE_BF16, &first) - f32[i]) / SEEDS;
        square += pow(f32[i] - mean, 2) / (SEEDS - 1);
    }
    ok(mean < 0.6 * first, "the loss falls from %.3f to %.3f", first, mean);
    ok(shift != 0 && fabs(shift) < sqrt(square), "bf16 products shift it by %.4f, a seed by %.4f",
       shift, sqrt(square));
    backend_close(be);
}

/* A model that training does not support is refused before anything is allocated. */
static void refused(void)
{
    static const char *const shapes[] = {"synth:tiny-llada-moe", "synth:tiny-llada2",
                                         "synth:tiny-ling", "synth:tiny-nemotron"};
    static const char *const reasons[] = {
        "a llada-moe model with experts cannot", "a llada2 model with experts cannot",
        "a ling model with experts cannot",
        "a nemotron-labs-diffusion model with two ways to write, "};
    struct backend *be = backend_open("cpu", NULL, 1, 0, NULL);
    for (int which = 0; which < 4; which++) {
        struct err e = {0};
        struct checkpoint c;
        ok(!checkpoint_open(&c, shapes[which], 1, &e), "opened: %s", e.text);
        ok(!trainer_make(&c.config, be, 5, 33, DTYPE_F32, &e) && e.code == EXIT_BAD_USAGE &&
               strstr(e.text, reasons[which]), "refused: %s", e.text);
        checkpoint_close(&c);
    }
    backend_close(be);
}

/* From the weights of a checkpoint with fewer tokens: new rows are the mean of the other rows. */
static void new_tokens(void)
{
    struct err e = {0};
    struct backend *be = backend_open("cpu", NULL, 1, 0, NULL);
    struct checkpoint from;
    ok(!checkpoint_open(&from, "synth:tiny-qwen3", 1, &e), "opened: %s", e.text);
    struct config c = from.config;
    const size_t D = c.width, V = c.vocab;
    const struct new_rows added = {V, V + 2};
    c.vocab = V + 2;
    struct trainer *t = trainer_make(&c, be, 5, 33, DTYPE_F32, &e);
    const struct new_rows none = {0};
    ok(trainer_take(t, &from, &none, &e) == -1 && e.code == EXIT_BAD_DATA, "refused: %s", e.text);
    ok(!trainer_take(t, &from, &added, &e), "weights taken: %s", e.text);
    float *want = mem_alloc(V * D * sizeof *want);
    for (int k = 0; k < 2; k++) {
        const enum role r = k ? ROLE_HEAD : ROLE_EMBED;
        const float *got = trainer_values(t, r, 0);
        double far = 0;
        checkpoint_floats(&from, r, 0, want);
        for (size_t d = 0; d < D; d++) {
            double mean = 0;
            for (size_t i = 0; i < V; i++)
                mean += want[i * D + d] / (double)V;
            far = fmax(far, fmax(fabs(got[V * D + d] - mean), fabs(got[(V + 1) * D + d] - mean)));
        }
        ok(far < 1e-7 && !memcmp(got, want, V * D * sizeof *got),
           "%s: the rows of the checkpoint, and two of their mean", role_name(r));
    }
    free(want);
    trainer_free(t);
    checkpoint_close(&from);
    backend_close(be);
}

static void resume(void)
{
    struct err e = {0};
    struct backend *be = backend_open("cpu", NULL, 2, 0, NULL);
    struct config c = trained_config(&llada_family, MIXER_ATTENTION, 1, WIDTH, FFN);
    struct train_batch b = trained_batch(&c, 3, 11, 3);
    struct trainer *t = trainer_make(&c, be, 5, 33, DTYPE_F32, &e);
    struct trainer *s = trainer_make(&c, be, 6, 33, DTYPE_F32, &e);
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
    ok(back && !strcmp(json_string_value(json_object_get(back, "schedule")), "x"),
       "a restored state has its note");
    double x = trainer_loss(t, &b, 1), y = trainer_loss(s, &b, 1);
    trainer_update(t, 1e-2, 0.1, 1);
    trainer_update(s, 1e-2, 0.1, 1);
    ok(x == y && trainer_loss(t, &b, 0) == trainer_loss(s, &b, 0),
       "a restored training goes on with the same bits");
    struct config other = trained_config(&llada_family, MIXER_ATTENTION, 0, WIDTH, FFN);
    struct trainer *o = trainer_make(&other, be, 5, 33, DTYPE_F32, &e);
    json_t *none = NULL;
    ok(trainer_restore(o, path, &none, &e) == -1 && e.code == EXIT_BAD_DATA,
       "a state of another shape is refused: %s", e.text);
    unlink(path);
    json_decref(note);
    json_decref(back);
    trained_batch_free(&b);
    trainer_free(t);
    trainer_free(s);
    trainer_free(o);
    backend_close(be);
}

int main(void)
{
    gradients(&llama_family, MIXER_ATTENTION, 0, 3, 11, NULL);
    gradients(&llada_family, MIXER_ATTENTION, 1, 3, 11, NULL);
    gradients(&llada_family, MIXER_ATTENTION, 0, 2, 45, NULL);
    for (size_t i = 0; ops_cpu_at(i); i++) /* attention in several tiles, at each level */
        gradients(&llama_family, MIXER_ATTENTION, 1, 2, 45, ops_cpu_at(i)->level);
    gradients(&ltm_family, MIXER_ATTENTION, 1, 3, 11, NULL);
    for (size_t i = 0; ops_cpu_at(i); i++) /* fewer latents than rows, a window within the text */
        gradients(&ltm_family, MIXER_ATTENTION, 0, 2, 45, ops_cpu_at(i)->level);
    static const struct family *const blocks[] = {&qwen2_family, &qwen3_family, &smollm3_family,
                                                  &a2d_qwen2_family, &sdar_family,
                                                  &fast_dllm_family};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        gradients(blocks[i], MIXER_ATTENTION, i % 2, 3, 11, "ref");
        gradients(blocks[i], MIXER_ATTENTION, !(i % 2), 2, 45, NULL);
    }
    for (enum mixer m = MIXER_RWKV6; m <= MIXER_RWKV7; m++) {
        gradients(&ltm_family, m, 1, 3, 11, NULL);
        gradients(&ltm_family, m, 0, 2, 37, NULL);
    }
    refused();
    new_tokens();
    resume();
    same_curve();
    return tap_done();
}
