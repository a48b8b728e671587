/* sections-origin.c - sections on machines, models, checks, failures, files and commands; see
 * sections.h. A reader needs them to trust the numbers, or to measure them again. Every sentence is
 * a fact of the records. */
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

/* measured 1: a machine on which numbers were measured; 0: a machine of the analysis. */
static void put_machine(struct page *page, const json_t *machine, int measured)
{
    const char *gpu = rec_text(machine, "gpu");
    char *cpu = processor_name(machine);
    page_item(page, "%s %s: %s%s%s, %lld cores, %.1f GiB memory, %s, compiler %s.",
              measured ? "Machine" : "Analysed on machine", rec_text(machine, "fingerprint"),
              sections_dash(cpu), gpu ? ", " : "", gpu ? gpu : "",
              (long long)rec_int(machine, "cores", 0),
              rec_number(machine, "memory_bytes") / (1024.0 * 1024 * 1024),
              sections_dash(rec_text(machine, "kernel")),
              sections_dash(rec_text(machine, "compiler")));
    free(cpu);
}

/* Puts each machine once: first the machines on which numbers were measured, then the machines of
 * the analysis. */
void sections_machines(struct page *page, const struct runset *set)
{
    static const char *const kinds[] = {"meta", "parent"};
    json_t *seen = json_object();
    size_t measured = 0;
    for (size_t k = 0; k < 4; k++) {
        size_t i;
        const json_t *record;
        json_array_foreach(runset_kind(set, kinds[k % 2]), i, record) {
            const json_t *machine = json_object_get(record, "machine");
            const char *print = rec_text(machine, "fingerprint");
            if (!print || runset_measures(record) != (k < 2) || json_object_get(seen, print))
                continue;
            json_object_set_new(seen, print, json_true());
            put_machine(page, machine, k < 2 || !measured);
            measured += k < 2;
        }
    }
    if (!measured)
        measured = json_object_size(seen);
    if (measured > 1)
        page_item(page, "The records come from %zu machines: do not compare latencies of different "
                        "machines.",
                  measured);
    json_decref(seen);
}

/* 1: this configuration (of a scorer) has no device, and another configuration of the model has
 * one. */
static int is_said_elsewhere(const struct runset *set, const json_t *about)
{
    const char *config, *model = sections_dash(rec_text(about, "model"));
    json_t *other;
    if (rec_text(about, "device"))
        return 0;
    json_object_foreach(set->configs, config, other)
        if (rec_text(other, "device") && !strcmp(sections_dash(rec_text(other, "model")), model))
            return 1;
    return 0;
}

void sections_models(struct page *page, const struct runset *set)
{
    json_t *seen = json_object();
    const char *config;
    json_t *about;
    json_object_foreach(set->configs, config, about) {
        static const char *const keys[] = {"arch", "device", "dtype", "quant"};
        const char *name = rec_text(about, "device_name");
        struct buf text = {0};
        buf_format(&text, "Model %s", sections_dash(rec_text(about, "model")));
        for (size_t i = 0; i < 4; i++)
            if (rec_text(about, keys[i]))
                buf_format(&text, ", %s %s", keys[i], rec_text(about, keys[i]));
        if (name)
            buf_format(&text, ", on %s", name);
        if (json_is_true(json_object_get(about, "weights_random")))
            buf_text(&text, ", random weights (speed and memory only)");
        if (!json_object_get(seen, text.data) && !is_said_elsewhere(set, about))
            page_item(page, "%s.", text.data);
        json_object_set_new(seen, text.data, json_true());
        buf_free(&text);
    }
    json_decref(seen);
}

/* ---- self-tests ---- */

void sections_checks(struct page *page, const struct runset *set)
{
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "check"), i, record) {
        page_item(page, "Check %s: %s%s%s", sections_dash(rec_text(record, "check")),
                  doubts_is_failed(record)                        ? "NOT PASSED"
                  : json_is_true(json_object_get(record, "pass")) ? "passed"
                                                                  : "done",
                  rec_text(record, "text") ? ": " : ".",
                  rec_text(record, "text") ? rec_text(record, "text") : "");
    }
}

/* ---- failures, files, commands ---- */

void sections_outcomes(struct page *page, const struct runset *set)
{
    static const struct page_column columns[] = {{"Configuration", NULL},
                                                 {"Ok", ""},
                                                 {"Out of memory", ""},
                                                 {"Timed out or interrupted", ""}};
    static const char *const keys[] = {"timed", "oom", "failed"};
    int64_t sum[3] = {0}, errors = 0;
    const char *point;
    const json_t *record;
    json_t *about;
    size_t i;
    json_array_foreach(runset_kind(set, "error"), i, record)
        errors += rec_failures(record);
    json_object_foreach(set->configs, point, about) {
        const json_t *metric = runset_find(set, "metric", point, "e2e_ns");
        int counted = json_object_get(about, keys[0]) || json_object_get(about, keys[1]) ||
                      json_object_get(about, keys[2]);
        for (size_t k = 0; k < 3; k++) { /* without generation records: counts of e2e_ns records */
            if (!counted && metric)
                json_object_set_new(about, keys[k], json_integer(rec_int(metric, keys[k], 0)));
            sum[k] += rec_int(about, keys[k], 0);
        }
    }
    page_text(page,
              "These numbers are from %lld answers. %lld answers ran out of memory, %lld timed "
              "out or were interrupted. %lld error records; %lld broken records are left out.",
              (long long)sum[0], (long long)sum[1], (long long)sum[2], (long long)errors,
              (long long)set->broken.n);
    if (set->repeats + set->set_aside)
        page_text(page, "%lld records occur twice and count once. %lld measurements of points on "
                        "fewer prompts are not shown.",
                  (long long)set->repeats, (long long)set->set_aside);
    if (sum[1] + sum[2]) {
        page_table(page, "Configurations with failed answers.", 4, columns);
        json_object_foreach(set->configs, point, about) {
            if (rec_int(about, keys[1], 0) + rec_int(about, keys[2], 0) == 0)
                continue;
            page_cell(page, sections_dash(rec_text(about, "config")));
            for (size_t k = 0; k < 3; k++)
                page_count(page, (double)rec_int(about, keys[k], 0));
        }
        page_table_end(page);
    }
    json_array_foreach(runset_kind(set, "error"), i, record) {
        if (i < MAX_ERRORS)
            page_item(page, "Error %s: %s (%s)", sections_dash(rec_text(record, "code")),
                      sections_dash(rec_text(record, "message")),
                      sections_dash(rec_text(record, "where")));
    }
    for (int64_t k = 0; k < set->broken.n && k < REC_BAD_SAID; k++)
        page_item(page, "Left out: %s", set->broken.said[k]);
}

static void put_commands(struct page *page, const struct runset *set)
{
    static const char *const kinds[] = {"parent", "meta"};
    json_t *seen = json_object();
    for (size_t k = 0; k < 2; k++) {
        size_t i, wall;
        const json_t *record, *word;
        json_array_foreach(runset_kind(set, kinds[k]), i, record) {
            struct buf text = {0};
            json_array_foreach(json_object_get(record, "argv"), wall, word)
                buf_format(&text, "%s%s", wall ? " " : "", sections_dash(json_string_value(word)));
            if (text.len && !json_object_get(seen, text.data) &&
                json_object_size(seen) < MAX_COMMANDS)
                page_code(page, text.data);
            if (text.len)
                json_object_set_new(seen, text.data, json_true());
            buf_free(&text);
        }
    }
    if (json_object_size(seen) > MAX_COMMANDS)
        page_text(page, "%zu more commands are in the meta records.",
                  json_object_size(seen) - MAX_COMMANDS);
    json_decref(seen);
}

void sections_origin(struct page *page, const struct runset *set, const char *output)
{
    static const struct page_column columns[] = {
        {"File", NULL}, {"Records", ""}, {"SHA-256", NULL}};
    const char *commit = json_string_value(runset_meta(set, "commit"));
    page_table(page, "Record files of this page.", 3, columns);
    for (size_t i = 0; i < set->n_sources; i++) {
        char *path = sections_link(output, set->sources[i].path);
        page_cell(page, strcmp(set->sources[i].path, "-") ? path : "standard input");
        page_count(page, (double)set->sources[i].records);
        page_cell(page, sections_dash(set->sources[i].sha256));
        free(path);
    }
    page_table_end(page);
    if (commit)
        page_text(page, "The records were written by crossover %s, commit %s; the first at %s.",
                  sections_dash(json_string_value(runset_meta(set, "version"))), commit,
                  sections_dash(json_string_value(runset_meta(set, "start"))));
    put_commands(page, set);
}

/* ---- relative paths ---- */

char *sections_link(const char *from, const char *to)
{
    const char *slash = strrchr(from, '/');
    char *folder = slash ? mem_format("%.*s", (int)(slash - from + (slash == from)), from)
                         : mem_text(".");
    char *start = realpath(folder, NULL), *target = realpath(to, NULL);
    free(folder);
    struct buf out = {0};
    size_t same = 0; /* end of the last common folder */
    for (size_t i = 0; start && target; i++) {
        if ((start[i] == '/' || !start[i]) && (target[i] == '/' || !target[i]))
            same = i;
        if (start[i] != target[i] || !start[i])
            break;
    }
    for (const char *letter = start && target ? start + same : ""; *letter; letter++)
        if (*letter == '/')
            buf_text(&out, "../");
    if (start && target)
        buf_text(&out, target + same + (target[same] == '/'));
    free(start);
    free(target);
    return out.data ? out.data : mem_text(to);
}
