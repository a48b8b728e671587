/* encoder.h - BERT and RoBERTa: a text to one vector a token, for scores that compare meanings.
 *
 *     e = LN(word[id] + position[p] + type[0])
 *     x = LN(x + attention(x))          softmax(q k^T / sqrt(E)) v over all tokens, then W_o
 *     x = LN(x + W_2 gelu(W_1 x))       every product with a bias
 *     LN(x) = (x - mean) / sqrt(variance + eps) * gain + bias,  gelu(x) = x (1 + erf(x/sqrt 2)) / 2
 *
 * Only on host back ends, in fp32. Source: Devlin et al. 2019 (arXiv 1810.04805); Liu et al. 2019
 * (RoBERTa, arXiv 1907.11692), whose positions start behind the padding id. */
#pragma once

#include "kernels/ops.h"
#include "lib/base/err.h"
#include "lib/checkpoint/safetensors.h"
#include "lib/text/ids.h"
#include "lib/text/tokenizer.h"
#include "lib/text/wordpiece.h"

struct encoder_linear { struct mat w; float *bias; };
struct encoder_norm { float *gain, *bias; };
struct encoder_layer {
    struct encoder_linear q, k, v, o, up, down;
    struct encoder_norm attention, output;
};
struct encoder {
    char name[64];         /* last part of the folder or cache name */
    char hash[65];         /* SHA-256 of its tensor files */
    int is_roberta;
    size_t width, heads, head_dim, ffn, vocab;
    size_t blocks;         /* layers of the checkpoint; the first `layers` are run */
    size_t layers;
    size_t tokens;         /* most tokens of a text */
    size_t first_position;
    double eps;
    struct backend *backend; /* borrowed */
    struct tensors *tensors;
    const struct tensor *word, *position, *type;
    struct encoder_norm start;
    struct encoder_layer *layer;
    struct tokenizer *bpe;      /* for RoBERTa */
    struct wordpiece *pieces;   /* for BERT */
};

/* name: a folder, or org/name[@rev] in the cache. layer: the layer whose output is used, from 1; 0:
 * the layer that agreed best with people for checkpoints of this kind and depth (Zhang et al. 2020,
 * bert_score), else the last. -1: 65, 66, 74. */
int encoder_open(struct encoder *n, const char *name, size_t layer, struct backend *backend,
                 struct err *e);
void encoder_close(struct encoder *n);

/* *out = the first special token, the text without white space around it, the last special token.
 * 1: cut to the number of positions of the model; -1: EXIT_BAD_DATA. */
int encoder_ids(const struct encoder *n, const char *text, struct ids *out, struct err *e);
/* out[n][width] = the output of block `layers` for ids[n], n <= tokens. -1: a value is not finite
 * (EXIT_BAD_DATA). */
int encoder_run(const struct encoder *n, const struct ids *ids, float *out, struct err *e);
