/* runset.c - see runset.h. The files are read once. The kind of a record decides what is kept;
 * kinds that no reader needs are counted and dropped. Which of several measurements of a point is
 * shown is decided at the end, so the order of the files does not matter. */
#include "lib/analysis/records/runset.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/analysis/about.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/record/content.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/record/repeats.h"

enum { SOURCES_MAX = 1000 }; /* kinds of prompts that are counted apart */

static const char *const kept[] = {"metric", "quality", "front",    "crossover", "suggest",
                                   "meta",   "parent",  "error",    "roofline",
                                   "check",  "comparison", "workload", "method", "commit",
                                   "ablation", "claim", "claim_verdict"};

static void copy_known(json_t *to, const json_t *from, const char *key)
{
    const json_t *v = json_object_get(from, key);
    if (v && !json_is_null(v) && !json_object_get(to, key))
        json_object_set(to, key, (json_t *)v);
}

static json_t *about_config(struct runset *s, const json_t *r)
{
    const char *point = about_point(r);
    if (!point)
        return NULL;
    json_t *about = json_object_get(s->configs, point);
    if (!about) {
        about = json_object();
        json_object_set_new(s->configs, point, about);
    }
    about_add(about, r);
    if (!strcmp(rec_kind(r), "metric") || !strcmp(rec_kind(r), "front")) {
        copy_known(about, r, "passes");
        copy_known(about, r, "rows");
    }
    return about;
}

/* RFC 3339 UTC, "2026-11-20T10:13:00Z" -> Unix seconds; NaN. */
static double wall_time(const char *text)
{
    struct tm tm = {0};
    const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    return end ? (double)timegm(&tm) : (double)NAN;
}

/* The one stored copy of a text. */
static const char *text_once(struct runset *s, const char *text)
{
    if (!text)
        return "";
    if (!json_object_get(s->texts, text))
        json_object_set_new(s->texts, text, json_string(text));
    return json_string_value(json_object_get(s->texts, text));
}

static void add_generation(struct runset *s, const json_t *r)
{
    json_t *about = about_config(s, r);
    const char *status = rec_text(r, "status"), *phase = rec_text(r, "phase");
    if (!about)
        return;
    int ok = !status || !strcmp(status, "ok");
    const char *count = ok ? "timed" : !strcmp(status, "oom") ? "oom" : "failed";
    rec_set_int(about, count, rec_int(about, count, 0) + 1);
    if (ok && !json_object_get(about, "text")) {
        copy_known(about, r, "prompt");
        copy_known(about, r, "text");
        copy_known(about, r, "id");
    }
    MEM_GROW(s->points, s->n_points, s->cap_points);
    double start = rec_number(r, "start_ns") / 1e9;
    s->points[s->n_points++] = (struct run_point){
        .about = about, .wall_s = s->wall_s + start,
        .e2e_s = rec_number(r, "e2e_ns") / 1e9, .launch = rec_int(r, "launch", 0),
        .timed = ok && (!phase || !strcmp(phase, "timed"))};
}

static void add_loss(struct runset *s, const json_t *r)
{
    const char *model = rec_text(r, "model");
    double tokens = rec_number(r, "tokens"), steps = rec_number(r, "step");
    const json_t *memory = json_object_get(r, "memory");
    MEM_GROW(s->losses, s->n_losses, s->cap_losses);
    s->losses[s->n_losses++] = (struct run_loss){
        .model = text_once(s, model ? model : "model"), .at = isnan(tokens) ? steps : tokens,
        .loss = rec_number(r, "loss"), .held = rec_number(r, "valid_loss"),
        .norm = rec_number(r, "grad_norm"), .speed = rec_number(r, "tokens_per_s"),
        .allocated_mb = rec_number(memory, "allocated_peak_bytes") / 1e6,
        .resident_mb = rec_number(memory, "process_peak_bytes") / 1e6,
        .by_steps = isnan(tokens), .is_diffusion = about_is_diffusion(r)};
}

static json_t *list_of(struct runset *s, const char *kind)
{
    json_t *list = json_object_get(s->kinds, kind);
    if (!list) {
        list = json_array();
        json_object_set_new(s->kinds, kind, list);
    }
    return list;
}

/* Counts prompts by source and task: {source, task, n}. */
static void add_prompt(struct runset *s, const json_t *r)
{
    json_t *list = list_of(s, "prompt"), *of;
    const char *source = rec_text(r, "source"), *task = rec_text(r, "task");
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

/* Tools pass these records on, so a record may come several times. The copy with most members is
 * kept. */
static void add_fitness(struct runset *s, json_t *r)
{
    static const char *const keys[] = {"launch", "fit", "host", "text"};
    json_t *list = list_of(s, "fitness");
    struct buf key = {0};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        const json_t *v = json_object_get(r, keys[k]);
        if (!v || json_put(v, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY, &key))
            buf_char(&key, '-');
        buf_char(&key, '\n');
    }
    size_t place = places_of(&s->looks, key.data, key.len);
    buf_free(&key);
    if (place == json_array_size(list))
        json_array_append(list, r);
    else if (json_object_size(r) > json_object_size(json_array_get(list, place)))
        json_array_set(list, place, r);
}

/* 1: a record of a kind that tools pass on, and it came before. */
static int note_content(struct runset *s, const char *kind, const json_t *r)
{
    size_t met = s->met.n;
    if (strcmp(kind, "check") && strcmp(kind, "method") && strcmp(kind, "comparison"))
        return 0;
    uint64_t content = content_of_record(r);
    return places_of(&s->met, (const char *)&content, sizeof content) < met;
}

/* Records of another software stack are kept apart from all others, so that no table or figure of
 * ours can hold them by mistake. */
static void add_foreign(struct runset *s, json_t *r)
{
    const char *kind = rec_kind(r);
    const int is_summary = json_is_true(json_object_get(r, "summary"));
    if (!strcmp(kind, "metric") || !strcmp(kind, "comparison") ||
        (!strcmp(kind, "quality") && is_summary))
        json_array_append(list_of(s, RUNSET_FOREIGN), r);
}

static void add_record(struct runset *s, json_t *r)
{
    const char *kind = rec_kind(r);
    s->records++;
    if (!strcmp(kind, "meta"))
        s->wall_s = wall_time(rec_text(r, "start"));
    if (*about_stack(r)) {
        add_foreign(s, r);
        return;
    }
    if (!strcmp(kind, "generation")) {
        add_generation(s, r);
        return;
    }
    if (note_content(s, kind, r))
        return;
    if (!strcmp(kind, "prompt"))
        add_prompt(s, r);
    if (!strcmp(kind, "train")) {
        about_config(s, r);
        add_loss(s, r);
    }
    if (!strcmp(kind, "fitness"))
        add_fitness(s, r);
    if (!strcmp(kind, "quality") && !json_is_true(json_object_get(r, "summary")))
        return;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (!strcmp(kind, kept[i])) {
            if (strcmp(kind, "comparison") && strcmp(kind, "commit") &&
                strcmp(kind, "ablation") && strcmp(kind, "claim_verdict"))
                /* only points that other records name */
                about_config(s, r);
            json_array_append(list_of(s, kind), r);
        }
}

/* 1: the record counts. A generation at the place of another one does not; of metrics and qualities
 * the preferred one is chosen at the end. */
static int is_new(struct runset *s, struct repeats *seen, const json_t *r, struct err *line)
{
    int64_t before = seen->dropped;
    int repeats = repeats_take(seen, r, line);
    s->repeats += seen->dropped - before;
    return repeats == 0 || (repeats < 0 && strcmp(rec_kind(r), "generation"));
}

static int load_source(struct runset *s, struct repeats *seen, const char *path, int64_t limit,
                       struct err *e)
{
    struct run_source *src = &s->sources[s->n_sources++];
    *src = (struct run_source){.path = mem_text(path)};
    if (strcmp(path, "-") && hash_file(path, src->sha256, e))
        return -1;
    const char *const paths[] = {path};
    struct rec_reader *reader = rec_read_open(paths, 1, e);
    if (!reader)
        return -1;
    int got = 0;
    s->wall_s = (double)NAN;
    while (!limit || s->records < limit) {
        json_t *r = NULL;
        struct err line = {0};
        got = rec_read(reader, &r, &line);
        if (got == 0)
            break;
        if (got < 0 && line.code != EXIT_BAD_DATA) {
            *e = line;
            break;
        }
        if (got > 0 && weights_check(&s->weights, r, reader, e)) {
            json_decref(r);
            got = -1;
            break;
        }
        int counts = got > 0 && is_new(s, seen, r, &line);
        if (got < 0 || (!counts && line.code)) {
            if (!s->bad++)
                memcpy(s->first_bad, line.text, sizeof s->first_bad);
        } else {
            src->records++;
        }
        if (counts)
            add_record(s, r);
        json_decref(r);
        got = 0;
    }
    rec_read_close(reader);
    return got < 0 && e->code ? -1 : 0;
}

/* 1: a is preferred to b: more prompts, then more answers, then the first workload. */
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
static void choose(struct runset *s, const char *kind)
{
    json_t *shown = json_object(), *several = json_object(), *list = json_array(), *r;
    size_t i;
    json_array_foreach(runset_kind(s, kind), i, r) {
        const char *point = about_point(r), *metric = rec_text(r, "metric");
        char *key = find_key(point, metric);
        json_t *at = json_object_get(shown, key);
        size_t place = at ? (size_t)json_integer_value(at) : 0;
        if (!at) {
            json_object_set_new(shown, key, json_integer((json_int_t)json_array_size(list)));
            json_array_append(list, r);
        } else {
            json_object_set_new(several, point ? point : "", json_true());
            if (is_shown_before(r, json_array_get(list, place)))
                json_array_set(list, place, r);
        }
        free(key);
    }
    s->set_aside += (int64_t)json_object_size(several);
    if (json_array_size(list))
        json_object_set(s->kinds, kind, list);
    json_decref(list);
    json_object_set_new(s->places, kind, shown);
    json_decref(several);
}

int runset_load(struct runset *s, const char *const *paths, size_t n, int64_t limit,
                struct err *e)
{
    static const char *const standard[] = {"-"};
    struct repeats seen = {0};
    int bad = 0;
    if (!n) {
        paths = standard;
        n = 1;
    }
    *s = (struct runset){.kinds = json_object(), .configs = json_object(),
                         .texts = json_object(), .places = json_object()};
    s->sources = mem_zero(n, sizeof *s->sources);
    for (size_t i = 0; i < n; i++)
        if (strcmp(paths[i], "-") && access(paths[i], R_OK))
            return err_set(e, EXIT_NO_INPUT, "%s: %s", paths[i], strerror(errno));
    for (size_t i = 0; i < n && !bad; i++)
        bad = load_source(s, &seen, paths[i], limit, e);
    repeats_free(&seen);
    weights_free(&s->weights);
    choose(s, "metric");
    choose(s, "quality");
    return bad;
}

void runset_free(struct runset *s)
{
    for (size_t i = 0; i < s->n_sources; i++)
        free(s->sources[i].path);
    free(s->sources);
    free(s->points);
    free(s->losses);
    places_free(&s->looks);
    places_free(&s->met);
    json_decref(s->kinds);
    json_decref(s->configs);
    json_decref(s->texts);
    json_decref(s->places);
    *s = (struct runset){0};
}

const json_t *runset_kind(const struct runset *s, const char *kind)
{
    return json_object_get(s->kinds, kind);
}

const json_t *runset_find(const struct runset *s, const char *kind, const char *point,
                          const char *metric)
{
    char *key = find_key(point, metric);
    const json_t *at = json_object_get(json_object_get(s->places, kind), key);
    free(key);
    return at ? json_array_get(runset_kind(s, kind), (size_t)json_integer_value(at)) : NULL;
}

const json_t *runset_comparison(const struct runset *s, const char *by, const char *point,
                                const char *metric)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "comparison"), i, r)
        if (point && rec_is(r, "by", by) && rec_is(r, "point", point) &&
            rec_is(r, "metric", metric) && !rec_is(r, "effect", "disagreement"))
            return r;
    return NULL;
}

const json_t *runset_config(const struct runset *s, const char *point)
{
    return point ? json_object_get(s->configs, point) : NULL;
}

const json_t *runset_meta(const struct runset *s, const char *key)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "meta"), i, r) {
        const json_t *v = json_object_get(r, key);
        if (!v)
            v = json_object_get(json_object_get(r, "machine"), key);
        if (v && !json_is_null(v))
            return v;
    }
    return NULL;
}

int runset_measures(const json_t *meta)
{
    const char *tool = rec_text(meta, "tool");
    const int generates = tool && !strncmp(tool, "gen-", 4) && strcmp(tool, "gen-endpoint");
    return tool && (generates || !strcmp(tool, "probe-roof") || !strcmp(tool, "bench"));
}

const json_t *runset_machine(const struct runset *s)
{
    static const char *const kinds[] = {"meta", "parent"};
    for (size_t k = 0; k < 2; k++) {
        size_t i;
        const json_t *r;
        json_array_foreach(runset_kind(s, kinds[k]), i, r) {
            const json_t *m = json_object_get(r, "machine");
            if (m && runset_measures(r))
                return m;
        }
    }
    return runset_meta(s, "machine");
}
