/* sections-origin.c - see sections.h: machines, models, checks, failures, files and commands, which
 * a reader needs to trust the numbers or to measure them again. Every sentence is a fact of the
 * records. */
#include "lib/report/sections.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/analysis/config_table.h"
#include "lib/analysis/words/display.h"
#include "lib/analysis/verdict/doubts.h"
#include "lib/record/machine/processor.h"
#include "lib/record/rec.h"

enum { MAX_COMMANDS = 60, MAX_ERRORS = 12 };

/* ---- machine and models ---- */

static void put_machine(struct page *p, const json_t *m, int measured)
{
    const char *gpu = rec_text(m, "gpu");
    char *cpu = processor_name(m);
    page_item(p, "%s %s: %s%s%s, %lld cores, %.1f GiB memory, %s, compiler %s.",
              measured ? "Machine" : "Analysed on machine", rec_text(m, "fingerprint"),
              sections_dash(cpu), gpu ? ", " : "", gpu ? gpu : "",
              (long long)rec_int(m, "cores", 0),
              rec_number(m, "memory_bytes") / (1024.0 * 1024 * 1024),
              sections_dash(rec_text(m, "kernel")), sections_dash(rec_text(m, "compiler")));
    free(cpu);
}

/* Each machine once: first those that were measured, then those of the analysis. */
void sections_machines(struct page *p, const struct runset *s)
{
    static const char *const kinds[] = {"meta", "parent"};
    json_t *seen = json_object();
    size_t measured = 0;
    for (size_t k = 0; k < 4; k++) {
        size_t i;
        const json_t *r;
        json_array_foreach(runset_kind(s, kinds[k % 2]), i, r) {
            const json_t *m = json_object_get(r, "machine");
            const char *print = rec_text(m, "fingerprint");
            if (!print || runset_measures(r) != (k < 2) || json_object_get(seen, print))
                continue;
            json_object_set_new(seen, print, json_true());
            put_machine(p, m, k < 2 || !measured);
            measured += k < 2;
        }
    }
    if (!measured)
        measured = json_object_size(seen);
    if (measured > 1)
        page_item(p, "The records come from %zu machines: do not compare latencies of different "
                     "machines.",
                  measured);
    json_decref(seen);
}

/* 1: this configuration (of a scorer) has no device, and another one of the model has. */
static int is_said_elsewhere(const struct runset *s, const json_t *about)
{
    const char *config, *model = sections_dash(rec_text(about, "model"));
    json_t *other;
    if (rec_text(about, "device"))
        return 0;
    json_object_foreach(s->configs, config, other)
        if (rec_text(other, "device") && !strcmp(sections_dash(rec_text(other, "model")), model))
            return 1;
    return 0;
}

void sections_models(struct page *p, const struct runset *s)
{
    json_t *seen = json_object();
    const char *config;
    json_t *about;
    json_object_foreach(s->configs, config, about) {
        static const char *const keys[] = {"arch", "device", "dtype", "quant"};
        const char *name = rec_text(about, "device_name");
        struct buf b = {0};
        buf_format(&b, "Model %s", sections_dash(rec_text(about, "model")));
        for (size_t i = 0; i < 4; i++)
            if (rec_text(about, keys[i]))
                buf_format(&b, ", %s %s", keys[i], rec_text(about, keys[i]));
        if (name)
            buf_format(&b, ", on %s", name);
        if (json_is_true(json_object_get(about, "weights_random")))
            buf_text(&b, ", random weights (speed and memory only)");
        if (!json_object_get(seen, b.data) && !is_said_elsewhere(s, about))
            page_item(p, "%s.", b.data);
        json_object_set_new(seen, b.data, json_true());
        buf_free(&b);
    }
    json_decref(seen);
}

/* ---- self-tests ---- */

void sections_checks(struct page *p, const struct runset *s)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "check"), i, r) {
        page_item(p, "Check %s: %s%s%s", sections_dash(rec_text(r, "check")),
                  doubts_is_failed(r)                          ? "NOT PASSED"
                  : json_is_true(json_object_get(r, "pass")) ? "passed"
                                                             : "done",
                  rec_text(r, "text") ? ": " : ".", rec_text(r, "text") ? rec_text(r, "text") : "");
    }
}

/* ---- failures, files, commands ---- */

void sections_outcomes(struct page *p, const struct runset *s)
{
    static const struct page_column columns[] = {{"Configuration", NULL},
                                                 {"Ok", ""},
                                                 {"Out of memory", ""},
                                                 {"Timed out or interrupted", ""}};
    static const char *const keys[] = {"timed", "oom", "failed"};
    int64_t sum[3] = {0}, errors = 0;
    const char *point;
    const json_t *r;
    json_t *about;
    size_t i;
    json_array_foreach(runset_kind(s, "error"), i, r)
        errors += rec_failures(r);
    json_object_foreach(s->configs, point, about) {
        const json_t *m = runset_find(s, "metric", point, "e2e_ns");
        int counted = json_object_get(about, keys[0]) || json_object_get(about, keys[1]) ||
                      json_object_get(about, keys[2]);
        for (size_t k = 0; k < 3; k++) { /* without generations: the counts of measure */
            if (!counted && m)
                json_object_set_new(about, keys[k], json_integer(rec_int(m, keys[k], 0)));
            sum[k] += rec_int(about, keys[k], 0);
        }
    }
    page_text(p, "These numbers are from %lld answers. %lld answers ran out of memory, %lld timed "
                 "out or were interrupted. %lld error records; %lld unreadable lines.",
              (long long)sum[0], (long long)sum[1], (long long)sum[2], (long long)errors,
              (long long)s->bad);
    if (s->repeats + s->set_aside)
        page_text(p, "%lld records occur twice and count once. %lld measurements of points on "
                     "fewer prompts are not shown.",
                  (long long)s->repeats, (long long)s->set_aside);
    if (sum[1] + sum[2]) {
        page_table(p, "Configurations with failed answers.", 4, columns);
        json_object_foreach(s->configs, point, about) {
            if (rec_int(about, keys[1], 0) + rec_int(about, keys[2], 0) == 0)
                continue;
            page_cell(p, sections_dash(rec_text(about, "config")));
            for (size_t k = 0; k < 3; k++)
                page_count(p, (double)rec_int(about, keys[k], 0));
        }
        page_table_end(p);
    }
    json_array_foreach(runset_kind(s, "error"), i, r) {
        if (i < MAX_ERRORS)
            page_item(p, "Error %s: %s (%s)", sections_dash(rec_text(r, "code")),
                      sections_dash(rec_text(r, "message")),
                      sections_dash(rec_text(r, "where")));
    }
    if (s->bad)
        page_item(p, "Unreadable: %s", s->first_bad);
}

static void put_commands(struct page *p, const struct runset *s)
{
    static const char *const kinds[] = {"parent", "meta"};
    json_t *seen = json_object();
    for (size_t k = 0; k < 2; k++) {
        size_t i, w;
        const json_t *r, *word;
        json_array_foreach(runset_kind(s, kinds[k]), i, r) {
            struct buf b = {0};
            json_array_foreach(json_object_get(r, "argv"), w, word)
                buf_format(&b, "%s%s", w ? " " : "", sections_dash(json_string_value(word)));
            if (b.len && !json_object_get(seen, b.data) && json_object_size(seen) < MAX_COMMANDS)
                page_code(p, b.data);
            if (b.len)
                json_object_set_new(seen, b.data, json_true());
            buf_free(&b);
        }
    }
    if (json_object_size(seen) > MAX_COMMANDS)
        page_text(p, "%zu more commands are in the meta records.",
                  json_object_size(seen) - MAX_COMMANDS);
    json_decref(seen);
}

void sections_origin(struct page *p, const struct runset *s, const char *output)
{
    static const struct page_column columns[] = {
        {"File", NULL}, {"Records", ""}, {"SHA-256", NULL}};
    const char *commit = json_string_value(runset_meta(s, "commit"));
    page_table(p, "Record files of this page.", 3, columns);
    for (size_t i = 0; i < s->n_sources; i++) {
        char *path = sections_link(output, s->sources[i].path);
        page_cell(p, strcmp(s->sources[i].path, "-") ? path : "standard input");
        page_count(p, (double)s->sources[i].records);
        page_cell(p, sections_dash(s->sources[i].sha256));
        free(path);
    }
    page_table_end(p);
    if (commit)
        page_text(p, "The records were written by crossover %s, commit %s; the first at %s.",
                  sections_dash(json_string_value(runset_meta(s, "version"))), commit,
                  sections_dash(json_string_value(runset_meta(s, "start"))));
    put_commands(p, s);
}

/* ---- relative paths ---- */

char *sections_link(const char *from, const char *to)
{
    const char *slash = strrchr(from, '/');
    char *folder = slash ? mem_format("%.*s", (int)(slash - from + (slash == from)), from)
                         : mem_text(".");
    char *a = realpath(folder, NULL), *b = realpath(to, NULL);
    free(folder);
    struct buf out = {0};
    size_t same = 0; /* end of the last common folder */
    for (size_t i = 0; a && b; i++) {
        if ((a[i] == '/' || !a[i]) && (b[i] == '/' || !b[i]))
            same = i;
        if (a[i] != b[i] || !a[i])
            break;
    }
    for (const char *c = a && b ? a + same : ""; *c; c++)
        if (*c == '/')
            buf_text(&out, "../");
    if (a && b)
        buf_text(&out, b + same + (b[same] == '/'));
    free(a);
    free(b);
    return out.data ? out.data : mem_text(to);
}
