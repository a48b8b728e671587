/* tokenizer-load.h - what the readers of tokenizer.json share; private to lib/text/tokenizer-*.c.
 * All functions that return int, except predicates, return 0 or -1 with EXIT_BAD_DATA in *e. */
#pragma once

#include <jansson.h>

#include "lib/text/tokenizer-parts.h"

struct tokenizer_load {
    struct tokenizer *t;
    const char *path;
    const json_t *vocab;
    json_t *added;    /* text -> id */
    int by_character; /* 1: merging begins with the characters of a word, 0: with its bytes */
    struct err *e;
};
/* Sets *e to "path: what: not supported: {...}" and returns -1. */
int tokenizer_refuse(const struct tokenizer_load *load, const char *what, const json_t *j);
/* Sets *e to a message about a wrong id of a piece, and returns -1. */
int tokenizer_bad_id(const struct tokenizer_load *load, const char *piece, const json_t *id);
int tokenizer_is_id(const json_t *j); /* 1: an integer from 0 to TOKEN_ID_LIMIT - 1 */
const char *tokenizer_type(const json_t *j); /* member "type" of a step; "" if it has none */
/* The text of a JSON string. NULL: no string, or a string with a NUL, where C strings would end. */
const char *tokenizer_text(const json_t *j);
/* 1: the member exists and is not null, false, 0 or "". */
int tokenizer_has(const json_t *j, const char *key);
/* The text of a pattern {"String": TEXT}. NULL: a pattern of another kind, or an empty text. */
const char *tokenizer_string_of(const json_t *pattern);

/* tokenizer-vocab.c: pieces, added tokens and merges. */
int tokenizer_load_model(struct tokenizer_load *load, const json_t *model, const json_t *added);
/* tokenizer-steps.c: normalizer, pre-tokenizer and decoder. Each may be a Sequence of steps. */
int tokenizer_load_normalizer(const struct tokenizer_load *load, const json_t *j);
int tokenizer_load_pre_tokenizer(const struct tokenizer_load *load, const json_t *j);
int tokenizer_load_decoder(const struct tokenizer_load *load, const json_t *j);
/* 1: a step of the pre-tokenizer is ByteLevel. */
int tokenizer_has_bytes(const json_t *pre_tokenizer);
/* tokenizer-around.c: the post-processor, which puts ids around a text. */
int tokenizer_load_post_processor(const struct tokenizer_load *load, const json_t *j);
