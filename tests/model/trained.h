/* trained.h - small networks of every family and mixer that train quickly, and batches for them. */
#pragma once

#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/train/trainer.h"

enum { TRAINED_VOCAB = 50 };

/* The shape: two layers of four heads; key heads are shared if the mixer can. A latent family has
 * three latents, and a window of 5 or a mixer that recurs. A mask of blocks has blocks of 5.
 * SmolLM3 does not rotate the heads of the second layer. */
static inline struct config trained_config(const struct family *f, enum mixer mixer, int tied,
                                           size_t width, size_t ffn)
{
    const int latent = f == &ltm_family;
    return (struct config){.family = f,
                           .paradigm = f->start.paradigm,
                           .attends = f->start.attends,
                           .attends_block = f->start.attends == MASK_BLOCK_CAUSAL ? 5 : 0,
                           .logit_shift = f->start.logit_shift,
                           .qkv_bias = f->start.qkv_bias,
                           .qk_norm = f->start.qk_norm,
                           .unrotated = {0, f == &smollm3_family},
                           .name = "trained",
                           .width = width,
                           .layers = 2,
                           .heads = 4,
                           .kv_heads = mixer ? 4 : 2,
                           .head_dim = width / 4,
                           .rope_dims = width / 4,
                           .ffn = ffn,
                           .vocab = TRAINED_VOCAB,
                           .context = 64,
                           .tied = tied,
                           .norm_eps = 1e-5,
                           .rope_theta = 10000,
                           .bos = -1,
                           .pad = -1,
                           .mask = config_denoises(&f->start) ? TRAINED_VOCAB - 1 : -1,
                           .eot = -1,
                           .latents = latent ? 3 : 0,
                           .mixer = mixer,
                           .rank = mixer ? 7 : 0,
                           .window = latent && !mixer ? 5 : 0};
}

/* Makes texts and latents from a seed. Every third row has no target. The first block of a sequence
 * is two shorter. Free the batch by trained_batch_free(). */
static inline struct train_batch trained_batch(const struct config *c, size_t seqs, size_t len,
                                               uint64_t seed)
{
    size_t T = seqs * len, n = c->layers * seqs * c->latents * c->width;
    struct rng r = {.seed = seed}, of_latents = {.seed = seed + 1};
    struct train_batch b = train_batch_room(T);
    float *z = mem_zero(n, sizeof *z);
    b.seqs = seqs;
    b.len = len;
    b.z = z;
    for (size_t i = 0; i < T; i++) {
        b.token[i] = (int32_t)rng_below(&r, c->vocab);
        b.target[i] = (int32_t)rng_below(&r, c->vocab);
        b.weight[i] = i % 3 ? 0.2f + (float)rng_uniform(&r) : 0;
        size_t end = c->attends_block ? (i % len + 2) / c->attends_block * c->attends_block + 2 : 0;
        b.last[i] = (int32_t)(end < len ? end : len - 1);
    }
    for (size_t i = 0; i < n; i++)
        z[i] = (float)rng_normal(&of_latents);
    return b;
}

static inline void trained_batch_free(struct train_batch *b)
{
    free((void *)(uintptr_t)b->z);
    train_batch_free(b);
}

/* Replaces the texts by texts in which nine tokens of ten follow from the token before. */
static inline void trained_chains(struct train_batch *b, struct rng *r)
{
    const size_t vocab = TRAINED_VOCAB;
    for (size_t i = 0; i < b->seqs * b->len; i++) {
        int fresh = i % b->len == 0 || rng_below(r, 10) == 0;
        size_t from = fresh ? rng_below(r, vocab) : (size_t)b->target[i - 1];
        int jump = rng_below(r, 10) == 0;
        b->token[i] = (int32_t)from;
        b->target[i] = (int32_t)(jump ? rng_below(r, vocab) : (7 * from + 3) % vocab);
        b->weight[i] = 1 / (float)(b->seqs * b->len);
    }
}
