/* advance.c - advance.h on the host. Parts do not depend on each other, so they run one after
 * another. The arithmetic and ties that must equal those of a device are in the functions of
 * advance.h; this file has only the loops around them. */
#include "kernels/advance.h"

#include <assert.h>
#include <stdlib.h>

#include "kernels/host.h"
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

/* Asks about the masked slots before `last`, or about the held ones, in answers w .. end-1. Returns
 * their number. */
static int32_t ask_slots(const struct canvas_loop *l, const struct canvas_state *c, int32_t last,
                         int held, size_t w, size_t end)
{
    int32_t n = 0;
    for (int32_t s = held ? canvas_held_begin(l, c) : c->prompt; s < last; s++)
        if (held ? canvas_held(l, c, s) : canvas_open(l, c, s)) {
            n++;
            if (w < end) {
                canvas_ask(l, c, w, s, held);
                assert(l->rows.wanted[w] >= 0);
                w++;
            }
        }
    return n;
}

void advance_ask(const struct canvas_loop *l, size_t i)
{
    struct canvas_state *c = canvas_of(l, i);
    size_t w = i * l->capacity, end = w + l->capacity;
    int behind = canvas_behind(l, c);
    int32_t last = c->live && !behind ? canvas_block_end(l, c) : c->prompt;
    int32_t open = ask_slots(l, c, last > c->prompt ? canvas_ask_end(l, c) : last, 0, w, end);
    c->held = last > c->prompt ? ask_slots(l, c, last, 1, w + (size_t)open, end) : 0;
    c->wanted = open + c->held;
    c->stalled = behind || (size_t)c->wanted > l->capacity;
    for (w += (size_t)c->wanted; w < end; w++)
        canvas_ask(l, c, w, -1, 0);
}

/* Working arrays for the answers of one canvas. */
struct ranking {
    struct rank {
        double score;
        int32_t at;
    } *rank;            /* [capacity] */
    double *confidence; /* [capacity] by answer */
    int32_t *id;        /* [capacity] the id that each may commit, by answer */
    int32_t *pick;      /* [capacity] */
};

/* Best first; among equals the lowest position. */
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

/* Reads the answers from w0 on, and sorts pick[] best first. */
static void rank_answers(const struct canvas_loop *l, const struct canvas_state *c, size_t w0,
                         const struct ranking *r)
{
    size_t n = (size_t)(c->wanted - c->held);
    for (size_t k = 0; k < n; k++) {
        const struct reading a = canvas_read(l, c, w0 + k);
        r->id[k] = a.id;
        r->confidence[k] = a.confidence;
        r->rank[k].score = canvas_score(l, w0 + k, a.confidence);
        r->rank[k].at = (int32_t)k;
    }
    for (size_t k = n; k < (size_t)c->wanted; k++)
        r->confidence[k] = canvas_held_confidence(l, w0 + k);
    qsort(r->rank, n, sizeof *r->rank, better);
    for (size_t k = 0; k < n; k++)
        r->pick[k] = r->rank[k].at;
}

/* Writes the ids that the rule commits among the answers from w0 on, and masks the ids that it
 * revises. */
static void commit(const struct canvas_loop *l, struct canvas_state *c, size_t w0,
                   const struct ranking *r)
{
    rank_answers(l, c, w0, r);
    size_t backs, takes = canvas_takes(l, c, w0, r->confidence, r->pick, &backs);
    for (size_t k = 0; k < takes; k++) {
        int32_t at = r->pick[k];
        l->token[l->asked[w0 + (size_t)at]] = r->id[at];
        c->written += r->id[at] != l->mask;
    }
    const int32_t *back = r->pick + (c->wanted - c->held);
    for (size_t k = 0; k < backs; k++)
        c->edited += canvas_revise(l, w0, back[k]);
    c->remasked = (int32_t)backs - c->edited;
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
    c->written = c->remasked = c->edited = 0;
    if (!c->live || c->stalled)
        return;
    if (any_bad(l->answer + w0, (size_t)c->wanted)) {
        c->live = 0;
        c->bad = 1;
        return;
    }
    commit(l, c, w0, r);
    canvas_settle(l, c, masks_left(l, c));
}

void host_advance_canvases(struct backend *b, const struct canvas_loop *l)
{
    (void)b;
    const struct ranking r = {mem_alloc(l->capacity * sizeof *r.rank),
                              mem_alloc(l->capacity * sizeof *r.confidence),
                              mem_alloc(l->capacity * sizeof *r.id),
                              mem_alloc(l->capacity * sizeof *r.pick)};
    for (size_t i = 0; i < l->parts; i++) {
        advance(l, i, &r);
        advance_ask(l, i);
    }
    for (size_t t = 0; t < l->T; t++)
        if (l->origin[t] >= 0)
            l->rows.token[t] = l->token[l->origin[t]];
    free(r.pick);
    free(r.id);
    free(r.confidence);
    free(r.rank);
}
