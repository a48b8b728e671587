/* scored_text.h - a text to score: the ids of a record, and which of them are scored. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/checkpoint/config.h"
#include "lib/text/tokenizer.h"

struct scored_text {
    struct ids ids; /* owned; freed with ids_free */
    size_t first;   /* ids[first..] are scored */
    size_t bytes;   /* bytes of the scored text; 0: no text */
};

/* Encodes the prompt with the post-processor, then the text without it; *first: the first id of the
 * text, at least 1. */
int scored_text_pair(const struct tokenizer *tokenizer, const char *prompt, const char *text,
                     struct ids *ids, size_t *first, struct err *e);

/* A choice given its question, as lm-eval encodes them: one text with a space between (none after
 * white space), cut where the ids of the question without white space at its end are over. So the
 * first letters of a choice may merge with what stands before them. */
int scored_text_choice(const struct tokenizer *tokenizer, const char *question, const char *choice,
                       struct ids *ids, size_t *first, struct err *e);

/* From {prompt_ids}, or {text} with the tokenizer's own post-processor: scored from the second id
 * on, or from the first if `all` (a diffusion model needs no start). With `reference`, from {text,
 * reference}: the reference is scored given the text. -1: EXIT_BAD_DATA. */
int scored_text_read(struct scored_text *scored_text, const json_t *record,
                     const struct config *config, const struct tokenizer *tokenizer, int all,
                     int reference, struct err *e);
