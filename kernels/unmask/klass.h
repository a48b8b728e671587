/* klass.h - the answers that are sure and stable: their confidence is above `sure`, and for the
 * last `history` passes the distribution at their slot was closer than a bound to that of the pass
 * before, by the divergence of Kullback and Leibler, KL(now || before) in nats. The best one where
 * there is none.
 *
 * A slot is compared from the second pass of its block on, since before the block the head does not
 * read it; the authors compare it from the second pass of all. They bound the steps of a block,
 * too; here it ends when it is full, as theirs with a step a slot. Draws are left out: compared are
 * the distributions that they come from.
 * Source: Kim et al. 2025, "KLASS: KL-Guided Fast Inference in Masked Diffusion Models",
 * arXiv 2511.05664; github.com/shkim0116/KLASS (conf_threshold, kl_threshold, kl_history_length).
 */
#ifndef KERNELS_UNMASK_KLASS_H
#define KERNELS_UNMASK_KLASS_H

#include "kernels/unmask/offers.h"

/* Of a slot: the answer to it in the last pass, counted from 1; the number of the pass behind that
 * one; the passes in a row in which it was stable. */
enum { KLASS_ANSWER, KLASS_PASS, KLASS_RUN };

/* The answer that pass number `pass` - 1 gave to a slot; -1: none. */
HOST_DEVICE int32_t unmask_klass_before(const struct slot_kept *s, int32_t pass)
{
    return s->id[KLASS_PASS] == pass ? s->id[KLASS_ANSWER] - 1 : -1;
}

/* Pass number `pass` gave answer w, which was stable or not. */
HOST_DEVICE void unmask_klass_note(struct slot_kept *s, size_t w, int32_t pass, int stable)
{
    s->id[KLASS_RUN] = stable ? s->id[KLASS_RUN] + 1 : 0;
    s->id[KLASS_ANSWER] = (int32_t)w + 1;
    s->id[KLASS_PASS] = pass + 1;
}

HOST_DEVICE size_t unmask_klass(const struct offers *o, double sure, double history)
{
    size_t taken = 0;
    for (size_t j = 0; j < o->n; j++)
        if (offers_confidence(o, j) > sure &&
            offers_kept(o, (size_t)o->pick[j])->id[KLASS_RUN] >= history)
            offers_swap(o, j, taken++);
    return taken ? taken : o->n > 0;
}

#endif
