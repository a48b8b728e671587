/* prune.c - see prune.h. Computes the sizes after pruning, chooses the parts that stay, and finds
 * their rows and columns in each tensor, from the meaning of the tensor's rows and columns
 * (role.h). Scores are in prune-score.c. */
#include "lib/checkpoint/packing/prune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

static const double ROUNDING = 1e-9; /* allowance for rounding, so that 0.3 of 10 is 3 */
enum { UNIT = 64, UNITS_LEAST = 8 };

/* ---- sizes after pruning ---- */

static size_t part_of(double share, size_t n)
{
    return (size_t)floor(share * (double)n + ROUNDING);
}

static void settle_heads(struct config *to, const struct config *config, double share)
{
    size_t group = config->heads / config->kv_heads;
    size_t groups = part_of(share, config->kv_heads), each = part_of(share, group);
    if (groups * group > each * config->kv_heads)
        to->kv_heads -= groups;
    else
        group -= each;
    to->heads = to->kv_heads * group;
}

static void settle_units(struct config *to, const struct config *config, double share)
{
    size_t unit = UNIT;
    while (unit > 1 && unit > config->ffn / UNITS_LEAST)
        unit /= 2;
    double rest = (double)config->ffn * (1 - share) / (double)unit;
    size_t keep = (size_t)ceil(rest - ROUNDING) * unit;
    to->ffn = keep < config->ffn ? keep : config->ffn;
}

static int check_share(const char *flag, double share, struct err *e)
{
    return share >= 0 && share < 1 ? 0
                                   : err_set(e, EXIT_BAD_USAGE, "%s: expected a share from 0 to "
                                             "less than 1, got %g", flag, share);
}

int prune_settle(struct prune *prune, const struct config *config, double heads, double ffn,
                 struct err *e)
{
    *prune = (struct prune){.config = *config};
    if (check_share("--prune-heads", heads, e) || check_share("--prune-ffn", ffn, e))
        return -1;
    if (config->latents && heads > 0)
        return err_set(e, EXIT_BAD_DATA, "%s: --prune-heads: layers that read latents have further "
                       "heads, which cannot be removed: use only --prune-ffn", config->name);
    if (config->experts)
        return err_set(e, EXIT_BAD_DATA, "%s: parts of a mixture of experts cannot be removed: "
                       "expected a model with one feed-forward in each layer", config->name);
    settle_heads(&prune->config, config, heads);
    settle_units(&prune->config, config, ffn);
    if (!prune->config.heads)
        return err_set(e, EXIT_BAD_USAGE, "--prune-heads %.17g: leaves none of the %zu heads of "
                       "%s", heads, config->heads, config->name);
    if (!prune->config.ffn)
        return err_set(e, EXIT_BAD_USAGE, "--prune-ffn %.17g: leaves none of the %zu hidden units "
                       "of %s", ffn, config->ffn, config->name);
    return 0;
}

/* ---- choice of the kept heads and units ---- */

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

/* out[keep] = base + the indices of the `keep` highest of score[n], ascending. */
static void keep_best(const double *score, size_t n, size_t keep, size_t base, size_t *out)
{
    struct candidate *candidate = mem_alloc(n * sizeof *candidate);
    for (size_t i = 0; i < n; i++)
        candidate[i] = (struct candidate){score[i], i};
    qsort(candidate, n, sizeof *candidate, better_first);
    qsort(candidate, keep, sizeof *candidate, by_index);
    for (size_t i = 0; i < keep; i++)
        out[i] = base + candidate[i].i;
    free(candidate);
}

static void choose_heads(struct prune *prune, const struct config *config, size_t layer,
                         const double *score)
{
    size_t group = config->heads / config->kv_heads, K = prune->config.kv_heads,
           left = prune->config.heads / K;
    size_t *key = prune->key + layer * K, *query = prune->query + layer * prune->config.heads;
    double *worth = mem_zero(config->kv_heads, sizeof *worth);
    for (size_t h = 0; h < config->heads; h++)
        worth[h / group] += score[h] * score[h];
    keep_best(worth, config->kv_heads, K, 0, key);
    for (size_t k = 0; k < K; k++)
        keep_best(score + key[k] * group, group, left, key[k] * group, query + k * left);
    free(worth);
}

void prune_choose(struct prune *prune, const struct config *config,
                  const struct prune_values *score)
{
    const struct config *to = &prune->config;
    prune_free(prune);
    prune->query = mem_zero(config->layers * to->heads, sizeof *prune->query);
    prune->key = mem_zero(config->layers * to->kv_heads, sizeof *prune->key);
    prune->unit = mem_zero(config->layers * to->ffn, sizeof *prune->unit);
    for (size_t layer = 0; layer < config->layers; layer++) {
        choose_heads(prune, config, layer, score->head + layer * config->heads);
        keep_best(score->unit + layer * config->ffn, config->ffn, to->ffn, 0,
                  prune->unit + layer * to->ffn);
    }
}

void prune_free(struct prune *prune)
{
    free(prune->query);
    free(prune->key);
    free(prune->unit);
    prune->query = prune->key = prune->unit = NULL;
}

struct prune_values prune_values_make(const struct config *config)
{
    return (struct prune_values){mem_zero(config->layers * config->heads, sizeof(double)),
                                 mem_zero(config->layers * config->ffn, sizeof(double))};
}

void prune_values_free(struct prune_values *values)
{
    free(values->head);
    free(values->unit);
    *values = (struct prune_values){0};
}

/* ---- kept parts of a tensor ---- */

/* The list of kept entries for a dimension in a layer, or NULL. *unit = rows or columns per
 * entry. */
static const size_t *list_of(const struct prune *prune, enum role_along along, size_t layer,
                             size_t *unit)
{
    const struct config *config = &prune->config;
    const size_t *list = along == ALONG_QUERY ? prune->query + layer * config->heads
                         : along == ALONG_KEY ? prune->key + layer * config->kv_heads
                         : along == ALONG_FFN ? prune->unit + layer * config->ffn
                                              : NULL;
    if (list)
        *unit = along == ALONG_FFN ? 1 : config->head_dim;
    return list;
}

struct prune_cut prune_cut_of(const struct prune *prune, enum role role, size_t layer)
{
    struct prune_cut cut = {.unit = 1};
    cut.rows = list_of(prune, role_rows(role), layer, &cut.unit);
    cut.cols = list_of(prune, role_cols(role), layer, &cut.unit);
    return cut;
}

size_t prune_place(const size_t *list, size_t unit, size_t i)
{
    return list ? list[i / unit] * unit + i % unit : i;
}
