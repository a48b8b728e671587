/* test-ops.c - compares every operation of every level of the cpu back end with ref, at odd shapes;
 * 1, 2 and 3 threads must give the same bits. */
#include "kernels/ops.h"
#include "kernels/train.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "tests/tap.h"

static struct rng rng = {.seed = 7};

static float *draw(size_t n, double scale)
{
    float *x = mem_aligned(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(scale * rng_normal(&rng));
    return x;
}

static double worst(const float *a, const float *b, size_t n)
{
    double top = 0, size = 1e-30;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - b[i]);
        top = d > top || d != d ? d : top;
        size = fabs((double)b[i]) > size ? fabs((double)b[i]) : size;
    }
    return top / size;
}

static struct backend *open_level(const char *level, size_t threads)
{
    struct backend *b = mem_zero(1, sizeof *b);
    b->ops = strcmp(level, "ref") ? ops_cpu(level) : &ops_ref;
    b->pool = pool_new(threads);
    return b;
}

struct shape {
    size_t T, N, K;
};
static const struct shape shapes[] = {{1, 1, 1},     {1, 33, 7},   {5, 65, 31},   {13, 31, 64},
                                      {25, 96, 100}, {96, 70, 33}, {200, 129, 65}};

static void make(struct backend *b, struct mat *m, const float *w, size_t N, size_t K,
                 enum dtype dtype)
{
    struct mat_source s = mat_floats(w, N, K);
    b->ops->mat_make(b, m, &s, dtype);
}

static void multiply(struct backend *b, float *y, const float *x, const struct mat *w, size_t T,
                     int add)
{
    struct product p = {w, y, add};
    void *work = mem_aligned(b->ops->matmul_work(b, T, w->cols, w->rows));
    b->ops->matmul(b, &p, 1, (struct input){.x = x}, T, work);
    free(work);
}

static void matmul_case(struct backend *b, struct backend *ref, struct shape s, enum dtype dtype)
{
    float *x = draw(s.T * s.K, 1), *w = draw(s.N * s.K, 1);
    float *y = draw(s.T * s.N, 1), *z = mem_alloc(s.T * s.N * sizeof *z);
    memcpy(z, y, s.T * s.N * sizeof *z);
    struct mat m, r;
    make(b, &m, w, s.N, s.K, dtype);
    make(ref, &r, w, s.N, s.K, dtype);
    for (int add = 0; add < 2; add++) {
        multiply(b, y, x, &m, s.T, add);
        multiply(ref, z, x, &r, s.T, add);
        ok(worst(y, z, s.T * s.N) < 3e-6, "%s matmul %zux%zux%zu dtype %d add %d", b->ops->level,
           s.T, s.N, s.K, (int)dtype, add);
    }
    int32_t token[3] = {(int32_t)s.N - 1, 0, (int32_t)s.N / 2};
    float *e = mem_alloc(3 * s.K * sizeof *e), *f = mem_alloc(3 * s.K * sizeof *f);
    b->ops->embed(b, e, &m, token, 3);
    ref->ops->embed(ref, f, &r, token, 3);
    ok(!memcmp(e, f, 3 * s.K * sizeof *e), "%s embed %zux%zu", b->ops->level, s.N, s.K);
    b->ops->mat_free(b, &m);
    ref->ops->mat_free(ref, &r);
    free(x), free(w), free(y), free(z), free(e), free(f);
}

/* Tests sums of squares in parts, also with more parts than values. */
static void squares_case(struct backend *b)
{
    double work[SQUARES_PARTS];
    for (size_t n = 0; n < 5000; n = 5 * n + 3) {
        float *x = draw(n + 1, 1);
        double sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += (double)x[i] * x[i];
        double got = train_ops_of(b->ops)->squares(b, x, n, work);
        ok(fabs(got - sum) <= 1e-12 * sum, "%s sum of %zu squares", b->ops->level, n);
        free(x);
    }
}

/* rmsnorm of rows by index, in place, and without a gain equals rmsnorm of single rows. */
static void rows_picked(struct backend *b, const float *x, const float *g, size_t T, size_t D)
{
    float *all = mem_alloc(T * D * sizeof *all), *y = mem_alloc(T * D * sizeof *y);
    int32_t *row = mem_alloc(T * sizeof *row);
    int same = 1, copied = 1;
    for (size_t t = 0; t < T; t++)
        row[t] = (int32_t)(t * 5 % 7);
    memcpy(all, x, T * D * sizeof *all);
    b->ops->rmsnorm(b, all, all, NULL, g, T, D, 1e-5);
    b->ops->rmsnorm(b, y, x, row, g, T, D, 1e-5);
    for (size_t t = 0; t < T; t++)
        same &= !memcmp(y + t * D, all + (size_t)row[t] * D, D * sizeof *y);
    ok(same, "%s %s rmsnorm of rows by their numbers", b->ops->name, b->ops->level);
    b->ops->rmsnorm(b, y, x, row, NULL, T, D, 1e-5);
    for (size_t t = 0; t < T; t++)
        copied &= !memcmp(y + t * D, x + (size_t)row[t] * D, D * sizeof *y);
    ok(copied, "%s %s without a gain rows are copied", b->ops->name, b->ops->level);
    free(all), free(y), free(row);
}

static void row_cases(struct backend *b, struct backend *ref)
{
    enum { T = 19, D = 70, H = 5, E = 14 };
    float *x = draw(T * D, 2), *g = draw(D, 1), *y = draw(T * D, 1), *z = draw(T * D, 1);
    b->ops->rmsnorm(b, y, x, NULL, g, T, D, 1e-5);
    ref->ops->rmsnorm(ref, z, x, NULL, g, T, D, 1e-5);
    ok(worst(y, z, T * D) < 1e-6, "%s rmsnorm", b->ops->level);
    rows_picked(b, x, g, T, D);
    rows_picked(ref, x, g, T, D);
    b->ops->swiglu(b, y, x, z, T * D);
    float *u = mem_alloc(T * D * sizeof *u);
    ref->ops->swiglu(ref, u, x, z, T * D);
    ok(worst(y, u, T * D) < 1e-6, "%s swiglu", b->ops->level);
    int32_t pos[T];
    float freq[E / 2], table[T * E], other[T * E];
    for (int j = 0; j < E / 2; j++)
        freq[j] = powf(500000.0f, -2.0f * (float)j / E);
    for (int t = 0; t < T; t++)
        pos[t] = t * 37;
    b->ops->rope_table(b, table, pos, freq, 1, T, E);
    ref->ops->rope_table(ref, other, pos, freq, 1, T, E);
    ok(worst(table, other, T * E) < 1e-6, "%s rope table", b->ops->level);
    memcpy(y, x, T * D * sizeof *y);
    memcpy(z, x, T * D * sizeof *z);
    b->ops->rope(b, y, other, T, H, E, 1);
    ref->ops->rope(ref, z, other, T, H, E, 1);
    ok(worst(y, z, T * D) < 1e-6, "%s rope", b->ops->level);
    b->ops->rope(b, y, other, T, H, E, -1);
    ok(worst(y, x, T * D) < 1e-6, "%s rope turned back", b->ops->level);
    b->ops->rope_table(b, table, pos, freq, 1.25f, T, E);
    for (int i = 0; i < T * E; i++)
        other[i] *= 1.25f;
    ok(worst(table, other, T * E) < 1e-6, "%s rope table with a scale", b->ops->level);
    free(x), free(g), free(y), free(z), free(u);
}

struct attn_case {
    size_t H, K, E, rows, slots;
    enum mask mask;
};
static const struct attn_case attn_cases[] = {{4, 4, 16, 9, 9, MASK_FULL},
                                              {6, 2, 24, 50, 77, MASK_CAUSAL},
                                              {2, 1, 64, 1, 130, MASK_CAUSAL},
                                              {3, 3, 10, 70, 70, MASK_FULL},
                                              {4, 2, 32, 40, 64, MASK_BLOCK_CAUSAL}};

static void attention_case(struct backend *b, struct backend *ref, struct attn_case c)
{
    size_t T = 2 * c.rows, S = 2 * c.slots, HE = c.H * c.E, KE = c.K * c.E;
    float *q = draw(T * HE, 1), *k = draw(S * KE, 1), *v = draw(S * KE, 1);
    float *y = draw(T * HE, 1), *z = draw(T * HE, 1);
    int32_t *pos = mem_alloc(T * sizeof *pos), *slots = mem_alloc(S * sizeof *slots);
    int32_t *slot_pos = mem_alloc(S * sizeof *slot_pos), rows = (int32_t)c.rows;
    int32_t n_slots = (int32_t)c.slots;
    for (size_t t = 0; t < T; t++)
        pos[t] = (int32_t)(c.slots - c.rows + t % c.rows);
    for (size_t s = 0; s < S; s++) { /* slots out of order */
        slots[s] = (int32_t)(S - 1 - s);
        slot_pos[s] = (int32_t)(s % c.slots);
    }
    struct attn_seq seqs[2] = {{0, rows, 0, n_slots}, {rows, rows, n_slots, n_slots}};
    struct attn a = {.q = q, .y = y, .kv = {k, v, DTYPE_F32}, .pos = pos, .seqs = seqs,
                     .slots = slots, .slot_pos = slot_pos, .n_seqs = 2, .T = T,
                     .max_rows = c.rows, .max_slots = c.slots, .heads = c.H, .kv_heads = c.K,
                     .head_dim = c.E, .mask = c.mask, .mask_block = 16};
    void *work = mem_aligned(b->ops->attention_work(b, T, 2, c.slots, c.H, c.K, c.E, 0));
    void *rwork = mem_aligned(ref->ops->attention_work(ref, T, 2, c.slots, c.H, c.K, c.E, 0));
    b->ops->attention(b, &a, work);
    a.y = z;
    ref->ops->attention(ref, &a, rwork);
    ok(worst(y, z, T * HE) < 3e-6, "%s attention H%zu K%zu E%zu rows %zu slots %zu mask %d",
       b->ops->level, c.H, c.K, c.E, c.rows, c.slots, (int)c.mask);
    free(q), free(k), free(v), free(y), free(z), free(pos), free(slots), free(slot_pos);
    free(work), free(rwork);
}

static void compare_rows(const struct backend *b, const struct head_row *x,
                         const struct head_row *y, size_t R, const char *what)
{
    double far = 0;
    int same = 1;
    for (size_t r = 0; r < R; r++) {
        same &= x[r].id == y[r].id && x[r].runner_up == y[r].runner_up && x[r].bad == y[r].bad;
        far = fmax(far, fabs((double)x[r].prob - y[r].prob));
        far = fmax(far, fabs(x[r].best_log_prob - y[r].best_log_prob));
        far = fmax(far, fabs((double)x[r].runner_up_prob - y[r].runner_up_prob));
        far = fmax(far, fabs((double)x[r].entropy - y[r].entropy));
        far = fmax(far, fabs(x[r].target_log_prob - y[r].target_log_prob));
        far = fmax(far, fabs((double)x[r].gap - y[r].gap));
    }
    ok(same && far < 2e-5, "%s head, %s (worst %g)", b->ops->level, what, far);
}

static void head_case(struct backend *b, struct backend *ref, size_t R, size_t V,
                      const struct head_query *q, int guided, const char *what)
{
    size_t D = 40;
    float *w = draw(V * D, 0.3), *x = draw(R * D, 1), *xu = guided ? draw(R * D, 1) : NULL;
    struct mat m, r;
    make(b, &m, w, V, D, DTYPE_F32);
    make(ref, &r, w, V, D, DTYPE_F32);
    void *bw = mem_aligned(b->ops->head_work(b, R, D, V, 0));
    void *rw = mem_aligned(ref->ops->head_work(ref, R, D, V, 0));
    float *l = mem_alloc(R * V * sizeof *l), *k = mem_alloc(R * V * sizeof *k);
    struct head_row *a = mem_zero(R, sizeof *a), *c = mem_zero(R, sizeof *c);
    b->ops->head(b, &m, x, xu, R, q, a, l, bw);
    ref->ops->head(ref, &r, x, xu, R, q, c, k, rw);
    compare_rows(b, a, c, R, what);
    b->ops->head(b, &m, x, xu, R, q, a, NULL, bw);
    compare_rows(b, a, c, R, what);
    b->ops->mat_free(b, &m);
    ref->ops->mat_free(ref, &r);
    free(w), free(x), free(xu), free(bw), free(rw), free(l), free(k), free(a), free(c);
}

static void head_cases(struct backend *b, struct backend *ref)
{
    int32_t target[70], ban[2] = {3, 1030}, quiet[2] = {5, 1};
    uint64_t keys[70];
    for (int i = 0; i < 70; i++) {
        target[i] = i * 31 % 1200;
        keys[i] = 1000 + (uint64_t)i;
    }
    struct head_query q = {.target = target};
    head_case(b, ref, 70, 2500, &q, 0, "greedy with targets");
    head_case(b, ref, 3, 1200, &q, 0, "few rows");
    q = (struct head_query){.cfg_scale = 1.5};
    head_case(b, ref, 20, 1300, &q, 1, "guided");
    q = (struct head_query){.ban = ban, .n_ban = 2, .quiet = quiet, .n_quiet = 2};
    head_case(b, ref, 20, 1300, &q, 0, "banned and quiet ids");
    q = (struct head_query){.temperature = 0.7, .seed = 9, .keys = keys};
    head_case(b, ref, 20, 1300, &q, 0, "Gumbel noise");
}

/* With equal logits the lowest id is chosen. A NaN, or a ban of all ids, is a bad answer. */
static void head_corners(struct backend *b)
{
    enum { V = 1500, D = 4 };
    float *w = mem_zero(V * D, sizeof *w), x[D] = {1, 1, 1, 1};
    struct mat m;
    struct head_row row;
    void *work = mem_aligned(b->ops->head_work(b, 1, D, V, 0));
    struct head_query q = {0};
    make(b, &m, w, V, D, DTYPE_F32);
    b->ops->head(b, &m, x, NULL, 1, &q, &row, NULL, work);
    ok(row.id == 0 && row.runner_up == 1 && !row.bad, "%s equal logits give the lowest id",
       b->ops->level);
    int32_t first = 0;
    q.ban = &first;
    q.n_ban = 1;
    b->ops->head(b, &m, x, NULL, 1, &q, &row, NULL, work);
    ok(row.id == 1 && !row.bad, "%s a banned id is passed over", b->ops->level);
    q.n_ban = 0;
    q.quiet = &first;
    q.n_quiet = 1;
    b->ops->head(b, &m, x, NULL, 1, &q, &row, NULL, work);
    ok(row.id == 0 && row.prob == 0, "%s a quiet id has probability 0", b->ops->level);
    b->ops->mat_free(b, &m);
    w[1400 * D] = NAN;
    make(b, &m, w, V, D, DTYPE_F32);
    b->ops->head(b, &m, x, NULL, 1, &q, &row, NULL, work);
    ok(row.bad, "%s a NaN logit is reported", b->ops->level);
    b->ops->mat_free(b, &m);
    free(w), free(work);
}

static void all_ops(const char *level, size_t threads)
{
    struct backend *b = open_level(level, threads), *ref = open_level("ref", 1);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        matmul_case(b, ref, shapes[i], DTYPE_F32);
        matmul_case(b, ref, shapes[i], DTYPE_BF16);
    }
    squares_case(b);
    row_cases(b, ref);
    for (size_t i = 0; i < sizeof attn_cases / sizeof *attn_cases; i++)
        attention_case(b, ref, attn_cases[i]);
    head_cases(b, ref);
    head_corners(b);
    ok(b->memory.allocated == 0 && b->memory.allocated_peak > 0, "%s gives all memory back", level);
    backend_close(b);
    backend_close(ref);
}

/* 1, 2 and 3 threads must give the same bits of a product. */
static void same_bits(const char *level)
{
    enum { T = 150, N = 200, K = 300 };
    float *x = draw(T * K, 1), *w = draw(N * K, 1), *y[3];
    for (size_t threads = 1; threads <= 3; threads++) {
        struct backend *b = open_level(level, threads);
        struct mat m;
        float *out = y[threads - 1] = mem_alloc(T * N * sizeof(float));
        make(b, &m, w, N, K, DTYPE_F32);
        multiply(b, out, x, &m, T, 0);
        float one[N];
        multiply(b, one, x + 77 * K, &m, 1, 0);
        ok(!memcmp(one, out + 77 * N, sizeof one), "%s a row alone and in a batch, %zu threads",
           level, threads);
        b->ops->mat_free(b, &m);
        backend_close(b);
    }
    ok(!memcmp(y[0], y[1], T * N * sizeof(float)) && !memcmp(y[0], y[2], T * N * sizeof(float)),
       "%s same bits at 1, 2 and 3 threads", level);
    free(x), free(w), free(y[0]), free(y[1]), free(y[2]);
}

/* Operations on values, not rows. Vectors leave single values only at the end, so the count is no
 * multiple of a vector, and large enough for 3 threads to share the values. */
static void same_values(const char *level)
{
    enum { T = 21, D = 953, N = T * D };
    const struct adamw how = {.rate = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8,
                              .decay = 0.1, .grad_scale = 0.7, .step = 3};
    float *in = draw(3 * N, 4), *one[3], *work = mem_alloc(2 * T * sizeof *work);
    const float *x = in, *g = in + N, *dy = in + 2 * N;
    for (size_t threads = 1; threads <= 3; threads++) {
        struct backend *b = open_level(level, threads);
        float *y = one[threads - 1] = mem_zero(7 * N + D, sizeof *y), *w = y + 3 * N;
        b->ops->swiglu(b, y, x, g, N);
        train_ops_of(b->ops)->swiglu_back(b, y + N, y + 2 * N, dy, x, g, N);
        memcpy(w, x, N * sizeof *w);
        train_ops_of(b->ops)->adamw(b, w, w + N, w + 2 * N, g, N, &how);
        train_ops_of(b->ops)->rmsnorm_back(b, y + 6 * N, y + 7 * N, dy, x, g, T, D, 1e-5, work);
        backend_close(b);
    }
    const size_t bytes = (7 * N + D) * sizeof **one;
    ok(!memcmp(one[0], one[1], bytes) && !memcmp(one[0], one[2], bytes),
       "%s gates, updates and norms back: same bits at 1, 2 and 3 threads", level);
    free(in), free(work), free(one[0]), free(one[1]), free(one[2]);
}

/* Sums with a fixed order have the bits of ref with any number of threads. Some tokens occur
 * often. */
static void same_sums(const char *level)
{
    enum { T = 700, V = 9, D = 201, N = T * D };
    float *x = draw(N, 1), *want = mem_alloc((N + V * D) * sizeof *want);
    float *got = mem_alloc((N + V * D) * sizeof *got);
    int32_t *token = mem_alloc(T * sizeof *token);
    for (int32_t t = 0; t < T; t++)
        token[t] = t % 3 ? 4 : t % V;
    struct backend *b = open_level("ref", 1);
    int same = 1;
    for (size_t threads = 0; threads <= 3; threads++) {
        float *y = threads ? got : want;
        memset(y, 0, (N + V * D) * sizeof *y);
        train_ops_of(b->ops)->add(b, y, x, N);
        train_ops_of(b->ops)->add(b, y, x, N - 1);
        train_ops_of(b->ops)->embed_back(b, y + N, x, token, T, V, D);
        same &= !threads || !memcmp(got, want, (N + V * D) * sizeof *got);
        backend_close(b);
        b = open_level(level, threads + 1);
    }
    ok(same && got[1] == 2 * x[1], "%s sums and gradients of embeddings: the bits of ref",
       level);
    backend_close(b);
    free(x), free(want), free(got), free(token);
}

static void count(void *ctx) { ++*(int *)ctx; }

/* Copies, order and time on a host, where every call is complete when it returns. */
static void host_cases(const char *level)
{
    struct backend *b = open_level(level, 1);
    const char text[] = "from the host and back";
    char *there = b->ops->alloc(b, sizeof text, MEMORY_KV), back[sizeof text];
    char *twin = b->ops->alloc(b, sizeof text, MEMORY_KV);
    char *mirror = b->ops->mirror(b, sizeof text);
    size_t available = 0, total = 0;
    int steps = 0;
    b->ops->write(b, there, text, sizeof text);
    b->ops->copy(b, twin, there, sizeof text);
    b->ops->read(b, back, twin, sizeof text);
    b->ops->fetch(b, mirror, there, sizeof text);
    ok(!strcmp(back, text) && !strcmp(mirror, text), "%s write, copy, read, fetch", b->ops->name);
    b->ops->run(b, "key", 3, count, &steps);
    b->ops->run(b, "key", 3, count, &steps);
    int64_t first = b->ops->event_record(b), second = b->ops->event_record(b);
    first = b->ops->event_wait(b, first);
    second = b->ops->event_wait(b, second);
    ok(steps == 2 && b->ops->depth == 1 && first > 0 && second >= first && second <= clock_ns(),
       "%s runs every step, and events follow each other", b->ops->name);
    b->ops->room(b, &available, &total);
    ok(available > 0 && available <= total, "%s has room", b->ops->name);
    b->ops->mirror_free(b, mirror);
    b->ops->free(b, there);
    b->ops->free(b, twin);
    b->ops->free(b, NULL);
    backend_close(b);
}

static void dtype_cases(const struct ops *ops)
{
    int floats = 1;
    for (int d = DTYPE_F32; d < DTYPES; d++)
        floats &= ops->act_dtype((enum dtype)d) == DTYPE_F32;
    ok(floats, "%s activations are floats", ops->name);
    ok(ops->refuses(NULL, DTYPE_NF4, 100) && !ops->refuses(NULL, DTYPE_NF4, 192) &&
           !ops->refuses(NULL, DTYPE_BF16, 3) && !ops->refuses(NULL, DTYPE_F32, 1),
       "%s refuses what a format cannot hold", ops->name);
}

int main(void)
{
    size_t ran = 0;
    for (const struct ops *ops; (ops = ops_cpu_at(ran)); ran++) {
        all_ops(ops->level, 2);
        same_bits(ops->level);
        same_values(ops->level);
        same_sums(ops->level);
        host_cases(ops->level);
        dtype_cases(ops);
        ok(ops->refuses(NULL, DTYPE_FP8, 64) && strstr(ops->refuses(NULL, DTYPE_FP8, 64), "int8"),
           "%s has no fp8, and says what to use", ops->level);
    }
    host_cases("ref");
    dtype_cases(&ops_ref);
    ok(ran > 0 && !ops_cpu("nonsense"), "at least one level runs, an unknown one does not");
    struct backend capped = {.ops = &ops_ref, .memory = {.cap = 8192}};
    void *p = capped.ops->alloc(&capped, 4096, MEMORY_KV);
    ok(p && !capped.ops->alloc(&capped, 8192, MEMORY_KV), "the memory cap is an ordinary answer");
    capped.ops->free(&capped, p);
    return tap_done();
}
