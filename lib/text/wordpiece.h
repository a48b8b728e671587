/* wordpiece.h - text to ids as in BERT, by tokenizer.json or vocab.txt.
 *
 * Control characters are removed; the text is lower-cased and accents are removed if the files say
 * so. It is cut at white space, punctuation and Chinese characters. Each word is covered from the
 * left by the longest pieces of the vocabulary. Texts of special tokens are ordinary text.
 * Source: Devlin et al. 2019 (arXiv 1810.04805), section 3; google-research/bert,
 * tokenization.py. */
#pragma once

#include "lib/base/err.h"
#include "lib/text/ids.h"

struct wordpiece;

/* folder/tokenizer.json of model type WordPiece, or folder/vocab.txt, one piece a line, with
 * do_lower_case (default: true) and strip_accents of tokenizer_config.json.
 * NULL: 65 / 66. */
struct wordpiece *wordpiece_load(const char *folder, struct err *e);
void wordpiece_free(struct wordpiece *wordpiece);
size_t wordpiece_size(const struct wordpiece *wordpiece); /* largest id + 1 */
/* Appends [CLS], the ids of the text (valid UTF-8), [SEP]. */
void wordpiece_encode(const struct wordpiece *wordpiece, const char *text, struct ids *out);
