/* overview-method.c - see overview.h: the experiment in a dozen facts, one row each.
 *
 * A fact that the records lack is left out. The page of all tables has the full tables. */
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/verdict/doubts.h"
#include "lib/record/machine/processor.h"
#include "lib/record/rec.h"
#include "lib/report/claims.h"
#include "lib/report/overview.h"
#include "lib/report/sections.h"

/* Puts a row unless value is empty; frees value. */
static void put_fact(struct page *p, const char *what, struct buf *value)
{
    if (value->len) {
        page_cell(p, what);
        page_cell(p, value->data);
    }
    buf_free(value);
}

static void put_machine(struct page *p, const struct runset *s)
{
    const json_t *m = runset_machine(s);
    const char *gpu = rec_text(m, "gpu"), *print = rec_text(m, "fingerprint");
    char *cpu = m ? processor_name(m) : NULL;
    struct buf b = {0};
    if (m)
        buf_format(&b, "%s%s%s, %lld cores, %.1f GiB of memory, %s%s%s", sections_dash(cpu),
                   gpu ? ", " : "", gpu ? gpu : "", (long long)rec_int(m, "cores", 0),
                   rec_number(m, "memory_bytes") / (1024.0 * 1024 * 1024),
                   sections_dash(rec_text(m, "kernel")), print ? ", id " : "", print ? print : "");
    put_fact(p, "Machine", &b);
    free(cpu);
}

/* "llada-demo (cpu, bf16); llama-demo (cpu, bf16)". */
static void put_models(struct page *p, const struct runset *s, int embedded)
{
    struct buf b = {0};
    json_t *seen = json_object(), *about;
    const char *point;
    json_object_foreach(s->configs, point, about) {
        const char *model = rec_text(about, "model"), *device = rec_text(about, "device");
        const char *dtype = rec_text(about, "dtype");
        if (!model || !device || json_object_get(seen, model))
            continue;
        json_object_set_new(seen, model, json_true());
        buf_format(&b, "%s%s (%s, %s%s)", b.len ? "; " : "", model, device, sections_dash(dtype),
                   json_is_true(json_object_get(about, "weights_random")) ? ", random weights"
                                                                          : "");
    }
    json_decref(seen);
    if (b.len && embedded)
        buf_text(&b, ". These are small demonstration models: the numbers do not hold for "
                     "LLaDA 8B and LLaMA 3 8B");
    put_fact(p, "Models", &b);
}

static void put_prompts(struct page *p, const struct runset *s)
{
    struct buf b = {0};
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "prompt"), i, r)
        buf_format(&b, "%s%.0f of %s%s%s%s", b.len ? "; " : "", rec_number(r, "n"),
                   sections_dash(rec_text(r, "source")), rec_text(r, "task") ? " (" : "",
                   rec_text(r, "task") ? rec_text(r, "task") : "", rec_text(r, "task") ? ")" : "");
    put_fact(p, "Prompts", &b);
}

static void put_margins(struct page *p, const struct runset *s)
{
    struct buf b = {0};
    const json_t *x;
    for (size_t i = 0; (x = claims_equal_quality(s, i)) != NULL; i++) {
        buf_text(&b, i ? "; " : "");
        claims_margin(&b, x);
    }
    put_fact(p, "A match means", &b);
}

static void put_launches(struct page *p, const struct runset *s)
{
    struct buf b = {0};
    double most = 0, warmups = 0, timed = 0;
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "metric"), i, r) {
        if (!rec_is(r, "metric", "e2e_ns"))
            continue;
        double launches = rec_number(r, "launches");
        most = launches > most ? launches : most;
        warmups += (double)rec_int(r, "warmup", 0);
        timed += (double)rec_int(r, "timed", 0);
    }
    if (timed > 0)
        buf_format(&b, "at most %.0f a point; %.0f timed answers, %.0f warm-up answers",
                   most, timed, warmups);
    put_fact(p, "Launches", &b);
}

static void put_checks(struct page *p, const struct runset *s)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "check"), i, r) {
        struct buf b = {0};
        if (rec_is(r, "check", "same") && rec_text(r, "text"))
            buf_format(&b, "%s: %s", doubts_is_failed(r) ? "not passed" : "passed",
                       rec_text(r, "text"));
        put_fact(p, "Self-test", &b);
        if (rec_is(r, "check", "same"))
            return; /* other checks are on the page of all tables */
    }
}

static void put_quiet(struct page *p, const struct runset *s)
{
    struct doubts_fitness f = doubts_count(s, NULL);
    struct buf looks = {0}, tainted = {0}, cores = {0};
    if (f.launches)
        buf_format(&looks, "fit to measure before %lld of %lld launches",
                   (long long)(f.launches - f.unfit), (long long)f.launches);
    if (f.batches)
        buf_format(&tainted, "%lld of %lld timed answers; the times of %lld of %lld points drift",
                   (long long)f.tainted, (long long)f.batches, (long long)f.drifts,
                   (long long)f.points);
    if (f.share_most > 0)
        buf_format(&cores, "with all threads busy, a thread computed %.2f to %.2f times as fast "
                           "as a thread alone", f.share_least, f.share_most);
    put_fact(p, "Machine before launches", &looks);
    put_fact(p, "Disturbed by other work", &tainted);
    put_fact(p, "Cores", &cores);
}

static void put_judge(struct page *p, const struct runset *s)
{
    struct buf b = {0};
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "quality"), i, r) {
        const char *judge = rec_text(r, "judge"), *model = rec_text(r, "model");
        if (!judge)
            continue;
        buf_format(&b, "%s, an autoregressive model%s", judge,
                   model && !strcmp(model, judge) ? ", which is also a contestant" : "");
        break;
    }
    put_fact(p, "Judge of perplexity", &b);
}

void overview_method(struct page *p, const struct runset *s, int embedded)
{
    static const struct page_column columns[] = {{"Part", NULL}, {"In this run", NULL}};
    const char *commit = json_string_value(runset_meta(s, "commit"));
    struct buf program = {0};
    page_table(p, "The experiment in short.", 2, columns);
    put_machine(p, s);
    put_models(p, s, embedded);
    put_prompts(p, s);
    put_margins(p, s);
    put_launches(p, s);
    put_checks(p, s);
    put_quiet(p, s);
    put_judge(p, s);
    if (commit)
        buf_format(&program, "crossover %s, commit %s; first record %s",
                   sections_dash(json_string_value(runset_meta(s, "version"))), commit,
                   sections_dash(json_string_value(runset_meta(s, "start"))));
    put_fact(p, "Program", &program);
    page_table_end(p);
}
