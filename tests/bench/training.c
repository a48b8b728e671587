/* training.c - measures two savings in a training step: activations of layers that are computed
 * again (--checkpoint-every), and logits by blocks of rows (--loss). It reports the bytes asked of
 * the back end and the time of a loss with its gradient, both relative to the step that keeps
 * everything. Each ratio shows what one saving brings without the other.
 *
 * At the size of a small language model a step takes minutes, so only bytes are reported:
 * bench_activations computes them with the function that also allocates. */
#include <stdio.h>

#include "lib/base/rng.h"
#include "lib/checkpoint/synth.h"
#include "lib/train/backprop.h"
#include "tests/bench/bench.h"

enum { ROWS = 1024, SEQS = 4, LARGE_ROWS = 4096 };

static const struct kase {
    size_t every;
    int whole;
} kases[] = {{0, 1}, {0, 0}, {1, 1}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {6, 0}};

struct run {
    struct bench *bench;
    const struct pair *pair;
    struct config c;
    struct parameters *parameters;
    struct train_batch batch;
    struct backprop *backprop;
    double bytes, seconds; /* of the first case, which keeps everything */
};

static void call(void *ctx, size_t i)
{
    struct run *r = ctx;
    (void)i;
    backprop_loss(r->backprop, &r->batch, BACKPROP_PARAMETERS);
}

static void make_batch(struct run *r)
{
    struct train_batch *b = &r->batch;
    struct rng rng = {.seed = (uint64_t)r->bench->common.seed};
    size_t T = shrunk(r->pair, ROWS);
    *b = train_batch_room(T);
    b->seqs = SEQS;
    b->len = T / SEQS;
    for (size_t i = 0; i < T; i++) {
        b->token[i] = (int32_t)rng_below(&rng, r->c.vocab);
        b->target[i] = (int32_t)rng_below(&rng, r->c.vocab);
        b->weight[i] = 1 / (float)T;
    }
}

static json_t *fields_of(const char *model, const char *shape, const struct kase *k, size_t rows)
{
    char name[96];
    const char *form = k->whole ? "whole" : "fused";
    snprintf(name, sizeof name, "%s training, layers by %zu, loss %s", model, k->every, form);
    json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "name", name, "model", model, "shape",
                          shape, "dtype", "f32", "work", "train", "loss_form", form);
    rec_set_int(j, "checkpoint_every", (int64_t)k->every);
    rec_set_int(j, "rows", (int64_t)rows);
    return j;
}

static int time_case(struct run *r, const struct kase *k, struct err *e)
{
    const struct backprop_how how = {.every = k->every, .whole_loss = k->whole};
    size_t rows = r->batch.seqs * r->batch.len;
    struct memory *m = &r->bench->backend->memory;
    size_t before = m->allocated;
    r->backprop = backprop_make_as(r->parameters, rows, 0, &how);
    if (!r->backprop) {
        const struct err why = {.code = EXIT_FAILED_RECORDS, .text = "no memory for activations"};
        return bench_forgive(r->bench, &why, r->pair->llama, e);
    }
    double bytes = (double)(m->allocated - before), seconds = walk_once_s(r->bench, call, r);
    backprop_free(r->backprop);
    if (k == kases) {
        r->bytes = bytes;
        r->seconds = seconds;
    }
    json_t *j = fields_of(r->pair->llama, r->pair->name, k, rows);
    rec_set_int(j, "activations_bytes", (int64_t)bytes);
    rec_set_number(j, "pass_ns", seconds * 1e9, NULL);
    rec_set_number(j, "memory_ratio", r->bytes / bytes, NULL);
    rec_set_number(j, "time_ratio", seconds / r->seconds, NULL);
    return bench_figure(r->bench, j, e);
}

int bench_training(struct bench *b, const struct pair *p, struct err *e)
{
    struct run r = {.bench = b, .pair = p};
    if (bench_backend(b, e) || synth_config(&r.c, p->llama, e))
        return -1;
    if (*b->backend->name)
        return err_set(e, EXIT_NO_DEVICE, "training: expected --device cpu");
    bench_level(b, DTYPE_F32);
    b->roof.threads = pool_threads(b->backend->pool);
    r.parameters = parameters_make(&r.c, b->backend, train_ops_of(b->backend->ops), 1);
    if (!r.parameters) {
        const struct err why = {.code = EXIT_FAILED_RECORDS, .text = "no memory for parameters"};
        return bench_forgive(b, &why, p->llama, e);
    }
    make_batch(&r);
    int bad = 0;
    for (size_t i = 0; i < sizeof kases / sizeof *kases && !bad; i++)
        bad = time_case(&r, &kases[i], e);
    parameters_free(r.parameters);
    train_batch_free(&r.batch);
    return bad;
}

/* The model is a latent thought model of 12 layers, 768 wide, with 50,258 tokens. */
int bench_activations(struct bench *b, struct err *e)
{
    struct config c;
    double all = 0;
    if (bench_backend(b, e) || synth_config(&c, "ltm-l", e))
        return -1;
    if (*b->backend->name)
        return err_set(e, EXIT_NO_DEVICE, "activations: expected --device cpu");
    b->roof.threads = pool_threads(b->backend->pool);
    c.width = 768;
    c.heads = c.kv_heads = c.width / c.head_dim;
    c.ffn = 2048;
    for (size_t i = 0; i < sizeof kases / sizeof *kases; i++) {
        const struct backprop_how how = {.every = kases[i].every, .whole_loss = kases[i].whole};
        double bytes = (double)backprop_bytes(&c, b->backend, LARGE_ROWS, SEQS, &how);
        json_t *j = fields_of("ltm", "768x12", &kases[i], LARGE_ROWS);
        all = i ? all : bytes;
        rec_set_int(j, "activations_bytes", (int64_t)bytes);
        rec_set_number(j, "memory_ratio", all / bytes, NULL);
        rec_set_int(j, "weights_bytes", (int64_t)parameters_bytes_trained(&c));
        if (bench_figure(b, j, e))
            return -1;
    }
    return 0;
}
