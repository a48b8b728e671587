/* pass-run.h - a layer at work: what pass.c (the layer, with attention) and pass-mixing.c (a mixer
 * that recurs) share. */
#ifndef NETWORK_PASS_RUN_H
#define NETWORK_PASS_RUN_H

#include "lib/network/pass.h"

/* y = in W^T, or += , a tile of rows after the other; the rows of in are K wide, those of y N. */
void pass_multiply(const struct network *n, const struct work *w, const struct mat *m,
                   struct input in, act *y, int add, size_t T);

/* x += the time mixing of RWKV 6 or 7 in layer l; the slot that each sequence lists is its text's.
 */
void pass_mix(const struct network *n, size_t l, const struct kv *kv, const struct work *w,
              const struct pass *p);

#endif
