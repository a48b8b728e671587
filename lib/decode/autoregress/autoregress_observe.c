/* autoregress_observe.c - reports the ids that a pass added to an observer that looks closely
 * (observer.h). A text takes the first answers of its part of the pass, one for each new id. With
 * guesses the answers are on the host already; otherwise they are fetched. */
#include "lib/decode/autoregress/autoregress_run.h"

#include <stdlib.h>

#include "lib/base/mem.h"

/* Reports the text of a seat, which took the first of the answers row[]. */
static void report(const struct autoregress_run *run, size_t seat, const struct text_state *now,
                   const struct head_row *row, int64_t ns)
{
    const struct text_state *was = &run->writer.host.state[seat];
    int32_t more = now->len - was->len;
    int32_t *slot = mem_zero((size_t)more, sizeof *slot);
    double *confidence = mem_zero((size_t)more, sizeof *confidence);
    for (int32_t k = 0; k < more; k++) {
        slot[k] = was->len - was->prompt + k;
        confidence[k] = (double)row[k].prob;
    }
    size_t n = (size_t)(now->len - now->prompt);
    const struct observed observed = {.input = run->who[seat],
                                      .pass = (int64_t)run->out[run->who[seat]].n_steps, .ns = ns,
                                      .ids = run->writer.host.ids + seat * run->how->max_new,
                                      .n = n, .readable = n, .commits = (size_t)more, .slot = slot,
                                      .confidence = confidence};
    run->how->observer->changed(run->how->observer->ctx, &observed);
    free(slot);
    free(confidence);
}

void autoregress_observe(struct autoregress_run *run, const struct text_state *now, int64_t ns)
{
    const struct reader *reader = &run->writer;
    struct backend *backend = reader->n->backend;
    size_t rows = reader->plan.pass.R;
    struct head_row *own = run->answer ? NULL : mem_zero(rows, sizeof *own);
    const struct head_row *row = run->answer ? run->answer : own;
    if (own)
        backend->ops->read(backend, own, reader->work->answer, rows * sizeof *own);
    for (size_t part = 0; part < reader->plan.loop.parts; part++) {
        size_t seat = (size_t)reader->work->host.member[part];
        if (reader->host.state[seat].live && !now[seat].bad)
            report(run, seat, &now[seat], row, ns);
        row += 1 + run->guesses[seat] + (run->masks ? run->masks[seat] : 0);
    }
    free(own);
}
