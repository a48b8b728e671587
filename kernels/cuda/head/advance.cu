/* advance.cu - advance.h on the device. The results equal those of kernels/advance.c.
 *
 * Texts: one thread per text. Canvases: one block per canvas. Its threads share the work on answers
 * and slots; thread 0 does the sequential steps. The text kernel and the canvas kernel use the
 * functions of advance.h. A separate kernel then writes the tokens of the rows, because a row may
 * take its token from any canvas.
 *
 * The sort of n answers makes n^2 comparisons of scores. GPUs have few units for doubles, so scores
 * are first mapped to integers of the same order. */
#include <assert.h>
#include <string.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/device/runtime.h"
#include "kernels/cuda/head/canvas_sheet.h"

enum { TEXT_THREADS = 32, ROW_THREADS = 256 };

/* ---- texts ---- */

/* Thread i owns part i. */
static __global__ void __launch_bounds__(TEXT_THREADS) advance_text(struct text_loop loop)
{
    let_next_start();
    wait_for_inputs();
    size_t i = (size_t)blockIdx.x * TEXT_THREADS + threadIdx.x;
    if (i < loop.parts)
        text_advance(&loop, i);
}

void cuda_advance_texts(struct backend *backend, const struct text_loop *loop)
{
    struct range here("advance_texts");
    launch(backend, advance_text, dim3(blocks_of(loop->parts, TEXT_THREADS)), dim3(TEXT_THREADS), 0,
           *loop);
}

/* ---- canvases: work of the whole block ---- */

/* Maps a double to an integer of the same order; both zeros give the same integer. */
DEVICE uint64_t ordered_bits(double x)
{
    uint64_t bits;
    x += 0.0;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

/* Returns true in every thread if at least one of the n answers is bad. */
DEVICE bool any_bad(const struct head_row *answer, size_t n, struct sheet sheet)
{
    int bad = 0;
    for (size_t k = threadIdx.x; k < n; k += CANVAS_THREADS)
        bad |= answer[k].bad;
    if (bad)
        atomicMax(&sheet.sum[SUM_BAD], 1);
    __syncthreads();
    return sheet.sum[SUM_BAD];
}

/* Reads the canvas's answers, which begin at w0. The answers about masked slots come first. Their
 * indices are written to pick[] in descending order of score; equal scores keep ascending order of
 * index. The answers about slots with an id come next. They are not sorted: only their confidence[]
 * is filled. */
DEVICE void sort_answers(const struct canvas_loop *loop, const struct canvas_state *canvas,
                         size_t w0, struct sheet sheet)
{
    size_t all = (size_t)canvas->wanted, n = all - (size_t)canvas->held;
    for (size_t k = threadIdx.x; k < n; k += CANVAS_THREADS) {
        struct reading reading = canvas_read(loop, canvas, w0 + k);
        sheet.id[k] = reading.id;
        sheet.confidence[k] = reading.confidence;
        sheet.bits[k] = ordered_bits(canvas_score(loop, w0 + k, reading.confidence));
    }
    for (size_t k = n + threadIdx.x; k < all; k += CANVAS_THREADS)
        sheet.confidence[k] = canvas_held_confidence(loop, w0 + k);
    __syncthreads();
    for (size_t k = threadIdx.x; k < n; k += CANVAS_THREADS) {
        uint64_t mine = sheet.bits[k];
        size_t rank = 0;
        for (size_t j = 0; j < n; j++)
            rank += sheet.bits[j] > mine || (sheet.bits[j] == mine && j < k);
        sheet.pick[rank] = (int32_t)k;
    }
    __syncthreads();
}

/* Thread 0 calls the rule. All threads then write the ids that the rule commits, and revise the
 * slots that the rule lists in back[]. */
DEVICE void commit(const struct canvas_loop *loop, struct canvas_state *canvas, size_t w0,
                   struct sheet sheet)
{
    int written = 0, edited = 0;
    sort_answers(loop, canvas, w0, sheet);
    if (threadIdx.x == 0) {
        size_t backs;
        sheet.sum[SUM_TAKES] = (int)canvas_takes(loop, canvas, w0, sheet.confidence, sheet.pick,
                                                 &backs);
        sheet.sum[SUM_BACKS] = (int)backs;
    }
    __syncthreads();
    for (int k = (int)threadIdx.x; k < sheet.sum[SUM_TAKES]; k += CANVAS_THREADS) {
        int32_t at = sheet.pick[k];
        loop->token[loop->asked[w0 + (size_t)at]] = sheet.id[at];
        written += sheet.id[at] != loop->mask;
    }
    const int32_t *back = sheet.pick + (canvas->wanted - canvas->held);
    for (int k = (int)threadIdx.x; k < sheet.sum[SUM_BACKS]; k += CANVAS_THREADS)
        edited += canvas_revise(loop, w0, back[k]);
    if (edited)
        atomicAdd(&sheet.sum[SUM_EDITED], edited);
    if (written)
        atomicAdd(&sheet.sum[SUM_WRITTEN], written);
    __syncthreads();
}

/* Counts the open slots from the end of the prompt to the end of the block. Adds the count to
 * sheet.sum[SUM_MASKS]. */
DEVICE void count_masks(const struct canvas_loop *loop, const struct canvas_state *canvas,
                        struct sheet sheet)
{
    int masks = 0, end = canvas_block_end(loop, canvas);
    for (int i = canvas->prompt + (int)threadIdx.x; i < end; i += CANVAS_THREADS)
        masks += canvas_open(loop, canvas, i);
    if (masks)
        atomicAdd(&sheet.sum[SUM_MASKS], masks);
    __syncthreads();
}

/* Asks about slots in ascending order, from slot `first` on. If `held`, it asks about the slots
 * with an id, up to the end of the block; otherwise about the masked slots, up to
 * canvas_ask_end(). The first `asked` answers already have a slot. Returns the new number of
 * answers that have one. */
DEVICE int ask_slots(const struct canvas_loop *loop, const struct canvas_state *canvas, int first,
                     bool held, size_t w0, int asked, struct sheet sheet)
{
    int end = held ? canvas_block_end(loop, canvas) : canvas_ask_end(loop, canvas), all;
    for (; first < end; first += CANVAS_THREADS, asked += all) {
        int slot = first + (int)threadIdx.x;
        bool yes = slot < end &&
                   (held ? canvas_held(loop, canvas, slot) : canvas_open(loop, canvas, slot));
        int at = asked + block_below(yes, &all, sheet.votes);
        if (yes && at < (int)loop->capacity)
            canvas_ask(loop, canvas, w0 + (size_t)at, slot, held);
    }
    return asked;
}

/* advance_ask() on the device. */
DEVICE void ask(const struct canvas_loop *loop, struct canvas_state *canvas, size_t w0,
                struct sheet sheet)
{
    int open = 0, all = 0, behind = canvas_behind(loop, canvas);
    if (canvas->live && !behind) {
        open = ask_slots(loop, canvas, canvas->prompt, false, w0, 0, sheet);
        all = loop->check_of
                  ? ask_slots(loop, canvas, canvas_held_begin(loop, canvas), true, w0, open, sheet)
                  : open;
    }
    for (int at = all + (int)threadIdx.x; at < (int)loop->capacity; at += CANVAS_THREADS)
        canvas_ask(loop, canvas, w0 + (size_t)at, -1, false);
    canvas->wanted = all;
    canvas->held = all - open;
    canvas->stalled = behind || (size_t)all > loop->capacity;
}

/* Block i owns part i: one canvas, and its `capacity` answers, which begin at capacity * i. The
 * block uses the answers of the last pass, then asks for those of the next pass. */
static __global__ void __launch_bounds__(CANVAS_THREADS) advance_canvas(struct canvas_loop loop)
{
    SHARED(unsigned char, shared);
    let_next_start();
    wait_for_inputs();
    struct sheet sheet = sheet_of(shared, loop.capacity);
    struct canvas_state *kept = &loop.canvas[loop.member[blockIdx.x]], canvas = *kept;
    size_t w0 = blockIdx.x * loop.capacity, n = (size_t)canvas.wanted;
    if (threadIdx.x < SUMS)
        sheet.sum[threadIdx.x] = 0;
    __syncthreads();
    bool counts = canvas.live && !canvas.stalled;
    if (counts && any_bad(loop.answer + w0, n, sheet)) {
        canvas.live = 0;
        canvas.bad = 1;
    } else if (counts) {
        commit(&loop, &canvas, w0, sheet);
        count_masks(&loop, &canvas, sheet);
        if (threadIdx.x == 0) {
            canvas_settle(&loop, &canvas, sheet.sum[SUM_MASKS]);
            *sheet.state = canvas;
        }
        __syncthreads();
        canvas = *sheet.state;
    }
    canvas.written = sheet.sum[SUM_WRITTEN];
    canvas.edited = sheet.sum[SUM_EDITED];
    canvas.remasked = sheet.sum[SUM_BACKS] - sheet.sum[SUM_EDITED];
    ask(&loop, &canvas, w0, sheet);
    if (threadIdx.x == 0)
        *kept = canvas;
}

/* Thread t owns the token of row t. */
static __global__ void __launch_bounds__(ROW_THREADS) renew_tokens(struct canvas_loop loop)
{
    let_next_start();
    wait_for_inputs();
    size_t row = (size_t)blockIdx.x * ROW_THREADS + threadIdx.x;
    if (row < loop.T && loop.origin[row] >= 0)
        loop.rows.token[row] = loop.token[loop.origin[row]];
}

void cuda_advance_canvases(struct backend *backend, const struct canvas_loop *loop)
{
    struct range here("advance_canvases");
    size_t shared = sheet_bytes(loop->capacity);
    assert(shared <= device_of(backend)->shared_max);
    launch(backend, advance_canvas, dim3((unsigned)loop->parts), dim3(CANVAS_THREADS), shared,
           *loop);
    launch(backend, renew_tokens, dim3(blocks_of(loop->T, ROW_THREADS)), dim3(ROW_THREADS), 0,
           *loop);
}
