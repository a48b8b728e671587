/* test-links.cu - compares attention between rows on the device with the reference: few rows, and
 * more rows than a block has threads, in both formats of activations. */
#include "tests/cuda/rows-fixture.h"

struct shape {
    size_t T, H, K, E;
};
static const struct shape shapes[] = {{11, 4, 2, 6}, {70, 2, 2, 16}, {300, 3, 3, 8}, {33, 2, 1, 7}};

static void links(struct fixture *f, struct shape s, enum dtype act)
{
    const size_t n = s.T * s.H * s.E, m = s.T * s.K * s.E, stride = s.T + 3;
    const int32_t quarter = (int32_t)s.T / 4, rest = (int32_t)s.T - quarter;
    const struct attn_seq seqs[] = {{0, quarter, 0, quarter}, {quarter, rest, quarter, rest}};
    float *want = floats(s.T * stride), *mean = floats(s.T), far = 0;
    float *map = (float *)cuda_alloc(f->cuda, s.T * stride * sizeof(float), MEMORY_ACTIVATIONS);
    float *means = (float *)cuda_alloc(f->cuda, s.T * sizeof(float), MEMORY_ACTIVATIONS);
    const struct attn_seq *there = (const struct attn_seq *)sent(f, seqs, sizeof seqs);
    f->cuda->act = act;
    for (int layer = 0; layer < 2; layer++) {
        float *q = drawn(f, n), *k = drawn(f, m);
        void *base[2];
        keep_all(act, q, n), keep_all(act, k, m);
        const struct links r = {q, {k, NULL, DTYPE_F32}, seqs, s.T, s.H, s.K, s.E, 0.5, layer,
                                stride, want, layer ? mean : NULL};
        struct links d = r;
        d.q = sent_as(f, act, q, n, 0, &base[0]);
        d.kv = {sent_as(f, act, k, m, 0, &base[1]), NULL, act};
        d.seqs = there;
        d.map = map;
        d.mean = layer ? means : NULL;
        ops_ref.links(f->ref, &r);
        cuda_links(f->cuda, &d);
        cuda_free(f->cuda, base[0]);
        cuda_free(f->cuda, base[1]);
        free(q), free(k);
    }
    float *got = floats(s.T * stride), *average = floats(s.T);
    cuda_read(f->cuda, got, map, s.T * stride * sizeof *got);
    cuda_read(f->cuda, average, means, s.T * sizeof *average);
    for (size_t i = 0; i < 2; i++)
        for (size_t t = (size_t)seqs[i].row_begin; t < (size_t)(seqs[i].row_begin + seqs[i].rows);
             t++) {
            far = fmaxf(far, fabsf(average[t] - mean[t]));
            for (size_t j = 0; j < (size_t)seqs[i].rows; j++)
                far = fmaxf(far, fabsf(got[t * stride + j] - want[t * stride + j]));
        }
    ok(far < 1e-6f, "links of %zu rows, %s: by %.1e", s.T, dtype_info[act].name, (double)far);
    cuda_free(f->cuda, map);
    cuda_free(f->cuda, means);
    cuda_free(f->cuda, (void *)(uintptr_t)there);
    free(got), free(average), free(want), free(mean);
}

int main(void)
{
    struct fixture f = fixture_open();
    for (const struct shape &s : shapes) {
        links(&f, s, DTYPE_F32);
        links(&f, s, DTYPE_BF16);
    }
    fixture_close(&f);
    return tap_done();
}
