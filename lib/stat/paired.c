/* paired.c - see paired.h. Every prompt has the same weight, however many of its launches have a
 * pair. A residual is the distance of a cell from the mean of its prompt. With distances from the
 * common mean, a launch that lacks a slow prompt would look fast. */
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

size_t paired_work(const struct paired_cells *cells)
{
    return cells->launches * cells->prompts + 2 * cells->prompts + cells->launches;
}

static int is_time(double x)
{
    return x > 0 && isfinite(x);
}

/* Sets table->d, and pairs and left_out of *paired. Returns how many launches count. */
static size_t take_logs(struct table *table, const struct paired_cells *cells,
                        struct paired *paired)
{
    size_t counting = 0;
    for (size_t launch = 0; launch < cells->launches; launch++) {
        const double *base = cells->base + launch * cells->prompts,
                     *other = cells->other + launch * cells->prompts;
        double *logs = table->d + launch * cells->prompts;
        size_t pairs = 0;
        for (size_t prompt = 0; prompt < cells->prompts; prompt++) {
            int both = is_time(base[prompt]) && is_time(other[prompt]);
            logs[prompt] = both ? log(other[prompt] / base[prompt]) : (double)NAN;
            pairs += (size_t)both;
            paired->left_out += !both && (is_time(base[prompt]) || is_time(other[prompt])) ? 1 : 0;
        }
        if ((double)pairs >= SHARE_OF_LAUNCH * (double)cells->prompts && pairs) {
            counting++;
            paired->pairs += pairs;
            continue;
        }
        paired->left_out += pairs;
        for (size_t prompt = 0; prompt < cells->prompts; prompt++)
            logs[prompt] = NAN;
    }
    return counting;
}

/* Sets mean and count of the prompts. Returns the mean over prompts. */
static double take_means(struct table *table, struct paired *paired)
{
    double total = 0;
    for (size_t prompt = 0; prompt < table->prompts; prompt++) {
        double sum = 0, n = 0;
        for (size_t launch = 0; launch < table->launches; launch++) {
            double x = table->d[launch * table->prompts + prompt];
            sum += isnan(x) ? 0 : x;
            n += isnan(x) ? 0 : 1;
        }
        table->count[prompt] = n;
        table->mean[prompt] = n > 0 ? sum / n : (double)NAN;
        total += n > 0 ? table->mean[prompt] : 0;
        paired->prompts += n > 0 ? 1 : 0;
    }
    return paired->prompts ? total / (double)paired->prompts : (double)NAN;
}

/* Returns the part of the variance of the mean that comes from launches, and its degrees of freedom
 * *df; sets table->part. A launch with many cells pulls the prompt means toward itself, so its
 * residuals are too small: `own` corrects this for launches of unequal size. df weights each launch
 * by its number of cells. */
static double by_launch(struct table *table, const struct paired *paired, double *df)
{
    double squares = 0, second = 0, fourth = 0, n = (double)paired->ratio.launches;
    for (size_t launch = 0; launch < table->launches; launch++) {
        double cells = 0;
        table->part[launch] = 0;
        for (size_t prompt = 0; prompt < table->prompts; prompt++) {
            double x = table->d[launch * table->prompts + prompt];
            if (isnan(x))
                continue;
            table->part[launch] += (x - table->mean[prompt]) / table->count[prompt];
            cells++;
        }
        double own = (1 - 1 / n) / (1 - cells / (double)paired->pairs);
        table->part[launch] /= (double)paired->prompts;
        squares += own * own * table->part[launch] * table->part[launch];
        second += cells * cells;
        fourth += cells * cells * cells * cells;
    }
    *df = second * second / fourth - 1;
    return n / (n - 1) * squares;
}

static double by_prompt(const struct table *table, const struct paired *paired, double mean)
{
    double squares = 0, n = (double)paired->prompts;
    for (size_t prompt = 0; prompt < table->prompts; prompt++)
        if (table->count[prompt] > 0)
            squares += (table->mean[prompt] - mean) * (table->mean[prompt] - mean);
    return n > 1 ? squares / (n * (n - 1)) : 0;
}

/* The part of the variance that comes from the noise of cells. by_launch() and by_prompt() both
 * contain it. */
static double by_cell(const struct table *table, const struct paired *paired)
{
    const double launches = (double)paired->ratio.launches, prompts = (double)paired->prompts;
    double squares = 0, cells = 0;
    for (size_t launch = 0; launch < table->launches; launch++)
        for (size_t prompt = 0; prompt < table->prompts; prompt++) {
            double x = table->d[launch * table->prompts + prompt];
            if (isnan(x))
                continue;
            x -= table->mean[prompt] + launches * table->part[launch];
            squares += x * x;
            cells++;
        }
    double freedom = cells - launches - prompts + 1;
    return freedom > 0 ? squares / freedom / cells : 0;
}

static void judge(struct paired *paired, double mean, double launch, double df, double prompt,
                  double cell)
{
    struct ratio *ratio = &paired->ratio;
    const double n = (double)ratio->launches, prompts = (double)paired->prompts;
    double variance = fmax(launch + prompt - cell, fmax(launch, prompt));
    double parts = launch * launch / df + (prompts > 1 ? prompt * prompt / (prompts - 1) : 0);
    double least = prompts > 1 ? fmin(df, prompts - 1) : df;
    paired->df = parts > 0 ? fmax(variance * variance / parts, least) : least;
    paired->se = sqrt(variance);
    double half = stat_t_quantile(0.5 + ratio->level / 2, paired->df) * paired->se;
    ratio->value = exp(mean);
    ratio->lo = exp(mean - half);
    ratio->hi = exp(mean + half);
    ratio->p = paired->se > 0   ? stat_t_outside(mean / paired->se, paired->df)
               : fabs(mean) > 0 ? 0
                                : 1;
    ratio->sd = sqrt(launch * n);
    ratio->half = stat_t_quantile(0.5 + ratio->level / 2, df) * sqrt(launch);
    ratio->reason = NULL;
}

struct paired paired_ratio(const struct paired_cells *cells, double level, double *work)
{
    struct paired paired = {.ratio = RATIO_NOTHING, .se = NAN, .df = NAN};
    paired.ratio.level = level;
    paired.ratio.paired = 1;
    paired.ratio.method =
        "geometric mean over prompts of paired ratios, t interval over launches and "
        "prompts";
    paired.ratio.reason = PAIRED_NONE;
    if (!cells->launches || !cells->prompts)
        return paired;
    struct table table = {
        cells->launches, cells->prompts, work, work + cells->launches * cells->prompts, NULL, NULL};
    table.count = table.mean + cells->prompts;
    table.part = table.count + cells->prompts;
    paired.ratio.launches = take_logs(&table, cells, &paired);
    paired.ratio.reason = cells->launches < LAUNCH_LEAST ? LAUNCH_FEW : PAIRED_DISTURBED;
    if (paired.ratio.launches < LAUNCH_LEAST)
        return paired;
    double mean = take_means(&table, &paired);
    if ((double)(cells->prompts - paired.prompts) > SHARE_LOST * (double)cells->prompts)
        return paired;
    double df, launch = by_launch(&table, &paired, &df);
    judge(&paired, mean, launch, df, by_prompt(&table, &paired, mean), by_cell(&table, &paired));
    return paired;
}
