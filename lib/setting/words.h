/* words.h - words of settings that decoders know as enumerators. One list gives the choices of an
 * option (system_llada.c) and the enumerators, so the place of a word is its enumerator.
 *
 * The lists of orders and unmasking rules are in kernels/order/orders.h and
 * kernels/unmask/rules.h. */
#pragma once

/* ---- cache policies (lib/decode/cache) ---- */

enum cache_trait {
    CACHE_OUTPUTS = 1, /* keeps outputs of layers, and passes may compute chosen rows */
    CACHE_SIFTS = 2,   /* keeps chosen keys and values, in slots of its own */
    CACHE_IN_LAYERS = CACHE_OUTPUTS | CACHE_SIFTS /* a policy with one of them works inside the
                                                   * layers */
};
/* POLICY(enumerator, name, traits) */
#define CACHE_POLICIES(POLICY)                \
    POLICY(NONE, none, 0)                     \
    POLICY(PREFIX, prefix, 0)                 \
    POLICY(DUAL, dual, 0)                     \
    POLICY(VICINITY, vicinity, 0)             \
    POLICY(DELAYED, delayed, 0)               \
    POLICY(EXACT, exact, 0)                   \
    POLICY(FEATURES, features, CACHE_OUTPUTS) \
    POLICY(SPARSE, sparse, CACHE_SIFTS)
/* PARAMETER(name, type INT or REAL, policies, least, most, default, unit, meaning) */
#define CACHE_PARAMETERS(PARAMETER)                                                              \
    PARAMETER(refresh, INT, "prefix|dual|vicinity", 0, 1 << 20, 0, "passes",                     \
              "compute the whole canvas in every N-th pass of a block; 0: in its first only")    \
    PARAMETER(vicinity_before, INT, "vicinity", 0, 1 << 20, 16, "slots",                         \
              "positions before the block that are computed with it")                            \
    PARAMETER(vicinity_after, INT, "vicinity", 0, 1 << 20, 16, "slots",                          \
              "positions after the block that are computed with it")                             \
    PARAMETER(vicinity_warmup, INT, "vicinity", 1, 1 << 20, 4, "passes",                         \
              "the first N passes of each block compute the whole canvas")                       \
    PARAMETER(delayed_refresh, INT, "delayed", 0, 1 << 20, 8, "passes",                          \
              "compute the whole canvas in the first two passes of a block and then in every "   \
              "N-th; 0: in the first two only")                                                  \
    PARAMETER(prompt_refresh, INT, "features", 0, 1 << 20, 50, "passes",                         \
              "compute the prompt in every N-th pass; 0: in the first only")                     \
    PARAMETER(response_refresh, INT, "features", 0, 1 << 20, 7, "passes",                        \
              "compute all slots of the canvas in every N-th pass; 0: in the first only")        \
    PARAMETER(update, REAL, "features", 0, 1, 0.25, NULL,                                        \
              "share of the slots that a pass between refreshes computes; it takes the slots "   \
              "that changed most")                                                               \
    PARAMETER(keep, REAL, "sparse", 0, 1, 0.5, NULL,                                             \
              "share of the keys and values outside the block that is kept")                     \
    PARAMETER(keep_delay, INT, "sparse", 0, 1 << 20, 1, "passes",                                \
              "passes of a block before the one that selects the keys and values to keep")

#define CACHE_ENUMERATOR(ENUM, name, traits) CACHE_##ENUM,
enum caching { CACHE_POLICIES(CACHE_ENUMERATOR) CACHE_COUNT };
#undef CACHE_ENUMERATOR

/* ---- masks after the block (lib/decode/suffix.h) ---- */

/* WORD(enumerator, name) */
#define SUFFIX_KINDS(WORD) \
    WORD(ALL, all)         \
    WORD(WINDOW, window)   \
    WORD(DROPOUT, dropout) \
    WORD(GROW, grow)
#define SUFFIX_ENUMERATOR(ENUM, name) SUFFIX_##ENUM,
enum suffix_kind { SUFFIX_KINDS(SUFFIX_ENUMERATOR) SUFFIX_COUNT };
#undef SUFFIX_ENUMERATOR

/* ---- steps of a block (lib/decode/pace.h) ---- */

/* PACE(enumerator, name) */
#define PACES(PACE) \
    PACE(UNIFORM, uniform)   \
    PACE(COSINE, cosine)     \
    PACE(FRONT, front)       \
    PACE(ROUNDED, rounded)   \
    PACE(TIMESTEPS, timesteps)
#define PACE_ENUMERATOR(ENUM, name) PACE_##ENUM,
enum pace { PACES(PACE_ENUMERATOR) PACE_COUNT };
#undef PACE_ENUMERATOR

/* ---- rows of the output layer ---- */

/* The rows whose logits a pass computes. MASKED: only rows that can be committed. BLOCK: as many
 * rows as a block has slots. CANVAS: as many rows as the canvas has ids. Other samplers compute
 * BLOCK or CANVAS; the answers that are used are the same, only the cost differs. */
#define HEAD_ROWS_CHOICES "masked|block|canvas" /* in the order of enum head_rows */
enum head_rows { HEAD_ROWS_MASKED, HEAD_ROWS_BLOCK, HEAD_ROWS_CANVAS };

/* ---- solvers of the latent prior ---- */

#define SOLVERS "ddim|dpmpp2m|edm|adaptive" /* in the order of enum solver_kind */
enum solver_kind { SOLVER_DDIM, SOLVER_DPMPP2M, SOLVER_EDM, SOLVER_ADAPTIVE };

/* ---- chat templates (lib/text/chat.h) ---- */

#define CHAT_CHOICES "auto|none|llama3|llama3.1|llada|chatml|chatml_bos|qwen2|qwen2.5|smollm2"
enum chat { /* in the order of CHAT_CHOICES after auto; CHAT_WORDS: all words, auto too */
    CHAT_NONE, CHAT_LLAMA3, CHAT_LLAMA31, CHAT_LLADA, CHAT_CHATML, CHAT_CHATML_BOS, CHAT_QWEN2,
    CHAT_QWEN25, CHAT_SMOLLM2, CHAT_COUNT, CHAT_WORDS
};
