/* test-heads.cu - compares queries, keys and values with biases and norms of single heads on the
 * device with the reference: every format of the matrices, caches of both kinds, slots listed or
 * not, few and many rows, heads of odd sizes. */
#include "tests/cuda/rows-fixture.h"

struct shape {
    size_t T, H, K, E, D;
};
struct how {
    enum dtype dtype, cache;
    int listed, biases, norms;
};

/* A matrix on the device and on the reference. */
struct sides {
    struct mat cuda, ref;
};

static struct sides matrix(struct fixture *f, enum dtype dtype, size_t rows, size_t cols)
{
    struct sides m;
    float *w = drawn(f, rows * cols);
    for (size_t i = 0; i < rows * cols; i++)
        w[i] /= sqrtf((float)cols);
    struct mat_source s = mat_floats(w, rows, cols);
    if (cuda_mat_make(f->cuda, &m.cuda, &s, dtype) || ops_ref.mat_make(f->ref, &m.ref, &s, dtype))
        exit(1);
    free(w);
    return m;
}

/* The largest error of a cache's rows against the reference, relative to 1 + |y|. */
static double stored_far(const float *got, const float *want, const struct how *h,
                         const int32_t *slot, size_t T, size_t n)
{
    double worst = 0;
    for (size_t t = 0; t < T; t++) {
        size_t at = (h->listed ? (size_t)slot[t] : t) * n;
        worst = fmax(worst, farthest(got + at, want + at, n, 1));
    }
    return worst;
}

/* Returns cosines, then sines, of each row. */
static float *angles(size_t T, size_t E)
{
    float *table = floats(T * E);
    for (size_t t = 0; t < T; t++)
        for (size_t j = 0; j < E / 2; j++) {
            table[t * E + j] = cosf((float)(t + j));
            table[t * E + E / 2 + j] = sinf((float)(t + j));
        }
    return table;
}

static void run(struct fixture *f, struct shape s, struct how h)
{
    const size_t HE = s.H * s.E, KE = s.K * s.E, S = 2 * s.T, T = s.T;
    const size_t N[3] = {HE, KE, KE};
    const enum dtype act = cuda_act_dtype(h.dtype);
    const int exact = act == DTYPE_F32;
    struct qkv d = {}, r = {};
    struct sides m[3];
    void *blocks[16];
    size_t n = 0;
    f->cuda->act = act;
    float *x = drawn(f, T * s.D), *gain = drawn(f, s.D), *table = angles(T, s.E);
    keep_all(act, x, T * s.D);
    int32_t *slot = (int32_t *)mem_zero(T, sizeof *slot);
    for (size_t t = 0; t < T; t++)
        slot[t] = (int32_t)((t * 2 + 5) % S);
    float *more[5];
    for (int i = 0; i < 3; i++) {
        m[i] = matrix(f, h.dtype, N[i], s.D);
        more[i] = drawn(f, N[i]);
        if (h.biases) {
            r.bias[i] = more[i];
            d.bias[i] = (const float *)sent_as(f, DTYPE_F32, more[i], N[i], 0, &blocks[n++]);
        }
    }
    for (int i = 0; i < 2; i++)
        more[3 + i] = drawn(f, s.E);
    for (int i = 0; i < 2 && h.norms; i++) {
        r.head_gain[i] = more[3 + i];
        d.head_gain[i] = (const float *)sent_as(f, DTYPE_F32, more[3 + i], s.E, 0, &blocks[n++]);
    }
    r.wq = &m[0].ref, r.wk = &m[1].ref, r.wv = &m[2].ref;
    d.wq = &m[0].cuda, d.wk = &m[1].cuda, d.wv = &m[2].cuda;
    r.heads = d.heads = s.H, r.kv_heads = d.kv_heads = s.K, r.head_dim = d.head_dim = s.E;
    float *none = floats(S * KE), *q = floats(T * HE), *k = floats(S * KE), *v = floats(S * KE);
    r.in = {x, gain, 1e-6}, r.table = table, r.q = q, r.slot = h.listed ? slot : NULL;
    r.to = {k, v, DTYPE_F32};
    d.in = {sent_as(f, act, x, T * s.D, 0, &blocks[n]), NULL, 1e-6}, n++;
    d.in.gain = (const float *)sent_as(f, DTYPE_F32, gain, s.D, 0, &blocks[n++]);
    d.table = (const float *)sent_as(f, DTYPE_F32, table, T * s.E, 0, &blocks[n++]);
    d.q = sent_as(f, act, q, T * HE, 0, &blocks[n++]);
    d.to.k = sent_as(f, h.cache, none, S * KE, 0, &blocks[n++]);
    d.to.v = sent_as(f, h.cache, none, S * KE, 0, &blocks[n++]);
    d.to.dtype = h.cache;
    blocks[n++] = sent(f, slot, T * sizeof *slot);
    d.slot = h.listed ? (const int32_t *)blocks[n - 1] : NULL;
    size_t bytes = cuda_qkv_work(f->cuda, T, s.D, s.H, s.K, s.E, 1);
    void *work = cuda_alloc(f->cuda, bytes, MEMORY_ACTIVATIONS);
    void *room = mem_aligned(ops_ref.qkv_work(f->ref, T, s.D, s.H, s.K, s.E, 1));
    cuda_qkv(f->cuda, &d, T, work);
    ops_ref.qkv(f->ref, &r, T, room);
    float *gq = got_as(f, act, d.q, T * HE);
    float *gk = got_as(f, h.cache, d.to.k, S * KE), *gv = got_as(f, h.cache, d.to.v, S * KE);
    double far[3] = {farthest(gq, q, T * HE, 1), stored_far(gk, k, &h, slot, T, KE),
                     stored_far(gv, v, &h, slot, T, KE)};
    /* inputs that differ in the last bit may round to neighbours, of fp16 or of a row's codes */
    int codes = h.dtype == DTYPE_INT8 || h.dtype == DTYPE_INT8_VECTOR;
    double slack = h.dtype == DTYPE_F16 ? 2e-3 : exact ? 2e-5 : codes ? 0.06 : 0.04;
    double stored = h.cache == DTYPE_F32 || !exact ? slack : 0.006;
    ok(far[0] < slack && far[1] < stored && far[2] < stored,
       "%s in %s, %zu rows of %zu/%zu x %zu%s%s%s: %.1e %.1e %.1e", dtype_info[h.dtype].name,
       dtype_info[h.cache].name,
       T, s.H, s.K, s.E, h.listed ? ", slots" : "", h.biases ? ", biases" : "",
       h.norms ? ", norms" : "", far[0], far[1], far[2]);
    while (n > 0)
        cuda_free(f->cuda, blocks[--n]);
    cuda_free(f->cuda, work);
    for (int i = 0; i < 3; i++) {
        cuda_mat_free(f->cuda, &m[i].cuda);
        ops_ref.mat_free(f->ref, &m[i].ref);
    }
    for (int i = 0; i < 5; i++)
        free(more[i]);
    free(x), free(gain), free(table), free(slot), free(none), free(q), free(k), free(v);
    free(gq), free(gk), free(gv), free(room);
}

int main(void)
{
    static const struct shape shapes[] = {{1, 4, 2, 16, 64},  {3, 2, 1, 64, 128}, {9, 3, 3, 6, 64},
                                          {70, 8, 1, 10, 64}, {2, 2, 2, 128, 192}};
    struct fixture f = fixture_open();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int dtype = 0; dtype < DTYPES; dtype++)
            for (int which = 1;
                 which < 4 && !cuda_refuses(f.cuda, (enum dtype)dtype, 64); which++) {
                enum dtype cache = (i + (size_t)which) % 2 ? DTYPE_F32 : DTYPE_BF16;
                run(&f, shapes[i], {(enum dtype)dtype, cache, dtype % 2 ^ (int)i % 2, which & 1,
                                    which >> 1});
            }
    fixture_close(&f);
    return tap_done();
}
