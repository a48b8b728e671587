/* runset.c - see runset.h. One pass over the files; what a record means is decided by its kind, and
 * kinds that nobody here needs are counted and dropped. */
#include "lib/analysis/runset.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

static const char *const kept[] = {"metric", "quality", "front",    "crossover", "suggest",
                                   "meta",   "parent",  "error",    "train",     "roofline",
                                   "check",  "comparison"};

double runset_length(const json_t *record)
{
    double v = rec_number(record, "gen_length");
    return isnan(v) ? rec_number(record, "max_new") : v;
}

static void copy_known(json_t *to, const json_t *from, const char *key)
{
    const json_t *v = json_object_get(from, key);
    if (v && !json_is_null(v) && !json_object_get(to, key))
        json_object_set(to, key, (json_t *)v);
}

static json_t *about_config(struct runset *s, const json_t *r)
{
    const char *config = rec_text(r, "config");
    if (!config)
        return NULL;
    json_t *about = json_object_get(s->configs, config);
    if (!about) {
        about = json_pack("{s:s}", "config", config);
        json_object_set_new(s->configs, config, about);
    }
    static const char *const keys[] = {"model", "arch", "steps", "batch", "device", "device_name",
                                       "dtype", "quant", "threads", "weights_random"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        copy_known(about, r, keys[i]);
    if (!json_object_get(about, "length") && !isnan(runset_length(r)))
        json_object_set_new(about, "length", json_real(runset_length(r)));
    return about;
}

/* RFC 3339 UTC, "2026-11-20T10:13:00Z" -> Unix seconds; NaN. */
static double wall_time(const char *text)
{
    struct tm tm = {0};
    const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    return end ? (double)timegm(&tm) : (double)NAN;
}

static void add_generation(struct runset *s, const json_t *r)
{
    json_t *about = about_config(s, r);
    const char *status = rec_text(r, "status"), *phase = rec_text(r, "phase");
    if (!about)
        return;
    status = status ? status : "ok";
    rec_set_int(about, status, rec_int(about, status, 0) + 1);
    if (!strcmp(status, "ok") && !json_object_get(about, "text")) {
        copy_known(about, r, "prompt");
        copy_known(about, r, "text");
        copy_known(about, r, "id");
    }
    MEM_GROW(s->points, s->n_points, s->cap_points);
    double start = rec_number(r, "start_ns") / 1e9;
    s->points[s->n_points++] = (struct run_point){
        .about = about, .wall_s = s->wall_s + start, .start_s = start,
        .e2e_s = rec_number(r, "e2e_ns") / 1e9, .launch = rec_int(r, "launch", 0),
        .timed = !strcmp(status, "ok") && (!phase || !strcmp(phase, "timed"))};
}

static void add_record(struct runset *s, json_t *r)
{
    const char *kind = rec_kind(r);
    s->records++;
    if (!strcmp(kind, "meta"))
        s->wall_s = wall_time(rec_text(r, "start"));
    if (!strcmp(kind, "generation")) {
        add_generation(s, r);
        return;
    }
    if (!strcmp(kind, "quality") && !json_is_true(json_object_get(r, "summary")))
        return;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (!strcmp(kind, kept[i])) {
            if (strcmp(kind, "comparison")) /* of configurations that other records tell of */
                about_config(s, r);
            json_t *list = json_object_get(s->kinds, kind);
            if (!list) {
                list = json_array();
                json_object_set_new(s->kinds, kind, list);
            }
            json_array_append(list, r);
        }
}

static int load_source(struct runset *s, const char *path, int64_t limit, struct err *e)
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
        if (got < 0) {
            if (!s->bad++)
                memcpy(s->first_bad, line.text, sizeof s->first_bad);
            continue;
        }
        src->records++;
        add_record(s, r);
        json_decref(r);
        got = 0;
    }
    rec_read_close(reader);
    return got < 0 && e->code ? -1 : 0;
}

int runset_load(struct runset *s, const char *const *paths, size_t n, int64_t limit,
                struct err *e)
{
    static const char *const standard[] = {"-"};
    if (!n) {
        paths = standard;
        n = 1;
    }
    *s = (struct runset){.kinds = json_object(), .configs = json_object()};
    s->sources = mem_zero(n, sizeof *s->sources);
    for (size_t i = 0; i < n; i++)
        if (strcmp(paths[i], "-") && access(paths[i], R_OK))
            return err_set(e, EXIT_NO_INPUT, "%s: %s", paths[i], strerror(errno));
    for (size_t i = 0; i < n; i++)
        if (load_source(s, paths[i], limit, e))
            return -1;
    return 0;
}

void runset_free(struct runset *s)
{
    for (size_t i = 0; i < s->n_sources; i++)
        free(s->sources[i].path);
    free(s->sources);
    free(s->points);
    json_decref(s->kinds);
    json_decref(s->configs);
    *s = (struct runset){0};
}

const json_t *runset_kind(const struct runset *s, const char *kind)
{
    return json_object_get(s->kinds, kind);
}

const json_t *runset_find(const struct runset *s, const char *kind, const char *config,
                          const char *metric)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, kind), i, r) {
        const char *c = rec_text(r, "config"), *m = rec_text(r, "metric");
        if (c && m && !strcmp(c, config) && !strcmp(m, metric))
            return r;
    }
    return NULL;
}

const json_t *runset_config(const struct runset *s, const char *config)
{
    return config ? json_object_get(s->configs, config) : NULL;
}

char *runset_series(const char *config)
{
    char *copy = mem_text(config);
    char *at = strstr(copy, " steps=");
    if (at) {
        size_t n = 1 + strcspn(at + 1, " ");
        memmove(at, at + n, strlen(at + n) + 1);
    }
    return copy;
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
