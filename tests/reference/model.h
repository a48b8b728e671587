/* model.h - a LLaMA-, LLaDA- or Qwen-type network in double precision, written apart from the
 * engine.
 *
 * Nothing here includes or resembles lib/ or kernels/: plain loops over whole sequences, every
 * number a double, no cache. It is slow and for tiny checkpoints only; it is what the engine is
 * compared with. Errors end the program (exit 70), since only tests run it. */
#pragma once

#include <stddef.h>

struct layer {
    double *attn_norm, *q, *k, *v, *o, *ffn_norm, *gate, *up, *down;
    double *q_bias, *k_bias, *v_bias; /* qwen2, else NULL */
    double *q_norm, *k_norm;          /* qwen3, else NULL */
    int unrotated;                    /* smollm3 */
    double *router;                   /* [experts][width] of a mixture, else NULL; gate, up and down
                                       * are then those of all experts, one after another */
    double *shared[3];                /* gate, up, down of the expert that all rows use, or NULL */
    double *bias;                     /* [experts] of a router in groups, else NULL */
};

struct model {
    /* SEES_BLOCKS: up to the end of its block. SEES_OPEN: from row `open` on all, before it up to
     * its own. */
    enum { SEES_BEFORE, SEES_ALL, SEES_BLOCKS, SEES_OPEN } sees;
    size_t open;
    size_t block, offset; /* of SEES_BLOCKS: position t is in block (t + offset) / block, */
    size_t joined;        /* but the first `joined` are one */
    int qwen;             /* 2, 3: the block of that version; 0: LLaMA's */
    size_t window;        /* mistral: keys that a row sees; 0: all before it */
    size_t experts, used; /* of a mixture; 0: none */
    size_t shared;        /* hidden values of an expert that all rows use; 0: none */
    size_t groups, groups_used; /* of experts, with sigmoids and a bias; 0: softmax of all */
    size_t dense, dense_ffn; /* first layers without experts, and their hidden values */
    size_t rotated;       /* first values of a head that are rotated */
    double scale;         /* of what experts in groups give */
    double *map;          /* [n][n], cleared: model_logits adds how much row t attends to s, the
                           * mean of all heads and the last four layers; NULL: not wanted */
    double *heard;        /* [layers][n][width]: model_logits notes the stream behind each layer;
                           * NULL: not wanted */
    size_t taps, tap[16]; /* of a drafter: layers of another model that it reads; then no embed and
                           * no head, unless masks is 0 */
    size_t masks;         /* of a drafter: rows that it fills at once; 0: it guesses one id after
                           * another, has a head of its own and may have an embedding */
    size_t answers;       /* of such a drafter: rows of its head, */
    double *more;         /* [answers] and what to add to a row to get its id; NULL: nothing */
    double *fuse, *fuse_norm; /* [width][taps width], [width] of a drafter */
    double *router_gap;   /* least lead of a chosen group or expert of groups over the next; NULL:
                           * not noted */
    size_t width, layers, heads, kv_heads, head_dim, ffn, vocab;
    double eps;
    double *frequency; /* [head_dim / 2], radians a position */
    double turned;     /* a rotated value is times it */
    double *embed, *head, *norm;
    struct layer *layer;
    long mask, eos; /* from config.json; -1: not there (eos: the first of a list) */
};

/* Reads a folder in the Hugging Face layout: config.json and *.safetensors (F32, F16, BF16). */
void model_load(struct model *m, const char *folder);

/* logits[n][vocab] of ids[n], the sequence starting at position 0. */
void model_logits(const struct model *m, const long *ids, size_t n, double *logits);

/* logits[rows][vocab] of a drafter for ids[rows] behind a text of n ids, of which `heard` are the
 * streams in `target` (n rows noted). The rows see the text and each other. */
void model_draft(const struct model *m, const struct model *target, const double *heard, size_t n,
                 const long *ids, size_t rows, double *logits);

/* guess[most] of a drafter that guesses one id after another, behind ids[n + 1]; `heard` as above.
 * Returns by how much the closest of these answers leads. */
double model_chain(const struct model *m, const struct model *target, const double *heard, size_t n,
                   const long *ids, size_t most, long *guess);

void model_free(struct model *m);

/* -log softmax(logits)[id] over n entries. */
double model_nll(const double *logits, size_t n, size_t id);

/* n zeroed members of that size; fail() if there is no memory. */
void *room(size_t n, size_t size);

/* Prints "reference: ..." on standard error and ends with 70. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
