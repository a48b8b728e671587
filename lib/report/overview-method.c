/* overview-method.c - the table of the section on method: a dozen facts about the experiment, one
 * row each; see overview.h.
 *
 * A fact that the records lack has no row. The page of all tables has the full tables. */
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/verdict/doubts.h"
#include "lib/record/machine/processor.h"
#include "lib/record/rec.h"
#include "lib/report/claims.h"
#include "lib/report/overview.h"
#include "lib/report/sections.h"

/* Puts a row with the fact `what`, unless value is empty. Frees value. */
static void put_fact(struct page *page, const char *what, struct buf *value)
{
    if (value->len) {
        page_cell(page, what);
        page_cell(page, value->data);
    }
    buf_free(value);
}

static void put_machine(struct page *page, const struct runset *set)
{
    const json_t *machine = runset_machine(set);
    const char *gpu = rec_text(machine, "gpu"), *print = rec_text(machine, "fingerprint");
    char *cpu = machine ? processor_name(machine) : NULL;
    struct buf text = {0};
    if (machine)
        buf_format(&text, "%s%s%s, %lld cores, %.1f GiB of memory, %s%s%s", sections_dash(cpu),
                   gpu ? ", " : "", gpu ? gpu : "", (long long)rec_int(machine, "cores", 0),
                   rec_number(machine, "memory_bytes") / (1024.0 * 1024 * 1024),
                   sections_dash(rec_text(machine, "kernel")), print ? ", id " : "",
                   print ? print : "");
    put_fact(page, "Machine", &text);
    free(cpu);
}

/* Puts "llada-demo (cpu, bf16); llama-demo (cpu, bf16)". */
static void put_models(struct page *page, const struct runset *set, int embedded)
{
    struct buf text = {0};
    json_t *seen = json_object(), *about;
    const char *point;
    json_object_foreach(set->configs, point, about) {
        const char *model = rec_text(about, "model"), *device = rec_text(about, "device");
        const char *dtype = rec_text(about, "dtype");
        if (!model || !device || json_object_get(seen, model))
            continue;
        json_object_set_new(seen, model, json_true());
        buf_format(
            &text, "%s%s (%s, %s%s)", text.len ? "; " : "", model, device, sections_dash(dtype),
            json_is_true(json_object_get(about, "weights_random")) ? ", random weights" : "");
    }
    json_decref(seen);
    if (text.len && embedded)
        buf_text(&text, ". These are small demonstration models: the numbers do not hold for "
                        "LLaDA 8B and LLaMA 3 8B");
    put_fact(page, "Models", &text);
}

static void put_prompts(struct page *page, const struct runset *set)
{
    struct buf text = {0};
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "prompt"), i, record)
        buf_format(&text, "%s%.0f of %s%s%s%s", text.len ? "; " : "", rec_number(record, "n"),
                   sections_dash(rec_text(record, "source")), rec_text(record, "task") ? " (" : "",
                   rec_text(record, "task") ? rec_text(record, "task") : "",
                   rec_text(record, "task") ? ")" : "");
    put_fact(page, "Prompts", &text);
}

static void put_margins(struct page *page, const struct runset *set)
{
    struct buf text = {0};
    const json_t *x;
    for (size_t i = 0; (x = claims_equal_quality(set, i)) != NULL; i++) {
        buf_text(&text, i ? "; " : "");
        claims_margin(&text, x);
    }
    put_fact(page, "A match means", &text);
}

static void put_launches(struct page *page, const struct runset *set)
{
    struct buf text = {0};
    double most = 0, warmups = 0, timed = 0;
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "metric"), i, record) {
        if (!rec_is(record, "metric", "e2e_ns"))
            continue;
        double launches = rec_number(record, "launches");
        most = launches > most ? launches : most;
        warmups += (double)rec_int(record, "warmup", 0);
        timed += (double)rec_int(record, "timed", 0);
    }
    if (timed > 0)
        buf_format(&text, "at most %.0f a point; %.0f timed answers, %.0f warm-up answers",
                   most, timed, warmups);
    put_fact(page, "Launches", &text);
}

static void put_checks(struct page *page, const struct runset *set)
{
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "check"), i, record) {
        struct buf text = {0};
        if (rec_is(record, "check", "same") && rec_text(record, "text"))
            buf_format(&text, "%s: %s", doubts_is_failed(record) ? "not passed" : "passed",
                       rec_text(record, "text"));
        put_fact(page, "Self-test", &text);
        if (rec_is(record, "check", "same"))
            return; /* other checks are on the page of all tables */
    }
}

static void put_quiet(struct page *page, const struct runset *set)
{
    struct doubts_fitness fitness = doubts_count(set, NULL);
    struct buf looks = {0}, tainted = {0}, cores = {0};
    if (fitness.launches)
        buf_format(&looks, "quiet before %lld of %lld launches",
                   (long long)(fitness.launches - fitness.unfit), (long long)fitness.launches);
    if (fitness.batches)
        buf_format(&tainted, "%lld of %lld timed answers; the times of %lld of %lld points drift",
                   (long long)fitness.tainted, (long long)fitness.batches,
                   (long long)fitness.drifts, (long long)fitness.points);
    if (fitness.share_most > 0)
        buf_format(&cores, "with all threads busy, a thread computed %.2f to %.2f times as fast "
                           "as a thread alone", fitness.share_least, fitness.share_most);
    put_fact(page, "Machine before launches", &looks);
    put_fact(page, "Disturbed by other work", &tainted);
    put_fact(page, "Cores", &cores);
}

static void put_judge(struct page *page, const struct runset *set)
{
    struct buf text = {0};
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "quality"), i, record) {
        const char *judge = rec_text(record, "judge"), *model = rec_text(record, "model");
        if (!judge)
            continue;
        buf_format(&text, "%s, an autoregressive model%s", judge,
                   model && !strcmp(model, judge) ? ", which is also a contestant" : "");
        break;
    }
    put_fact(page, "Judge of perplexity", &text);
}

void overview_method(struct page *page, const struct runset *set, int embedded)
{
    static const struct page_column columns[] = {{"Part", NULL}, {"In this run", NULL}};
    const char *commit = json_string_value(runset_meta(set, "commit"));
    struct buf program = {0};
    page_table(page, "The experiment in short.", 2, columns);
    put_machine(page, set);
    put_models(page, set, embedded);
    put_prompts(page, set);
    put_margins(page, set);
    put_launches(page, set);
    put_checks(page, set);
    put_quiet(page, set);
    put_judge(page, set);
    if (commit)
        buf_format(&program, "crossover %s, commit %s; first record %s",
                   sections_dash(json_string_value(runset_meta(set, "version"))), commit,
                   sections_dash(json_string_value(runset_meta(set, "start"))));
    put_fact(page, "Program", &program);
    page_table_end(page);
}
