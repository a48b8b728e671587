/* d2f.h - works on several open blocks at once. Commits every answer above the threshold, and in
 * each block that is ready at least the best answer.
 *
 * A block is ready if at least the share `ready` of the block before it is final; the first open
 * block is always ready. The canvas opens a further block when the final share of the last open
 * block reaches `open_share` (canvas_open_on() of kernels/advance.h). A pass opens at most one
 * block, and none behind a stop id that ends the answer. D2F's attention mask for LLaDA is in
 * lib/checkpoint/families/llada.c. D2F-Dream, whose answers are shifted by one position, is not
 * supported. Source: Wang et al. 2025, "Diffusion LLMs Can Do Faster-Than-AR Inference via Discrete
 * Diffusion Forcing", arXiv 2508.09192, and D2F-eval/generate_llada_demo_block.py of
 * github.com/zhijie-group/Discrete-Diffusion-Forcing. */
#pragma once

#include "kernels/unmask/offers.h"

HOST_DEVICE int32_t unmask_d2f_block(const struct offers *offers, size_t k)
{
    return (offers_slot(offers, k) + offers->shift) / offers->slots;
}

/* 1: answer pick[j] is the best answer of its block. */
HOST_DEVICE int unmask_d2f_leads(const struct offers *offers, size_t j)
{
    const int32_t block = unmask_d2f_block(offers, (size_t)offers->pick[j]);
    for (size_t i = 0; i < j; i++)
        if (unmask_d2f_block(offers, (size_t)offers->pick[i]) == block)
            return 0;
    return 1;
}

HOST_DEVICE int unmask_d2f_ready(const struct offers *offers, int32_t block, double ready)
{
    const int32_t end = block * offers->slots - offers->shift; /* end of the block before */
    const int32_t begin = end > offers->slots ? end - offers->slots : 0;
    int32_t masks = 0;
    for (size_t k = 0; k < offers->n; k++)
        masks += unmask_d2f_block(offers, k) == block - 1;
    return block == offers->block || (double)(end - begin - masks) / (end - begin) >= ready;
}

HOST_DEVICE size_t unmask_d2f(const struct offers *offers, double threshold, double ready)
{
    size_t taken = 0;
    for (size_t j = 0; j < offers->n; j++) {
        const int32_t block = unmask_d2f_block(offers, (size_t)offers->pick[j]);
        if (offers_confidence(offers, j) > threshold ||
            (unmask_d2f_leads(offers, j) && unmask_d2f_ready(offers, block, ready)))
            offers_swap(offers, j, taken++);
    }
    return taken;
}
