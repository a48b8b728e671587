/* test-encoder.c - compares encoders with an independent forward pass over the same weights, in
 * double precision and plain loops; and tokenizers with the ids that Hugging Face's tokenizers
 * give. */
#include "lib/network/encoder.h"

#include "tests/fixtures/encoder.h"

enum { D = ENCODER_D, H = ENCODER_H, F = ENCODER_F, E = D / H };

/* ---- the independent implementation ---- */

static void layer_norm(double *x, const float *gain, const float *bias, double eps)
{
    double sum = 0, square = 0;
    for (int d = 0; d < D; d++)
        sum += x[d];
    for (int d = 0; d < D; d++)
        square += (x[d] - sum / D) * (x[d] - sum / D);
    for (int d = 0; d < D; d++)
        x[d] = (x[d] - sum / D) / sqrt(square / D + eps) * (double)gain[d] + (double)bias[d];
}

/* y[rows] = w x + bias; w and bias are the tensors t[0] and t[1]. */
static void affine(const struct encoder_fixture *t, const double *x, double *y)
{
    for (size_t r = 0; r < t->rows; r++) {
        y[r] = (double)t[1].v[r];
        for (size_t c = 0; c < t->cols; c++)
            y[r] += (double)t->v[r * t->cols + c] * x[c];
    }
}

static void attend(double q[][D], double k[][D], double v[][D], size_t n, size_t t, double *out)
{
    for (int h = 0; h < H; h++) {
        double p[ENCODER_P], all = 0;
        for (size_t s = 0; s < n; s++) {
            double dot = 0;
            for (int i = h * E; i < (h + 1) * E; i++)
                dot += q[t][i] * k[s][i];
            all += p[s] = exp(dot / sqrt(E));
        }
        for (int i = h * E; i < (h + 1) * E; i++) {
            out[i] = 0;
            for (size_t s = 0; s < n; s++)
                out[i] += p[s] / all * v[s][i];
        }
    }
}

static void by_hand(const struct encoder_fixture *t, int roberta, const struct ids *ids,
                    size_t layers, double x[][D])
{
    double eps = roberta ? 1e-5 : 1e-12, q[ENCODER_P][D], k[ENCODER_P][D], v[ENCODER_P][D];
    for (size_t i = 0; i < ids->n; i++) {
        for (size_t d = 0; d < D; d++)
            x[i][d] = (double)t[0].v[(size_t)ids->v[i] * D + d] +
                      (double)t[1].v[(i + (roberta ? 2 : 0)) * D + d] + (double)t[2].v[d];
        layer_norm(x[i], t[3].v, t[4].v, eps);
    }
    for (const struct encoder_fixture *y = t + ENCODER_LAYER; layers--; y += 16) {
        for (size_t i = 0; i < ids->n; i++) {
            affine(y, x[i], q[i]);
            affine(y + 2, x[i], k[i]);
            affine(y + 4, x[i], v[i]);
        }
        for (size_t i = 0; i < ids->n; i++) {
            double mixed[D], out[D], up[F];
            attend(q, k, v, ids->n, i, mixed);
            affine(y + 6, mixed, out);
            for (int d = 0; d < D; d++)
                x[i][d] += out[d];
            layer_norm(x[i], y[8].v, y[9].v, eps);
            affine(y + 10, x[i], up);
            for (int f = 0; f < F; f++)
                up[f] = up[f] / 2 * erfc(-up[f] / sqrt(2));
            affine(y + 12, up, out);
            for (int d = 0; d < D; d++)
                x[i][d] += out[d];
            layer_norm(x[i], y[14].v, y[15].v, eps);
        }
    }
}

/* ---- tests ---- */

static char folder[] = P_tmpdir "/test-encoder-XXXXXX";

static void clear_folder(void)
{
    static const char *const files[] = {"config.json", "model.safetensors", "tokenizer.json",
                                        "vocab.txt"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = mem_format("%s/%s", folder, files[i]);
        unlink(path);
        free(path);
    }
}

/* Returns the largest difference of any value of any text. */
static double worst(const struct encoder *n, const struct encoder_fixture *t)
{
    static const char *const texts[] = {"", "the boat", "A small boat sailed over the sea!",
                                        "boat boat boat boat boat boat boat boat boat boat boat "
                                        "boat boat boat boat boat boat boat boat boat boat boat"};
    double top = 0;
    struct ids ids = {0};
    struct err e = {0};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        float got[ENCODER_P * D];
        double want[ENCODER_P][D];
        if (encoder_ids(n, texts[k], &ids, &e) < 0 || encoder_run(n, &ids, got, &e))
            return INFINITY;
        by_hand(t, n->is_roberta, &ids, n->layers, want);
        for (size_t i = 0; i < ids.n * D; i++)
            top = fmax(top, fabs((double)got[i] - want[i / D][i % D]));
    }
    ids_free(&ids);
    return top;
}

static void test_forward(int roberta, const char *device)
{
    struct encoder_fixture t[ENCODER_TENSORS] = {0};
    struct err e = {0};
    struct backend *b = backend_open(device, NULL, 2, 0, &e);
    b->act = DTYPE_F32;
    encoder_list(t, roberta);
    for (size_t layer = 0; layer <= ENCODER_L; layer++) {
        struct encoder n;
        if (!ok(!encoder_open(&n, folder, layer, b, &e), "opens: %s", e.text))
            continue;
        double off = worst(&n, t);
        ok(off < 2e-5, "%s on %s, layer %zu: off by %g", roberta ? "roberta" : "bert", device,
           layer, off);
        encoder_close(&n);
    }
    ok(b->memory.requested == 0, "gives everything back");
    for (size_t i = 0; i < ENCODER_TENSORS; i++)
        free(t[i].v);
    backend_close(b);
}

static void expect_ids(const struct encoder *n, const char *text, int cut, const char *want)
{
    struct ids ids = {0};
    struct err e = {0};
    struct buf b = {0};
    int got = encoder_ids(n, text, &ids, &e);
    for (size_t i = 0; i < ids.n; i++)
        buf_format(&b, "%s%d", i ? " " : "", (int)ids.v[i]);
    ok(got == cut && !strcmp(b.data, want), "ids %s", b.data);
    buf_free(&b);
    ids_free(&ids);
}

/* The expected ids come from BertTokenizer and RobertaTokenizer of transformers 4.46. */
static void test_ids(int roberta)
{
    struct err e = {0};
    struct backend *b = backend_open("ref", NULL, 1, 0, &e);
    struct encoder n;
    if (!ok(!encoder_open(&n, folder, 0, b, &e), "opens: %s", e.text))
        return;
    if (roberta) {
        expect_ids(&n, " the  boat\n", 0, "0 266 224 263 2");
        expect_ids(&n, "", 0, "0 2");
    } else {
        expect_ids(&n, "The Boat sailed.", 0, "2 9 11 12 13 7 3");
        expect_ids(&n, "na\xC3\xAFve Caf\xC3\xA9s\xE2\x80\x93unable", 0, "2 19 18 22 33 20 21 3");
        expect_ids(&n, "\t x2\xE6\x97\xA5\xE6\x97\xA5" "boat-cat q \x01sea\n", 0,
                   "2 23 24 32 32 11 8 25 26 27 1 16 3");
        expect_ids(&n, "[SEP]", 0, "2 1 1 1 3");
        expect_ids(&n, "a a a a a a a a a a a a a a a a a a a a a a a a a a a", 1,
                   "2 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 3");
    }
    encoder_close(&n);
    backend_close(b);
}

int main(void)
{
    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    for (int roberta = 0; roberta < 2; roberta++) {
        encoder_write(folder, roberta);
        test_forward(roberta, "ref");
        test_forward(roberta, "cpu");
        test_ids(roberta);
        clear_folder();
    }
    rmdir(folder);
    return tap_done();
}
