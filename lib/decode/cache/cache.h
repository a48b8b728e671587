/* cache.h - which rows of a canvas a pass computes, and which keys and values it reads: the
 * policies of --cache. One policy = one file here, and one row.
 *
 * The host describes passes; several in a row may run from one description. A policy is asked at
 * each description, for each live canvas by itself, and says how many passes what it describes
 * serves. Between descriptions the canvas stays in its block (per_block) or may walk on.
 */
#ifndef DECODE_CACHE_CACHE_H
#define DECODE_CACHE_CACHE_H

#include "kernels/advance.h"

/* POLICY(enumerator, name) */
#define CACHE_POLICIES(POLICY) \
    POLICY(NONE, none)         \
    POLICY(PREFIX, prefix)     \
    POLICY(DUAL, dual)

#define CACHE_ENUMERATOR(ENUM, name) CACHE_##ENUM,
enum caching { CACHE_POLICIES(CACHE_ENUMERATOR) CACHE_COUNT };
#undef CACHE_ENUMERATOR

/* A canvas at the time of a description. */
struct cache_view {
    const struct canvas_state *canvas; /* step 0: no pass of this block has been made */
    const int32_t *token;              /* [canvas.len] */
    int32_t mask, block_length;
};
/* What its next passes are. Positions count from the first id of the prompt. */
struct cache_part {
    int32_t *row; /* [n_rows] positions that are computed, ascending; room for canvas.len */
    size_t n_rows;
    int32_t *key; /* [n_keys] positions whose keys and values are read, the computed ones among
                   * them as they are now; ignored when nothing is kept: then the rows read rows */
    size_t n_keys;
    size_t passes; /* that this serves at most; SIZE_MAX: all of the block, or of the canvas */
};
struct cache_policy {
    const char *name;
    int kept;       /* 1: each position has a slot where its keys and values stay */
    int per_block;  /* 1: what is described serves one block */
    enum mask mask;
    void (*describe)(const struct cache_view *v, struct cache_part *part);
};
extern const struct cache_policy *const cache_policies[]; /* [CACHE_COUNT] */

#define CACHE_DECLARATION(ENUM, name) extern const struct cache_policy cache_##name;
CACHE_POLICIES(CACHE_DECLARATION)
#undef CACHE_DECLARATION

/* Positions first .. end - 1 into a list. Returns how many. */
size_t cache_list(int32_t *list, int32_t first, int32_t end);

#endif
