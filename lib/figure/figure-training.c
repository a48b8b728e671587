/* figure-training.c - a training run: loss, gradient norm, tokens a second and memory against the
 * tokens seen. Each quantity has a panel, each model a line. A record may lack a quantity: older
 * records have no memory, the training of a prior has no tokens. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/figure/figure.h"

enum { MAX_MODELS = 8, BINS = 300 };
enum quantity { LOSS, NORM, SPEED, RESIDENT, ALLOCATED, HELD, QUANTITIES };

/* Sums over equal stretches of the training, for means. */
struct lane {
    const char *model;
    double kind;
    double at[BINS], sum[QUANTITIES][BINS], count[QUANTITIES][BINS], records[BINS];
};

static struct lane *lane_of(struct lane *list, int *n, const struct run_loss *r)
{
    for (int i = 0; i < *n; i++)
        if (!strcmp(list[i].model, r->model))
            return &list[i];
    if (*n == MAX_MODELS)
        return NULL;
    list[*n] = (struct lane){.model = r->model,
                             .kind = (double)config_table_kind_of(r->is_diffusion)};
    return &list[(*n)++];
}

/* Sets drawn[q] to 1 if a record has quantity q. Returns the number of models. */
static int fill_lanes(struct figure *f, const struct runset *s, struct lane *list, int *drawn)
{
    double most = 0;
    int n = 0;
    for (size_t i = 0; i < s->n_losses; i++)
        most = gnuplot_drawable(s->losses[i].at, 0) ? fmax(most, s->losses[i].at) : most;
    for (size_t i = 0; i < s->n_losses; i++) {
        const struct run_loss *r = &s->losses[i];
        const double value[QUANTITIES] = {r->loss, r->norm, r->speed, r->resident_mb,
                                          r->allocated_mb, r->held};
        struct lane *c = gnuplot_drawable(r->at, 0) && r->at >= 0 ? lane_of(list, &n, r) : NULL;
        if (!c) {
            f->script.skipped++;
            continue;
        }
        int bin = most > 0 ? (int)(r->at / most * (BINS - 1)) : 0;
        c->at[bin] += r->at;
        c->records[bin]++;
        for (int q = 0; q < QUANTITIES; q++)
            if (gnuplot_drawable(value[q], 0)) {
                c->sum[q][bin] += value[q];
                c->count[q][bin]++;
                drawn[q] = 1;
            }
    }
    return n;
}

/* Texts of stretch b in the panel of each drawn quantity. */
static void put_tips(struct figure *f, const struct lane *c, int b, const int *drawn)
{
    static const char *const names[] = {"loss", "gradient norm", "tokens/s", "MB resident"};
    double at = c->at[b] / c->records[b];
    for (int q = LOSS, panel = 0; q < ALLOCATED; q++) {
        panel += drawn[q] || (q == RESIDENT && drawn[ALLOCATED]);
        double v = c->sum[q][b] / c->count[q][b];
        if (drawn[q])
            figure_tip(f, panel, at, v, NULL, "%s at %.4g: %s %.4g", c->model, at, names[q], v);
    }
}

static void put_lanes(struct figure *f, const struct lane *list, int n, const int *drawn)
{
    struct script *out = &f->script;
    script_table(out, "points", "seen loss grad_norm tokens_per_s process_mb allocated_mb "
                           "valid_loss");
    for (int i = 0; i < n; i++) {
        const struct lane *c = &list[i];
        int means = 0;
        if (i)
            script_next(out, 1 + QUANTITIES);
        for (int b = 0; b < BINS; b++)
            if (c->records[b] > 0) {
                script_row(out, "nnnnnnn", c->at[b] / c->records[b],
                           c->sum[LOSS][b] / c->count[LOSS][b], c->sum[NORM][b] / c->count[NORM][b],
                           c->sum[SPEED][b] / c->count[SPEED][b],
                           c->sum[RESIDENT][b] / c->count[RESIDENT][b],
                           c->sum[ALLOCATED][b] / c->count[ALLOCATED][b],
                           c->sum[HELD][b] / c->count[HELD][b]);
                if (means++ % 8 == 0) /* more would overlap for a pointer */
                    put_tips(f, c, b, drawn);
            }
    }
    script_table_end(out);
}

/* Lists the panels: the column of the table and the label of the axis. */
static void put_panels(struct script *out, const int *drawn)
{
    static const char *const labels[ALLOCATED] = {"loss (nats per token)", "gradient norm",
                                                   "tokens/s", "memory (MB)"};
    const char *label[ALLOCATED];
    double column[ALLOCATED];
    int n = 0;
    for (int q = LOSS; q < ALLOCATED; q++)
        if (drawn[q] || (q == RESIDENT && drawn[ALLOCATED])) {
            label[n] = labels[q];
            column[n++] = q + 2;
        }
    script_texts(out, "panel_label", label, n);
    script_numbers(out, "panel_column", column, n);
    script_number(out, "panel_count", n);
}

void figure_training(struct figure *f, const struct runset *s, const struct figure_request *q)
{
    (void)q;
    struct lane *list = mem_zero(MAX_MODELS, sizeof *list);
    const char *names[MAX_MODELS];
    double kinds[MAX_MODELS];
    int drawn[QUANTITIES] = {0}, n = fill_lanes(f, s, list, drawn);
    struct script *out = &f->script;
    for (int i = 0; i < n; i++) {
        names[i] = list[i].model;
        kinds[i] = list[i].kind;
    }
    put_lanes(f, list, n, drawn);
    put_panels(out, drawn);
    script_texts(out, "series_name", names, n);
    script_numbers(out, "series_kind", kinds, n);
    script_number(out, "series_count", n);
    int by_steps = !s->n_losses || s->losses[0].by_steps;
    script_text(out, "x_label", by_steps ? "optimiser steps" : "tokens seen");
    figure_say(f, "A training run, averaged over %d equal stretches. The loss of LLaDA is a bound "
                  "and not comparable with the loss of other models.", BINS);
    if (drawn[HELD])
        figure_say(f, "Open points: loss on held-out documents.");
    if (drawn[RESIDENT] || drawn[ALLOCATED])
        figure_say(f, "Memory: largest resident set of the process between two records. Dashed: "
                      "largest amount that the back end had allocated.");
    free(list);
}
