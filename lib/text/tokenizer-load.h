/* tokenizer-load.h - what the readers of tokenizer.json share; private to
 * lib/text/tokenizer-*.c. */
#pragma once

#include <jansson.h>

#include "lib/text/tokenizer-parts.h"

struct tokenizer_load {
    struct tokenizer *t;
    const char *path;
    const json_t *vocab;
    json_t *added;    /* text -> id */
    int by_character; /* 1: merging begins with characters, 0: with bytes */
    struct err *e;
};
/* Sets "path: what: not supported: {...}". Returns -1, as all below do for what they refuse. */
int tokenizer_refuse(const struct tokenizer_load *load, const char *what, const json_t *j);
int tokenizer_bad_id(const struct tokenizer_load *load, const char *piece, const json_t *id);
int tokenizer_is_id(const json_t *j);
const char *tokenizer_type(const json_t *j); /* "type" of a part, "" when it has none */
/* NULL: no text, or one with a NUL, where C strings would end. */
const char *tokenizer_text(const json_t *j);
/* 1: the member exists and is not null, false, 0 or "". */
int tokenizer_has(const json_t *j, const char *key);
/* The text that a step looks for: {"String": ...}. NULL: another kind, or empty. */
const char *tokenizer_string_of(const json_t *pattern);

/* tokenizer-vocab.c: pieces, added tokens and merges. */
int tokenizer_load_model(struct tokenizer_load *load, const json_t *model, const json_t *added);
/* tokenizer-steps.c: each may be a Sequence. */
int tokenizer_load_normalizer(const struct tokenizer_load *load, const json_t *j);
int tokenizer_load_pre_tokenizer(const struct tokenizer_load *load, const json_t *j);
int tokenizer_load_decoder(const struct tokenizer_load *load, const json_t *j);
/* 1: a step is ByteLevel. */
int tokenizer_has_bytes(const json_t *pre_tokenizer);
/* tokenizer-around.c: ids that are put around a text. */
int tokenizer_load_post_processor(const struct tokenizer_load *load, const json_t *j);
