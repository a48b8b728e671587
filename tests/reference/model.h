/* model.h - a LLaMA-, LLaDA- or Qwen-type network in double precision, independent of the engine.
 *
 * Nothing here includes or resembles lib/ or kernels/: plain loops over whole sequences, every
 * number a double, no cache. It is slow and for tiny checkpoints only; the engine is compared with
 * it. Errors end the program (exit 70), because only tests run it. */
#pragma once

#include <stddef.h>

struct layer {
    double *attn_norm, *q, *k, *v, *o, *ffn_norm, *gate, *up, *down;
    double *q_bias, *k_bias, *v_bias; /* qwen2, else NULL */
    double *q_norm, *k_norm;          /* qwen3, else NULL */
    int unrotated;                    /* smollm3 */
    double *router;                   /* [experts][width] of a mixture, else NULL; gate, up and down
                                       * then have all experts, one after another */
    double *shared[3];                /* gate, up, down of the expert that all rows use, or NULL */
    double *bias;                     /* [experts] for a router in groups, else NULL */
};

struct model {
    /* The keys that a row sees. SEES_BLOCKS: up to the end of its block. SEES_OPEN: rows from
     * `open` on see all keys, earlier rows the keys up to their own. */
    enum { SEES_BEFORE, SEES_ALL, SEES_BLOCKS, SEES_OPEN } sees;
    size_t open;
    size_t block, offset; /* SEES_BLOCKS: position t is in block (t + offset) / block, */
    size_t joined;        /* but the first `joined` positions are one block */
    int qwen;             /* 2, 3: the block of this version of Qwen; 0: LLaMA's block */
    size_t window;        /* mistral: number of keys that a row sees; 0: all before it */
    size_t experts, used; /* experts of a mixture, and those that a row uses; 0: no mixture */
    size_t shared;        /* hidden values of an expert that all rows use; 0: none */
    size_t groups, groups_used; /* of experts, with sigmoids and a bias; 0: softmax of all */
    size_t dense, dense_ffn; /* first layers without experts, and their hidden values */
    size_t rotated;       /* first values of a head that are rotated */
    double scale;         /* factor of the sum of experts in groups */
    double *map;          /* [n][n], cleared: model_logits adds how much row t attends to s, the
                           * mean of all heads and the last four layers; NULL: not wanted */
    double *heard;        /* [layers][n][width]: model_logits notes the stream after each layer;
                           * NULL: not wanted */
    size_t taps, tap[16]; /* drafter: the layers of another model that it reads; it then has no
                           * embed and no head, unless masks is 0 */
    size_t masks;         /* drafter: rows that it fills at once; 0: it guesses one id after
                           * another, has its own head and may have an embedding */
    size_t answers;       /* drafter with masks 0: number of rows of its head, */
    double *more;         /* and [answers] numbers to add to a row to get its id; NULL: row = id */
    double *fuse, *fuse_norm; /* drafter: [width][taps width], [width] */
    double *router_gap;   /* smallest lead of a chosen group or expert over the next; NULL: not
                           * noted */
    size_t width, layers, heads, kv_heads, head_dim, ffn, vocab;
    double eps;
    double *frequency; /* [head_dim / 2], radians a position */
    double turned;     /* factor of rotated values (YaRN's attention factor) */
    double *embed, *head, *norm;
    struct layer *layer;
    long mask, eos; /* from config.json; -1: not there (eos: the first of a list) */
};

/* Reads a folder in the Hugging Face layout: config.json and *.safetensors (F32, F16, BF16). */
void model_load(struct model *m, const char *folder);

/* Computes logits[n][vocab] of ids[n], a sequence that starts at position 0. */
void model_logits(const struct model *m, const long *ids, size_t n, double *logits);

/* Computes logits[rows][vocab] of a DFlash drafter for ids[rows] after a text of n ids. heard: the
 * streams that `target` noted for the text (n rows). The rows see the text and each other. */
void model_draft(const struct model *m, const struct model *target, const double *heard, size_t n,
                 const long *ids, size_t rows, double *logits);

/* Computes guess[most] of an EAGLE-3 drafter, which guesses one id after another, after ids[n + 1].
 * heard: as in model_draft(). Returns the smallest lead of these answers over the next best. */
double model_chain(const struct model *m, const struct model *target, const double *heard, size_t n,
                   const long *ids, size_t most, long *guess);

void model_free(struct model *m);

/* Returns -log softmax(logits)[id] over n entries. */
double model_nll(const double *logits, size_t n, size_t id);

/* Returns n zeroed members of this size; calls fail() if there is no memory. */
void *room(size_t n, size_t size);

/* Prints "reference: ..." on standard error and ends with 70. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
