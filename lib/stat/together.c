/* together.c - see together.h. A draw moves each log ratio by normal weights of launches and
 * prompts, the same weights for all systems, times the parts of these launches and prompts in its
 * mean. Launch parts and prompt parts both hold the noise of cells; so the sum is scaled to the
 * standard error that counts this noise once. */
#include "lib/stat/together.h"

#include <math.h>

#include "lib/base/rng.h"

static const double MANY = 200; /* degrees of freedom; from here on normal */

size_t together_work(const struct together *t)
{
    struct paired_cells c = {t->launches, t->prompts, NULL, NULL};
    size_t parts = t->launches + t->prompts;
    return t->n * parts + parts + paired_work(&c);
}

static struct paired_cells cells_of(const struct together *t, size_t base, size_t i)
{
    size_t one = t->launches * t->prompts;
    return (struct paired_cells){t->launches, t->prompts, t->cells + base * one,
                                 t->cells + i * one};
}

static double log_ratio(const struct paired_cells *c, size_t l, size_t p)
{
    double a = c->base[l * c->prompts + p], b = c->other[l * c->prompts + p];
    return a > 0 && b > 0 && isfinite(a) && isfinite(b) ? log(b / a) : (double)NAN;
}

/* part[launches + prompts]: the parts of launches and prompts in the mean; their squares sum to the
 * variance. Launches that paired_ratio() left out have too few pairs to matter here. */
static void take_parts(const struct paired_cells *c, const struct paired *r, double *part)
{
    double mean = log(r->ratio.value), n = (double)r->ratio.launches, m = (double)r->prompts;
    double squares = 0, *launch = part, *prompt = part + c->launches;
    for (size_t l = 0; l < c->launches; l++)
        launch[l] = 0;
    for (size_t p = 0; p < c->prompts; p++) {
        double sum = 0, count = 0;
        for (size_t l = 0; l < c->launches; l++) {
            double x = log_ratio(c, l, p);
            sum += isnan(x) ? 0 : x;
            count += isnan(x) ? 0 : 1;
        }
        double own = count > 0 ? sum / count : mean;
        for (size_t l = 0; l < c->launches; l++) {
            double x = log_ratio(c, l, p);
            launch[l] += isnan(x) ? 0 : (x - own) / count / m * sqrt(n / (n - 1));
        }
        prompt[p] = m > 1 ? (own - mean) / sqrt(m * (m - 1)) : 0;
    }
    for (size_t k = 0; k < c->launches + c->prompts; k++)
        squares += part[k] * part[k];
    for (size_t k = 0; k < c->launches + c->prompts; k++)
        part[k] *= squares > 0 ? r->se / sqrt(squares) : 0;
}

/* 1 / sqrt(chi-square / df). */
static double draw_scale(struct rng *r, double df)
{
    double square = 0;
    if (df > MANY)
        return 1;
    for (size_t i = 0; i < (size_t)df; i++)
        square += pow(rng_normal(r), 2);
    return 1 / sqrt(square / floor(df));
}

static void draw_one(const struct together *t, const struct paired *ratio, const double *parts,
                     double *weight, struct rng *r, double df, double *out)
{
    const size_t n = t->launches + t->prompts;
    for (size_t k = 0; k < n; k++)
        weight[k] = rng_normal(r);
    double wide = draw_scale(r, df);
    for (size_t i = 0; i < t->n; i++) {
        double sum = 0;
        for (size_t k = 0; k < n && !isnan(ratio[i].se); k++)
            sum += parts[i * n + k] * weight[k];
        out[i] = isnan(ratio[i].se) ? (double)NAN : log(ratio[i].ratio.value) + wide * sum;
    }
}

/* The base: ratio 1 to itself, no spread. */
static void set_base(struct paired *ratio, size_t base, int any)
{
    struct ratio *r = &ratio[base].ratio;
    if (!any)
        return;
    r->value = r->lo = r->hi = r->p = 1;
    r->reason = NULL;
    ratio[base].se = 0;
    ratio[base].df = INFINITY;
}

void together_draw(const struct together *t, size_t base, double level, uint64_t seed,
                   size_t draws, struct paired *ratio, double *draw, double *work)
{
    const size_t n = t->launches + t->prompts;
    double *weight = work + t->n * n, *scratch = weight + n, least = INFINITY;
    int any = 0;
    for (size_t i = 0; i < t->n; i++) {
        struct paired_cells c = cells_of(t, base, i);
        ratio[i] = paired_ratio(&c, level, scratch);
        if (i == base || isnan(ratio[i].se))
            continue;
        any = 1;
        least = fmin(least, ratio[i].df);
        take_parts(&c, &ratio[i], work + i * n);
    }
    set_base(ratio, base, any);
    for (size_t k = 0; k < n; k++)
        work[base * n + k] = 0;
    for (size_t d = 0; d < draws; d++) {
        struct rng r = {.seed = seed, .stream = d};
        draw_one(t, ratio, work, weight, &r, least, draw + d * t->n);
    }
}
