/* pass.h - runs rows through a network.
 *
 * A pass runs any set of rows. Prefill, decode, denoising steps, block caches and batches of
 * unequal prompts are choices of rows, slots and mask. A pass is described on the host (work.host
 * and struct pass), sent to the back end by pass_write, and enqueued by pass_run. Between two
 * passes the back end itself may rewrite the index arrays (kernels/advance.h). forward.h does all
 * of it in one call. */
#pragma once

#include "lib/network/kv.h"
#include "lib/network/work.h"

/* Everything besides its index arrays that determines the calls of a pass: the key of ops.run.
 * pass_begin zeroes its bytes; then members are set one by one. */
struct pass {
    uint64_t network;           /* network.identity */
    const void *block, *k, *v, *attn, *outside; /* addresses of work and cache */
    struct work_size size;
    size_t kv_slots;
    size_t T, R, n_seqs;
    size_t max_rows, max_slots; /* limits for one sequence; max_slots by pass_slots */
    size_t chosen;              /* rows that layers after the first compute, listed in
                                 * work.device.part and some (ops.choose); 0: all. Needs stored
                                 * outputs */
    size_t max_chosen;          /* limit for one sequence */
    size_t mask_block;
    struct head_query query;    /* with the arrays of work.device */
    enum mask mask;
    enum dtype kv_dtype;
    int guided, logits;         /* guided 1: rows.uncond lists unconditional rows (with
                                 * query.divergence: the answers of the last pass to compare with).
                                 * logits 1: answers come with logits */
    int links;                  /* 1: the last layers write work.map and mean; no cache, and every
                                 * row sees its sequence */
    int sifts;                  /* 1: only the keys and values that work.device.part chooses are
                                 * cached (ops.sift); rows read rows (pass_list_rows) */
};
/* *pass = a pass without rows yet. kv NULL: no cache. */
void pass_begin(struct pass *pass, const struct network *n, const struct kv *kv,
                const struct work *work);
/* max_slots for sequences that read up to n slots. It is rounded up in steps, so that several
 * passes with growing lists share one record. */
size_t pass_slots(const struct work *work, size_t n);
/* Without a cache the keys of a sequence are its own rows: lists the first T rows in work.host,
 * whose pos is filled. The list of a sequence starts at its first row. */
void pass_list_rows(struct work *work, size_t T);
/* Sends work.host. */
void pass_write(const struct network *n, struct work *work);
/* work.context[rows, D] = products of the outputs of `fed` layers of another network, for a drafter
 * (config.taps, work.size.fed): of rows feature[row, 0..fed) of from[.., D]. With config.chains
 * these are the states of the rows of the next pass. Calls operations only. */
void pass_fuse(const struct network *n, const struct work *work, const act *from, size_t rows);
/* pass_fuse(), then caches these rows as context of a drafter that fills masks. A row is no token.
 * It has position work.device.rows.pos[row], and its keys and values go to slot
 * work.device.rows.slot[row], in every layer. Calls operations only. */
void pass_context(const struct network *n, const struct kv *kv, const struct work *work,
                  const act *from, size_t rows);
/* Calls operations only. */
void pass_run(const struct network *n, const struct kv *kv, const struct work *work,
              const struct pass *pass);
