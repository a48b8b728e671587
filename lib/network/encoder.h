/* encoder.h - BERT and RoBERTa turn a text into one vector a token, for scores that compare
 * meanings.
 *
 *     e = LN(word[id] + position[p] + type[0])
 *     x = LN(x + attention(x))          softmax(q k^T / sqrt(E)) v over all tokens, then W_o
 *     x = LN(x + W_2 gelu(W_1 x))       every product with a bias
 *     LN(x) = (x - mean) / sqrt(variance + eps) * gain + bias,  gelu(x) = x (1 + erf(x/sqrt 2)) / 2
 *
 * attention: multi-head, all tokens see each other. LN: layer norm. Positions of RoBERTa start
 * behind the padding id. Encoders run only on host back ends, in fp32. Source: Devlin et al. 2019
 * (BERT, arXiv 1810.04805); Liu et al. 2019 (RoBERTa, arXiv 1907.11692). */
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
    struct encoder_norm attention, output; /* LN after attention; after the feed-forward block */
};
struct encoder {
    char name[64];         /* last part of the folder or cache name */
    char hash[65];         /* SHA-256 over the SHA-256 of each tensor file */
    int is_roberta;
    size_t width, heads, head_dim, ffn, vocab;
    size_t blocks;         /* layers of the checkpoint; the first `layers` are run */
    size_t layers;
    size_t tokens;         /* most tokens of a text */
    size_t first_position; /* position of the first token */
    double eps;
    struct backend *backend; /* borrowed */
    struct tensors *tensors;
    const struct tensor *word, *position, *type;
    struct encoder_norm start;  /* LN of the embedding */
    struct encoder_layer *layer;
    struct tokenizer *bpe;      /* for RoBERTa */
    struct wordpiece *pieces;   /* for BERT */
};

/* Loads an encoder into *n. name: a folder, or org/name[@rev] in the Hugging Face cache. layer: the
 * layer whose output is used, from 1. layer 0: the layer whose scores agreed best with people for
 * encoders of this kind and depth (Zhang et al. 2020, bert_score); for other depths the last layer.
 * `backend` is borrowed. -1: EXIT_BAD_USAGE (layer), EXIT_BAD_DATA, EXIT_NO_INPUT, EXIT_IO,
 * EXIT_INTERNAL (memory). */
int encoder_open(struct encoder *n, const char *name, size_t layer, struct backend *backend,
                 struct err *e);
void encoder_close(struct encoder *n);

/* *out = the first special token, the ids of the text without white space at its ends, the last
 * special token. Returns 0; 1: *out is cut to n->tokens ids; -1: EXIT_BAD_DATA. */
int encoder_ids(const struct encoder *n, const char *text, struct ids *out, struct err *e);
/* out[ids->n][width] = the output of layer n->layers for the ids; ids->n <= n->tokens. -1
 * (EXIT_BAD_DATA): a value is not finite. */
int encoder_run(const struct encoder *n, const struct ids *ids, float *out, struct err *e);
