/* test-wkv.c - tests time mixing of RWKV 6 and 7: the reference against sums written out by
 * transitions, its gradients against finite differences, and every level and form against the
 * reference. */
#include "kernels/mixing.h"
#include "kernels/train.h"
#include "kernels/wkv.h"
#include "lib/base/rng.h"
#include "tests/kernels/levels.h"
#include "tests/tap.h"

enum { MOST = 80, WIDE = 3 * 64, SEQS = 4, STATES = SEQS * 3 * 64 * 64 };

static struct rng rng = {.seed = 11};

/* rows: the lengths of the sequences. decay: the strength of decay, w = -decay * (0..1). */
struct shape {
    size_t heads, E, n_seqs;
    int32_t rows[SEQS];
    double decay;
};
static const struct shape shapes[] = {
    {3, 64, 3, {16, 33, 1}, 0.6}, {1, 64, 1, {64}, 0.05}, {2, 6, 3, {7, 40, 0}, 2},
    {2, 64, 2, {40, 17}, 20},     {1, 34, 2, {18, 2}, 5}, {3, 16, 4, {1, 1, 50, 3}, 0.3},
    {1, 1, 1, {19}, 1}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* All inputs and outputs of both directions. Indices of x and d: r w k v a b. */
enum { R, W, K, V, A, B, INPUTS };
struct data {
    struct shape s;
    int kind; /* 6 or 7: the RWKV version */
    size_t T, H, E;
    struct attn_seq seqs[SEQS];
    float x[INPUTS][MOST * WIDE], u[WIDE], state[STATES];
    float y[MOST * WIDE], after[STATES];
    float dy[MOST * WIDE], dstate[STATES]; /* the loss is the sum of outputs with these weights */
    float d[INPUTS][MOST * WIDE], du[WIDE], dfirst[STATES];
};

static void fill(float *x, size_t n, double scale)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(scale * rng_normal(&rng));
}

/* Draws a = -kappa, a unit vector of each head; b = kappa * (0..1). */
static void fill_removal(struct data *d)
{
    for (size_t at = 0; at < d->T * d->H; at++) {
        float *a = d->x[A] + at * d->E, *b = d->x[B] + at * d->E;
        double sum = 0;
        for (size_t i = 0; i < d->E; i++)
            sum += (double)a[i] * a[i];
        for (size_t i = 0; i < d->E; i++) {
            a[i] = (float)(-a[i] / sqrt(sum));
            b[i] = (float)(-a[i] * rng_uniform(&rng));
        }
    }
}

static struct data *make(const struct shape *s, int kind)
{
    struct data *d = mem_zero(1, sizeof *d);
    d->s = *s, d->kind = kind, d->H = s->heads, d->E = s->E;
    for (size_t i = 0; i < s->n_seqs; i++) {
        d->seqs[i] = (struct attn_seq){(int32_t)d->T, s->rows[i], 0, 0};
        d->T += (size_t)s->rows[i];
    }
    size_t n = d->T * d->H * d->E;
    for (int i = 0; i < INPUTS; i++)
        fill(d->x[i], n, 1);
    for (size_t i = 0; i < n; i++)
        d->x[W][i] = (float)(-s->decay * rng_uniform(&rng));
    fill_removal(d);
    fill(d->u, d->H * d->E, 1);
    fill(d->state, s->n_seqs * d->H * d->E * d->E, 0.3);
    fill(d->dstate, s->n_seqs * d->H * d->E * d->E, 0.3);
    fill(d->dy, n, 1);
    return d;
}

static struct wkv_rows rows_of(const struct data *d)
{
    int seven = d->kind == 7;
    size_t most = 0;
    for (size_t i = 0; i < d->s.n_seqs; i++)
        most = (size_t)d->s.rows[i] > most ? (size_t)d->s.rows[i] : most;
    return (struct wkv_rows){.r = d->x[R], .w = d->x[W], .k = d->x[K], .v = d->x[V],
                             .a = seven ? d->x[A] : NULL, .b = seven ? d->x[B] : NULL,
                             .u = seven ? NULL : d->u, .seqs = d->seqs, .n_seqs = d->s.n_seqs,
                             .T = d->T, .max_rows = most, .heads = d->H, .head_dim = d->E};
}

static size_t states_of(const struct data *d)
{
    return d->s.n_seqs * d->H * d->E * d->E;
}

/* Computes y and after from state. */
static void forward(struct backend *b, struct data *d, enum wkv_form form)
{
    struct wkv a = {.in = rows_of(d), .state = d->after, .y = d->y, .form = form};
    void *work = mem_aligned(b->ops->mixing->wkv_work(b, d->s.n_seqs, a.in.max_rows, d->H, d->E));
    memcpy(d->after, d->state, states_of(d) * sizeof(float));
    b->ops->mixing->wkv(b, &a, work);
    free(work);
}

static void backward(struct backend *b, struct data *d, int states)
{
    struct wkv_back a = {.in = rows_of(d), .state = states ? d->state : NULL, .dy = d->dy,
                         .dstate = states ? d->dfirst : NULL, .dr = d->d[R], .dw = d->d[W],
                         .dk = d->d[K], .dv = d->d[V], .da = d->d[A], .db = d->d[B], .du = d->du};
    const struct train_ops *ops = train_ops_of(b->ops);
    void *work = mem_aligned(ops->wkv_back_work(b, d->s.n_seqs, a.in.max_rows, d->H, d->E));
    memset(d->du, 0, sizeof d->du);
    memcpy(d->dfirst, d->dstate, states_of(d) * sizeof(float));
    ops->wkv_back(b, &a, work);
    free(work);
}

/* ---- the definition, in double ---- */

/* y and the last state of head h of a sequence, by the recurrence, or by sums. The sums write out
 * what every token reads of every earlier token q: the state that q leaves, carried through the
 * transitions diag(e^w) + b a^T of the tokens between. */
struct truth {
    double y[MOST][64], S[64][64];
};

static double value(const struct data *d, int what, size_t t, size_t h, size_t i)
{
    return d->x[what][(t * d->H + h) * d->E + i];
}

static void transit(const struct data *d, size_t t, size_t h, double S[64][64])
{
    for (size_t j = 0; j < d->E; j++) {
        double x = 0;
        for (size_t i = 0; i < d->E && d->kind == 7; i++)
            x += value(d, A, t, h, i) * S[i][j];
        for (size_t i = 0; i < d->E; i++)
            S[i][j] = exp(value(d, W, t, h, i)) * S[i][j] +
                      (d->kind == 7 ? value(d, B, t, h, i) * x : 0);
    }
}

static void add_read(const struct data *d, size_t t, size_t h, double S[64][64], double *y)
{
    for (size_t i = 0; i < d->E; i++)
        for (size_t j = 0; j < d->E; j++)
            y[j] += value(d, R, t, h, i) * S[i][j];
}

static void add_token(const struct data *d, size_t t, size_t h, double S[64][64])
{
    for (size_t i = 0; i < d->E; i++)
        for (size_t j = 0; j < d->E; j++)
            S[i][j] += value(d, K, t, h, i) * value(d, V, t, h, j);
}

static void add_bonus(const struct data *d, size_t t, size_t h, double *y)
{
    for (size_t i = 0; i < d->E && d->kind == 6; i++)
        for (size_t j = 0; j < d->E; j++)
            y[j] += value(d, R, t, h, i) * (double)d->u[h * d->E + i] * value(d, K, t, h, i) *
                    value(d, V, t, h, j);
}

static void first_state(const struct data *d, size_t seq, size_t h, double S[64][64])
{
    for (size_t i = 0; i < d->E; i++)
        for (size_t j = 0; j < d->E; j++)
            S[i][j] = d->state[((seq * d->H + h) * d->E + i) * d->E + j];
}

static void by_recurrence(const struct data *d, size_t seq, size_t h, struct truth *o)
{
    memset(o, 0, sizeof *o);
    first_state(d, seq, h, o->S);
    for (size_t t = 0; t < (size_t)d->s.rows[seq]; t++) {
        size_t row = (size_t)d->seqs[seq].row_begin + t;
        if (d->kind == 6)
            add_read(d, row, h, o->S, o->y[t]);
        add_bonus(d, row, h, o->y[t]);
        transit(d, row, h, o->S);
        add_token(d, row, h, o->S);
        if (d->kind == 7)
            add_read(d, row, h, o->S, o->y[t]);
    }
}

/* Computes the sums. q = -1 stands for the state before the first token. */
static void by_sums(const struct data *d, size_t seq, size_t h, struct truth *o)
{
    memset(o, 0, sizeof *o);
    int rows = d->s.rows[seq];
    for (int q = -1; q < rows; q++) {
        double S[64][64] = {{0}};
        size_t first = (size_t)d->seqs[seq].row_begin;
        if (q < 0)
            first_state(d, seq, h, S);
        for (int t = q < 0 ? 0 : q; t < rows; t++) {
            size_t row = first + (size_t)t;
            if (d->kind == 6 && t > q)
                add_read(d, row, h, S, o->y[t]);
            if (t == q)
                add_bonus(d, row, h, o->y[t]), add_token(d, row, h, S);
            else
                transit(d, row, h, S);
            if (d->kind == 7)
                add_read(d, row, h, S, o->y[t]);
        }
        for (size_t i = 0; i < d->E; i++)
            for (size_t j = 0; j < d->E; j++)
                o->S[i][j] += S[i][j];
    }
}

/* The sum of all y and last states, weighted by dy and dstate. */
static double loss(const struct data *d)
{
    double sum = 0;
    struct truth *o = mem_alloc(sizeof *o);
    for (size_t s = 0; s < d->s.n_seqs; s++)
        for (size_t h = 0; h < d->H; h++) {
            by_recurrence(d, s, h, o);
            for (size_t t = 0; t < (size_t)d->s.rows[s]; t++)
                for (size_t j = 0; j < d->E; j++)
                    sum += o->y[t][j] *
                           d->dy[(((size_t)d->seqs[s].row_begin + t) * d->H + h) * d->E + j];
            for (size_t i = 0; i < d->E; i++)
                for (size_t j = 0; j < d->E; j++)
                    sum += o->S[i][j] * d->dstate[((s * d->H + h) * d->E + i) * d->E + j];
        }
    free(o);
    return sum;
}

/* ---- the reference ---- */

static double apart(const struct truth *x, const struct truth *y, size_t rows, size_t E)
{
    double top = 0, size = 1e-300;
    for (size_t i = 0; i < rows + E; i++)
        for (size_t j = 0; j < E; j++) {
            double p = i < rows ? x->y[i][j] : x->S[i - rows][j];
            double q = i < rows ? y->y[i][j] : y->S[i - rows][j];
            top = isnan(p - q) ? (double)INFINITY : fmax(top, fabs(p - q));
            size = fmax(size, fabs(q));
        }
    return top / size;
}

static void test_definition(struct backend *ref, const struct shape *s, int kind)
{
    struct data *d = make(s, kind);
    struct truth *x = mem_alloc(2 * sizeof *x), *y = x + 1;
    double sums = 0, far = 0;
    forward(ref, d, WKV_AUTO);
    for (size_t q = 0; q < s->n_seqs; q++)
        for (size_t h = 0; h < d->H; h++) {
            size_t rows = (size_t)s->rows[q];
            by_recurrence(d, q, h, x);
            by_sums(d, q, h, y);
            sums = fmax(sums, apart(x, y, rows, d->E));
            memset(y, 0, sizeof *y);
            for (size_t t = 0; t < rows; t++)
                for (size_t j = 0; j < d->E; j++)
                    y->y[t][j] =
                        d->y[(((size_t)d->seqs[q].row_begin + t) * d->H + h) * d->E + j];
            for (size_t i = 0; i < d->E; i++)
                for (size_t j = 0; j < d->E; j++)
                    y->S[i][j] = d->after[((q * d->H + h) * d->E + i) * d->E + j];
            far = fmax(far, apart(x, y, rows, d->E));
        }
    ok(sums < 1e-13, "RWKV %d, %zu x %zu: recurrence and sums over transitions agree (%.1e)", kind,
       d->H, d->E, sums);
    ok(far < 1e-7, "RWKV %d, %zu x %zu: ref is the definition (%.1e)", kind, d->H, d->E, far);
    free(x), free(d);
}

/* The slope of the exact loss, by a central difference of fourth order. */
static double slope(const struct data *d, float *x)
{
    const float was = *x;
    const double step = 0x1p-9;
    double at[4];
    for (int i = 0; i < 4; i++) {
        volatile float moved = (float)(was + (i - 1.5 + (i > 1 ? 0.5 : -0.5)) * step);
        *x = moved;
        at[i] = loss(d);
    }
    *x = was;
    return (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * step);
}

static double slopes(struct data *d, float *x, const float *grad, size_t n)
{
    double top = 0, size = 1e-30;
    for (size_t i = 0; i < n; i++)
        size = fmax(size, fabs((double)grad[i]));
    for (size_t i = 0; i < n; i += 1 + n / 40) {
        double was = slope(d, x + i);
        top = fmax(top, fabs(was - grad[i]));
    }
    return top / size;
}

static void test_slopes(struct backend *ref, int kind)
{
    static const struct shape s = {2, 6, 2, {9, 4}, 1.5};
    static const char *const names[] = {"r", "w", "k", "v", "a", "b"};
    struct data *d = make(&s, kind);
    for (int i = 0; i < INPUTS; i++) /* multiples of a step, so that adding a step is exact */
        for (size_t j = 0; j < d->T * WIDE; j++)
            d->x[i][j] = (float)(rint(d->x[i][j] * 0x1p12) * 0x1p-12);
    for (size_t j = 0; j < WIDE; j++)
        d->u[j] = (float)(rint(d->u[j] * 0x1p12) * 0x1p-12);
    for (size_t j = 0; j < states_of(d); j++)
        d->state[j] = (float)(rint(d->state[j] * 0x1p12) * 0x1p-12);
    backward(ref, d, 1);
    for (int i = 0; i < (kind == 7 ? INPUTS : A); i++) {
        double far = slopes(d, d->x[i], d->d[i], d->T * d->H * d->E);
        ok(far < 1e-6, "RWKV %d: gradient of %s is the slope (%.1e)", kind, names[i], far);
    }
    double far = kind == 6 ? slopes(d, d->u, d->du, d->H * d->E) : 0;
    far = fmax(far, slopes(d, d->state, d->dfirst, states_of(d)));
    ok(far < 1e-6, "RWKV %d: gradient of the state%s is the slope (%.1e)", kind,
       kind == 6 ? " and of u" : "", far);
    free(d);
}

/* ---- levels ---- */

static const char *const forms[] = {"auto", "recurrent", "chunked"};

static void test_forward(struct backend *b, const struct data *want, enum wkv_form form)
{
    struct data *d = mem_alloc(sizeof *d);
    memcpy(d, want, sizeof *d);
    memset(d->y, 0xff, sizeof d->y);
    forward(b, d, form);
    size_t n = d->T * d->H * d->E;
    double far = fmax(worst(d->y, want->y, n), worst(d->after, want->after, states_of(d)));
    ok(far < 2e-6, "%s RWKV %d %s, %zu x %zu, decay %g (%.1e)", b->ops->level, d->kind,
       forms[form], d->H, d->E, d->s.decay, far);
    free(d);
}

/* Computes the first rows of each sequence in one call and the others in another, with the state
 * carried over. */
static void test_carry(struct backend *b, const struct data *want)
{
    struct data *d = mem_alloc(sizeof *d);
    memcpy(d, want, sizeof *d);
    memset(d->y, 0xff, sizeof d->y);
    for (size_t i = 0; i < d->s.n_seqs; i++)
        d->seqs[i].rows = d->s.rows[i] / 3;
    forward(b, d, WKV_CHUNKED);
    memcpy(d->state, d->after, sizeof d->state);
    for (size_t i = 0; i < d->s.n_seqs; i++) {
        d->seqs[i].row_begin += d->s.rows[i] / 3;
        d->seqs[i].rows = d->s.rows[i] - d->s.rows[i] / 3;
    }
    forward(b, d, WKV_AUTO);
    double far = fmax(worst(d->y, want->y, d->T * d->H * d->E),
                      worst(d->after, want->after, states_of(d)));
    ok(far < 2e-6, "%s RWKV %d: two parts are the whole (%.1e)", b->ops->level, d->kind, far);
    free(d);
}

static void test_backward(struct backend *b, const struct data *want, int states)
{
    struct data *d = mem_alloc(sizeof *d);
    memcpy(d, want, sizeof *d);
    for (int i = 0; i < INPUTS; i++)
        memset(d->d[i], 0xff, sizeof d->d[i]);
    backward(b, d, states);
    size_t n = d->T * d->H * d->E;
    double far = 0, size = 0;
    for (int i = 0; i < (d->kind == 7 ? INPUTS : A); i++)
        if (i != W)
            far = fmax(far, worst(d->d[i], want->d[i], n));
    for (size_t i = 0; i < n; i++) { /* the gradient of w is a sum of differences of these */
        size = fmax(size, fabs((double)want->d[R][i] * d->x[R][i]));
        size = fmax(size, fabs((double)want->d[K][i] * d->x[K][i]));
    }
    double w = 0;
    for (size_t i = 0; i < n; i++) {
        double far_w = fabs((double)d->d[W][i] - want->d[W][i]) / size;
        w = isnan(far_w) ? (double)INFINITY : fmax(w, far_w);
    }
    far = fmax(far, d->kind == 6 ? worst(d->du, want->du, d->H * d->E) : 0);
    far = fmax(far, states ? worst(d->dfirst, want->dfirst, states_of(d)) : 0);
    ok(far < 5e-6 && w < 5e-6, "%s RWKV %d gradients%s, %zu x %zu, decay %g (%.1e, w %.1e)",
       b->ops->level, d->kind, states ? "" : " from no state", d->H, d->E, d->s.decay, far, w);
    free(d);
}

/* Several threads give the same bits as one thread, in both directions. */
static void test_threads(const struct ops *ops, const struct shape *s, int kind)
{
    struct data *one = make(s, kind), *d = mem_alloc(sizeof *d);
    memcpy(d, one, sizeof *d);
    for (size_t threads = 1; threads <= 3; threads++) {
        struct backend *b = levels_open(ops, threads);
        struct data *to = threads == 1 ? one : d;
        forward(b, to, WKV_AUTO);
        backward(b, to, 1);
        if (threads > 1)
            ok(!memcmp(one, d, sizeof *d), "%s RWKV %d: the same bits at %zu threads", ops->level,
               kind, threads);
        pool_free(b->pool);
        free(b);
    }
    free(one), free(d);
}

static void test_shape(struct backend *ref, const struct shape *s, int kind)
{
    struct data *want = make(s, kind), *bare = mem_alloc(sizeof *bare);
    forward(ref, want, WKV_AUTO);
    backward(ref, want, 1);
    memcpy(bare, want, sizeof *bare);
    backward(ref, bare, 0);
    const struct ops *ops;
    for (size_t i = 0; (ops = ops_cpu_at(i)); i++) {
        struct backend *b = levels_open(ops, 2);
        for (int form = WKV_AUTO; form <= WKV_CHUNKED; form++)
            test_forward(b, want, (enum wkv_form)form);
        test_carry(b, want);
        test_backward(b, want, 1);
        test_backward(b, bare, 0);
        pool_free(b->pool);
        free(b);
    }
    free(want), free(bare);
}

int main(void)
{
    struct backend *ref = levels_open(&ops_ref, 1);
    for (int kind = 6; kind <= 7; kind++) {
        for (size_t i = 0; i < SHAPES; i++)
            test_definition(ref, &shapes[i], kind);
        test_slopes(ref, kind);
        for (size_t i = 0; i < SHAPES; i++)
            test_shape(ref, &shapes[i], kind);
        const struct ops *ops;
        for (size_t i = 0; (ops = ops_cpu_at(i)); i++)
            test_threads(ops, &shapes[0], kind);
    }
    pool_free(ref->pool);
    free(ref);
    return tap_done();
}
