/* attention.h - the kernels that attention.cu chooses from. What a launch is shaped by is a plan
 * (attention_plan.h), made from the bounds in struct attn.
 */
#ifndef KERNELS_CUDA_ATTENTION_ATTENTION_H
#define KERNELS_CUDA_ATTENTION_ATTENTION_H

#include "kernels/cuda/attention/attention_step.cuh"

/* attention_few.cu: at most 32 queries a sequence, and the sum of the parts that splits of a list
 * leave in j->part. */
void attention_few(struct backend *b, const struct tile_job *j, const struct attention_plan *p);
void attention_few_combine(struct backend *b, const struct tile_job *j,
                           const struct attention_plan *p);

/* attention_exact.cu: in fp32; any head dim up to 256, format of activations and of the cache. */
void attention_exact(struct backend *b, const struct attn *a);

/* attention_dense.cu: with attn.dense. */
void attention_dense(struct backend *b, const struct attn *a, void *work);
size_t attention_dense_work(size_t T, size_t max_slots, size_t dense);

#endif
