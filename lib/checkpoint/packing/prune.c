/* prune.c - see prune.h: how much goes, which parts stay, and where they are in each tensor. The
 * place follows only from the meaning of the tensor's rows and columns (role.h). Scores are in
 * prune-score.c. */
#include "lib/checkpoint/packing/prune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

static const double ROUNDING = 1e-9; /* so that 0.3 of 10 is 3 in doubles */
enum { UNIT = 64, UNITS_LEAST = 8 };

/* ---- sizes after pruning ---- */

static size_t part_of(double share, size_t n)
{
    return (size_t)floor(share * (double)n + ROUNDING);
}

static void settle_heads(struct config *to, const struct config *c, double share)
{
    size_t group = c->heads / c->kv_heads;
    size_t groups = part_of(share, c->kv_heads), each = part_of(share, group);
    if (groups * group > each * c->kv_heads)
        to->kv_heads -= groups;
    else
        group -= each;
    to->heads = to->kv_heads * group;
}

static void settle_units(struct config *to, const struct config *c, double share)
{
    size_t unit = UNIT;
    while (unit > 1 && unit > c->ffn / UNITS_LEAST)
        unit /= 2;
    double rest = (double)c->ffn * (1 - share) / (double)unit;
    size_t keep = (size_t)ceil(rest - ROUNDING) * unit;
    to->ffn = keep < c->ffn ? keep : c->ffn;
}

static int check_share(const char *flag, double share, struct err *e)
{
    return share >= 0 && share < 1 ? 0
                                   : err_set(e, EXIT_BAD_USAGE, "%s: expected a share from 0 to "
                                             "less than 1, got %g", flag, share);
}

int prune_settle(struct prune *p, const struct config *c, double heads, double ffn, struct err *e)
{
    *p = (struct prune){.config = *c};
    if (check_share("--prune-heads", heads, e) || check_share("--prune-ffn", ffn, e))
        return -1;
    if (c->latents && heads > 0)
        return err_set(e, EXIT_BAD_DATA, "%s: --prune-heads: its layers read latents with as many "
                       "heads again: only --prune-ffn goes", c->name);
    if (c->experts)
        return err_set(e, EXIT_BAD_DATA, "%s: parts of a mixture of experts cannot be removed: "
                       "expected a model with one feed-forward in each layer", c->name);
    settle_heads(&p->config, c, heads);
    settle_units(&p->config, c, ffn);
    if (!p->config.heads)
        return err_set(e, EXIT_BAD_USAGE, "--prune-heads %.17g: leaves none of the %zu heads of "
                       "%s", heads, c->heads, c->name);
    if (!p->config.ffn)
        return err_set(e, EXIT_BAD_USAGE, "--prune-ffn %.17g: leaves none of the %zu hidden units "
                       "of %s", ffn, c->ffn, c->name);
    return 0;
}

/* ---- which ---- */

struct candidate {
    double score;
    size_t i;
};

static int better_first(const void *pa, const void *pb)
{
    const struct candidate *a = pa, *b = pb;
    int d = (a->score < b->score) - (a->score > b->score);
    return d ? d : (a->i > b->i) - (a->i < b->i);
}

static int by_index(const void *pa, const void *pb)
{
    const struct candidate *a = pa, *b = pb;
    return (a->i > b->i) - (a->i < b->i);
}

/* out[keep] = base + the indices of the best of score[n], ascending. */
static void keep_best(const double *score, size_t n, size_t keep, size_t base, size_t *out)
{
    struct candidate *v = mem_alloc(n * sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = (struct candidate){score[i], i};
    qsort(v, n, sizeof *v, better_first);
    qsort(v, keep, sizeof *v, by_index);
    for (size_t i = 0; i < keep; i++)
        out[i] = base + v[i].i;
    free(v);
}

static void choose_heads(struct prune *p, const struct config *c, size_t l, const double *score)
{
    size_t group = c->heads / c->kv_heads, K = p->config.kv_heads, left = p->config.heads / K;
    size_t *key = p->key + l * K, *query = p->query + l * p->config.heads;
    double *worth = mem_zero(c->kv_heads, sizeof *worth);
    for (size_t h = 0; h < c->heads; h++)
        worth[h / group] += score[h] * score[h];
    keep_best(worth, c->kv_heads, K, 0, key);
    for (size_t k = 0; k < K; k++)
        keep_best(score + key[k] * group, group, left, key[k] * group, query + k * left);
    free(worth);
}

void prune_choose(struct prune *p, const struct config *c, const struct prune_values *score)
{
    const struct config *to = &p->config;
    prune_free(p);
    p->query = mem_zero(c->layers * to->heads, sizeof *p->query);
    p->key = mem_zero(c->layers * to->kv_heads, sizeof *p->key);
    p->unit = mem_zero(c->layers * to->ffn, sizeof *p->unit);
    for (size_t l = 0; l < c->layers; l++) {
        choose_heads(p, c, l, score->head + l * c->heads);
        keep_best(score->unit + l * c->ffn, c->ffn, to->ffn, 0, p->unit + l * to->ffn);
    }
}

void prune_free(struct prune *p)
{
    free(p->query);
    free(p->key);
    free(p->unit);
    p->query = p->key = p->unit = NULL;
}

struct prune_values prune_values_make(const struct config *c)
{
    return (struct prune_values){mem_zero(c->layers * c->heads, sizeof(double)),
                                 mem_zero(c->layers * c->ffn, sizeof(double))};
}

void prune_values_free(struct prune_values *v)
{
    free(v->head);
    free(v->unit);
    *v = (struct prune_values){0};
}

/* ---- kept parts of a tensor ---- */

/* The list for a dimension, and the number of values per entry. */
static const size_t *list_of(const struct prune *p, enum role_along s, size_t layer, size_t *unit)
{
    const struct config *c = &p->config;
    const size_t *list = s == ALONG_QUERY ? p->query + layer * c->heads
                         : s == ALONG_KEY ? p->key + layer * c->kv_heads
                         : s == ALONG_FFN ? p->unit + layer * c->ffn
                                         : NULL;
    if (list)
        *unit = s == ALONG_FFN ? 1 : c->head_dim;
    return list;
}

struct prune_cut prune_cut_of(const struct prune *p, enum role r, size_t layer)
{
    struct prune_cut cut = {.unit = 1};
    cut.rows = list_of(p, role_rows(r), layer, &cut.unit);
    cut.cols = list_of(p, role_cols(r), layer, &cut.unit);
    return cut;
}

size_t prune_place(const size_t *list, size_t unit, size_t i)
{
    return list ? list[i / unit] * unit + i % unit : i;
}
