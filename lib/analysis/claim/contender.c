/* contender.c - see contender.h. A sampler is plain if all its settings are the defaults of the
 * settings table, except sizes and sampling settings; so a new setting needs no change here. Other
 * points are named by their method, or by their changed settings. */
#include "lib/analysis/claim/contender.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/setting/methods.h"
#include "lib/setting/system.h"

/* ---- plain ---- */

/* 1: a size of the experiment or a sampling setting, not part of the sampler. */
static int is_own(const struct setting *row)
{
    static const char *const names[] = {"temperature", "gumbel", "contract"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(row->name, names[i]))
            return 1;
    return row->type == SETTING_INT && strcmp(row->standard, "0") != 0;
}

static int is_changed(const struct setting *row, const json_t *about)
{
    const json_t *value = json_object_get(about, row->name);
    return value && !json_is_null(value) && !is_own(row) && !about_is_default(row->name, value);
}

static int is_plain(const json_t *about)
{
    const struct settings_table *t = system_of_record(about);
    for (size_t i = 0; t && i < t->n; i++)
        if (is_changed(&t->row[i], about))
            return 0;
    return 1;
}

/* ---- names ---- */

/* The changed settings: "cache=dual unmask=factor". The caller frees. */
static char *settings_name(const json_t *about)
{
    const struct settings_table *t = system_of_record(about);
    struct buf b = {0};
    for (size_t i = 0; t && i < t->n; i++) {
        if (!is_changed(&t->row[i], about))
            continue;
        buf_format(&b, "%s%s=", b.len ? " " : "", t->row[i].name);
        about_value(&b, json_object_get(about, t->row[i].name));
    }
    buf_text(&b, "");
    return b.data;
}

static void name_one(struct contender *c, const struct methods *m)
{
    const char *model = rec_text(c->about, "model");
    const struct method *method = methods_of(m, c->about);
    c->name = c->is_plain ? mem_text(model ? model : "plain")
              : method    ? mem_text(method->name)
                          : settings_name(c->about);
}

/* Appends the value of the axis to the names of methods with several points. */
static void tell_apart(struct contenders *c)
{
    char **names = mem_zero(c->n + 1, sizeof *names);
    for (size_t i = 0; i < c->n; i++) {
        int twins = 0;
        const char *axis = rec_text(c->v[i].about, "axis");
        for (size_t k = 0; k < c->n; k++)
            twins += !c->v[i].is_plain && !strcmp(c->v[i].name, c->v[k].name);
        struct buf b = {0};
        about_value(&b, axis ? json_object_get(c->v[i].about, axis) : NULL);
        names[i] = twins > 1 && b.len ? mem_format("%s %s", c->v[i].name, b.data)
                                      : mem_text(c->v[i].name);
        buf_free(&b);
    }
    for (size_t i = 0; i < c->n; i++) {
        free(c->v[i].name);
        c->v[i].name = names[i];
    }
    free(names);
}

/* ---- choice ---- */

static int compare_contenders(const void *pa, const void *pb)
{
    const struct contender *a = pa, *b = pb;
    int d = a->is_diffusion - b->is_diffusion;
    d = d ? d : b->is_plain - a->is_plain;
    d = d ? d : (b->steps > a->steps) - (b->steps < a->steps);
    return d ? d : strcmp(a->point, b->point);
}

/* The most frequent length, the largest of equals. */
static double usual_length(const struct contenders *c)
{
    double best = NAN;
    size_t most = 0;
    for (size_t i = 0; i < c->n; i++) {
        size_t n = 0;
        for (size_t k = 0; k < c->n; k++)
            n += !(c->v[k].length < c->v[i].length) && !(c->v[k].length > c->v[i].length);
        if (n > most || (n == most && c->v[i].length > best)) {
            most = n;
            best = c->v[i].length;
        }
    }
    return best;
}

static void keep_length(struct contenders *c)
{
    double length = usual_length(c);
    size_t kept = 0;
    for (size_t i = 0; i < c->n; i++)
        if (!(c->v[i].length < length) && !(c->v[i].length > length))
            c->v[kept++] = c->v[i];
    c->n = kept;
}

void contender_find(struct contenders *c, const struct evidence *v, const char *contract,
                    double batch)
{
    const char *point;
    json_t *about;
    struct methods m;
    methods_gather(&m, evidence_list(v, "method"));
    json_object_foreach(v->points, point, about) {
        const char *own = rec_text(about, "contract");
        const double b = rec_number(about, "batch");
        const int kind = about_is_diffusion(about);
        if (kind < 0 || (contract && own && strcmp(own, contract)) || b < batch || b > batch)
            continue;
        MEM_GROW(c->v, c->n, c->cap);
        c->v[c->n++] = (struct contender){
            .point = point, .about = about, .is_diffusion = kind,
            .is_plain = is_plain(about), .steps = rec_number(about, "steps"),
            .length = about_length(about)};
    }
    keep_length(c);
    if (c->n)
        qsort(c->v, c->n, sizeof *c->v, compare_contenders);
    for (size_t i = 0; i < c->n; i++)
        name_one(&c->v[i], &m);
    tell_apart(c);
    methods_free(&m);
}

void contender_free(struct contenders *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->v[i].name);
    free(c->v);
    *c = (struct contenders){0};
}

const struct contender *contender_plain(const struct contenders *c, int is_diffusion)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].is_diffusion == is_diffusion && c->v[i].is_plain)
            return &c->v[i];
    return NULL;
}
