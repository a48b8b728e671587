/* figure-claims.c - draws published speeds against the limits of their cards: for each claim, its
 * rate against the share of the roofline that it reaches. A claim to the right of 1 would be beyond
 * the limits. The caption counts the claims without a share. */
#include <math.h>
#include <string.h>

#include "lib/figure/figure.h"
#include "lib/record/rec.h"

static int kind_of(const json_t *record)
{
    return rec_is(record, "paradigm", "autoregressive");
}

/* Writes the points of a kind of model (1: autoregressive). Returns their number. */
static int put_kind(struct figure *figure, const json_t *list, int kind, double *lo, double *hi)
{
    size_t i;
    const json_t *record;
    int n = 0;
    json_array_foreach(list, i, record) {
        double share = rec_number(record, "roofline_ratio"), rate = rec_number(record, "value");
        if (kind_of(record) != kind || !(share > 0) ||
            !rec_is(record, "metric", "output_tokens_per_s"))
            continue;
        *lo = fmin(*lo, share);
        *hi = fmax(*hi, share);
        script_row(&figure->script, "nn", share, rate);
        figure_tip(figure, 1, share, rate, NULL, "%s: %.4g tokens/s, %.2g of the roofline%s%s",
                   rec_text(record, "name"), rate, share,
                   rec_text(record, "baseline") ? "; against " : "",
                   rec_text(record, "baseline") ? rec_text(record, "baseline") : "");
        n++;
    }
    return n;
}

void figure_claims(struct figure *figure, const struct runset *set,
                   const struct figure_request *request)
{
    (void)request;
    const json_t *list = runset_kind(set, "claim_verdict");
    double lo = 1, hi = 1, n[2];
    script_table(&figure->script, "points", "roofline_ratio output_tokens_per_s");
    for (int kind = 0; kind < 2; kind++) {
        if (kind)
            script_next(&figure->script, 2);
        n[kind] = put_kind(figure, list, kind, &lo, &hi);
    }
    script_table_end(&figure->script);
    script_numbers(&figure->script, "kind_count", n, 2);
    script_number(&figure->script, "share_lo", lo);
    script_number(&figure->script, "share_hi", hi);
    figure_say(figure,
               "Published speeds against the limits of the data sheets of their cards: %g of "
               "diffusion models, %g of autoregressive ones. %g of %zu claims have no share or "
               "state a time.",
               n[0], n[1], (double)json_array_size(list) - n[0] - n[1], json_array_size(list));
    if (n[0] + n[1] < 1)
        figure->why = "no claim with a share of the roofline";
}
