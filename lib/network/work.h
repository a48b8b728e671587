/* work.h - the memory in which passes run: index arrays, the shapes between operations, and the
 * scratch of operations, in one block of the back end. */
#pragma once

#include "kernels/advance.h"
#include "kernels/mixing.h"
#include "kernels/reuse.h"
#include "lib/network/network.h"

/* Forms of a computation that take more memory or time than the usual forms, to measure how much
 * the usual forms save. All 0: the usual forms. Results differ at most in the order of sums
 * (attention, time mixing), or not at all on back ends whose results do not depend on neighbours
 * (ref, cpu). */
struct variant {
    size_t scores;     /* heads whose scores attention stores at once (attn.dense); SIZE_MAX: all;
                        * 0: one tile at a time */
    size_t unfused;    /* 1: gate and up are two products stored in memory, then silu(gate) * up; 0:
                        * one operation */
    size_t dense_head; /* 1: head_query.dense */
    size_t wkv;        /* enum wkv_form of kernels/wkv.h, for layers with time mixing */
};

/* The limits of the passes that a work area serves. No member has padding behind it, so that equal
 * sizes are equal bytes. */
struct work_size {
    size_t rows, seqs; /* of a pass */
    size_t slots;      /* keys that a sequence may read */
    size_t listed;     /* slots in the lists of all sequences; rows without a cache */
    size_t wanted;     /* rows with an answer */
    size_t extra;      /* bytes of the caller that are sent with the index arrays */
    size_t cached;     /* 1: passes have a cache; 0: work holds their keys and values */
    size_t guided;     /* 1: rows with an answer may have unconditional rows (CFG) */
    size_t compared;   /* 1: answers may be compared with those of the pass before */
    size_t logits;     /* 1: logits may be asked for */
    size_t linked;     /* 1: how much rows attend to each other may be asked for */
    size_t tops;       /* 1: and the most likely ids, head_query.tops */
    size_t chosen;     /* 1: passes may compute only chosen rows; the cache then stores outputs */
    size_t sifted;     /* 1: passes may cache only a part of their keys and values */
    size_t latent;     /* 1: rows read latents too */
    size_t taps, tap[CONFIG_MAX_TAPS]; /* the outputs of these layers, not of the last one,
                        * are kept; 0: of none */
    size_t fed;        /* outputs of another network that a row of context is made of; 0: none */
    size_t chained;    /* 1: rows have a state (pass-chain.c), with fed >= 2 */
    struct variant how;
};
/* Heads of attn.dense. */
size_t work_scores(const struct network *n, const struct work_size *size);
/* Rows that a layer's products work on at once: all T, or network.row_tile. */
size_t work_tile(const struct network *n, const struct work_size *size);

/* The index arrays of a pass, and the caller's bytes. */
struct index {
    struct rows rows;
    int32_t *member;       /* [seqs] for the caller: the member of each part */
    int32_t *target;       /* [wanted] see struct head_query */
    int32_t *ban, *quiet;  /* [ADVANCE_STOPS] */
    struct share *part;   /* [seqs] see struct pass: chosen, sifts */
    struct attn_seq *some; /* [seqs] the sequences with only their chosen rows */
    struct attn_seq *cross; /* [seqs] the sequences as they read their latents */
    int32_t *feature;      /* [rows, fed] see pass_fuse() */
    int32_t *both;         /* [rows, 2] chained: t and rows + t, for each row t */
    unsigned char *extra;  /* [extra] 256-byte aligned */
};

/* Arrays of time mixing, all [T, ..]; NULL: the mixer does not need it. */
struct mixing_room {
    float *norm;               /* [T, D] the normalized rows that are mixed */
    float *lane[MIXING_LANES]; /* [T, D] the input of each projection */
    float *low;                /* [lanes of 6, T, R], or [T, R] of 7: inside a low-rank part */
    float *k, *v, *w, *g;      /* [T, H*E] */
    float *a, *b;              /* [T, H*E] of 7; b first is eta */
    float *first, *share;      /* [T, H*E] of 7: v of the first layer, and its share */
};

struct work {
    struct work_size size;
    struct index host, device; /* host: where a pass is described; device: where operations read
                                * it */
    struct head_row *answer;  /* [wanted], from here on memory of the back end */
    float *logits;            /* [wanted, V] */
    struct head_top *tops;    /* [wanted] */
    float *map, *mean;        /* [T, slots], [T] of struct links */
    act *x;                   /* [T, D] the residual stream */
    act *q, *y;               /* [T, H*E] queries, attention output */
    struct cache fresh;       /* [T, K*E] keys and values of a pass without a cache */
    act *gate, *up;           /* [tile, F]; up: unfused */
    act *normed;              /* [tile, D] with experts: the rows that they read */
    int32_t *active;          /* [1] with experts: how often a layer of a pass read one */
    float *table;             /* [T, E] cosines and sines */
    float *still;             /* [T, E] the same of no rotation, where a layer has none */
    act *wanted, *uncond;     /* [R, D] */
    act *before;              /* [R, D] `wanted` of the last pass */
    act *sum;                 /* [T, D] chosen rows of the stream */
    act *taps;                /* [taps, T of the size, D] the stream behind layers tap[] */
    act *fed, *context;       /* [T, fed D], [T, D] of pass_fuse() */
    act *joined;              /* [T, 2 D] chained: what the first layer reads */
    struct chosen rows;       /* [T] which ones they are */
    struct mixing_room mixing;
    void *scratch;            /* of operations, shared in turn */
    unsigned char *block;     /* the whole memory; the index arrays come first */
    size_t index_bytes;
};
/* NULL: no memory. Free it with work_free. */
struct work *work_make(const struct network *n, const struct work_size *size);
void work_free(struct work *work, const struct network *n); /* work may be NULL */
/* The experts that layers of passes have read, since work_make or work_forget_experts; 0 without
 * experts. Waits. */
double work_experts(const struct work *work, const struct network *n);
void work_forget_experts(const struct work *work, const struct network *n);
