/* pretokenize.h - text cut into the words that a tokenizer merges apart from each other, by the
 * patterns of tokenizer.json. */
#ifndef TEXT_PRETOKENIZE_H
#define TEXT_PRETOKENIZE_H

#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum { PRETOKENIZE_MAX_STEPS = 8 };

struct pretokenize_step {
    void *code; /* pcre2_code; NULL: no pattern */
    int jit;
    int prefix_space; /* a piece that does not begin with a space gets one */
};
struct pretokenizer {
    struct pretokenize_step steps[PRETOKENIZE_MAX_STEPS];
    size_t n;
};
typedef int pretokenize_word(void *ctx, const char *s, size_t n, struct err *e);
struct pretokenize_work {
    void *match, *limits; /* pcre2_match_data, pcre2_match_context */
    struct buf prefixed[PRETOKENIZE_MAX_STEPS];
    pretokenize_word *word;
    void *ctx;
};
/* The patterns of LLaDA and of GPT-2. */
extern const char pretokenize_llada[], pretokenize_gpt2[];

/* Adds a step. pattern may be NULL. -1: the pattern does not compile or means something else to
 * Hugging Face's engine; the message prints it. */
int pretokenize_add(struct pretokenizer *p, const char *pattern, int prefix_space,
                    const char *where, struct err *e);
void pretokenize_free(struct pretokenizer *p);
void pretokenize_work_init(struct pretokenize_work *w, pretokenize_word *word, void *ctx);
void pretokenize_work_free(struct pretokenize_work *w);
/* Calls word() for each piece of s (valid UTF-8), left to right. -1: word() said so. */
int pretokenize_run(const struct pretokenizer *p, struct pretokenize_work *w, const char *s,
                    size_t n, struct err *e);

#endif
