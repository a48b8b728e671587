/* jinja_lex.h - cuts a template into text and the words of its tags. */
#pragma once

#include "lib/text/jinja/jinja_work.h"

enum jinja_token_kind {
    JINJA_TOKEN_END, JINJA_TOKEN_DATA, JINJA_TOKEN_PRINT, JINJA_TOKEN_TAG, JINJA_TOKEN_CLOSE,
    JINJA_TOKEN_NAME, JINJA_TOKEN_NUMBER, JINJA_TOKEN_STRING, JINJA_TOKEN_SIGN
}; /* PRINT: two opening braces; TAG: brace and percent; CLOSE: the end of a PRINT or TAG */
struct jinja_token {
    enum jinja_token_kind kind;
    int line;
    const struct jinja_string *text; /* of DATA, NAME, STRING (without quotes), SIGN */
    int64_t number;                  /* of NUMBER */
};
/* Tokens of a template (valid UTF-8). The last token has kind END. The caller frees the array. */
struct jinja_token *jinja_lex(struct jinja_work *work, const char *text, size_t n);
