/* normalize.h - the normalizer of tokenizer.json: steps that rewrite a text before it is cut. */
#pragma once

#include <stddef.h>

#include "lib/base/buf.h"

enum { NORMALIZE_MAX_STEPS = 8 };
/* NFC; `text` in front of a text that is not empty; `by` for each `text`. */
enum normalize_kind { NORMALIZE_NFC, NORMALIZE_PREPEND, NORMALIZE_REPLACE };
struct normalizer {
    struct normalize_step {
        enum normalize_kind kind;
        char *text, *by; /* owned; NULL: not used */
    } steps[NORMALIZE_MAX_STEPS];
    size_t n;
};
/* Copies the texts. -1: too many steps. */
int normalize_add(struct normalizer *normalizer, enum normalize_kind kind, const char *text,
                  const char *by);
void normalize_free(struct normalizer *normalizer);
/* The normalized form of text; *n: its length. It is text itself or lies in one of the two
 * buffers. */
const char *normalize_run(const struct normalizer *normalizer, struct buf work[2], const char *text,
                          size_t *n);
