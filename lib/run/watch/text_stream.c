/* text_stream.c - see text_stream.h. Tokens are bytes, and a token may end inside a character: an
 * incomplete character waits for the next token. Printed text cannot be taken back, so only the
 * readable prefix is printed, whose slots are final. Text of a model is not trusted: control
 * characters are printed as \xNN, except line ends and tabs. */
#include "lib/run/watch/text_stream.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/plain.h"
#include "lib/text/utf8.h"

static void put_plain(struct buf *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        int shown;
        size_t len = plain_next(text + i, &shown);
        if (shown || text[i] == '\n' || text[i] == '\t')
            buf_put(out, text + i, len);
        for (size_t k = 0; k < len && !shown && text[i] != '\n' && text[i] != '\t'; k++)
            buf_format(out, "\\x%02x", (unsigned char)text[i + k]);
        i += len;
    }
}

void text_stream_decode(struct buf *held, const char *bytes, size_t n, int last, struct buf *out)
{
    struct buf whole = {0};
    buf_put(held, bytes, n);
    size_t ready = last ? held->len : utf8_whole(held->data, held->len), left = held->len - ready;
    utf8_put_lossy(&whole, held->data, ready);
    if (whole.len)
        put_plain(out, whole.data, whole.len);
    memmove(held->data, held->data + ready, left);
    held->data[held->len = left] = 0;
    buf_free(&whole);
}

static void print_text(struct buf *text)
{
    if (text->len)
        fwrite(text->data, 1, text->len, stderr);
    fflush(stderr);
    buf_free(text);
}

void text_stream_begin(struct text_stream *stream, const char *heading)
{
    struct buf text = {0};
    stream->said = 0;
    stream->ended = 0;
    buf_clear(&stream->held);
    if (heading) {
        buf_text(&text, stream->any ? "\n== " : "== ");
        put_plain(&text, heading, strlen(heading));
        buf_char(&text, '\n');
    }
    stream->any = 1;
    print_text(&text);
}

void text_stream_grow(struct text_stream *stream, const int32_t *ids, size_t readable)
{
    struct buf bytes = {0}, text = {0};
    for (; stream->said < readable && !stream->ended; stream->said++) {
        stream->ended = is_stop(stream->stop, stream->n_stop, ids[stream->said]);
        if (!stream->ended)
            tokenizer_bytes(stream->tokenizer, &ids[stream->said], 1, 1, &bytes);
    }
    text_stream_decode(&stream->held, bytes.data ? bytes.data : "", bytes.len, 0, &text);
    print_text(&text);
    buf_free(&bytes);
}

void text_stream_end(struct text_stream *stream)
{
    struct buf text = {0};
    text_stream_decode(&stream->held, "", 0, 1, &text);
    buf_char(&text, '\n');
    print_text(&text);
}

void text_stream_free(struct text_stream *stream)
{
    buf_free(&stream->held);
}
