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

/* Encodes the prompt with the post-processor, then the text without it. *first = index of the first
 * id of the text, at least 1. */
int scored_text_pair(const struct tokenizer *tokenizer, const char *prompt, const char *text,
                     struct ids *ids, size_t *first, struct err *e);

/* Encodes a question and a choice as lm-eval does: as one text, with a space between unless the
 * question ends with white space. *first = number of ids of the question without white space at its
 * end, at least 1. So the first letters of the choice may merge with the end of the question. */
int scored_text_choice(const struct tokenizer *tokenizer, const char *question, const char *choice,
                       struct ids *ids, size_t *first, struct err *e);

/* Reads a record {prompt_ids} or {text}; a text is encoded with the tokenizer's post-processor. Ids
 * are scored from the second one on, or from the first one if `all` is 1: a diffusion model needs
 * no start. With reference 1 it reads {text, reference}, and the reference is scored given the
 * text. Returns -1: EXIT_BAD_DATA. */
int scored_text_read(struct scored_text *scored_text, const json_t *record,
                     const struct config *config, const struct tokenizer *tokenizer, int all,
                     int reference, struct err *e);
