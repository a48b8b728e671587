/* pass.h - running rows through a network.
 *
 * One pass runs any set of rows; everything else (prefill, decode, denoising steps, block caches,
 * batches of unequal prompts) is a choice of rows, slots and mask. A pass is described on the host
 * (work.host and struct pass), sent to the back end by pass_write, and enqueued by pass_run;
 * between two passes the back end itself may rewrite what was sent (kernels/advance.h). forward.h
 * does all of it at once, for callers that want answers at once.
 */
#ifndef NETWORK_PASS_H
#define NETWORK_PASS_H

#include "lib/network/kv.h"
#include "lib/network/work.h"

/* All that settles the calls of a pass beside its index arrays: the key of ops.run. Zeroed as bytes
 * by pass_begin, then filled member by member. */
struct pass {
    uint64_t network;           /* its identity */
    const void *block, *k, *v, *attn, *outside; /* where work and cache lie */
    struct work_size size;
    size_t kv_slots;
    size_t T, R, n_seqs;
    size_t max_rows, max_slots; /* of a sequence; slots by pass_slots */
    size_t chosen;              /* rows that layers but the first compute, by work.device.part and
                                 * some (ops.choose); 0: all. Needs outputs that are kept */
    size_t max_chosen;          /* of a sequence */
    size_t mask_block;
    struct head_query query;    /* its arrays are those of work.device */
    enum mask mask;
    enum dtype kv_dtype;
    int guided, logits;         /* 1: rows.uncond names twins; answers come with logits. With
                                 * query.divergence it names the answers of the last pass that these
                                 * are compared with */
    int sifts;                  /* 1: of keys and values those are cached that work.device.part
                                 * says (ops.sift); rows read rows (pass_list_rows) */
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

#endif
