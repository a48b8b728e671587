/* figure-claims.c - published speeds against the limits of their cards: the share of the roofline
 * that a claim reaches, and its rate. A claim to the right of 1 would be beyond the limits. Claims
 * without a share are counted in the caption. */
#include <math.h>
#include <string.h>

#include "lib/figure/figure.h"
#include "lib/record/rec.h"

static int kind_of(const json_t *r)
{
    return rec_is(r, "paradigm", "autoregressive");
}

/* Writes the points of a kind; returns their number. */
static int put_kind(struct figure *f, const json_t *list, int kind, double *lo, double *hi)
{
    size_t i;
    const json_t *r;
    int n = 0;
    json_array_foreach(list, i, r) {
        double share = rec_number(r, "roofline_ratio"), rate = rec_number(r, "value");
        if (kind_of(r) != kind || !(share > 0) || !rec_is(r, "metric", "output_tokens_per_s"))
            continue;
        *lo = fmin(*lo, share);
        *hi = fmax(*hi, share);
        script_row(&f->script, "nn", share, rate);
        figure_tip(f, 1, share, rate, NULL, "%s: %.4g tokens/s, %.2g of the roofline%s%s",
                   rec_text(r, "name"), rate, share, rec_text(r, "baseline") ? "; against " : "",
                   rec_text(r, "baseline") ? rec_text(r, "baseline") : "");
        n++;
    }
    return n;
}

void figure_claims(struct figure *f, const struct runset *s, const struct figure_request *q)
{
    (void)q;
    const json_t *list = runset_kind(s, "claim_verdict");
    double lo = 1, hi = 1, n[2];
    script_table(&f->script, "points", "roofline_ratio output_tokens_per_s");
    for (int kind = 0; kind < 2; kind++) {
        if (kind)
            script_next(&f->script, 2);
        n[kind] = put_kind(f, list, kind, &lo, &hi);
    }
    script_table_end(&f->script);
    script_numbers(&f->script, "kind_count", n, 2);
    script_number(&f->script, "share_lo", lo);
    script_number(&f->script, "share_hi", hi);
    figure_say(f, "Published speeds against the limits of the data sheets of their cards: %g of "
                  "diffusion models, %g of autoregressive ones. %g of %zu claims have no share or "
                  "state a time.", n[0], n[1],
               (double)json_array_size(list) - n[0] - n[1], json_array_size(list));
    if (n[0] + n[1] < 1)
        f->why = "no claim with a share of the roofline";
}
