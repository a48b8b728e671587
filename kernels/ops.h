/* ops.h - the arithmetic that a network needs, as one table that each back end fills.
 *
 * ref   kernels/ref/   plain loops, double sums: the definition of truth
 * cpu   kernels/cpu/   vectors and threads; compiled once per instruction set
 * cuda  kernels/cuda/  NVIDIA GPUs; a shared object, loaded when a device is present
 *
 * Shape letters, used everywhere: B batch, T rows (tokens of all sequences together), D width, H
 * query heads, K key/value heads, E head dim, F ffn, V vocabulary, L layers, R wanted rows, S cache
 * slots. Arrays are row-major: the last letter is contiguous.
 *
 * Memory. Every pointer that an operation gets, index arrays included, is memory of the back end
 * (`alloc`). A structure that is passed by address (struct product, struct attn...) is host memory.
 * Code above kernels/ moves data to the back end with `write` and back with `read` or `fetch`.
 * Operations take effect in the order of the calls. A device may run them after the call returns;
 * only `read` and `event_wait` wait for it.
 *
 * Activations (`act`) have the format backend.act. On a host this format is F32. On cuda it is F32
 * if the matrices are F32, F16 or BF16_F32, else BF16. With BF16 every operation computes in fp32
 * and rounds its outputs to bf16, as bf16 models do.
 *
 * Precision. The meaning of a product depends only on the dtype of its matrix, on every back end:
 *
 *   F32       y = sum_k x_k w_k
 *   BF16      bf16 weights, x rounded to bf16 (to nearest, ties to even), as bf16 models compute
 *   BF16_F32  bf16 weights, x not rounded. An infinite weight gives NaN or infinity (tiles split x
 *             into 3 parts)
 *   F16       fp16 weights, x rounded to fp16. |x| >= 65520 becomes infinity. An output is then
 *             infinity; it is NaN if that infinity is multiplied by 0 or meets its opposite
 *   INT8      LLM.int8() (kernels/quant.h); INT8_VECTOR: the same without outliers
 *   NF4       4-bit NormalFloat with double quantization, x rounded to bf16 (kernels/quant.h);
 *             NF4_F32: without double quantization; FP4: as NF4_F32 with other levels
 *   Q4        blocks of 4-bit integers, multiplied by x coded as int8 (kernels/quant.h)
 *   FP8       e4m3 weights with one scale for each row, x rounded to bf16 (kernels/quant.h)
 *
 * Sums are fp32 (ref: double; INT8 and blocks of Q4: exact integers). On ref and cpu the order of a
 * sum depends only on K, so a result has the same bits at every number of threads and of rows. On
 * cuda the order also depends on the kernel, which is selected by T and the shape. So a repeated
 * pass gives the same bits, but a pass with another T may not. Softmax sums and the log-sum-exp of
 * the head add short groups in fp32 and then the groups in double. Ties go to the lowest index. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/dtype.h"
#include "lib/base/err.h"
#include "lib/base/linkage.h"
#include "lib/base/pool.h"

C_BEGIN

enum memory_kind { MEMORY_WEIGHTS, MEMORY_KV, MEMORY_ACTIVATIONS, MEMORY_KINDS };
typedef void act; /* activations, in the format backend.act */

/* Bytes in use now, and the peaks since the last reset. The names have the meaning that they have
 * in torch: requested = asked for, allocated = handed out after rounding, reserved = obtained from
 * the system. On ref and cpu each block comes directly from the system with a header, so reserved =
 * allocated + 64, rounded up to pages. On cuda blocks are cut from segments that stay reserved
 * (kernels/cuda/device/segments.h). requested <= allocated <= reserved. */
struct memory {
    size_t requested, allocated, reserved;
    size_t requested_peak, allocated_peak, reserved_peak;
    size_t calls;              /* blocks handed out since the last reset */
    size_t kind[MEMORY_KINDS]; /* allocated bytes by purpose */
    size_t cap;                /* --mem-cap: alloc returns NULL beyond it; 0: no cap */
    int64_t arrive_ns;         /* ns that the host waited in ops.arrive since the last reset */
    int direct;                /* cuda only. 1: each block comes from the system and goes back to it
                                * when it is freed, as on a host. 0: freed blocks are kept for
                                * later */
};

/* A weight matrix of y = x W^T, W [rows, cols] as in the checkpoint. `data` has the packed layout
 * of the back end that made it; no other code reads it. */
struct mat {
    void *data;
    enum dtype dtype;
    size_t rows, cols; /* outputs N, inputs K */
};

/* The values from which a matrix is made. floats() always gives these values as rows of floats. One
 * of f32, bf16, q and draw may also give them as they are stored; a back end that reads this member
 * saves a conversion. */
struct mat_source {
    size_t rows, cols;
    /* out[count, cols] = rows first .. first + count - 1. Several threads call floats() at once. */
    void (*floats)(const struct mat_source *source, size_t first, size_t count, float *out);
    const void *ctx;       /* data for floats() */
    const float *f32;      /* [rows, cols], or NULL */
    const uint16_t *bf16;  /* [rows, cols], or NULL */
    const struct codes *q; /* quantized values (kernels/quant.h), or NULL */
    const struct draw *draw; /* random values (kernels/draw.h), or NULL */
    int *odd; /* *odd is set to 1 if a value is infinite or NaN; NULL: values are not checked */
};
/* The source of a matrix in memory: w[rows, cols]. */
struct mat_source mat_floats(const float *w, size_t rows, size_t cols);

/* The rows that a product reads. Without a gain: x[T, K]. With a gain: rmsnorm(x)[t,k] =
 * x[t,k] / sqrt(mean_k x[t,k]^2 + eps) * gain[k]; the quotient is rounded to `act` before the
 * product with gain[k]. */
struct input {
    const act *x;
    const float *gain; /* [K], or NULL */
    double eps;
};
/* One matrix of a product, and its outputs y[T, N]. */
struct product {
    const struct mat *w;
    act *y;
    int add; /* 1: y += , 0: y = */
};
enum { PRODUCTS_MAX = 3 };

/* Returns T rounded up so that there are four results between two powers of two. A back end chooses
 * its algorithms once for all T with one result. */
static inline size_t rows_step(size_t T)
{
    size_t step = 1;
    while (step * 8 < T)
        step *= 2;
    return (T + step - 1) / step * step;
}

struct ops;
struct mixing_ops;
struct train_ops;
struct backend {
    const struct ops *ops;
    enum dtype act;      /* F32 or BF16; network_load sets it by act_dtype() before any work */
    struct pool *pool;   /* threads of the host */
    struct memory memory;
    int unrecorded;      /* 1: run() records no step; each step runs as it does the first time */
    int only_prepared;   /* 1: run() records no new step; it replays what prepare() recorded */
    int tf32;            /* 0: products with F32 matrices are fp32 everywhere. 1: on cuda, with many
                          * rows, the vendor's library may round both factors to 10 bits of mantissa
                          * (tf32) */
    void *device;        /* private data of the back end */
    char name[64];       /* name of the device: "NVIDIA H200"; empty for the host */
    char address[16];    /* PCI address of the device: "0000:18:00.0"; empty for the host */
    char level[16];      /* instruction set in use: ops.level, on cuda "sm_90" */
    char library[32];    /* vendor's library for products of many rows: "cuBLASLt 130100". Empty:
                          * the back end computes them by its own kernels */
    uint64_t library_choices; /* digest of all shapes and the library's algorithm for each shape, in
                               * any order. 0: no algorithm ran */
    struct err_witness **witness; /* err_witness() of the program; a shared object with its own copy
                                   * of err.c needs it */
};

/* Keys and values of one layer, in slots of K*E values each. */
struct cache {
    void *k, *v;      /* [S, K*E] of dtype; keys are rotated */
    enum dtype dtype; /* F32 or BF16 */
};

/* Queries, keys and values of the rows of a pass:
 *     q = rope(n(x Wq^T + bq)), k = rope(n(x Wk^T + bk)), v = x Wv^T + bv
 * n is the rmsnorm of struct input over the E values of each head; without head_gain n(y) = y.
 * Products, sums with a bias and the input of a rotation are rounded to `act`. */
struct qkv {
    struct input in;               /* [T, D] */
    const struct mat *wq, *wk, *wv;
    const float *bias[3];          /* biases of q, k, v: [H*E], [K*E], [K*E]; or all three NULL */
    const float *head_gain[2];     /* gains of q, k: [E]; or both NULL. The norm has the eps of
                                    * `in` */
    const float *table;            /* [T, E] of rope_table */
    act *q;                        /* [T, H*E] */
    struct cache to;               /* the key and value of row t go to slot[t] */
    const int32_t *slot;           /* [T]; NULL: slot t */
    size_t heads, kv_heads, head_dim;
};

enum mask { MASK_CAUSAL, MASK_FULL, MASK_BLOCK_CAUSAL };

/* The rows of one sequence, and the part of attn.slots[] with the keys that these rows may read. */
struct attn_seq {
    int32_t row_begin, rows;
    int32_t slot_begin, n_slots;
};
struct attn {
    const act *q;       /* [T, H*E], rotated */
    act *y;             /* [T, H*E]; must not overlap q */
    struct cache kv;
    int half;           /* 1: q, k, v and probabilities may be rounded to bf16 */
    const int32_t *pos; /* [T] absolute positions of the rows */
    const struct attn_seq *seqs;     /* [n_seqs]; the rows of all sequences are 0..T-1 in ascending
                                      * order */
    const int32_t *slots, *slot_pos; /* cache slots in any order; position of each slot's token */
    size_t n_seqs, T;
    size_t max_rows, max_slots;      /* limits of rows and slots of one sequence */
    size_t heads, kv_heads, head_dim;
    enum mask mask;
    size_t mask_block; /* MASK_BLOCK_CAUSAL: a row sees keys whose pos/block <= its own */
    size_t window;     /* > 0, MASK_CAUSAL: a row sees only the last `window` positions up to its
                        * own */
    size_t dense;      /* 0: scores exist one tile at a time. N: `work` holds the scores of N heads
                        * for all rows and keys at once; this measures how much memory tiles save.
                        * ref always holds one row of scores */
};

/* The most likely ids of a row and their probabilities, best first; among equals the lowest id
 * first. If the vocabulary has fewer ids, the other entries are -1, with probability 0. */
enum { HEAD_TOPS = 8 };
struct head_top {
    int32_t id[HEAD_TOPS];
    float prob[HEAD_TOPS];
};

/* How the head chooses a token, and which other values it computes. The struct has no padding
 * between its members. */
struct head_query {
    double temperature;   /* 0: argmax. > 0: argmax of logit + T * Gumbel noise (gumbel_score) */
    size_t gumbel;        /* enum gumbel (kernels/gumbel.h); 0: noise in double */
    uint64_t seed;        /* noise of (row r, id v) = rng_at(seed, keys[r], v) */
    const uint64_t *keys; /* [R], may be NULL at temperature 0 */
    double cfg_scale;     /* > 0: logits = u + (1 + cfg_scale) (c - u): c from x, u from xu */
    size_t top_k;         /* > 0: draws among the top_k most likely ids and ids that tie with the
                           * last of them (sample.h) */
    double top_p;         /* between 0 and 1: draws among the most likely ids that together hold
                           * this share of the probability */
    size_t top_p_of_all;  /* 1: top_p is a share of the probability of all ids. 0: top_p is a share
                           * of the probability of the ids that top-k leaves */
    size_t drawn;         /* 0: probabilities in head_row are those of the model (temperature 1, no
                           * filter). 1: they are those of the distribution that the token is drawn
                           * from; at temperature 0 this is the softmax of the ids that top-k and
                           * top-p leave */
    size_t divergence;    /* 1: xu is no guidance: head_row.divergence compares softmax(x) with
                           * softmax(xu) */
    const int32_t *ban;   /* ids whose logits become -inf first */
    size_t n_ban;
    const int32_t *quiet; /* ids that may be chosen but are left out of the softmax: their
                           * probability is 0 */
    size_t n_quiet;
    const int32_t *target; /* [R] ids whose log-probability is wanted, or NULL */
    const int32_t *ids;    /* [V] ascending: the id of each row of W, if W has rows for some ids
                            * only. The noise is that of the id. With `ids` only the members above
                            * cfg_scale may be set. NULL: row v is id v */
    struct head_top *tops; /* [R] output: the most likely ids of each row by softmax(logits); needs
                            * `logits`. NULL: not wanted */
    size_t dense;         /* 0: logits exist one chunk of the vocabulary at a time. 1: `work` holds
                           * the logits of all rows and ids at once; this measures how much memory
                           * chunks save. ref always holds one row of logits */
};
struct head_row {
    int32_t id;        /* the chosen token */
    int32_t runner_up; /* second best logit without noise; -1 when V = 1 */
    float prob;        /* probability of id in the distribution that head_query.drawn selects */
    float runner_up_prob;
    float gap;              /* best minus second best logit, without noise */
    float entropy;          /* entropy of the softmax, nats */
    double log_prob;        /* log(prob) in double */
    double best_log_prob;   /* log of the largest probability */
    double target_log_prob; /* log softmax(logits)[target]; 0 without targets */
    int32_t bad;            /* 1: a logit was not finite before the bans were applied, or every id
                             * was banned */
    float divergence;       /* KL(softmax(x) || softmax(xu)), nats, if head_query.divergence;
                             * else 0 */
};

/* The index arrays of a pass. `advance_*` rewrites them in place between two passes. */
struct rows {
    int32_t *token, *pos, *slot;  /* [T] */
    struct attn_seq *seqs;        /* [n_seqs] */
    int32_t *slots, *slot_pos;    /* the slot lists of all sequences */
    int32_t *wanted, *uncond;     /* [R] rows whose answer is wanted; for each, its unconditional
                                   * row */
    uint64_t *key;                /* [R] keys of the noise */
};

struct store;       /* private to the back end */
enum { STORE_GRAIN = 4096, STORE_DEPTH = 4 };
/* Rows of two arrays in a block of a store. One array begins at byte 0 of the block, the other at
 * byte `second`. */
struct store_rows {
    const int32_t *slot;     /* [T] indices of the rows, memory of the back end; NULL: rows
                              * 0 .. T - 1 */
    size_t T, bytes, second; /* bytes: size of one row */
};

struct text_loop;   /* kernels/advance.h */
struct canvas_loop;
struct drift;       /* kernels/reuse.h */
struct outputs;
struct sift;
struct links;   /* kernels/links.h */
struct experts; /* kernels/experts.h */

struct ops {
    const char *name;  /* "ref", "cpu", "cuda" */
    const char *level; /* instruction set: "avx512bf16", "avx2"... (Makefile, CPU_LEVELS), "cuda" */
    int depth;         /* passes that may be in flight before the host reads results: 1 on a host */

    /* ---- memory ---- */

    /* Returns cleared memory of the back end, 64-byte aligned (cuda: 512). Returns NULL if the cap
     * or the machine allows no more. This is no error: callers record `oom`. */
    void *(*alloc)(struct backend *backend, size_t bytes, enum memory_kind kind);
    void (*free)(struct backend *backend, void *p); /* p may be NULL */
    /* Gives unused reserved memory back to the system, so that a peak after memory_reset_peak
     * counts only memory in use. Waits for the device. NULL: the back end keeps no unused
     * memory. */
    void (*trim)(struct backend *backend);
    /* *available = the bytes that alloc can still get from the system, *total = all bytes of the
     * device. */
    void (*room)(struct backend *backend, size_t *available, size_t *total);
    /* write copies from the host to the back end; `from` may be reused at once. read copies from
     * the back end to the host, and waits. */
    void (*write)(struct backend *backend, void *to, const void *from, size_t bytes);
    void (*read)(struct backend *backend, void *to, const void *from, size_t bytes);
    /* Copies within memory of the back end; `to` and `from` must not overlap. */
    void (*copy)(struct backend *backend, void *to, const void *from, size_t bytes);
    void (*clear)(struct backend *backend, void *p, size_t bytes); /* sets to 0 */
    /* Returns host memory that `fetch` can fill while the host does other work; NULL: none is
     * left. */
    void *(*mirror)(struct backend *backend, size_t bytes);
    void (*mirror_free)(struct backend *backend, void *p);
    /* Copies from the back end into a mirror without waiting. The data are complete once an event
     * that is recorded later is done. */
    void (*fetch)(struct backend *backend, void *mirror, const void *from, size_t bytes);

    /* ---- order and time ---- */

    /* Runs step(ctx). The step calls only operations. The bytes of `key` determine these operations
     * and their arguments, so a back end may record a step and replay the record when an equal key
     * comes again. */
    void (*run)(struct backend *backend, const void *key, size_t key_bytes, void (*step)(void *ctx),
                void *ctx);
    /* Does all work that a key needs only once, so that every later run() of the key costs the
     * same. It runs the step an unspecified number of times; the results have no meaning. Freeing
     * memory of the back end discards the preparation. prepare NULL: no key needs preparation. */
    void (*prepare)(struct backend *backend, const void *key, size_t key_bytes,
                    void (*step)(void *ctx), void *ctx);
    /* event_record marks the place behind all operations so far. event_wait waits until all
     * operations before the mark are done, and returns the clock_ns() at which they were done
     * (cuda: by events of the device). Callers wait for an event at most once, and never after they
     * waited for a later one. */
    int64_t (*event_record)(struct backend *backend);
    int64_t (*event_wait)(struct backend *backend, int64_t event);

    /* ---- offloading: blocks outside the memory of the back end ---- */

    /* Makes a store of `blocks` blocks of `bytes` each (a multiple of STORE_GRAIN). On a host the
     * store is an unnamed file in `folder`, on a device pinned memory of the host. The caller
     * closes it (store_close). Returns NULL with EXIT_CANNOT_CREATE (no such folder), EXIT_IO (disk
     * full), EXIT_INTERNAL (host: no memory or thread) or EXIT_FAILED_RECORDS (device: no pinned
     * host memory). */
    struct store *(*store_open)(struct backend *backend, const char *folder, size_t blocks,
                                size_t bytes, struct err *e);
    void (*store_close)(struct backend *backend, struct store *store); /* store may be NULL */
    /* Writes from[bytes], memory of the back end, into a block at byte `at` (a multiple of
     * STORE_GRAIN), and waits until it is written. Returns -1 with EXIT_IO. */
    int (*store_put)(struct backend *backend, struct store *store, size_t block, size_t at,
                     const void *from, size_t bytes, struct err *e);
    /* Begins to load a block into to[], memory of the back end that is aligned to STORE_GRAIN. The
     * load starts behind the operations so far and runs beside later operations. At most
     * STORE_DEPTH calls of stage and store_rows may be in flight. On a device each load arrives
     * before its step of ops.run ends. A store that cannot be read ends the process: exit 74. */
    void (*stage)(struct backend *backend, struct store *store, size_t block, void *to);
    /* Later operations run behind the oldest `stage` that has not arrived yet. */
    void (*arrive)(struct backend *backend, struct store *store);
    /* Writes rows of from[] into the same rows of the block. from[] is the place to which the block
     * was staged; it must not change until something is staged there again. Runs behind the
     * operations so far and before later stages. A store that cannot be written ends the process:
     * exit 74. */
    void (*store_rows)(struct backend *backend, struct store *store, size_t block, const void *from,
                       const struct store_rows *rows);

    /* ---- matrices ---- */

    /* The format of activations that goes with matrices of `dtype`. */
    enum dtype (*act_dtype)(enum dtype dtype);
    /* Returns the reason why the back end cannot make a matrix of `dtype` with `cols` columns;
     * NULL: it can. */
    const char *(*refuses)(const struct backend *backend, enum dtype dtype, size_t cols);
    /* Packs a matrix as `dtype`. Returns -1 if there is no memory. */
    int (*mat_make)(struct backend *backend, struct mat *weight, const struct mat_source *source,
                    enum dtype dtype);
    void (*mat_free)(struct backend *backend, struct mat *weight);
    /* Bytes that mat_make allocates. */
    size_t (*mat_bytes)(size_t rows, size_t cols, enum dtype dtype);

    /* ---- the pass ---- */

    /* y[t, :] = row token[t] of W, y [T, D]. */
    void (*embed)(struct backend *backend, act *y, const struct mat *weight, const int32_t *token,
                  size_t T);
    /* table[t, j] = scale cos(pos[t] * inv_freq[j]) and table[t, E/2 + j] = scale sin(the same
     * angle), for j < E/2. The angle is fp32, as in training of the models. The table is fp32 on
     * every back end. Source: Su et al. 2021 (RoFormer, arXiv 2104.09864). */
    void (*rope_table)(struct backend *backend, float *table, const int32_t *pos,
                       const float *inv_freq, float scale, size_t T, size_t E);
    /* Computes struct qkv for T rows. work: qkv_work(T, D, H, K, E, steps) bytes; steps is 1 if
     * there is a bias or a head_gain, else 0. */
    void (*qkv)(struct backend *backend, const struct qkv *a, size_t T, void *work);
    size_t (*qkv_work)(const struct backend *backend, size_t T, size_t D, size_t heads,
                       size_t kv_heads, size_t head_dim, int steps);
    /* y = softmax(q k^T / sqrt(E) + mask) v. Query head h reads key head h / (H/K). A row that sees
     * no key gives zeros. work: attention_work(...) bytes, called with this attn.dense and with at
     * least this number of rows (of all sequences together), of sequences, and of slots of one
     * sequence. Source: Milakov & Gimelshein 2018 (online softmax, arXiv 1805.02867); Ainslie et
     * al. 2023 (grouped queries, arXiv 2305.13245). */
    void (*attention)(struct backend *backend, const struct attn *attn, void *work);
    size_t (*attention_work)(const struct backend *backend, size_t T, size_t n_seqs,
                             size_t max_slots, size_t heads, size_t kv_heads, size_t head_dim,
                             size_t dense);
    /* y_i[T, N_i] = in[T, K] W_i^T for n <= PRODUCTS_MAX matrices that have one dtype and one K;
     * with product.add the product is added to y_i. y_i must not overlap in.x. work: at least
     * matmul_work(T, K, N_1 + ... + N_n) bytes. */
    void (*matmul)(struct backend *backend, const struct product *product, size_t n,
                   struct input in, size_t T, void *work);
    /* y[T, F] = silu(in Wgate^T) * (in Wup^T), where silu(g) = g / (1 + e^-g). Both matrices have
     * one dtype and the shape [F, K]. y must not overlap in.x. work: matmul_work(T, K, 2F)
     * bytes. */
    void (*gated)(struct backend *backend, act *y, struct input in, const struct mat *gate,
                  const struct mat *up, size_t T, void *work);
    size_t (*matmul_work)(const struct backend *backend, size_t T, size_t K, size_t N);
    /* Adds a mixture of experts (kernels/experts.h) for T rows. work: experts_work(...) bytes for
     * gate matrices [F, D]. */
    void (*experts)(struct backend *backend, const struct experts *a, size_t T, void *work);
    size_t (*experts_work)(const struct backend *backend, size_t T, size_t D, size_t F, size_t n,
                           size_t used);
    /* Rotates pairs (j, j + E/2) of every head of x[T, heads*E] by table[T, E]. sign: 1, or -1 for
     * the inverse rotation. */
    void (*rope)(struct backend *backend, float *x, const float *table, size_t T, size_t heads,
                 size_t E, int sign);
    /* y = silu(gate) * up, n values; silu(gate) is rounded to `act`. y may be gate. gated() applies
     * this formula to its products. */
    void (*swiglu)(struct backend *backend, act *y, const act *gate, const act *up, size_t n);
    /* y[t, :] = rmsnorm of x[row[t], :] (struct input); gain NULL: a copy of x[row[t], :].
     * row NULL: row t, and y may be x. */
    void (*rmsnorm)(struct backend *backend, act *y, const act *x, const int32_t *row,
                    const float *gain, size_t T, size_t D, double eps);
    /* Answers the query for the rows x[rows, D] in one streaming pass over the vocabulary. xu holds
     * the unconditional rows if cfg_scale > 0, and the rows to compare with if divergence is 1;
     * else it is NULL. logits[rows, V] receives the logits after guidance and bans; it may be NULL
     * if sample_needs_logits(query, V) is 0 and query->tops is NULL. work: head_work(..., dense)
     * bytes; dense is 0 if head_query.dense is 0, else 1 without xu and 2 with xu. */
    void (*head)(struct backend *backend, const struct mat *weight, const act *x, const act *xu,
                 size_t rows, const struct head_query *query, struct head_row *out, float *logits,
                 void *work);
    size_t (*head_work)(const struct backend *backend, size_t rows, size_t D, size_t V,
                        size_t dense);

    /* ---- from one pass to the next: kernels/advance.h ---- */

    void (*advance_texts)(struct backend *backend, const struct text_loop *loop);
    void (*advance_canvases)(struct backend *backend, const struct canvas_loop *loop);

    /* ---- reuse of rows from earlier passes: kernels/reuse.h; work: reuse_work bytes ---- */

    void (*choose)(struct backend *backend, const struct drift *drift, void *work);
    void (*settle)(struct backend *backend, const struct outputs *outputs);
    void (*sift)(struct backend *backend, const struct sift *s, void *work);

    /* Measures how much rows attend to each other: kernels/links.h. */
    void (*links)(struct backend *backend, const struct links *l);

    /* ---- tables of operations that only some models need ---- */

    const struct mixing_ops *mixing; /* RWKV 6 and 7: kernels/mixing.h */
    const struct train_ops *train;   /* gradients on a device; NULL on a host: train_ops_of() */

    /* Frees backend.device. NULL: there is nothing to free. */
    void (*close)(struct backend *backend);
};

/* Declares `function` with the type of the function pointer `slot` of `struct table`. */
#define OPS_DECLARE(table, slot, function) __typeof__(*((struct table *)0)->slot) function;

/* Opens a back end; the caller closes it (backend_close). device: "auto", "ref", "cpu" or
 * "cuda[:N]"; "auto" takes a usable GPU, else the CPU. isa: an instruction set of the cpu back end;
 * NULL: the best. threads 0: as many as the process may use. Returns NULL with EXIT_NO_DEVICE if
 * there is no usable device of that kind (e has the reason) or no such instruction set (e has no
 * text), and with EXIT_BAD_USAGE if the name is none of these. */
struct backend *backend_open(const char *device, const char *isa, size_t threads, size_t mem_cap,
                             struct err *e);
void backend_close(struct backend *backend);
/* Sets the three peaks to the current values, and calls and arrive_ns to 0. */
void memory_reset_peak(struct memory *memory);
/* Used by back ends. memory_take counts an allocated block, or returns -1 if the cap does not allow
 * it. memory_give counts a freed block. */
int memory_take(struct memory *memory, size_t bytes, enum memory_kind kind);
void memory_give(struct memory *memory, size_t bytes, enum memory_kind kind);
size_t memory_rounded(size_t bytes);   /* allocated for requested bytes: a multiple of 64 */
size_t memory_pages(size_t allocated); /* reserved for allocated bytes: a multiple of 4096 */

extern const struct ops ops_ref;
/* The table of kernels/cpu for an instruction set (ops.level); level NULL: for the best one.
 * Returns NULL if the level is unknown, not built, or not supported by this processor. */
const struct ops *ops_cpu(const char *level);
/* The i-th table that this processor can run, best first; NULL beyond the last. */
const struct ops *ops_cpu_at(size_t i);

C_END
