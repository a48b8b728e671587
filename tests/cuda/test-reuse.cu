/* test-reuse.cu - compares choosing rows on the device with the reference: few rows, and more rows
 * than a block has threads, wide and odd widths, both formats of activations and of the cache,
 * exact ties. */
#include "tests/cuda/rows-fixture.h"

/* Three sequences: a quarter of the rows, one row, and the rest. */
enum { SEQS = 3 };
struct shape {
    size_t T, H, K, E, D;
};
static const struct shape shapes[] = {
    {11, 4, 2, 6, 10}, {70, 2, 2, 16, 64}, {700, 6, 3, 8, 40}, {33, 2, 1, 7, 9}};

static void cut(size_t T, struct attn_seq seqs[SEQS])
{
    int32_t quarter = (int32_t)T / 4, rest = (int32_t)T - quarter - 1;
    seqs[0] = {0, quarter, 0, quarter};
    seqs[1] = {quarter, 1, quarter, 1};
    seqs[2] = {quarter + 1, rest, quarter + 1, rest};
}

/* Blocks of device memory, which forget() frees. */
struct blocks {
    void *p[24];
    size_t n;
};

static void *put(struct fixture *f, struct blocks *s, const void *p, size_t bytes)
{
    return s->p[s->n++] = sent(f, p, bytes);
}

static void *put_as(struct fixture *f, struct blocks *s, enum dtype dtype, const float *x, size_t n)
{
    return sent_as(f, dtype, x, n, 0, &s->p[s->n++]);
}

static void forget(struct fixture *f, struct blocks *s)
{
    while (s->n)
        cuda_free(f->cuda, s->p[--s->n]);
}

static int32_t *numbers(size_t n)
{
    return (int32_t *)mem_zero(n, sizeof(int32_t));
}

/* Returns 1 if the n numbers on the device are those of the reference. */
static int equal(struct fixture *f, const void *device, const int32_t *want, size_t n)
{
    int32_t *got = numbers(n);
    cuda_read(f->cuda, got, device, n * sizeof *got);
    int same = !memcmp(got, want, n * sizeof *got);
    free(got);
    return same;
}

static void choose(struct fixture *f, struct shape s, enum dtype act, enum dtype cache, int ties)
{
    const size_t n = s.K * s.E, S = 2 * s.T;
    struct attn_seq seqs[SEQS];
    cut(s.T, seqs);
    int32_t some = seqs[2].rows / 3, first = seqs[0].rows / 2 + 1;
    const struct share part[SEQS] = {{1, 1, first, 0}, {0, 0, 1, first}, {0, 0, some, first + 1}};
    size_t taken = (size_t)(first + 1 + some);
    struct blocks k = {};
    float *v = drawn(f, s.T * n), *kept = drawn(f, S * n), *bias = drawn(f, n);
    int32_t *slot = numbers(s.T), *pos = numbers(s.T), *to = numbers(4 * s.T);
    f->cuda->act = act;
    keep_all(act, v, s.T * n);
    keep_all(cache, v, s.T * n);
    for (size_t t = 0; t < s.T; t++) {
        slot[t] = (int32_t)((2 * t + 1) % S);
        pos[t] = (int32_t)(3 * t);
        for (size_t i = 0; i < n && ties && t % 5; i++) /* four of five rows are unchanged */
            kept[(size_t)slot[t] * n + i] = v[t * n + i];
    }
    keep_all(cache, kept, S * n);
    struct drift d = {put_as(f, &k, act, v, s.T * n),
                      ties ? NULL : (const float *)put_as(f, &k, DTYPE_F32, bias, n),
                      put_as(f, &k, cache, kept, S * n),
                      cache,
                      (const int32_t *)put(f, &k, slot, s.T * sizeof *slot),
                      (const int32_t *)put(f, &k, pos, s.T * sizeof *pos),
                      (const struct attn_seq *)put(f, &k, seqs, sizeof seqs),
                      (const struct share *)put(f, &k, part, sizeof part),
                      SEQS, s.T, (size_t)seqs[2].rows, n, {}};
    int32_t *there[4];
    for (int i = 0; i < 4; i++)
        there[i] = (int32_t *)put(f, &k, to, s.T * sizeof *to);
    d.to = {there[0], there[1], there[2], there[3]};
    void *room = mem_aligned(reuse_work(s.T, SEQS, n));
    cuda_choose(f->cuda, &d, put(f, &k, room, reuse_work(s.T, SEQS, n)));
    /* The reference gets values that are already rounded as activations. */
    for (size_t i = 0; i < s.T * n && !ties; i++)
        v[i] = act == DTYPE_BF16 ? bf16_float(bf16_of(v[i] + bias[i % n])) : v[i] + bias[i % n];
    uint16_t *half = (uint16_t *)mem_zero(S * n, sizeof *half);
    for (size_t i = 0; i < S * n; i++)
        half[i] = bf16_of(kept[i]);
    struct drift r = {v, NULL, cache == DTYPE_F32 ? (void *)kept : half, cache, slot, pos, seqs,
                      part, SEQS, s.T, d.max_rows, n, {to, to + s.T, to + 2 * s.T, to + 3 * s.T}};
    ops_ref.choose(f->ref, &r, room);
    for (size_t i = 0; i < S * n && cache == DTYPE_BF16; i++)
        kept[i] = bf16_float(half[i]);
    float *stored = got_as(f, cache, d.kept, S * n);
    int same = equal(f, there[0], to, taken) && equal(f, there[1], to + s.T, taken) &&
               equal(f, there[2], to + 2 * s.T, taken) && equal(f, there[3], to + 3 * s.T, s.T);
    ok(same && !memcmp(stored, kept, S * n * sizeof *kept),
       "choose %zu of %zu rows of %zu, %s in %s%s", taken, s.T, n, dtype_info[act].name,
       dtype_info[cache].name, ties ? ", ties" : "");
    forget(f, &k);
    free(v), free(kept), free(bias), free(slot), free(pos), free(to), free(room), free(half);
    free(stored);
}

static void settle(struct fixture *f, struct shape s, enum dtype act, int all)
{
    const size_t n = s.T * s.D, S = 2 * s.T;
    struct blocks k = {};
    float *x = drawn(f, n), *sum = drawn(f, n), *kept = drawn(f, S * s.D);
    int32_t *place = numbers(s.T), *slot = numbers(s.T), chosen = 0;
    f->cuda->act = act;
    keep_all(act, x, n), keep_all(act, sum, n), keep_all(act, kept, S * s.D);
    for (size_t t = 0; t < s.T; t++) {
        slot[t] = (int32_t)((2 * t + 1) % S);
        place[t] = t % 3 == 1 ? chosen++ : -1;
    }
    struct outputs d = {put_as(f, &k, act, x, n), put_as(f, &k, act, sum, n),
                        put_as(f, &k, act, kept, S * s.D),
                        (const int32_t *)put(f, &k, place, s.T * sizeof *place),
                        (const int32_t *)put(f, &k, slot, s.T * sizeof *slot), s.T, s.D};
    struct outputs r = {x, sum, kept, all ? NULL : place, slot, s.T, s.D};
    d.place = all ? NULL : d.place;
    cuda_settle(f->cuda, &d);
    ops_ref.settle(f->ref, &r);
    keep_all(act, x, n), keep_all(act, kept, S * s.D);
    float *gx = got_as(f, act, d.x, n), *gk = got_as(f, act, d.kept, S * s.D);
    ok(!memcmp(gx, x, n * sizeof *x) && !memcmp(gk, kept, S * s.D * sizeof *kept),
       "settle %zu rows of %zu, %s, %s", s.T, s.D, dtype_info[act].name, all ? "all" : "some");
    forget(f, &k);
    free(x), free(sum), free(kept), free(place), free(slot), free(gx), free(gk);
}

static void sift(struct fixture *f, struct shape s, enum dtype act, enum dtype cache)
{
    const size_t KE = s.K * s.E, HE = s.H * s.E, S = s.T;
    struct attn_seq seqs[SEQS];
    cut(s.T, seqs);
    int32_t most = seqs[2].rows / 2;
    const struct share part[SEQS] = {{0, 2, seqs[0].rows - 2, 0},
                                     {0, 1, 0, seqs[0].rows},
                                     {2, seqs[2].rows / 4, most, seqs[0].rows}};
    struct blocks k = {};
    float *q = drawn(f, s.T * HE), *in[2], *out[2] = {floats(S * KE), floats(S * KE)};
    f->cuda->act = act;
    keep_all(act, q, s.T * HE);
    for (int i = 0; i < 2; i++) {
        in[i] = drawn(f, s.T * KE);
        keep_all(cache, in[i], s.T * KE);
    }
    struct sift d = {put_as(f, &k, act, q, s.T * HE),
                     {put_as(f, &k, cache, in[0], s.T * KE), put_as(f, &k, cache, in[1], s.T * KE),
                      cache},
                     {put_as(f, &k, cache, out[0], S * KE), put_as(f, &k, cache, out[1], S * KE),
                      cache},
                     (const struct attn_seq *)put(f, &k, seqs, sizeof seqs),
                     (const struct share *)put(f, &k, part, sizeof part),
                     SEQS, s.T, (size_t)seqs[2].rows, s.H, s.K, s.E};
    struct sift r = {q, {in[0], in[1], DTYPE_F32}, {out[0], out[1], DTYPE_F32}, seqs, part, SEQS,
                     s.T, d.max_rows, s.H, s.K, s.E};
    void *room = mem_aligned(reuse_work(s.T, SEQS, KE));
    cuda_sift(f->cuda, &d, put(f, &k, room, reuse_work(s.T, SEQS, KE)));
    ops_ref.sift(f->ref, &r, room);
    float *got[2] = {got_as(f, cache, d.to.k, S * KE), got_as(f, cache, d.to.v, S * KE)};
    ok(!memcmp(got[0], out[0], S * KE * sizeof(float)) &&
           !memcmp(got[1], out[1], S * KE * sizeof(float)),
       "sift %d of %zu rows of %zu/%zu x %zu, %s in %s", most, s.T, s.H, s.K, s.E,
       dtype_info[act].name, dtype_info[cache].name);
    forget(f, &k);
    for (int i = 0; i < 2; i++)
        free(in[i]), free(out[i]), free(got[i]);
    free(q), free(room);
}

int main(void)
{
    static const enum dtype formats[] = {DTYPE_F32, DTYPE_BF16};
    struct fixture f = fixture_open();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int a = 0; a < 2; a++)
            for (int c = 0; c < 2; c++) {
                choose(&f, shapes[i], formats[a], formats[c], 0);
                choose(&f, shapes[i], formats[a], formats[c], 1);
                settle(&f, shapes[i], formats[a], c);
                sift(&f, shapes[i], formats[a], formats[c]);
            }
    fixture_close(&f);
    return tap_done();
}
