/* normalize.c - the steps of a normalizer; see normalize.h.
 *
 * A step that would change nothing is skipped, without a copy. Two buffers take turns, so a step
 * never writes to the buffer from which it reads. */
#include "lib/text/tokenizer/normalize.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/text/tokenizer/nfc.h"

int normalize_add(struct normalizer *normalizer, enum normalize_kind kind, const char *text,
                  const char *by)
{
    if (normalizer->n == NORMALIZE_MAX_STEPS)
        return -1;
    normalizer->steps[normalizer->n++] = (struct normalize_step){kind, text ? mem_text(text) : NULL,
                                                                 by ? mem_text(by) : NULL};
    return 0;
}

void normalize_free(struct normalizer *normalizer)
{
    for (size_t i = 0; i < normalizer->n; i++) {
        free(normalizer->steps[i].text);
        free(normalizer->steps[i].by);
    }
    normalizer->n = 0;
}

/* The first `text` in bytes; NULL: none. */
static const char *find(const char *bytes, size_t n, const char *text)
{
    return text[1] ? memmem(bytes, n, text, strlen(text)) : memchr(bytes, text[0], n);
}

static void replace(const char *text, size_t n, const char *old, const char *by, struct buf *out)
{
    size_t len = strlen(old), more = strlen(by);
    const char *end = text + n, *at;
    while (text < end && (at = find(text, (size_t)(end - text), old))) {
        buf_put(out, text, (size_t)(at - text));
        buf_put(out, by, more);
        text = at + len;
    }
    buf_put(out, text, (size_t)(end - text));
}

/* 0: the step leaves the text as it is. */
static int changes(const struct normalize_step *step, const char *text, size_t n)
{
    if (step->kind == NORMALIZE_NFC)
        return nfc_may_change(text, n);
    return n > 0 && (step->kind == NORMALIZE_PREPEND ||
                     find(text, n, step->text) != NULL);
}

const char *normalize_run(const struct normalizer *normalizer, struct buf work[2], const char *text,
                          size_t *n)
{
    int turn = 0;
    for (size_t i = 0; i < normalizer->n; i++) {
        const struct normalize_step *step = &normalizer->steps[i];
        struct buf *to = &work[turn];
        if (!changes(step, text, *n))
            continue;
        buf_clear(to);
        if (step->kind == NORMALIZE_NFC) {
            nfc_put(text, *n, to);
        } else if (step->kind == NORMALIZE_PREPEND) {
            buf_text(to, step->text);
            buf_put(to, text, *n);
        } else {
            replace(text, *n, step->text, step->by, to);
        }
        text = to->data;
        *n = to->len;
        turn = !turn;
    }
    return text;
}
