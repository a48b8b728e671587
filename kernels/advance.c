/* advance.c - advance.h on the host. Parts do not depend on each other, so they run one after
 * another. The arithmetic and ties that must equal those of a device are in the functions of
 * advance.h; this file has only the loops around them. */
#include "kernels/advance.h"

#include <assert.h>
#include <stdlib.h>

#include "kernels/host.h"
#include "lib/base/mem.h"

void host_advance_texts(struct backend *backend, const struct text_loop *loop)
{
    (void)backend;
    for (size_t i = 0; i < loop->parts; i++)
        text_advance(loop, i);
}

/* ---- canvases ---- */

static struct canvas_state *canvas_of(const struct canvas_loop *loop, size_t i)
{
    return &loop->canvas[loop->member[i]];
}

/* Asks about the masked slots before slot `last`, or with `held` about the slots that hold an id,
 * in answers w .. end-1. Returns the number of these slots. */
static int32_t ask_slots(const struct canvas_loop *loop, const struct canvas_state *canvas,
                         int32_t last, int held, size_t w, size_t end)
{
    int32_t n = 0;
    for (int32_t s = held ? canvas_held_begin(loop, canvas) : canvas->prompt; s < last; s++)
        if (held ? canvas_held(loop, canvas, s) : canvas_open(loop, canvas, s)) {
            n++;
            if (w < end) {
                canvas_ask(loop, canvas, w, s, held);
                assert(loop->rows.wanted[w] >= 0);
                w++;
            }
        }
    return n;
}

void advance_ask(const struct canvas_loop *loop, size_t i)
{
    struct canvas_state *canvas = canvas_of(loop, i);
    size_t w = i * loop->capacity, end = w + loop->capacity;
    int behind = canvas_behind(loop, canvas);
    int32_t last = canvas->live && !behind ? canvas_block_end(loop, canvas) : canvas->prompt;
    int32_t open = ask_slots(
        loop, canvas, last > canvas->prompt ? canvas_ask_end(loop, canvas) : last, 0, w, end);
    canvas->held = last > canvas->prompt ? ask_slots(loop, canvas, last, 1, w + (size_t)open, end)
                                         : 0;
    canvas->wanted = open + canvas->held;
    canvas->stalled = behind || (size_t)canvas->wanted > loop->capacity;
    for (w += (size_t)canvas->wanted; w < end; w++)
        canvas_ask(loop, canvas, w, -1, 0);
}

/* Working arrays for the answers of one canvas. */
struct ranking {
    struct rank {
        double score;
        int32_t at;
    } *rank;            /* [capacity] */
    double *confidence; /* [capacity] by answer */
    int32_t *id;        /* [capacity] by answer: the id that it may commit */
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

/* Reads the canvas's answers, which begin at w0, and sorts pick[] best first. */
static void rank_answers(const struct canvas_loop *loop, const struct canvas_state *canvas,
                         size_t w0, const struct ranking *ranking)
{
    size_t n = (size_t)(canvas->wanted - canvas->held);
    for (size_t k = 0; k < n; k++) {
        const struct reading reading = canvas_read(loop, canvas, w0 + k);
        ranking->id[k] = reading.id;
        ranking->confidence[k] = reading.confidence;
        ranking->rank[k].score = canvas_score(loop, w0 + k, reading.confidence);
        ranking->rank[k].at = (int32_t)k;
    }
    for (size_t k = n; k < (size_t)canvas->wanted; k++)
        ranking->confidence[k] = canvas_held_confidence(loop, w0 + k);
    qsort(ranking->rank, n, sizeof *ranking->rank, better);
    for (size_t k = 0; k < n; k++)
        ranking->pick[k] = ranking->rank[k].at;
}

/* Calls the rule with the answers that begin at w0. Writes the ids that the rule commits, and
 * revises the ids in `backs`: each becomes a mask or another id. */
static void commit(const struct canvas_loop *loop, struct canvas_state *canvas, size_t w0,
                   const struct ranking *ranking)
{
    rank_answers(loop, canvas, w0, ranking);
    size_t backs,
           takes = canvas_takes(loop, canvas, w0, ranking->confidence, ranking->pick, &backs);
    for (size_t k = 0; k < takes; k++) {
        int32_t at = ranking->pick[k];
        loop->token[loop->asked[w0 + (size_t)at]] = ranking->id[at];
        canvas->written += ranking->id[at] != loop->mask;
    }
    const int32_t *back = ranking->pick + (canvas->wanted - canvas->held);
    for (size_t k = 0; k < backs; k++)
        canvas->edited += canvas_revise(loop, w0, back[k]);
    canvas->remasked = (int32_t)backs - canvas->edited;
}

static int32_t masks_left(const struct canvas_loop *loop, const struct canvas_state *canvas)
{
    int32_t n = 0;
    for (int32_t s = canvas->prompt; s < canvas_block_end(loop, canvas); s++)
        n += canvas_open(loop, canvas, s);
    return n;
}

static void advance(const struct canvas_loop *loop, size_t i, const struct ranking *ranking)
{
    struct canvas_state *canvas = canvas_of(loop, i);
    size_t w0 = i * loop->capacity;
    canvas->written = canvas->remasked = canvas->edited = 0;
    if (!canvas->live || canvas->stalled)
        return;
    if (any_bad(loop->answer + w0, (size_t)canvas->wanted)) {
        canvas->live = 0;
        canvas->bad = 1;
        return;
    }
    commit(loop, canvas, w0, ranking);
    canvas_settle(loop, canvas, masks_left(loop, canvas));
}

void host_advance_canvases(struct backend *backend, const struct canvas_loop *loop)
{
    (void)backend;
    const struct ranking ranking = {mem_alloc(loop->capacity * sizeof *ranking.rank),
                                    mem_alloc(loop->capacity * sizeof *ranking.confidence),
                                    mem_alloc(loop->capacity * sizeof *ranking.id),
                                    mem_alloc(loop->capacity * sizeof *ranking.pick)};
    for (size_t i = 0; i < loop->parts; i++) {
        advance(loop, i, &ranking);
        advance_ask(loop, i);
    }
    for (size_t row = 0; row < loop->T; row++)
        if (loop->origin[row] >= 0)
            loop->rows.token[row] = loop->token[loop->origin[row]];
    free(ranking.pick);
    free(ranking.id);
    free(ranking.confidence);
    free(ranking.rank);
}
