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

/* Size of the matrix, which fits most L2 caches (512 KiB in f32); rows of the two products; calls
 * with few rows in a round. FORMAT_NS: time limit for a format, after ROUNDS_LEAST rounds. */
enum { OUTPUTS = 128, INPUTS = 1024, FEW = 1, MANY = 64, FEW_CALLS = 4 };
enum { ROUNDS = 16, ROUNDS_LEAST = 8, FORMAT_NS = 4000000 };

/* ---- the clock ---- */

struct trial {
    const struct ops *ops;
    struct mat w;
    void *work;
};

/* -1: no memory. */
static int open_trial(struct trial *trial, struct backend *backend, const char *level,
                      const struct mat_source *source, enum dtype dtype)
{
    trial->ops = backend->ops = ops_cpu(level);
    trial->work = mem_aligned(backend->ops->matmul_work(backend, MANY, INPUTS, OUTPUTS));
    return backend->ops->mat_make(backend, &trial->w, source, dtype);
}

static void close_trial(struct trial *trial, struct backend *backend)
{
    if (trial->w.data)
        trial->ops->mat_free(backend, &trial->w);
    free(trial->work);
}

/* Lowers *least to the time of one product. */
static void time_product(int64_t *least, struct trial *trial, struct backend *backend,
                         const float *x, float *y, size_t rows)
{
    const struct product product = {&trial->w, y, 0};
    int64_t begin = clock_ns();
    trial->ops->matmul(backend, &product, 1, (struct input){.x = x}, rows, trial->work);
    int64_t took = clock_ns() - begin;
    took = took > 0 ? took : 1;
    *least = *least && *least < took ? *least : took;
}

static void time_round(struct level_time *time, struct trial *trial, struct backend *backend,
                       const float *x, float *y)
{
    backend->ops = trial->ops;
    for (int i = 0; i < FEW_CALLS; i++)
        time_product(&time->few_ns, trial, backend, x, y, FEW);
    time_product(&time->many_ns, trial, backend, x, y, MANY);
}

/* Times all levels for a format. values: values of the matrix; the input rows are the first of
 * them. Returns -1 if there is no memory. */
static int time_format(struct level_times *times, struct backend *backend, enum dtype dtype,
                       const float *values, float *y)
{
    struct trial trial[LEVEL_CHOICE_MAX] = {0};
    struct mat_source source = mat_floats(values, OUTPUTS, INPUTS);
    struct codes made;
    void *codes = dtype_info[dtype].quantized ? quant_make(&made, &source, dtype, backend->pool)
                                              : NULL;
    int bad = 0;
    if (codes)
        source.q = &made;
    for (size_t i = 0; i < times->levels && !bad; i++)
        bad = open_trial(&trial[i], backend, times->level[i], &source, dtype);
    int64_t begin = clock_ns();
    for (int n = 0; n < ROUNDS && !bad; n++) {
        if (n >= ROUNDS_LEAST && clock_ns() - begin > FORMAT_NS)
            break;
        for (size_t i = 0; i < times->levels; i++)
            time_round(&times->of[dtype][i], &trial[i], backend, values, y);
    }
    for (size_t i = 0; i < times->levels; i++)
        close_trial(&trial[i], backend);
    free(codes);
    return bad;
}

static int time_all(struct level_times *times)
{
    struct err e = {0};
    struct backend *backend = backend_open("cpu", times->level[0], 1, 0, &e);
    float *values = mem_aligned((size_t)OUTPUTS * INPUTS * sizeof *values);
    float *y = mem_aligned((size_t)MANY * OUTPUTS * sizeof *y);
    int bad = backend ? 0 : -1;
    for (uint64_t i = 0; i < (uint64_t)OUTPUTS * INPUTS; i++)
        values[i] = (float)(2 * rng_unit(rng_at(1, i, 0)) - 1);
    for (int dtype = 0; dtype < DTYPES && !bad; dtype++)
        if (!backend->ops->refuses(backend, (enum dtype)dtype, INPUTS))
            bad = time_format(times, backend, (enum dtype)dtype, values, y);
    free(y);
    free(values);
    backend_close(backend);
    return bad;
}

/* ---- the file ---- */

/* Returns the version, the processor and the levels that the times are for; the caller's. */
static json_t *header_of(const struct level_times *times)
{
    json_t *cpu = processor_describe(""), *levels = json_array();
    for (size_t i = 0; i < times->levels; i++)
        json_array_append_new(levels, json_string(times->level[i]));
    json_t *header = json_pack("{s:s, s:s, s:O?, s:O?, s:O?, s:O?, s:o}", "version", version_text,
                               "commit", version_commit, "cpu", json_object_get(cpu, "cpu"),
                               "family", json_object_get(cpu, "cpu_family"), "model",
                               json_object_get(cpu, "cpu_model"), "stepping",
                               json_object_get(cpu, "cpu_stepping"), "levels", levels);
    json_decref(cpu);
    return header;
}

/* Returns the path of the file for a header; the caller's. */
static char *path_of(const char *folder, const json_t *header)
{
    char hex[65], *text = json_dumps(header, JSON_COMPACT);
    hash_bytes(text, strlen(text), hex);
    free(text);
    return mem_format("%s/%.16s", folder, hex);
}

/* Returns the place of entry i of the list of times of a format: for each level first the time with
 * few rows, then with many. */
static int64_t *time_at(struct level_times *times, int dtype, size_t i)
{
    struct level_time *of = &times->of[dtype][i / 2];
    return i % 2 ? &of->many_ns : &of->few_ns;
}

/* 1: the file has the times. */
static int read_times(struct level_times *times, const char *path, const json_t *header)
{
    enum { LIMIT = 1 << 16, MOST = 1000000000 };
    struct level_times kept = *times;
    json_t *j = json_file(path, LIMIT, NULL);
    int known = json_equal(json_object_get(j, "of"), header);
    for (int dtype = 0; dtype < DTYPES && known; dtype++) {
        const json_t *list = json_object_get(json_object_get(j, "ns"), dtype_info[dtype].name);
        known = json_array_size(list) == 2 * times->levels;
        for (size_t i = 0; known && i < 2 * times->levels; i++) {
            const json_t *ns = json_array_get(list, i);
            *time_at(&kept, dtype, i) = json_integer_value(ns);
            known = json_is_integer(ns) && json_integer_value(ns) >= 0 &&
                    json_integer_value(ns) <= MOST;
        }
    }
    json_decref(j);
    if (known)
        *times = kept;
    return known;
}

static void write_times(struct level_times *times, const char *path, json_t *header)
{
    json_t *all = json_object();
    for (int dtype = 0; dtype < DTYPES; dtype++) {
        json_t *list = json_array();
        for (size_t i = 0; i < 2 * times->levels; i++)
            json_array_append_new(list, json_integer(*time_at(times, dtype, i)));
        json_object_set_new(all, dtype_info[dtype].name, list);
    }
    json_t *j = json_pack("{s:O, s:o}", "of", header, "ns", all);
    char *text = json_dumps(j, JSON_COMPACT);
    if (!file_is_regular(path)) /* a pipe would block */
        unlink(path);
    (void)out_whole(path, text, strlen(text), NULL); /* if it fails, the next run measures again */
    free(text);
    json_decref(j);
}

/* Returns the descriptor of the locked folder; -1 if there is no lock, or if another process holds
 * it for too long. */
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

int level_choice_times(struct level_times *times, const char *folder, level_choice_clock *clock)
{
    json_t *header = header_of(times);
    char *path = folder ? path_of(folder, header) : NULL;
    int known = path && read_times(times, path, header), bad = 0;
    if (!known) {
        int lasts = path && !file_make_folder(folder, NULL);
        int held = lasts ? lock_folder(folder) : -1;
        known = held >= 0 && read_times(times, path, header);
        bad = known ? 0 : clock(times);
        if (lasts && !known && !bad)
            write_times(times, path, header);
        if (held >= 0)
            close(held);
    }
    free(path);
    json_decref(header);
    return bad ? -1 : known;
}

/* ---- the choice ---- */

static double mean_ns(const struct level_time *time)
{
    return sqrt((double)time->few_ns * (double)time->many_ns);
}

size_t level_choice_best(const struct level_time *time, size_t n)
{
    double least = INFINITY;
    size_t i = 0;
    for (size_t k = 0; k < n; k++)
        least = fmin(least, mean_ns(&time[k]));
    while (i + 1 < n && mean_ns(&time[i]) > least * (1 + noise))
        i++;
    return i;
}

/* Lists the levels that can run here, without the last one: that level is for machines that can run
 * no other. */
static void list_levels(struct level_times *times)
{
    const struct ops *ops;
    while (times->levels < LEVEL_CHOICE_MAX && (ops = ops_cpu_at(times->levels)))
        times->level[times->levels++] = ops->level;
    if (times->levels > 1)
        times->levels--;
}

static void log_choice(const struct log *log, const struct level_times *times, enum dtype dtype,
                       size_t chosen, const char *source)
{
    struct buf text = {0};
    for (size_t i = 0; i < times->levels; i++)
        buf_format(&text, "%s%s %.1f %.1f", i ? ", " : "", times->level[i],
                   (double)times->of[dtype][i].few_ns / 1e3,
                   (double)times->of[dtype][i].many_ns / 1e3);
    log_more(log, "isa %s for %s: a product with %d row and with %d takes, in us: %s (%s)",
             times->level[chosen], dtype_info[dtype].name, FEW, MANY, text.data, source);
    buf_free(&text);
}

void level_choice_use(struct backend *backend, enum dtype dtype, const struct log *log)
{
    struct level_times times = {0};
    if (strcmp(backend->ops->name, "cpu"))
        return;
    list_levels(&times);
    if (times.levels < 2)
        return;
    char *folder = file_cache_folder("levels");
    int known = level_choice_times(&times, folder, time_all);
    size_t i = known < 0 ? 0 : level_choice_best(times.of[dtype], times.levels);
    backend->ops = ops_cpu(times.level[i]);
    snprintf(backend->level, sizeof backend->level, "%s", backend->ops->level);
    if (log && known >= 0)
        log_choice(log, &times, dtype, i, known ? "measured before" : "measured now");
    free(folder);
}
