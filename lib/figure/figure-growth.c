/* figure-growth.c - memory beyond the weights against the length of the answer, with two fits:
 * a power of the length (its exponent) and a line (bytes a token). If a sweep has several
 * points at one size, the point with the most memory counts, because it must fit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"
#include "lib/figure/figure.h"
#include "lib/figure/series.h"
#include "lib/record/rec.h"
#include "lib/stat/trend.h"

enum { MAX_LENGTHS = 64 };

struct growth { /* the points of one model, setting and batch size */
    double length[MAX_LENGTHS], bytes[MAX_LENGTHS];
    size_t n;
};

static int compare_rows(const void *pa, const void *pb)
{
    const struct config_row *a = pa, *b = pb;
    int d = (int)a->kind - (int)b->kind;
    d = d ? d : strcmp(a->name, b->name);
    d = d ? d : (a->batch > b->batch) - (a->batch < b->batch);
    d = d ? d : (a->length > b->length) - (a->length < b->length);
    return d ? d : (a->y.at > b->y.at) - (a->y.at < b->y.at);
}

static int is_beyond(const struct config_row *c, const void *ctx)
{
    (void)ctx;
    return !c->oom && c->length > 0 && gnuplot_drawable(c->y.at, 1);
}

/* Sets *g to the rows of one curve, which begins at row i. Returns the row after them. */
static size_t gather_curve(const struct config_table *c, size_t i, struct growth *g)
{
    const struct config_row *first = &c->v[i];
    g->n = 0;
    for (; i < c->n && !strcmp(c->v[i].name, first->name) && c->v[i].kind == first->kind &&
           figure_same(c->v[i].batch, first->batch); i++) {
        size_t at = g->n && figure_same(g->length[g->n - 1], c->v[i].length) ? g->n - 1 : g->n;
        if (at == MAX_LENGTHS)
            continue;
        g->length[at] = c->v[i].length;
        g->bytes[at] = c->v[i].y.at; /* ascending: the last is the largest */
        g->n = at + 1;
    }
    return i;
}

struct laws {
    struct trend power, line; /* fits of the logarithms; of the values */
    int straight; /* 1: the line fits better, or there are only two lengths */
    size_t lengths;
};

static struct laws laws_of(const struct growth *g)
{
    double x[MAX_LENGTHS], y[MAX_LENGTHS], by_power = 0, by_line = 0;
    for (size_t i = 0; i < g->n; i++) {
        x[i] = log(g->length[i]);
        y[i] = log(g->bytes[i]);
    }
    struct laws l = {trend_fit(x, y, g->n, 0.95), trend_fit(g->length, g->bytes, g->n, 0.95), 0,
                     g->n};
    for (size_t i = 0; i < g->n; i++) {
        by_power += fabs(exp(l.power.at + l.power.slope * x[i]) / g->bytes[i] - 1);
        by_line += fabs((l.line.at + l.line.slope * g->length[i]) / g->bytes[i] - 1);
    }
    l.straight = g->n < 3 || by_line <= by_power;
    return l;
}

/* Adds "llada-demo, batch 4: exponent 0.98 [0.95, 1.01], 12.3 [12.1, 12.5] KiB a token." */
static void say_laws(struct figure *f, const struct config_row *c, const struct laws *l)
{
    struct buf b = {0};
    buf_format(&b, "%s, batch %.4g: ", c->name, c->batch);
    if (l->lengths > 2)
        buf_format(&b, "exponent %.3g [%.3g, %.3g], ", l->power.slope, l->power.lo, l->power.hi);
    display_interval(&b, "memory_bytes", l->line.slope, l->line.lo, l->line.hi);
    figure_say(f, "%s a token.", b.data);
    buf_free(&b);
}

/* "llada-demo, batch 4: n^0.98, 12.3 KiB/token". The caller frees. */
static char *short_name(const struct config_row *c, const struct laws *l)
{
    struct buf b = {0};
    buf_format(&b, "%s, batch %.4g: ", c->name, c->batch);
    if (l->lengths > 2)
        buf_format(&b, "n^%.2g, ", l->power.slope);
    display_value(&b, "memory_bytes", l->line.slope);
    buf_text(&b, "/token");
    return b.data;
}

static void put_point(struct figure *f, const struct config_row *c, double length, double bytes)
{
    struct buf b = {0};
    display_value(&b, "memory_bytes", bytes);
    script_row(&f->script, "nn", length, bytes);
    figure_tip(f, 1, length, bytes, NULL, "%s, batch %.4g, %.0f tokens: %s beyond the weights",
               c->name, c->batch, length, b.data);
    buf_free(&b);
}

static void put_growth(struct figure *f, struct series *l, char **names, double (*fits)[SERIES_MAX],
                       const struct config_row *c, const struct growth *g)
{
    if (l->n == SERIES_MAX) {
        f->script.skipped += (int64_t)g->n;
        return;
    }
    const struct laws laws = laws_of(g);
    const struct trend *drawn = laws.straight ? &laws.line : &laws.power;
    fits[0][l->n] = drawn->at;
    fits[1][l->n] = drawn->slope;
    fits[2][l->n] = laws.straight;
    names[l->n] = short_name(c, &laws);
    say_laws(f, c, &laws);
    series_open(&f->script, l, names[l->n], (double)c->kind, 1, 2);
    for (size_t i = 0; i < g->n; i++)
        put_point(f, c, g->length[i], g->bytes[i]);
}

void figure_growth(struct figure *f, const struct runset *s, const struct figure_request *q)
{
    struct config_table c = {0};
    const char *metric = figure_memory_metric(s, q);
    config_table_metric(&c, s, metric);
    const char *contract = figure_contract(&c, q, "fixed");
    for (size_t i = 0; i < c.n; i++)
        c.v[i].y.at -= rec_number(runset_find(s, "metric", c.v[i].point, "memory_weights_bytes"),
                                  "value");
    config_table_keep(&c, is_beyond, NULL);
    if (c.n)
        qsort(c.v, c.n, sizeof *c.v, compare_rows);
    struct growth *g = mem_zero(1, sizeof *g);
    struct series l = {0};
    char *names[SERIES_MAX];
    double fits[3][SERIES_MAX];
    figure_say(f, "Memory beyond the weights against the length of the answer (n). Metric: %s, "
                  "the largest of the points of a sweep. Two fits by least squares, with 95 %% "
                  "intervals: a straight line (bytes a token) and, from three lengths on, a power "
                  "of n (its exponent). The figure draws the better fit. Prompts and fixed buffers "
                  "are included, so memory that is linear in the tokens has an exponent below "
                  "1.%s%s%s",
               display_metric_name(metric), *contract ? " Contract: " : "", contract,
               *contract ? "." : "");
    script_table(&f->script, "points", "length bytes");
    for (size_t i = 0, end; i < c.n; i = end) {
        end = gather_curve(&c, i, g);
        if (g->n > 1)
            put_growth(f, &l, names, fits, &c.v[i], g);
        else
            f->why = "every setting was measured at one length only";
    }
    script_table_end(&f->script);
    series_put(&f->script, &l);
    script_numbers(&f->script, "fit_at", fits[0], l.n);
    script_numbers(&f->script, "fit_slope", fits[1], l.n);
    script_numbers(&f->script, "fit_straight", fits[2], l.n);
    for (int i = 0; i < l.n; i++)
        free(names[i]);
    free(g);
    config_table_free(&c);
}
