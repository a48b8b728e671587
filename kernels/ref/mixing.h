/* mixing.h - what is around time mixing, of the reference: the operations of the same names in
 * kernels/ops.h. */
#ifndef KERNELS_REF_MIXING_H
#define KERNELS_REF_MIXING_H

#include "kernels/mixing.h"

void ref_shift(struct backend *b, const struct shift *a);
void ref_squash(struct backend *b, const struct squash *a);
void ref_removal(struct backend *b, const struct removal *a);
void ref_heads_out(struct backend *b, const struct heads_out *a);

/* mixing-back.c */
void ref_shift_back(struct backend *b, const struct shift_back *a);
void ref_squash_back(struct backend *b, const struct squash_back *a);
void ref_heads_out_back(struct backend *b, const struct heads_out_back *a);
void ref_removal_back(struct backend *b, const struct removal_back *a);

#endif
