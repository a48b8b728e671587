/* figure-pruning.c - perplexity and accuracy of pruned models against the share of removed
 * parameters: a curve for each score, a column of panels for each source model. prune records
 * name the models. Their qualities come from comparisons with the source model, prompt by
 * prompt. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/figure/figure.h"
#include "lib/figure/series.h"
#include "lib/record/rec.h"

enum { COLUMNS = 7, SYSTEMS_MAX = 4 };

struct pruning_row {
    const char *system, *score; /* borrowed */
    double removed;             /* percent of the parameters */
    double steps;               /* training steps after the pruning; 0: none */
    struct value ppl, accuracy; /* ratio to the source model; difference in points */
};

/* The comparison of a model with its source, in the first metric whose name ends with `tail`; NaN:
 * none. */
static struct value find_value(struct figure *f, const struct runset *s, const char *model,
                               const char *effect, const char *tail, double unit)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "comparison"), i, r) {
        const char *metric = rec_text(r, "metric");
        size_t n = metric ? strlen(metric) : 0, m = strlen(tail);
        if (n < m || strcmp(metric + n - m, tail) || !rec_is(r, "by", "model") ||
            !rec_is(r, "setting", model) || !rec_is(r, "effect", effect))
            continue;
        struct value v = {unit * rec_number(r, "value"), unit * rec_number(r, "lo"),
                          unit * rec_number(r, "hi"), r};
        figure_used(f, &v);
        return v;
    }
    return (struct value){NAN, NAN, NAN, NULL};
}

static int rank_of(const char *score)
{
    static const char *const known[] = {"first", "l2", "gate", "activation"};
    int i = 0;
    while (i < 4 && strcmp(score, known[i]))
        i++;
    return i;
}

static int compare_rows(const void *pa, const void *pb)
{
    const struct pruning_row *a = pa, *b = pb;
    int d = strcmp(a->system, b->system);
    d = d ? d : (a->steps > b->steps) - (a->steps < b->steps);
    d = d ? d : rank_of(a->score) - rank_of(b->score);
    d = d ? d : strcmp(a->score, b->score);
    return d ? d : (a->removed > b->removed) - (a->removed < b->removed);
}

/* The rows in the order of compare_rows(). The caller frees. */
static struct pruning_row *find_rows(struct figure *f, const struct runset *s, size_t *n)
{
    const json_t *list = runset_kind(s, "prune"), *r;
    struct pruning_row *v = mem_zero(json_array_size(list) + 1, sizeof *v);
    size_t i;
    *n = 0;
    json_array_foreach(list, i, r) {
        const char *model = rec_text(r, "model"), *score = rec_text(r, "score");
        struct pruning_row new = {.system = rec_text(r, "source_model"), .score = score,
                          .removed = 100 * rec_number(r, "removed_ratio"),
                          .steps = (double)rec_int(r, "recovery_steps", 0)};
        if (!model || !score || !new.system || isnan(new.removed))
            continue;
        new.ppl = find_value(f, s, model, "ratio", "ppl", 1);
        new.accuracy = find_value(f, s, model, "difference", "accuracy", 100);
        if (gnuplot_drawable(new.ppl.at, 1))
            v[(*n)++] = new;
        else
            f->script.skipped++;
    }
    qsort(v, *n, sizeof *v, compare_rows);
    return v;
}

/* For each source model, the upper panel shows perplexity and the lower panel accuracy. */
static void put_tips(struct figure *f, const struct pruning_row *r, int system)
{
    char *name = r->score ? mem_format("%s%s", r->score, r->steps > 0 ? ", trained further" : "")
                          : mem_text("whole");
    figure_tip(f, system, r->removed, r->ppl.at, NULL, "%s, %.3g %% removed: perplexity x %.3g",
               name, r->removed, r->ppl.at);
    figure_tip(f, SYSTEMS_MAX + system, r->removed, r->accuracy.at, NULL,
               "%s, %.3g %% removed: accuracy %+.3g points", name, r->removed, r->accuracy.at);
    free(name);
}

static void put_row(struct figure *f, const struct pruning_row *r, int system)
{
    put_tips(f, r, system);
    script_row(&f->script, "nnnnnnn", r->removed, r->ppl.at, isnan(r->ppl.lo) ? r->ppl.at
               : r->ppl.lo, isnan(r->ppl.hi) ? r->ppl.at : r->ppl.hi, r->accuracy.at,
               r->accuracy.lo, r->accuracy.hi);
}

/* The curve of a score begins at the source model, from which nothing was removed. */
static void put_all(struct figure *f, struct series *l, const struct pruning_row *v, size_t n,
                    const char **systems, double *n_systems)
{
    static const struct pruning_row whole = {.ppl = {1, 1, 1, NULL}};
    for (size_t i = 0; i < n; i++) {
        const struct pruning_row *r = &v[i], *b = i ? r - 1 : NULL;
        int other = !b || strcmp(b->system, r->system);
        if (other && *n_systems >= SYSTEMS_MAX)
            return;
        if (other) {
            systems[(size_t)*n_systems] = r->system;
            *n_systems += 1;
        }
        if (other || (r->steps > 0) != (b->steps > 0) ||
            (!(r->steps > 0) && strcmp(r->score, b->score))) {
            if (!series_open(&f->script, l, r->steps > 0 ? "trained further" : r->score, 0,
                             *n_systems, COLUMNS))
                return;
            if (!(r->steps > 0))
                put_row(f, &whole, (int)*n_systems);
        }
        put_row(f, r, (int)*n_systems);
    }
}

void figure_pruning(struct figure *f, const struct runset *s, const struct figure_request *q)
{
    (void)q;
    size_t n;
    struct pruning_row *v = find_rows(f, s, &n);
    struct series l = {0};
    const char *systems[SYSTEMS_MAX] = {0};
    double n_systems = 0, steps = 0;
    script_table(&f->script, "points",
                 "removed_percent ppl_ratio lo hi accuracy_points points_lo points_hi");
    put_all(f, &l, v, n, systems, &n_systems);
    script_table_end(&f->script);
    series_put(&f->script, &l);
    script_texts(&f->script, "panel_title", systems, (int)n_systems);
    script_number(&f->script, "panel_count", n_systems);
    for (size_t i = 0; i < n; i++)
        steps = fmax(steps, v[i].steps);
    figure_say(f, "Pruned models compared with their source model, prompt by prompt, by the share "
                  "of removed parameters and by the score that chose them. Above: ratio of the "
                  "perplexities of reference answers (for diffusion models, of the bound). Below: "
                  "change of the share of right answers.");
    if (steps > 0)
        figure_say(f, "Trained further: the model after %.0f more steps of training.", steps);
    if (!n)
        f->why = "no pruned model is compared with its source";
    free(v);
}
