/* paired.c - see paired.h. Every prompt has the same weight, in however many launches it has pairs.
 * Residuals are taken from the mean of their prompt; else a launch that lacks a slow prompt would
 * look fast. */
#include "lib/stat/paired.h"

#include <math.h>
#include <string.h>

static const double SHARE_OF_LAUNCH = 0.5, SHARE_LOST = 0.1;

/* The log ratios of the cells with sums by launch and by prompt; all arrays lie in `work`. */
struct table {
    size_t launches, prompts;
    double *d;              /* [launches][prompts]: log ratio; NaN: none, or its launch is out */
    double *mean, *count;   /* [prompts] */
    double *part;           /* [launches]: the launch's part of the mean, prompt means removed */
};

size_t paired_work(const struct paired_cells *c)
{
    return c->launches * c->prompts + 2 * c->prompts + c->launches;
}

static int is_time(double x)
{
    return x > 0 && isfinite(x);
}

/* Sets d. Returns how many launches count. */
static size_t take_logs(struct table *t, const struct paired_cells *c, struct paired *r)
{
    size_t counting = 0;
    for (size_t l = 0; l < c->launches; l++) {
        const double *a = c->base + l * c->prompts, *b = c->other + l * c->prompts;
        double *d = t->d + l * c->prompts;
        size_t pairs = 0;
        for (size_t p = 0; p < c->prompts; p++) {
            int both = is_time(a[p]) && is_time(b[p]);
            d[p] = both ? log(b[p] / a[p]) : (double)NAN;
            pairs += (size_t)both;
            r->left_out += !both && (is_time(a[p]) || is_time(b[p])) ? 1 : 0;
        }
        if ((double)pairs >= SHARE_OF_LAUNCH * (double)c->prompts && pairs) {
            counting++;
            r->pairs += pairs;
            continue;
        }
        r->left_out += pairs;
        for (size_t p = 0; p < c->prompts; p++)
            d[p] = NAN;
    }
    return counting;
}

/* Sets mean and count of the prompts. Returns the mean over prompts. */
static double take_means(struct table *t, struct paired *r)
{
    double total = 0;
    for (size_t p = 0; p < t->prompts; p++) {
        double sum = 0, n = 0;
        for (size_t l = 0; l < t->launches; l++) {
            double x = t->d[l * t->prompts + p];
            sum += isnan(x) ? 0 : x;
            n += isnan(x) ? 0 : 1;
        }
        t->count[p] = n;
        t->mean[p] = n > 0 ? sum / n : (double)NAN;
        total += n > 0 ? t->mean[p] : 0;
        r->prompts += n > 0 ? 1 : 0;
    }
    return r->prompts ? total / (double)r->prompts : (double)NAN;
}

/* The variance of the mean between launches, with its degrees of freedom; sets part. If launches
 * lack prompts, the residuals of the others are too small by more than n / (n - 1): `own` corrects
 * that, and df counts launches by their number of cells. */
static double by_launch(struct table *t, const struct paired *r, double *df)
{
    double squares = 0, second = 0, fourth = 0, n = (double)r->ratio.launches;
    for (size_t l = 0; l < t->launches; l++) {
        double cells = 0;
        t->part[l] = 0;
        for (size_t p = 0; p < t->prompts; p++) {
            double x = t->d[l * t->prompts + p];
            if (isnan(x))
                continue;
            t->part[l] += (x - t->mean[p]) / t->count[p];
            cells++;
        }
        double own = (1 - 1 / n) / (1 - cells / (double)r->pairs);
        t->part[l] /= (double)r->prompts;
        squares += own * own * t->part[l] * t->part[l];
        second += cells * cells;
        fourth += cells * cells * cells * cells;
    }
    *df = second * second / fourth - 1;
    return n / (n - 1) * squares;
}

static double by_prompt(const struct table *t, const struct paired *r, double mean)
{
    double squares = 0, n = (double)r->prompts;
    for (size_t p = 0; p < t->prompts; p++)
        if (t->count[p] > 0)
            squares += (t->mean[p] - mean) * (t->mean[p] - mean);
    return n > 1 ? squares / (n * (n - 1)) : 0;
}

/* The variance from the noise of cells, which the other two variances both contain. */
static double by_cell(const struct table *t, const struct paired *r)
{
    const double launches = (double)r->ratio.launches, prompts = (double)r->prompts;
    double squares = 0, cells = 0;
    for (size_t l = 0; l < t->launches; l++)
        for (size_t p = 0; p < t->prompts; p++) {
            double x = t->d[l * t->prompts + p];
            if (isnan(x))
                continue;
            x -= t->mean[p] + launches * t->part[l];
            squares += x * x;
            cells++;
        }
    double freedom = cells - launches - prompts + 1;
    return freedom > 0 ? squares / freedom / cells : 0;
}

static void judge(struct paired *p, double mean, double launch, double df, double prompt,
                  double cell)
{
    struct ratio *r = &p->ratio;
    const double n = (double)r->launches, m = (double)p->prompts;
    double v = fmax(launch + prompt - cell, fmax(launch, prompt));
    double parts = launch * launch / df + (m > 1 ? prompt * prompt / (m - 1) : 0);
    double least = m > 1 ? fmin(df, m - 1) : df;
    p->df = parts > 0 ? fmax(v * v / parts, least) : least;
    p->se = sqrt(v);
    double half = stat_t_quantile(0.5 + r->level / 2, p->df) * p->se;
    r->value = exp(mean);
    r->lo = exp(mean - half);
    r->hi = exp(mean + half);
    r->p = p->se > 0 ? stat_t_outside(mean / p->se, p->df) : fabs(mean) > 0 ? 0 : 1;
    r->sd = sqrt(launch * n);
    r->half = stat_t_quantile(0.5 + r->level / 2, df) * sqrt(launch);
    r->reason = NULL;
}

struct paired paired_ratio(const struct paired_cells *c, double level, double *work)
{
    struct paired r = {.ratio = RATIO_NOTHING, .se = NAN, .df = NAN};
    r.ratio.level = level;
    r.ratio.paired = 1;
    r.ratio.method = "geometric mean over prompts of paired ratios, t interval over launches and "
                     "prompts";
    r.ratio.reason = PAIRED_NONE;
    if (!c->launches || !c->prompts)
        return r;
    struct table t = {c->launches, c->prompts, work, work + c->launches * c->prompts, NULL, NULL};
    t.count = t.mean + c->prompts;
    t.part = t.count + c->prompts;
    r.ratio.launches = take_logs(&t, c, &r);
    r.ratio.reason = c->launches < LAUNCH_LEAST ? LAUNCH_FEW : PAIRED_DISTURBED;
    if (r.ratio.launches < LAUNCH_LEAST)
        return r;
    double mean = take_means(&t, &r);
    if ((double)(c->prompts - r.prompts) > SHARE_LOST * (double)c->prompts)
        return r;
    double df, launch = by_launch(&t, &r, &df);
    judge(&r, mean, launch, df, by_prompt(&t, &r, mean), by_cell(&t, &r));
    return r;
}
