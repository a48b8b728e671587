/* test-reuse.c - compares the operations choose, settle and sift of every level with their
 * definition, written out in doubles. */
#include "kernels/host.h"
#include "kernels/reuse.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "tests/tap.h"

/* Three sequences; 4 heads of 6 values; two heads share a key head. */
enum { SEQS = 3, T = 29, H = 4, K = 2, E = 6, KE = K * E, D = 10, S = 64 };
static const struct attn_seq seqs[SEQS] = {{0, 9, 0, 9}, {9, 1, 9, 1}, {10, 19, 10, 19}};

static struct rng rng = {.seed = 21};

static void draw(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)rng_normal(&rng);
}

/* Stores n floats as values of `dtype`. */
static void store(void *to, enum dtype dtype, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (dtype == DTYPE_F32)
            ((float *)to)[i] = x[i];
        else
            ((uint16_t *)to)[i] = bf16_of(x[i]);
}

static double load(const void *from, enum dtype dtype, size_t i)
{
    return dtype == DTYPE_F32 ? (double)((const float *)from)[i]
                              : (double)bf16_float(((const uint16_t *)from)[i]);
}

/* Sets taken[] = 1 for `take` more of score[first .. first + n - 1]: the lowest scores that are not
 * taken yet, the first of equals. */
static void least(const double *score, int first, int n, int take, int *taken)
{
    for (; take > 0; take--) {
        int best = -1;
        for (int j = first; j < first + n; j++)
            if (!taken[j] && (best < 0 || score[j] < score[best]))
                best = j;
        taken[best] = 1;
    }
}

static void test_choose(struct backend *b, enum dtype dtype, int biased)
{
    static const struct share part[SEQS] = {{2, 3, 5, 0}, {0, 0, 1, 5}, {0, 0, 6, 6}};
    float v[T * KE], old[S * KE], bias[KE], kept[S * KE], now[S * KE];
    int32_t slot[T], pos[T], row[T], slots[T], poss[T], place[T];
    double score[T], work[reuse_work(T, SEQS, KE) / sizeof(double)];
    int taken[T] = {0}, same = 1, stored = 1;
    draw(v, T * KE), draw(old, S * KE), draw(bias, KE);
    for (int t = 0; t < T; t++)
        slot[t] = t * 7 % S, pos[t] = 100 - t;
    for (int i = 0; i < 4 * KE; i++) /* rows 10 to 13 equal the stored values exactly */
        old[slot[10 + i / KE] * KE + i % KE] = v[10 * KE + i] + (biased ? bias[i % KE] : 0);
    memset(v + 14 * KE, 0, KE * sizeof *v);
    store(kept, dtype, old, S * KE);
    memcpy(now, kept, sizeof now);
    const struct drift d = {v, biased ? bias : NULL, kept, dtype, slot, pos, seqs, part, SEQS, T,
                            19, KE, {row, slots, poss, place}};
    b->ops->choose(b, &d, work);
    for (int t = 0; t < T; t++) {
        double dot = 0, x2 = 0, y2 = 0;
        for (int i = 0; i < KE; i++) {
            float x;
            size_t at = (size_t)slot[t] * KE + (size_t)i;
            store(&x, dtype, &(float){v[t * KE + i] + (biased ? bias[i] : 0)}, 1);
            double y = load(now, dtype, at), z = load(&x, dtype, 0);
            dot += z * y, x2 += z * z, y2 += y * y;
            stored &= load(kept, dtype, at) == z;
        }
        score[t] = x2 > 0 && y2 > 0 ? dot / sqrt(x2) / sqrt(y2) : 0;
        score[t] = t >= 10 && t < 14 ? 1 : score[t];
    }
    for (int i = 0; i < SEQS; i++) {
        int base = seqs[i].row_begin, apart = part[i].n;
        for (int j = 0; j < apart; j++)
            taken[base + part[i].first + j] = 1;
        least(score, base, seqs[i].rows, part[i].take - apart, taken);
    }
    for (int t = 0, n = 0; t < T; t++) {
        same &= place[t] == (taken[t] ? n : -1);
        if (taken[t]) {
            same &= row[n] == t && slots[n] == slot[t] && poss[n] == pos[t];
            n++;
        }
    }
    ok(same, "%s %s choose in %s%s: the rows that changed most", b->ops->name, b->ops->level,
       dtype_info[dtype].name, biased ? ", biased" : "");
    ok(stored, "%s %s choose: new values are kept", b->ops->name, b->ops->level);
}

/* Among many equal scores the lowest rows are chosen. */
static void test_ties(struct backend *b)
{
    static const struct share part[SEQS] = {{0, 0, 4, 0}, {0, 0, 0, 4}, {5, 2, 5, 4}};
    float v[T * KE], kept[S * KE];
    int32_t slot[T], row[T], slots[T], poss[T], place[T];
    static const int32_t want[9] = {0, 1, 2, 3, 10, 11, 12, 15, 16};
    double work[reuse_work(T, SEQS, KE) / sizeof(double)];
    draw(v, T * KE);
    memcpy(kept, v, sizeof v);
    for (int t = 0; t < T; t++)
        slot[t] = t;
    const struct drift d = {v, NULL, kept, DTYPE_F32, slot, slot, seqs, part, SEQS, T, 19, KE,
                            {row, slots, poss, place}};
    b->ops->choose(b, &d, work);
    ok(!memcmp(row, want, sizeof want), "%s %s choose: among equals the lowest", b->ops->name,
       b->ops->level);
}

static void test_settle(struct backend *b, int all)
{
    float x[T * D], sum[T * D], kept[S * D], y[T * D], old[S * D];
    int32_t place[T], slot[T];
    int same = 1, n = 0;
    draw(x, T * D), draw(sum, T * D), draw(kept, S * D);
    memcpy(y, x, sizeof x), memcpy(old, kept, sizeof kept);
    for (int t = 0; t < T; t++) {
        slot[t] = (t * 5 + 3) % S;
        place[t] = t % 3 ? -1 : n++;
    }
    b->ops->settle(b, &(struct outputs){x, sum, kept, all ? NULL : place, slot, T, D});
    for (int t = 0; t < T; t++)
        for (int i = 0; i < D; i++) {
            int p = all ? t : place[t];
            size_t at = (size_t)slot[t] * D + (size_t)i;
            float was = y[t * D + i], to = p < 0 ? was + old[at] : sum[p * D + i];
            same &= x[t * D + i] == to && kept[at] == (p < 0 ? old[at] : to - was);
        }
    ok(same, "%s %s settle, %s", b->ops->name, b->ops->level, all ? "all rows" : "some rows");
}

static void test_sift(struct backend *b, enum dtype dtype)
{
    static const struct share part[SEQS] = {{0, 4, 3, 7}, {0, 1, 0, 10}, {8, 5, 6, 20}};
    float q[T * H * E], x[2][T * KE], from[2][T * KE], to[2][S * KE];
    double score[T], pooled[T], work[reuse_work(T, SEQS, KE) / sizeof(double)];
    int same = 1;
    draw(q, T * H * E);
    for (int i = 0; i < 2; i++) {
        draw(x[i], T * KE);
        store(from[i], dtype, x[i], T * KE);
        memset(to[i], 0, sizeof to[i]);
    }
    const struct sift s = {q, {from[0], from[1], dtype}, {to[0], to[1], dtype}, seqs, part, SEQS, T,
                           19, H, K, E};
    b->ops->sift(b, &s, work);
    for (int i = 0; i < SEQS; i++) {
        int base = seqs[i].row_begin, from_row = base + part[i].first, next[T], n = 0;
        int taken[T] = {0};
        for (int t = base; t < base + seqs[i].rows; t++) {
            if (t >= from_row && t < from_row + part[i].n)
                continue;
            next[n] = t;
            score[n] = 0;
            for (int h = 0; h < H; h++)
                for (int e = 0; e < E; e++) {
                    double mean = 0;
                    for (int r = from_row; r < from_row + part[i].n; r++)
                        mean += (double)q[(r * H + h) * E + e] / part[i].n;
                    score[n] += mean * load(from[0], dtype, (size_t)(t * KE + h / 2 * E + e)) / H;
                }
            n++;
        }
        for (int j = 0; j < n; j++) {
            pooled[j] = -score[j];
            if (j && -score[j - 1] < pooled[j])
                pooled[j] = -score[j - 1];
            if (j + 1 < n && -score[j + 1] < pooled[j])
                pooled[j] = -score[j + 1];
        }
        least(pooled, 0, n, part[i].take, taken);
        for (int j = 0, k = 0; j < n; j++)
            for (int e = 0; taken[j] && e < KE; e++, k += e == KE)
                for (int w = 0; w < 2; w++)
                    same &= load(to[w], dtype, (size_t)((part[i].out + k) * KE + e)) ==
                            load(from[w], dtype, (size_t)(next[j] * KE + e));
    }
    ok(same, "%s %s sift in %s: keys and values that the block asks for", b->ops->name,
       b->ops->level, dtype_info[dtype].name);
}

static void test_level(const struct ops *ops)
{
    for (size_t threads = 1; threads < 4; threads += 2) {
        struct backend b = {.ops = ops, .pool = pool_new(threads)};
        for (int i = 0; i < 2; i++) {
            enum dtype dtype = i ? DTYPE_BF16 : DTYPE_F32;
            test_choose(&b, dtype, 0);
            test_choose(&b, dtype, 1);
            test_sift(&b, dtype);
            test_settle(&b, i);
        }
        test_ties(&b);
        pool_free(b.pool);
    }
}

int main(void)
{
    test_level(&ops_ref);
    for (size_t i = 0; ops_cpu_at(i); i++)
        test_level(ops_cpu_at(i));
    return tap_done();
}
