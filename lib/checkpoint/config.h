/* config.h - the shape of a network, read from config.json (and generation_config.json).
 *
 * Two families, one block: "llama" (LLaMA 3, 3.1, 3.2: Hugging Face keys) and "llada" (LLaDA 8B
 * Base, Instruct, 1.5: OLMo-style keys). A key that would change the result and is not supported is
 * refused by name; keys known to be harmless are ignored.
 * Source: models.md sections 1.1 and 4.1 describe the published files.
 */
#ifndef CHECKPOINT_CONFIG_H
#define CHECKPOINT_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/dtype.h"
#include "lib/base/err.h"

enum arch { ARCH_LLAMA, ARCH_LLADA };
/* A quantization is named by the format of the blocks' matrices (quantization.h). */
#define QUANT_NONE DTYPE_F32
enum { CONFIG_MAX_EOS = 8 };

struct config {
    enum arch arch;
    char name[64];        /* last part of the folder or cache name, or "synth:..." */
    size_t width;         /* D */
    size_t layers;        /* L */
    size_t heads;         /* H */
    size_t kv_heads;      /* K, divides H */
    size_t head_dim;      /* E, even */
    size_t ffn;           /* F */
    size_t vocab;         /* V: rows of the embedding and of the head */
    size_t context;       /* longest sequence the model was made for */
    int tied;             /* the head is the embedding */
    double norm_eps;
    double rope_theta;
    int rope_llama3;      /* 1: the four numbers below apply (rope_type llama3) */
    double rope_factor, rope_low_freq, rope_high_freq, rope_original_context;
    int64_t bos, pad, mask, eot; /* -1: none. mask >= 0 for llada */
    int64_t eos[CONFIG_MAX_EOS];
    size_t n_eos;
    enum dtype quant;     /* of the stored matrices: not none when pack-model wrote them */
    char source_dtype[8]; /* and then: of the matrices it packed, "F32", "F16" or "BF16" */
    int instruct;         /* 1: the tokenizer has chat header tokens (set by checkpoint_open) */
    uint64_t synth_seed;
    int synth;            /* 1: weights are drawn, not read; every quality field is null */
};

/* folder/config.json and, when there, folder/generation_config.json (eos list). -1: 65 with key,
 * value and range, or 66. */
int config_load(struct config *c, const char *folder, struct err *e);

/* The shapes behind -m synth:NAME: llada-8b, llama3-8b, llama3.2-1b, llama3.2-3b, llada-1b (the
 * llada family at 1B size), llada3.2-1b (llama3.2-1b as a LLaDA), small-llama, small-llada (768
 * wide), tiny-llama, tiny-llada (for tests). -1: 64, and the message lists the names. */
int config_synth(struct config *c, const char *name, struct err *e);

/* Writes the family's own config.json (train-lm). -1: 73/74. */
int config_save(const struct config *c, const char *folder, struct err *e);

/* Parameters that a forward pass reads (embedding counted once when tied), and all of them. */
size_t config_parameters(const struct config *c);

/* inv_freq[j], j = 0 .. E/2-1, fp32: theta^(-2j/E), rescaled when rope_llama3.
 * Source: models.md 1.3 and 4.3 (LLaMA 3.1 frequency blending). */
void config_rope(const struct config *c, float *inv_freq);

#endif
