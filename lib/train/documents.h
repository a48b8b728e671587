/* documents.h - a corpus as tokens, and the training batches that are drawn from it by (seed,
 * step). A document is a prompt and its response. A batch is a function of the step only, so an
 * interrupted training resumes with the same batches.
 *
 * documents_fill_next_token: windows of the shuffled corpus, which is BOS + prompt + response + EOS
 * of one document after the other. Each window begins at a document.
 *
 * documents_fill_whole, for latent models, where latents belong to one text: one document per row.
 * All rows are as long as the longest document drawn; padding has no target. A target weighs 1.
 *
 * documents_fill_diffusion, masked diffusion: one document per row, filled up with EOS as LLaDA's
 * canvas is. Each row is of one of three kinds, at random: in a share `whole` every token can be
 * masked (pre-training; guidance and the ELBO need it); in a share `cut` only tokens after a random
 * place of the response, as when text is written in blocks; in the others only the response
 * (fine-tuning). The loss is the mean over t ~ U(0,1) of 1/p sum_masked CE / length, p = (1 - 1e-3)
 * t + 1e-3. It is estimated with t = u^2, u stratified over the batch, and weight 2u/p in place of
 * 1/p. The expectation is the same; the sum of squared weights, proportional to E[1/(t q(t))] for a
 * density q of t, falls from ln 1000 to its minimum, 4. Source: LLaDA (arXiv 2502.09992) algorithms
 * 1 and 2.
 *
 * With a block-causal mask only one block of each row is masked, drawn among the whole blocks of
 * the part that can be masked. The blocks before it stay as they are, as when the model writes. The
 * block does not see the blocks behind it. The length in the loss is that of the block's part. So a
 * row is a sample of the loss of block diffusion, a mean over blocks. Source: Arriola et al. 2025
 * (arXiv 2503.09573), equation 8. Where answers are shifted by one, target and weight of a token
 * are in the row before it, and the first token is never masked. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/text/tokenizer.h"
#include "lib/train/backprop.h"

struct documents {
    struct ids all;         /* tokens of all documents, in shuffled order */
    size_t *begin, *answer; /* [n + 1] first token of each document; [n] first of its response */
    size_t n;
    int64_t bos, eos, mask; /* -1: none */
    double whole, cut;      /* shares of rows masked everywhere, or after a random place */
    uint64_t seed;
};

/* Reads the first `limit` (0: all) corpus records {text, reference} of the inputs, plain or packed.
 * texts: 2n strings (prompt, response, ...), owned by the caller. Documents of `task` (NULL: none)
 * occur `times` times; the repeats follow the first `unique` documents. */
int documents_read(const char *const *paths, size_t n_paths, int64_t limit, const char *task,
                   int64_t times, char ***texts, size_t *n, size_t *unique, struct err *e);
void documents_free_texts(char **texts, size_t n);

/* Encodes n documents (2n texts) and shuffles them by seed. */
int documents_make(struct documents *documents, const struct tokenizer *tokenizer,
                   char *const *texts, size_t n, int64_t bos, int64_t eos, int64_t mask,
                   uint64_t seed, struct err *e);
/* Reads and encodes, each document once. */
int documents_open(struct documents *documents, const struct tokenizer *tokenizer,
                   const char *const *paths, size_t n_paths, int64_t limit, int64_t bos,
                   int64_t eos, int64_t mask, uint64_t seed, struct err *e);
void documents_free(struct documents *documents);
/* SHA-256 of the tokens, their order and the bounds of the documents. */
void documents_hash(const struct documents *documents, char hex[65]);

/* These fill batch, whose arrays hold `rows` entries, for a step; they set batch->seqs and
 * batch->len. */
void documents_fill_next_token(const struct documents *documents, int64_t step, size_t rows,
                               size_t len, struct train_batch *batch);
enum { TRAINING_ROW_LEAST = 16 };
/* At most max_len tokens per row; as many rows as `rows` tokens hold at the common length. */
void documents_fill_whole(const struct documents *documents, int64_t step, size_t rows,
                              size_t max_len, struct train_batch *batch);
/* The common row length is drawn from min_len..max_len in steps of 8. config: mask and shift. */
void documents_fill_diffusion(const struct documents *documents, const struct config *config,
                              int64_t step, size_t rows, size_t min_len, size_t max_len,
                              struct train_batch *batch);
