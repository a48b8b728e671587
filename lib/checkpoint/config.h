/* config.h - the shape of a network and the switches of its block.
 *
 * One block serves all families (lib/network/network.h). The switches in struct config say where a
 * family differs. family_load fills the struct from config.json, synth_config for -m synth:NAME. */
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
/* The name of a paradigm in records: "autoregressive", "masked_diffusion", "block_diffusion",
 * "latent". */
const char *config_paradigm_name(enum paradigm paradigm);

/* How a layer mixes tokens: attention, or a recurrence with a state of fixed size
 * (kernels/wkv.h). */
enum mixer { MIXER_ATTENTION, MIXER_RWKV6, MIXER_RWKV7, MIXERS };

/* A quantization is an enum dtype: the format of the matrices in the blocks (quantization.h). Under
 * QUANT_MIXED each part of each layer has its own format, in config.mix. */
#define QUANT_NONE DTYPE_F32
#define QUANT_MIXED DTYPES
enum { CONFIG_MAX_EOS = 32, CONFIG_MAX_LAYERS = 1024, CONFIG_MAX_TAPS = 16,
       CONFIG_MAX_PAIRS = 256 };
/* The parts that have a format of their own under QUANT_MIXED. ATTENTION: q, k, v and o of a layer.
 * FFN: gate, up and down of a layer. HEAD: the head, with the embedding when tied; it counts as a
 * part of layer 0. */
enum part { PART_ATTENTION, PART_FFN, PART_HEAD, LAYER_PARTS };

struct family; /* family.h */
struct config {
    const struct family *family; /* for the name of the family and for saving; borrowed */
    enum paradigm paradigm;
    enum chat chat;       /* the family's usual chat template */
    char name[64];        /* last part of the folder or cache name, or "synth:..." */
    size_t width;         /* D */
    size_t layers;        /* L */
    size_t heads;         /* H */
    size_t kv_heads;      /* K, divides H */
    size_t head_dim;      /* E, even; H E need not be D */
    size_t ffn;           /* F; with experts: F of each expert. F of a layer: config_ffn() */
    size_t experts, used; /* n experts in each layer, of which a row uses `used`
                           * (kernels/experts.h); 0: one feed-forward for all rows */
    size_t shared;        /* F of one more expert, which all rows use; 0: none */
    size_t dense, dense_ffn; /* with experts: the first `dense` layers have one feed-forward of
                           * F = dense_ffn instead; 0: none */
    size_t groups, groups_used; /* experts are in groups of n / groups: a row uses experts of its
                           * best `groups_used` groups, chosen by sigmoids and a bias. 0: no
                           * groups; a softmax over all experts decides */
    double router_scale;  /* with groups: factor of the outputs of experts */
    size_t vocab;         /* V: rows of the embedding, and of the head unless `answers` is set */
    size_t context;       /* longest sequence that the model supports */
    int tied;             /* the head is the embedding */
    int qkv_bias;         /* 1: q, k and v have a bias (o has none) */
    int qk_norm;          /* 1: each head's q and k go through an RMSNorm before the rotation */
    int logit_shift;      /* 1: the answer for position i is the output at i-1; 0: at i */
    enum mask attends;    /* which keys a row sees */
    size_t attends_block; /* B: block length of MASK_BLOCK_CAUSAL, else 0 */
    int attends_filled;   /* 1: the mask has the blocks that the sampler fills, as in the authors'
                           * code, and B is only their usual length; 0: the mask always has blocks
                           * of B */
    int attends_from_end; /* 1: blocks of the mask are counted from the end of the prompt, so that a
                           * block begins there; 0: from the first id */
    int attends_prompt;   /* 1, with attends_from_end: the whole prompt is one block */
    int attends_cut;      /* 1: the last block of the mask ends with the answer; 0: this block is
                           * whole, and slots behind the answer are filled too */
    int two_ways;         /* 1: the model also writes left to right (config_write_left_to_right).
                           * When it fills blocks, finished blocks have causal attention */
    int drafts_causal;    /* 1, with two_ways: masks have causal attention, and the row of a mask
                           * predicts the id behind the mask, as the row of an id does */
    int seeds;            /* 1: the first token of a block of the mask is predicted before the other
                           * tokens, at the row before the block, as in autoregression */
    int top_p_of_all;     /* 1: the authors' code applies top-p before top-k (head_query) */
    size_t taps, tap[CONFIG_MAX_TAPS]; /* for a drafter: tap[0..taps-1] are the layers of the target
                           * model whose outputs the drafter reads
                           * (lib/network/pass/pass-context.c). The drafter uses the target's
                           * embedding and head (but see chains). taps 0: no drafter */
    size_t drafts;        /* for a drafter that fills masks: most ids that one pass guesses */
    int chains;           /* 1: a drafter that guesses one id after another, with a head of its own
                           * (lib/network/pass/pass-chain.c); config_read_layers sets tap[] */
    int embeds;           /* 1, with chains: the drafter has an embedding of its own */
    size_t answers;       /* with chains: rows of the head; 0: V */
    int translates;       /* 1, with chains: checkpoint.ids has the id of each row of the head */
    size_t window;        /* with MASK_CAUSAL: positions that a row sees; 0: all up to its own */
    enum mixer mixer;
    size_t rank;          /* R of the low-rank parts of RWKV; 0: none */
    size_t latents;       /* n: latent vectors [D] that each layer also reads; 0: none */
    double norm_eps;
    double rope_theta;
    size_t rope_dims;     /* first dims of a head that are rotated: E, or fewer (partial rotary) */
    uint8_t unrotated[CONFIG_MAX_LAYERS]; /* 1: the layer's heads are not rotated (SmolLM3) */
    int rope_llama3;      /* 1: rope_type llama3, with rope_factor.. rope_original_context */
    int rope_yarn;        /* 1: rope_type yarn, with the same four numbers */
    int rope_linear;      /* 1: rope_type linear: all frequencies are divided by rope_factor */
    float rope_divisor[CONFIG_MAX_PAIRS]; /* frequency j < R/2 is divided by value j (GGUF only:
                           * checkpoint-gguf.c). All 0: no divisors */
    double rope_scale;    /* attention factor of yarn, by which cosines and sines are multiplied; 0
                           * stands for 1 */
    double rope_factor, rope_low_freq, rope_high_freq, rope_original_context; /* frequencies with
                           * fewer than `low` turns over the original context are divided by the
                           * factor, frequencies with more than `high` turns stay, those between
                           * are blended */
    double rope_beta;     /* b: the authors multiply queries by
                           * 1 + b ln(1 + floor(position / original context)). Not built here, so
                           * the context ends before this factor exceeds 1. 0: no growth */
    int64_t bos, pad, mask, eot; /* ids; -1: none. eot ends a turn. mask >= 0 for a denoiser */
    int64_t eos[CONFIG_MAX_EOS];
    size_t n_eos;
    enum dtype quant;     /* of the stored matrices; QUANT_NONE unless pack-model wrote them */
    char source_dtype[8]; /* of a packed checkpoint: dtype of its matrices before packing, "F32",
                           * "F16" or "BF16" */
    uint8_t mix[CONFIG_MAX_LAYERS][LAYER_PARTS]; /* under QUANT_MIXED: the enum dtype of a part;
                                                  * QUANT_NONE: the part is not quantized */
    uint64_t synth_seed;
    int synth;            /* 1: weights are random; every quality field is null */
};

/* Sets the mask and the paradigm of a denoiser: B > 0: blocks of the usual length B; 0: a full
 * mask. */
void config_set_blocks(struct config *config, size_t B);

/* 1: the model fills masks (and has a mask token and an eos); 0: it writes left to right. */
int config_denoises(const struct config *config);
/* Turns a config with two_ways into that of an autoregressive model; leaves others as they are. */
void config_write_left_to_right(struct config *config);

const char *config_mixer_name(enum mixer mixer); /* in a latent model: "swa", "rwkv6", "rwkv7" */
/* 1: some layers do not rotate their heads. */
int config_leaves_unrotated(const struct config *config);
/* 1: the mixer keeps a state per text instead of keys and values. Then K = H. */
int config_recurs(const struct config *config);
/* Number of fp32 values in the state of a layer: H E^2 of the recurrence, D of the previous row. */
size_t config_state(const struct config *config);

/* 1: this layer has a mixture of experts. */
int config_mixes(const struct config *config, size_t layer);
/* F of the feed-forward of this layer, or of one of its experts. */
size_t config_ffn(const struct config *config, size_t layer);
/* The largest F of the network, the shared expert included. */
size_t config_ffn_most(const struct config *config);

/* Rows of the head: the number of ids that it can answer with. */
size_t config_answers(const struct config *config);
/* Sets tap[] of a drafter with `chains`: the layers that it reads in a model with `layers` layers.
 * -1: the model has too few layers. */
int config_read_layers(struct config *config, size_t layers);

/* Number of all parameters. A tied embedding counts once. */
size_t config_parameters(const struct config *config);

/* Fills inv_freq[E/2], fp32. With R = rope_dims: inv_freq[j] = theta^(-2j/R) for j < R/2, 0 for
 * other j. rope_llama3, rope_yarn, rope_linear and rope_divisor rescale these frequencies. Source:
 * Su et al. 2021 (RoFormer); for long contexts Grattafiori et al. 2024 (Llama 3); Peng et al. 2023
 * (YaRN, arXiv 2309.00071), section 3.2, with its rounded bounds; Chen et al. 2023 (linear, arXiv
 * 2306.15595). */
void config_rope(const struct config *config, float *inv_freq);
float config_rope_scale(const struct config *config); /* factor of cosines and sines */
