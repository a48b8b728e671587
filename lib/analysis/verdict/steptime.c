/* steptime.c - see steptime.h. The parts of all answers of a point are summed and divided by the
 * sum of their times. If a ceiling was measured too low, the share of the system is negative.
 * `sum_percent` counts a negative share as 0, so the excess over 100 shows the error of the
 * ceiling. */
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

struct answers { /* the answers of one point */
    const json_t *first; /* its first record; borrowed */
    struct places ids; /* id of each prompt: its place in v */
    double *v;         /* [n][SUMS]: sums over the answers to each prompt */
    size_t n, cap;
    int64_t tainted;   /* number of disturbed answers, which are not in v */
};
struct split { /* all points */
    struct answers *v;
    size_t n, cap;
};

static int is_used(const json_t *record)
{
    const char *status = rec_text(record, "status"), *phase = rec_text(record, "phase");
    return !strcmp(rec_kind(record), "generation") && about_point(record) &&
           !*about_stack(record) && !(status && strcmp(status, "ok")) &&
           !(phase && strcmp(phase, "timed")) && rec_int(record, "batch", 1) == 1;
}

/* Sets to[] to the parts of an answer (ns; PASSES: a number). 0: one of them is not known. */
static int parts_of(const json_t *record, const struct roof *roof, double to[SUMS])
{
    const struct roof_limit limit = roof_find(roof, record);
    const double flops = rec_number(record, "model_flops"),
                 bytes = rec_number(record, "model_bytes");
    const double rows = rec_number(record, "rows"), prompt = rec_number(record, "prompt_tokens");
    const double used = (prompt + rec_number(record, "committed_tokens")) / rows;
    const double needed = rows > 0 && isfinite(used) ? fmin(1, used) : (double)NAN;
    const double read = bytes / limit.bytes_per_s, all = flops / limit.flops_per_s;
    to[NEEDED] = fmax(needed * all, read) * 1e9;
    to[FURTHER] = fmax(all, read) * 1e9 - to[NEEDED];
    to[TIME] = rec_number(record, "e2e_ns");
    to[PASSES] = rec_number(record, "passes");
    return isfinite(needed) && isfinite(read) && isfinite(all) && to[TIME] > 0 && to[PASSES] > 0;
}

/* ---- shares ---- */

/* Sets share[0..2] to architecture, algorithm and system in percent, over the prompts index[n]
 * (NULL: each once). Returns the time of a step in ns. */
static double shares_of(const struct answers *answers, const uint32_t *index, double share[3])
{
    double sum[SUMS];
    bootstrap_sums(answers->v, SUMS, index, answers->n, sum);
    share[0] = 100 * sum[NEEDED] / sum[TIME];
    share[1] = 100 * sum[FURTHER] / sum[TIME];
    share[2] = 100 - share[0] - share[1];
    return sum[TIME] / sum[PASSES];
}

static json_t *record_of(const struct answers *answers, uint64_t seed, size_t draws)
{
    static const char *const names[][3] = {
        {"architecture_percent", "architecture_percent_lo", "architecture_percent_hi"},
        {"algorithm_percent", "algorithm_percent_lo", "algorithm_percent_hi"},
        {"system_percent", "system_percent_lo", "system_percent_hi"}};
    const char *why = answers->n ? "n<2" : "every answer was disturbed";
    uint32_t *index = mem_zero(answers->n + 1, sizeof *index);
    double *drawn = mem_zero(3 * draws, sizeof *drawn), share[3], one[3];
    const double step = shares_of(answers, NULL, share);
    json_t *record = about_carried(answers->first);
    for (size_t round = 0; round < draws && answers->n; round++) {
        bootstrap_draw(seed, round, answers->n, index);
        shares_of(answers, index, one);
        for (size_t k = 0; k < 3; k++)
            drawn[k * draws + round] = one[k];
    }
    rec_set_number(record, "step_ns", step, why);
    for (size_t k = 0; k < 3; k++) {
        const struct interval interval = bootstrap_interval(share[k], drawn + k * draws, draws,
                                                            LEVEL);
        rec_set_number(record, names[k][0], interval.value, why);
        rec_set_number(record, names[k][1], answers->n > 1 ? interval.lo : (double)NAN, why);
        rec_set_number(record, names[k][2], answers->n > 1 ? interval.hi : (double)NAN, why);
    }
    rec_set_number(record, "sum_percent", share[0] + share[1] + fmax(share[2], 0), why);
    json_object_set_new(record, "level", json_real(LEVEL));
    rec_set_int(record, "n", (int64_t)answers->n);
    rec_set_int(record, "tainted", answers->tainted);
    free(index);
    free(drawn);
    return record;
}

static struct answers *find(struct split *split, const json_t *record)
{
    for (size_t i = 0; i < split->n; i++)
        if (!strcmp(about_point(split->v[i].first), about_point(record)))
            return &split->v[i];
    MEM_GROW(split->v, split->n, split->cap);
    split->v[split->n] = (struct answers){.first = record};
    return &split->v[split->n++];
}

/* Adds an answer to its prompt. An answer without an id is a new prompt. */
static void add(struct answers *answers, const json_t *record, const double parts[SUMS])
{
    const json_t *id = json_object_get(record, "id");
    char *key = json_has(record, "id") ? json_dumps(id, JSON_ENCODE_ANY)
                                       : mem_format("own %zu", answers->n);
    const size_t at = places_of(&answers->ids, key, strlen(key));
    free(key);
    if (answers->n == answers->cap) {
        answers->cap = 2 * answers->cap + 16;
        answers->v = mem_resize(answers->v, answers->cap * SUMS, sizeof *answers->v);
    }
    double *to = answers->v + SUMS * at;
    if (at == answers->n)
        memset(answers->v + SUMS * answers->n++, 0, SUMS * sizeof *to);
    for (size_t k = 0; k < SUMS; k++)
        to[k] += parts[k];
}

/* Sorts the answers into points. -1: the answers come from several machines. */
static int sort(struct split *split, const json_t *records, const struct roof *roof, struct err *e)
{
    const json_t *record;
    size_t i;
    json_array_foreach(records, i, record) {
        double parts[SUMS];
        if (!is_used(record) || !parts_of(record, roof, parts))
            continue;
        struct answers *answers = find(split, record);
        if (!source_same_machine(split->v[0].first, record)) {
            const char *first = source_machine(split->v[0].first), *second = source_machine(record);
            return err_set(e, EXIT_BAD_DATA, "--split: expected answers of one machine, got those "
                           "of %s and of %s", first ? first : "an unknown one",
                           second ? second : "an unknown one");
        }
        if (timing_is_tainted(record))
            answers->tainted++;
        else
            add(answers, record, parts);
    }
    return 0;
}

json_t *steptime_of(const json_t *records, uint64_t seed, size_t draws, struct err *e)
{
    struct roof roof = {0};
    struct split split = {0};
    size_t i;
    json_t *out = NULL;
    const json_t *record;
    json_array_foreach(records, i, record)
        roof_take(&roof, record);
    if (!sort(&split, records, &roof, e))
        out = json_array();
    for (i = 0; i < split.n; i++) {
        if (out)
            json_array_append_new(out, record_of(&split.v[i], seed, draws));
        places_free(&split.v[i].ids);
        free(split.v[i].v);
    }
    free(split.v);
    roof_free(&roof);
    return out;
}
