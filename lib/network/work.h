/* work.h - the memory that passes work in: what a pass is told (index arrays), the shapes between
 * its operations, and their scratch, in one block of the back end. */
#ifndef NETWORK_WORK_H
#define NETWORK_WORK_H

#include "kernels/advance.h"
#include "kernels/mixing.h"
#include "kernels/reuse.h"
#include "lib/network/network.h"

/* Ways to compute the same that take more memory or time than the usual ones: what those save can
 * so be measured. All 0: the usual ones. Results differ by the order of sums at most (attention,
 * time mixing), or not at all where a back end computes the same whatever is beside it (ref,
 * cpu). */
struct variant {
    size_t scores;     /* heads of which attention makes all scores at once (attn.dense), cut to
                        * what there is; SIZE_MAX: all; 0: a tile at a time */
    size_t unfused;    /* 1: gate and up are two products with results in memory, then silu(gate) *
                        * up; 0: one operation */
    size_t dense_head; /* 1: head_query.dense */
    size_t wkv;        /* enum wkv_form of kernels/wkv.h, of layers with time mixing */
};

/* How much the passes may hold that a work area serves. No member has padding behind it, so that
 * equal sizes are equal bytes. */
struct work_size {
    size_t rows, seqs; /* of a pass */
    size_t slots;      /* keys that a sequence may read: at most */
    size_t listed;     /* slots in the lists of all sequences; rows when there is no cache */
    size_t wanted;     /* rows with an answer */
    size_t extra;      /* bytes that the caller keeps and sends beside the index arrays */
    size_t cached;     /* 1: passes have a cache; 0: they keep their keys and values themselves */
    size_t guided;     /* 1: rows with an answer may have unconditional twins (CFG) */
    size_t compared;   /* 1: they may be compared with those of the pass before */
    size_t logits;     /* 1: logits may be asked for */
    size_t chosen;     /* 1: passes may compute chosen rows alone, and the cache keeps outputs */
    size_t sifted;     /* 1: passes may keep a part of their keys and values */
    size_t latent;     /* 1: rows read latents too */
    struct variant how;
};
/* Heads of attn.dense. */
size_t work_scores(const struct network *n, const struct work_size *size);
/* Rows that a layer's products work on at once: all T, or network.row_tile. */
size_t work_tile(const struct network *n, const struct work_size *size);

/* The index arrays of a pass, and what the caller keeps beside them. */
struct index {
    struct rows rows;
    int32_t *member;       /* [seqs] for the caller: what each part of a pass is */
    int32_t *target;       /* [wanted] see struct head_query */
    int32_t *ban, *quiet;  /* [ADVANCE_STOPS] */
    struct share *part;   /* [seqs] see struct pass, chosen and sifted */
    struct attn_seq *some; /* [seqs] the sequences as their chosen rows alone */
    struct attn_seq *cross; /* [seqs] the sequences as they read their latents */
    unsigned char *extra;  /* [extra] 256-byte aligned */
};

/* What rows become in a mixer that recurs, all [T, ..]; NULL what it has not. */
struct mixing_room {
    float *norm;               /* [T, D] the rows that are mixed */
    float *lane[MIXING_LANES]; /* [T, D] what each projection reads */
    float *low;                /* [lanes of 6, T, R], or [T, R] of 7: inside a low-rank part */
    float *k, *v, *w, *g;      /* [T, H*E] */
    float *a, *b;              /* [T, H*E] of 7; b first is eta */
    float *first, *share;      /* [T, H*E] of 7: v of the first layer, and how much of it */
};

struct work {
    struct work_size size;
    struct index host, device; /* where a pass is described; where operations read it */
    struct head_row *answer;  /* [wanted], from here on memory of the back end */
    float *logits;            /* [wanted, V] */
    act *x;                   /* [T, D] the stream */
    act *q, *y;               /* [T, H*E] queries, attention output */
    struct cache fresh;       /* [T, K*E] keys and values of a pass that does not cache them */
    act *gate, *up;           /* [tile, F]; up: unfused */
    float *table;             /* [T, E] cosines and sines */
    act *wanted, *uncond;     /* [R, D] */
    act *before;              /* [R, D] what `wanted` was in the last pass */
    act *sum;                 /* [T, D] chosen rows of the stream */
    struct chosen rows;       /* [T] which ones they are */
    struct mixing_room mixing;
    void *scratch;            /* of operations, by turns */
    unsigned char *block;     /* all of it; begins with the index arrays */
    size_t index_bytes;
};
/* NULL: no memory. The caller's. */
struct work *work_make(const struct network *n, const struct work_size *size);
void work_free(struct work *w, const struct network *n); /* NULL is fine */

#endif
