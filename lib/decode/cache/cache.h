/* cache.h - the policies of --cache: which rows of a canvas a pass computes, and which keys and
 * values it reads. One policy = one file here, one row in lib/setting/words.h, and one row there
 * for each of its parameters.
 *
 * The host describes passes; several consecutive passes may run from one description. A policy is
 * asked at each description, for each canvas separately, and says how many passes its answer
 * serves. Between descriptions the canvas stays in its block (per_block) or may go on to the
 * next. */
#pragma once

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
    const int32_t *cached;             /* [canvas.len] the id from which the kept keys and values
                                        * of a position were computed; -1: none. If a description
                                        * served several passes, the id at its start */
    int32_t mask;                      /* the mask id */
    int32_t begin, end;
    int32_t mask_block;                /* block length of a block-causal mask, else 0 */
    int32_t offset;                    /* position p is in block (p + offset) / mask_block */
    int32_t joined;                    /* the first `joined` positions count as one block, that of
                                        * position 0 */
    int seeds;                         /* 1: the pass asks about the first slot of its block only,
                                        * and no row of the block is needed */
    int forward;                       /* 1: a row sees the keys up to its own position. Keys
                                        * open .. open_end - 1 count as at `open`, so a row of that
                                        * block sees the whole block; open_end 0: no such block */
    int32_t open, open_end;
    struct cache_params params;
};
/* The next passes of a canvas. Positions count from the first id of the prompt. */
struct cache_part {
    int32_t *row; /* [n_rows] computed positions, ascending; room for canvas.len */
    size_t n_rows;
    int32_t *key; /* [n_keys] positions whose keys and values are read, ascending; those of computed
                   * positions are new. Ignored when nothing is kept: then each row reads the
                   * keys and values of the rows of this pass */
    size_t n_keys;
    size_t passes; /* most passes that this description serves; SIZE_MAX: all passes of the block or
                    * of the canvas */
    /* Zero unless the policy sets them: */
    size_t first, n; /* row[first .. first + n - 1] are set apart (kernels/reuse.h): they are
                      * always among the `take` rows, but never with `sifts` */
    size_t take;     /* rows that layers after the first compute; 0: all. With `sifts`: rows whose
                      * keys and values are kept, in slots 0 .. take - 1 of the canvas */
    int sifts;       /* 1: each row reads the keys and values of the rows of this pass, and a
                      * part of these keys and values is kept */
    int32_t shift;   /* position p has slot p + shift of the canvas; if not 0, key[] are slots */
};
struct cache_policy {
    const char *name;
    int kept;      /* 1: each position has a slot that keeps its keys and values */
    int per_block; /* 1: a description serves one block */
    int causal;    /* 1: for block-causal masks only */
    int fleeting;  /* 1: the rows of a pass depend on the commits, so passes rarely repeat */
    void (*describe)(const struct cache_view *view, struct cache_part *part);
    int outputs;   /* 1: outputs are kept, and passes may compute chosen rows */
    /* Slots of the cache for a canvas; NULL: one per position. A policy with this function may
     * sift. In a pass either all canvases sift or none. */
    size_t (*slots)(const struct cache_params *parameters, size_t len, size_t block_length);
};
extern const struct cache_policy *const cache_policies[]; /* [CACHE_COUNT] */

#define CACHE_DECLARATION(ENUM, name, traits) extern const struct cache_policy cache_##name;
CACHE_POLICIES(CACHE_DECLARATION)
#undef CACHE_DECLARATION

/* *extent = the work of a canvas in a pass that `part` describes. */
void cache_extent(const struct cache_policy *policy, const struct cache_part *part,
                  const struct cache_view *view, struct extent *extent);

/* ---- helpers of policies ---- */

/* list = the positions first .. end - 1. Returns their number. */
size_t cache_list(int32_t *list, int32_t first, int32_t end);
/* Returns share * n, rounded up; at most n. */
size_t cache_share(double share, size_t n);
/* Sets the rows of *part to positions first .. end - 1, and the keys to the whole canvas. */
void cache_span(const struct cache_view *view, struct cache_part *part, int32_t first, int32_t end);
/* Returns 1 if the next pass computes the whole canvas: it is one of the first `whole` passes of
 * its block, or due by params.refresh. *passes = the number of consecutive passes of the same
 * kind. */
int cache_refreshes(const struct cache_view *view, int32_t whole, size_t *passes);
/* Returns the position that key p counts as under a block-causal mask: see open and joined. */
int32_t cache_place(const struct cache_view *view, int32_t p);
/* 1: the kept keys and values of position p were not computed from its current token. */
int cache_stale(const struct cache_view *view, int32_t p);
