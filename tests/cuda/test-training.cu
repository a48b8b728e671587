/* test-training.cu - tests training on the device: losses of a few steps near those of the
 * reference, for next tokens and denoising, in every form of the options. Two trainings, a resumed
 * one and one without recorded passes have the same bits. What a device cannot train is refused. */
extern "C" {
#include "lib/train/trainer.h"
}
#include <unistd.h>

#include "tests/cuda/rows-fixture.h"

enum { SEQS = 4, LEN = 17, ROWS = SEQS * LEN, STEPS = 4 };

static void must(int bad, const struct err *e)
{
    if (bad) {
        printf("Bail out! %s\n", e->text);
        exit(1);
    }
}

/* Makes the batch of a step. A denoising batch scores some rows, but not the last. */
static void fill(struct train_batch *b, const struct config *c, int step)
{
    struct rng r = {(uint64_t)step, 0, 0};
    const int denoises = config_denoises(c);
    b->seqs = step == 2 ? SEQS - 1 : SEQS;
    b->len = LEN;
    for (size_t i = 0; i < b->seqs * LEN; i++) {
        const bool scored = !denoises || (rng_below(&r, 3) == 0 && step + 1 < STEPS);
        b->token[i] = (int32_t)rng_below(&r, i % 2 ? 4 : c->vocab);
        b->target[i] = (int32_t)rng_below(&r, c->vocab);
        b->weight[i] = scored ? 1 / (float)ROWS : 0;
        b->last[i] = (int32_t)(i % LEN < 5 ? 4 : i % LEN < 13 ? 12 : LEN - 1);
    }
}

struct outcome {
    double loss[STEPS], norm[STEPS], held;
    char hash[65];
};

static void step_from(struct trainer *t, const struct config *c, int step, struct outcome *out)
{
    struct train_batch b = train_batch_room(ROWS);
    for (; step < STEPS; step++) {
        fill(&b, c, step);
        out->loss[step] = trainer_loss(t, &b, 1);
        out->norm[step] = trainer_update(t, 1e-3, 0.1, 0.5);
    }
    fill(&b, c, 0);
    out->held = trainer_loss(t, &b, 0);
    trainer_hash(t, out->hash);
    train_batch_free(&b);
}

static struct trainer *make(struct backend *b, const struct config *c,
                            const struct trainer_how *how, uint64_t seed)
{
    struct err e = {};
    struct trainer *t = trainer_make_as(c, b, seed, ROWS, how, &e);
    must(!t, &e);
    return t;
}

static struct outcome learn(struct backend *b, const struct checkpoint *from,
                            const struct trainer_how *how)
{
    struct outcome out = {};
    struct err e = {};
    struct trainer *t = make(b, &from->config, how, 5);
    const struct new_rows none = {};
    must(trainer_take(t, from, &none, &e), &e);
    step_from(t, &from->config, 0, &out);
    trainer_free(t);
    return out;
}

/* The largest relative difference of losses and norms. */
static double apart(const struct outcome *a, const struct outcome *b)
{
    double far = fabs(a->held - b->held) / b->held;
    for (int i = 0; i < STEPS; i++)
        far = fmax(far, fmax(fabs(a->loss[i] - b->loss[i]) / (b->loss[i] + 1e-3),
                             fabs(a->norm[i] - b->norm[i]) / (b->norm[i] + 1e-3)));
    return far;
}

static int same(const struct outcome *a, const struct outcome *b)
{
    return !memcmp(a, b, sizeof *a);
}

struct form {
    const char *name;
    struct trainer_how how;
    double most;
    int same_bits; /* 1: has the bits of the plain form */
};

static void forms(struct fixture *f, const struct checkpoint *c)
{
    struct form all[] = {{"plain", {}, 1e-5, 1}, {"bf16", {}, 2e-3, 0},
                         {"layers computed again", {}, 1e-5, 1}, {"logits at once", {}, 1e-5, 0},
                         {"in 2 parts", {}, 1e-5, 0}};
    all[1].how.back.products = DTYPE_BF16;
    all[2].how.back.every = 1;
    all[3].how.back.whole_loss = 1;
    all[4].how.parts = 2, all[4].how.longest = LEN;
    const struct outcome plain = learn(f->cuda, c, &all[0].how);
    for (const struct form &x : all) {
        const struct outcome got = learn(f->cuda, c, &x.how), again = learn(f->cuda, c, &x.how);
        const struct outcome want = learn(f->ref, c, &x.how);
        const double far = apart(&got, &want);
        ok(far < x.most,
           "%s, %s: losses and norms of %d steps are off by %.1e", c->config.family->name, x.name,
           STEPS, far);
        ok(same(&got, &again) && (!x.same_bits || same(&got, &plain)), "%s, %s: the same bits",
           c->config.family->name, x.name);
    }
    f->cuda->unrecorded = 1;
    const struct outcome direct = learn(f->cuda, c, &all[0].how);
    f->cuda->unrecorded = 0;
    ok(same(&direct, &plain), "%s: and without recorded passes", c->config.family->name);
}

static void resumes(struct fixture *f, const struct config *c)
{
    const struct trainer_how how = {};
    struct outcome whole = {}, part = {};
    struct err e = {};
    json_t *note = NULL;
    char path[] = "/tmp/crossover-state-XXXXXX";
    close(mkstemp(path));
    struct trainer *t = make(f->cuda, c, &how, 5), *s = make(f->cuda, c, &how, 6);
    struct train_batch b = train_batch_room(ROWS);
    for (int step = 0; step < 2; step++) {
        fill(&b, c, step);
        part.loss[step] = trainer_loss(t, &b, 1);
        part.norm[step] = trainer_update(t, 1e-3, 0.1, 0.5);
    }
    must(trainer_save(t, path, NULL, &e) || trainer_restore(s, path, &note, &e), &e);
    whole = part;
    step_from(t, c, 2, &whole);
    step_from(s, c, 2, &part);
    ok(trainer_step(s) == STEPS && same(&whole, &part), "%s: resumed, the same bits",
       c->family->name);
    unlink(path);
    json_decref(note);
    train_batch_free(&b);
    trainer_free(t);
    trainer_free(s);
}

static void sum_nothing(void *, double *, float *, size_t, float *) {}

static void refusals(struct fixture *f)
{
    struct checkpoint c, plain;
    struct err e = {};
    struct trainer_how how = {};
    must(checkpoint_open(&c, "synth:tiny-ltm", 3, &e), &e);
    must(checkpoint_open(&plain, "synth:tiny-llama", 3, &e), &e);
    ok(!trainer_make_as(&c.config, f->cuda, 5, ROWS, &how, &e) && e.code == EXIT_BAD_USAGE &&
           strstr(e.text, "latent thoughts"), "refused: %s", e.text);
    struct trainer *t = make(f->cuda, &plain.config, &how, 5);
    e = {};
    ok(trainer_quantize(t, DTYPE_NF4, &e) && e.code == EXIT_BAD_USAGE && strstr(e.text, "--qat"),
       "refused: %s", e.text);
    trainer_free(t);
    e = {};
    how.sum = sum_nothing;
    ok(!trainer_make_as(&plain.config, f->cuda, 5, ROWS, &how, &e) && e.code == EXIT_BAD_USAGE &&
           strstr(e.text, "--ranks"), "refused: %s", e.text);
    e = {};
    how.sum = NULL;
    plain.config.head_dim = plain.config.rope_dims = ATTENTION_BACK_CUDA_MOST + 2;
    ok(!trainer_make_as(&plain.config, f->cuda, 5, ROWS, &how, &e) && e.code == EXIT_BAD_USAGE &&
           strstr(e.text, "128 values"), "refused: %s", e.text);
    checkpoint_close(&c);
    checkpoint_close(&plain);
}

int main(void)
{
    static const char *const shapes[] = {"synth:tiny-llama", "synth:tiny-llada", "synth:tiny-qwen2",
                                         "synth:tiny-smollm3", "synth:tiny-sdar"};
    struct fixture f = fixture_open();
    f.cuda->act = DTYPE_F32;
    for (const char *shape : shapes) {
        struct checkpoint c;
        struct err e = {};
        must(checkpoint_open(&c, shape, 3, &e), &e);
        forms(&f, &c);
        resumes(&f, &c.config);
        checkpoint_close(&c);
    }
    refusals(&f);
    fixture_close(&f);
    return tap_done();
}
