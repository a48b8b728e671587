/* hierarchical.h - commits in each run of neighbouring masks the most confident answer, if it
 * exceeds the lower threshold, and every answer above the upper threshold. Committed tokens lie far
 * apart and split the runs, so an easy block of n slots takes about log n passes. If no answer
 * exceeds the lower threshold, the best one alone is committed. Source: inclusionAI, dInfer, arXiv
 * 2510.08666, hierarchical decoding. */
#pragma once

#include "kernels/unmask/offers.h"

/* 1 if no answer in the run of masks around answer k is more confident; among equals the first. */
HOST_DEVICE int unmask_leads_run(const struct offers *o, size_t k)
{
    for (size_t i = k; i > 0 && offers_slot(o, i) == offers_slot(o, i - 1) + 1; i--)
        if (o->confidence[i - 1] >= o->confidence[k])
            return 0;
    for (size_t i = k + 1; i < o->n && offers_slot(o, i) == offers_slot(o, i - 1) + 1; i++)
        if (o->confidence[i] > o->confidence[k])
            return 0;
    return 1;
}

HOST_DEVICE size_t unmask_hierarchical(const struct offers *o, double upper, double lower)
{
    size_t taken = 0;
    for (size_t j = 0; j < o->n; j++) {
        size_t k = (size_t)o->pick[j];
        if (o->confidence[k] > upper || (o->confidence[k] > lower && unmask_leads_run(o, k)))
            offers_swap(o, j, taken++);
    }
    return taken ? taken : o->n > 0;
}
