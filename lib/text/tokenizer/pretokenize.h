/* pretokenize.h - cuts a text into words by the patterns of tokenizer.json; merges stay inside a
 * word. */
#pragma once

#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum { PRETOKENIZE_MAX_STEPS = 8 };

/* How the matches of a pattern cut a text into pieces. ISOLATED: each match is a piece, and so is
 * each text between matches. CONTIGUOUS: as ISOLATED, but adjacent matches are one piece.
 * WITH_PREVIOUS, WITH_NEXT: a match joins the text before or after it. REMOVED: matches are
 * dropped. KEPT: only matches are pieces. */
enum pretokenize_how {
    PRETOKENIZE_ISOLATED, PRETOKENIZE_CONTIGUOUS, PRETOKENIZE_WITH_PREVIOUS, PRETOKENIZE_WITH_NEXT,
    PRETOKENIZE_REMOVED, PRETOKENIZE_KEPT
};
struct pretokenize_rule {
    const char *pattern; /* NULL: the step cuts nothing */
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
    int as_bytes; /* 1: a step has as_bytes */
};
typedef int pretokenize_word(void *ctx, const char *text, size_t n, struct err *e);
struct pretokenize_work {
    void *match, *limits; /* pcre2_match_data, pcre2_match_context */
    struct buf text[PRETOKENIZE_MAX_STEPS]; /* texts with an added space or in the byte alphabet */
    struct buf shadow, bytes; /* shadow: the text with stand-ins (utf8_stand_in); bytes: a word,
                               * turned back from the byte alphabet */
    size_t steps_left; /* steps of matching that the text may still use */
    pretokenize_word *word;
    void *ctx;
};
/* The patterns of LLaDA and of GPT-2; the patterns of Hugging Face's Digits and Punctuation for one
 * character. */
extern const char pretokenize_llada[], pretokenize_gpt2[];
extern const char pretokenize_digit[], pretokenize_punctuation[];

/* Adds a step. where: the file, for messages. -1 (EXIT_BAD_DATA): there are too many steps, or the
 * pattern does not compile or has another meaning in Hugging Face's engine; *e has the pattern. */
int pretokenize_add(struct pretokenizer *pretokenizer, struct pretokenize_rule rule,
                    const char *where, struct err *e);
void pretokenize_free(struct pretokenizer *pretokenizer);
void pretokenize_work_init(struct pretokenize_work *work, pretokenize_word *word, void *ctx);
void pretokenize_work_free(struct pretokenize_work *work);
/* Calls word() for each piece of text (valid UTF-8), left to right. -1: word() returned -1, or a
 * pattern takes too many steps (EXIT_BAD_DATA). */
int pretokenize_run(const struct pretokenizer *pretokenizer, struct pretokenize_work *work,
                    const char *text, size_t n, struct err *e);
