/* figure-training.c - draws a training run: loss, gradient norm, tokens a second and memory against
 * the tokens seen. Each quantity has a panel, and each model a line. A record may lack a quantity:
 * older records have no memory, and the training of a prior has no tokens. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/figure/figure.h"

enum { MAX_MODELS = 8, BINS = 300 };
enum quantity { LOSS, NORM, SPEED, RESIDENT, ALLOCATED, HELD, QUANTITIES };

/* Sums over equal stretches of the training, from which the drawn means are made. */
struct lane {
    const char *model;
    double kind;
    double at[BINS], sum[QUANTITIES][BINS], count[QUANTITIES][BINS], records[BINS];
};

static struct lane *lane_of(struct lane *list, int *n, const struct run_loss *loss)
{
    for (int i = 0; i < *n; i++)
        if (!strcmp(list[i].model, loss->model))
            return &list[i];
    if (*n == MAX_MODELS)
        return NULL;
    list[*n] = (struct lane){.model = loss->model,
                             .kind = (double)config_table_kind_of(loss->is_diffusion)};
    return &list[(*n)++];
}

/* Sums the records into lanes. Sets drawn[quantity] to 1 if a record has the quantity. Returns the
 * number of models. */
static int fill_lanes(struct figure *figure, const struct runset *set, struct lane *list,
                      int *drawn)
{
    double most = 0;
    int n = 0;
    for (size_t i = 0; i < set->n_losses; i++)
        most = gnuplot_drawable(set->losses[i].at, 0) ? fmax(most, set->losses[i].at) : most;
    for (size_t i = 0; i < set->n_losses; i++) {
        const struct run_loss *loss = &set->losses[i];
        const double value[QUANTITIES] = {loss->loss, loss->norm, loss->speed, loss->resident_mb,
                                          loss->allocated_mb, loss->held};
        struct lane *lane = gnuplot_drawable(loss->at, 0) && loss->at >= 0 ? lane_of(list, &n, loss)
                                                                           : NULL;
        if (!lane) {
            figure->script.skipped++;
            continue;
        }
        int bin = most > 0 ? (int)(loss->at / most * (BINS - 1)) : 0;
        lane->at[bin] += loss->at;
        lane->records[bin]++;
        for (int quantity = 0; quantity < QUANTITIES; quantity++)
            if (gnuplot_drawable(value[quantity], 0)) {
                lane->sum[quantity][bin] += value[quantity];
                lane->count[quantity][bin]++;
                drawn[quantity] = 1;
            }
    }
    return n;
}

/* Sets the texts of one stretch in the panel of each drawn quantity. */
static void put_tips(struct figure *figure, const struct lane *lane, int bin, const int *drawn)
{
    static const char *const names[] = {"loss", "gradient norm", "tokens/s", "MB resident"};
    double at = lane->at[bin] / lane->records[bin];
    for (int quantity = LOSS, panel = 0; quantity < ALLOCATED; quantity++) {
        panel += drawn[quantity] || (quantity == RESIDENT && drawn[ALLOCATED]);
        double v = lane->sum[quantity][bin] / lane->count[quantity][bin];
        if (drawn[quantity])
            figure_tip(figure, panel, at, v, NULL, "%s at %.4g: %s %.4g", lane->model, at,
                       names[quantity], v);
    }
}

static void put_lanes(struct figure *figure, const struct lane *list, int n, const int *drawn)
{
    struct script *out = &figure->script;
    script_table(out, "points", "seen loss grad_norm tokens_per_s process_mb allocated_mb "
                           "valid_loss");
    for (int i = 0; i < n; i++) {
        const struct lane *lane = &list[i];
        int means = 0;
        if (i)
            script_next(out, 1 + QUANTITIES);
        for (int bin = 0; bin < BINS; bin++)
            if (lane->records[bin] > 0) {
                script_row(out, "nnnnnnn", lane->at[bin] / lane->records[bin],
                           lane->sum[LOSS][bin] / lane->count[LOSS][bin],
                           lane->sum[NORM][bin] / lane->count[NORM][bin],
                           lane->sum[SPEED][bin] / lane->count[SPEED][bin],
                           lane->sum[RESIDENT][bin] / lane->count[RESIDENT][bin],
                           lane->sum[ALLOCATED][bin] / lane->count[ALLOCATED][bin],
                           lane->sum[HELD][bin] / lane->count[HELD][bin]);
                if (means++ % 8 == 0) /* more texts would overlap under a pointer */
                    put_tips(figure, lane, bin, drawn);
            }
    }
    script_table_end(out);
}

/* Lists the panels: for each its column in the table and the label of its axis. */
static void put_panels(struct script *out, const int *drawn)
{
    static const char *const labels[ALLOCATED] = {"loss (nats per token)", "gradient norm",
                                                   "tokens/s", "memory (MB)"};
    const char *label[ALLOCATED];
    double column[ALLOCATED];
    int n = 0;
    for (int quantity = LOSS; quantity < ALLOCATED; quantity++)
        if (drawn[quantity] || (quantity == RESIDENT && drawn[ALLOCATED])) {
            label[n] = labels[quantity];
            column[n++] = quantity + 2;
        }
    script_texts(out, "panel_label", label, n);
    script_numbers(out, "panel_column", column, n);
    script_number(out, "panel_count", n);
}

void figure_training(struct figure *figure, const struct runset *set,
                     const struct figure_request *request)
{
    (void)request;
    struct lane *list = mem_zero(MAX_MODELS, sizeof *list);
    const char *names[MAX_MODELS];
    double kinds[MAX_MODELS];
    int drawn[QUANTITIES] = {0}, n = fill_lanes(figure, set, list, drawn);
    struct script *out = &figure->script;
    for (int i = 0; i < n; i++) {
        names[i] = list[i].model;
        kinds[i] = list[i].kind;
    }
    put_lanes(figure, list, n, drawn);
    put_panels(out, drawn);
    script_texts(out, "series_name", names, n);
    script_numbers(out, "series_kind", kinds, n);
    script_number(out, "series_count", n);
    int by_steps = !set->n_losses || set->losses[0].by_steps;
    script_text(out, "x_label", by_steps ? "optimiser steps" : "tokens seen");
    figure_say(figure,
               "A training run, averaged over %d equal stretches. The loss of LLaDA is a bound "
               "and not comparable with the loss of other models.",
               BINS);
    if (drawn[HELD])
        figure_say(figure, "Open points: loss on held-out documents.");
    if (drawn[RESIDENT] || drawn[ALLOCATED])
        figure_say(figure,
                   "Memory: largest resident set of the process between two records. Dashed: "
                   "largest amount that the back end had allocated.");
    free(list);
}
