/* level_choice.c - see level_choice.h. The file of times is JSON: "of", the version, processor and
 * levels that it holds for, and "ns", for each format the times of each level.
 *
 * Levels take turns, and the fastest of several rounds counts, so that other work of the machine
 * affects all levels alike, and mostly none. */
#include "lib/run/probe/level_choice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/quant.h"
#include "lib/base/cli/opt.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/base/out.h"
#include "lib/base/rng.h"
#include "lib/record/machine/processor.h"
#include "lib/record/json.h"

static const double noise = 0.05;

/* The matrix fits any second-level cache; rows; time limit. */
enum { OUTPUTS = 128, INPUTS = 1024, FEW = 1, MANY = 64, FEW_CALLS = 4 };
enum { ROUNDS = 16, ROUNDS_LEAST = 8, FORMAT_NS = 4000000 };

/* ---- the clock ---- */

struct trial {
    const struct ops *ops;
    struct mat w;
    void *work;
};

/* -1: no memory. */
static int open_trial(struct trial *r, struct backend *b, const char *level,
                      const struct mat_source *s, enum dtype d)
{
    r->ops = b->ops = ops_cpu(level);
    r->work = mem_aligned(b->ops->matmul_work(b, MANY, INPUTS, OUTPUTS));
    return b->ops->mat_make(b, &r->w, s, d);
}

static void close_trial(struct trial *r, struct backend *b)
{
    if (r->w.data)
        r->ops->mat_free(b, &r->w);
    free(r->work);
}

/* Lowers *least to the time of one product. */
static void time_product(int64_t *least, struct trial *r, struct backend *b, const float *x,
                         float *y, size_t rows)
{
    const struct product p = {&r->w, y, 0};
    int64_t begin = clock_ns();
    r->ops->matmul(b, &p, 1, (struct input){.x = x}, rows, r->work);
    int64_t took = clock_ns() - begin;
    took = took > 0 ? took : 1;
    *least = *least && *least < took ? *least : took;
}

static void time_round(struct level_time *t, struct trial *r, struct backend *b, const float *x,
                       float *y)
{
    b->ops = r->ops;
    for (int i = 0; i < FEW_CALLS; i++)
        time_product(&t->few_ns, r, b, x, y, FEW);
    time_product(&t->many_ns, r, b, x, y, MANY);
}

/* values: of the matrix; the rows are its beginning. -1: no memory. */
static int time_format(struct level_times *t, struct backend *b, enum dtype d, const float *values,
                       float *y)
{
    struct trial trial[LEVEL_CHOICE_MAX] = {0};
    struct mat_source s = mat_floats(values, OUTPUTS, INPUTS);
    struct codes q;
    void *codes = dtype_info[d].quantized ? quant_make(&q, &s, d, b->pool) : NULL;
    int bad = 0;
    if (codes)
        s.q = &q;
    for (size_t i = 0; i < t->levels && !bad; i++)
        bad = open_trial(&trial[i], b, t->level[i], &s, d);
    int64_t begin = clock_ns();
    for (int n = 0; n < ROUNDS && !bad; n++) {
        if (n >= ROUNDS_LEAST && clock_ns() - begin > FORMAT_NS)
            break;
        for (size_t i = 0; i < t->levels; i++)
            time_round(&t->of[d][i], &trial[i], b, values, y);
    }
    for (size_t i = 0; i < t->levels; i++)
        close_trial(&trial[i], b);
    free(codes);
    return bad;
}

static int time_all(struct level_times *t)
{
    struct err e = {0};
    struct backend *b = backend_open("cpu", t->level[0], 1, 0, &e);
    float *values = mem_aligned((size_t)OUTPUTS * INPUTS * sizeof *values);
    float *y = mem_aligned((size_t)MANY * OUTPUTS * sizeof *y);
    int bad = b ? 0 : -1;
    for (uint64_t i = 0; i < (uint64_t)OUTPUTS * INPUTS; i++)
        values[i] = (float)(2 * rng_unit(rng_at(1, i, 0)) - 1);
    for (int d = 0; d < DTYPES && !bad; d++)
        if (!b->ops->refuses(b, (enum dtype)d, INPUTS))
            bad = time_format(t, b, (enum dtype)d, values, y);
    free(y);
    free(values);
    backend_close(b);
    return bad;
}

/* ---- the file ---- */

/* The version, the processor and the levels that the times are for. The caller frees it. */
static json_t *header_of(const struct level_times *t)
{
    json_t *cpu = processor_describe(""), *levels = json_array();
    for (size_t i = 0; i < t->levels; i++)
        json_array_append_new(levels, json_string(t->level[i]));
    json_t *header = json_pack("{s:s, s:s, s:O?, s:O?, s:O?, s:O?, s:o}", "version", version_text,
                               "commit", version_commit, "cpu", json_object_get(cpu, "cpu"),
                               "family", json_object_get(cpu, "cpu_family"), "model",
                               json_object_get(cpu, "cpu_model"), "stepping",
                               json_object_get(cpu, "cpu_stepping"), "levels", levels);
    json_decref(cpu);
    return header;
}

/* The caller's. */
static char *path_of(const char *folder, const json_t *header)
{
    char hex[65], *text = json_dumps(header, JSON_COMPACT);
    hash_bytes(text, strlen(text), hex);
    free(text);
    return mem_format("%s/%.16s", folder, hex);
}

/* The times of a format, few and many rows of each level, as a list. */
static int64_t *time_at(struct level_times *t, int d, size_t i)
{
    struct level_time *of = &t->of[d][i / 2];
    return i % 2 ? &of->many_ns : &of->few_ns;
}

/* 1: the file has the times. */
static int read_times(struct level_times *t, const char *path, const json_t *header)
{
    enum { LIMIT = 1 << 16, MOST = 1000000000 };
    struct level_times kept = *t;
    json_t *j = json_file(path, LIMIT, NULL);
    int known = json_equal(json_object_get(j, "of"), header);
    for (int d = 0; d < DTYPES && known; d++) {
        const json_t *list = json_object_get(json_object_get(j, "ns"), dtype_info[d].name);
        known = json_array_size(list) == 2 * t->levels;
        for (size_t i = 0; known && i < 2 * t->levels; i++) {
            const json_t *ns = json_array_get(list, i);
            *time_at(&kept, d, i) = json_integer_value(ns);
            known = json_is_integer(ns) && json_integer_value(ns) >= 0 &&
                    json_integer_value(ns) <= MOST;
        }
    }
    json_decref(j);
    if (known)
        *t = kept;
    return known;
}

static void write_times(struct level_times *t, const char *path, json_t *header)
{
    json_t *all = json_object();
    for (int d = 0; d < DTYPES; d++) {
        json_t *list = json_array();
        for (size_t i = 0; i < 2 * t->levels; i++)
            json_array_append_new(list, json_integer(*time_at(t, d, i)));
        json_object_set_new(all, dtype_info[d].name, list);
    }
    json_t *j = json_pack("{s:O, s:o}", "of", header, "ns", all);
    char *text = json_dumps(j, JSON_COMPACT);
    if (!file_is_regular(path)) /* a pipe would block */
        unlink(path);
    (void)out_whole(path, text, strlen(text), NULL); /* if it fails, the next run measures again */
    free(text);
    json_decref(j);
}

/* The descriptor of the locked folder; -1: no lock, or another process holds it too long. */
static int lock_folder(const char *folder)
{
    const struct timespec moment = {0, 5000000};
    for (int i = 0; i < 100; i++) {
        struct err e = {0};
        int held = file_lock_folder(folder, &e);
        if (held >= 0 || e.code != EXIT_BUSY)
            return held;
        nanosleep(&moment, NULL);
    }
    return -1;
}

int level_choice_times(struct level_times *t, const char *folder, level_choice_clock *clock)
{
    json_t *header = header_of(t);
    char *path = folder ? path_of(folder, header) : NULL;
    int known = path && read_times(t, path, header), bad = 0;
    if (!known) {
        int lasts = path && !file_make_folder(folder, NULL);
        int held = lasts ? lock_folder(folder) : -1;
        known = held >= 0 && read_times(t, path, header);
        bad = known ? 0 : clock(t);
        if (lasts && !known && !bad)
            write_times(t, path, header);
        if (held >= 0)
            close(held);
    }
    free(path);
    json_decref(header);
    return bad ? -1 : known;
}

/* ---- the choice ---- */

static double mean_ns(const struct level_time *t)
{
    return sqrt((double)t->few_ns * (double)t->many_ns);
}

size_t level_choice_best(const struct level_time *t, size_t n)
{
    double least = INFINITY;
    size_t i = 0;
    for (size_t k = 0; k < n; k++)
        least = fmin(least, mean_ns(&t[k]));
    while (i + 1 < n && mean_ns(&t[i]) > least * (1 + noise))
        i++;
    return i;
}

/* All levels that can run here except the last one: it is for machines that can run no other. */
static void list_levels(struct level_times *t)
{
    const struct ops *ops;
    while (t->levels < LEVEL_CHOICE_MAX && (ops = ops_cpu_at(t->levels)))
        t->level[t->levels++] = ops->level;
    if (t->levels > 1)
        t->levels--;
}

static void log_choice(const struct log *log, const struct level_times *t, enum dtype d,
                       size_t chosen, const char *source)
{
    struct buf b = {0};
    for (size_t i = 0; i < t->levels; i++)
        buf_format(&b, "%s%s %.1f %.1f", i ? ", " : "", t->level[i],
                   (double)t->of[d][i].few_ns / 1e3, (double)t->of[d][i].many_ns / 1e3);
    log_more(log, "isa %s for %s: a product with %d row and with %d takes, in us: %s (%s)",
             t->level[chosen], dtype_info[d].name, FEW, MANY, b.data, source);
    buf_free(&b);
}

void level_choice_use(struct backend *b, enum dtype dtype, const struct log *log)
{
    struct level_times t = {0};
    if (strcmp(b->ops->name, "cpu"))
        return;
    list_levels(&t);
    if (t.levels < 2)
        return;
    char *folder = file_cache_folder("levels");
    int known = level_choice_times(&t, folder, time_all);
    size_t i = known < 0 ? 0 : level_choice_best(t.of[dtype], t.levels);
    b->ops = ops_cpu(t.level[i]);
    snprintf(b->level, sizeof b->level, "%s", b->ops->level);
    if (log && known >= 0)
        log_choice(log, &t, dtype, i, known ? "measured before" : "measured now");
    free(folder);
}
