/* tokenizer-parts.h - the inside of a tokenizer; only lib/text/tokenizer*.c include it.
 *
 *     text -> cutter (added tokens) -> NFC -> pretokenize (words) -> bpe (ids)
 */
#ifndef TEXT_TOKENIZER_PARTS_H
#define TEXT_TOKENIZER_PARTS_H

#include <jansson.h>

#include "lib/text/tokenizer/bpe.h"
#include "lib/text/tokenizer/cutter.h"
#include "lib/text/ids.h"
#include "lib/text/tokenizer/pretokenize.h"

enum { TOKENIZER_FILE_LIMIT = 128 << 20 };

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

/* What tokenizer.json says, as it is written here; the caller's references. bos: the special token,
 * with its id, that is put in front of a text, or NULL. */
json_t *tokenizer_byte_level(void);
json_t *tokenizer_template(const char *bos, int64_t id);
/* Writes folder/tokenizer.json. j NULL: a text in it was not UTF-8. -1: 65, 73, 74. */
int tokenizer_save(const char *folder, json_t *j, struct err *e);

#endif
