/* figure-waterfall.c - memory by kind, a bar for each stair: first the base of make ablation,
 * then the options that add up to the level that saves most (records of kind `ablation` with a
 * `stair`). Each system has a panel. The number on a bar is its change from the first bar, in
 * percent. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"
#include "lib/figure/figure.h"
#include "lib/record/rec.h"

enum { KINDS = 3, PANELS_MOST = 4 };

struct stair {
    const char *arch, *option; /* borrowed */
    double place, bytes[KINDS];
};

static double whole_of(const struct stair *s)
{
    return s->bytes[0] + s->bytes[1] + s->bytes[2];
}

static int by_place(const void *pa, const void *pb)
{
    const struct stair *a = pa, *b = pb;
    int d = strcmp(a->arch, b->arch);
    return d ? d : (a->place > b->place) - (a->place < b->place);
}

/* The stairs, sorted by system and place. The caller frees. */
static struct stair *find_stairs(struct figure *f, const struct runset *s, size_t *n)
{
    static const char *const kinds[KINDS] = {"memory_weights_bytes", "memory_kv_bytes",
                                             "memory_activations_bytes"};
    const json_t *list = runset_kind(s, "ablation"), *r;
    struct stair *v = mem_zero(json_array_size(list) + 1, sizeof *v);
    size_t i;
    *n = 0;
    json_array_foreach(list, i, r) {
        struct stair one = {rec_text(r, "arch"), rec_text(r, "option"), rec_number(r, "stair"),
                            {0}};
        if (!one.arch || !one.option || isnan(one.place))
            continue;
        for (size_t k = 0; k < KINDS; k++)
            one.bytes[k] = rec_number(r, kinds[k]);
        if (whole_of(&one) > 0)
            v[(*n)++] = one;
        else
            f->script.skipped++;
    }
    qsort(v, *n, sizeof *v, by_place);
    return v;
}

static double most_of(const struct stair *v, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, whole_of(&v[i]));
    return most;
}

static void put_tip(struct figure *f, const struct stair *s, int panel, double place,
                    struct display_scale unit)
{
    static const double BAR = 0.31;
    const double corner[2] = {place + BAR, whole_of(s) / unit.divide};
    figure_tip(f, panel, place - BAR, 0, corner,
               "%s, %s: %.4g %s (weights %.4g, cache %.4g, activations %.4g)", s->arch, s->option,
               corner[1], unit.unit, s->bytes[0] / unit.divide, s->bytes[1] / unit.divide,
               s->bytes[2] / unit.divide);
}

void figure_waterfall(struct figure *f, const struct runset *s, const struct figure_request *q)
{
    (void)q;
    size_t n, first = 0;
    struct stair *v = find_stairs(f, s, &n);
    const char *panel[PANELS_MOST];
    int panels = 0;
    const struct display_scale unit = display_scale("memory_bytes", most_of(v, n));
    script_table(&f->script, "bars", "place weights cache activations change option");
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(v[i].arch, v[i - 1].arch)) {
            if (panels == PANELS_MOST)
                break;
            if (panels)
                script_next(&f->script, 6);
            panel[panels++] = v[i].arch;
            first = i;
        }
        script_row(&f->script, "nnnnnt", (double)(i - first + 1), v[i].bytes[0] / unit.divide,
                   v[i].bytes[1] / unit.divide, v[i].bytes[2] / unit.divide,
                   100 * (whole_of(&v[i]) / whole_of(&v[first]) - 1), v[i].option);
        put_tip(f, &v[i], panels, (double)(i - first + 1), unit);
    }
    script_table_end(&f->script);
    script_texts(&f->script, "panel_title", panel, panels);
    script_number(&f->script, "panel_count", panels);
    script_number(&f->script, "memory_hi", most_of(v, n) / unit.divide);
    script_text(&f->script, "memory_label", unit.unit);
    f->level = (double)NAN; /* counters have no interval */
    figure_say(f, "Memory of a batch by kind, at its peak: the base of the ablation, then the "
                  "levels of saving; each level includes the savings of the level before. Number "
                  "on a bar: change from the base.");
    if (!n)
        f->why = "no ablation records";
    free(v);
}
