/* contender.c - see contender.h. A sampler is plain if all its settings have the default of the
 * settings table; sizes and sampling settings do not count. So a new setting needs no change here.
 * Other points are named by their method, or by their changed settings. */
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

/* ---- plain samplers ---- */

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
    return value && !json_is_null(value) && !is_own(row) &&
           !about_is_default(about, row->name, value);
}

static int is_plain(const json_t *about)
{
    const struct settings_table *table = system_of_record(about);
    for (size_t i = 0; table && i < table->n; i++)
        if (is_changed(&table->row[i], about))
            return 0;
    return 1;
}

/* ---- names ---- */

/* The changed settings: "cache=dual unmask=factor". The caller frees. */
static char *settings_name(const json_t *about)
{
    const struct settings_table *table = system_of_record(about);
    struct buf text = {0};
    for (size_t i = 0; table && i < table->n; i++) {
        if (!is_changed(&table->row[i], about))
            continue;
        buf_format(&text, "%s%s=", text.len ? " " : "", table->row[i].name);
        about_value(&text, json_object_get(about, table->row[i].name));
    }
    buf_text(&text, "");
    return text.data;
}

static void name_one(struct contender *contender, const struct methods *methods)
{
    const char *model = rec_text(contender->about, "model");
    const struct method *method = methods_of(methods, contender->about);
    contender->name = contender->is_plain ? mem_text(model ? model : "plain")
                      : method             ? methods_name(method, contender->about)
                                           : settings_name(contender->about);
}

/* Appends the value of the axis to each name that several points have. */
static void tell_apart(struct contenders *contenders)
{
    char **names = mem_zero(contenders->n + 1, sizeof *names);
    for (size_t i = 0; i < contenders->n; i++) {
        int twins = 0;
        const char *axis = rec_text(contenders->v[i].about, "axis");
        for (size_t k = 0; k < contenders->n; k++)
            twins += !contenders->v[i].is_plain &&
                     !strcmp(contenders->v[i].name, contenders->v[k].name);
        struct buf text = {0};
        about_value(&text, axis ? json_object_get(contenders->v[i].about, axis) : NULL);
        names[i] = twins > 1 && text.len ? mem_format("%s %s", contenders->v[i].name, text.data)
                                         : mem_text(contenders->v[i].name);
        buf_free(&text);
    }
    for (size_t i = 0; i < contenders->n; i++) {
        free(contenders->v[i].name);
        contenders->v[i].name = names[i];
    }
    free(names);
}

/* ---- choice of contenders ---- */

static int compare_contenders(const void *pa, const void *pb)
{
    const struct contender *a = pa, *b = pb;
    int d = a->is_diffusion - b->is_diffusion;
    d = d ? d : b->is_plain - a->is_plain;
    d = d ? d : (b->steps > a->steps) - (b->steps < a->steps);
    return d ? d : strcmp(a->point, b->point);
}

/* The most frequent length; if several are as frequent, the largest. */
static double usual_length(const struct contenders *contenders)
{
    double best = NAN;
    size_t most = 0;
    for (size_t i = 0; i < contenders->n; i++) {
        size_t n = 0;
        for (size_t k = 0; k < contenders->n; k++)
            n += !(contenders->v[k].length < contenders->v[i].length) &&
                 !(contenders->v[k].length > contenders->v[i].length);
        if (n > most || (n == most && contenders->v[i].length > best)) {
            most = n;
            best = contenders->v[i].length;
        }
    }
    return best;
}

static void keep_length(struct contenders *contenders)
{
    double length = usual_length(contenders);
    size_t kept = 0;
    for (size_t i = 0; i < contenders->n; i++)
        if (!(contenders->v[i].length < length) && !(contenders->v[i].length > length))
            contenders->v[kept++] = contenders->v[i];
    contenders->n = kept;
}

void contender_find(struct contenders *contenders, const struct evidence *evidence,
                    const char *contract, double batch)
{
    const char *point;
    json_t *about;
    struct methods methods;
    methods_gather(&methods, evidence_list(evidence, "method"));
    json_object_foreach(evidence->points, point, about) {
        const char *own = rec_text(about, "contract");
        const double own_batch = rec_number(about, "batch");
        const int kind = about_is_diffusion(about);
        if (kind < 0 || (contract && own && strcmp(own, contract)) || own_batch < batch ||
            own_batch > batch)
            continue;
        MEM_GROW(contenders->v, contenders->n, contenders->cap);
        contenders->v[contenders->n++] = (struct contender){
            .point = point, .about = about, .is_diffusion = kind,
            .is_plain = is_plain(about), .steps = rec_number(about, "steps"),
            .length = about_length(about)};
    }
    keep_length(contenders);
    if (contenders->n)
        qsort(contenders->v, contenders->n, sizeof *contenders->v, compare_contenders);
    for (size_t i = 0; i < contenders->n; i++)
        name_one(&contenders->v[i], &methods);
    tell_apart(contenders);
    methods_free(&methods);
}

void contender_free(struct contenders *contenders)
{
    for (size_t i = 0; i < contenders->n; i++)
        free(contenders->v[i].name);
    free(contenders->v);
    *contenders = (struct contenders){0};
}

const struct contender *contender_plain(const struct contenders *contenders, int is_diffusion)
{
    for (size_t i = 0; i < contenders->n; i++)
        if (contenders->v[i].is_diffusion == is_diffusion && contenders->v[i].is_plain)
            return &contenders->v[i];
    return NULL;
}
