/* group.cuh - products in groups: group g is rows begin[g] .. begin[g + 1] - 1 of x, with matrices
 * of its own. A block computes one group, and reads its rows and matrices from arrays in device
 * memory. */
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/weights/tiling.h"

struct group {
    const uint8_t *const *data; /* [matrices of the job, n] mat.data of each matrix; all have one
                                 * layout */
    const int32_t *begin;       /* [n + 1] */
    uint32_t n;                 /* 0: a job without groups */
    uint32_t most;              /* most rows of a group */
};

/* The address of a part of the matrix at `data`, from the address `part` of that part in a matrix
 * `like` of the same layout. */
template <class P> DEVICE const P *group_part(const uint8_t *data, const struct operand &like,
                                              const P *part)
{
    return reinterpret_cast<const P *>(data +
                                       (reinterpret_cast<const uint8_t *>(part) - like.code));
}

/* The job for group g: the rows and matrices of the group. *first = its first row. The matrices of
 * all groups have one layout. */
DEVICE struct product_job group_job(const struct product_job &all, const struct group &groups,
                                    uint32_t g, uint32_t *first)
{
    *first = (uint32_t)groups.begin[g];
    struct product_job j = job_rows(&all, *first, (uint32_t)groups.begin[g + 1] - *first);
    for (uint32_t i = 0; i < j.n; i++) {
        const struct operand &like = all.w[i];
        const uint8_t *data = groups.data[i * groups.n + g];
        j.w[i].code = data;
        j.w[i].absmax = group_part(data, like, like.absmax);
        j.w[i].scale = group_part(data, like, like.scale);
        j.w[i].offset = group_part(data, like, like.offset);
    }
    return j;
}
