/* tokenizer.h - turns text into ids and ids into text, by tokenizer.json.
 *
 * Supported parts of tokenizer.json (for the families here and files of the GPT-2 type):
 *   model            BPE, byte-level or by characters with byte_fallback or an unknown piece;
 *                    merges as "a b" or ["a","b"]; ignore_merges
 *   normalizers      NFC, Prepend, Replace
 *   pre-tokenizers   ByteLevel, Split (every behaviour), Digits, Punctuation, Metaspace; patterns
 *                    that PCRE2 compiles with the meaning that they have for Hugging Face
 *   post-processors  ByteLevel, RobertaProcessing, BertProcessing, TemplateProcessing
 *   decoders         ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace
 *   added tokens; sequences of these steps
 * Anything else is refused, and the message prints it. Merging is O(n log n) for any input. The
 * steps of a pattern are limited in proportion to the length of the text.
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

/* Loads folder/tokenizer.json. NULL: EXIT_BAD_DATA, EXIT_NO_INPUT. */
struct tokenizer *tokenizer_load(const char *folder, struct err *e);
/* tokenizer_load() in two steps, for a caller that needs the contents of tokenizer.json first.
 * tokenizer_read() returns -1 where tokenizer_load() returns NULL. tokenizer_take() frees
 * file->json and sets it to NULL. */
struct tokenizer_file {
    json_t *json;
    char sha256[65]; /* of the bytes of the file */
};
int tokenizer_read(struct tokenizer_file *file, const char *folder, struct err *e);
struct tokenizer *tokenizer_take(struct tokenizer_file *file, const char *folder, struct err *e);
/* tokenizer_load() from the contents of tokenizer.json; `path` is for messages. */
struct tokenizer *tokenizer_load_json(const json_t *j, const char *path, struct err *e);
/* The contents of a tokenizer.json for the tokenizer in the keys of the GGUF file `path`; the
 * caller's. NULL: EXIT_BAD_DATA. */
json_t *tokenizer_of_gguf(const json_t *keys, const char *path, struct err *e);
void tokenizer_free(struct tokenizer *tokenizer);
size_t tokenizer_size(const struct tokenizer *tokenizer); /* largest id + 1 */

/* Flags of tokenizer_encode. */
enum { ENCODE_SPECIAL = 1, /* apply the post-processor (BOS...) */
       ENCODE_PLAIN = 2    /* texts of special tokens inside the input are ordinary text */ };
/* Appends the ids of text[0..n-1] to *out. -1 (EXIT_BAD_DATA): the text is not UTF-8 (*e has the
 * byte offset), or too costly for a pattern; *out is unchanged. */
int tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t n, int flags,
                     struct ids *out, struct err *e);
/* tokenizer_encode() with a mark, 0 or 1, for each byte of text. No special token is found over a
 * byte whose mark is 1. marks NULL: all are 0. */
int tokenizer_encode_marked(const struct tokenizer *tokenizer, const char *text, size_t n,
                            const char *marks, struct ids *out, struct err *e);
/* Appends the bytes of the ids. These bytes may begin and end inside a character. Special tokens
 * are left out if skip_special. Ids without a piece give no bytes. */
void tokenizer_bytes(const struct tokenizer *tokenizer, const int32_t *ids, size_t n,
                     int skip_special, struct buf *out);
/* tokenizer_bytes() as valid UTF-8: incomplete characters become U+FFFD. The tokenizer's decoder
 * may drop the space at the beginning. */
void tokenizer_decode(const struct tokenizer *tokenizer, const int32_t *ids, size_t n,
                      int skip_special, struct buf *out);
/* Id of the added token or piece with exactly this text; -1: none. */
int32_t tokenizer_id(const struct tokenizer *tokenizer, const char *piece);
int tokenizer_is_special(const struct tokenizer *tokenizer, int32_t id);
/* 1: an id has different tokens in the two tokenizers, or only one of them has it; what[] gets a
 * message. */
enum { TOKENIZER_DIFFERS = 256 };
int tokenizer_differs(const struct tokenizer *one, const struct tokenizer *other,
                      char what[TOKENIZER_DIFFERS]);
/* The ids that the post-processor puts before a text, borrowed. */
const struct ids *tokenizer_before(const struct tokenizer *tokenizer);
/* SHA-256 of the bytes of tokenizer.json (of its compact JSON after tokenizer_load_json), 64 hex
 * digits, borrowed. */
const char *tokenizer_hash(const struct tokenizer *tokenizer);

/* Learns a byte-level BPE tokenizer from texts and writes folder/tokenizer.json with LLaDA's
 * pre-tokenizer pattern (a piece has at most one digit), NFC, and the given special tokens, whose
 * ids follow those of the pieces. vocab: number of ids, special tokens included. bos: the special
 * token that the post-processor puts before a text, or NULL. Of pairs that are equally frequent,
 * the first in byte order is merged. -1: EXIT_BAD_USAGE (vocab, special tokens), EXIT_BAD_DATA
 * (texts too short or not UTF-8), EXIT_CANNOT_CREATE, EXIT_BUSY, EXIT_IO. */
int tokenizer_learn(const char *folder, const char *const *texts, size_t n_texts, size_t vocab,
                    const char *const *special, size_t n_special, const char *bos,
                    struct err *e);
/* Changes of a tokenizer for a new model. */
struct tokenizer_changes {
    const char *add[2]; /* special tokens to add; their ids follow the largest id */
    size_t n_add;
    int replaces;       /* 1: replace the post-processor by that of tokenizer_learn with bos */
    const char *bos;    /* a token of the tokenizer, or NULL */
};
/* Writes folder/tokenizer.json: `from`, the contents of another tokenizer.json, with changes. -1:
 * EXIT_BAD_DATA (tokenizer_load would refuse `from`), EXIT_CANNOT_CREATE, EXIT_BUSY, EXIT_IO. */
int tokenizer_adopt(const char *folder, const json_t *from, const struct tokenizer_changes *how,
                    struct err *e);
