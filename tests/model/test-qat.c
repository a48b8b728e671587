/* test-qat.c - tests quantization-aware training: a pass computes with the values of the packed
 * model, the gradient is taken at these values, and the update changes the fp32 values. A model
 * trained in this way loses less when it is packed. */
#include "kernels/quant.h"
#include "lib/checkpoint/quantization.h"
#include "tests/model/trained.h"
#include "tests/tap.h"

enum { WIDTH = 64, FFN = 128 };

/* Rounds a row to a format by the definition of the format, without the code for matrices. nf4
 * quantizes the scales of its blocks over a whole matrix, so nf4-f32 is tested in its place. */
static void decode_row(enum dtype d, const float *w, size_t n, float *out)
{
    if (d == DTYPE_INT8) {
        int8_t code[256];
        float scale = quant_int8(w, n, code);
        for (size_t i = 0; i < n; i++)
            out[i] = (float)code[i] * (scale / INT8_TOP);
        return;
    }
    uint8_t code[128];
    float top[4];
    quant_blocks(d, w, n, code, top);
    for (size_t i = 0; i < n; i++)
        out[i] = quant_levels(d)[i % 2 ? code[i / 2] & 15 : code[i / 2] >> 4] * top[i / 64];
}

/* Writes the values of p as a rounding pass sees them to `to`, another set of parameters. */
static void decode_all(struct parameters *p, struct parameters *to, enum dtype quant)
{
    const struct config *c = &p->c;
    for (int k = 0; k < ROLE_COUNT; k++)
        for (size_t l = 0; l < role_layers(c, (enum role)k); l++) {
            enum role r = (enum role)k;
            size_t rows, cols;
            role_shape(c, r, &rows, &cols);
            enum dtype d = quantization_dtype(quant, c, r, l, DTYPE_F32);
            const float *w = parameters_values(p, r, l);
            float *out = parameters_values(to, r, l);
            for (size_t i = 0; i < rows; i++)
                if (dtype_info[d].quantized)
                    decode_row(d, w + i * cols, cols, out + i * cols);
                else
                    memcpy(out + i * cols, w + i * cols, cols * sizeof *out);
        }
}

/* Loss and gradient of a rounding trainer are those at the rounded values; its own values stay. */
static void straight_through(const struct family *f, int tied, enum dtype quant)
{
    enum { SEQS = 3, LEN = 11 };
    struct backend *be = backend_open("cpu", NULL, 2, 0, NULL);
    struct config c = trained_config(f, MIXER_ATTENTION, tied, WIDTH, FFN);
    struct err e = {0};
    struct parameters *p = parameters_make(&c, be, train_ops_of(be->ops), 5);
    struct parameters *at = parameters_make(&c, be, train_ops_of(be->ops), 6);
    struct backprop *t = backprop_make(p, SEQS * LEN, SEQS, DTYPE_F32);
    struct backprop *s = backprop_make(at, SEQS * LEN, SEQS, DTYPE_F32);
    struct train_batch b = trained_batch(&c, SEQS, LEN, 2);
    float *before = mem_alloc(p->n * sizeof *before);
    double plain = backprop_loss(t, &b, BACKPROP_LOSS);
    ok(!parameters_quantize(p, quant, &e), "%s: %s", quantization_name(quant), e.text);
    int good = 1;
    for (int step = 0; step < 3; step++) {
        memcpy(before, p->w, p->n * sizeof *before);
        parameters_look(p);
        decode_all(p, at, quant);
        double loss = backprop_loss(t, &b, BACKPROP_PARAMETERS);
        good &= loss == backprop_loss(s, &b, BACKPROP_PARAMETERS) && loss != plain &&
                !memcmp(p->g, at->g, p->n * sizeof *p->g) &&
                !memcmp(before, p->w, p->n * sizeof *before);
        parameters_update(p, 1e-2, 0.1, 1);
        good &= memcmp(before, p->w, p->n * sizeof *before) != 0;
    }
    ok(good, "%s%s as %s: loss and gradient are those at the rounded values, masters move",
       f->name, tied ? " tied" : "", quantization_name(quant));
    free(before);
    trained_batch_free(&b);
    backprop_free(t);
    backprop_free(s);
    parameters_free(p);
    parameters_free(at);
    backend_close(be);
}

static void refused(void)
{
    struct backend *be = backend_open("cpu", NULL, 1, 0, NULL);
    struct config c = trained_config(&llama_family, MIXER_ATTENTION, 0, WIDTH, FFN);
    struct err e = {0};
    c.ffn = 96;
    struct trainer *t = trainer_make(&c, be, 5, 64, DTYPE_F32, &e);
    ok(trainer_quantize(t, DTYPE_NF4, &e) == -1 && e.code == EXIT_BAD_DATA,
       "a matrix that does not fit the format: %s", e.text);
    trainer_free(t);
    backend_close(be);
}

/* Trains on one batch until it is known by heart, the second half of the steps with rounding (aware
 * 1) or without. Returns the loss of the packed values. (What is left of it is mostly the effect of
 * rounding.) */
static double packed_loss(struct backend *be, uint64_t seed, enum dtype quant, int aware)
{
    enum { STEPS = 160, ROUND = 80 };
    struct config c = trained_config(&llama_family, MIXER_ATTENTION, 0, WIDTH, FFN);
    struct err e = {0};
    struct trainer *t = trainer_make(&c, be, seed, 4 * 16, DTYPE_F32, &e);
    struct train_batch b = trained_batch(&c, 4, 16, seed);
    struct rng r = {.seed = seed};
    trained_chains(&b, &r);
    for (int i = 0; i < STEPS; i++) {
        if (i == ROUND && aware)
            trainer_quantize(t, quant, &e);
        trainer_loss(t, &b, 1);
        trainer_update(t, 3e-3 * (1 - (double)i / STEPS), 0.1, 1);
    }
    if (!aware)
        trainer_quantize(t, quant, &e);
    double loss = trainer_loss(t, &b, 0);
    trained_batch_free(&b);
    trainer_free(t);
    return loss;
}

static void learns(enum dtype quant)
{
    enum { SEEDS = 4 };
    struct backend *be = backend_open("cpu", NULL, 1, 0, NULL);
    double after = 0, with = 0;
    int better = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        double a = packed_loss(be, seed, quant, 0), w = packed_loss(be, seed, quant, 1);
        after += a / SEEDS;
        with += w / SEEDS;
        better += w < a;
    }
    ok(better == SEEDS, "by heart, as %s: %.4f nats quantized after training, %.4f in training",
       quantization_name(quant), after, with);
    backend_close(be);
}

int main(void)
{
    straight_through(&llama_family, 0, DTYPE_INT8);
    straight_through(&llama_family, 1, DTYPE_INT8);
    straight_through(&llama_family, 0, DTYPE_NF4_F32);
    straight_through(&ltm_family, 1, DTYPE_NF4_F32);
    refused();
    learns(DTYPE_NF4);
    learns(DTYPE_FP4);
    learns(DTYPE_Q4);
    return tap_done();
}
