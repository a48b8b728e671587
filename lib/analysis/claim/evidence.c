/* evidence.c - see evidence.h. To save memory, a quality is kept as the sums for its mean, and an
 * answer as its hash. Lists are sorted at the end, so the order of the input does not matter. */
#include "lib/analysis/claim/evidence.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/analysis/about.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/record/repeats.h"
#include "lib/record/weights.h"

static void add_to_list(struct evidence *v, const char *kind, const json_t *r)
{
    json_t *list = json_object_get(v->kinds, kind);
    if (!list)
        json_object_set_new(v->kinds, kind, list = json_array());
    json_array_append(list, (json_t *)(uintptr_t)r);
}

double evidence_sum(const json_t *sums, int which)
{
    return json_number_value(json_array_get(sums, (size_t)which));
}

static void add_quality(struct evidence *v, const json_t *r, const char *point)
{
    const char *id = rec_text(r, "id"), *metric = rec_text(r, "metric");
    const char *task = rec_text(r, "task");
    const double value = rec_number(r, "value"), copies = rec_number(r, "copies");
    const double n = copies > 0 ? copies : 1;
    const double tokens = rec_number(r, "scored_tokens"), bytes = rec_number(r, "scored_bytes");
    if (json_is_true(json_object_get(r, "summary")) || !id || !metric)
        return;
    if (task)
        json_object_set_new(v->tasks, id, json_string(task));
    if (isnan(value))
        return;
    if (rec_is(r, "direction", "lower"))
        json_object_set_new(v->lower, metric, json_true());
    if (!(value >= 0 && value <= 0) && !(value >= 1 && value <= 1))
        json_object_set_new(v->graded, metric, json_true());
    json_t *of = json_within(json_within(v->quality, point), metric);
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
static void add_answer(struct evidence *v, const json_t *r, const char *point)
{
    const char *id = rec_text(r, "id"), *status = rec_text(r, "status");
    struct buf b = {0};
    char hex[65];
    if (!id || (status && strcmp(status, "ok")) || about_is_drawn(r) ||
        json_put(json_object_get(r, "token_ids"), JSON_COMPACT, &b))
        return;
    hash_bytes(b.data, b.len, hex);
    buf_free(&b);
    json_t *of = json_within(v->answers, point);
    const char *had = rec_text(of, id);
    if (!had || strcmp(hex, had) < 0)
        json_object_set_new(of, id, json_string(hex));
}

/* 1: r replaces the stored record of the metric: it has more answers, or as many and a smaller
 * value. */
static int says_more(const json_t *r, const struct evidence *v, const char *point,
                     const char *metric)
{
    const json_t *had = json_object_get(json_object_get(v->metrics, point), metric);
    const int64_t n = rec_int(r, "n", 0), m = rec_int(had, "n", 0);
    return !had || n > m || (n == m && rec_number(r, "value") < rec_number(had, "value"));
}

static void add_metric(struct evidence *v, const json_t *r, const char *point)
{
    static const char *const used[] = {"memory_device_peak_bytes", "memory_allocated_peak_bytes",
                                       "memory_process_peak_bytes", "tokens_to_eos"};
    const char *metric = rec_text(r, "metric");
    for (size_t i = 0; metric && i < sizeof used / sizeof *used; i++)
        if (!strcmp(metric, used[i]) && json_has(r, "value") && says_more(r, v, point, metric))
            json_object_set(json_within(v->metrics, point), metric, (json_t *)(uintptr_t)r);
}

/* Adds a record of a kind that tools pass on, unless it came before. */
static void add_once(struct evidence *v, const char *kind, const json_t *r)
{
    const json_t *list = json_object_get(v->kinds, kind), *had;
    size_t i;
    json_array_foreach(list, i, had)
        if (json_equal(had, r))
            return;
    add_to_list(v, kind, r);
}

static int add_record(struct evidence *v, const json_t *r, struct err *e)
{
    static const char *const lists[] = {"crossover", "check", "fitness", "method", "ranking"};
    const char *kind = rec_kind(r), *point = about_point(r);
    const int of_point = !strcmp(kind, "times") || !strcmp(kind, "metric") ||
                         !strcmp(kind, "quality") || !strcmp(kind, "generation");
    if (*about_stack(r)) /* no claim is about another software stack */
        return 0;
    if (of_point && point) {
        about_add(json_within(v->points, point), r);
        if (!strcmp(kind, "quality"))
            add_quality(v, r, point);
        else if (!strcmp(kind, "generation"))
            add_answer(v, r, point);
        else if (!strcmp(kind, "metric"))
            add_metric(v, r, point);
    }
    if ((!strcmp(kind, "meta") || !strcmp(kind, "parent")) && json_has(r, "machine") &&
        !rec_is(r, "tool", "gen-endpoint")) /* whose record names the client's machine */
        add_to_list(v, "machine", r);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (!strcmp(kind, lists[i]))
            add_once(v, kind, r);
    return pairs_take(&v->times, r, e) < 0 ? -1 : 0;
}

static void note_bad(struct evidence *v, const struct err *e)
{
    if (!v->bad++)
        memcpy(v->first_bad, e->text, sizeof v->first_bad);
}

/* Records of several prompt sets may have the same place; both count, except generations. */
static int take_one(struct evidence *v, struct repeats *seen, const json_t *r,
                    struct err *bad)
{
    struct err place = {0};
    int repeats = repeats_take(seen, r, &place);
    if (repeats < 0 && !strcmp(rec_kind(r), "generation")) {
        *bad = place;
        return -1;
    }
    return repeats <= 0 && add_record(v, r, bad) ? -1 : 1;
}

/* -1: reading failed, or the checkpoints behind a point differ. */
static int read_all(struct evidence *v, struct rec_reader *in, int64_t limit, struct err *e)
{
    struct repeats seen = {0};
    struct weights weights = {0};
    int rc = 0;
    for (int64_t n = 0; !rc && (!limit || n < limit); n++) {
        struct err bad = {0};
        json_t *r = NULL;
        int got = rec_read(in, &r, &bad);
        if (got == 0)
            break;
        if (got > 0 && weights_check(&weights, r, in, e))
            rc = -1;
        else if (got > 0)
            got = take_one(v, &seen, r, &bad);
        if (got < 0 && bad.code != EXIT_BAD_DATA)
            rc = err_set(e, bad.code, "%s", bad.text);
        else if (got < 0)
            note_bad(v, &bad);
        json_decref(r);
    }
    repeats_free(&seen);
    weights_free(&weights);
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
    struct sorted *v = mem_zero(n + 1, sizeof *v);
    json_t *out = json_array();
    for (size_t i = 0; i < n; i++) {
        v[i].record = json_array_get(list, i);
        v[i].text = json_dumps(v[i].record, JSON_COMPACT | JSON_SORT_KEYS);
    }
    qsort(v, n, sizeof *v, by_text);
    for (size_t i = 0; i < n; i++) {
        json_array_append(out, v[i].record);
        free(v[i].text);
    }
    free(v);
    return out;
}

static void sort_lists(struct evidence *v)
{
    const char *kind;
    json_t *list;
    void *next;
    json_object_foreach_safe(v->kinds, next, kind, list)
        json_object_set_new(v->kinds, kind, sort_list(list));
}

int evidence_load(struct evidence *v, const char *const *paths, size_t n, int64_t limit,
                  struct err *e)
{
    *v = (struct evidence){.points = json_object(), .quality = json_object(),
                           .lower = json_object(), .graded = json_object(),
                           .tasks = json_object(), .answers = json_object(),
                           .metrics = json_object(), .kinds = json_object()};
    for (size_t i = 0; i < n; i++)
        if (strcmp(paths[i], "-") && access(paths[i], R_OK))
            return err_set(e, EXIT_NO_INPUT, "%s: %s", paths[i], strerror(errno));
    struct rec_reader *in = rec_read_open(paths, n, e);
    if (!in)
        return -1;
    int bad = read_all(v, in, limit, e);
    rec_read_close(in);
    sort_lists(v);
    return bad;
}

void evidence_free(struct evidence *v)
{
    pairs_free(&v->times);
    json_decref(v->points);
    json_decref(v->quality);
    json_decref(v->lower);
    json_decref(v->graded);
    json_decref(v->tasks);
    json_decref(v->answers);
    json_decref(v->metrics);
    json_decref(v->kinds);
}

const json_t *evidence_list(const struct evidence *v, const char *kind)
{
    return json_object_get(v->kinds, kind);
}

const json_t *evidence_about(const struct evidence *v, const char *point)
{
    return point ? json_object_get(v->points, point) : NULL;
}

double evidence_metric(const struct evidence *v, const char *point, const char *metric)
{
    const json_t *of = point ? json_object_get(v->metrics, point) : NULL;
    return rec_number(json_object_get(of, metric), "value");
}

int evidence_is_of(const struct evidence *v, const char *id, const char *task)
{
    return !task || rec_is(v->tasks, id, task);
}
