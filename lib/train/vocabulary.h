/* vocabulary.h - the tokenizer of a model in training. The tokenizer is learned from the texts of
 * the training, or taken from the checkpoint with which the training begins. */
#pragma once

#include "lib/checkpoint/checkpoint.h"
#include "lib/train/trainer.h"

struct vocabulary {
    struct tokenizer *tokenizer;
    struct new_rows added; /* rows of tokens that the checkpoint did not have */
    int64_t before;        /* the token before a text; -1: none */
};

/* vocabulary_learn() and vocabulary_take() set the ids and the vocabulary of *config, and write
 * folder/tokenizer.json. writes 0: another process wrote this file already. */

/* Learns `vocab` tokens from n texts, including <|startoftext|>, <|endoftext|> and <|mdm_mask|>. A
 * text begins with <|startoftext|>, except for a denoiser. -1: as tokenizer_learn(),
 * tokenizer_load(). */
int vocabulary_learn(struct vocabulary *vocabulary, struct config *config, const char *folder,
                     const char *const *texts, size_t n, size_t vocab, int writes, struct err *e);
/* Takes the tokenizer of a checkpoint of any family. Ids keep their meaning. If the tokenizer has
 * no eos, <|endoftext|> is added. The mask token of a denoiser is, in this order: the token with
 * the name that the family uses, or <|mdm_mask|>; an unused token (<|reserved_special_token_0|>); a
 * new token behind the others.
 *
 * same 1: the tokens that the tokenizer puts before a text stay. same 0: if vocabulary_learn() made
 * the vocabulary, these tokens become the ones of the family of config. -1: EXIT_BAD_DATA (also a
 * tokenizer that puts several tokens before a text), EXIT_NO_INPUT, EXIT_CANNOT_CREATE, EXIT_IO. */
int vocabulary_take(struct vocabulary *vocabulary, struct config *config, const char *folder,
                    const struct checkpoint *from, int same, int writes, struct err *e);
void vocabulary_free(struct vocabulary *vocabulary);
