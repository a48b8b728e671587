/* steptime.c - see steptime.h. The parts of each answer are summed over the answers of a prompt,
 * then over the prompts of a point, and divided by the sum of their times. If a ceiling was
 * measured too low, the share of the system is negative. `sum_percent` counts it as 0, so it is
 * then above 100 and shows by how much. */
#include "lib/analysis/verdict/steptime.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/measure/roof.h"
#include "lib/analysis/measure/timing.h"
#include "lib/analysis/records/source.h"
#include "lib/base/mem.h"
#include "lib/base/places.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/stat/bootstrap.h"

static const double LEVEL = 0.95;

enum { NEEDED, FURTHER, TIME, PASSES, SUMS };

struct answers { /* of a point */
    const json_t *first;
    struct places ids; /* of v */
    double *v;         /* [n][SUMS], for each prompt */
    size_t n, cap;
    int64_t tainted;   /* disturbed answers, which are not in v */
};
struct split { /* of points */
    struct answers *v;
    size_t n, cap;
};

static int is_used(const json_t *r)
{
    const char *status = rec_text(r, "status"), *phase = rec_text(r, "phase");
    return !strcmp(rec_kind(r), "generation") && about_point(r) && !*about_stack(r) &&
           !(status && strcmp(status, "ok")) && !(phase && strcmp(phase, "timed")) &&
           rec_int(r, "batch", 1) == 1;
}

/* The parts of an answer. 0: something is not known. */
static int parts_of(const json_t *r, const struct roof *roof, double to[SUMS])
{
    const struct roof_limit limit = roof_find(roof, r);
    const double flops = rec_number(r, "model_flops"), bytes = rec_number(r, "model_bytes");
    const double rows = rec_number(r, "rows"), prompt = rec_number(r, "prompt_tokens");
    const double used = (prompt + rec_number(r, "committed_tokens")) / rows;
    const double needed = rows > 0 && isfinite(used) ? fmin(1, used) : (double)NAN;
    const double read = bytes / limit.bytes_per_s, all = flops / limit.flops_per_s;
    to[NEEDED] = fmax(needed * all, read) * 1e9;
    to[FURTHER] = fmax(all, read) * 1e9 - to[NEEDED];
    to[TIME] = rec_number(r, "e2e_ns");
    to[PASSES] = rec_number(r, "passes");
    return isfinite(needed) && isfinite(read) && isfinite(all) && to[TIME] > 0 && to[PASSES] > 0;
}

/* ---- shares ---- */

/* share[0..2]: architecture, algorithm, system in percent, over the answers index[n]. */
static double shares_of(const struct answers *a, const uint32_t *index, double share[3])
{
    double sum[SUMS];
    bootstrap_sums(a->v, SUMS, index, a->n, sum);
    share[0] = 100 * sum[NEEDED] / sum[TIME];
    share[1] = 100 * sum[FURTHER] / sum[TIME];
    share[2] = 100 - share[0] - share[1];
    return sum[TIME] / sum[PASSES];
}

static json_t *record_of(const struct answers *a, uint64_t seed, size_t draws)
{
    static const char *const names[][3] = {
        {"architecture_percent", "architecture_percent_lo", "architecture_percent_hi"},
        {"algorithm_percent", "algorithm_percent_lo", "algorithm_percent_hi"},
        {"system_percent", "system_percent_lo", "system_percent_hi"}};
    const char *why = a->n ? "n<2" : "every answer was disturbed";
    uint32_t *index = mem_zero(a->n + 1, sizeof *index);
    double *drawn = mem_zero(3 * draws, sizeof *drawn), share[3], one[3];
    const double step = shares_of(a, NULL, share);
    json_t *r = about_carried(a->first);
    for (size_t d = 0; d < draws && a->n; d++) {
        bootstrap_draw(seed, d, a->n, index);
        shares_of(a, index, one);
        for (size_t k = 0; k < 3; k++)
            drawn[k * draws + d] = one[k];
    }
    rec_set_number(r, "step_ns", step, why);
    for (size_t k = 0; k < 3; k++) {
        const struct interval v = bootstrap_interval(share[k], drawn + k * draws, draws, LEVEL);
        rec_set_number(r, names[k][0], v.value, why);
        rec_set_number(r, names[k][1], a->n > 1 ? v.lo : (double)NAN, why);
        rec_set_number(r, names[k][2], a->n > 1 ? v.hi : (double)NAN, why);
    }
    rec_set_number(r, "sum_percent", share[0] + share[1] + fmax(share[2], 0), why);
    json_object_set_new(r, "level", json_real(LEVEL));
    rec_set_int(r, "n", (int64_t)a->n);
    rec_set_int(r, "tainted", a->tainted);
    free(index);
    free(drawn);
    return r;
}

static struct answers *find(struct split *s, const json_t *r)
{
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(about_point(s->v[i].first), about_point(r)))
            return &s->v[i];
    MEM_GROW(s->v, s->n, s->cap);
    s->v[s->n] = (struct answers){.first = r};
    return &s->v[s->n++];
}

/* Adds an answer to its prompt; one without an id is a prompt of its own. */
static void add(struct answers *a, const json_t *r, const double v[SUMS])
{
    const json_t *id = json_object_get(r, "id");
    char *key = json_has(r, "id") ? json_dumps(id, JSON_ENCODE_ANY) : mem_format("own %zu", a->n);
    const size_t at = places_of(&a->ids, key, strlen(key));
    free(key);
    if (a->n == a->cap) {
        a->cap = 2 * a->cap + 16;
        a->v = mem_resize(a->v, a->cap * SUMS, sizeof *a->v);
    }
    double *to = a->v + SUMS * at;
    if (at == a->n)
        memset(a->v + SUMS * a->n++, 0, SUMS * sizeof *to);
    for (size_t k = 0; k < SUMS; k++)
        to[k] += v[k];
}

/* Sorts the answers into points. -1: they are of several machines. */
static int sort(struct split *s, const json_t *records, const struct roof *roof, struct err *e)
{
    const json_t *r;
    size_t i;
    json_array_foreach(records, i, r) {
        double v[SUMS];
        if (!is_used(r) || !parts_of(r, roof, v))
            continue;
        struct answers *a = find(s, r);
        if (!source_same_machine(s->v[0].first, r)) {
            const char *x = source_machine(s->v[0].first), *y = source_machine(r);
            return err_set(e, EXIT_BAD_DATA, "--split: expected answers of one machine, got those "
                           "of %s and of %s", x ? x : "an unknown one", y ? y : "an unknown one");
        }
        if (timing_is_tainted(r))
            a->tainted++;
        else
            add(a, r, v);
    }
    return 0;
}

json_t *steptime_of(const json_t *records, uint64_t seed, size_t draws, struct err *e)
{
    struct roof roof = {0};
    struct split s = {0};
    size_t i;
    json_t *out = NULL;
    const json_t *r;
    json_array_foreach(records, i, r)
        roof_take(&roof, r);
    if (!sort(&s, records, &roof, e))
        out = json_array();
    for (i = 0; i < s.n; i++) {
        if (out)
            json_array_append_new(out, record_of(&s.v[i], seed, draws));
        places_free(&s.v[i].ids);
        free(s.v[i].v);
    }
    free(s.v);
    roof_free(&roof);
    return out;
}
