/* test-head.cu - compares the device's head with ref: shapes, chunks of the vocabulary, guidance,
 * noise, ties, lists of ids, planted values, repeated and replayed passes. Logits are exact
 * (head-fixture.h), so every choice must be the same id. */
#include "tests/cuda/head-fixture.h"

static const struct head_plan narrow = {128, HEAD_FEW}, odd = {384, HEAD_FEW},
                              wide = {1024, HEAD_MANY};

static void shapes(struct fixture *f)
{
    for (size_t V : {1, 2, 3, 31, 512, 1000, 4099})
        for (size_t R : {1, 2, 3, 17, 40}) {
            struct question a = ask(R, V, 3);
            aim(&a);
            if (R * V < 5000) {
                agree(f, a, NULL, "argmax");
                a.temperature = 0.8;
                agree(f, a, NULL, "temperature 0.8");
            }
            guide(&a, 1.5);
            a.temperature = 0.8;
            agree(f, a, NULL, "temperature and guidance");
        }
}

static void chunks(struct fixture *f)
{
    struct question a = ask(3, 4099, 2);
    aim(&a);
    guide(&a, 0.5);
    a.ban = {4098, 127, 0};
    a.quiet = {128, 4096};
    for (double t : {0.0, 1.0}) {
        a.temperature = t;
        agree(f, a, &narrow, "chunks of 128");
        agree(f, a, &odd, "chunks of 384");
        agree(f, a, &wide, "chunks of 1024");
    }
}

/* Divergences of rows from other rows, and from themselves. */
static void divergences(struct fixture *f)
{
    for (size_t V : {1, 31, 512, 1300}) {
        struct question a = ask(10, V, 1);
        guide(&a, 0);
        a.divergence = 1;
        agree(f, a, NULL, "divergence");
        agree(f, a, &narrow, "divergence in small pieces");
        if (V > 31) {
            a.ban = {0, 30};
            a.quiet = {7, (int32_t)V - 1};
            agree(f, a, &wide, "divergence with lists");
        }
        a.temperature = 0.5;
        agree(f, a, &odd, "divergence, temperature 0.5");
        a.xu = a.x;
        values logits;
        double most = 0;
        for (const struct head_row &r : by_cuda(f, a, &wide, &logits))
            most = fmax(most, fabs((double)r.divergence));
        ok(most < 1e-6, "%zu ids: a row from itself by %.1e", V, most);
    }
}

static void noise(struct fixture *f)
{
    for (double spread : {0.0, 0.01, 1.0, 20.0})
        for (double t : {1e-300, 1e-9, 0.05, 0.7, 8.0, 1e30}) {
            struct question a = ask(5, 700, spread);
            a.temperature = t;
            char what[64];
            snprintf(what, sizeof what, "temperature %g, spread %g", t, spread);
            agree(f, a, NULL, what);
            a.dense = 1;
            agree(f, a, NULL, "all logits at once");
        }
}

/* Tests top-k and top-p with ties at the last id that stays, and the measures of the kept ids. */
static void filters(struct fixture *f)
{
    for (size_t V : {1, 31, 700, 2100})
        for (size_t k : {(size_t)0, (size_t)1, (size_t)9, V})
            for (double p : {0.0, 0.05, 0.9, 1 - 1e-9}) {
                struct question a = ask(4, V, 2);
                a.top_k = k;
                a.top_p = p;
                a.top_p_of_all = k == 9 && p < 0.9;
                a.drawn = k != 9;
                a.temperature = V == 31 ? 1 : 0.6;
                agree(f, a, NULL, "a filter");
                a.temperature = 0;
                agree(f, a, NULL, "a filter, greedy");
                for (float &l : a.w)
                    l = truncf(l);
                if (V > 31)
                    a.quiet = {7, 3};
                a.temperature = 1.5;
                agree(f, a, &narrow, "a filter among equals");
                a.temperature = 0;
                agree(f, a, &narrow, "a filter among equals, greedy");
            }
}

static double score_of(const struct question &a, size_t r, const values &logits, int32_t id)
{
    uint64_t bits = rng_at(3, a.keys[r], (uint64_t)id);
    return gumbel_score(a.gumbel, logits[r * a.V + (size_t)id], a.temperature, bits);
}

/* Noise in floats: the device's logarithms differ from the host's in the last bit. So a choice may
 * differ, but only for an id whose score is equal within this error. */
static void float_noise(struct fixture *f)
{
    for (size_t kind : {(size_t)GUMBEL_F32, (size_t)GUMBEL_F32X})
        for (double spread : {0.01, 1.0, 20.0})
            for (double t : {0.05, 0.7, 8.0}) {
                struct question a = ask(5, 700, spread);
                a.temperature = t;
                a.gumbel = kind;
                values logits;
                answers x = by_ref(f, a, &logits), y = by_cuda(f, a, NULL, NULL);
                int worse = 0, same = 0;
                for (size_t r = 0; r < a.R; r++) {
                    double best = score_of(a, r, logits, x[r].id);
                    same += x[r].id == y[r].id;
                    worse += !(score_of(a, r, logits, y[r].id) >= best - 1e-5 * fabs(best));
                }
                ok(worse == 0 && same > 0, "noise %zu, temperature %g, spread %g: %d the same ids, "
                   "%d with a worse score", kind, t, spread, same, worse);
            }
}

/* The best and the second best are often equal, within one chunk or in two. */
static void ties(struct fixture *f)
{
    for (size_t V : {2, 64, 129, 1025, 2100}) {
        struct question a = ask(10, V, 2);
        for (float &l : a.w)
            l = truncf(l);
        agree(f, a, &narrow, "few values");
        for (float &l : a.w)
            l = 0.25f;
        agree(f, a, NULL, "all equal");
        a.temperature = 1e-20;
        agree(f, a, NULL, "all equal, noise too small to tell");
        a.temperature = 0;
        for (size_t v : {(size_t)0, V / 2, V - 1})
            for (size_t j = 0; j < a.D; j++)
                a.w[v * a.D + j] = 1;
        agree(f, a, &narrow, "three are best");
    }
}

static void fill(struct question *a, size_t v, float logit)
{
    for (size_t j = 0; j < a->D; j++)
        a->w[v * a->D + j] = logit;
}

/* The probability of a nearly certain answer must have 1 - prob to four digits, because the order
 * of two such answers depends on it. */
static void certain(struct fixture *f)
{
    for (float lead : {8.0f, 14.0f, 20.0f, 26.0f, 32.0f}) {
        struct question a = ask(1, 700, 0.5);
        fill(&a, 300, lead / a.x[0]);
        values want, have;
        double x = by_ref(f, a, &want)[0].log_prob, y = by_cuda(f, a, &narrow, &have)[0].log_prob;
        ok(x < 0 && fabs(y / x - 1) < 1e-4, "ahead by %g: log prob %.6g, %.6g by the reference",
           (double)lead, y, x);
    }
}

static void lists(struct fixture *f)
{
    struct question a = ask(4, 1500, 1);
    fill(&a, 7, 500);
    fill(&a, 1030, 500);
    fill(&a, 8, 400); /* so far above the others that their probability is 0 relative to it */
    a.ban = {7, 1030, 0};
    a.quiet = {8, 1400};
    a.target = {7, 8, 9, 1499};
    agree(f, a, NULL, "best banned, next best quiet");
    a.temperature = 1;
    agree(f, a, NULL, "best banned, next best quiet, temperature 1");
    for (size_t V : {1, 3, 200}) {
        struct question all = ask(3, V, 1);
        for (size_t v = 0; v < V; v++)
            all.quiet.push_back((int32_t)v);
        aim(&all);
        agree(f, all, NULL, "all quiet");
        std::swap(all.quiet, all.ban);
        agree(f, all, NULL, "all banned");
        all.temperature = 1;
        agree(f, all, NULL, "all banned, temperature 1");
        all.ban.erase(all.ban.begin() + (long)V / 2);
        agree(f, all, NULL, "all but one banned");
    }
}

/* A head that has rows for only some ids. */
static void some_ids(struct fixture *f)
{
    for (size_t V : {1, 97, 1500})
        for (double t : {0.0, 0.7, 8.0}) {
            struct question a = ask(5, V, 1);
            a.temperature = t;
            for (size_t v = 0; v < V; v++)
                a.of_rows.push_back((int32_t)(3 * v + v * v % 3));
            agree(f, a, NULL, "rows for some ids");
            a.gumbel = GUMBEL_F32X;
            agree(f, a, NULL, "rows for some ids, noise in floats");
        }
}

/* A NaN in one column of the matrix is also NaN in rows that multiply this column by 0. */
static void planted(struct fixture *f)
{
    for (size_t V : {3, 600, 1300})
        for (size_t at : {(size_t)0, V / 2, V - 1})
            for (float what : {NAN, INFINITY, -INFINITY})
                for (size_t R : {1, 3}) {
                    struct question a = ask(R, V, 1);
                    aim(&a);
                    a.w[at * a.D] = what;
                    char text[64];
                    snprintf(text, sizeof text, "%f at %zu", (double)what, at);
                    agree(f, a, &narrow, text);
                    a.temperature = 1;
                    agree(f, a, NULL, "a planted value, temperature 1");
                    a.ban = {(int32_t)at};
                    agree(f, a, NULL, "a planted value, banned");
                }
    struct question a = ask(2, 300, 1);
    guide(&a, 1);
    a.xu[a.D - 1] = NAN;
    agree(f, a, NULL, "a NaN in the twin of row 0");
}

/* Two runs give the same bits, beside any other rows, and every plan gives the same choices. */
static void repeats(struct fixture *f)
{
    struct question a = ask(7, 2100, 2);
    a.temperature = 0.9;
    answers x = by_cuda(f, a, &wide, NULL), y = by_cuda(f, a, &wide, NULL);
    ok(memcmp(x.data(), y.data(), x.size() * sizeof x[0]) == 0, "the same bits twice");
    struct question b = a;
    for (size_t r = 0; r < b.R; r++)
        b.x[r * b.D + r] *= r == 5 ? 1.0f : -3.0f;
    b.x[4 * b.D] = NAN;
    y = by_cuda(f, b, &wide, NULL);
    ok(memcmp(&x[5], &y[5], sizeof x[5]) == 0 && y[4].bad && x[3].id != y[3].id,
       "a row does not see the others");
    y = by_cuda(f, a, &narrow, NULL);
    int differ = 0;
    for (size_t r = 0; r < a.R; r++)
        differ += x[r].id != y[r].id || x[r].runner_up != y[r].runner_up ||
                  !(numbers_apart(x[r], y[r]) < 2e-6);
    ok(differ == 0, "another plan: %d other answers", differ);
}

/* A recorded head that is replayed: keys, lists and targets are read at each replay. */
struct recorded {
    struct backend *b;
    struct mat m;
    const float *x;
    struct head_query q;
    struct head_row *rows;
    void *work;
};

static void step(void *ctx)
{
    struct recorded *s = (struct recorded *)ctx;
    cuda_head(s->b, &s->m, s->x, NULL, 3, &s->q, s->rows, NULL, s->work);
}

static void replays(struct fixture *f)
{
    struct question a = ask(3, 1000, 1);
    a.temperature = 1;
    a.ban = {5};
    aim(&a);
    struct backend *b = f->cuda;
    struct desk d = {f, {}};
    struct recorded s = {b, {}, put(&d, a.x), query(a), room<struct head_row>(&d, a.R),
                         room<char>(&d, cuda_head_work(b, a.R, a.D, a.V, 0))};
    struct mat_source from = mat_floats(a.w.data(), a.V, a.D);
    cuda_mat_make(b, &s.m, &from, DTYPE_F32);
    uint64_t *keys = put(&d, a.keys);
    int32_t *ban = put(&d, a.ban), *target = put(&d, a.target);
    s.q.keys = keys;
    s.q.ban = ban;
    s.q.target = target;
    int differ = 0;
    for (int pass = 0; pass < 4; pass++) {
        values logits;
        answers want = by_ref(f, a, &logits), have(a.R);
        cuda_run(b, "head", 4, step, &s);
        cuda_read(b, have.data(), s.rows, a.R * sizeof have[0]);
        for (size_t r = 0; r < a.R; r++)
            differ += want[r].id != have[r].id || !(numbers_apart(want[r], have[r]) < 3e-6);
        a.keys[1] += 5;
        a.ban[0] = want[0].id;
        a.target[2]++;
        cuda_write(b, keys, a.keys.data(), a.R * sizeof a.keys[0]);
        cuda_write(b, ban, a.ban.data(), sizeof a.ban[0]);
        cuda_write(b, target, a.target.data(), a.R * sizeof a.target[0]);
    }
    ok(differ == 0, "a record replayed with other keys, bans and targets: %d differ", differ);
    for (void *p : d.there)
        cuda_free(b, p);
    cuda_mat_free(b, &s.m);
}

static void plans(void)
{
    int wrong = 0;
    for (size_t V : {1, 127, 128, 4099, 126464, 128256})
        for (size_t R : {1, 4, 5, 32, 64, 65, 256, 1024, 8192, 40000})
            for (int guided = 0; guided < 2; guided++)
                for (int sms : {1, 16, 132}) {
                    struct head_plan p = head_plan_of(R, V, guided, 0, sms);
                    struct head_scratch s = head_scratch_of(&p, R, V, guided, 48);
                    size_t piece = HEAD_LANES * p.each, one = R * p.chunk * sizeof(float);
                    size_t bytes = guided ? 2 * one : one;
                    wrong += p.chunk == 0 || p.chunk % piece || p.chunk >= V + piece;
                    wrong += bytes > HEAD_SCRATCH && p.chunk > piece;
                    wrong += s.twin < one || s.states < bytes || s.states % 256 ||
                             s.product < s.states + R * head_pieces(&p, V) * 48;
                }
    ok(wrong == 0, "plans: %d wrong", wrong);
    struct head_plan one = head_plan_of(1, 128256, 0, 0, 132);
    struct head_plan many = head_plan_of(256, 128256, 0, 0, 132);
    struct head_plan dense = head_plan_of(256, 128256, 1, 1, 132);
    ok(one.chunk == 128256 && one.each == HEAD_FEW, "one row: one chunk, small pieces");
    ok(dense.chunk >= 128256 && dense.each == HEAD_MANY, "all logits at once: one chunk");
    ok(many.chunk == 32256 && many.each == HEAD_MANY, "256 rows: four chunks");
}

int main(void)
{
    struct fixture f = fixture_open();
    plans();
    shapes(&f);
    chunks(&f);
    divergences(&f);
    filters(&f);
    noise(&f);
    float_noise(&f);
    ties(&f);
    certain(&f);
    lists(&f);
    some_ids(&f);
    planted(&f);
    repeats(&f);
    replays(&f);
    fixture_close(&f);
    return tap_done();
}
