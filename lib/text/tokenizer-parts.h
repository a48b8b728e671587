/* tokenizer-parts.h - the struct tokenizer; private to lib/text/tokenizer*.c.
 *
 *     text -> cutter (added tokens) -> normalize -> pretokenize (words) -> bpe (ids) */
#pragma once

#include <jansson.h>

#include "lib/text/tokenizer/bpe.h"
#include "lib/text/tokenizer/cutter.h"
#include "lib/text/ids.h"
#include "lib/text/tokenizer/normalize.h"
#include "lib/text/tokenizer/pretokenize.h"

/* U+2581 stands for the space in vocabularies of SentencePiece. */
#define TOKENIZER_SPACE "\xE2\x96\x81"
/* Places where the pre-tokenizer Metaspace puts this sign in front: nowhere; at the beginning of
 * the text; before each text between added tokens. */
enum metaspace { METASPACE_NONE, METASPACE_NEVER, METASPACE_FIRST, METASPACE_ALWAYS };
/* Where words by character are cut: nowhere; before spaces after other characters, which changes no
 * id, because no merge crosses such a place; before every space. */
enum tokenizer_cuts { TOKENIZER_WHOLE, TOKENIZER_SAFE, TOKENIZER_SPACES };
struct tokenizer {
    struct pieces pieces;
    struct bpe bpe;
    struct pretokenizer split;
    struct normalizer normalizer;
    enum metaspace metaspace;
    enum tokenizer_cuts cuts;
    struct {
        int spaces;     /* 1: U+2581 is a space */
        int bytes;      /* 1: pieces with PIECE_BYTE are bytes */
        int strip;      /* 1: a text loses one space at its beginning */
        int bare_first; /* 1: the first piece loses its spaces */
    } decoder;
    struct added *added;
    size_t n_added;
    struct cutter raw, normal; /* added tokens that are cut out before and after normalizing */
    struct ids front, back;    /* ids that the post-processor adds */
    char hash[65];
};
/* Fills raw and normal from the added tokens. */
void tokenizer_cutters(struct tokenizer *tokenizer);
/* Calls word() for each word between the added tokens, the units of merging. */
int tokenizer_words(const struct tokenizer *tokenizer, const char *text, size_t n,
                    pretokenize_word *word, void *ctx, struct err *e);

/* The contents of tokenizer.json as this project writes it; the caller's references. bos: special
 * token to put before a text, with its id, or NULL. */
json_t *tokenizer_byte_level(void);
json_t *tokenizer_template(const char *bos, int64_t id);
/* Writes folder/tokenizer.json. j NULL: a text was not UTF-8. -1: 65, 73, 74. */
int tokenizer_save(const char *folder, json_t *j, struct err *e);
