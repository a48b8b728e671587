/* train.h - the table of gradients of the reference (kernels/train.h). */
#ifndef KERNELS_REF_TRAIN_H
#define KERNELS_REF_TRAIN_H

#include "kernels/train.h"

extern const struct train_ops ref_train;

#endif
