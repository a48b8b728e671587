/* evidence.c - see evidence.h. To save memory, qualities are kept as sums and answers as hashes.
 * Lists are sorted at the end, so the order of the input does not matter. */
#include "lib/analysis/claim/evidence.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/analysis/about.h"
#include "lib/analysis/records/identity.h"
#include "lib/analysis/records/source.h"
#include "lib/analysis/records/values.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/record/repeats.h"

static void add_to_list(struct evidence *evidence, const char *kind, const json_t *record)
{
    json_t *list = json_object_get(evidence->kinds, kind);
    if (!list)
        json_object_set_new(evidence->kinds, kind, list = json_array());
    json_array_append(list, (json_t *)(uintptr_t)record);
}

double evidence_sum(const json_t *sums, int which)
{
    return json_number_value(json_array_get(sums, (size_t)which));
}

static void add_quality(struct evidence *evidence, const json_t *record, const char *point)
{
    const char *id = rec_text(record, "id"), *metric = rec_text(record, "metric");
    const char *task = rec_text(record, "task");
    const double value = rec_number(record, "value"), n = rec_copies(record);
    const double tokens = rec_number(record, "scored_tokens"),
                 bytes = rec_number(record, "scored_bytes");
    if (json_is_true(json_object_get(record, "summary")) || !id || !metric)
        return;
    if (task)
        json_object_set_new(evidence->tasks, id, json_string(task));
    if (isnan(value))
        return;
    json_object_set(evidence->directions, metric, json_object_get(record, "direction"));
    if (!(value >= 0 && value <= 0) && !(value >= 1 && value <= 1))
        json_object_set_new(evidence->graded, metric, json_true());
    if (*about_workload(record))
        json_object_set_new(json_within(evidence->scored, point), about_workload(record),
                            json_true());
    json_t *of = json_within(json_within(evidence->quality, point), metric);
    json_t *had = json_object_get(of, id);
    const double more[EVIDENCE_SUMS] = {value, isnan(tokens) ? 0 : tokens, isnan(bytes) ? 0 : bytes,
                                        1};
    json_t *sums = json_array();
    for (int i = 0; i < EVIDENCE_SUMS; i++)
        json_array_append_new(sums, json_real(evidence_sum(had, i) + n * more[i]));
    json_object_set_new(of, id, sums);
}

/* Without sampling, all answers to a prompt are equal. If hashes differ, the first in text order is
 * kept. */
static void add_answer(struct evidence *evidence, const json_t *record, const char *point)
{
    const char *id = rec_text(record, "id"), *status = rec_text(record, "status");
    struct buf text = {0};
    char hex[65];
    if (!id || (status && strcmp(status, "ok")) || about_is_drawn(record) ||
        json_put(json_object_get(record, "token_ids"), JSON_COMPACT, &text))
        return;
    hash_bytes(text.data, text.len, hex);
    buf_free(&text);
    json_t *of = json_within(evidence->answers, point);
    const char *had = rec_text(of, id);
    if (!had || strcmp(hex, had) < 0)
        json_object_set_new(of, id, json_string(hex));
}

/* 1: the record replaces the stored record of the metric, because it has more samples (`n`), or as
 * many and a smaller value. */
static int says_more(const json_t *record, const struct evidence *evidence, const char *point,
                     const char *metric)
{
    const json_t *had = json_object_get(json_object_get(evidence->metrics, point), metric);
    const int64_t n = rec_int(record, "n", 0), m = rec_int(had, "n", 0);
    return !had || n > m || (n == m && rec_number(record, "value") < rec_number(had, "value"));
}

static void add_metric(struct evidence *evidence, const json_t *record, const char *point)
{
    static const char *const used[] = {"memory_device_peak_bytes", "memory_allocated_peak_bytes",
                                       "memory_process_peak_bytes", "tokens_to_eos"};
    const char *metric = rec_text(record, "metric");
    for (size_t i = 0; metric && i < sizeof used / sizeof *used; i++)
        if (!strcmp(metric, used[i]) && json_has(record, "value") &&
            says_more(record, evidence, point, metric))
            json_object_set(json_within(evidence->metrics, point), metric,
                            (json_t *)(uintptr_t)record);
}

/* Adds the record, unless an equal one came before: tools pass records of these kinds on. */
static void add_once(struct evidence *evidence, const char *kind, const json_t *record)
{
    const json_t *list = json_object_get(evidence->kinds, kind), *had;
    size_t i;
    json_array_foreach(list, i, had)
        if (json_equal(had, record))
            return;
    add_to_list(evidence, kind, record);
}

static int add_record(struct evidence *evidence, const json_t *record, struct err *e)
{
    static const char *const lists[] = {"crossover", "check", "fitness", "method", "ranking"};
    const char *kind = rec_kind(record), *point = about_point(record);
    const int of_point = !strcmp(kind, "times") || !strcmp(kind, "metric") ||
                         !strcmp(kind, "quality") || !strcmp(kind, "generation");
    if (*about_stack(record)) /* no claim is about another software stack */
        return 0;
    if (of_point && point) {
        about_add(json_within(evidence->points, point), record);
        if (!strcmp(kind, "quality"))
            add_quality(evidence, record, point);
        else if (!strcmp(kind, "generation"))
            add_answer(evidence, record, point);
        else if (!strcmp(kind, "metric"))
            add_metric(evidence, record, point);
    }
    if ((!strcmp(kind, "meta") || !strcmp(kind, "parent")) && json_has(record, "machine") &&
        !rec_is(record, "tool", "gen-endpoint")) /* it names the machine of the client */
        add_to_list(evidence, "machine", record);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (!strcmp(kind, lists[i]))
            add_once(evidence, kind, record);
    return pairs_take(&evidence->times, record, e) < 0 ? -1 : 0;
}

/* Takes a record. */
static int take_one(struct evidence *evidence, struct repeats *seen, const json_t *record,
                    struct err *bad)
{
    if (values_check(record, bad)) /* first, so that it takes no place */
        return -1;
    int repeats = repeats_take(seen, record, bad);
    evidence->broken.unsound |= repeats < 0;
    return repeats < 0 || (!repeats && add_record(evidence, record, bad)) ? -1 : 1;
}

/* Reads all records. -1: reading failed, two records of a point have different checkpoints, or
 * times come from two machines. */
static int read_all(struct evidence *evidence, struct rec_reader *in, int64_t limit, struct err *e)
{
    struct repeats seen = {0};
    struct identity identity = {0};
    struct source source = {0};
    int rc = 0;
    for (int64_t n = 0; !rc && (!limit || n < limit); n++) {
        struct err bad = {0};
        json_t *record = NULL;
        int got = rec_read(in, &record, &bad);
        if (got == 0)
            break;
        if (got > 0 && identity_fits(&identity, record, in, &bad))
            got = -1;
        if (got > 0 && (identity_check(&identity, record, in, e) ||
                        source_single(&source, record, source_is_measured(record), e)))
            rc = -1;
        else if (got > 0)
            got = take_one(evidence, &seen, record, &bad);
        if (got < 0 && bad.code != EXIT_BAD_DATA)
            rc = err_set(e, bad.code, "%s", bad.text);
        else if (got < 0)
            broken_add(&evidence->broken, &bad, rec_where(in));
        json_decref(record);
    }
    repeats_free(&seen);
    evidence->unnamed = identity.weights.unnamed;
    source_free(&source);
    identity_free(&identity);
    return rc;
}

/* ---- order ---- */

struct sorted { char *text; json_t *record; };

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct sorted *)a)->text, ((const struct sorted *)b)->text);
}

/* A sorted copy of the list. The caller's reference. */
static json_t *sort_list(const json_t *list)
{
    const size_t n = json_array_size(list);
    struct sorted *sorted = mem_zero(n + 1, sizeof *sorted);
    json_t *out = json_array();
    for (size_t i = 0; i < n; i++) {
        sorted[i].record = json_array_get(list, i);
        sorted[i].text = json_dumps(sorted[i].record, JSON_COMPACT | JSON_SORT_KEYS);
    }
    qsort(sorted, n, sizeof *sorted, by_text);
    for (size_t i = 0; i < n; i++) {
        json_array_append(out, sorted[i].record);
        free(sorted[i].text);
    }
    free(sorted);
    return out;
}

static void sort_lists(struct evidence *evidence)
{
    const char *kind;
    json_t *list;
    void *next;
    json_object_foreach_safe(evidence->kinds, next, kind, list)
        json_object_set_new(evidence->kinds, kind, sort_list(list));
}

int evidence_load(struct evidence *evidence, const char *const *paths, size_t n, int64_t limit,
                  struct err *e)
{
    *evidence = (struct evidence){.points = json_object(), .quality = json_object(),
                                  .directions = json_object(), .graded = json_object(),
                                  .scored = json_object(),
                                  .tasks = json_object(), .answers = json_object(),
                                  .metrics = json_object(), .kinds = json_object()};
    for (size_t i = 0; i < n; i++)
        if (strcmp(paths[i], "-") && access(paths[i], R_OK))
            return err_set(e, EXIT_NO_INPUT, "%s: %s", paths[i], strerror(errno));
    struct rec_reader *in = rec_read_open(paths, n, e);
    if (!in)
        return -1;
    int bad = read_all(evidence, in, limit, e);
    rec_read_close(in);
    sort_lists(evidence);
    return bad;
}

void evidence_free(struct evidence *evidence)
{
    pairs_free(&evidence->times);
    json_decref(evidence->points);
    json_decref(evidence->quality);
    json_decref(evidence->directions);
    json_decref(evidence->scored);
    json_decref(evidence->graded);
    json_decref(evidence->tasks);
    json_decref(evidence->answers);
    json_decref(evidence->metrics);
    json_decref(evidence->kinds);
}

const json_t *evidence_list(const struct evidence *evidence, const char *kind)
{
    return json_object_get(evidence->kinds, kind);
}

const json_t *evidence_about(const struct evidence *evidence, const char *point)
{
    return point ? json_object_get(evidence->points, point) : NULL;
}

double evidence_metric(const struct evidence *evidence, const char *point, const char *metric)
{
    const json_t *of = point ? json_object_get(evidence->metrics, point) : NULL;
    return rec_number(json_object_get(of, metric), "value");
}

int evidence_other_prompts(const struct evidence *evidence, const char *a, const char *b)
{
    const json_t *of_a = json_object_get(evidence->scored, a),
                 *of_b = json_object_get(evidence->scored, b);
    const char *workload;
    json_t *is_scored;
    json_object_foreach((json_t *)(uintptr_t)of_a, workload, is_scored)
        if (!of_b || json_object_get(of_b, workload))
            return 0;
    return of_a != NULL;
}

int evidence_is_of(const struct evidence *evidence, const char *id, const char *task)
{
    return !task || rec_is(evidence->tasks, id, task);
}
