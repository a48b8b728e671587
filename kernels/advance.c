/* advance.c - from pass to pass where the host can read everything; see advance.h. A part needs
 * nothing of its neighbours, so parts go one after another. What must be equal on a device, in
 * arithmetic and in ties, are the functions of advance.h; here stand only the loops around them.
 */
#include "kernels/advance.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/mem.h"

void host_advance_texts(struct backend *b, const struct text_loop *l)
{
    (void)b;
    for (size_t i = 0; i < l->parts; i++)
        text_advance(l, i);
}

/* ---- canvases ---- */

static struct canvas_state *canvas_of(const struct canvas_loop *l, size_t i)
{
    return &l->canvas[l->member[i]];
}

/* Row w of the next pass is asked about; slot -1: for nothing, and any row will do. */
static void ask_row(const struct canvas_loop *l, const struct canvas_state *c, size_t w,
                    int32_t slot)
{
    int32_t row = slot < 0 ? 0 : l->row_of[c->first + slot];
    assert(row >= 0);
    l->rows.wanted[w] = row;
    if (l->twin)
        l->rows.uncond[w] = row + l->twin;
    l->rows.key[w] = slot < 0 ? 0 : canvas_key(c, slot);
}

void advance_ask(const struct canvas_loop *l, size_t i)
{
    struct canvas_state *c = canvas_of(l, i);
    size_t w = i * l->capacity, end = w + l->capacity;
    int behind = canvas_behind(l, c);
    int32_t last = c->live && !behind ? canvas_block_end(l, c) : c->prompt;
    c->wanted = 0;
    for (int32_t s = c->prompt; s < last; s++)
        if (canvas_open(l, c, s)) {
            c->wanted++;
            if (w < end)
                ask_row(l, c, w++, s);
        }
    c->stalled = behind || (size_t)c->wanted > l->capacity;
    while (w < end)
        ask_row(l, c, w++, -1);
}

/* Room for the answers of a canvas. */
struct ranking {
    struct rank {
        double score;
        int32_t at;
    } *rank;            /* [capacity] */
    double *confidence; /* [capacity] in the order of slots */
    int32_t *pick;      /* [capacity] */
};

/* Best first; of equals the lowest position. */
static int better(const void *x, const void *y)
{
    const struct rank *a = x, *b = y;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

static int any_bad(const struct head_row *answer, size_t n)
{
    int bad = 0;
    for (size_t k = 0; k < n; k++)
        bad |= answer[k].bad;
    return bad;
}

/* The answers to rows w0..w0+n that the rule takes become ids of the canvas. */
static void commit(const struct canvas_loop *l, struct canvas_state *c, size_t w0, size_t n,
                   const struct ranking *r)
{
    for (size_t k = 0; k < n; k++) {
        const struct head_row *a = &l->answer[w0 + k];
        r->confidence[k] = exp(a->log_prob);
        r->rank[k].score = canvas_score(l, a, r->confidence[k], l->rows.key[w0 + k]);
        r->rank[k].at = (int32_t)k;
    }
    qsort(r->rank, n, sizeof *r->rank, better);
    for (size_t k = 0; k < n; k++)
        r->pick[k] = r->rank[k].at;
    for (size_t k = 0, takes = canvas_takes(l, c, w0, n, r->confidence, r->pick); k < takes; k++) {
        size_t w = w0 + (size_t)r->pick[k];
        l->token[l->origin[l->rows.wanted[w]]] = l->answer[w].id;
        c->written += l->answer[w].id != l->mask;
    }
}

static int32_t masks_left(const struct canvas_loop *l, const struct canvas_state *c)
{
    int32_t n = 0;
    for (int32_t s = c->prompt; s < canvas_block_end(l, c); s++)
        n += canvas_open(l, c, s);
    return n;
}

static void advance(const struct canvas_loop *l, size_t i, const struct ranking *r)
{
    struct canvas_state *c = canvas_of(l, i);
    size_t w0 = i * l->capacity;
    c->written = 0;
    if (!c->live || c->stalled)
        return;
    if (any_bad(l->answer + w0, (size_t)c->wanted)) {
        c->live = 0;
        c->bad = 1;
        return;
    }
    commit(l, c, w0, (size_t)c->wanted, r);
    canvas_settle(l, c, masks_left(l, c));
}

void host_advance_canvases(struct backend *b, const struct canvas_loop *l)
{
    (void)b;
    const struct ranking r = {mem_alloc(l->capacity * sizeof *r.rank),
                              mem_alloc(l->capacity * sizeof *r.confidence),
                              mem_alloc(l->capacity * sizeof *r.pick)};
    for (size_t i = 0; i < l->parts; i++) {
        advance(l, i, &r);
        advance_ask(l, i);
    }
    for (size_t t = 0; t < l->T; t++)
        if (l->origin[t] >= 0)
            l->rows.token[t] = l->token[l->origin[t]];
    free(r.pick);
    free(r.confidence);
    free(r.rank);
}
