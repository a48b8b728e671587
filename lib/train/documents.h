/* documents.h - a corpus as tokens, and the training batches that are drawn from it by (seed,
 * step). A batch is a function of the step only, so an interrupted training resumes with the same
 * batches. A document is a prompt and its response. A batch has sequences of equal length; the
 * argument `rows` counts the tokens of a batch.
 *
 * documents_fill_next_token(): a sequence is a window of the shuffled corpus, which is BOS + prompt
 * + response + EOS of one document after the other. Each window begins at a document.
 *
 * documents_fill_whole(): a sequence is one document, because the latents of a latent model belong
 * to one text. All sequences are as long as the longest document of the batch. Padding has no
 * target. Every target has weight 1.
 *
 * documents_fill_diffusion(), for masked diffusion: a sequence is one document, filled up with EOS
 * as LLaDA's canvas is. The kind of each sequence is drawn at random:
 *
 *     share `whole`   every token can be masked (pre-training; guidance and the ELBO need this)
 *     share `cut`     the tokens after a random place of the response can be masked, as when text
 *                     is written in blocks
 *     the rest        the tokens of the response can be masked (fine-tuning)
 *
 * The loss is the mean over t ~ U(0,1) of 1/p sum_masked CE / n, where n tokens can be masked, each
 * with probability p = (1 - 1e-3) t + 1e-3. The batch estimates this mean with t = u^2, u
 * stratified over the sequences, and weight 2u/p in place of 1/p. The expectation does not change.
 * The sum of squared weights is proportional to the integral of dt / (t q(t)), where q is the
 * density that t is drawn from. The sum falls from ln 1000 (t uniform) to its minimum, 4. Source:
 * LLaDA (arXiv 2502.09992) algorithms 1 and 2.
 *
 * With a block-causal mask only one block of each sequence is masked. The block is drawn among the
 * whole blocks of the part that can be masked. The blocks before it keep their tokens, as when the
 * model writes, and the block does not see the blocks behind it. n counts the tokens of this block
 * that can be masked. So a sequence is a sample of the loss of block diffusion, a mean over blocks.
 * Source: Arriola et al. 2025 (arXiv 2503.09573), equation 8.
 *
 * If the answer about a token is at the place before it (config.logit_shift), target and weight of
 * the token are at that place too, and the first token is never masked. */
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
    double whole, cut;      /* shares of sequences by kind, see documents_fill_diffusion() above */
    uint64_t seed;
};

/* Reads the first `limit` (0: all) corpus records {text, reference} of the inputs, plain or packed.
 * *texts: 2n strings (prompt, response, ...), the caller's (documents_free_texts). A document of
 * `task` (NULL: no task) occurs `times` times; the repeats follow the first *unique documents. -1:
 * as rec_read(), or EXIT_BAD_DATA: no such record. */
int documents_read(const char *const *paths, size_t n_paths, int64_t limit, const char *task,
                   int64_t times, char ***texts, size_t *n, size_t *unique, struct err *e);
void documents_free_texts(char **texts, size_t n);

/* Encodes n documents (2n texts) and shuffles them by seed. */
int documents_make(struct documents *documents, const struct tokenizer *tokenizer,
                   char *const *texts, size_t n, int64_t bos, int64_t eos, int64_t mask,
                   uint64_t seed, struct err *e);
/* documents_read(), each document once, then documents_make(). */
int documents_open(struct documents *documents, const struct tokenizer *tokenizer,
                   const char *const *paths, size_t n_paths, int64_t limit, int64_t bos,
                   int64_t eos, int64_t mask, uint64_t seed, struct err *e);
void documents_free(struct documents *documents);
/* SHA-256 of the tokens, their order and the bounds of the documents. */
void documents_hash(const struct documents *documents, char hex[65]);

/* The functions below fill *batch, whose arrays hold `rows` entries, for a step, and set
 * batch->seqs and batch->len. */
void documents_fill_next_token(const struct documents *documents, int64_t step, size_t rows,
                               size_t len, struct train_batch *batch);
enum { TRAINING_ROW_LEAST = 16 }; /* a batch has at most rows / TRAINING_ROW_LEAST documents */
/* A sequence has at most max_len tokens. The batch gets as many sequences of the common length as
 * `rows` tokens allow. */
void documents_fill_whole(const struct documents *documents, int64_t step, size_t rows,
                              size_t max_len, struct train_batch *batch);
/* The common length is drawn from min_len..max_len in steps of 8. config: kind of mask, blocks and
 * logit_shift. */
void documents_fill_diffusion(const struct documents *documents, const struct config *config,
                              int64_t step, size_t rows, size_t min_len, size_t max_len,
                              struct train_batch *batch);
