/* stream.h - an answer on standard error while it grows (--stream): the text that can be read, to
 * its end, never half a character. */
#ifndef RUN_WATCH_STREAM_H
#define RUN_WATCH_STREAM_H

#include "lib/base/buf.h"
#include "lib/decode/generation.h"
#include "lib/decode/observer.h"
#include "lib/text/tokenizer.h"

struct stream {
    const struct tokenizer *tokenizer;
    int32_t stop[ADVANCE_STOPS], n_stop; /* ids that end a text */
    size_t said;     /* tokens of the answer that were taken */
    int ended, any;  /* a stop id was readable; answers so far */
    struct buf held; /* bytes of a character that is not whole yet */
};

/* A new answer; `heading`: a line above it, or NULL. */
void stream_begin(struct stream *s, const char *heading);
/* What of ids[0..readable) was not said yet. */
void stream_grow(struct stream *s, const int32_t *ids, size_t readable);
void stream_end(struct stream *s); /* what was held back, and the end of the line */
void stream_free(struct stream *s);
/* The next bytes of a text, as they may stand on a terminal: characters that are whole are appended
 * to *out, the beginning of one is kept in *held. `last`: nothing follows. */
void stream_text(struct buf *held, const char *bytes, size_t n, int last, struct buf *out);

#endif
