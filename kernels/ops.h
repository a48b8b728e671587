/* ops.h - the arithmetic that a network needs, as one table that each back end fills.
 *
 * ref   kernels/ref/   plain loops, double sums: the definition of truth
 * cpu   kernels/cpu/   vectors and threads; compiled once per processor level
 * cuda  kernels/cuda/  NVIDIA GPUs; a shared object, loaded when a device is there
 *
 * Shape letters, used everywhere: B batch, T rows (tokens of all sequences together), D width, H
 * query heads, K key/value heads, E head dim, F ffn, V vocabulary, L layers, R wanted rows, S cache
 * slots. Row-major; the last letter is contiguous.
 *
 * Where data lie. Every pointer that an operation gets is memory of the back end (`alloc`), index
 * arrays included; a structure that is passed by address (struct product, struct attn...) is host
 * memory. Whoever is above kernels/ puts data there by `write` and gets them by `read` or `fetch`.
 * Operations take effect in the order of the calls, but a device may run them later: only `read`
 * and `event_wait` wait for it.
 *
 * Activations (`act`) are values of backend.act: F32, or on cuda BF16 when the matrices are not
 * F32, F16 or BF16_F32, as bf16 models compute: every operation then computes in fp32 and rounds
 * what it writes.
 *
 * Precision: what a product means depends on the dtype of its matrix alone, on every back end:
 *
 *   F32       y = sum_k x_k w_k
 *   BF16      the same with x rounded to bf16 (to nearest, ties to even), as bf16 models compute
 *   BF16_F32  bf16 weights, x as it is; of an infinite weight NaN or infinity (tiles: 3 parts of x)
 *   F16       fp16 weights, x rounded to fp16: from 65520 on to infinity, which its outputs then
 *             are or, met by a zero or its opposite, NaN
 *   INT8      LLM.int8(): kernels/quant.h; INT8_VECTOR the same without outliers
 *   NF4       4-bit NormalFloat with double quantization, x rounded to bf16: kernels/quant.h;
 *             NF4_F32 the same without it, FP4 the same as that with other levels
 *   FP8       e4m3 weights with one scale a row, x rounded to bf16: kernels/quant.h
 *
 * Sums are fp32 (ref: double; INT8: exact integers). On ref and cpu their order depends on K alone:
 * a result is the same bits at every number of threads and of rows. On cuda it depends on the
 * kernel too, which is chosen by T and the shape: the same pass gives the same bits. Softmax sums
 * and the head's log-sum-exp add short groups in fp32, and those in double. Ties go to the lowest
 * index.
 */
#ifndef KERNELS_OPS_H
#define KERNELS_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/dtype.h"
#include "lib/base/err.h"
#include "lib/base/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

enum memory_kind { MEMORY_WEIGHTS, MEMORY_KV, MEMORY_ACTIVATIONS, MEMORY_KINDS };
typedef void act; /* activations, in the format that backend.act names */

/* Bytes, now and at most since the last reset. Same words as torch: requested = asked for,
 * allocated = handed out after rounding, reserved = obtained from the system. On ref and cpu each
 * block comes straight from the system, with a header, so reserved is allocated and 64 rounded up
 * to pages; on cuda blocks are cut from segments that stay reserved
 * (kernels/cuda/device/segments.h). requested <= allocated <= reserved. */
struct memory {
    size_t requested, allocated, reserved;
    size_t requested_peak, allocated_peak, reserved_peak;
    size_t calls;              /* blocks handed out since the last reset */
    size_t kind[MEMORY_KINDS]; /* allocated, by what it is for */
    size_t cap;                /* --mem-cap: alloc answers NULL beyond it; 0: none */
    int64_t arrive_ns;         /* a host has waited in ops.arrive since the last reset */
    int direct;                /* 1: on a device each block comes from the system and goes back to
                                * it by itself, as on a host; none is kept for the next */
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
    const struct draw *draw; /* the values are drawn (kernels/draw.h), or NULL */
    int *odd; /* becomes 1 when a value that is read is infinite or no number; NULL: not asked */
};
/* A matrix that lies in memory as row-major floats. */
struct mat_source mat_floats(const float *w, size_t rows, size_t cols);

/* The rows that a product reads: x[T, K], or rmsnorm(x) where there is a gain:
 * x[t,k] / sqrt(mean_k x^2 + eps) * gain[k], the quotient rounded to `act` before the gain. */
struct input {
    const act *x;
    const float *gain; /* [K], or NULL */
    double eps;
};
/* One matrix of a product, and where its outputs go: y[T, N], overwritten or added to. */
struct product {
    const struct mat *w;
    act *y;
    int add;
};
enum { PRODUCTS_MAX = 3 };

struct ops;
struct train_ops;
struct backend {
    const struct ops *ops;
    enum dtype act;      /* F32 or BF16: set by network_load from act_dtype() before any work */
    struct pool *pool;   /* threads of the host */
    struct memory memory;
    int interleave;      /* 1: weights of a host lie on all its memory nodes in turn */
    int unrecorded;      /* 1: run() never records, each step is what it is the first time */
    int tf32;            /* 1: on cuda the vendor's library may round both sides of a product of
                          * many rows with an F32 matrix to 10 bits of mantissa (tf32). Never
                          * else: F32 is fp32 */
    void *device;        /* what a back end keeps for itself */
    char name[64];       /* of the device: "NVIDIA H200"; empty for the host */
    char address[16];    /* of the device on the bus, "0000:18:00.0"; empty for the host */
    char level[16];      /* instruction set in use: ops.level, on cuda "sm_90" */
    char library[32];    /* of the vendor, for products of many rows: "cuBLASLt 130100"; empty:
                          * there is none, the back end's own kernels make them */
    struct err_witness **witness; /* of the program, for an object with an err.c of its own */
};

/* Keys and values of one layer: slots of K*E values each. */
struct cache {
    void *k, *v;      /* [S, K*E] of dtype; keys are rotated */
    enum dtype dtype; /* F32 or BF16 */
};

/* What attention reads, made from the rows of a pass:
 *     q = rope(n(x Wq^T + bq)), k = rope(n(x Wk^T + bk)), v = x Wv^T + bv
 * with n the rmsnorm of each head by itself (struct input, K = E). Products and sums with a bias
 * are rounded to `act`, and so is what goes into a rotation. */
struct qkv {
    struct input in;               /* [T, D] */
    const struct mat *wq, *wk, *wv;
    const float *bias[3];          /* of q, k, v: [H*E], [K*E], [K*E]; all of them or NULL */
    const float *head_gain[2];     /* of q, k: [E]; both or NULL; eps is that of `in` */
    const float *table;            /* [T, E] of rope_table */
    act *q;                        /* [T, H*E] */
    struct cache to;               /* row t's key and value go to slot[t] */
    const int32_t *slot;           /* [T]; NULL: slot t */
    size_t heads, kv_heads, head_dim;
};

enum mask { MASK_CAUSAL, MASK_FULL, MASK_BLOCK_CAUSAL };

/* The rows of one sequence, and the keys that they may read: its piece of slots[]. */
struct attn_seq {
    int32_t row_begin, rows;
    int32_t slot_begin, n_slots;
};
struct attn {
    const act *q;       /* [T, H*E], rotated */
    act *y;             /* [T, H*E]; must not overlap q */
    struct cache kv;
    int half;           /* 1: q, k, v and probabilities may be rounded to bf16 on the way */
    const int32_t *pos; /* [T] absolute positions of the rows */
    const struct attn_seq *seqs;     /* [n_seqs]; their rows are 0..T-1 in ascending order */
    const int32_t *slots, *slot_pos; /* cache slots, any order; position of each slot's token */
    size_t n_seqs, T;
    size_t max_rows, max_slots;      /* no sequence has more */
    size_t heads, kv_heads, head_dim;
    enum mask mask;
    size_t mask_block; /* MASK_BLOCK_CAUSAL: a row sees keys whose pos/block <= its own */
    size_t window;     /* > 0, MASK_CAUSAL: a row sees the last `window` positions up to its own
                        * alone */
    size_t dense;      /* 0: scores exist a tile at a time. Else those of so many heads do at once,
                        * of all rows with all keys, in work: what tiles save, to be measured. ref
                        * has one row of them whatever it says */
};

/* What the head must answer, and how a token is chosen. No member has padding behind it. */
struct head_query {
    double temperature;   /* 0: argmax. > 0: argmax of logit + T * Gumbel noise: gumbel_score */
    size_t gumbel;        /* enum gumbel (kernels/gumbel.h); 0: in double */
    uint64_t seed;        /* with keys[]: noise of (row r, id v) = rng_at(seed, keys[r], v) */
    const uint64_t *keys; /* [R], may be NULL at temperature 0 */
    double cfg_scale;     /* > 0: logits = u + (1 + cfg_scale) (c - u) with xu below */
    size_t divergence;    /* 1: instead, the softmax of x is compared with that of xu */
    const int32_t *ban;   /* ids with logit -inf before anything else */
    size_t n_ban;
    const int32_t *quiet; /* ids left out of the softmax after the choice: their probability is 0 */
    size_t n_quiet;
    const int32_t *target; /* [R] ids whose log-probability is wanted, or NULL */
    size_t dense;         /* 1: the logits of all rows and ids exist before the first is looked at,
                           * in work; what chunks of the vocabulary save, to be measured. ref has
                           * one row of them whatever it says */
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
    int32_t bad;            /* 1: a logit was not finite before bans, or all were banned */
    float divergence;       /* KL(softmax(x) || softmax(xu)), nats; 0 when it was not asked for */
};

/* The index arrays of a pass. Between two passes `advance_*` rewrites them in place. */
struct rows {
    int32_t *token, *pos, *slot;  /* [T] */
    struct attn_seq *seqs;        /* [n_seqs] */
    int32_t *slots, *slot_pos;    /* the slot lists of all sequences */
    int32_t *wanted, *uncond;     /* [R] rows whose answer is wanted; their CFG twins */
    uint64_t *key;                /* [R] of the noise */
};

struct store;       /* a back end's own */
enum { STORE_GRAIN = 4096, STORE_DEPTH = 4 };
/* Rows of two arrays of a block, one at its beginning and one at `second`: rows slot[0..T), an
 * array of the back end, or the first T (NULL). */
struct store_rows {
    const int32_t *slot;
    size_t T, bytes, second; /* bytes of a row */
};

struct text_loop;   /* kernels/advance.h */
struct canvas_loop;
struct drift;       /* kernels/reuse.h */
struct outputs;
struct sift;
struct wkv;         /* kernels/wkv.h */
struct wkv_back;
struct shift;       /* kernels/mixing.h */
struct squash;
struct removal;
struct heads_out;
struct gemm;        /* kernels/train.h */

struct ops {
    const char *name;  /* "ref", "cpu", "cuda" */
    const char *level; /* instruction set: "avx512bf16", "avx2"... (Makefile, CPU_LEVELS), "cuda" */
    int depth;         /* passes that may be under way before the host looks: 1 on the host */

    /* ---- memory ---- */

    /* Memory of the back end, cleared; 64-byte aligned (cuda: 512). NULL when the cap or the
     * machine says no: an ordinary answer, recorded as `oom`. */
    void *(*alloc)(struct backend *b, size_t bytes, enum memory_kind kind);
    void (*free)(struct backend *b, void *p); /* NULL is fine */
    /* Gives what is reserved and not in use back to the system, so that memory_reset_peak starts
     * from what is needed; waits. NULL: nothing is ever kept. */
    void (*trim)(struct backend *b);
    /* Bytes that alloc could still get from the system, and all that the device has. */
    void (*room)(struct backend *b, size_t *available, size_t *total);
    /* Host to back end; `from` may be reused at once. Back end to host; waits. */
    void (*write)(struct backend *b, void *to, const void *from, size_t bytes);
    void (*read)(struct backend *b, void *to, const void *from, size_t bytes);
    /* Within the back end's memory; the two must not overlap. */
    void (*copy)(struct backend *b, void *to, const void *from, size_t bytes);
    void (*clear)(struct backend *b, void *p, size_t bytes); /* to zeros */
    /* Host memory that `fetch` can fill while the host does other things. NULL: none left. */
    void *(*mirror)(struct backend *b, size_t bytes);
    void (*mirror_free)(struct backend *b, void *p);
    /* As read, into a mirror, without waiting: the data are complete when an event that is recorded
     * later is done. */
    void (*fetch)(struct backend *b, void *mirror, const void *from, size_t bytes);

    /* ---- order and time ---- */

    /* step(ctx) calls operations only, and which ones with what arguments is settled by the bytes
     * of `key`. So a back end may record what it does and, when the same key comes again, replay
     * the record in its place. */
    void (*run)(struct backend *b, const void *key, size_t key_bytes, void (*step)(void *ctx),
                void *ctx);
    /* Does all that is done once only for a key, so that from here on run() of it costs what it
     * will always cost. The step runs, but how often is open: its results mean nothing. What was
     * settled goes when memory of the back end is freed. NULL: nothing is ever done once only. */
    void (*prepare)(struct backend *b, const void *key, size_t key_bytes, void (*step)(void *ctx),
                    void *ctx);
    /* event_record: an event behind all operations so far. event_wait: waits until they are done
     * and returns when that was, on the clock of clock_ns(); on cuda by the device's own events. An
     * event is waited for at most once, and not after a later one. */
    int64_t (*event_record)(struct backend *b);
    int64_t (*event_wait)(struct backend *b, int64_t event);

    /* ---- a store: blocks that lie elsewhere, and come while others are computed with ---- */

    /* Room for `blocks` blocks of `bytes` each, a multiple of STORE_GRAIN, that is no memory of the
     * back end: on a host a file without a name in `folder`, on a device pinned memory of its host.
     * The caller's (store_close). NULL: EXIT_CANNOT_CREATE (no such folder), EXIT_IO (it is full),
     * EXIT_FAILED_RECORDS (no memory of the host). */
    struct store *(*store_open)(struct backend *b, const char *folder, size_t blocks, size_t bytes,
                                struct err *e);
    void (*store_close)(struct backend *b, struct store *s); /* NULL is fine */
    /* Bytes from `at` on (a multiple of STORE_GRAIN) of a block = from[bytes] of the back end;
     * waits. -1: EXIT_IO. */
    int (*store_put)(struct backend *b, struct store *s, size_t block, size_t at, const void *from,
                     size_t bytes, struct err *e);
    /* to[] = the block, `to` at a multiple of STORE_GRAIN: begins behind the operations so far and
     * goes on beside those to come. STORE_DEPTH may be under way, with store_rows; on a device
     * each has arrived before a step of ops.run ends. A store that cannot be read ends the process:
     * exit 74. */
    void (*stage)(struct backend *b, struct store *s, size_t block, void *to);
    /* Operations from here on come behind the oldest `stage` that has not arrived yet. */
    void (*arrive)(struct backend *b, struct store *s);
    /* Rows of the block = those of from[], which is where it was staged to and stays as it is until
     * something is staged there again: behind the operations so far, before what is staged later.
     * A store that cannot be written ends the process: exit 74. */
    void (*store_rows)(struct backend *b, struct store *s, size_t block, const void *from,
                       const struct store_rows *r);

    /* ---- matrices ---- */

    /* The format of activations beside matrices of `dtype`. */
    enum dtype (*act_dtype)(enum dtype dtype);
    /* Why the back end has no matrices of that kind, or NULL: it has. */
    const char *(*refuses)(const struct backend *b, enum dtype dtype, size_t cols);
    /* Packs a matrix as `dtype`. -1: no memory. */
    int (*mat_make)(struct backend *b, struct mat *m, const struct mat_source *s, enum dtype dtype);
    void (*mat_free)(struct backend *b, struct mat *m);
    /* Bytes that mat_make asks for. */
    size_t (*mat_bytes)(size_t rows, size_t cols, enum dtype dtype);

    /* ---- the pass ---- */

    /* y[T, D] = rows `token` of W. */
    void (*embed)(struct backend *b, act *y, const struct mat *w, const int32_t *token, size_t T);
    /* table[t, 0..E/2) = cos, [E/2..E) = sin of pos[t] * inv_freq[j]: angle in fp32, as the models
     * were trained; floats on every back end. Source: Su et al. 2021 (RoFormer, arXiv 2104.09864).
     */
    void (*rope_table)(struct backend *b, float *table, const int32_t *pos, const float *inv_freq,
                       size_t T, size_t E);
    /* See struct qkv. work: qkv_work(T, D, H, K, E), `steps` being 1 with a bias or a gain. */
    void (*qkv)(struct backend *b, const struct qkv *a, size_t T, void *work);
    size_t (*qkv_work)(const struct backend *b, size_t T, size_t D, size_t heads, size_t kv_heads,
                       size_t head_dim, int steps);
    /* y = softmax(q k^T / sqrt(E) + mask) v. Query head h reads key head h / (H/K). A row that sees
     * no key gives zeros. work: attention_work(...) bytes for at least these numbers of rows in
     * all, of sequences, of slots a sequence, and this attn.dense. Source: Milakov & Gimelshein
     * 2018 (online softmax, arXiv 1805.02867); Ainslie et al. 2023 (grouped queries, arXiv
     * 2305.13245). */
    void (*attention)(struct backend *b, const struct attn *a, void *work);
    size_t (*attention_work)(const struct backend *b, size_t T, size_t n_seqs, size_t max_slots,
                             size_t heads, size_t kv_heads, size_t head_dim, size_t dense);
    /* y_i[T, N_i] = in[T, K] W_i^T, or += , for n <= PRODUCTS_MAX matrices of one dtype and one K.
     * work: matmul_work(...) bytes for these T, K and the sum of N_i, or more. */
    void (*matmul)(struct backend *b, const struct product *p, size_t n, struct input in, size_t T,
                   void *work);
    /* y[T, F] = silu(in Wgate^T) * (in Wup^T), the two matrices of one dtype and shape [F, K].
     * work: matmul_work(T, K, 2F). */
    void (*gated)(struct backend *b, act *y, struct input in, const struct mat *gate,
                  const struct mat *up, size_t T, void *work);
    size_t (*matmul_work)(const struct backend *b, size_t T, size_t K, size_t N);
    /* y = silu(gate) * up, n values, silu's rounded to `act`; y may be gate. What gated() does to
     * its products. */
    void (*swiglu)(struct backend *b, act *y, const act *gate, const act *up, size_t n);
    /* y[t, d] = x[row[t], d] normalized as for struct input (gain NULL: as it is); row NULL: row t,
     * and then y may be x. */
    void (*rmsnorm)(struct backend *b, act *y, const act *x, const int32_t *row, const float *gain,
                    size_t T, size_t D, double eps);
    /* One streaming pass over the vocabulary for R rows x[R, D] (xu: unconditional rows for CFG, or
     * rows to be compared with, or NULL). logits: NULL, or [R, V] that gets the (guided, banned)
     * logits. work: head_work bytes; its `dense` is 0, or with head_query.dense 1, and 2 with xu.
     */
    void (*head)(struct backend *b, const struct mat *w, const act *x, const act *xu, size_t R,
                 const struct head_query *q, struct head_row *out, float *logits, void *work);
    size_t (*head_work)(const struct backend *b, size_t R, size_t D, size_t V, size_t dense);

    /* ---- from one pass to the next: kernels/advance.h ---- */

    void (*advance_texts)(struct backend *b, const struct text_loop *l);
    void (*advance_canvases)(struct backend *b, const struct canvas_loop *l);

    /* ---- what later passes take over: kernels/reuse.h; work: reuse_work bytes ---- */

    void (*choose)(struct backend *b, const struct drift *d, void *work);
    void (*settle)(struct backend *b, const struct outputs *o);
    void (*sift)(struct backend *b, const struct sift *s, void *work);

    /* ---- time mixing of RWKV 6 and 7, and its gradients: kernels/wkv.h ---- */

    /* work: wkv_work(...) and wkv_back_work(...) bytes for at least these numbers of sequences, and
     * of rows a sequence. */
    void (*wkv)(struct backend *b, const struct wkv *a, void *work);
    size_t (*wkv_work)(const struct backend *b, size_t n_seqs, size_t max_rows, size_t heads,
                       size_t head_dim);
    void (*wkv_back)(struct backend *b, const struct wkv_back *a, void *work);
    size_t (*wkv_back_work)(const struct backend *b, size_t n_seqs, size_t max_rows, size_t heads,
                            size_t head_dim);

    /* ---- and what is around it: kernels/mixing.h ---- */

    void (*shift)(struct backend *b, const struct shift *a);
    void (*squash)(struct backend *b, const struct squash *a);
    void (*removal)(struct backend *b, const struct removal *a);
    void (*heads_out)(struct backend *b, const struct heads_out *a);

    /* ---- gradients; activations are F32 ---- */

    const struct train_ops *train; /* kernels/train.h */
    /* n products c = a b^T, one after the other: struct gemm of kernels/train.h. A factor that the
     * product before has too is made ready once, so that one must not write it. work:
     * gemm_work(...) bytes for the most M, N and K among them. */
    void (*gemm)(struct backend *b, const struct gemm *g, size_t n, void *work);
    size_t (*gemm_work)(const struct backend *b, size_t M, size_t N, size_t K);
    /* Rotates pairs (j, j + E/2) of every head of x[T, heads*E] by table[T, E]; sign -1 turns back.
     */
    void (*rope)(struct backend *b, float *x, const float *table, size_t T, size_t heads, size_t E,
                 int sign);

    /* Gives back what the back end keeps in backend.device; NULL: nothing. */
    void (*close)(struct backend *b);
};

/* device "auto" | "ref" | "cpu" | "cuda[:N]"; auto: a usable GPU, else the CPU. isa: instruction
 * set of the cpu back end by name, or NULL for the best; threads 0 = all that we may use. NULL: no
 * usable device of that kind (EXIT_NO_DEVICE with the reason) or no such instruction set (the same
 * code, no text). The result is the caller's (backend_close). */
struct backend *backend_open(const char *device, const char *isa, size_t threads, size_t mem_cap,
                             struct err *e);
void backend_close(struct backend *b);
/* peak := current, for all three counters; calls, arrive_ns := 0. */
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

#ifdef __cplusplus
}
#endif

#endif
