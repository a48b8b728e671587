/* test-outliers.cu - tests that outliers of INT8 rows on CUDA, any number of them, by every kernel,
 * give the reference's bits. Rows have no outlier, as many as gemv.cu keeps in shared memory, as
 * many as are listed (tiling.h), one more than that, or outliers only. */
#include "kernels/cuda/weights/tiling.h"
#include "tests/cuda/rows-fixture.h"
extern "C" {
#include "kernels/ref/ref.h"
}

enum { ROWS = 80, N = 40, K = 600, STRIDE = 7 /* no factor of K */ };
static const size_t many[] = {0,           1,   NEAR, NEAR + 1, MARKS_LISTED, MARKS_LISTED + 1,
                              MARKS_LISTED + 40, K - 1, K};
enum { KINDS = sizeof many / sizeof *many };

/* Makes rows with values below 4, and outliers of 16 to 24 scattered over the row. */
static float *rows_made(struct fixture *f)
{
    float *x = floats(ROWS * K);
    for (size_t i = 0; i < ROWS * K; i++) {
        float small = (float)(8 * rng_uniform(&f->rng) - 4);
        int out = i % K * STRIDE % K < many[i / K % KINDS];
        x[i] = kept(DTYPE_BF16, small + (out ? i % 2 ? 20.0f : -20.0f : 0.0f));
    }
    return x;
}

/* The outputs of all rows, T at a time; the caller frees them. */
static float *outputs_of(struct fixture *f, const struct mat *w, const float *x, size_t T)
{
    void *block, *here = sent_as(f, DTYPE_BF16, x, ROWS * K, 0, &block);
    void *work = cuda_alloc(f->cuda, cuda_matmul_work(f->cuda, T, K, N), MEMORY_ACTIVATIONS);
    float *y = (float *)cuda_alloc(f->cuda, ROWS * N * sizeof *y, MEMORY_ACTIVATIONS);
    for (size_t t = 0; t < ROWS; t += T)
        cuda_logits(f->cuda, y + t * N, w, 0, N, (const uint16_t *)here + t * K, T, work);
    float *got = got_as(f, DTYPE_F32, y, ROWS * N);
    cuda_free(f->cuda, y), cuda_free(f->cuda, work), cuda_free(f->cuda, block);
    return got;
}

int main(void)
{
    static const size_t at_once[] = {1, 4, 8, 40, 80};
    struct fixture f = fixture_open();
    f.cuda->act = DTYPE_BF16;
    float *w = drawn(&f, N * K), *x = rows_made(&f);
    struct mat_source s = mat_floats(w, N, K);
    struct mat cuda, ref;
    if (cuda_mat_make(f.cuda, &cuda, &s, DTYPE_INT8) || ref_mat_make(f.ref, &ref, &s, DTYPE_INT8))
        abort();
    double *want = (double *)mem_zero(ROWS * N, sizeof *want);
    for (size_t t = 0; t < ROWS; t++)
        ref_outputs(want + t * N, x + t * K, &ref);
    for (size_t T : at_once) {
        float *got = outputs_of(&f, &cuda, x, T);
        size_t wrong = 0;
        for (size_t i = 0; i < ROWS * N; i++)
            wrong += (float)want[i] != got[i];
        ok(wrong == 0, "%zu rows in a call: %zu outputs of %d differ from the reference", T, wrong,
           ROWS * N);
        free(got);
    }
    free(w), free(x), free(want);
    ref_mat_free(f.ref, &ref);
    cuda_mat_free(f.cuda, &cuda);
    fixture_close(&f);
    return tap_done();
}
