/* pretokenize.h - cuts a text into words by the patterns of tokenizer.json; merges stay inside a
 * word. */
#pragma once

#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum { PRETOKENIZE_MAX_STEPS = 8 };

/* The pieces made of matches and the text between them: each is a piece; adjacent matches are one
 * piece; a match joins the text before or after it; matches are dropped; only matches are kept. */
enum pretokenize_how {
    PRETOKENIZE_ISOLATED, PRETOKENIZE_CONTIGUOUS, PRETOKENIZE_WITH_PREVIOUS, PRETOKENIZE_WITH_NEXT,
    PRETOKENIZE_REMOVED, PRETOKENIZE_KEPT
};
struct pretokenize_rule {
    const char *pattern; /* NULL: none */
    enum pretokenize_how how;
    int prefix_space; /* 1: adds a space before a piece that begins with none */
    int as_bytes;     /* 1: later steps get the byte alphabet */
};
struct pretokenize_step {
    struct pretokenize_rule rule; /* without the pattern */
    void *code;                   /* pcre2_code; NULL: no pattern */
    int jit;
};
struct pretokenizer {
    struct pretokenize_step steps[PRETOKENIZE_MAX_STEPS];
    size_t n;
    int as_bytes; /* 1: a step has it */
};
typedef int pretokenize_word(void *ctx, const char *text, size_t n, struct err *e);
struct pretokenize_work {
    void *match, *limits; /* pcre2_match_data, pcre2_match_context */
    struct buf text[PRETOKENIZE_MAX_STEPS]; /* with added space, or in the byte alphabet */
    struct buf shadow, bytes;
    size_t steps_left; /* of the text */
    pretokenize_word *word;
    void *ctx;
};
/* The patterns of LLaDA and of GPT-2; the patterns of Hugging Face's Digits and Punctuation for one
 * character. */
extern const char pretokenize_llada[], pretokenize_gpt2[];
extern const char pretokenize_digit[], pretokenize_punctuation[];

/* Adds a step. -1: the pattern does not compile, or has another meaning in Hugging Face's engine;
 * the message prints it. */
int pretokenize_add(struct pretokenizer *pretokenizer, struct pretokenize_rule rule,
                    const char *where, struct err *e);
void pretokenize_free(struct pretokenizer *pretokenizer);
void pretokenize_work_init(struct pretokenize_work *work, pretokenize_word *word, void *ctx);
void pretokenize_work_free(struct pretokenize_work *work);
/* Calls word() for each piece of text (valid UTF-8), left to right. -1: word() returned it. */
int pretokenize_run(const struct pretokenizer *pretokenizer, struct pretokenize_work *work,
                    const char *text, size_t n, struct err *e);
