/* tokenizer-parts.h - the inside of a tokenizer; only lib/text/tokenizer*.c include it.
 *
 *     text -> cutter (added tokens) -> NFC -> pretokenize (words) -> bpe (ids)
 */
#ifndef TEXT_TOKENIZER_PARTS_H
#define TEXT_TOKENIZER_PARTS_H

#include "lib/text/bpe.h"
#include "lib/text/cutter.h"
#include "lib/text/ids.h"
#include "lib/text/pretokenize.h"

struct tokenizer {
    struct pieces pieces;
    struct bpe bpe;
    struct pretokenizer split;
    int nfc;
    struct added *added;
    size_t n_added;
    struct cutter raw, normal; /* tokens cut from the text before and after NFC */
    struct ids front, back;    /* what the post-processor puts around */
    char hash[65];
};
/* Fills raw and normal from the added tokens. */
void tokenizer_cutters(struct tokenizer *t);
/* Calls word() for each word between the added tokens: what tokenizer_encode would merge. */
int tokenizer_words(const struct tokenizer *t, const char *text, size_t n, pretokenize_word *word,
                    void *ctx, struct err *e);

#endif
