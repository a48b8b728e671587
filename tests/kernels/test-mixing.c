/* test-mixing.c - tests the operations around time mixing: every level against the reference, in
 * place and not; states listed by index; rows in two calls as in one; gradients against finite
 * differences of the reference. */
#include "kernels/mixing.h"
#include "kernels/train.h"
#include "lib/base/rng.h"
#include "tests/kernels/levels.h"
#include "tests/tap.h"

enum { MOST = 40 * 150, SEQS = 3 };
static struct rng rng = {.seed = 21};

/* H heads of E values. D equals H * E here. */
struct shape {
    size_t H, E;
    int32_t rows[SEQS];
};
static const struct shape shapes[] = {{2, 64, {7, 1, 13}}, {3, 6, {1, 0, 2}}, {5, 30, {17, 3, 20}},
                                      {1, 2, {1, 1, 1}}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

enum { ARRAYS = 8 };
struct data {
    size_t T, D, H, E;
    struct attn_seq seqs[SEQS];
    float x[ARRAYS][MOST], more[MIXING_LANES][MOST], to[MIXING_LANES][MOST];
    float vector[MIXING_LANES][150], last[(SEQS + 2) * 150];
};
static const int32_t at[SEQS] = {4, 0, 2};

static void fill(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)rng_normal(&rng);
}

static struct data *make(const struct shape *s)
{
    struct data *d = mem_zero(1, sizeof *d);
    d->H = s->H, d->E = s->E, d->D = s->H * s->E;
    for (int i = 0; i < SEQS; i++) {
        d->seqs[i] = (struct attn_seq){(int32_t)d->T, s->rows[i], 0, 0};
        d->T += (size_t)s->rows[i];
    }
    fill(d->x[0], sizeof d->x / sizeof(float));
    fill(d->more[0], sizeof d->more / sizeof(float));
    fill(d->vector[0], sizeof d->vector / sizeof(float));
    fill(d->last, sizeof d->last / sizeof(float));
    return d;
}

static struct data *copy(const struct data *d)
{
    struct data *c = mem_alloc(sizeof *c);
    memcpy(c, d, sizeof *c);
    return c;
}

/* The largest difference of all arrays, relative to the largest value of b. */
static double apart(const struct data *a, const struct data *b)
{
    const float *x = a->x[0], *y = b->x[0];
    size_t n = (size_t)((const float *)(a + 1) - x);
    double far = 0, size = 1;
    for (size_t i = 0; i < n; i++) {
        double off = fabs((double)x[i] - y[i]);
        far = isnan(off) ? (double)INFINITY : fmax(far, off);
        size = fmax(size, fabs((double)y[i]));
    }
    return far / size;
}

/* ---- forward ---- */

static struct shift shift_of(struct data *d, size_t n, int dynamic, int states)
{
    struct shift s = {.x = d->x[0], .n = n, .last = states ? d->last : NULL, .at = at, .keep = 1,
                      .seqs = d->seqs, .n_seqs = SEQS, .T = d->T, .D = d->D};
    for (size_t i = 0; i < n; i++) {
        s.share[i] = d->vector[i];
        s.more[i] = dynamic ? d->more[i] : NULL;
        s.to[i] = dynamic == 2 ? d->more[i] : d->to[i];
    }
    return s;
}

static struct squash squash_of(struct data *d, enum squash_by by, int base)
{
    return (struct squash){d->x[0], base ? d->vector[0] : NULL, d->T, d->D, by};
}

static struct removal removal_of(struct data *d, int in_place, int first)
{
    return (struct removal){.k = d->x[0], .v = d->x[1], .rate = d->x[2],
                            .first = first ? d->x[3] : NULL, .share = d->x[4],
                            .scale = d->vector[0], .key_rate = d->vector[1],
                            .to_k = in_place ? d->x[0] : d->to[0],
                            .to_v = in_place ? d->x[1] : d->to[1], .a = d->to[2],
                            .b = in_place ? d->x[2] : d->to[3], .T = d->T, .heads = d->H,
                            .head_dim = d->E};
}

static struct heads_out heads_of(struct data *d, int in_place, int bonus)
{
    return (struct heads_out){.o = d->x[0], .gain = d->vector[0], .bias = d->vector[1],
                              .gate = d->x[1], .r = d->x[2], .k = d->x[3], .v = d->x[4],
                              .weight = bonus ? d->vector[2] : NULL,
                              .y = in_place ? d->x[0] : d->to[0], .T = d->T, .heads = d->H,
                              .head_dim = d->E};
}

enum { WAYS = 14 };

static const char *const way_names[WAYS] = {
    "shift", "shift by data", "shift by data, in place", "shift with states", "tanh", "logistic",
    "decay of 6", "decay of 7", "removal", "removal, in place", "removal in the first layer",
    "heads of 6", "heads of 7", "heads in place"};

static void run(struct backend *b, struct data *d, int way)
{
    const struct ops *ops = b->ops;
    struct shift s = shift_of(d, way ? 5 : 6, way < 3 ? way : 0, way == 3);
    struct removal r = removal_of(d, way == 9, way != 10);
    struct heads_out h = heads_of(d, way == 13, way != 11);
    struct squash q = squash_of(d, (enum squash_by)(way - 4), way != 4);
    if (way < 4)
        ops->mixing->shift(b, &s);
    else if (way < 8)
        ops->mixing->squash(b, &q);
    else if (way < 11)
        ops->mixing->removal(b, &r);
    else
        ops->mixing->heads_out(b, &h);
}

static void forward(struct backend *ref, struct backend *cpu, const struct shape *s)
{
    for (int way = 0; way < WAYS; way++) {
        struct data *a = make(s), *b = copy(a);
        run(ref, a, way);
        run(cpu, b, way);
        double far = apart(b, a);
        ok(far < 2e-6, "%s %s, %zu x %zu (%.1e)", cpu->ops->level, way_names[way], s->H, s->E,
           far);
        free(a);
        free(b);
    }
}

/* Compares the reference with its definition, one value of each formula; and rows one by one with
 * all rows at once. */
static void definition(struct backend *ref)
{
    struct data *d = make(&shapes[0]), *parts = copy(d);
    struct shift s = shift_of(d, 5, 1, 1), one = shift_of(parts, 5, 1, 1);
    const size_t i = 3 * d->D + 9;
    double x = d->x[0][i], old = d->x[0][i - d->D], first = d->last[4 * d->D + 9];
    double m = (double)d->vector[2][9] + d->more[2][i];
    ref->ops->mixing->shift(ref, &s);
    ok(fabs(d->to[2][i] - (x + (old - x) * m)) < 1e-6 * fabs(m) + 1e-6 &&
           fabs(d->to[0][9] - (d->x[0][9] + (first - d->x[0][9]) *
                               (d->vector[0][9] + (double)d->more[0][9]))) < 1e-5,
       "a row and the one before it");
    ok(!memcmp(d->last + 4 * d->D, d->x[0] + 6 * d->D, d->D * sizeof(float)),
       "the last row is kept, under the number of the state");
    struct attn_seq half[SEQS];
    one.seqs = half;
    for (int part = 0; part < 2; part++) {
        for (int k = 0; k < SEQS; k++) {
            int32_t n = d->seqs[k].rows / 2;
            half[k] = (struct attn_seq){d->seqs[k].row_begin + (part ? n : 0),
                                        part ? d->seqs[k].rows - n : n, 0, 0};
        }
        ref->ops->mixing->shift(ref, &one);
    }
    ok(apart(parts, d) == 0, "a shift in two parts equals one in one part");
    free(parts);
    free(d);
}

/* ---- gradients ---- */

/* Compares d loss / d x at one value with the difference quotient; loss = sum of weight * out. */
struct slope {
    struct backend *ref;
    struct data *d;
    int way;
    const struct data *weight;
};

static double loss_of(const struct slope *s)
{
    struct data *d = copy(s->d);
    memset(d->to, 0, sizeof d->to);
    run(s->ref, d, s->way);
    double sum = 0;
    const float *y = d->to[0], *w = s->weight->to[0];
    for (size_t i = 0; i < sizeof d->to / sizeof *y; i++)
        sum += (double)y[i] * w[i];
    for (size_t i = 0; s->way >= 4 && s->way < 8 && i < d->T * d->D; i++)
        sum += (double)d->x[0][i] * w[i];
    free(d);
    return sum;
}

static void check(const struct slope *s, float *x, const float *g, size_t n, const char *level,
                  const char *what)
{
    double norm = 0, f[2], h = 2e-3;
    float *old = mem_alloc(n * sizeof *old);
    memcpy(old, x, n * sizeof *old);
    for (size_t i = 0; i < n; i++)
        norm += (double)g[i] * g[i];
    norm = sqrt(norm);
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < n; i++)
            x[i] = old[i] + (float)((side ? -h : h) * (double)g[i] / norm);
        f[side] = loss_of(s);
    }
    memcpy(x, old, n * sizeof *old);
    double slope = (f[0] - f[1]) / (2 * h);
    ok(norm > 0 && fabs(slope - norm) < 3e-3 * norm, "%s %s, gradient of %s: %.6g, difference %.6g",
       level, way_names[s->way], what, norm, slope);
    free(old);
}

static void shift_gradients(struct backend *b, struct backend *ref, int way)
{
    struct data *d = make(&shapes[2]), *w = make(&shapes[2]), *g = mem_zero(1, sizeof *g);
    const struct slope s = {ref, d, way, w};
    fill(w->to[0], sizeof w->to / sizeof(float));
    const struct shift of = shift_of(d, way ? 5 : 6, way, 0);
    struct shift_back a = {.of = &of, .dx = g->x[0]};
    for (size_t i = 0; i < of.n; i++) {
        memcpy(g->to[i], w->to[i], sizeof g->to[i]);
        a.d[i] = g->to[i];
        a.dshare[i] = g->vector[i];
    }
    train_ops_of(b->ops)->shift_back(b, &a);
    check(&s, d->x[0], g->x[0], d->T * d->D, b->ops->level, "rows");
    check(&s, d->vector[of.n - 1], g->vector[of.n - 1], d->D, b->ops->level, "shares");
    if (way)
        check(&s, d->more[1], g->to[1], d->T * d->D, b->ops->level, "additions to the shares");
    free(d);
    free(w);
    free(g);
}

static void squash_gradients(struct backend *b, struct backend *ref, int way)
{
    struct data *d = make(&shapes[2]), *w = make(&shapes[2]), *g = mem_zero(1, sizeof *g);
    const struct slope s = {ref, d, way, w};
    memset(w->to, 0, sizeof w->to);
    fill(w->to[0], d->T * d->D);
    struct data *y = copy(d);
    run(ref, y, way);
    memcpy(g->x[0], w->to[0], sizeof g->x[0]);
    const struct squash_back a = {g->x[0], y->x[0], way == 4 ? NULL : g->vector[0], d->T, d->D,
                                  (enum squash_by)(way - 4)};
    train_ops_of(b->ops)->squash_back(b, &a);
    check(&s, d->x[0], g->x[0], d->T * d->D, b->ops->level, "values");
    if (way != 4)
        check(&s, d->vector[0], g->vector[0], d->D, b->ops->level, "the base");
    free(d);
    free(w);
    free(g);
    free(y);
}

static void heads_gradients(struct backend *b, struct backend *ref, int way)
{
    struct data *d = make(&shapes[2]), *w = make(&shapes[2]), *g = mem_zero(1, sizeof *g);
    const struct slope s = {ref, d, way, w};
    memset(w->to, 0, sizeof w->to);
    fill(w->to[0], d->T * d->D);
    const struct heads_out of = heads_of(d, 0, way != 11);
    const struct heads_out_back a = {&of, w->to[0], g->x[0], g->x[1], g->vector[0], g->vector[1]};
    memcpy(g->to[0], w->to[0], sizeof g->to[0]);
    train_ops_of(b->ops)->heads_out_back(b, &a);
    memcpy(w->to[0], g->to[0], sizeof g->to[0]);
    check(&s, d->x[0], g->x[0], d->T * d->D, b->ops->level, "values");
    check(&s, d->x[1], g->x[1], d->T * d->D, b->ops->level, "the gate");
    check(&s, d->vector[0], g->vector[0], d->D, b->ops->level, "gains");
    check(&s, d->vector[1], g->vector[1], d->D, b->ops->level, "biases");
    free(d);
    free(w);
    free(g);
}

/* Tests the gradients of to_k, to_v, a and b. The bonus has no effect here, because the gradients
 * dn are zeros. */
static void removal_gradients(struct backend *b, struct backend *ref, int way)
{
    struct data *d = make(&shapes[2]), *w = make(&shapes[2]), *g = mem_zero(1, sizeof *g);
    struct data *y = copy(d);
    const struct slope s = {ref, d, way, w};
    memset(w->to, 0, sizeof w->to);
    fill(w->to[0], 4 * MOST);
    run(ref, y, way);
    const struct removal of = removal_of(d, 0, way == 8);
    memcpy(g->x[0], w->to[0], sizeof g->x[0]);
    memcpy(g->x[1], w->to[1], sizeof g->x[1]);
    const struct removal_back a = {.of = &of, .r = d->x[5], .k = y->to[0], .v = y->to[1],
                                   .weight = d->vector[2], .dn = g->more[0], .dr = g->more[1],
                                   .dk = g->x[0], .dv = g->x[1], .da = w->to[2], .db = w->to[3],
                                   .drate = g->x[2], .dfirst = g->x[3], .dshare = g->x[4],
                                   .dscale = g->vector[0], .dkey_rate = g->vector[1],
                                   .dweight = g->vector[2]};
    train_ops_of(b->ops)->removal_back(b, &a);
    static const char *const names[] = {"keys", "values", "rates", "first values", "shares"};
    for (int i = 0; i < (way == 8 ? 5 : 3); i++)
        check(&s, d->x[i], g->x[i], d->T * d->D, b->ops->level, names[i]);
    check(&s, d->vector[0], g->vector[0], d->D, b->ops->level, "scales");
    check(&s, d->vector[1], g->vector[1], d->D, b->ops->level, "rates of keys");
    free(d);
    free(w);
    free(g);
    free(y);
}

/* Tests the bonus alone: time mixing gives zeros, so norms are only biases. dn is the whole
 * gradient of the output; the gradients of r, k, v and the weight are those of (sum r k weight)
 * v. */
static void bonus_gradients(struct backend *b, struct backend *ref)
{
    struct data *d = make(&shapes[2]), *w = make(&shapes[2]), *g = mem_zero(1, sizeof *g);
    const struct slope s = {ref, d, 12, w};
    const struct heads_out of = heads_of(d, 0, 1);
    memset(w->to, 0, sizeof w->to);
    fill(w->to[0], d->T * d->D);
    memcpy(g->to[0], w->to[0], sizeof g->to[0]);
    const struct heads_out_back a = {&of, g->to[0], g->x[0], g->x[1], g->vector[0], g->vector[1]};
    train_ops_of(b->ops)->heads_out_back(b, &a);
    /* k and v stay: the rate is 1, there is no v of a first layer, and nothing is removed. */
    for (size_t i = 0; i < MOST; i++)
        d->x[6][i] = 1;
    const struct removal as = {.k = d->x[3], .v = d->x[4], .rate = d->x[6],
                               .scale = d->vector[3], .key_rate = d->vector[4], .T = d->T,
                               .heads = d->H, .head_dim = d->E};
    const struct removal_back r = {.of = &as, .r = d->x[2], .k = d->x[3], .v = d->x[4],
                                   .weight = d->vector[2], .dn = g->to[0], .dr = g->x[2],
                                   .dk = g->x[3], .dv = g->x[4], .da = g->more[0],
                                   .db = g->more[1], .drate = g->more[2],
                                   .dscale = g->vector[3], .dkey_rate = g->vector[4],
                                   .dweight = g->vector[2]};
    train_ops_of(b->ops)->removal_back(b, &r);
    static const char *const names[] = {"r", "k", "v"};
    for (int i = 0; i < 3; i++)
        check(&s, d->x[2 + i], g->x[2 + i], d->T * d->D, b->ops->level, names[i]);
    check(&s, d->vector[2], g->vector[2], d->D, b->ops->level, "the bonus");
    free(d);
    free(w);
    free(g);
}

int main(void)
{
    struct backend *ref = backend_open("ref", NULL, 1, 0, NULL);
    struct backend *cpu = backend_open("cpu", NULL, 2, 0, NULL);
    definition(ref);
    for (size_t i = 0; levels_at(i); i++) {
        cpu->ops = levels_at(i);
        for (int k = 0; k < SHAPES; k++)
            forward(ref, cpu, &shapes[k]);
        for (int way = 0; way < 2; way++)
            shift_gradients(cpu, ref, way);
        for (int way = 4; way < 8; way++)
            squash_gradients(cpu, ref, way);
        removal_gradients(cpu, ref, 8);
        removal_gradients(cpu, ref, 10);
        heads_gradients(cpu, ref, 11);
        heads_gradients(cpu, ref, 12);
        bonus_gradients(cpu, ref);
    }
    backend_close(cpu);
    backend_close(ref);
    return tap_done();
}
