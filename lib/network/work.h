/* work.h - the memory in which passes run: index arrays, the shapes between operations, and the
 * scratch of operations, in one block of the back end. */
#pragma once

#include "kernels/advance.h"
#include "kernels/mixing.h"
#include "kernels/reuse.h"
#include "lib/network/network.h"

/* Forms of a computation that take more memory or time than the usual forms. These forms serve to
 * measure how much the usual forms save. All 0: the usual forms. Results differ at most in the
 * order of sums (attention, time mixing). On back ends where the result of a row does not depend on
 * the rows beside it (ref, cpu) results do not differ. */
struct variant {
    size_t scores;     /* heads whose scores attention stores at once (attn.dense); SIZE_MAX: all;
                        * 0: one tile at a time */
    size_t unfused;    /* 1: gate and up are two products stored in memory, then silu(gate) * up.
                        * 0: one operation */
    size_t dense_head; /* 1: head_query.dense */
    size_t wkv;        /* enum wkv_form of kernels/wkv.h, for layers with time mixing */
};

/* The limits of the passes that a work area serves. No member has padding behind it, so that equal
 * sizes are equal bytes. */
struct work_size {
    size_t rows, seqs; /* of a pass */
    size_t slots;      /* keys that a sequence may read */
    size_t listed;     /* slots in the lists of all sequences together; without a cache: rows */
    size_t wanted;     /* rows with an answer */
    size_t extra;      /* bytes of the caller that are sent with the index arrays */
    size_t cached;     /* 1: passes have a cache; 0: keys and values of a pass are in work.fresh */
    size_t guided;     /* 1: rows with an answer may have unconditional rows (CFG) */
    size_t compared;   /* 1: answers may be compared with the answers of the pass before */
    size_t logits;     /* 1: logits may be asked for */
    size_t linked;     /* 1: passes may measure how much rows attend to each other (pass.links) */
    size_t tops;       /* 1: the most likely ids may be asked for (head_query.tops) */
    size_t chosen;     /* 1: passes may compute only chosen rows; the cache then stores outputs */
    size_t sifted;     /* 1: passes may cache only some of the keys and values (pass.sifts) */
    size_t latent;     /* 1: rows read latents too */
    size_t taps, tap[CONFIG_MAX_TAPS]; /* number and list of the layers whose outputs are kept;
                        * the last layer cannot be one of them */
    size_t fed;        /* outputs of another network that a row of context is made of; 0: none */
    size_t chained;    /* 1: rows have a state (pass-chain.c), with fed >= 2 */
    struct variant how;
};
/* The value of attn.dense: heads whose scores attention stores at once; 0: one tile at a time. */
size_t work_scores(const struct network *n, const struct work_size *size);
/* Rows that a layer's products work on at once: all T, or network.row_tile. */
size_t work_tile(const struct network *n, const struct work_size *size);

/* The index arrays of a pass, and the `extra` bytes of the caller. */
struct index {
    struct rows rows;
    int32_t *member;       /* [seqs] for the caller: the number in the batch of each sequence */
    int32_t *target;       /* [wanted] see struct head_query */
    int32_t *ban, *quiet;  /* [ADVANCE_STOPS] */
    struct share *part;   /* [seqs] for pass.chosen and pass.sifts */
    struct attn_seq *some; /* [seqs] the sequences with only their chosen rows */
    struct attn_seq *cross; /* [seqs] the sequences with their latents as keys (latent_seq) */
    int32_t *feature;      /* [rows, fed] see pass_fuse() */
    int32_t *both;         /* [rows, 2] with chained: the numbers t and rows + t for each row t */
    unsigned char *extra;  /* [extra] 256-byte aligned */
};

/* Arrays of time mixing (names of kernels/mixing.h), R: rank of the low-rank parts. An array that
 * the mixer does not need is NULL. */
struct mixing_room {
    float *norm;               /* [T, D] the normalized rows that are mixed */
    float *lane[MIXING_LANES]; /* [T, D] the input of each projection */
    float *low;                /* inner values of low-rank parts: RWKV 6 [LANES_OF_6, T, R], RWKV 7
                                * [T, R] */
    float *k, *v, *w, *g;      /* [T, H*E] key, value, log decay, gate */
    float *a, *b;              /* [T, H*E] RWKV 7; b has eta until ops.mixing.removal sets b */
    float *first, *share;      /* [T, H*E] RWKV 7: v of the first layer, and its share in v */
};

struct work {
    struct work_size size;
    struct index host, device; /* host: memory of the host, in which a pass is described; device:
                                * memory of the back end, from which operations read */
    /* All arrays below are memory of the back end. T: size.rows; tile: work_tile(). */
    struct head_row *answer;  /* [wanted] */
    float *logits;            /* [wanted, V] */
    struct head_top *tops;    /* [wanted] */
    float *map, *mean;        /* [T, slots], [T]: members of struct links (kernels/links.h) */
    act *x;                   /* [T, D] the residual stream */
    act *q, *y;               /* [T, H*E] queries, attention output */
    struct cache fresh;       /* [T, K*E] keys and values of a pass without a cache */
    act *gate, *up;           /* [tile, F]; up: only with variant.unfused */
    act *normed;              /* [tile, D] with experts: the normalized rows */
    int32_t *active;          /* [1] with experts: see work_experts() */
    float *table;             /* [T, E] cosines and sines of the rotation */
    float *still;             /* [T, E] table of a layer without rotation (cosines 1, sines 0) */
    act *wanted, *uncond;     /* [wanted, D] normalized rows that the head reads */
    act *before;              /* [wanted, D] `wanted` of the last pass */
    act *sum;                 /* [T, D] rows of the stream that a layer with stored outputs runs */
    act *taps;                /* [taps, T, D] the stream after each layer tap[] */
    act *fed, *context;       /* [T, fed D], [T, D] input and result of pass_fuse() */
    act *joined;              /* [T, 2 D] with chained: input of the first layer */
    struct chosen rows;       /* [T] the chosen rows of a layer (kernels/reuse.h) */
    struct mixing_room mixing;
    void *scratch;            /* of operations, which use it in turn */
    unsigned char *block;     /* the memory of all arrays; the index arrays come first */
    size_t index_bytes;
};
/* A work area for passes of *size (work_free). NULL: no memory of the back end. */
struct work *work_make(const struct network *n, const struct work_size *size);
void work_free(struct work *work, const struct network *n); /* work may be NULL */
/* The number of experts that the layers of all passes read since work_make() or
 * work_forget_experts(); 0 without experts. Waits for the back end. */
double work_experts(const struct work *work, const struct network *n);
void work_forget_experts(const struct work *work, const struct network *n);
