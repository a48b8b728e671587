/* documents.h - training batches: documents of prompt and response, drawn by (seed, step).
 *
 * A batch is a function of the step alone, so an interrupted training resumes with the same
 * numbers.
 *
 * Next token: windows of the shuffled corpus, BOS + prompt + response + EOS one after the other,
 * each window beginning at a document.
 *
 * Documents, for latent models, whose latents are one text's: a document a row, as long as the
 * longest that is drawn, what is behind it without a target. A target weighs 1.
 *
 * Masked diffusion: one document a row, the rest of the row filled with EOS as LLaDA's canvas is.
 * In a share `whole` of the rows, by lot, everything can be masked (pre-training; guidance and the
 * ELBO need it); in a share `cut`, only what follows a random place in the response, as when text
 * is written in blocks; in the others only the response (fine-tuning). The loss is the mean over
 * t ~ U(0,1) of 1/p sum_masked CE / length, p = (1 - 1e-3) t + 1e-3. It is estimated with t = u^2,
 * u stratified over the batch, and weight 2u/p in place of 1/p: the same expectation, while the sum
 * of squared weights, which goes with E[1/(t q(t))] for a density q of t, falls from ln 1000 to its
 * minimum, 4.
 * Source: LLaDA (arXiv 2502.09992) algorithms 1 and 2.
 */
#ifndef TRAIN_DOCUMENTS_H
#define TRAIN_DOCUMENTS_H

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
    double whole, cut;      /* shares of rows masked everywhere, or behind a random place */
    uint64_t seed;
};

/* Reads corpus records {text, reference} from any inputs that records can come from (plain or
 * packed), one after the other, the first `limit` of them (0: all), and keeps their texts: 2n
 * strings (prompt, response, ...), owned by the caller. Documents of `task` (NULL: none) come
 * `times` times: after the first `unique` ones the repeats follow. */
int documents_read(const char *const *paths, size_t n_paths, int64_t limit, const char *task,
                   int64_t times, char ***texts, size_t *n, size_t *unique, struct err *e);
void documents_free_texts(char **texts, size_t n);

/* Encodes n documents (2n texts) and shuffles them by seed. */
int documents_make(struct documents *l, const struct tokenizer *t, char *const *texts, size_t n,
                   int64_t bos, int64_t eos, int64_t mask, uint64_t seed, struct err *e);
/* Both, each document once. */
int documents_open(struct documents *l, const struct tokenizer *t, const char *const *paths,
                   size_t n_paths, int64_t limit, int64_t bos, int64_t eos, int64_t mask,
                   uint64_t seed, struct err *e);
void documents_free(struct documents *l);
/* SHA-256 of the tokens, their order and the documents' bounds. */
void documents_hash(const struct documents *l, char hex[65]);

/* Fills b (its arrays hold `rows` entries) for a step; sets b->seqs and b->len. */
void documents_fill_next_token(const struct documents *l, int64_t step, size_t rows,
                               size_t len, struct train_batch *b);
enum { TRAINING_ROW_LEAST = 16 };
/* Rows of up to max_len, as many as `rows` tokens hold, but no more than if each were that long. */
void documents_fill_whole(const struct documents *l, int64_t step, size_t rows,
                              size_t max_len, struct train_batch *b);
/* Row length is drawn from min_len..max_len (multiples of 8) for each step. */
void documents_fill_diffusion(const struct documents *l, int64_t step, size_t rows,
                              size_t min_len, size_t max_len, struct train_batch *b);

#endif
