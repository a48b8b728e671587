/* figure-pairs.c - compares several pairs of models. Each pair has a row, which shows LLaDA's time
 * as a multiple of LLaMA's time. A row has two ratios: one for an answer of equal quality, and one
 * with one token a step. The records are the claims of several runs, one run after the other. The
 * claim `question` begins a run and names its models. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/figure/figure.h"
#include "lib/record/rec.h"

/* A ratio with its interval. NaN: the run has no such ratio. */
struct pair_ratio {
    double at, lo, hi;
};

struct pair_row {
    const json_t *question;
    struct pair_ratio equal, vanilla;
    int of_cpu; /* 1: ratios of processor time */
};

static struct pair_ratio ratio_of_card(const json_t *card)
{
    struct pair_ratio ratio = {rec_number(card, "value"), rec_number(card, "lo"),
                               rec_number(card, "hi")};
    if (!(ratio.at > 0))
        return (struct pair_ratio){NAN, NAN, NAN};
    ratio.lo = ratio.lo > 0 ? ratio.lo : ratio.at;
    ratio.hi = ratio.hi > 0 ? ratio.hi : ratio.at;
    return ratio;
}

static size_t find_rows(const json_t *list, struct pair_row *rows)
{
    const struct pair_ratio none = {NAN, NAN, NAN};
    size_t n = 0, i;
    const json_t *claim;
    json_array_foreach(list, i, claim) {
        if (rec_is(claim, "name", "question"))
            rows[n++] = (struct pair_row){claim, none, none, 0};
        else if (n && rec_is(claim, "key", "time_at_equal_quality"))
            rows[n - 1].equal = ratio_of_card(claim);
        else if (n && rec_is(claim, "key", "vanilla"))
            rows[n - 1].vanilla = ratio_of_card(claim);
        else
            continue;
        rows[n - 1].of_cpu |= rec_is(claim, "clock", "cpu");
    }
    return n;
}

static const char *text_or(const json_t *claim, const char *key)
{
    const char *text = rec_text(claim, key);
    return text ? text : "?";
}

static int is_same(const json_t *a, const json_t *b, const char *key)
{
    return !strcmp(text_or(a, key), text_or(b, key));
}

/* The name of a row: "llada-demo, llama-demo". The machine is added if the runs are from several
 * machines; the run is added if another run has the same models and machine. "processor time" is
 * added if the ratios are of processor time. The caller frees the name. */
static char *name_row(const struct pair_row *rows, size_t n, size_t i)
{
    const json_t *mine = rows[i].question;
    int several = 0, twice = 0;
    for (size_t k = 0; k < n; k++) {
        const json_t *other = rows[k].question;
        several |= !is_same(other, mine, "hardware");
        twice |= k != i && is_same(other, mine, "diffusion") && is_same(other, mine, "hardware") &&
                 is_same(other, mine, "autoregressive");
    }
    return mem_format("%s, %s%s%s%s%s%s", text_or(mine, "diffusion"),
                      text_or(mine, "autoregressive"), several ? "; " : "",
                      several ? text_or(mine, "hardware") : "", twice ? "; " : "",
                      twice ? text_or(mine, "run") : "",
                      rows[i].of_cpu ? "; processor time" : "");
}

static void widen(const struct pair_ratio *ratio, double *lo, double *hi)
{
    *lo = fmin(*lo, ratio->lo);
    *hi = fmax(*hi, ratio->hi);
}

static void put_tip(struct figure *figure, const struct pair_ratio *ratio, double place,
                    const char *name, const char *what)
{
    if (ratio->at > 0)
        figure_tip(figure, 1, ratio->at, place, NULL,
                   "%s, %s: %.3g [%.3g, %.3g] times LLaMA's time", name, what, ratio->at,
                   ratio->lo, ratio->hi);
}

void figure_pairs(struct figure *figure, const struct runset *set,
                  const struct figure_request *request)
{
    (void)request;
    const json_t *list = runset_kind(set, "claim");
    struct pair_row *row = mem_zero(json_array_size(list) + 1, sizeof *row);
    size_t n = find_rows(list, row), equal = 0;
    char **name = mem_zero(n + 1, sizeof *name);
    double lo = 1, hi = 1;
    script_table(&figure->script, "points", "place equal lo hi one_a_step one_lo one_hi");
    for (size_t i = 0; i < n; i++) {
        const struct pair_ratio *match = &row[i].equal, *plain = &row[i].vanilla;
        const double place = (double)(n - i);
        name[n - 1 - i] = name_row(row, n, i);
        equal += match->at > 0;
        widen(match, &lo, &hi);
        widen(plain, &lo, &hi);
        script_row(&figure->script, "nnnnnnn", place, match->at, match->lo, match->hi, plain->at,
                   plain->lo, plain->hi);
        put_tip(figure, match, place, name[n - 1 - i], "equal quality");
        put_tip(figure, plain, place, name[n - 1 - i], "one token a step");
    }
    script_table_end(&figure->script);
    script_texts(&figure->script, "pair_name", (const char *const *)name, (int)n);
    script_number(&figure->script, "pair_count", (double)n);
    script_number(&figure->script, "ratio_lo", lo);
    script_number(&figure->script, "ratio_hi", hi);
    figure_say(figure,
               "Pairs of models: the diffusion model's time as a multiple of the autoregressive "
               "model's. Filled: for an answer of equal quality, with the fewest steps that are "
               "shown to match (%zu of %zu pairs). Hollow: with one token a step. Bars: 95 %% "
               "intervals. Left of the line the diffusion model is faster.", equal, n);
    if (!n)
        figure->why = "no run with claims";
    for (size_t i = 0; i < n; i++)
        free(name[i]);
    free(name);
    free(row);
}
