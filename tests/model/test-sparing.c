/* test-sparing.c - tests how training saves memory. Layers that are computed again give the same
 * bits as layers that were kept, for all gradients and for the gradients of latents alone. Logits
 * by blocks of rows add up to the whole loss. The allocated bytes are the planned bytes, and fewer
 * by the sizes of the layers. */
#include "tests/model/trained.h"
#include "tests/tap.h"

enum { LAYERS = 5, SEQS = 3, LEN = 21 };

static struct config shape(const struct family *f, enum mixer mixer, int tied)
{
    struct config c = trained_config(f, mixer, tied, 64, 128);
    c.layers = LAYERS;
    return c;
}

/* A loss with all its gradients. */
struct outcome {
    double loss;
    float *g, *dz;
    size_t n, nz;
};

static struct outcome outcome_of(struct backprop *t, const struct parameters *p,
                                 const struct train_batch *b, enum backprop_of of)
{
    const struct config *c = &p->c;
    struct outcome o = {.n = p->n, .nz = c->layers * b->seqs * c->latents * c->width};
    memset(p->g, 0xff, p->n * sizeof *p->g); /* values of the previous pass must not be reused */
    o.loss = backprop_loss(t, b, of);
    o.g = mem_alloc(o.n * sizeof *o.g);
    o.dz = mem_alloc((o.nz + 1) * sizeof *o.dz);
    memcpy(o.g, p->g, o.n * sizeof *o.g);
    if (o.nz)
        memcpy(o.dz, backprop_latents(t), o.nz * sizeof *o.dz);
    return o;
}

static int same(const struct outcome *a, const struct outcome *b)
{
    return a->loss == b->loss && !memcmp(a->g, b->g, a->n * sizeof *a->g) &&
           !memcmp(a->dz, b->dz, a->nz * sizeof *a->dz);
}

static void free_outcome(struct outcome *o)
{
    free(o->g);
    free(o->dz);
}

/* For each `every` two requests: all gradients, and the gradients of latents alone, as in a fit, of
 * the same batch with other latents. Each request is made twice with another batch in between, of
 * which nothing may remain. */
static void check_every(struct parameters *p, const struct backprop_how *how,
                        const struct train_batch *b, const struct train_batch *other)
{
    struct backprop *kept = backprop_make(p, SEQS * LEN, SEQS, how->products);
    struct backprop *again = backprop_make_as(p, SEQS * LEN, SEQS, how);
    struct outcome want = outcome_of(kept, p, b, BACKPROP_PARAMETERS);
    struct outcome got = outcome_of(again, p, b, BACKPROP_PARAMETERS);
    int good = same(&want, &got);
    free_outcome(&got);
    backprop_loss(again, other, BACKPROP_PARAMETERS);
    got = outcome_of(again, p, b, BACKPROP_PARAMETERS);
    good &= same(&want, &got);
    good &= backprop_loss(again, b, BACKPROP_LOSS) == want.loss;
    free_outcome(&got);
    struct train_batch z = *b;
    z.z = other->z;
    for (int step = 0; p->c.latents && step < 3; step++) {
        free_outcome(&want);
        want = outcome_of(kept, p, &z, BACKPROP_LATENTS);
        got = outcome_of(again, p, &z, BACKPROP_LATENTS);
        good &= same(&want, &got);
        free_outcome(&got);
        z.z = step ? other->z : b->z;
        z.again = 1;
    }
    ok(good, "%s%s, layers by %zu%s: loss and gradients have the bits of layers that are kept",
       config_recurs(&p->c) ? config_mixer_name(p->c.mixer) : p->c.family->name,
       p->c.tied ? " tied" : "", how->every,
       how->products == DTYPE_BF16 ? ", bf16" : "");
    free_outcome(&want);
    backprop_free(kept);
    backprop_free(again);
}

/* Without gradients of matrices, arrays that only these gradients read are not kept. The bits are
 * the same. */
static void check_latents_alone(struct parameters *p, const struct train_batch *b)
{
    const struct backprop_how all = {0}, alone = {.latents = 1};
    struct backprop *t = backprop_make(p, SEQS * LEN, SEQS, DTYPE_F32);
    struct backprop *s = backprop_make_as(p, SEQS * LEN, SEQS, &alone);
    struct outcome want = outcome_of(t, p, b, BACKPROP_LATENTS);
    struct outcome got = outcome_of(s, p, b, BACKPROP_LATENTS);
    size_t bytes = backprop_bytes(&p->c, p->b, SEQS * LEN, SEQS, &all);
    size_t fewer = backprop_bytes(&p->c, p->b, SEQS * LEN, SEQS, &alone);
    ok(same(&want, &got) && (fewer < bytes || config_recurs(&p->c)),
       "latents alone: the same bits in %.2f of the bytes", (double)fewer / (double)bytes);
    free_outcome(&want);
    free_outcome(&got);
    backprop_free(t);
    backprop_free(s);
}

static void checkpoints(const struct family *f, enum mixer mixer, int tied)
{
    struct backend *be = backend_open("cpu", NULL, 2, 0, NULL);
    struct config c = shape(f, mixer, tied);
    struct parameters *p = parameters_make(&c, be, train_ops_of(be->ops), 5);
    struct train_batch b = trained_batch(&c, SEQS, LEN, 1), other = trained_batch(&c, SEQS, LEN, 2);
    for (size_t every = 1; every <= LAYERS + 2; every++)
        for (int half = 0; half < 2; half++) {
            const struct backprop_how how = {.products = half ? DTYPE_BF16 : DTYPE_F32,
                                             .every = every};
            check_every(p, &how, &b, &other);
        }
    if (c.latents)
        check_latents_alone(p, &b);
    trained_batch_free(&b);
    trained_batch_free(&other);
    parameters_free(p);
    backend_close(be);
}

static size_t padded(size_t floats)
{
    return (floats * sizeof(float) + 255) / 256 * 256;
}

/* The bytes that a layer keeps besides its input, and the bytes of its input. */
static size_t tape_bytes(const struct config *c, size_t T)
{
    size_t D = c->width, HE = c->heads * c->head_dim, KE = c->kv_heads * c->head_dim;
    return 3 * padded(T * D) + 2 * padded(T * HE) + 2 * padded(T * KE) + 3 * padded(T * c->ffn);
}

static void bytes(void)
{
    struct backend *be = backend_open("cpu", NULL, 1, 0, NULL);
    struct config c = shape(&llama_family, MIXER_ATTENTION, 0);
    const size_t T = SEQS * LEN, tape = tape_bytes(&c, T), input = padded(T * c.width);
    const struct backprop_how all = {0};
    size_t kept = backprop_bytes(&c, be, T, 0, &all);
    for (size_t every = 1; every <= LAYERS; every++) {
        const struct backprop_how how = {.every = every};
        size_t inputs = every + (LAYERS + every - 1) / every - 1;
        size_t want = kept - (LAYERS - every) * tape - (LAYERS - inputs) * input;
        ok(backprop_bytes(&c, be, T, 0, &how) == want,
           "layers by %zu: %zu bytes fewer than %zu, as their sizes say", every, kept - want, kept);
    }
    backend_close(be);
}

/* The bytes that a trainer takes from the back end must be the planned bytes. */
static void planned(const struct family *f, enum dtype quant, size_t every, int whole)
{
    struct backend *be = backend_open("cpu", NULL, 1, 0, NULL);
    struct config c = shape(f, MIXER_ATTENTION, 0);
    struct err e = {0};
    const struct trainer_how how = {.back = {.every = every, .whole_loss = whole}};
    const struct trainer_need need = trainer_need(&c, be, 640, &how, quant);
    struct trainer *t = trainer_make_as(&c, be, 5, 640, &how, &e);
    if (ok(t != NULL, "a trainer: %s", e.text) && quant != QUANT_NONE)
        ok(!trainer_quantize(t, quant, &e), "its values are quantized: %s", e.text);
    ok(be->memory.kind[MEMORY_WEIGHTS] == need.parameters &&
           be->memory.kind[MEMORY_ACTIVATIONS] == need.activations,
       "%s, by %zu, %s: %zu and %zu bytes planned and taken", f->name, every,
       whole ? "whole" : "fused", need.parameters, need.activations);
    trainer_free(t);
    ok(be->memory.allocated == 0, "the trainer frees all that it allocated");
    backend_close(be);
}

/* Compares logits of 512 rows at a time with logits of all rows at once. Sums over rows are split
 * at other places, so only the last bits may differ. */
static void fused(int tied)
{
    enum { MANY = 31, ROWS = MANY * LEN * 2 };
    struct backend *be = backend_open("cpu", NULL, 2, 0, NULL);
    struct config c = shape(&llama_family, MIXER_ATTENTION, tied);
    struct parameters *p = parameters_make(&c, be, train_ops_of(be->ops), 5);
    struct train_batch b = trained_batch(&c, MANY, 2 * LEN, 1);
    const struct backprop_how parts = {0}, one = {.whole_loss = 1};
    struct backprop *t = backprop_make_as(p, ROWS, 0, &parts);
    struct backprop *s = backprop_make_as(p, ROWS, 0, &one);
    struct outcome x = outcome_of(t, p, &b, BACKPROP_PARAMETERS);
    struct outcome y = outcome_of(s, p, &b, BACKPROP_PARAMETERS);
    double far = 0, size = 0;
    for (size_t i = 0; i < x.n; i++) {
        far += pow((double)x.g[i] - (double)y.g[i], 2);
        size += pow((double)y.g[i], 2);
    }
    ok(fabs(x.loss - y.loss) < 1e-12 * y.loss && far > 0 && far < 1e-12 * size,
       "logits by blocks: loss %.12g, of all rows at once %.12g, gradient off by %.1g of itself",
       x.loss, y.loss, sqrt(far / size));
    size_t less = backprop_bytes(&c, be, ROWS, 0, &parts);
    size_t more = backprop_bytes(&c, be, ROWS, 0, &one);
    ok(more - less >= (ROWS - 512) * c.vocab * sizeof(float),
       "logits of all %d rows take %zu bytes more than those of 512", ROWS, more - less);
    c.vocab = 65536;
    ok(backprop_bytes(&c, be, ROWS, 0, &one) - backprop_bytes(&c, be, ROWS, 0, &parts) >=
           (ROWS - 128) * c.vocab * sizeof(float),
       "a vocabulary of 65536: logits of all rows take more than those of 128");
    free_outcome(&x);
    free_outcome(&y);
    trained_batch_free(&b);
    backprop_free(t);
    backprop_free(s);
    parameters_free(p);
    backend_close(be);
}

int main(void)
{
    checkpoints(&llama_family, MIXER_ATTENTION, 0);
    checkpoints(&llada_family, MIXER_ATTENTION, 1);
    checkpoints(&ltm_family, MIXER_ATTENTION, 0);
    checkpoints(&ltm_family, MIXER_RWKV6, 0);
    checkpoints(&ltm_family, MIXER_RWKV7, 0); /* its layers read the values of the first layer */
    bytes();
    planned(&llama_family, QUANT_NONE, 0, 0);
    planned(&llama_family, DTYPE_NF4, 2, 1);
    planned(&ltm_family, QUANT_NONE, 1, 0);
    planned(&ltm_family, DTYPE_INT8, 2, 1);
    fused(0);
    fused(1);
    return tap_done();
}
