/* tokenizer-parts.h - struct tokenizer; private to lib/text/tokenizer*.c. The way of a text:
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
/* Where the pre-tokenizer Metaspace adds a TOKENIZER_SPACE. NONE: the tokenizer has no Metaspace.
 * NEVER: nowhere. FIRST: at the beginning of the text. ALWAYS: at the beginning of each part
 * between added tokens. FIRST and ALWAYS add none before a space. */
enum metaspace { METASPACE_NONE, METASPACE_NEVER, METASPACE_FIRST, METASPACE_ALWAYS };
/* Where texts are cut into words before merging, if merging begins with characters. WHOLE: nowhere.
 * SAFE: before a space that follows another character; this changes no id, because no merge crosses
 * such a place. SPACES: before every space. */
enum tokenizer_cuts { TOKENIZER_WHOLE, TOKENIZER_SAFE, TOKENIZER_SPACES };
struct tokenizer {
    struct pieces pieces;
    struct bpe bpe;
    struct pretokenizer split;
    struct normalizer normalizer;
    enum metaspace metaspace;
    enum tokenizer_cuts cuts;
    struct {
        int spaces;     /* 1: U+2581 becomes a space */
        int bytes;      /* 1: a piece with PIECE_BYTE becomes the byte that it names */
        int strip;      /* 1: one space at the beginning of the text is removed */
        int bare_first; /* 1: the spaces of the first piece are removed */
    } decoder;
    struct added *added;
    size_t n_added;
    struct cutter raw, normal; /* find added tokens: raw before, normal after normalizing */
    struct ids front, back;    /* ids that the post-processor puts before and behind a text */
    char hash[65];             /* SHA-256 of tokenizer.json, 64 hex digits */
};
/* Fills the cutters raw and normal from the added tokens. */
void tokenizer_cutters(struct tokenizer *tokenizer);
/* Calls word() for each word of the parts between added tokens. Merges stay inside a word. */
int tokenizer_words(const struct tokenizer *tokenizer, const char *text, size_t n,
                    pretokenize_word *word, void *ctx, struct err *e);

/* Members of tokenizer.json as this project writes them; the caller's references.
 * tokenizer_byte_level: a ByteLevel step. tokenizer_template: a post-processor that puts the
 * special token bos, with this id, before a text; bos NULL: a post-processor that adds nothing. */
json_t *tokenizer_byte_level(void);
json_t *tokenizer_template(const char *bos, int64_t id);
/* Writes folder/tokenizer.json. -1: EXIT_BAD_DATA: j is NULL, because a text was not UTF-8;
 * EXIT_CANNOT_CREATE, EXIT_BUSY, EXIT_IO. */
int tokenizer_save(const char *folder, json_t *j, struct err *e);
