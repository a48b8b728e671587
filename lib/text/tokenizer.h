/* tokenizer.h - text to ids and back, by tokenizer.json.
 *
 * Supported, for the families here and plain GPT-2-type files: model BPE (byte-level, or characters
 * with byte_fallback or an unknown piece; merges as "a b" or ["a","b"]; ignore_merges), normalizers
 * NFC, Prepend, Replace, pre-tokenizers ByteLevel, Split (every behaviour), Digits, Punctuation and
 * Metaspace, any pattern that PCRE2 compiles; added tokens; post-processors ByteLevel,
 * RobertaProcessing, TemplateProcessing; decoders ByteLevel, Replace, ByteFallback, Fuse, Strip,
 * Metaspace; sequences of these. Anything else is refused, and the message prints it. Merging is
 * O(n log n) for any input, and a pattern gets a number of steps in proportion to its text.
 *
 * The tables of PCRE2 and utf8proc define letters, digits and marks. An older table does not have
 * newer characters, so it may cut their words elsewhere. (Hugging Face's tables differ by release,
 * too.) */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/text/ids.h"

struct tokenizer;
enum { TOKENIZER_FILE_LIMIT = 128 << 20 }; /* most bytes of a tokenizer.json */

/* folder/tokenizer.json. NULL: 65 / 66. */
struct tokenizer *tokenizer_load(const char *folder, struct err *e);
/* tokenizer_load() from the contents of tokenizer.json; `path` is for messages. */
struct tokenizer *tokenizer_load_json(const json_t *j, const char *path, struct err *e);
/* The keys of the GGUF file `path` as the contents of tokenizer.json; the caller's. NULL: 65. */
json_t *tokenizer_of_gguf(const json_t *keys, const char *path, struct err *e);
void tokenizer_free(struct tokenizer *tokenizer);
size_t tokenizer_size(const struct tokenizer *tokenizer); /* largest id + 1 */

/* text: n bytes of valid UTF-8 (else EXIT_BAD_DATA with the byte offset). */
enum { ENCODE_SPECIAL = 1, /* apply the post-processor (BOS...) */
       ENCODE_PLAIN = 2    /* special-token texts inside the input are ordinary text */ };
/* Appends to *out. */
int tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t n, int flags,
                     struct ids *out, struct err *e);
/* tokenizer_encode() with a mark, 0 or 1, for each byte of text. No special token is found over a
 * byte whose mark is 1. marks NULL: all are 0. */
int tokenizer_encode_marked(const struct tokenizer *tokenizer, const char *text, size_t n,
                            const char *marks, struct ids *out, struct err *e);
/* Appends the bytes of the ids, which may begin and end inside a character. Special
 * tokens are dropped when skip_special. Ids without a piece give nothing. */
void tokenizer_bytes(const struct tokenizer *tokenizer, const int32_t *ids, size_t n,
                     int skip_special, struct buf *out);
/* tokenizer_bytes() as valid UTF-8: incomplete characters become U+FFFD. The tokenizer's decoder
 * may drop the space at the beginning. */
void tokenizer_decode(const struct tokenizer *tokenizer, const int32_t *ids, size_t n,
                      int skip_special, struct buf *out);
/* Id of an exact piece or added token; -1: none. */
int32_t tokenizer_id(const struct tokenizer *tokenizer, const char *piece);
int tokenizer_is_special(const struct tokenizer *tokenizer, int32_t id);
/* 1: an id has different tokens in both, or is in only one; `what` has a message. */
enum { TOKENIZER_DIFFERS = 256 };
int tokenizer_differs(const struct tokenizer *one, const struct tokenizer *other,
                      char what[TOKENIZER_DIFFERS]);
/* The ids that the post-processor puts before a text, borrowed. */
const struct ids *tokenizer_before(const struct tokenizer *tokenizer);
/* SHA-256 of tokenizer.json, 64 hex digits, borrowed. */
const char *tokenizer_hash(const struct tokenizer *tokenizer);

/* Learns a byte-level BPE tokenizer from texts and writes folder/tokenizer.json with LLaDA's
 * pre-tokenizer pattern (one digit a piece), NFC, and the given special tokens after the merges.
 * bos: the special token that the post-processor puts in front, or NULL. Ties: the pair first in
 * byte order. vocab includes the special tokens. -1: 64 (vocab, names), 65 (texts too short or not
 * UTF-8), 73, 74. */
int tokenizer_learn(const char *folder, const char *const *texts, size_t n_texts, size_t vocab,
                    const char *const *special, size_t n_special, const char *bos,
                    struct err *e);
/* Changes of a tokenizer for a new model. */
struct tokenizer_changes {
    const char *add[2]; /* special tokens for the ids behind the last one */
    size_t n_add;
    int replaces;       /* 1: the post-processor becomes that of tokenizer_learn for bos */
    const char *bos;    /* one of its tokens, or NULL */
};
/* Writes folder/tokenizer.json: `from`, the contents of another one, with changes. -1: 65 (what
 * tokenizer_load refuses), 73, 74. */
int tokenizer_adopt(const char *folder, const json_t *from, const struct tokenizer_changes *how,
                    struct err *e);
