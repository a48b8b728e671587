/* normalize.c - the steps of a normalizer; see normalize.h.
 *
 * A step that changes nothing copies nothing. Two buffers take turns, so a step never reads what it
 * writes. */
#include "lib/text/tokenizer/normalize.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/text/tokenizer/nfc.h"

int normalize_add(struct normalizer *z, enum normalize_kind kind, const char *text,
                  const char *by)
{
    if (z->n == NORMALIZE_MAX_STEPS)
        return -1;
    z->steps[z->n++] = (struct normalize_step){kind, text ? mem_text(text) : NULL,
                                               by ? mem_text(by) : NULL};
    return 0;
}

void normalize_free(struct normalizer *z)
{
    for (size_t i = 0; i < z->n; i++) {
        free(z->steps[i].text);
        free(z->steps[i].by);
    }
    z->n = 0;
}

/* The first `text` in s; NULL: none. */
static const char *find(const char *s, size_t n, const char *text)
{
    return text[1] ? memmem(s, n, text, strlen(text)) : memchr(s, text[0], n);
}

static void replace(const char *s, size_t n, const char *old, const char *by, struct buf *out)
{
    size_t len = strlen(old), more = strlen(by);
    const char *end = s + n, *at;
    while (s < end && (at = find(s, (size_t)(end - s), old))) {
        buf_put(out, s, (size_t)(at - s));
        buf_put(out, by, more);
        s = at + len;
    }
    buf_put(out, s, (size_t)(end - s));
}

/* 0: the step leaves the text as it is. */
static int changes(const struct normalize_step *step, const char *s, size_t n)
{
    if (step->kind == NORMALIZE_NFC)
        return nfc_may_change(s, n);
    return n > 0 && (step->kind == NORMALIZE_PREPEND ||
                     find(s, n, step->text) != NULL);
}

const char *normalize_run(const struct normalizer *z, struct buf work[2], const char *s,
                          size_t *n)
{
    int turn = 0;
    for (size_t i = 0; i < z->n; i++) {
        const struct normalize_step *step = &z->steps[i];
        struct buf *to = &work[turn];
        if (!changes(step, s, *n))
            continue;
        buf_clear(to);
        if (step->kind == NORMALIZE_NFC) {
            nfc_put(s, *n, to);
        } else if (step->kind == NORMALIZE_PREPEND) {
            buf_text(to, step->text);
            buf_put(to, s, *n);
        } else {
            replace(s, *n, step->text, step->by, to);
        }
        s = to->data;
        *n = to->len;
        turn = !turn;
    }
    return s;
}
