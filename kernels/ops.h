/* ops.h - the arithmetic that a network needs, as one table that each back end fills.
 *
 * ref   kernels/ref/   plain loops, double sums: the definition of truth
 * cpu   kernels/cpu/   vectors and threads; compiled once per processor level
 * cuda  kernels/cuda/  (a later issue)
 *
 * Shape letters, used everywhere: B batch, T rows (tokens of all sequences together), D width, H
 * query heads, K key/value heads, E head dim, F ffn, V vocabulary, L layers, R wanted rows, S cache
 * slots. Row-major; the last letter is contiguous. Activations are float. Pointers to activations
 * are memory of the back end (`alloc`); index arrays (tokens, positions, slots) are host memory.
 *
 * Precision: what a product means depends on the dtype of its matrix alone, on every back end:
 *
 *   F32       y = sum_k x_k w_k
 *   BF16      the same with x rounded to bf16 (to nearest, ties to even), as bf16 models compute
 *   BF16_F32  bf16 weights, x as it is
 *   INT8      LLM.int8(): kernels/quant.h
 *   NF4       4-bit NormalFloat with double quantization, x rounded to bf16: kernels/quant.h
 *
 * Sums are fp32 (ref: double; INT8: exact integers), in an order that depends on K alone: a result
 * is the same bits at every number of threads and of rows. Softmax sums and the head's log-sum-exp
 * add short groups in fp32, and those in double. Ties go to the lowest index.
 */
#ifndef KERNELS_OPS_H
#define KERNELS_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/pool.h"

enum dtype { DTYPE_F32, DTYPE_BF16, DTYPE_BF16_F32, DTYPE_INT8, DTYPE_NF4 };
enum memory_kind { MEMORY_WEIGHTS, MEMORY_KV, MEMORY_ACTIVATIONS, MEMORY_KINDS };

/* Bytes, now and at most since the last reset. Same words as torch: requested = asked for,
 * allocated = handed out after rounding, reserved = obtained from the system. Here each block comes
 * straight from the system, with a header, so reserved is allocated and 64 rounded up to pages.
 * requested <= allocated <= reserved. */
struct memory {
    size_t requested, allocated, reserved;
    size_t requested_peak, allocated_peak, reserved_peak;
    size_t kind[MEMORY_KINDS]; /* allocated, by what it is for */
    size_t cap;                /* --mem-cap: alloc answers NULL beyond it; 0: none */
};

/* A weight matrix y = x W^T, W [rows, cols] as in the checkpoint. `data` is packed in the layout of
 * the back end that made it and is opaque to everyone else. */
struct mat {
    void *data;
    enum dtype dtype;
    size_t rows, cols; /* outputs N, inputs K */
};

/* Where the values of a matrix come from when it is made: rows of floats on demand and, where the
 * checkpoint has them, the stored values themselves, which spares the way through floats. */
struct mat_source {
    size_t rows, cols;
    /* out[count, cols] = rows first.. of the matrix. Called from several threads at once. */
    void (*floats)(const struct mat_source *s, size_t first, size_t count, float *out);
    const void *ctx;       /* of floats() */
    const float *f32;      /* [rows, cols], or NULL */
    const uint16_t *bf16;  /* [rows, cols], or NULL */
    const struct codes *q; /* quantized values (kernels/quant.h), or NULL */
};
/* A matrix that lies in memory as row-major floats. */
struct mat_source mat_floats(const float *w, size_t rows, size_t cols);

/* One matrix of a product, and where its outputs go: y[T, N], overwritten or added to. */
struct product {
    const struct mat *w;
    float *y;
    int add;
};
enum { PRODUCTS_MAX = 3 };

struct ops;
struct backend {
    const struct ops *ops;
    struct pool *pool;
    struct memory memory;
};

enum mask { MASK_CAUSAL, MASK_FULL, MASK_BLOCK_CAUSAL };

/* The keys that the rows of one sequence may read, and the rows themselves. */
struct attn_seq {
    size_t row_begin, rows;  /* this sequence's rows in q */
    const int32_t *slots;    /* [n_slots] cache slots, any order */
    const int32_t *slot_pos; /* [n_slots] absolute position of each slot's token */
    size_t n_slots;
};
struct attn {
    const float *q;     /* [T, H*E], rotated */
    float *y;           /* [T, H*E]; must not overlap q */
    const void *k, *v;   /* [S, K*E] of kv_dtype, rotated keys */
    enum dtype kv_dtype; /* F32 or BF16 */
    int half;            /* 1: q, k, v and probabilities may be rounded to bf16 on the way */
    const int32_t *pos; /* [T] absolute positions of the rows */
    const struct attn_seq *seqs;
    size_t n_seqs;
    size_t heads, kv_heads, head_dim;
    enum mask mask;
    size_t mask_block; /* MASK_BLOCK_CAUSAL: a row sees keys whose pos/block <= its own */
};

/* What the head must answer, and how a token is chosen. */
struct head_query {
    double temperature;   /* 0: argmax. > 0: argmax of logit + T * Gumbel noise, in double */
    uint64_t seed;        /* with keys[]: noise of (row r, id v) = rng_at(seed, keys[r], v) */
    const uint64_t *keys; /* [R], may be NULL at temperature 0 */
    double cfg_scale;     /* > 0: logits = u + (1 + cfg_scale) (c - u) with xu below */
    const int32_t *ban;   /* ids with logit -inf before anything else */
    size_t n_ban;
    const int32_t *quiet; /* ids left out of the softmax after the choice: their probability is 0 */
    size_t n_quiet;
    const int32_t *target; /* [R] ids whose log-probability is wanted, or NULL */
};
struct head_row {
    int32_t id;        /* chosen */
    int32_t runner_up; /* second best logit without noise; -1 when V = 1 */
    float prob;        /* softmax(logits)[id], temperature 1, no noise */
    float runner_up_prob;
    float gap;              /* best minus second best logit, without noise */
    float entropy;          /* of the softmax, nats */
    double log_prob;        /* log prob, double */
    double target_log_prob; /* log softmax(logits)[target]; 0 without targets */
    int bad;                /* 1: a NaN or +Inf was met, or every logit is -Inf */
};

struct ops {
    const char *name;  /* "ref", "cpu" */
    const char *level; /* instruction set in use: "avx512bf16", "avx2"... (Makefile, CPU_LEVELS) */

    /* Memory of the back end, 64-byte aligned, cleared. NULL when the cap or the machine says no:
     * an ordinary answer, recorded as `oom`. */
    void *(*alloc)(struct backend *b, size_t bytes, enum memory_kind kind);
    void (*free)(struct backend *b, void *p);

    /* Packs a matrix as `dtype`. -1: no memory. */
    int (*mat_make)(struct backend *b, struct mat *m, const struct mat_source *s, enum dtype dtype);
    void (*mat_free)(struct backend *b, struct mat *m);
    /* Bytes that mat_make asks for. */
    size_t (*mat_bytes)(size_t rows, size_t cols, enum dtype dtype);

    /* y[T, D] = rows `token` of W. */
    void (*embed)(struct backend *b, float *y, const struct mat *w, const int32_t *token, size_t T);
    /* y[t,d] = x[t,d] / sqrt(mean_d x^2 + eps) * g[d]. y may be x. */
    void (*rmsnorm)(struct backend *b, float *y, const float *x, const float *g, size_t T, size_t D,
                    double eps);
    /* y_i[T, N_i] = x[T, K] W_i^T, or += , for n <= PRODUCTS_MAX matrices of one dtype and one K.
     * work: matmul_work(...) bytes for these T, K and the sum of N_i, or more. */
    void (*matmul)(struct backend *b, const struct product *p, size_t n, const float *x, size_t T,
                   void *work);
    /* y[T, F] = silu(x Wgate^T) * (x Wup^T), the two matrices of one dtype and shape [F, K]. */
    void (*gated)(struct backend *b, float *y, const float *x, const struct mat *gate,
                  const struct mat *up, size_t T, void *work);
    size_t (*matmul_work)(const struct backend *b, size_t T, size_t K, size_t N);
    /* c[M, N] = a[M, K] m[K, N], or c += with `add`. Element (i, k) of a lies at a[i*a_row +
     * k*a_k], so that a transpose costs nothing; m and c are row-major with strides ldm, ldc. For
     * training. */
    void (*gemm)(struct backend *b, size_t M, size_t N, size_t K, const float *a, size_t a_row,
                 size_t a_k, const float *m, size_t ldm, float *c, size_t ldc, int add);
    /* table[t, 0..E/2) = cos, [E/2..E) = sin of pos[t] * inv_freq[j]: angle in fp32, as the models
     * were trained. Source: Su et al. 2021 (RoFormer), models.md 1.3. */
    void (*rope_table)(struct backend *b, float *table, const int32_t *pos, const float *inv_freq,
                       size_t T, size_t E);
    /* Rotates pairs (j, j + E/2) of every head of x[T, heads*E] by table[T, E]; sign -1 turns back.
     */
    void (*rope)(struct backend *b, float *x, const float *table, size_t T, size_t heads, size_t E,
                 int sign);
    /* cache[slot[t], :] = x[t, :], rows of n values of `dtype` (F32 or BF16). */
    void (*store)(struct backend *b, void *cache, enum dtype dtype, const float *x,
                  const int32_t *slot, size_t T, size_t n);
    /* y = softmax(q k^T / sqrt(E) + mask) v. Query head h reads key head h / (H/K). A row that sees
     * no key gives zeros. work: attention_work(...) floats. Source: Milakov & Gimelshein 2018
     * (online softmax), models.md 1.3 and 4.2. */
    void (*attention)(struct backend *b, const struct attn *a, float *work);
    size_t (*attention_work)(const struct backend *b, size_t max_rows, size_t max_slots,
                             size_t head_dim, size_t group);
    /* y = silu(gate) * up, n values; y may be gate. */
    void (*swiglu)(struct backend *b, float *y, const float *gate, const float *up, size_t n);
    /* One streaming pass over the vocabulary for R rows x[R, D] (xu: unconditional rows for CFG, or
     * NULL). logits: NULL, or [R, V] that gets the (guided, banned) logits. work: head_work floats.
     */
    void (*head)(struct backend *b, const struct mat *w, const float *x, const float *xu, size_t R,
                 const struct head_query *q, struct head_row *out, float *logits, float *work);
    size_t (*head_work)(const struct backend *b, size_t R, size_t D, size_t V);
    /* out[i, :] = x[row[i], :], rows of n floats. */
    void (*gather)(struct backend *b, float *out, const float *x, const int32_t *row, size_t R,
                   size_t n);
};

/* device "auto" | "ref" | "cpu" | "cuda[:N]"; isa: instruction set of the cpu back end by name, or
 * NULL for the best; threads 0 = all that we may use. NULL: no such usable device or instruction
 * set (EXIT_NO_DEVICE by the caller). The result is the caller's (backend_close). */
struct backend *backend_open(const char *device, const char *isa, size_t threads, size_t mem_cap);
void backend_close(struct backend *b);
/* peak := current, for all three counters. */
void memory_reset_peak(struct memory *m);
/* For the back ends: accounts for a block of `bytes`; -1 when the cap forbids it. */
int memory_take(struct memory *m, size_t bytes, enum memory_kind kind);
void memory_give(struct memory *m, size_t bytes, enum memory_kind kind);
size_t memory_rounded(size_t bytes);   /* allocated for requested: multiple of 64 */
size_t memory_pages(size_t allocated); /* reserved for allocated: multiple of 4096 */

extern const struct ops ops_ref;
/* The cpu table of an instruction set (ops.level), or of the best one when level is NULL.
 * NULL: unknown, not built, or not for this processor. */
const struct ops *ops_cpu(const char *level);
/* The i-th table that this processor can run, best first; NULL beyond the last. */
const struct ops *ops_cpu_at(size_t i);

#endif
