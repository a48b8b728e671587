/* attention.h - the kernels that attention.cu chooses from. struct attention_plan gives the shape
 * of a launch; attention_plan.h makes it from the bounds in struct attn. */
#pragma once

#include "kernels/cuda/attention/attention_step.cuh"

/* attention_few.cu. attention_few(): at most 32 queries of a key head in a sequence.
 * attention_few_combine() combines the parts that the splits of a list leave in j->part. */
void attention_few(struct backend *backend, const struct tile_job *j,
                   const struct attention_plan *plan);
void attention_few_combine(struct backend *backend, const struct tile_job *j,
                           const struct attention_plan *plan);

/* attention_exact.cu: computes in fp32, for any head dim up to 256 and any format of activations
 * and cache. */
void attention_exact(struct backend *backend, const struct attn *attention);

/* attention_dense.cu: for attn.dense. */
void attention_dense(struct backend *backend, const struct attn *attention, void *work);
size_t attention_dense_work(size_t T, size_t max_slots, size_t dense);
