/* text_stream.h - prints the answer on standard error while it grows (--stream): the readable text
 * from the start, in whole characters. */
#pragma once

#include "lib/base/buf.h"
#include "lib/decode/generation.h"
#include "lib/decode/observer.h"
#include "lib/text/tokenizer.h"

struct text_stream {
    const struct tokenizer *tokenizer;
    int32_t stop[ADVANCE_STOPS], n_stop; /* ids that end a text */
    size_t said;     /* tokens of the answer printed so far */
    int ended, any;  /* ended: a stop id was read; any: answers so far */
    struct buf held; /* bytes of an incomplete character */
};

/* Starts an answer. heading: a line above it, or NULL. */
void text_stream_begin(struct text_stream *stream, const char *heading);
/* Prints the part of ids[0..readable) that is new. */
void text_stream_grow(struct text_stream *stream, const int32_t *ids, size_t readable);
void text_stream_end(struct text_stream *stream); /* prints held bytes and ends the line */
void text_stream_free(struct text_stream *stream);
/* Appends the next bytes of a text to *out, made safe for a terminal. An incomplete character stays
 * in *held until its other bytes come; `last`: no more bytes will come. */
void text_stream_decode(struct buf *held, const char *bytes, size_t n, int last, struct buf *out);
