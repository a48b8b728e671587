/* dit_pass.h - memory layout, forward and backward pass of a transformer over latents. Only dit.c
 * and dit_pass.c include this header. n samples of N latents of Z values; width D; T = n N rows. */
#pragma once

#include "lib/train/dit.h"

enum { DIT_WAVES = 256 }; /* values of the embedding of a time */

/* y = x W^T + bias: offsets of W [out, in] and of the bias among the values. */
struct dit_linear {
    size_t w, bias, in, out;
};
struct dit_block {
    struct dit_linear mod, qkv, o, up, down;
};

/* Results of a norm and its modulation that the backward pass reads. */
struct dit_norm {
    float *hat, *inv; /* [T, D] normalized, [T] 1 / deviation */
    float *in;        /* [T, D] modulated */
};
struct dit_tape {
    float *mod; /* [n, 6D]: shift, scale, gate of attention, then of the ffn */
    struct dit_norm norm[2]; /* before attention, before the ffn */
    float *out[2]; /* [T, D] outputs of attention and ffn, before the gate */
    float *qkv, *share, *y; /* [T, 3D]; softmax [n, H, N, N]; output of the heads [T, D] */
    float *up, *act;        /* [T, 4D] before and after gelu */
};

struct dit {
    struct dit_shape s;
    struct backend *b;
    size_t batch, n;                    /* most samples of a pass; number of parameters */
    float *w, *g, *m1, *m2, *average;   /* [n] */
    float *mean, *deviation;            /* [N, Z] of the samples before dit_to_standard() */
    int64_t step;
    struct dit_linear in, time1, time2, mod, out;
    size_t position;                    /* offset of [N, D] among the values */
    struct dit_block *block;            /* [layers] */
    struct dit_tape *tape;              /* [layers] */
    float *waves, *t1, *t1act, *c, *cact; /* [n, WAVES]; the others [n, D] */
    float *top_mod;                     /* [n, 2D] shift and scale of the last norm */
    struct dit_norm top;                /* the last norm */
    float *x, *v, *aim;                 /* [T, Z] noisy input, prediction, target */
    float *h;                           /* [T, D] the stream */
    float *dh, *dn, *dwide;             /* gradients: [T, D], [T, D], [T, 4D] */
    float *dmod, *dc, *dt;              /* [n, 6D], [n, D], [n, D] */
    double *times;                      /* [n] */
    void *work;                         /* scratch of gemm */
    float *room;                        /* block of the tapes and of the arrays waves .. dt */
};

/* v[n, N, Z] = the prediction for x[n, N, Z] at times[n]. x must not be dit->v. */
void dit_forward(struct dit *dit, const float *x, const double *times, size_t n, float *v);
/* dit->g = the gradient of the parameters, given dv, the gradient of the prediction of the last
 * dit_forward(), whose x must have been dit->x. */
void dit_backward(struct dit *dit, size_t n, const float *dv);
