/* cache.h - which rows of a canvas a pass computes, and which keys and values it reads: the
 * policies of --cache. One policy = one file here, one row in lib/setting/words.h, and one row
 * there for each of its parameters.
 *
 * The host describes passes; several in a row may run from one description. A policy is asked at
 * each description, for each canvas by itself, and says how many passes what it describes serves.
 * Between descriptions the canvas stays in its block (per_block) or may walk on.
 */
#ifndef DECODE_CACHE_CACHE_H
#define DECODE_CACHE_CACHE_H

#include "kernels/advance.h"
#include "lib/network/cost.h"
#include "lib/setting/words.h"

#define CACHE_INT int32_t /* the types of parameters */
#define CACHE_REAL double
#define CACHE_MEMBER(name, type, policies, least, most, standard, unit, meaning) CACHE_##type name;
struct cache_params {
    CACHE_PARAMETERS(CACHE_MEMBER)
};
#undef CACHE_MEMBER
extern const struct cache_params cache_usual; /* the defaults */

/* A canvas at the time of a description. Its block is [begin, end). */
struct cache_view {
    const struct canvas_state *canvas; /* step 0: no pass of this block has been made */
    const int32_t *token;              /* [canvas.len] */
    const int32_t *cached;             /* [canvas.len] the id of which the kept keys and values of a
                                        * position were made; -1: none. Where a description served
                                        * several passes, the id that it began with */
    int32_t mask;                      /* the mask id */
    int32_t begin, end;
    int32_t mask_block;                /* of block-causal masks, else 0 */
    struct cache_params params;
};
/* What its next passes are. Positions count from the first id of the prompt. */
struct cache_part {
    int32_t *row; /* [n_rows] positions that are computed, ascending; room for canvas.len */
    size_t n_rows;
    int32_t *key; /* [n_keys] positions whose keys and values are read, ascending, the computed ones
                   * among them as they are now; ignored when nothing is kept: then the rows read
                   * rows */
    size_t n_keys;
    size_t passes; /* that this serves at most; SIZE_MAX: all of the block, or of the canvas */
    /* Zero unless the policy says otherwise: */
    size_t first, n; /* row[first .. first + n - 1] are apart (kernels/reuse.h) */
    size_t take;     /* rows that layers but the first compute; 0: all. With `sifts`, rows whose
                      * keys and values are kept, in slots 0 .. take - 1 of the canvas */
    int sifts;       /* 1: rows read rows, and of their keys and values a part is kept */
    int32_t shift;   /* position p has slot p + shift of the canvas; other than 0: and key[] are
                      * slots */
};
struct cache_policy {
    const char *name;
    int kept;      /* 1: each position has a slot where its keys and values stay */
    int per_block; /* 1: what is described serves one block */
    int causal;    /* 1: for block-causal masks only */
    int fleeting;  /* 1: what a pass computes hangs on what was committed, and hardly comes twice */
    void (*describe)(const struct cache_view *v, struct cache_part *part);
    int outputs;   /* 1: outputs are kept, and passes may compute chosen rows */
    /* Slots of the cache for a canvas; NULL: one for each position. With it passes may sift, and
     * those that do have no others beside them. */
    size_t (*slots)(const struct cache_params *p, size_t len, size_t block_length);
};
extern const struct cache_policy *const cache_policies[]; /* [CACHE_COUNT] */

#define CACHE_DECLARATION(ENUM, name, traits) extern const struct cache_policy cache_##name;
CACHE_POLICIES(CACHE_DECLARATION)
#undef CACHE_DECLARATION

/* What a canvas has in such a pass; mask_block as in struct cache_view. */
void cache_extent(const struct cache_policy *p, const struct cache_part *part, int32_t mask_block,
                  struct extent *x);

/* ---- for policies ---- */

/* Positions first .. end - 1 into a list. Returns how many. */
size_t cache_list(int32_t *list, int32_t first, int32_t end);
/* The share of n, rounded up. */
size_t cache_share(double share, size_t n);
/* Rows first .. end - 1 of the canvas, which read all of it. */
void cache_span(const struct cache_view *v, struct cache_part *part, int32_t first, int32_t end);
/* 1: the next pass is one of the first `whole` of its block, or one of those that params.refresh
 * adds: it computes the whole canvas. *passes = how many of that kind come in a row. */
int cache_refreshes(const struct cache_view *v, int32_t whole, size_t *passes);
/* 1: what is kept of position p was not made of its token. */
int cache_stale(const struct cache_view *v, int32_t p);

#endif
