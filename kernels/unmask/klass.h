/* klass.h - commits the answers that are sure and stable. Sure: confidence above `sure`. Stable: in
 * each of the last `history` passes, the divergence KL(now || before) was below a bound; now and
 * before are the distributions at the slot in that pass and in the pass before it, and KL is in
 * nats. If no answer is sure and stable, the best answer is committed.
 *
 * Here a slot is compared from the second pass of its block on, because the head computes no answer
 * for the slot before the first pass of the block. The authors compare a slot from the second pass
 * of the canvas on. They also limit the steps of a block. Here a block ends when it is full; their
 * code does the same if it allows one step for each slot. The rule compares distributions, so the
 * tokens drawn from them do not matter. Source: Kim et al. 2025, "KLASS: KL-Guided Fast Inference
 * in Masked Diffusion Models", arXiv 2511.05664; github.com/shkim0116/KLASS (conf_threshold,
 * kl_threshold, kl_history_length). */
#pragma once

#include "kernels/unmask/offers.h"

/* Memory of a slot. KLASS_ANSWER: the index of its last answer, plus 1. KLASS_PASS: the number of
 * the pass that gave this answer, plus 1. KLASS_RUN: the number of consecutive stable passes. */
enum { KLASS_ANSWER, KLASS_PASS, KLASS_RUN };

/* The index of the answer that pass number `pass - 1` gave about a slot; -1: it gave none. */
HOST_DEVICE int32_t unmask_klass_before(const struct slot_kept *kept, int32_t pass)
{
    return kept->id[KLASS_PASS] == pass ? kept->id[KLASS_ANSWER] - 1 : -1;
}

/* Records that pass number `pass` gave answer w about a slot, and whether it was stable. */
HOST_DEVICE void unmask_klass_note(struct slot_kept *kept, size_t w, int32_t pass, int stable)
{
    kept->id[KLASS_RUN] = stable ? kept->id[KLASS_RUN] + 1 : 0;
    kept->id[KLASS_ANSWER] = (int32_t)w + 1;
    kept->id[KLASS_PASS] = pass + 1;
}

HOST_DEVICE size_t unmask_klass(const struct offers *offers, double sure, double history)
{
    size_t taken = 0;
    for (size_t j = 0; j < offers->n; j++)
        if (offers_confidence(offers, j) > sure &&
            offers_kept(offers, (size_t)offers->pick[j])->id[KLASS_RUN] >= history)
            offers_swap(offers, j, taken++);
    return taken ? taken : offers->n > 0;
}
