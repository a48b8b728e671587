/* config.h - the shape of a network and the switches of its block.
 *
 * One block serves all families (lib/network/network.h); members here say where a family differs.
 * family_load fills it from config.json, synth_config for -m synth:NAME. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/ops.h"
#include "lib/text/chat.h"

/* How a model generates: left to right; by filling the masks of a canvas; block by block, where a
 * block sees the blocks before it; or left to right with latent vectors that are fitted first
 * (families/ltm.c). */
enum paradigm { PARADIGM_AUTOREGRESSIVE, PARADIGM_MASKED_DIFFUSION, PARADIGM_BLOCK_DIFFUSION,
                PARADIGM_LATENT };
/* "autoregressive", "masked_diffusion", "block_diffusion", "latent": its name in records. */
const char *config_paradigm_name(enum paradigm paradigm);

/* How a layer mixes tokens: attention, or a recurrence with a state of fixed size
 * (kernels/wkv.h). */
enum mixer { MIXER_ATTENTION, MIXER_RWKV6, MIXER_RWKV7, MIXERS };

/* A quantization has the name of the format of the blocks' matrices (quantization.h); under
 * QUANT_MIXED each part of each layer has its own format, in config.mix. */
#define QUANT_NONE DTYPE_F32
#define QUANT_MIXED DTYPES
enum { CONFIG_MAX_EOS = 32, CONFIG_MAX_LAYERS = 1024, CONFIG_MAX_TAPS = 16 };
/* The parts that have a format of their own under QUANT_MIXED: q, k, v and o of a layer; gate, up
 * and down of a layer; the head (with the embedding when tied), which counts as a part of layer
 * 0. */
enum part { PART_ATTENTION, PART_FFN, PART_HEAD, LAYER_PARTS };

struct family; /* family.h */
struct config {
    const struct family *family; /* its layout, for the name and for saving; borrowed */
    enum paradigm paradigm;
    enum chat chat;       /* the family's usual template; eot ends a turn */
    char name[64];        /* last part of the folder or cache name, or "synth:..." */
    size_t width;         /* D */
    size_t layers;        /* L */
    size_t heads;         /* H */
    size_t kv_heads;      /* K, divides H */
    size_t head_dim;      /* E, even; H E need not be D */
    size_t ffn;           /* F; with experts, of each (and config_ffn) */
    size_t experts, used; /* experts in each layer, and how many of them a row uses
                           * (kernels/experts.h); 0: one feed-forward for all rows */
    size_t shared;        /* F of one more expert, which all rows use; 0: none */
    size_t dense, dense_ffn; /* with experts: the first layers, which have one feed-forward, and
                           * its F; 0: none */
    size_t groups, groups_used; /* of experts, n / groups in each: a row takes experts of the best
                           * ones, by sigmoids and a bias. 0: a softmax of all decides */
    double router_scale;  /* with groups: factor of what experts give */
    size_t vocab;         /* V: rows of the embedding and of the head */
    size_t context;       /* longest sequence that the model supports */
    int tied;             /* the head is the embedding */
    int qkv_bias;         /* 1: q, k and v have a bias (o has none) */
    int qk_norm;          /* 1: each head's q and k go through an RMSNorm before the rotation */
    int logit_shift;      /* 1: the answer for position i is the output at i-1; 0: at i */
    enum mask attends;    /* which keys a row sees */
    size_t attends_block; /* B of MASK_BLOCK_CAUSAL, else 0 */
    int attends_filled;   /* 1: its authors' sampler gives the mask the blocks that it fills, and B
                           * is only their usual length; 0: B, whichever parts are filled */
    int attends_from_end; /* 1: its blocks are counted from the end of the prompt, so that a block
                           * begins there; 0: from the first id */
    int attends_prompt;   /* 1: with blocks from its end, all of the prompt is one block */
    int attends_cut;      /* 1: the last block of the mask ends with the answer; 0: it is whole, and
                           * slots behind the answer are filled too */
    int two_ways;         /* 1: it also writes left to right; and where it fills blocks, it reads
                           * the finished ones from left to right (config_write_left_to_right) */
    int drafts_causal;    /* 1: with two_ways it fills masks from left to right, and the row of a
                           * mask answers about the id behind it, as that of an id does */
    int seeds;            /* 1: the first token of a block of the mask comes of the block before
                           * alone, as in autoregression, before the others */
    int top_p_of_all;     /* 1: its authors apply top-p before top-k (head_query) */
    size_t taps, tap[CONFIG_MAX_TAPS]; /* of a drafter: the layers of another model whose outputs
                           * it reads (lib/network/pass/pass-context.c). It uses the embedding and
                           * the head of that model. 0: no drafter */
    size_t drafts;        /* of a drafter that fills masks: most ids that one pass guesses */
    int chains;           /* 1: a drafter that guesses one id after another, by a head of its own
                           * (lib/network/pass/pass-chain.c); config_read_layers sets tap[] */
    int embeds;           /* with chains: 1: the drafter has an embedding of its own */
    size_t answers;       /* with chains: rows of the head; 0: V */
    int translates;       /* with chains: 1: checkpoint.ids says the id of each row of the head */
    size_t window;        /* with MASK_CAUSAL: positions that a row sees; 0: all up to its own */
    enum mixer mixer;
    size_t rank;          /* R of the low-rank parts of RWKV; 0: none */
    size_t latents;       /* n: latent vectors [D] that each layer also reads; 0: none */
    double norm_eps;
    double rope_theta;
    size_t rope_dims;     /* first dims of a head that are rotated: E, or fewer (partial rotary) */
    uint8_t unrotated[CONFIG_MAX_LAYERS]; /* 1: the layer's heads are not rotated (SmolLM3) */
    int rope_llama3;      /* 1: rope_type llama3, with the four numbers below */
    int rope_yarn;        /* 1: rope_type yarn, with them */
    int rope_linear;      /* 1: rope_type linear: all frequencies are divided by the factor */
    double rope_scale;    /* attention factor of yarn: cosines and sines are times it; 0: 1 */
    double rope_factor, rope_low_freq, rope_high_freq, rope_original_context; /* frequencies with
                           * fewer turns than low over the original context are divided by the
                           * factor, those with more than high stay */
    double rope_beta;     /* queries grow by 1 + this ln(1 + floor(position / original context)):
                           * not built, so the context ends where it is not 1; 0: they do not */
    int64_t bos, pad, mask, eot; /* -1: none. mask >= 0 for a denoiser */
    int64_t eos[CONFIG_MAX_EOS];
    size_t n_eos;
    enum dtype quant;     /* of the stored matrices; QUANT_NONE unless pack-model wrote them */
    char source_dtype[8]; /* then their dtype before packing: "F32", "F16" or "BF16" */
    uint8_t mix[CONFIG_MAX_LAYERS][LAYER_PARTS]; /* under QUANT_MIXED: the enum dtype of a part, or
                                                  * QUANT_NONE: not quantized */
    uint64_t synth_seed;
    int synth;            /* 1: weights are random; every quality field is null */
};

/* Sets the mask and the paradigm of a denoiser: blocks of B, usually; 0: a full mask. */
void config_set_blocks(struct config *config, size_t B);

/* 1: it fills masks (and has a mask token and an eos); 0: it writes left to right. */
int config_denoises(const struct config *config);
/* Turns a config with two_ways into that of an autoregressive model; leaves others as they are. */
void config_write_left_to_right(struct config *config);

const char *config_mixer_name(enum mixer mixer); /* "swa", "rwkv6", "rwkv7": of a latent model */
/* 1: some layers do not rotate their heads. */
int config_leaves_unrotated(const struct config *config);
/* 1: the mixer keeps a state per text instead of keys and values. Then K = H. */
int config_recurs(const struct config *config);
/* fp32 values of that state in a layer: H E^2 of the recurrence, D of the row before. */
size_t config_state(const struct config *config);

/* 1: this layer has a mixture of experts. */
int config_mixes(const struct config *config, size_t layer);
/* F of the one feed-forward of this layer; the largest F of any feed-forward. */
size_t config_ffn(const struct config *config, size_t layer);
size_t config_ffn_most(const struct config *config);

/* The rows of the head: ids that it can answer with. */
size_t config_answers(const struct config *config);
/* Sets tap[]: the layers that a drafter that chains reads, in a model with `layers` layers. -1: the
 * model has too few. */
int config_read_layers(struct config *config, size_t layers);

/* Parameters that a forward pass reads (a tied embedding counts once), and all parameters. */
size_t config_parameters(const struct config *config);

/* inv_freq[j], j = 0 .. E/2-1, fp32: theta^(-2j/R) for the R = rope_dims values that are rotated, 0
 * for others; rescaled when rope_llama3, rope_yarn or rope_linear. Source: Su et al. 2021
 * (RoFormer); for long contexts Grattafiori et al. 2024 (Llama 3); Peng et al. 2023 (YaRN, arXiv
 * 2309.00071), section 3.2, with its rounded bounds; Chen et al. 2023 (linear, arXiv 2306.15595).
 */
void config_rope(const struct config *config, float *inv_freq);
float config_rope_scale(const struct config *config); /* what cosines and sines are times */
