/* figure-kinds.c - latency by kind of prompt: the median and the 95th percentile of the timed
 * answers of each configuration, at one contract, batch size and length. A percentile needs
 * enough answers (launch_needed() in launch.h), else it is not drawn. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/figure/figure.h"
#include "lib/figure/series.h"
#include "lib/stat/launch.h"

enum { MAX_KINDS = 8 };

static const double TAIL = 0.95;

/* The kinds of the timed prompts, sorted by name. Returns how many. */
static int find_kinds(const struct runset *s, const char **kinds)
{
    int n = 0;
    for (size_t i = 0; i < s->n_points; i++) {
        const char *kind = s->points[i].prompt_kind;
        int at = 0;
        while (at < n && strcmp(kinds[at], kind) < 0)
            at++;
        if (!s->points[i].timed || !*kind || (at < n && !strcmp(kinds[at], kind)) || n == MAX_KINDS)
            continue;
        memmove(kinds + at + 1, kinds + at, (size_t)(n - at) * sizeof *kinds);
        kinds[at] = kind;
        n++;
    }
    return n;
}

static void put_kind(struct figure *f, const struct runset *s, const struct config_row *c,
                     const char *kind, const char *name, int series, double place, double *v,
                     double *most)
{
    struct value drawn = {(double)NAN, (double)NAN, (double)NAN, NULL};
    const json_t *about = runset_config(s, c->point);
    size_t n = 0;
    for (size_t i = 0; i < s->n_points; i++) {
        const struct run_point *p = &s->points[i];
        if (p->about == about && p->timed && !isnan(p->e2e_s) && !strcmp(p->prompt_kind, kind))
            v[n++] = p->e2e_s * 1e3;
    }
    if (!n)
        return;
    drawn.at = stat_median(v, n); /* sorts */
    int enough = n >= launch_needed(TAIL, 0.95);
    drawn.hi = enough ? stat_quantile(v, n, TAIL, 0.95).value : (double)NAN;
    double tail = drawn.hi;
    if (!figure_scale(f, &drawn, 1, 1))
        return;
    script_row(&f->script, "nnnn", place, drawn.at, tail, (double)n);
    const double at[2] = {series, 0};
    char *most_text = isnan(tail) ? mem_text("") : mem_format(", 95th percentile %.4g ms", tail);
    figure_tip(f, 1, place, drawn.at, at, "%s, %s: median %.4g ms%s, %zu answers", name, kind,
               drawn.at, most_text, n);
    free(most_text);
    *most = fmax(*most, fmax(drawn.at, tail));
    f->n_lo = fmin(f->n_lo, (double)n);
    f->n_hi = fmax(f->n_hi, (double)n);
}

struct kinds_size { double batch, length; };

static int keep_size(const struct config_row *c, const void *ctx)
{
    const struct kinds_size *z = ctx;
    return figure_same(c->batch, z->batch) && figure_same(c->length, z->length);
}

static struct kinds_size choose_size(const struct config_table *c, const struct figure_request *q)
{
    struct kinds_size z = {q->batch, q->length};
    for (size_t i = 0; isnan(q->batch) && i < c->n; i++)
        z.batch = fmin(z.batch, c->v[i].batch);
    z.length = isnan(z.length) ? config_table_usual(c, CONFIG_LENGTH) : z.length;
    return z;
}

static int first_llama(const void *pa, const void *pb)
{
    const struct config_row *a = pa, *b = pb;
    int d = (b->kind == CONFIG_AUTOREGRESSIVE) - (a->kind == CONFIG_AUTOREGRESSIVE);
    d = d ? d : strcmp(a->name, b->name);
    double u = config_table_work(a, NULL), v = config_table_work(b, NULL);
    d = d ? d : (u > v) - (u < v);
    return d ? d : strcmp(a->point, b->point);
}

void figure_kinds(struct figure *f, const struct runset *s, const struct figure_request *q)
{
    struct config_table c = {0};
    const char *kinds[MAX_KINDS];
    int n = find_kinds(s, kinds);
    config_table_all(&c, s);
    const char *contract = figure_contract(&c, q, "answer");
    const struct kinds_size z = choose_size(&c, q);
    config_table_keep(&c, keep_size, &z);
    if (c.n)
        qsort(c.v, c.n, sizeof *c.v, first_llama);
    double *v = mem_zero(s->n_points + 1, sizeof *v);
    struct series l = {0};
    char *names[SERIES_MAX];
    double most = 0;
    script_table(&f->script, "points", "kind_index median_ms p95_ms n");
    for (size_t i = 0; i < c.n && n && l.n < SERIES_MAX; i++) {
        char *at = *c.v[i].along ? figure_point_name(&c.v[i]) : NULL;
        names[l.n] = mem_format("%s%s%s", c.v[i].name, at ? ", " : "", at ? at : "");
        series_open(&f->script, &l, names[l.n], (double)c.v[i].kind, 1, 4);
        free(at);
        for (int k = 0; k < n; k++)
            put_kind(f, s, &c.v[i], kinds[k], names[l.n - 1], l.n, k + 1, v, &most);
    }
    script_next(&f->script, 4);
    script_table_end(&f->script);
    series_put(&f->script, &l);
    script_texts(&f->script, "kind_name", kinds, n);
    script_number(&f->script, "kind_count", n);
    script_number(&f->script, "latency_hi", most);
    char *what = figure_deliver(contract, z.length);
    figure_say(f, "End-to-end latency by kind of prompt. Points: medians over the timed answers. "
                  "Bars: up to the 95th percentile, if there are %zu answers or more. Batch %.4g, "
                  "answers of %s.", launch_needed(TAIL, 0.95), z.batch, what);
    if (n == MAX_KINDS)
        figure_say(f, "The figure shows at most %d kinds.", MAX_KINDS);
    if (!n)
        f->why = "no prompt has a task or a source";
    for (int i = 0; i < l.n; i++)
        free(names[i]);
    free(what);
    free(v);
    config_table_free(&c);
}
