/* http.h - requests to one server, several at once, by libcurl.
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
    /* Gets bytes of a good answer as they come; events 1: it is a text/event-stream. -1: the
     * exchange ends with *e. */
    int (*take)(void *ctx, const char *bytes, size_t n, int events, struct err *e);
    void *ctx;
    /* results */
    long status;       /* of HTTP; 0: no answer */
    int is_over;
    struct err why;    /* code 0: the answer came whole, with a status from 200 to 299 */
    struct buf refusal; /* the beginning of the body of another status; owned */
    void *handle;      /* of libcurl; NULL when it is over */
};

/* base: http://HOST:PORT/v1, without user, password, query. key: for "Authorization: Bearer", or
 * NULL. NULL: EXIT_BAD_USAGE. */
struct http *http_open(const char *base, const char *key, struct err *e);
void http_close(struct http *http);
/* Begins an exchange. The caller keeps *exchange until it is over. */
void http_start(struct http *http, struct http_exchange *exchange);
/* Ends an exchange early. why: the message of its fault; NULL: the answer is complete. */
void http_stop(struct http *http, struct http_exchange *exchange, const char *why);
/* Moves bytes; waits at most `ms` milliseconds for some. */
void http_wait(struct http *http, int64_t ms);
/* The whole answer of GET url, within `seconds`; path "/models". status and *body are set. -1
 * (EXIT_NO_DEVICE): no answer, a part of one, or more than HTTP_SMALL bytes. */
enum { HTTP_SMALL = 1 << 20 };
int http_get(struct http *http, const char *path, double seconds, struct buf *body, long *status,
             struct err *e);
