/* test-links.c - compares the operation links of every level with its definition in doubles: the
 * sum of two layers, and the means of the columns. */
#include "kernels/links.h"

#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "tests/tap.h"

/* Three sequences; 4 heads of 5 values; two heads share a key head. */
enum { SEQS = 3, T = 23, H = 4, K = 2, E = 5, STRIDE = 17 };
static const struct attn_seq seqs[SEQS] = {{0, 7, 0, 7}, {7, 1, 7, 1}, {8, 15, 8, 15}};

static float q[T * H * E], k[T * K * E];

/* Adds half of the weights of row t of a sequence to w[]. */
static void add_row(const struct attn_seq *s, int32_t t, double *w)
{
    for (int h = 0; h < H; h++) {
        double e[STRIDE], sum = 0;
        for (int32_t j = 0; j < s->rows; j++) {
            double dot = 0;
            for (int i = 0; i < E; i++)
                dot += (double)q[(t * H + h) * E + i] *
                       (double)k[((s->row_begin + j) * K + h / 2) * E + i];
            sum += e[j] = exp(dot / sqrt(E));
        }
        for (int32_t j = 0; j < s->rows; j++)
            w[j] += 0.5 * e[j] / sum / H;
    }
}

static void check(const struct ops *ops)
{
    struct backend b = {.ops = ops, .pool = pool_new(3), .act = DTYPE_F32};
    static double want[T][STRIDE];
    float map[T * STRIDE], mean[T];
    struct rng rng = {.seed = 9};
    double far = 0;
    memset(want, 0, sizeof want);
    for (size_t i = 0; i < T * STRIDE; i++)
        map[i] = 7; /* the first layer must overwrite it */
    for (int layer = 0; layer < 2; layer++) {
        for (size_t i = 0; i < T * H * E; i++)
            q[i] = (float)rng_normal(&rng);
        for (size_t i = 0; i < T * K * E; i++)
            k[i] = (float)rng_normal(&rng);
        for (int i = 0; i < SEQS; i++)
            for (int32_t t = 0; t < seqs[i].rows; t++)
                add_row(&seqs[i], seqs[i].row_begin + t, want[seqs[i].row_begin + t]);
        const struct links l = {q, {k, NULL, DTYPE_F32}, seqs, T, H, K, E, 0.5, layer, STRIDE,
                                map, layer ? mean : NULL};
        ops->links(&b, &l);
    }
    for (int i = 0; i < SEQS; i++)
        for (int32_t j = 0; j < seqs[i].rows; j++) {
            double sum = 0;
            for (int32_t t = seqs[i].row_begin; t < seqs[i].row_begin + seqs[i].rows; t++) {
                sum += want[t][j] / seqs[i].rows;
                far = fmax(far, fabs((double)map[t * STRIDE + j] - want[t][j]));
            }
            far = fmax(far, fabs((double)mean[seqs[i].row_begin + j] - sum));
        }
    ok(far < 1e-6 && map[STRIDE - 1] > 6, "%s links, by %.1e", ops->level, far);
    pool_free(b.pool);
}

int main(void)
{
    const struct ops *ops;
    check(&ops_ref);
    for (size_t i = 0; (ops = ops_cpu_at(i)); i++)
        check(ops);
    return tap_done();
}
