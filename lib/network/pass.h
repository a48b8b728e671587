/* pass.h - running rows through a network.
 *
 * One pass runs any set of rows; everything else (prefill, decode, denoising steps, block caches,
 * batches of unequal prompts) is a choice of rows, slots and mask. A pass is described on the host
 * (work.host and struct pass), sent to the back end by pass_write, and enqueued by pass_run;
 * between two passes the back end itself may rewrite what was sent (kernels/advance.h). forward()
 * does all of it at once, for callers that want answers at once.
 */
#ifndef NETWORK_PASS_H
#define NETWORK_PASS_H

#include "kernels/advance.h"
#include "lib/network/network.h"

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
    size_t logits;     /* 1: logits may be asked for */
};

/* The index arrays of a pass, and what the caller keeps beside them. */
struct index {
    struct rows rows;
    int32_t *member;       /* [seqs] for the caller: what each part of a pass is */
    int32_t *target;       /* [wanted] see struct head_query */
    int32_t *ban, *quiet;  /* [ADVANCE_STOPS] */
    unsigned char *extra;  /* [extra] 256-byte aligned */
};

struct work {
    struct work_size size;
    struct index host, device; /* where a pass is described; where operations read it */
    struct head_row *answer;  /* [wanted], from here on memory of the back end */
    float *logits;            /* [wanted, V] */
    act *x;                   /* [T, D] the stream */
    act *q, *y;               /* [T, H*E] queries, attention output */
    struct cache fresh;       /* [T, K*E] keys and values of a pass without a cache */
    act *gate;                /* [T, F] */
    float *table;             /* [T, E] cosines and sines */
    act *wanted, *uncond;     /* [R, D] */
    void *scratch;            /* of operations, by turns */
    unsigned char *block;     /* all of it; begins with the index arrays */
    size_t index_bytes;
};
/* NULL: no memory. The caller's. */
struct work *work_make(const struct network *n, const struct work_size *size);
void work_free(struct work *w, const struct network *n); /* NULL is fine */

/* All that settles the calls of a pass beside its index arrays: the key of ops.run. Zeroed as bytes
 * by pass_begin, then filled member by member. */
struct pass {
    uint64_t network;           /* its identity */
    const void *block, *k, *v;  /* where work and cache lie */
    struct work_size size;
    size_t kv_slots;
    size_t T, R, n_seqs;
    size_t max_rows, max_slots; /* of a sequence; slots by pass_slots */
    size_t mask_block;
    struct head_query query;    /* its arrays are those of work.device */
    enum mask mask;
    enum dtype kv_dtype;
    int guided, logits;         /* 1: rows.uncond counts; answers come with logits */
};
/* *p = a pass over nothing yet; kv NULL: without a cache. */
void pass_begin(struct pass *p, const struct network *n, const struct kv *kv, const struct work *w);
/* max_slots for sequences that read up to n slots: a step of a staircase, so that passes whose
 * lists grow are one record for a while. */
size_t pass_slots(const struct work *w, size_t n);
/* Without a cache the keys of a sequence are its own rows: lists the first T in work.host, whose
 * pos is filled. The piece of a sequence begins at its first row. */
void pass_list_rows(struct work *w, size_t T);
/* Sends work.host. */
void pass_write(const struct network *n, struct work *w);
/* Operations only. */
void pass_run(const struct network *n, const struct kv *kv, const struct work *w,
              const struct pass *p);

/* One sequence's part of a pass. Its rows are consecutive in token[] and pos[]. */
struct forward_seq {
    size_t rows;
    const int32_t *slots; /* cache slots that these rows read (their own included) */
    size_t n_slots;
};
/* Host memory throughout. */
struct forward {
    const int32_t *token, *pos; /* [T] */
    const int32_t *slot;        /* [T] where each row's K and V go; NULL with kv NULL */
    const struct forward_seq *seqs;
    size_t n_seqs; /* T = sum of rows */
    enum mask mask;
    size_t mask_block;
    const int32_t *wanted; /* [R] rows whose answer is wanted, in any order */
    size_t n_wanted;
    const int32_t *uncond;   /* [R] for CFG: the unconditional twin of each wanted row, or NULL */
    struct head_query query; /* how the head answers */
};
/* kv NULL: every row reads all rows of its own sequence (vanilla LLaDA), and nothing is kept.
 * out: [R]. logits: NULL or [R, V]. */
void forward(const struct network *n, struct kv *kv, struct work *w, const struct forward *f,
             struct head_row *out, float *logits);

#endif
