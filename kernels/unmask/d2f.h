/* d2f.h - several open blocks: commits every answer above the threshold, and in blocks that are
 * ready at least the best one.
 *
 * A block is ready if the share of final slots of the block before it is at least `ready`; the
 * first open block is always ready. The canvas opens a further block when the share of final slots
 * of the last open block reaches `open_share` (canvas_open_on of kernels/advance.h): at most one
 * block in a pass, and none behind a stop id that ends the answer. D2F's mask for LLaDA is in
 * lib/checkpoint/families/llada.c. D2F-Dream, whose answers are shifted, has no such mask here.
 * Source: Wang et al. 2025, "Diffusion LLMs Can Do Faster-Than-AR Inference via Discrete Diffusion
 * Forcing", arXiv 2508.09192, and D2F-eval/generate_llada_demo_block.py of
 * github.com/zhijie-group/Discrete-Diffusion-Forcing. */
#pragma once

#include "kernels/unmask/offers.h"

HOST_DEVICE int32_t unmask_d2f_block(const struct offers *o, size_t k)
{
    return (offers_slot(o, k) + o->shift) / o->slots;
}

/* 1: answer pick[j] is the best of its block. */
HOST_DEVICE int unmask_d2f_leads(const struct offers *o, size_t j)
{
    const int32_t block = unmask_d2f_block(o, (size_t)o->pick[j]);
    for (size_t i = 0; i < j; i++)
        if (unmask_d2f_block(o, (size_t)o->pick[i]) == block)
            return 0;
    return 1;
}

HOST_DEVICE int unmask_d2f_ready(const struct offers *o, int32_t block, double ready)
{
    const int32_t end = block * o->slots - o->shift; /* of the block before */
    const int32_t begin = end > o->slots ? end - o->slots : 0;
    int32_t masks = 0;
    for (size_t k = 0; k < o->n; k++)
        masks += unmask_d2f_block(o, k) == block - 1;
    return block == o->block || (double)(end - begin - masks) / (end - begin) >= ready;
}

HOST_DEVICE size_t unmask_d2f(const struct offers *o, double threshold, double ready)
{
    size_t taken = 0;
    for (size_t j = 0; j < o->n; j++) {
        const int32_t block = unmask_d2f_block(o, (size_t)o->pick[j]);
        if (offers_confidence(o, j) > threshold ||
            (unmask_d2f_leads(o, j) && unmask_d2f_ready(o, block, ready)))
            offers_swap(o, j, taken++);
    }
    return taken;
}
