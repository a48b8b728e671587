/* host-experts.c - a mixture of experts on the host (experts.h): the router's product, then one
 * expert after another. The rows that chose an expert are gathered and multiplied by the gated and
 * plain products of the back end. `work` holds the rows of one expert at a time, at most all T. A
 * row does not depend on the rows beside it, and the outputs of its experts are added in ascending
 * order. So the result has the same bits for every T and every number of threads. */
#include <assert.h>
#include <math.h>

#include "kernels/experts.h"
#include "kernels/host.h"

/* Places in work. A pair is a row and one of its experts; pairs are sorted by expert. */
struct room {
    float *logits;                    /* [T, n] */
    float *share;                     /* [T, used] p of each pair, in the order of rows */
    int32_t *chosen;                  /* [T, used] the experts of a row, ascending */
    int32_t *begin;                   /* [n + 1] the first pair of each expert */
    int32_t *row;                     /* [T used] the row of each pair, sorted by expert */
    float *part;                      /* [T used] p of each pair, sorted by expert */
    float *in, *hidden, *out, *sum;   /* [T, D], [T, F], [T, D], [T, D] */
    void *products;
};

static void *take(char *work, size_t *at, size_t count)
{
    void *p = work ? work + *at : NULL;
    *at += memory_rounded(count * sizeof(float));
    return p;
}

/* Sets the pointers into `work` and returns the number of bytes before room->products. work NULL:
 * only returns the number. */
static size_t cut(struct room *room, char *work, size_t T, size_t D, size_t F, size_t n,
                  size_t used)
{
    size_t at = 0;
    room->logits = take(work, &at, T * n);
    room->share = take(work, &at, T * used);
    room->chosen = take(work, &at, T * used);
    room->begin = take(work, &at, n + 1);
    room->row = take(work, &at, T * used);
    room->part = take(work, &at, T * used);
    room->in = take(work, &at, T * D);
    room->hidden = take(work, &at, T * F);
    room->out = take(work, &at, T * D);
    room->sum = take(work, &at, T * D);
    room->products = work ? work + at : NULL;
    return at;
}

size_t host_experts_work(const struct backend *backend, size_t T, size_t D, size_t F, size_t n,
                         size_t used)
{
    struct room room;
    const size_t products[] = {backend->ops->matmul_work(backend, T, D, 2 * F),
                               backend->ops->matmul_work(backend, T, F, D),
                               backend->ops->matmul_work(backend, T, D, n)};
    size_t most = 0;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        most = products[i] > most ? products[i] : most;
    return cut(&room, NULL, T, D, F, n, used) + most;
}

/* ---- the choice ---- */

struct choice {
    const struct experts *a;
    const struct room *r;
};

enum { LEFT, TAKEN, OUT };

/* Marks the `used` largest values as TAKEN, among the values whose state is LEFT. A NaN counts as
 * the smallest value. */
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

/* Marks the experts of the groups that a row does not use as OUT, all others as LEFT. */
static void choose_groups(const struct experts *experts, const float *value, unsigned char *state)
{
    const size_t each = experts->n / experts->groups;
    float score[EXPERTS_GROUPS_MOST] = {0};
    unsigned char group[EXPERTS_GROUPS_MOST] = {0};
    for (size_t at = 0; at < experts->groups; at++)
        score[at] = sum_best_two(value + at * each, each);
    choose(score, experts->groups, experts->groups_used, group);
    for (size_t e = 0; e < experts->n; e++)
        state[e] = group[e / each] == TAKEN ? LEFT : OUT;
}

/* The router with softmax (experts.h). share[e] = p of expert e. */
static void choose_plainly(const struct experts *experts, const float *logits, unsigned char *state,
                           float *share)
{
    float top = -INFINITY;
    double sum = 0;
    memset(state, LEFT, experts->n);
    for (size_t e = 0; e < experts->n; e++)
        top = logits[e] > top ? logits[e] : top;
    for (size_t e = 0; e < experts->n; e++)
        sum += (double)(share[e] = expf(logits[e] - top));
    for (size_t e = 0; e < experts->n; e++)
        share[e] = (float)((double)share[e] / sum);
    choose(logits, experts->n, experts->used, state);
}

/* The router with sigmoids and groups (experts.h). share[e] = p of expert e. */
static void choose_in_groups(const struct experts *experts, const float *logits,
                             unsigned char *state, float *share)
{
    float value[EXPERTS_MOST], sum = 0;
    for (size_t e = 0; e < experts->n; e++) {
        share[e] = 1 / (1 + expf(-logits[e]));
        value[e] = share[e] + experts->bias[e];
    }
    choose_groups(experts, value, state);
    choose(value, experts->n, experts->used, state);
    for (size_t e = 0; e < experts->n; e++)
        sum += state[e] == TAKEN ? share[e] : 0;
    for (size_t e = 0; e < experts->n; e++)
        share[e] *= experts->scale / (experts->used > 1 ? sum + 1e-20f : 1);
}

static void choose_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct choice *choice = ctx;
    const size_t n = choice->a->n, used = choice->a->used;
    unsigned char state[EXPERTS_MOST];
    float share[EXPERTS_MOST];
    (void)worker;
    for (size_t row = begin; row < end; row++) {
        (choice->a->bias ? choose_in_groups
                         : choose_plainly)(choice->a, choice->r->logits + row * n, state, share);
        for (size_t e = 0, k = row * used; e < n; e++)
            if (state[e] == TAKEN) {
                choice->r->chosen[k] = (int32_t)e;
                choice->r->share[k++] = share[e];
            }
    }
}

/* Sorts the pairs by expert, rows ascending. Returns the number of experts with rows. */
static int32_t sort_pairs(const struct room *room, size_t T, size_t n, size_t used)
{
    int32_t active = 0, *begin = room->begin;
    memset(begin, 0, (n + 1) * sizeof *begin);
    for (size_t i = 0; i < T * used; i++)
        begin[room->chosen[i] + 1]++;
    for (size_t e = 0; e < n; e++) {
        active += begin[e + 1] > 0;
        begin[e + 1] += begin[e];
    }
    for (size_t i = 0; i < T * used; i++) {
        int32_t place = begin[room->chosen[i]]++; /* this turns begins into ends; memmove below
                                                   * restores them */
        room->row[place] = (int32_t)(i / used);
        room->part[place] = room->share[i];
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
    const struct addition *addition = ctx;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        float *to = addition->sum + (addition->row ? (size_t)addition->row[i] : i) * addition->D;
        const float *from = addition->out + i * addition->D,
                    part = addition->part ? addition->part[i] : 1;
        for (size_t column = 0; column < addition->D; column++)
            to[column] += part * from[column];
    }
}

static void add(struct backend *backend, const struct addition *addition, size_t rows)
{
    pool_run(backend->pool, rows, 16384 / addition->D + 1, add_rows, (void *)(uintptr_t)addition);
}

/* Adds expert e, for the rows that chose it, to the sum. */
static void run_expert(struct backend *backend, const struct experts *experts,
                       const struct room *room, size_t e)
{
    const size_t D = experts->router->cols, first = (size_t)room->begin[e];
    const size_t rows = (size_t)room->begin[e + 1] - first;
    const struct product down = {&experts->down[e], room->out, 0};
    backend->ops->rmsnorm(backend, room->in, experts->x, room->row + first, NULL, rows, D, 0);
    backend->ops->gated(backend, room->hidden, (struct input){.x = room->in}, &experts->gate[e],
                        &experts->up[e], rows, room->products);
    backend->ops->matmul(backend, &down, 1, (struct input){.x = room->hidden}, rows,
                         room->products);
    add(backend, &(struct addition){room->sum, room->out, room->part + first, room->row + first, D},
        rows);
}

void host_experts(struct backend *backend, const struct experts *experts, size_t T, void *work)
{
    struct room room;
    const size_t D = experts->router->cols;
    assert(experts->used <= experts->n && experts->n <= EXPERTS_MOST &&
           experts->used <= EXPERTS_USED_MOST);
    assert(!experts->bias ||
           (experts->groups <= EXPERTS_GROUPS_MOST && experts->n % experts->groups == 0 &&
            experts->groups_used <= experts->groups &&
            experts->used <= experts->n / experts->groups * experts->groups_used));
    cut(&room, work, T, D, experts->gate->rows, experts->n, experts->used);
    const struct product router = {experts->router, room.logits, 0};
    backend->ops->matmul(backend, &router, 1, (struct input){.x = experts->x}, T, room.products);
    pool_run(backend->pool, T, 4096 / (experts->n * experts->used) + 1, choose_rows,
             &(struct choice){experts, &room});
    *experts->active += sort_pairs(&room, T, experts->n, experts->used);
    memset(room.sum, 0, T * D * sizeof *room.sum);
    for (size_t e = 0; e < experts->n; e++)
        if (room.begin[e + 1] > room.begin[e])
            run_expert(backend, experts, &room, e);
    add(backend, &(struct addition){experts->y, room.sum, NULL, NULL, D}, T);
}
