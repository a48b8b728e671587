/* steptime.c - see steptime.h. The parts of each answer are summed over the answers of a point, and
 * divided by the sum of their times. A ceiling that was measured too low leaves the system less
 * than nothing: then the parts sum to more than 100 %, and the record shows by how much. */
#include "lib/analysis/verdict/steptime.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/measure/roof.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/stat/bootstrap.h"

static const double LEVEL = 0.95;

enum { NEEDED, FURTHER, TIME, PASSES, SUMS };

struct answers { /* of a point */
    const json_t *first;
    double *v; /* [n][SUMS] */
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
    const double needed = fmin(1, (prompt + rec_number(r, "committed_tokens")) / rows);
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
    uint32_t *index = mem_zero(a->n, sizeof *index);
    double *drawn = mem_zero(3 * draws, sizeof *drawn), share[3], one[3];
    const double step = shares_of(a, NULL, share);
    json_t *r = about_carried(a->first);
    for (size_t d = 0; d < draws; d++) {
        bootstrap_draw(seed, d, a->n, index);
        shares_of(a, index, one);
        for (size_t k = 0; k < 3; k++)
            drawn[k * draws + d] = one[k];
    }
    json_object_set_new(r, "step_ns", json_real(step));
    for (size_t k = 0; k < 3; k++) {
        const struct interval v = bootstrap_interval(share[k], drawn + k * draws, draws, LEVEL);
        json_object_set_new(r, names[k][0], json_real(v.value));
        rec_set_number(r, names[k][1], a->n > 1 ? v.lo : (double)NAN, "n<2");
        rec_set_number(r, names[k][2], a->n > 1 ? v.hi : (double)NAN, "n<2");
    }
    json_object_set_new(r, "sum_percent", json_real(share[0] + share[1] + fmax(share[2], 0)));
    json_object_set_new(r, "level", json_real(LEVEL));
    rec_set_int(r, "n", (int64_t)a->n);
    free(index);
    free(drawn);
    return r;
}

static struct answers *find(struct answers **list, size_t *n, size_t *cap, const json_t *r)
{
    for (size_t i = 0; i < *n; i++)
        if (!strcmp(about_point((*list)[i].first), about_point(r)))
            return &(*list)[i];
    MEM_GROW(*list, *n, *cap);
    (*list)[*n] = (struct answers){.first = r};
    return &(*list)[(*n)++];
}

json_t *steptime_of(const json_t *records, uint64_t seed, size_t draws)
{
    struct roof roof = {0};
    struct answers *list = NULL;
    size_t n = 0, cap = 0, i;
    json_t *out = json_array();
    const json_t *r;
    json_array_foreach(records, i, r)
        roof_take(&roof, r);
    json_array_foreach(records, i, r) {
        double v[SUMS];
        if (!is_used(r) || !parts_of(r, &roof, v))
            continue;
        struct answers *a = find(&list, &n, &cap, r);
        if (a->n == a->cap) {
            a->cap = 2 * a->cap + 16;
            a->v = mem_resize(a->v, a->cap * SUMS, sizeof *a->v);
        }
        memcpy(a->v + SUMS * a->n++, v, sizeof v);
    }
    for (i = 0; i < n; i++) {
        json_array_append_new(out, record_of(&list[i], seed, draws));
        free(list[i].v);
    }
    free(list);
    roof_free(&roof);
    return out;
}
