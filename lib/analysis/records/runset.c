/* runset.c - see runset.h. The files are read once. The kind of a record decides which parts of it
 * are kept; kinds that no reader needs are counted and dropped. If a point was measured several
 * times, choose() selects one measurement at the end, so the order of the files does not matter. */
#include "lib/analysis/records/runset.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/analysis/about.h"
#include "lib/analysis/records/values.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/record/content.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/record/repeats.h"

enum { SOURCES_MAX = 1000 }; /* most pairs of source and task whose prompts are counted */

static const char *const kept[] = {"metric", "quality", "front",    "crossover", "suggest",
                                   "meta",   "parent",  "error",    "roofline",
                                   "check",  "comparison", "workload", "method", "commit",
                                   "ablation", "claim", "claim_verdict", "aup", "steptime",
                                   "forecast"};

static void copy_known(json_t *to, const json_t *from, const char *key)
{
    const json_t *value = json_object_get(from, key);
    if (value && !json_is_null(value) && !json_object_get(to, key))
        json_object_set(to, key, (json_t *)value);
}

static json_t *about_config(struct runset *set, const json_t *record)
{
    const char *point = about_point(record);
    if (!point)
        return NULL;
    json_t *about = json_object_get(set->configs, point);
    if (!about) {
        about = json_object();
        json_object_set_new(set->configs, point, about);
    }
    about_add(about, record);
    if (!strcmp(rec_kind(record), "metric") || !strcmp(rec_kind(record), "front")) {
        copy_known(about, record, "passes");
        copy_known(about, record, "rows");
    }
    return about;
}

/* The Unix time in seconds of an RFC 3339 time in UTC, "2026-11-20T10:13:00Z"; NaN: unreadable. */
static double wall_time(const char *text)
{
    struct tm tm = {0};
    const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    return end ? (double)timegm(&tm) : (double)NAN;
}

/* The text as it is stored in set->texts, where each text is stored once; "" for NULL. */
static const char *text_once(struct runset *set, const char *text)
{
    if (!text)
        return "";
    if (!json_object_get(set->texts, text))
        json_object_set_new(set->texts, text, json_string(text));
    return json_string_value(json_object_get(set->texts, text));
}

static void add_generation(struct runset *set, const json_t *record)
{
    json_t *about = about_config(set, record);
    const char *status = rec_text(record, "status"), *phase = rec_text(record, "phase");
    if (!about)
        return;
    int ok = !status || !strcmp(status, "ok");
    const char *count = ok ? "timed" : !strcmp(status, "oom") ? "oom" : "failed";
    rec_set_int(about, count, rec_int(about, count, 0) + 1);
    if (ok && !json_object_get(about, "text")) {
        copy_known(about, record, "prompt");
        copy_known(about, record, "text");
        copy_known(about, record, "id");
    }
    MEM_GROW(set->points, set->n_points, set->cap_points);
    double start = rec_number(record, "start_ns") / 1e9;
    set->points[set->n_points++] = (struct run_point){
        .about = about, .wall_s = set->wall_s + start,
        .e2e_s = rec_number(record, "e2e_ns") / 1e9, .launch = rec_int(record, "launch", 0),
        .timed = ok && (!phase || !strcmp(phase, "timed"))};
}

static void add_loss(struct runset *set, const json_t *record)
{
    const char *model = rec_text(record, "model");
    double tokens = rec_number(record, "tokens"), steps = rec_number(record, "step");
    const json_t *memory = json_object_get(record, "memory");
    MEM_GROW(set->losses, set->n_losses, set->cap_losses);
    set->losses[set->n_losses++] = (struct run_loss){
        .model = text_once(set, model ? model : "model"), .at = isnan(tokens) ? steps : tokens,
        .loss = rec_number(record, "loss"), .held = rec_number(record, "valid_loss"),
        .norm = rec_number(record, "grad_norm"), .speed = rec_number(record, "tokens_per_s"),
        .allocated_mb = rec_number(memory, "allocated_peak_bytes") / 1e6,
        .resident_mb = rec_number(memory, "process_peak_bytes") / 1e6,
        .by_steps = isnan(tokens), .is_diffusion = about_is_diffusion(record)};
}

static json_t *list_of(struct runset *set, const char *kind)
{
    json_t *list = json_object_get(set->kinds, kind);
    if (!list) {
        list = json_array();
        json_object_set_new(set->kinds, kind, list);
    }
    return list;
}

/* Counts prompts by source and task: {source, task, n}. */
static void add_prompt(struct runset *set, const json_t *record)
{
    json_t *list = list_of(set, "prompt"), *of;
    const char *source = rec_text(record, "source"), *task = rec_text(record, "task");
    source = source ? source : "";
    task = task ? task : "";
    size_t i;
    json_array_foreach(list, i, of)
        if (!strcmp(rec_text(of, "source"), source) && !strcmp(rec_text(of, "task"), task)) {
            rec_set_int(of, "n", rec_int(of, "n", 0) + 1);
            return;
        }
    if (i < SOURCES_MAX)
        json_array_append_new(list, json_pack("{s:s, s:s, s:i}", "source", source, "task", task,
                                              "n", 1));
}

/* Adds a fitness record. Tools pass these records on, so a record may come several times. The copy
 * with most members is kept. */
static void add_fitness(struct runset *set, json_t *record)
{
    static const char *const keys[] = {"launch", "fit", "host", "text"};
    json_t *list = list_of(set, "fitness");
    struct buf key = {0};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        const json_t *value = json_object_get(record, keys[k]);
        if (!value || json_put(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY, &key))
            buf_char(&key, '-');
        buf_char(&key, '\n');
    }
    size_t place = places_of(&set->looks, key.data, key.len);
    buf_free(&key);
    if (place == json_array_size(list))
        json_array_append(list, record);
    else if (json_object_size(record) > json_object_size(json_array_get(list, place)))
        json_array_set(list, place, record);
}

/* 1: an equal record of this kind came before, because a tool passed it on or a file was named
 * twice. Notes the record. */
static int note_content(struct runset *set, const char *kind, const json_t *record)
{
    size_t met = set->met.n;
    if (strcmp(kind, "check") && strcmp(kind, "method") && strcmp(kind, "comparison") &&
        strcmp(kind, "aup") && strcmp(kind, "steptime"))
        return 0;
    uint64_t content = content_of_record(record);
    return places_of(&set->met, (const char *)&content, sizeof content) < met;
}

/* Adds a record of another software stack to its separate list, so that no table or figure of this
 * engine can contain it by mistake. */
static void add_foreign(struct runset *set, json_t *record)
{
    const char *kind = rec_kind(record);
    const int is_summary = json_is_true(json_object_get(record, "summary"));
    if (!strcmp(kind, "metric") || !strcmp(kind, "comparison") ||
        (!strcmp(kind, "quality") && is_summary))
        json_array_append(list_of(set, RUNSET_FOREIGN), record);
}

static void add_record(struct runset *set, json_t *record)
{
    const char *kind = rec_kind(record);
    set->records++;
    if (!strcmp(kind, "meta"))
        set->wall_s = wall_time(rec_text(record, "start"));
    if (*about_stack(record)) {
        add_foreign(set, record);
        return;
    }
    if (!strcmp(kind, "metric") && rec_number(record, "arrival_rate") > 0) {
        json_array_append(list_of(set, RUNSET_LOADED), record);
        return;
    }
    if (!strcmp(kind, "generation")) {
        add_generation(set, record);
        return;
    }
    if (note_content(set, kind, record))
        return;
    if (!strcmp(kind, "prompt"))
        add_prompt(set, record);
    if (!strcmp(kind, "train")) {
        about_config(set, record);
        add_loss(set, record);
    }
    if (!strcmp(kind, "fitness"))
        add_fitness(set, record);
    if (!strcmp(kind, "quality") && !json_is_true(json_object_get(record, "summary")))
        return;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (!strcmp(kind, kept[i])) {
            if (strcmp(kind, "comparison") && strcmp(kind, "commit") &&
                strcmp(kind, "ablation") && strcmp(kind, "claim_verdict") &&
                strcmp(kind, "forecast"))
                /* only points that other records name */
                about_config(set, record);
            json_array_append(list_of(set, kind), record);
        }
}

/* 1: the record counts. A repeated record does not count, nor does a broken one or one in the place
 * of a different record; these two fill *line. */
static int is_new(struct runset *set, struct repeats *seen, const json_t *record, struct err *line)
{
    int64_t before = seen->dropped;
    if (values_check(record, line)) /* first, so that it takes no place */
        return 0;
    int repeats = repeats_take(seen, record, line);
    set->repeats += seen->dropped - before;
    set->broken.unsound |= repeats < 0;
    return repeats == 0;
}

static int load_source(struct runset *set, struct repeats *seen, const char *path, int64_t limit,
                       struct err *e)
{
    struct run_source *src = &set->sources[set->n_sources++];
    *src = (struct run_source){.path = mem_text(path)};
    if (strcmp(path, "-") && hash_file(path, src->sha256, e))
        return -1;
    const char *const paths[] = {path};
    struct rec_reader *reader = rec_read_open(paths, 1, e);
    if (!reader)
        return -1;
    int got = 0;
    set->wall_s = (double)NAN;
    while (!limit || set->records < limit) {
        json_t *record = NULL;
        struct err line = {0};
        got = rec_read(reader, &record, &line);
        if (got == 0)
            break;
        if (got < 0 && line.code != EXIT_BAD_DATA) {
            *e = line;
            break;
        }
        if (got > 0 && identity_fits(&set->identity, record, reader, &line))
            got = -1;
        if (got > 0 && (identity_check(&set->identity, record, reader, e) ||
                        source_single(&set->source, record, source_is_measured(record), e))) {
            json_decref(record);
            got = -1;
            break;
        }
        int counts = got > 0 && is_new(set, seen, record, &line);
        if (got < 0 || (!counts && line.code)) {
            broken_add(&set->broken, &line, rec_where(reader));
        } else {
            src->records++;
        }
        if (counts)
            add_record(set, record);
        json_decref(record);
        got = 0;
    }
    rec_read_close(reader);
    return got < 0 && e->code ? -1 : 0;
}

/* 1: record a is preferred to b: it has more prompts; on a tie more answers; then the first
 * workload by name. */
static int is_shown_before(const json_t *a, const json_t *b)
{
    static const char *const counts[] = {"prompts", "timed", "n"};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int64_t n = rec_int(a, counts[i], 0), m = rec_int(b, counts[i], 0);
        if (n != m)
            return n > m;
    }
    return strcmp(about_workload(a), about_workload(b)) < 0;
}

/* The key by which runset_find() finds a record; the caller frees. */
static char *find_key(const char *point, const char *metric)
{
    return mem_format("%s\n%s", point ? point : "", metric ? metric : "");
}

/* Keeps one record for each point and metric of a kind; counts the points that had more. */
static void choose(struct runset *set, const char *kind)
{
    json_t *shown = json_object(), *several = json_object(), *list = json_array(), *record;
    size_t i;
    json_array_foreach(runset_kind(set, kind), i, record) {
        const char *point = about_point(record), *metric = rec_text(record, "metric");
        char *key = find_key(point, metric);
        json_t *at = json_object_get(shown, key);
        size_t place = at ? (size_t)json_integer_value(at) : 0;
        if (!at) {
            json_object_set_new(shown, key, json_integer((json_int_t)json_array_size(list)));
            json_array_append(list, record);
        } else {
            json_object_set_new(several, point ? point : "", json_true());
            if (is_shown_before(record, json_array_get(list, place)))
                json_array_set(list, place, record);
        }
        free(key);
    }
    set->set_aside += (int64_t)json_object_size(several);
    if (json_array_size(list))
        json_object_set(set->kinds, kind, list);
    json_decref(list);
    json_object_set_new(set->places, kind, shown);
    json_decref(several);
}

int runset_load(struct runset *set, const char *const *paths, size_t n, int64_t limit,
                struct err *e)
{
    static const char *const standard[] = {"-"};
    struct repeats seen = {0};
    int bad = 0;
    if (!n) {
        paths = standard;
        n = 1;
    }
    *set = (struct runset){.kinds = json_object(), .configs = json_object(),
                           .texts = json_object(), .places = json_object()};
    set->sources = mem_zero(n, sizeof *set->sources);
    for (size_t i = 0; i < n; i++)
        if (strcmp(paths[i], "-") && access(paths[i], R_OK))
            return err_set(e, EXIT_NO_INPUT, "%s: %s", paths[i], strerror(errno));
    for (size_t i = 0; i < n && !bad; i++)
        bad = load_source(set, &seen, paths[i], limit, e);
    repeats_free(&seen);
    set->unnamed = set->identity.weights.unnamed;
    identity_free(&set->identity);
    source_free(&set->source);
    choose(set, "metric");
    choose(set, "quality");
    return bad;
}

void runset_free(struct runset *set)
{
    for (size_t i = 0; i < set->n_sources; i++)
        free(set->sources[i].path);
    free(set->sources);
    free(set->points);
    free(set->losses);
    places_free(&set->looks);
    places_free(&set->met);
    json_decref(set->kinds);
    json_decref(set->configs);
    json_decref(set->texts);
    json_decref(set->places);
    *set = (struct runset){0};
}

const json_t *runset_kind(const struct runset *set, const char *kind)
{
    return json_object_get(set->kinds, kind);
}

const json_t *runset_find(const struct runset *set, const char *kind, const char *point,
                          const char *metric)
{
    char *key = find_key(point, metric);
    const json_t *at = json_object_get(json_object_get(set->places, kind), key);
    free(key);
    return at ? json_array_get(runset_kind(set, kind), (size_t)json_integer_value(at)) : NULL;
}

const json_t *runset_comparison(const struct runset *set, const char *by, const char *point,
                                const char *metric)
{
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "comparison"), i, record)
        if (point && rec_is(record, "by", by) && rec_is(record, "point", point) &&
            rec_is(record, "metric", metric) && !rec_is(record, "effect", "disagreement"))
            return record;
    return NULL;
}

const json_t *runset_config(const struct runset *set, const char *point)
{
    return point ? json_object_get(set->configs, point) : NULL;
}

const json_t *runset_meta(const struct runset *set, const char *key)
{
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "meta"), i, record) {
        const json_t *value = json_object_get(record, key);
        if (!value)
            value = json_object_get(json_object_get(record, "machine"), key);
        if (value && !json_is_null(value))
            return value;
    }
    return NULL;
}

int runset_measures(const json_t *meta)
{
    const char *tool = rec_text(meta, "tool");
    const int generates = tool && !strncmp(tool, "gen-", 4) && strcmp(tool, "gen-endpoint");
    return tool && (generates || !strcmp(tool, "probe-roof") || !strcmp(tool, "bench"));
}

const json_t *runset_machine(const struct runset *set)
{
    static const char *const kinds[] = {"meta", "parent"};
    for (size_t k = 0; k < 2; k++) {
        size_t i;
        const json_t *record;
        json_array_foreach(runset_kind(set, kinds[k]), i, record) {
            const json_t *machine = json_object_get(record, "machine");
            if (machine && runset_measures(record))
                return machine;
        }
    }
    return runset_meta(set, "machine");
}
