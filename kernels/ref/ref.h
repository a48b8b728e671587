/* ref.h - functions that the files of kernels/ref share. A function ref_NAME does what the slot
 * NAME of kernels/ops.h, mixing.h or train.h defines. */
#pragma once

#include "kernels/mixing.h"
#include "kernels/ops.h"
#include "kernels/train.h"
#include "kernels/wkv.h"

/* ref_mat.c */
#define REF_DECLARE(slot) OPS_DECLARE(ops, slot, ref_##slot)
REF_DECLARE(mat_make)
REF_DECLARE(mat_bytes)
REF_DECLARE(mat_free)
REF_DECLARE(embed)
/* y[N] = W x for one row x[K], in double. For INT8 and Q4 the operations are those in fp32 that
 * kernels/quant.h defines. */
void ref_outputs(double *y, const float *x, const struct mat *weight);

/* ref_wkv.c, ref_wkv-back.c, ref_mixing.c, ref_mixing-back.c */
#define REF_DECLARE_MIXING(slot) OPS_DECLARE(mixing_ops, slot, ref_##slot)
#define REF_DECLARE_TRAIN(slot) OPS_DECLARE(train_ops, slot, ref_##slot)
MIXING_SLOTS(REF_DECLARE_MIXING)
REF_DECLARE_TRAIN(shift_back)
REF_DECLARE_TRAIN(squash_back)
REF_DECLARE_TRAIN(heads_out_back)
REF_DECLARE_TRAIN(removal_back)
REF_DECLARE_TRAIN(wkv_back)
REF_DECLARE_TRAIN(wkv_back_work)

/* ref_train.c: the gradients of kernels/train.h. */
extern const struct train_ops ref_train;
