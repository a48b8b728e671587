/* autoregress_observe.c - reports the ids that a pass added, to an observer that looks closely
 * (observer.h). A text takes the first answers of its part of the pass, one for each new id. The
 * answers are on the host already with guesses; otherwise they are fetched. */
#include "lib/decode/autoregress/autoregress_run.h"

#include <stdlib.h>

#include "lib/base/mem.h"

/* Reports the text of a seat, which took the first of the answers a[]. */
static void report(const struct autoregress_run *r, size_t seat, const struct text_state *now,
                   const struct head_row *a, int64_t ns)
{
    const struct text_state *was = &r->writer.host.state[seat];
    int32_t more = now->len - was->len;
    int32_t *slot = mem_zero((size_t)more, sizeof *slot);
    double *confidence = mem_zero((size_t)more, sizeof *confidence);
    for (int32_t k = 0; k < more; k++) {
        slot[k] = was->len - was->prompt + k;
        confidence[k] = (double)a[k].prob;
    }
    size_t n = (size_t)(now->len - now->prompt);
    const struct observed o = {.input = r->who[seat],
                               .pass = (int64_t)r->out[r->who[seat]].n_steps, .ns = ns,
                               .ids = r->writer.host.ids + seat * r->how->max_new, .n = n,
                               .readable = n, .commits = (size_t)more, .slot = slot,
                               .confidence = confidence};
    r->how->observer->changed(r->how->observer->ctx, &o);
    free(slot);
    free(confidence);
}

void autoregress_observe(struct autoregress_run *r, const struct text_state *now, int64_t ns)
{
    const struct reader *w = &r->writer;
    struct backend *b = w->n->backend;
    size_t rows = w->plan.pass.R;
    struct head_row *own = r->answer ? NULL : mem_zero(rows, sizeof *own);
    const struct head_row *a = r->answer ? r->answer : own;
    if (own)
        b->ops->read(b, own, w->work->answer, rows * sizeof *own);
    for (size_t part = 0; part < w->plan.loop.parts; part++) {
        size_t seat = (size_t)w->work->host.member[part];
        if (w->host.state[seat].live && !now[seat].bad)
            report(r, seat, &now[seat], a, ns);
        a += 1 + r->guesses[seat] + (r->masks ? r->masks[seat] : 0);
    }
    free(own);
}
