/* judge.c - see judge.h. Each mode reads all records of some kinds into memory, because there are
 * few. It passes the records to a module that judges them, and writes the verdicts. */
#include "lib/analysis/verdict/judge.h"

#include <stdlib.h>

#include "lib/analysis/claim/agreement.h"
#include "lib/analysis/verdict/ablation.h"
#include "lib/analysis/verdict/effects.h"
#include "lib/analysis/verdict/exactness.h"
#include "lib/analysis/verdict/gather.h"
#include "lib/analysis/verdict/parallelism.h"
#include "lib/analysis/verdict/rankings.h"
#include "lib/analysis/verdict/sameness.h"
#include "lib/analysis/verdict/selftest.h"
#include "lib/analysis/verdict/steptime.h"
#include "lib/base/mem.h"

int judge_count(const struct judge *j)
{
    return !!j->claims + !!j->exact + !!j->stored + (j->self_test > 0) + (j->gate > 0) +
           (j->same_ids > 0) + !!j->samples + !!j->ranking + !!j->aup + !!j->split;
}

static json_t *gather_as(enum gather marks, const char *const *paths, size_t n,
                         const char *const *kinds, const struct log *log, struct err *e)
{
    struct err unsound;
    json_t *list = gather_records(paths, n, kinds, marks, &unsound, e);
    if (list && unsound.code)
        log_warn(log, "W042", "edited after it was written: %s", unsound.text);
    return list;
}

static json_t *gather(const char *const *paths, size_t n, const char *const *kinds,
                      const struct log *log, struct err *e)
{
    return gather_as(GATHER_PLAIN, paths, n, kinds, log, e);
}

static json_t *gather_file(const char *path, const char *kind, const struct log *log,
                           struct err *e)
{
    const char *const kinds[] = {kind, NULL};
    return gather(&path, 1, kinds, log, e);
}

/* Writes each element of `list` as a record and releases the list. list NULL: returns -1, *e is
 * filled already. */
static int write_list(struct rec_writer *out, const char *kind, json_t *list, struct err *e)
{
    json_t *record;
    size_t i;
    int bad = list ? 0 : -1;
    json_array_foreach(list, i, record)
        if (!bad)
            bad = rec_write(out, kind, json_incref(record), e);
    json_decref(list);
    return bad;
}

static int check_names(const json_t *options, const char *path, struct err *e)
{
    json_t *object;
    size_t i;
    json_array_foreach(options, i, object)
        if (!rec_text(object, "option"))
            return err_set(e, EXIT_BAD_DATA, "%s: option record %zu has no option: expected a name",
                           path, i + 1);
    return 0;
}

static int judge_claims(const struct judge *j, const char *const *paths, size_t n,
                        struct rec_writer *out, const struct log *log, struct err *e)
{
    static const char *const kinds[] = {"metric", "comparison", NULL};
    json_t *options = gather_file(j->claims, "option", log, e);
    int bad = options ? check_names(options, j->claims, e) : -1;
    json_t *records = bad ? NULL : gather(paths, n, kinds, log, e);
    bad = records ? write_list(out, "ablation", ablation_judge(options, records), e) : -1;
    json_decref(options);
    json_decref(records);
    return bad;
}

static int judge_exact(const struct judge *j, const char *const *paths, size_t n,
                       struct rec_writer *out, const struct log *log, struct err *e)
{
    static const char *const kinds[] = {"generation", NULL};
    json_t *cases = gather_file(j->exact, "exact_case", log, e);
    json_t *records = cases ? gather(paths, n, kinds, log, e) : NULL;
    int bad = records ? write_list(out, "exactness", exactness_judge(cases, records, e), e) : -1;
    json_decref(cases);
    json_decref(records);
    return bad;
}

static int judge_self_test(const struct judge *j, const char *const *paths, size_t n,
                           struct rec_writer *out, const struct log *log, struct err *e)
{
    static const char *const kinds[] = {"comparison", NULL};
    json_t *records = gather(paths, n, kinds, log, e);
    int bad = records ? write_list(out, "check", selftest_judge(records, j->self_test), e) : -1;
    json_decref(records);
    return bad;
}

/* The number of checks with this verdict. */
static size_t count_verdicts(const json_t *checks, const char *verdict)
{
    const json_t *record;
    size_t i, n = 0;
    json_array_foreach(checks, i, record)
        n += (size_t)rec_is(record, "verdict", verdict);
    return n;
}

static int judge_gate(const struct judge *j, const char *const *paths, size_t n,
                      struct rec_writer *out, const struct log *log, struct err *e)
{
    static const char *const kinds[] = {"comparison", NULL};
    json_t *records = gather(paths, n, kinds, log, e), *record;
    json_t *checks = records ? selftest_gate(records, j->gate) : NULL;
    size_t i;
    const int none = checks && !json_array_size(checks);
    const int code = count_verdicts(checks, "SLOWER")      ? EXIT_FAILED_RECORDS
                     : count_verdicts(checks, "UNDECIDED") ? EXIT_NO_DEVICE /* 69: not available */
                                                           : EXIT_OK;
    json_array_foreach(checks, i, record)
        log_note(log, "%s", rec_text(record, "text"));
    int bad = write_list(out, "check", checks, e);
    json_decref(records);
    if (none)
        return err_set(e, EXIT_BAD_DATA, "--gate: expected comparison records with ratios of "
                       "times (compare --cost e2e_ns), got none");
    return bad ? -1 : code;
}

static int judge_same_ids(const struct judge *j, const char *const *paths, size_t n,
                          struct rec_writer *out, const struct log *log, struct err *e)
{
    static const char *const kinds[] = {"generation", NULL};
    if (n < 2)
        return err_set(e, EXIT_BAD_USAGE, "--same-ids: expected two files or more, got %zu", n);
    json_t *base = gather(paths, 1, kinds, log, e), *record;
    json_t *run = base ? gather(paths + 1, n - 1, kinds, log, e) : NULL;
    json_t *checks = run ? sameness_judge(base, run, j->same_ids) : NULL;
    size_t i;
    int code = checks && !json_array_size(checks) ? EXIT_FAILED_RECORDS : EXIT_OK;
    json_array_foreach(checks, i, record) {
        log_note(log, "%s", rec_text(record, "text"));
        if (!json_is_true(json_object_get(record, "pass")))
            code = EXIT_FAILED_RECORDS;
    }
    int bad = write_list(out, "check", checks, e);
    json_decref(base);
    json_decref(run);
    return bad ? -1 : code;
}

static int write_effects(const char *const *paths, size_t n, struct rec_writer *out,
                         const struct log *log, struct err *e)
{
    static const char *const kinds[] = {"samples", NULL};
    json_t *records = gather(paths, n, kinds, log, e);
    int bad = records ? write_list(out, "comparison", effects_of(records), e) : -1;
    json_decref(records);
    return bad;
}

/* A list of the rankings over all records and, if there are several tasks, over the records of each
 * task. */
static json_t *rank_tasks(const json_t *records, const char *margin)
{
    json_t *list = rankings_of(records, margin), *tasks = json_object(), *of, *record;
    const char *task;
    size_t i;
    json_array_foreach(records, i, record) {
        if (!(task = rec_text(record, "task")))
            continue;
        if (!json_object_get(tasks, task))
            json_object_set_new(tasks, task, json_array());
        json_array_append(json_object_get(tasks, task), record);
    }
    json_object_foreach(tasks, task, of) {
        json_t *own = json_object_size(tasks) > 1 ? rankings_of(of, margin) : json_array();
        json_array_foreach(own, i, record) {
            char *text = mem_format("%s: %s", task, rec_text(record, "text"));
            rec_set_text(record, "task", task);
            rec_set_text(record, "text", text);
            free(text);
        }
        json_array_extend(list, own);
        json_decref(own);
    }
    json_decref(tasks);
    return list;
}

static int judge_ranking(const struct judge *j, const char *const *paths, size_t n,
                         struct rec_writer *out, const struct log *log, struct err *e)
{
    static const char *const kinds[] = {"quality", NULL};
    json_t *records = gather(paths, n, kinds, log, e), *record;
    json_t *rankings = records ? rank_tasks(records, j->margin) : NULL;
    size_t i;
    const int none = rankings && !json_array_size(rankings);
    json_array_foreach(rankings, i, record)
        log_note(log, "%s", rec_text(record, "text"));
    int bad = write_list(out, "ranking", rankings, e);
    json_decref(records);
    return none ? err_set(e, EXIT_BAD_DATA, "--ranking: expected a quality, with a direction, of "
                          "two or more points under two or more templates or seeds, got none")
                : bad;
}

/* Prints the points that are left out of the accuracy under parallelism, once for each task and set
 * of prompts. */
static void note_unpaired(const json_t *list, const struct log *log)
{
    const json_t *record, *last = NULL, *name;
    size_t i, k;
    json_array_foreach(list, i, record) {
        if (!last || !rec_same(last, record, "task") || !rec_same(last, record, "workload"))
            json_array_foreach(json_object_get(record, "unpaired"), k, name)
                log_note(log, "%s left out: no prompt has both a timed answer and an accuracy of "
                         "this point", json_string_value(name));
        last = record;
    }
}

static int judge_aup(const struct judge *j, const char *const *paths, size_t n,
                     struct rec_writer *out, const struct log *log, struct err *e)
{
    static const char *const kinds[] = {"generation", "quality", NULL};
    json_t *records = gather(paths, n, kinds, log, e);
    json_t *list = records ? parallelism_of(records, j->seed, j->draws) : NULL;
    const int none = list && !json_array_size(list);
    note_unpaired(list, log);
    int bad = write_list(out, "aup", list, e);
    json_decref(records);
    return none ? err_set(e, EXIT_BAD_DATA, "--aup: expected prompts that have timed generation "
                          "records and an accuracy at every point of their task, got none")
                : bad;
}

/* Prints the parts of the time of a step as one line. */
static void note_split(const json_t *record, const struct log *log)
{
    const long long tainted = rec_int(record, "tainted", 0);
    if (tainted)
        log_note(log, "%s: %lld disturbed answers left out", rec_text(record, "config"), tainted);
    if (!rec_int(record, "n", 0))
        return;
    log_note(log, "%s: a step of %.3g ms = architecture %.1f %% + algorithm %.1f %% + system "
             "%.1f %%", rec_text(record, "config"), rec_number(record, "step_ns") / 1e6,
             rec_number(record, "architecture_percent"), rec_number(record, "algorithm_percent"),
             rec_number(record, "system_percent"));
}

static int judge_split(const struct judge *j, const char *const *paths, size_t n,
                       struct rec_writer *out, const struct log *log, struct err *e)
{
    static const char *const kinds[] = {"generation", "roofline", NULL};
    json_t *records = gather_as(GATHER_MARKED, paths, n, kinds, log, e), *record;
    json_t *list = records ? steptime_of(records, j->seed, j->draws, e) : NULL;
    size_t i;
    const int none = list && !json_array_size(list);
    json_array_foreach(list, i, record)
        note_split(record, log);
    int bad = write_list(out, "steptime", list, e);
    json_decref(records);
    return none ? err_set(e, EXIT_BAD_DATA, "--split: expected timed generation records of batch 1 "
                          "and the ceilings of their machine (probe-roof), got none")
                : bad;
}

/* Prints the claims that differ, and the summary. */
static void note_differing(const json_t *checks, const struct log *log)
{
    json_t *record;
    size_t i;
    json_array_foreach(checks, i, record)
        if (i + 1 == json_array_size(checks) || json_is_false(json_object_get(record, "pass")))
            log_note(log, "%s", rec_text(record, "text"));
}

static int judge_stored(const struct judge *j, const char *const *paths, size_t n,
                        struct rec_writer *out, const struct log *log, struct err *e)
{
    struct agreement sum = {0};
    static const char *const kinds[] = {"claim", NULL};
    json_t *was = gather_file(j->stored, kinds[0], log, e);
    json_t *now = was ? gather(paths, n, kinds, log, e) : NULL;
    json_t *checks = now ? agreement_of(was, now, &sum) : NULL;
    note_differing(checks, log);
    int bad = write_list(out, "check", checks, e);
    json_decref(was);
    json_decref(now);
    return bad                   ? -1
           : sum.differed        ? EXIT_FAILED_RECORDS
           : !sum.times_compared ? EXIT_NO_DEVICE /* 69: not available */
                                 : EXIT_OK;
}

int judge_run(const struct judge *j, const char *const *paths, size_t n, struct rec_writer *out,
              const struct log *log, struct err *e)
{
    if (j->stored)
        return judge_stored(j, paths, n, out, log, e);
    if (j->claims)
        return judge_claims(j, paths, n, out, log, e);
    if (j->exact)
        return judge_exact(j, paths, n, out, log, e);
    if (j->self_test > 0)
        return judge_self_test(j, paths, n, out, log, e);
    if (j->same_ids > 0)
        return judge_same_ids(j, paths, n, out, log, e);
    if (j->gate > 0)
        return judge_gate(j, paths, n, out, log, e);
    if (j->split)
        return judge_split(j, paths, n, out, log, e);
    if (j->aup)
        return judge_aup(j, paths, n, out, log, e);
    if (j->ranking)
        return judge_ranking(j, paths, n, out, log, e);
    return write_effects(paths, n, out, log, e);
}
