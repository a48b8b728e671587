/* hierarchical.h - commits every answer above the upper threshold, and in each run of neighbouring
 * masks the most confident answer if it is above the lower threshold. Committed tokens lie far
 * apart and split the runs, so an easy block of n slots takes about log n passes. If no answer
 * exceeds the lower threshold, the best one alone is committed. Source: inclusionAI, dInfer, arXiv
 * 2510.08666, hierarchical decoding. */
#pragma once

#include "kernels/unmask/offers.h"

/* 1 if answer k is the most confident one in its run of neighbouring masks; among equals the
 * first. */
HOST_DEVICE int unmask_leads_run(const struct offers *offers, size_t k)
{
    for (size_t i = k; i > 0 && offers_slot(offers, i) == offers_slot(offers, i - 1) + 1; i--)
        if (offers->confidence[i - 1] >= offers->confidence[k])
            return 0;
    for (size_t i = k + 1;
         i < offers->n && offers_slot(offers, i) == offers_slot(offers, i - 1) + 1; i++)
        if (offers->confidence[i] > offers->confidence[k])
            return 0;
    return 1;
}

HOST_DEVICE size_t unmask_hierarchical(const struct offers *offers, double upper, double lower)
{
    size_t taken = 0;
    for (size_t j = 0; j < offers->n; j++) {
        size_t k = (size_t)offers->pick[j];
        if (offers->confidence[k] > upper ||
            (offers->confidence[k] > lower && unmask_leads_run(offers, k)))
            offers_swap(offers, j, taken++);
    }
    return taken ? taken : offers->n > 0;
}
