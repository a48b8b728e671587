/* wording-sure.c - words the question of a run and the certainty of its answer: machine and date,
 * launches and prompts, the self-test by the clock of the answer, and the number of launches before
 * which the machine was quiet. */
#include "lib/analysis/claim/wording.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/record/machine/processor.h"
#include "lib/record/rec.h"

/* The meta or parent record of the generator that started last; NULL: none names a machine. */
static const json_t *find_generator(const struct evidence *evidence)
{
    const json_t *record, *last = NULL;
    size_t i;
    json_array_foreach(evidence_list(evidence, "machine"), i, record) {
        const char *tool = rec_text(record, "tool"), *start = rec_text(record, "start");
        const char *best = rec_text(last, "start");
        if (tool && start && !strncmp(tool, "gen-", 4) && (!best || strcmp(start, best) > 0))
            last = record;
    }
    return last;
}

const char *wording_fingerprint(const struct evidence *evidence)
{
    return rec_text(json_object_get(find_generator(evidence), "machine"), "fingerprint");
}

/* The card that computed the answers of plain LLaMA, or of plain LLaDA if there is no LLaMA.
 * NULL: a processor did, or the card has no name. A card that only other points used does not
 * count. */
static const char *find_card(const struct findings *findings)
{
    const struct contender *llama = contender_plain(&findings->contenders, 0),
                           *plain = llama ? llama : contender_plain(&findings->contenders, 1);
    return plain && rec_is(plain->about, "device", "cuda") ? rec_text(plain->about, "device_name")
                                                           : NULL;
}

void wording_machine(struct buf *text, const struct findings *findings)
{
    const json_t *machine = json_object_get(find_generator(findings->evidence), "machine");
    const char *gpu = machine ? find_card(findings) : NULL;
    char *cpu = machine ? processor_name(machine) : NULL;
    if (gpu || cpu)
        buf_text(text, gpu ? gpu : cpu);
    if (rec_number(machine, "cores") > 0)
        buf_format(text, ", %.0f cores", rec_number(machine, "cores"));
    free(cpu);
}

/* Appends "LLaDA (llada-demo)". */
static void put_model(struct buf *text, const char *kind, const struct contender *contender)
{
    buf_format(text, contender ? "%s (%s)" : "%s", kind, contender ? contender->name : NULL);
}

void wording_question(struct buf *text, const struct findings *findings)
{
    const char *start = rec_text(find_generator(findings->evidence), "start");
    buf_text(text, "At how many denoising steps does ");
    put_model(text, "LLaDA", contender_plain(&findings->contenders, 1));
    buf_text(text, " match ");
    put_model(text, "LLaMA", contender_plain(&findings->contenders, 0));
    buf_text(text, ", and is LLaDA then faster? ");
    wording_machine(text, findings);
    if (start && strlen(start) >= 10)
        buf_format(text, ", %.10s", start);
}

static const char *clock_noun(const struct findings *findings)
{
    return findings->clock == PAIRS_CPU ? "processor time" : "elapsed time";
}

/* Appends "llada-demo 1.00 [0.99, 1.01]" for one self-test. */
static void put_check(struct buf *text, const json_t *check)
{
    const json_t *twin = json_object_get(check, "twin");
    const char *model = rec_text(check, "model"), *system = rec_text(check, "system");
    model = model ? model : system;
    struct versus versus = {.x = {rec_number(twin, "value"), rec_number(twin, "lo"),
                                  rec_number(twin, "hi")}};
    buf_format(text, "%s%s", model ? model : "", model ? " " : "");
    if (isnan(versus.x.lo) || isnan(versus.x.hi))
        buf_text(text, "no interval");
    else
        buf_format(text, "%.2f [%.2f, %.2f]", versus.x.value, versus.x.lo, versus.x.hi);
}

static void put_checks(struct buf *text, const struct findings *findings)
{
    const json_t *check;
    size_t i;
    int n = 0, found = 1;
    double factor = NAN;
    json_array_foreach(evidence_list(findings->evidence, "check"), i, check) {
        if (!finding_selftest_is(check, findings->clock))
            continue;
        buf_text(text, n++ ? ", " : " Self-test, time of each model against itself: ");
        put_check(text, check);
        factor = rec_number(check, "factor");
        found &= rec_is(check, "handicap", "FOUND");
    }
    if (!n)
        buf_format(text, " There was no self-test of %s", clock_noun(findings));
    else if (factor > 1)
        buf_format(text, "; a copy slowed by %.3g %% was %sfound slower", 100 * (factor - 1),
                   found ? "" : "not ");
    buf_text(text, ".");
}

static void put_quiet(struct buf *text, const struct evidence *evidence)
{
    const json_t *look;
    size_t i, looks = 0, fit = 0;
    json_array_foreach(evidence_list(evidence, "fitness"), i, look) {
        looks += json_object_get(look, "launch") != NULL;
        fit += json_object_get(look, "launch") && json_is_true(json_object_get(look, "fit"));
    }
    if (looks)
        buf_format(text, " The machine was quiet before %zu of %zu launches.", fit, looks);
}

/* Appends the text of the ranking record of each goal. If several goals share a record, its text is
 * written once. */
static void put_rankings(struct buf *text, const struct findings *findings)
{
    for (int i = 0; i < findings->n; i++) {
        const json_t *record = wording_ranking(findings->evidence, findings->v[i].goal);
        int said = 0;
        for (int k = 0; k < i; k++)
            said |= record == wording_ranking(findings->evidence, findings->v[k].goal);
        if (record && !said && rec_text(record, "text"))
            buf_format(text, " %s", rec_text(record, "text"));
    }
}

void wording_sure(struct buf *text, const struct findings *findings)
{
    const struct versus *versus = findings->n ? &findings->v[0].equal : &findings->vanilla;
    size_t prompts = 0, launches;
    for (int i = findings->n - 1; i >= 0; i--) /* the first goal with a ratio of times, if any */
        if (!findings->v[i].equal.reason)
            versus = &findings->v[i].equal;
    launches = versus->launches;
    for (int i = 0; i < findings->n; i++) {
        prompts += findings->v[i].n_steps ? findings->v[i].step[0].good.prompts : 0;
        if (!findings->v[i].equal.reason && findings->v[i].equal.launches < launches)
            launches = findings->v[i].equal.launches;
    }
    if (!versus->reason)
        buf_format(text, "Both models ran in %zu launches; times are %s", launches,
                   clock_noun(findings));
    else
        buf_format(text, "Times are not compared: %s", wording_reason(versus->reason));
    if (prompts)
        buf_format(text, "; %zu prompts were scored", prompts);
    buf_text(text, "; brackets are 95 % intervals.");
    put_rankings(text, findings);
    put_checks(text, findings);
    put_quiet(text, findings->evidence);
}
