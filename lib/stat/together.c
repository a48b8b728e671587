/* together.c - see together.h. A draw gives each launch and each prompt a normal weight, the same
 * for all systems. It moves the log ratio of a system by the sum of weight * part, where part is
 * what the launch or prompt adds to the mean of that system. Launch parts and prompt parts both
 * contain the noise of cells. So the parts are scaled to the standard error of paired.h, which
 * counts this noise once. */
#include "lib/stat/together.h"

#include <math.h>

#include "lib/base/rng.h"

static const double MANY = 200; /* degrees of freedom; above this Student's t counts as normal */

size_t together_work(const struct together *together)
{
    struct paired_cells cells = {together->launches, together->prompts, NULL, NULL};
    size_t parts = together->launches + together->prompts;
    return together->n * parts + parts + paired_work(&cells);
}

static struct paired_cells cells_of(const struct together *together, size_t base, size_t i)
{
    size_t one = together->launches * together->prompts;
    return (struct paired_cells){together->launches, together->prompts,
                                 together->cells + base * one, together->cells + i * one};
}

static double log_ratio(const struct paired_cells *cells, size_t layer, size_t p)
{
    double a = cells->base[layer * cells->prompts + p],
           b = cells->other[layer * cells->prompts + p];
    return a > 0 && b > 0 && isfinite(a) && isfinite(b) ? log(b / a) : (double)NAN;
}

/* Sets part[launches + prompts]: what each launch and each prompt adds to the mean log ratio. The
 * squares of the parts sum to the variance. Launches that paired_ratio() leaves out have too few
 * pairs to matter here. */
static void take_parts(const struct paired_cells *cells, const struct paired *paired, double *part)
{
    double mean = log(paired->ratio.value), n = (double)paired->ratio.launches,
           prompts = (double)paired->prompts;
    double squares = 0, *launch = part, *prompt = part + cells->launches;
    for (size_t at = 0; at < cells->launches; at++)
        launch[at] = 0;
    for (size_t place = 0; place < cells->prompts; place++) {
        double sum = 0, count = 0;
        for (size_t at = 0; at < cells->launches; at++) {
            double x = log_ratio(cells, at, place);
            sum += isnan(x) ? 0 : x;
            count += isnan(x) ? 0 : 1;
        }
        double own = count > 0 ? sum / count : mean;
        for (size_t at = 0; at < cells->launches; at++) {
            double x = log_ratio(cells, at, place);
            launch[at] += isnan(x) ? 0 : (x - own) / count / prompts * sqrt(n / (n - 1));
        }
        prompt[place] = prompts > 1 ? (own - mean) / sqrt(prompts * (prompts - 1)) : 0;
    }
    for (size_t k = 0; k < cells->launches + cells->prompts; k++)
        squares += part[k] * part[k];
    for (size_t k = 0; k < cells->launches + cells->prompts; k++)
        part[k] *= squares > 0 ? paired->se / sqrt(squares) : 0;
}

/* Draws 1 / sqrt(chi-square / df), which turns a normal draw into Student's t. */
static double draw_scale(struct rng *rng, double df)
{
    double square = 0;
    if (df > MANY)
        return 1;
    for (size_t i = 0; i < (size_t)df; i++)
        square += pow(rng_normal(rng), 2);
    return 1 / sqrt(square / floor(df));
}

static void draw_one(const struct together *together, const struct paired *ratio,
                     const double *parts, double *weight, struct rng *rng, double df, double *out)
{
    const size_t n = together->launches + together->prompts;
    for (size_t k = 0; k < n; k++)
        weight[k] = rng_normal(rng);
    double wide = draw_scale(rng, df);
    for (size_t i = 0; i < together->n; i++) {
        double sum = 0;
        for (size_t k = 0; k < n && !isnan(ratio[i].se); k++)
            sum += parts[i * n + k] * weight[k];
        out[i] = isnan(ratio[i].se) ? (double)NAN : log(ratio[i].ratio.value) + wide * sum;
    }
}

/* Sets the ratio of the base to itself: 1, without spread, if `any` system has an interval. */
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

void together_draw(const struct together *together, size_t base, double level, uint64_t seed,
                   size_t draws, struct paired *ratio, double *draw, double *work)
{
    const size_t n = together->launches + together->prompts;
    double *weight = work + together->n * n, *scratch = weight + n, least = INFINITY;
    int any = 0;
    for (size_t i = 0; i < together->n; i++) {
        struct paired_cells cells = cells_of(together, base, i);
        ratio[i] = paired_ratio(&cells, level, scratch);
        if (i == base || isnan(ratio[i].se))
            continue;
        any = 1;
        least = fmin(least, ratio[i].df);
        take_parts(&cells, &ratio[i], work + i * n);
    }
    set_base(ratio, base, any);
    for (size_t k = 0; k < n; k++)
        work[base * n + k] = 0;
    for (size_t round = 0; round < draws; round++) {
        struct rng rng = {.seed = seed, .stream = round};
        draw_one(together, ratio, work, weight, &rng, least, draw + round * together->n);
    }
}
