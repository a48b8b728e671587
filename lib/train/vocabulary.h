/* vocabulary.h - the tokenizer of a model in training: learned from its texts, or that of the
 * checkpoint that it begins with. */
#pragma once

#include "lib/checkpoint/checkpoint.h"
#include "lib/train/trainer.h"

struct vocabulary {
    struct tokenizer *tokenizer;
    struct new_rows added; /* rows of tokens that the checkpoint did not have */
    int64_t before;        /* the token before a text; -1: none */
};

/* Both set the ids and the vocabulary of c, and write folder/tokenizer.json; `writes` 0: another
 * process wrote it already. */

/* Learns `vocab` tokens from n texts: among them <|startoftext|>, which a text of a denoiser does
 * not begin with, <|endoftext|> and <|mdm_mask|>. -1: as tokenizer_learn, tokenizer_load. */
int vocabulary_learn(struct vocabulary *vocabulary, struct config *config, const char *folder,
                     const char *const *texts, size_t n, size_t vocab, int writes, struct err *e);
/* Takes the tokenizer of a checkpoint of any family. Ids keep their meaning. An eos that it lacks
 * is added, and so is the mask token of a denoiser: a token of the family's name or of ours, an
 * unused one (<|reserved_special_token_0|>), or a new one behind the others. same 1: the tokens put
 * before a text stay. same 0: if vocabulary_learn made the vocabulary, these tokens become those
 * of the family of config. A tokenizer that puts several tokens before a text is refused (65). -1:
 * 65, 66, 73, 74. */
int vocabulary_take(struct vocabulary *vocabulary, struct config *config, const char *folder,
                    const struct checkpoint *from, int same, int writes, struct err *e);
void vocabulary_free(struct vocabulary *vocabulary);
