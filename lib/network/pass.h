/* pass.h - runs rows through a network.
 *
 * A pass runs any set of rows. Prefill, decode, denoising steps, block caches and batches of
 * unequal prompts are choices of rows, slots and mask. A pass is described on the host (work.host
 * and struct pass), sent to the back end by pass_write(), and enqueued by pass_run(). Between two
 * passes the back end itself may rewrite the index arrays (kernels/advance.h). forward() does these
 * steps in one call. */
#pragma once

#include "lib/network/kv.h"
#include "lib/network/work.h"

/* Everything besides the index arrays that determines the operations of a pass: the key of ops.run.
 * Keys are compared as bytes, so pass_begin() zeroes all bytes before members are set. */
struct pass {
    uint64_t network;           /* network.identity */
    const void *block, *k, *v, *attn, *outside; /* addresses of work and cache */
    struct work_size size;
    size_t kv_slots;
    size_t T, R, n_seqs;
    size_t max_rows, max_slots; /* limits for one sequence; max_slots comes from pass_slots() */
    size_t chosen;              /* rows that layers after the first compute, listed in
                                 * work.device.part and some (ops.choose); 0: all. Needs stored
                                 * outputs */
    size_t max_chosen;          /* limit of chosen rows for one sequence */
    size_t mask_block;
    struct head_query query;    /* with the arrays of work.device */
    enum mask mask;
    enum dtype kv_dtype;
    int guided, logits;         /* guided 1: rows.uncond lists the unconditional row of each wanted
                                 * row. (With query.divergence rows.uncond lists the answers of the
                                 * last pass to compare with.) logits 1: the head writes logits */
    int links;                  /* 1: the last layers write work.map and work.mean. There must be no
                                 * cache, and every row must see its whole sequence */
    int sifts;                  /* 1: only the keys and values that work.device.part chooses are
                                 * cached (ops.sift); keys of a row are rows (pass_list_rows) */
};
/* *pass = a pass without rows. kv NULL: no cache. */
void pass_begin(struct pass *pass, const struct network *n, const struct kv *kv,
                const struct work *work);
/* The value of max_slots for sequences that read up to n slots: n, rounded up in steps, so that
 * passes with growing lists of slots share one recorded pass. */
size_t pass_slots(const struct work *work, size_t n);
/* For a pass without a cache, where the keys of a sequence are its own rows: lists the first T rows
 * in work.host.rows.slots, with their positions. work.host.rows.pos must be filled. The list of a
 * sequence starts at the number of its first row. */
void pass_list_rows(struct work *work, size_t T);
/* Sends work.host to the back end. */
void pass_write(const struct network *n, struct work *work);
/* The next three functions call only operations of the back end, so ops.run may record them. */

/* For a drafter (config.taps), which reads outputs of `fed` layers of another network
 * (work.size.fed): work.context[rows, D] = F [h_1; ..; h_fed] with F = n->fuse. h_i of a row is the
 * row work.device.feature[row, i] of from[.., D]. With config.chains the results are the states of
 * the rows of the next pass. */
void pass_fuse(const struct network *n, const struct work *work, const act *from, size_t rows);
/* pass_fuse(), then caches the results as context of a drafter that fills masks. Such a row of
 * context is no token. The position of a row is work.device.rows.pos[row]; key and value of every
 * layer go to slot work.device.rows.slot[row]. */
void pass_context(const struct network *n, const struct kv *kv, const struct work *work,
                  const act *from, size_t rows);
/* Runs all layers and, if rows are wanted, the head. */
void pass_run(const struct network *n, const struct kv *kv, const struct work *work,
              const struct pass *pass);
