/* host-experts.c - a mixture of experts on the host: the router's product, then one expert after
 * another on the rows that chose it, gathered, with the gated and plain products of the back end.
 * Work holds the rows of one expert at a time, at most all T. A row does not depend on the rows
 * beside it, and its experts are added in ascending order: the result has the same bits for every
 * T and every number of threads. */
#include <assert.h>
#include <math.h>

#include "kernels/experts.h"
#include "kernels/host.h"

/* Places in work. A row's choices are pairs (row, expert); their order is by expert. */
struct room {
    float *logits;                    /* [T, n] */
    float *share;                     /* [T, used] p of each pair, in order of rows */
    int32_t *chosen;                  /* [T, used] the experts of a row, ascending */
    int32_t *begin;                   /* [n + 1] the first pair of each expert */
    int32_t *row;                     /* [T used] the row of each pair, sorted by expert */
    float *part;                      /* [T used] its p */
    float *in, *hidden, *out, *sum;   /* [T, D], [T, F], [T, D], [T, D] */
    void *products;
};

static void *take(char *work, size_t *at, size_t count)
{
    void *p = work ? work + *at : NULL;
    *at += memory_rounded(count * sizeof(float));
    return p;
}

/* Sets the pointers into `work` and returns the bytes before the products; NULL: only measures. */
static size_t cut(struct room *r, char *work, size_t T, size_t D, size_t F, size_t n, size_t used)
{
    size_t at = 0;
    r->logits = take(work, &at, T * n);
    r->share = take(work, &at, T * used);
    r->chosen = take(work, &at, T * used);
    r->begin = take(work, &at, n + 1);
    r->row = take(work, &at, T * used);
    r->part = take(work, &at, T * used);
    r->in = take(work, &at, T * D);
    r->hidden = take(work, &at, T * F);
    r->out = take(work, &at, T * D);
    r->sum = take(work, &at, T * D);
    r->products = work ? work + at : NULL;
    return at;
}

size_t host_experts_work(const struct backend *b, size_t T, size_t D, size_t F, size_t n,
                         size_t used)
{
    struct room r;
    const size_t products[] = {b->ops->matmul_work(b, T, D, 2 * F), b->ops->matmul_work(b, T, F, D),
                               b->ops->matmul_work(b, T, D, n)};
    size_t most = 0;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        most = products[i] > most ? products[i] : most;
    return cut(&r, NULL, T, D, F, n, used) + most;
}

/* ---- the choice ---- */

struct choice {
    const struct experts *a;
    const struct room *r;
};

enum { LEFT, TAKEN, OUT };

/* Takes the `used` largest values of those that are left. A NaN counts as the smallest value. */
static void choose(const float *value, size_t n, size_t used, unsigned char *state)
{
    for (size_t k = 0; k < used; k++) {
        size_t best = n;
        for (size_t e = 0; e < n; e++)
            if (state[e] == LEFT && (best == n || value[e] > value[best] ||
                                     (isnan(value[best]) && !isnan(value[e]))))
                best = e;
        state[best] = TAKEN;
    }
}

static float sum_best_two(const float *value, size_t n)
{
    float first = -INFINITY, second = -INFINITY;
    for (size_t i = 0; i < n; i++)
        if (value[i] > first) {
            second = first;
            first = value[i];
        } else if (value[i] > second) {
            second = value[i];
        }
    return first + second;
}

/* Marks the experts of groups that a row does not use as out. */
static void choose_groups(const struct experts *a, const float *value, unsigned char *state)
{
    const size_t each = a->n / a->groups;
    float score[EXPERTS_GROUPS_MOST] = {0};
    unsigned char group[EXPERTS_GROUPS_MOST] = {0};
    for (size_t g = 0; g < a->groups; g++)
        score[g] = sum_best_two(value + g * each, each);
    choose(score, a->groups, a->groups_used, group);
    for (size_t e = 0; e < a->n; e++)
        state[e] = group[e / each] == TAKEN ? LEFT : OUT;
}

/* Chooses by softmax. share[e]: p of each expert. */
static void choose_plainly(const struct experts *a, const float *logits, unsigned char *state,
                           float *share)
{
    float top = -INFINITY;
    double sum = 0;
    memset(state, LEFT, a->n);
    for (size_t e = 0; e < a->n; e++)
        top = logits[e] > top ? logits[e] : top;
    for (size_t e = 0; e < a->n; e++)
        sum += (double)(share[e] = expf(logits[e] - top));
    for (size_t e = 0; e < a->n; e++)
        share[e] = (float)((double)share[e] / sum);
    choose(logits, a->n, a->used, state);
}

/* Chooses by sigmoids, in groups. */
static void choose_in_groups(const struct experts *a, const float *logits, unsigned char *state,
                             float *share)
{
    float value[EXPERTS_MOST], sum = 0;
    for (size_t e = 0; e < a->n; e++) {
        share[e] = 1 / (1 + expf(-logits[e]));
        value[e] = share[e] + a->bias[e];
    }
    choose_groups(a, value, state);
    choose(value, a->n, a->used, state);
    for (size_t e = 0; e < a->n; e++)
        sum += state[e] == TAKEN ? share[e] : 0;
    for (size_t e = 0; e < a->n; e++)
        share[e] *= a->scale / (a->used > 1 ? sum + 1e-20f : 1);
}

static void choose_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct choice *c = ctx;
    const size_t n = c->a->n, used = c->a->used;
    unsigned char state[EXPERTS_MOST];
    float share[EXPERTS_MOST];
    (void)worker;
    for (size_t t = begin; t < end; t++) {
        (c->a->bias ? choose_in_groups : choose_plainly)(c->a, c->r->logits + t * n, state, share);
        for (size_t e = 0, k = t * used; e < n; e++)
            if (state[e] == TAKEN) {
                c->r->chosen[k] = (int32_t)e;
                c->r->share[k++] = share[e];
            }
    }
}

/* Sorts the pairs by expert, rows ascending. Returns the number of experts with rows. */
static int32_t sort_pairs(const struct room *r, size_t T, size_t n, size_t used)
{
    int32_t active = 0, *begin = r->begin;
    memset(begin, 0, (n + 1) * sizeof *begin);
    for (size_t i = 0; i < T * used; i++)
        begin[r->chosen[i] + 1]++;
    for (size_t e = 0; e < n; e++) {
        active += begin[e + 1] > 0;
        begin[e + 1] += begin[e];
    }
    for (size_t i = 0; i < T * used; i++) {
        int32_t place = begin[r->chosen[i]]++; /* the ends become begins again below */
        r->row[place] = (int32_t)(i / used);
        r->part[place] = r->share[i];
    }
    memmove(begin + 1, begin, n * sizeof *begin);
    begin[0] = 0;
    return active;
}

/* ---- the sum ---- */

struct addition {
    float *sum;
    const float *out, *part; /* part NULL: 1 */
    const int32_t *row;      /* NULL: row i */
    size_t D;
};

static void add_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct addition *a = ctx;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        float *to = a->sum + (a->row ? (size_t)a->row[i] : i) * a->D;
        const float *from = a->out + i * a->D, part = a->part ? a->part[i] : 1;
        for (size_t d = 0; d < a->D; d++)
            to[d] += part * from[d];
    }
}

static void add(struct backend *b, const struct addition *a, size_t rows)
{
    pool_run(b->pool, rows, 16384 / a->D + 1, add_rows, (void *)(uintptr_t)a);
}

/* Adds expert e, for the rows that chose it, to the sum. */
static void run_expert(struct backend *b, const struct experts *a, const struct room *r, size_t e)
{
    const size_t D = a->router->cols, first = (size_t)r->begin[e];
    const size_t rows = (size_t)r->begin[e + 1] - first;
    const struct product down = {&a->down[e], r->out, 0};
    b->ops->rmsnorm(b, r->in, a->x, r->row + first, NULL, rows, D, 0);
    b->ops->gated(b, r->hidden, (struct input){.x = r->in}, &a->gate[e], &a->up[e], rows,
                  r->products);
    b->ops->matmul(b, &down, 1, (struct input){.x = r->hidden}, rows, r->products);
    add(b, &(struct addition){r->sum, r->out, r->part + first, r->row + first, D}, rows);
}

void host_experts(struct backend *b, const struct experts *a, size_t T, void *work)
{
    struct room r;
    const size_t D = a->router->cols;
    assert(a->used <= a->n && a->n <= EXPERTS_MOST && a->used <= EXPERTS_USED_MOST);
    assert(!a->bias || (a->groups <= EXPERTS_GROUPS_MOST && a->n % a->groups == 0 &&
                        a->groups_used <= a->groups &&
                        a->used <= a->n / a->groups * a->groups_used));
    cut(&r, work, T, D, a->gate->rows, a->n, a->used);
    const struct product router = {a->router, r.logits, 0};
    b->ops->matmul(b, &router, 1, (struct input){.x = a->x}, T, r.products);
    pool_run(b->pool, T, 4096 / (a->n * a->used) + 1, choose_rows, &(struct choice){a, &r});
    *a->active += sort_pairs(&r, T, a->n, a->used);
    memset(r.sum, 0, T * D * sizeof *r.sum);
    for (size_t e = 0; e < a->n; e++)
        if (r.begin[e + 1] > r.begin[e])
            run_expert(b, a, &r, e);
    add(b, &(struct addition){a->y, r.sum, NULL, NULL, D}, T);
}
