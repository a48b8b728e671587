/* http.h - sends requests to one server, several at once, by libcurl.
 *
 *     struct http *h = http_open("http://127.0.0.1:8080/v1", NULL, &e);
 *     http_start(h, &x);                       x has path, body and take
 *     while (!x.is_over) http_wait(h, 100);
 *     if (x.why.code) ...
 *
 * Nothing runs in other threads: bytes arrive inside http_wait(). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct http;

struct http_exchange { /* begins as zeroes */
    /* set by the caller */
    const char *path;  /* "/completions" */
    const char *body;  /* JSON, posted; NULL: a GET */
    size_t n;
    /* Gets the bytes of an answer with a status from 200 to 299 as they come. events 1: the answer
     * is a text/event-stream. Returns -1 with *e filled to end the exchange. */
    int (*take)(void *ctx, const char *bytes, size_t n, int events, struct err *e);
    void *ctx;
    /* results */
    long status;       /* status of HTTP; 0: no answer */
    int is_over;
    struct err why;    /* code 0: the answer came whole, with a status from 200 to 299 */
    struct buf refusal; /* the beginning of the body if the status is another one; owned */
    void *handle;      /* of libcurl; NULL after the end */
};

/* Opens no connection yet. base: http://HOST:PORT/v1, without user, password, query. key: for
 * "Authorization: Bearer", or NULL. Returns NULL (EXIT_BAD_USAGE) if base has another form. */
struct http *http_open(const char *base, const char *key, struct err *e);
void http_close(struct http *http);
/* Begins an exchange. The caller keeps *exchange until it is over. */
void http_start(struct http *http, struct http_exchange *exchange);
/* Ends an exchange early. why: the message of the fault; NULL: the answer is complete. */
void http_stop(struct http *http, struct http_exchange *exchange, const char *why);
/* Sends and receives bytes; waits at most `ms` milliseconds for some. */
void http_wait(struct http *http, int64_t ms);
/* Gets the whole answer to a GET of `path`, such as "/models", within `seconds`. Appends it to
 * *body and sets *status. Returns -1 (EXIT_NO_DEVICE) if there is no answer, a part of one, or one
 * of more than HTTP_SMALL bytes. */
enum { HTTP_SMALL = 1 << 20 };
int http_get(struct http *http, const char *path, double seconds, struct buf *body, long *status,
             struct err *e);
