/* wordpiece.h - turns text into ids as BERT does, by tokenizer.json or vocab.txt.
 *
 * Control characters are removed. The text is lower-cased and accents are removed if the files say
 * so. The text is cut at white space, punctuation and Chinese characters. Each word is covered from
 * the left by the longest pieces of the vocabulary. Texts of special tokens are ordinary text.
 * Source: Devlin et al. 2019 (arXiv 1810.04805), section 3; google-research/bert,
 * tokenization.py. */
#pragma once

#include "lib/base/err.h"
#include "lib/text/ids.h"

struct wordpiece;

/* Loads folder/tokenizer.json of model type WordPiece. If there is none: folder/vocab.txt, one
 * piece a line, with do_lower_case (default true) and strip_accents (default do_lower_case) of
 * tokenizer_config.json. NULL: EXIT_BAD_DATA, EXIT_NO_INPUT. */
struct wordpiece *wordpiece_load(const char *folder, struct err *e);
void wordpiece_free(struct wordpiece *wordpiece);
size_t wordpiece_size(const struct wordpiece *wordpiece); /* largest id + 1 */
/* Appends [CLS], the ids of the text (valid UTF-8), [SEP]. */
void wordpiece_encode(const struct wordpiece *wordpiece, const char *text, struct ids *out);
