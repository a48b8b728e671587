/* wording-sure.c - the question of a run, and how certain its answer is: machine and date, launches
 * and prompts, the self-test by the clock of the answer, and before how many launches the machine
 * was quiet. */
#include "lib/analysis/claim/wording.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/record/machine/processor.h"
#include "lib/record/rec.h"

/* The latest generator record with a machine. */
static const json_t *find_generator(const struct evidence *v)
{
    const json_t *r, *last = NULL;
    size_t i;
    json_array_foreach(evidence_list(v, "machine"), i, r) {
        const char *tool = rec_text(r, "tool"), *start = rec_text(r, "start");
        const char *best = rec_text(last, "start");
        if (tool && start && !strncmp(tool, "gen-", 4) && (!best || strcmp(start, best) > 0))
            last = r;
    }
    return last;
}

void wording_machine(struct buf *b, const struct evidence *v)
{
    const json_t *machine = json_object_get(find_generator(v), "machine");
    const char *gpu = rec_text(json_object_get(machine, "gpu"), "name");
    char *cpu = machine ? processor_name(machine) : NULL;
    if (gpu || cpu)
        buf_text(b, gpu ? gpu : cpu);
    if (rec_number(machine, "cores") > 0)
        buf_format(b, ", %.0f cores", rec_number(machine, "cores"));
    free(cpu);
}

/* Appends "LLaDA (llada-demo)". */
static void put_model(struct buf *b, const char *kind, const struct contender *c)
{
    buf_format(b, c ? "%s (%s)" : "%s", kind, c ? c->name : NULL);
}

void wording_question(struct buf *b, const struct findings *f)
{
    const char *start = rec_text(find_generator(f->evidence), "start");
    buf_text(b, "At how many denoising steps does ");
    put_model(b, "LLaDA", contender_plain(&f->contenders, 1));
    buf_text(b, " match ");
    put_model(b, "LLaMA", contender_plain(&f->contenders, 0));
    buf_text(b, ", and is LLaDA then faster? ");
    wording_machine(b, f->evidence);
    if (start && strlen(start) >= 10)
        buf_format(b, ", %.10s", start);
}

static const char *clock_noun(const struct findings *f)
{
    return f->clock == PAIRS_CPU ? "processor time" : "elapsed time";
}

/* Appends "llada-demo 1.00 [0.99, 1.01]" for one self-test. */
static void put_check(struct buf *b, const json_t *check)
{
    const json_t *twin = json_object_get(check, "twin");
    const char *model = rec_text(check, "model"), *system = rec_text(check, "system");
    model = model ? model : system;
    struct versus x = {.x = {rec_number(twin, "value"), rec_number(twin, "lo"),
                             rec_number(twin, "hi")}};
    buf_format(b, "%s%s", model ? model : "", model ? " " : "");
    if (isnan(x.x.lo) || isnan(x.x.hi))
        buf_text(b, "no interval");
    else
        buf_format(b, "%.2f [%.2f, %.2f]", x.x.value, x.x.lo, x.x.hi);
}

static void put_checks(struct buf *b, const struct findings *f)
{
    const json_t *check;
    size_t i;
    int n = 0, found = 1;
    double factor = NAN;
    json_array_foreach(evidence_list(f->evidence, "check"), i, check) {
        if (!finding_selftest_is(check, f->clock))
            continue;
        buf_text(b, n++ ? ", " : " Self-test, time of each model against itself: ");
        put_check(b, check);
        factor = rec_number(check, "factor");
        found &= rec_is(check, "handicap", "FOUND");
    }
    if (!n)
        buf_format(b, " There was no self-test of %s", clock_noun(f));
    else if (factor > 1)
        buf_format(b, "; a copy slowed by %.3g %% was %sfound slower", 100 * (factor - 1),
                   found ? "" : "not ");
    buf_text(b, ".");
}

static void put_quiet(struct buf *b, const struct evidence *v)
{
    const json_t *look;
    size_t i, looks = 0, fit = 0;
    json_array_foreach(evidence_list(v, "fitness"), i, look) {
        looks += json_object_get(look, "launch") != NULL;
        fit += json_object_get(look, "launch") && json_is_true(json_object_get(look, "fit"));
    }
    if (looks)
        buf_format(b, " The machine was quiet before %zu of %zu launches.", fit, looks);
}

/* Appends the result of each ranking of a metric of the goals, once. */
static void put_rankings(struct buf *b, const struct findings *f)
{
    for (int i = 0; i < f->n; i++) {
        const json_t *r = wording_ranking(f->evidence, f->v[i].goal);
        int said = 0;
        for (int k = 0; k < i; k++)
            said |= r == wording_ranking(f->evidence, f->v[k].goal);
        if (r && !said && rec_text(r, "text"))
            buf_format(b, " %s", rec_text(r, "text"));
    }
}

void wording_sure(struct buf *b, const struct findings *f)
{
    const struct versus *x = f->n ? &f->v[0].equal : &f->vanilla;
    size_t prompts = 0, launches = x->launches;
    for (int i = 0; i < f->n; i++) {
        prompts += f->v[i].n_steps ? f->v[i].step[0].good.prompts : 0;
        if (!f->v[i].equal.reason && f->v[i].equal.launches < launches)
            launches = f->v[i].equal.launches;
    }
    if (!x->reason)
        buf_format(b, "Both models ran in %zu launches; times are %s", launches, clock_noun(f));
    else
        buf_format(b, "Times are not compared: %s", wording_reason(x->reason));
    if (prompts)
        buf_format(b, "; %zu prompts were scored", prompts);
    buf_text(b, "; brackets are 95 % intervals.");
    put_rankings(b, f);
    put_checks(b, f);
    put_quiet(b, f->evidence);
}
