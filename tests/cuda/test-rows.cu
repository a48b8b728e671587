/* test-rows.cu - compares rows on the device with the reference: embedding, norm, rotation,
 * gate. */
#include "tests/cuda/rows-fixture.h"

static const enum dtype acts[] = {DTYPE_F32, DTYPE_BF16};

/* ---- embedding ---- */

struct table {
    size_t T, V, K;
};

static void embed(struct fixture *f, enum dtype dtype, enum dtype act, struct table s)
{
    float *w = drawn(f, s.V * s.K), *want = floats(s.T * s.K);
    int32_t *token = (int32_t *)mem_zero(s.T, sizeof *token);
    struct mat_source from = mat_floats(w, s.V, s.K);
    struct mat m, r;
    void *block;
    for (size_t t = 0; t < s.T; t++)
        token[t] = (int32_t)(t * 7919 % s.V);
    f->cuda->act = act;
    int bad = cuda_mat_make(f->cuda, &m, &from, dtype);
    bad |= ops_ref.mat_make(f->ref, &r, &from, dtype);
    int32_t *ids = (int32_t *)sent(f, token, s.T * sizeof *token);
    void *y = sent_as(f, act, want, s.T * s.K, 0, &block);
    cuda_embed(f->cuda, y, &m, ids, s.T);
    ops_ref.embed(f->ref, want, &r, token, s.T);
    keep_all(act, want, s.T * s.K);
    float *got = got_as(f, act, y, s.T * s.K);
    ok(!bad && !memcmp(got, want, s.T * s.K * sizeof *got), "embed %s to %s, %zu of %zu x %zu",
       dtype_info[dtype].name, dtype_info[act].name, s.T, s.V, s.K);
    cuda_mat_free(f->cuda, &m), ops_ref.mat_free(f->ref, &r);
    cuda_free(f->cuda, ids), cuda_free(f->cuda, block);
    free(w), free(want), free(token), free(got);
}

static void embeddings(struct fixture *f)
{
    static const struct table shapes[] = {{1, 7, 64}, {5, 33, 192}, {17, 40, 576},
                                          {3, 9, 6},  {4, 11, 65},  {2, 5, 160}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int d = DTYPE_F32; d < DTYPES; d++)
            for (size_t a = 0; a < 2; a++)
                if (!cuda_refuses(f->cuda, (enum dtype)d, shapes[i].K))
                    embed(f, (enum dtype)d, acts[a], shapes[i]);
}

/* ---- norm ---- */

enum gathering { EACH_ROW, IN_PLACE, GATHERED };

/* Computes y's row from x with both rounding points of activations. */
static void norm_model(enum dtype act, float *y, const float *x, const float *gain, size_t D)
{
    double sum = 0;
    for (size_t d = 0; d < D; d++)
        sum += (double)x[d] * x[d];
    double scale = 1 / sqrt(sum / (double)D + 1e-5);
    for (size_t d = 0; d < D; d++)
        y[d] = gain ? kept(act, kept(act, (float)(x[d] * scale)) * gain[d]) : x[d];
}

static void norm(struct fixture *f, enum dtype act, size_t T, size_t D, enum gathering how,
                 size_t before, int with_gain)
{
    float *x = drawn(f, T * D), *gain = drawn(f, D), *want = floats(T * D);
    int32_t *row = (int32_t *)mem_zero(T, sizeof *row);
    void *block, *gain_block, *out_block = NULL;
    keep_all(act, x, T * D);
    for (size_t t = 0; t < T; t++) {
        row[t] = (int32_t)(how == GATHERED ? (t * 5 + 2) % T : t);
        norm_model(act, want + t * D, x + (size_t)row[t] * D, with_gain ? gain : NULL, D);
    }
    f->cuda->act = act;
    void *from = sent_as(f, act, x, T * D, before, &block), *y = from;
    float *g = (float *)sent_as(f, DTYPE_F32, gain, D, 0, &gain_block);
    int32_t *rows = (int32_t *)sent(f, row, T * sizeof *row);
    if (how != IN_PLACE)
        y = sent_as(f, act, want, T * D, before, &out_block);
    cuda_rmsnorm(f->cuda, y, from, how == GATHERED ? rows : NULL, with_gain ? g : NULL, T, D, 1e-5);
    float *got = got_as(f, act, y, T * D);
    /* sums are fp32; if they change a rounding to bf16, the error is up to two of its steps */
    double e = farthest(got, want, T * D, 0);
    double least = !with_gain ? 0 : act == DTYPE_F32 ? 2e-6 : 0.016;
    size_t other = 0;
    for (size_t i = 0; i < T * D; i++)
        other += got[i] != want[i];
    ok(e <= least && (act == DTYPE_F32 || other <= T * D / 50), "norm %s %zu x %zu way %d%s: %.1e",
       dtype_info[act].name, T, D, (int)how, with_gain ? "" : ", as it is", e);
    cuda_free(f->cuda, block), cuda_free(f->cuda, gain_block), cuda_free(f->cuda, out_block);
    cuda_free(f->cuda, rows);
    free(x), free(gain), free(want), free(row), free(got);
}

static void norms(struct fixture *f)
{
    static const size_t widths[] = {6, 64, 65, 160, 1000, 4096, 4104};
    for (size_t a = 0; a < 2; a++)
        for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
            for (int how = EACH_ROW; how <= GATHERED; how++) {
                norm(f, acts[a], 3, widths[i], (enum gathering)how, 0, 1);
                norm(f, acts[a], 17, widths[i] / 2, (enum gathering)how, 4, 1);
                norm(f, acts[a], 1, widths[i], (enum gathering)how, i % 2 * 4, 0);
                norm(f, acts[a], 5, widths[i], (enum gathering)how, 0, 0);
            }
}

/* ---- rotation ---- */

static void tables(struct fixture *f, size_t T, size_t E)
{
    int32_t *pos = (int32_t *)mem_zero(T, sizeof *pos);
    float *freq = floats(E / 2), *want = floats(T * E);
    for (size_t t = 0; t < T; t++)
        pos[t] = (int32_t)(t * t * 37 % 130000);
    for (size_t j = 0; j < E / 2; j++)
        freq[j] = (float)pow(500000, -2.0 * (double)j / (double)E);
    ops_ref.rope_table(f->ref, want, pos, freq, 1.25f, T, E);
    int32_t *at = (int32_t *)sent(f, pos, T * sizeof *pos);
    void *freq_block;
    float *fr = (float *)sent_as(f, DTYPE_F32, freq, E / 2, 0, &freq_block);
    float *y = (float *)cuda_alloc(f->cuda, T * E * sizeof *y, MEMORY_ACTIVATIONS);
    cuda_rope_table(f->cuda, y, at, fr, 1.25f, T, E);
    float *got = got_as(f, DTYPE_F32, y, T * E);
    double e = farthest(got, want, T * E, 1e-30);
    ok(e <= 6e-8, "rope table %zu x %zu: %.1e", T, E, e); /* at most the rounding of a tie */
    cuda_free(f->cuda, at), cuda_free(f->cuda, freq_block), cuda_free(f->cuda, y);
    free(pos), free(freq), free(want), free(got);
}

struct heads {
    size_t T, H, K, E;
};

static void rotate_model(float *x, const float *table, size_t heads, size_t E)
{
    for (size_t h = 0; h < heads; h++, x += E)
        for (size_t j = 0; j < E / 2; j++) {
            double u = x[j], v = x[j + E / 2], c = table[j], s = table[j + E / 2];
            x[j] = (float)(u * c - v * s);
            x[j + E / 2] = (float)(v * c + u * s);
        }
}

/* Puts keys or values in their slots; the other slots are filled with 3. */
static float *in_slots(const float *x, const int32_t *slot, size_t T, size_t n, enum dtype cache)
{
    float *out = floats(2 * T * n);
    for (size_t i = 0; i < 2 * T * n; i++)
        out[i] = 3;
    for (size_t t = 0; t < T; t++)
        for (size_t i = 0; i < n; i++)
            out[(size_t)slot[t] * n + i] = kept(cache, x[t * n + i]);
    return out;
}

struct rotated {
    struct heads s;
    enum dtype act, cache;
    int slots, there; /* slots: a list of slots is given; there: k and v are in the cache already */
};

static void rotate(struct fixture *f, struct rotated r)
{
    size_t T = r.s.T, E = r.s.E, HE = r.s.H * E, KE = r.s.K * E;
    float *q = drawn(f, T * HE), *k = drawn(f, T * KE), *v = drawn(f, T * KE);
    float *table = drawn(f, T * E), *none = floats(2 * T * KE);
    int32_t *slot = (int32_t *)mem_zero(T, sizeof *slot);
    void *qb, *kb, *vb, *tb, *ckb, *cvb;
    struct qkv a = {};
    keep_all(r.act, q, T * HE), keep_all(r.act, k, T * KE), keep_all(r.act, v, T * KE);
    for (size_t i = 0; i < 2 * T * KE; i++)
        none[i] = 3;
    for (size_t t = 0; t < T; t++)
        slot[t] = (int32_t)(r.slots ? (t * 2 + 5) % (2 * T) : t);
    int32_t *slots = (int32_t *)sent(f, slot, T * sizeof *slot);
    a.q = sent_as(f, r.act, q, T * HE, 0, &qb);
    a.table = (const float *)sent_as(f, DTYPE_F32, table, T * E, 0, &tb);
    a.to.k = sent_as(f, r.cache, none, 2 * T * KE, 0, &ckb);
    a.to.v = sent_as(f, r.cache, none, 2 * T * KE, 0, &cvb);
    a.to.dtype = r.cache;
    a.slot = r.slots ? slots : NULL;
    a.heads = r.s.H, a.kv_heads = r.s.K, a.head_dim = E;
    void *key = sent_as(f, r.act, k, T * KE, 0, &kb), *value = sent_as(f, r.act, v, T * KE, 0, &vb);
    if (r.there) {
        cuda_free(f->cuda, ckb), cuda_free(f->cuda, cvb);
        a.to.k = sent_as(f, r.act, k, T * KE, 0, &ckb);
        a.to.v = sent_as(f, r.act, v, T * KE, 0, &cvb);
    }
    f->cuda->act = r.act;
    const struct qkv_made there = {NULL, NULL, NULL, KE}, aside = {NULL, key, value, KE};
    cuda_rotate_store(f->cuda, &a, r.there ? &there : &aside, T);
    for (size_t t = 0; t < T; t++) {
        rotate_model(q + t * HE, table + t * E, r.s.H, E);
        rotate_model(k + t * KE, table + t * E, r.s.K, E);
    }
    keep_all(r.act, q, T * HE);
    size_t n = (r.there ? 1 : 2) * T * KE;
    float *gq = got_as(f, r.act, a.q, T * HE), *wk = in_slots(k, slot, T, KE, r.cache);
    float *gk = got_as(f, r.cache, a.to.k, n), *gv = got_as(f, r.cache, a.to.v, n);
    float *wv = in_slots(v, slot, T, KE, r.cache);
    double eq = farthest(gq, q, T * HE, 0.01), ek = farthest(gk, wk, n, 0.01);
    /* errors of fp32; if they change a rounding to bf16, a step of bf16 */
    ok(eq < (r.act == DTYPE_F32 ? 1e-4 : 0.008) && ek < (r.cache == DTYPE_F32 ? 1e-4 : 0.008),
       "rotate %zu rows of %zu/%zu x %zu, %s in %s, way %d%d: %.1e %.1e", T, r.s.H, r.s.K, E,
       dtype_info[r.act].name, dtype_info[r.cache].name, r.slots, r.there, eq, ek);
    ok(!memcmp(gv, wv, n * sizeof *gv), "values are stored");
    cuda_free(f->cuda, qb), cuda_free(f->cuda, kb), cuda_free(f->cuda, vb);
    cuda_free(f->cuda, tb), cuda_free(f->cuda, ckb), cuda_free(f->cuda, cvb);
    cuda_free(f->cuda, slots);
    free(q), free(k), free(v), free(table), free(none), free(slot);
    free(gq), free(gk), free(gv), free(wk), free(wv);
}

static void rotations(struct fixture *f)
{
    static const struct heads shapes[] = {{1, 4, 4, 16}, {3, 8, 2, 64}, {17, 6, 3, 6},
                                          {5, 3, 1, 2},  {2, 8, 1, 128}, {4, 2, 2, 256}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int way = 0; way < 8; way++)
            rotate(f, {shapes[i], acts[way & 1], acts[way >> 1 & 1], way >> 2, 0});
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int a = 0; a < 2; a++)
            rotate(f, {shapes[i], acts[a], acts[a], 0, 1});
}

/* ---- gate ---- */

static void gate(struct fixture *f, enum dtype act, size_t T, size_t F, size_t ld)
{
    float *both = drawn(f, T * ld + F), *want = floats(T * F);
    void *block, *out;
    for (size_t i = 0; i < T * ld + F; i++)
        both[i] *= 5;
    both[0] = -200, both[1] = 90;
    keep_all(act, both, T * ld + F);
    for (size_t i = 0; i < T * F; i++) {
        double g = both[i / F * ld + i % F], u = both[i / F * ld + i % F + ld - F];
        want[i] = kept(act, (float)(g / (1 + exp(-g)) * u));
    }
    f->cuda->act = act;
    size_t value = act == DTYPE_F32 ? sizeof(float) : sizeof(uint16_t);
    char *x = (char *)sent_as(f, act, both, T * ld + F, 0, &block);
    void *y = sent_as(f, act, want, T * F, 0, &out);
    cuda_swiglu_rows(f->cuda, y, x, x + (ld - F) * value, ld, T, F);
    float *got = got_as(f, act, y, T * F);
    double e = farthest(got, want, T * F, 1e-20);
    ok(e < (act == DTYPE_F32 ? 2e-6 : 0.008), "gate %s %zu x %zu of %zu: %.1e",
       dtype_info[act].name, T, F, ld, e);
    if (ld == 2 * F && T == 1) { /* rows without gaps: also tests the operation of ops.h */
        cuda_swiglu(f->cuda, y, x, x + F * value, F);
        float *flat = got_as(f, act, y, F);
        ok(!memcmp(flat, got, F * sizeof *got), "%s %zu values as the rows", dtype_info[act].name,
           F);
        free(flat);
    }
    cuda_free(f->cuda, block), cuda_free(f->cuda, out);
    free(both), free(want), free(got);
}

static void gates(struct fixture *f)
{
    static const size_t shapes[][3] = {{1, 160, 320}, {3, 6, 12},      {17, 65, 130},
                                       {2, 48, 100},  {5, 2064, 4128}, {1, 8, 8},
                                       {1, 600007, 1200014}};
    for (size_t a = 0; a < 2; a++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            gate(f, acts[a], shapes[i][0], shapes[i][1], shapes[i][2]);
}

int main(void)
{
    struct fixture f = fixture_open();
    embeddings(&f);
    norms(&f);
    tables(&f, 1, 2);
    tables(&f, 19, 16);
    tables(&f, 40, 128);
    rotations(&f);
    gates(&f);
    fixture_close(&f);
    return tap_done();
}
