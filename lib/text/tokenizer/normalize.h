/* normalize.h - the normalizer of tokenizer.json: steps that rewrite a text before it is cut. */
#pragma once

#include <stddef.h>

#include "lib/base/buf.h"

enum { NORMALIZE_MAX_STEPS = 8 };
/* NFC: normal form C. PREPEND: puts `text` before a text that is not empty. REPLACE: replaces each
 * `text` by `by`. */
enum normalize_kind { NORMALIZE_NFC, NORMALIZE_PREPEND, NORMALIZE_REPLACE };
struct normalizer {
    struct normalize_step {
        enum normalize_kind kind;
        char *text, *by; /* owned; NULL: not used */
    } steps[NORMALIZE_MAX_STEPS];
    size_t n;
};
/* Adds a step; text and by are copied. -1: there are NORMALIZE_MAX_STEPS steps already. */
int normalize_add(struct normalizer *normalizer, enum normalize_kind kind, const char *text,
                  const char *by);
void normalize_free(struct normalizer *normalizer);
/* The normalized form of text[0..*n-1]; *n = its length. The result is text itself or lies in one
 * of the two buffers work[]. */
const char *normalize_run(const struct normalizer *normalizer, struct buf work[2], const char *text,
                          size_t *n);
