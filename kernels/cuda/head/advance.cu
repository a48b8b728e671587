/* advance.cu - advance.h on the device, with threads. The results equal those of kernels/advance.c.
 *
 * Texts: one thread per text. Canvases: one block per canvas. Its threads share the work on answers
 * and slots, and thread 0 does the sequential steps, by the functions of advance.h. A separate
 * kernel then writes the tokens of the rows, because a row may read any canvas.
 *
 * Scores are compared n^2 times, and GPUs have few units for doubles, so they are first mapped to
 * whole numbers of the same order. */
#include <assert.h>
#include <string.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/device/runtime.h"
#include "kernels/cuda/head/canvas_sheet.h"

enum { TEXT_THREADS = 32, ROW_THREADS = 256 };

/* ---- texts ---- */

/* Thread i owns part i. */
static __global__ void __launch_bounds__(TEXT_THREADS) advance_text(struct text_loop l)
{
    let_next_start();
    wait_for_inputs();
    size_t i = (size_t)blockIdx.x * TEXT_THREADS + threadIdx.x;
    if (i < l.parts)
        text_advance(&l, i);
}

void cuda_advance_texts(struct backend *b, const struct text_loop *l)
{
    struct range here("advance_texts");
    launch(b, advance_text, dim3(blocks_of(l->parts, TEXT_THREADS)), dim3(TEXT_THREADS), 0, *l);
}

/* ---- canvases: work of the whole block ---- */

/* Maps a double to a whole number of the same order; both zeros are equal. */
DEVICE uint64_t ordered_bits(double x)
{
    uint64_t bits;
    x += 0.0;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

/* 1 in every thread if one of the n answers is bad. */
DEVICE bool any_bad(const struct head_row *answer, size_t n, struct sheet s)
{
    int bad = 0;
    for (size_t k = threadIdx.x; k < n; k += CANVAS_THREADS)
        bad |= answer[k].bad;
    if (bad)
        atomicMax(&s.sum[SUM_BAD], 1);
    __syncthreads();
    return s.sum[SUM_BAD];
}

/* Reads the answers from w0 on. pick[]: their indices, best first, among equals the lowest. Held
 * ids follow, with their current probability. */
DEVICE void sort_answers(const struct canvas_loop *l, const struct canvas_state *c, size_t w0,
                         struct sheet s)
{
    size_t all = (size_t)c->wanted, n = all - (size_t)c->held;
    for (size_t k = threadIdx.x; k < n; k += CANVAS_THREADS) {
        struct reading a = canvas_read(l, c, w0 + k);
        s.id[k] = a.id;
        s.confidence[k] = a.confidence;
        s.bits[k] = ordered_bits(canvas_score(l, w0 + k, a.confidence));
    }
    for (size_t k = n + threadIdx.x; k < all; k += CANVAS_THREADS)
        s.confidence[k] = canvas_held_confidence(l, w0 + k);
    __syncthreads();
    for (size_t k = threadIdx.x; k < n; k += CANVAS_THREADS) {
        uint64_t mine = s.bits[k];
        size_t rank = 0;
        for (size_t j = 0; j < n; j++)
            rank += s.bits[j] > mine || (s.bits[j] == mine && j < k);
        s.pick[rank] = (int32_t)k;
    }
    __syncthreads();
}

/* Writes the ids that the rule commits, and masks over the ids that it revises. Thread 0 calls the
 * rule. */
DEVICE void commit(const struct canvas_loop *l, struct canvas_state *c, size_t w0, struct sheet s)
{
    int written = 0, edited = 0;
    sort_answers(l, c, w0, s);
    if (threadIdx.x == 0) {
        size_t backs;
        s.sum[SUM_TAKES] = (int)canvas_takes(l, c, w0, s.confidence, s.pick, &backs);
        s.sum[SUM_BACKS] = (int)backs;
    }
    __syncthreads();
    for (int k = (int)threadIdx.x; k < s.sum[SUM_TAKES]; k += CANVAS_THREADS) {
        int32_t at = s.pick[k];
        l->token[l->asked[w0 + (size_t)at]] = s.id[at];
        written += s.id[at] != l->mask;
    }
    const int32_t *back = s.pick + (c->wanted - c->held);
    for (int k = (int)threadIdx.x; k < s.sum[SUM_BACKS]; k += CANVAS_THREADS)
        edited += canvas_revise(l, w0, back[k]);
    if (edited)
        atomicAdd(&s.sum[SUM_EDITED], edited);
    if (written)
        atomicAdd(&s.sum[SUM_WRITTEN], written);
    __syncthreads();
}

/* Adds the number of open slots up to the end of the block to s.sum. */
DEVICE void count_masks(const struct canvas_loop *l, const struct canvas_state *c, struct sheet s)
{
    int masks = 0, end = canvas_block_end(l, c);
    for (int i = c->prompt + (int)threadIdx.x; i < end; i += CANVAS_THREADS)
        masks += canvas_open(l, c, i);
    if (masks)
        atomicAdd(&s.sum[SUM_MASKS], masks);
    __syncthreads();
}

/* Gives answers to the masked slots from `first` up to the end of the block in order, or to the
 * held ones, after the `asked` answers so far. Returns the new number of answers. */
DEVICE int ask_slots(const struct canvas_loop *l, const struct canvas_state *c, int first,
                     bool held, size_t w0, int asked, struct sheet s)
{
    int end = held ? canvas_block_end(l, c) : canvas_ask_end(l, c), all;
    for (; first < end; first += CANVAS_THREADS, asked += all) {
        int slot = first + (int)threadIdx.x;
        bool yes = slot < end && (held ? canvas_held(l, c, slot) : canvas_open(l, c, slot));
        int at = asked + block_below(yes, &all, s.votes);
        if (yes && at < (int)l->capacity)
            canvas_ask(l, c, w0 + (size_t)at, slot, held);
    }
    return asked;
}

/* advance_ask() on the device. */
DEVICE void ask(const struct canvas_loop *l, struct canvas_state *c, size_t w0, struct sheet s)
{
    int open = 0, all = 0, behind = canvas_behind(l, c);
    if (c->live && !behind) {
        open = ask_slots(l, c, c->prompt, false, w0, 0, s);
        all = l->check_of ? ask_slots(l, c, canvas_held_begin(l, c), true, w0, open, s) : open;
    }
    for (int at = all + (int)threadIdx.x; at < (int)l->capacity; at += CANVAS_THREADS)
        canvas_ask(l, c, w0 + (size_t)at, -1, false);
    c->wanted = all;
    c->held = all - open;
    c->stalled = behind || (size_t)all > l->capacity;
}

/* A block owns part i: its canvas, and answers capacity * i .. of the next pass. */
static __global__ void __launch_bounds__(CANVAS_THREADS) advance_canvas(struct canvas_loop l)
{
    SHARED(unsigned char, shared);
    let_next_start();
    wait_for_inputs();
    struct sheet s = sheet_of(shared, l.capacity);
    struct canvas_state *kept = &l.canvas[l.member[blockIdx.x]], c = *kept;
    size_t w0 = blockIdx.x * l.capacity, n = (size_t)c.wanted;
    if (threadIdx.x < SUMS)
        s.sum[threadIdx.x] = 0;
    __syncthreads();
    bool counts = c.live && !c.stalled;
    if (counts && any_bad(l.answer + w0, n, s)) {
        c.live = 0;
        c.bad = 1;
    } else if (counts) {
        commit(&l, &c, w0, s);
        count_masks(&l, &c, s);
        if (threadIdx.x == 0) {
            canvas_settle(&l, &c, s.sum[SUM_MASKS]);
            *s.state = c;
        }
        __syncthreads();
        c = *s.state;
    }
    c.written = s.sum[SUM_WRITTEN];
    c.edited = s.sum[SUM_EDITED];
    c.remasked = s.sum[SUM_BACKS] - s.sum[SUM_EDITED];
    ask(&l, &c, w0, s);
    if (threadIdx.x == 0)
        *kept = c;
}

/* Thread t owns the token of row t. */
static __global__ void __launch_bounds__(ROW_THREADS) renew_tokens(struct canvas_loop l)
{
    let_next_start();
    wait_for_inputs();
    size_t t = (size_t)blockIdx.x * ROW_THREADS + threadIdx.x;
    if (t < l.T && l.origin[t] >= 0)
        l.rows.token[t] = l.token[l.origin[t]];
}

void cuda_advance_canvases(struct backend *b, const struct canvas_loop *l)
{
    struct range here("advance_canvases");
    size_t shared = sheet_bytes(l->capacity);
    assert(shared <= device_of(b)->shared_max);
    launch(b, advance_canvas, dim3((unsigned)l->parts), dim3(CANVAS_THREADS), shared, *l);
    launch(b, renew_tokens, dim3(blocks_of(l->T, ROW_THREADS)), dim3(ROW_THREADS), 0, *l);
}
