/* http.c - see http.h. Redirects and the proxies of the environment are ignored, so that exactly
 * the named server is measured. */
#include "lib/remote/http.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"

enum { REFUSAL = 300 /* bytes of a refusal that are kept */ };

struct http {
    CURLM *multi;
    char *base;
    struct curl_slist *headers;
};

static void must(int bad)
{
    if (bad)
        err_machine(__FILE__, __LINE__, "libcurl failed (out of memory)");
}

struct http *http_open(const char *base, const char *key, struct err *e)
{
    const char *host = !strncmp(base, "http://", 7)    ? base + 7
                       : !strncmp(base, "https://", 8) ? base + 8
                                                       : "";
    size_t n = strlen(base);
    if (!*host || *host == '/' || strpbrk(host, "@?# \t\r\n")) {
        err_set(e, EXIT_BAD_USAGE, "--url: expected http://HOST:PORT/v1 (https://), got '%.200s'",
                strchr(host, '@') ? "(with a user or password)" : base);
        return NULL;
    }
    must(curl_global_init(CURL_GLOBAL_DEFAULT) != 0);
    struct http *h = mem_zero(1, sizeof *h);
    must(!(h->multi = curl_multi_init()));
    while (n && base[n - 1] == '/')
        n--;
    h->base = mem_format("%.*s", (int)n, base);
    must(!(h->headers = curl_slist_append(NULL, "Content-Type: application/json")));
    struct curl_slist *more = curl_slist_append(h->headers, "Expect:");
    must(!more);
    if (key) {
        char *line = mem_format("Authorization: Bearer %s", key);
        must(!curl_slist_append(h->headers, line));
        free(line);
    }
    return h;
}

void http_close(struct http *h)
{
    if (!h)
        return;
    curl_multi_cleanup(h->multi);
    curl_slist_free_all(h->headers);
    free(h->base);
    free(h);
    curl_global_cleanup();
}

/* libcurl hands over bytes of the body. Any other number than n * size ends the transfer. */
static size_t take(char *bytes, size_t size, size_t n, void *ctx)
{
    struct http_exchange *x = ctx;
    const size_t all = size * n;
    char *type = NULL;
    curl_easy_getinfo(x->handle, CURLINFO_RESPONSE_CODE, &x->status);
    curl_easy_getinfo(x->handle, CURLINFO_CONTENT_TYPE, &type);
    if (x->status < 200 || x->status > 299) {
        size_t room = REFUSAL - x->refusal.len;
        buf_put(&x->refusal, bytes, all < room ? all : room);
        return all;
    }
    int events = type && !strncasecmp(type, "text/event-stream", strlen("text/event-stream"));
    return x->take(x->ctx, bytes, all, events, &x->why) ? 0 : all;
}

void http_start(struct http *h, struct http_exchange *x)
{
    CURL *c = curl_easy_init();
    char *url = mem_format("%s%s", h->base, x->path);
    must(!c);
    x->handle = c;
    int bad = curl_easy_setopt(c, CURLOPT_URL, url) ||
              curl_easy_setopt(c, CURLOPT_HTTPHEADER, h->headers) ||
              curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take) ||
              curl_easy_setopt(c, CURLOPT_WRITEDATA, x) ||
              curl_easy_setopt(c, CURLOPT_PRIVATE, x) ||
              curl_easy_setopt(c, CURLOPT_PROXY, "");
    if (x->body)
        bad = bad || curl_easy_setopt(c, CURLOPT_POSTFIELDS, x->body) ||
              curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)x->n);
    free(url);
    must(bad || curl_multi_add_handle(h->multi, c));
}

static void finish(struct http *h, struct http_exchange *x)
{
    curl_multi_remove_handle(h->multi, x->handle);
    curl_easy_cleanup(x->handle);
    x->handle = NULL;
    x->is_over = 1;
}

void http_stop(struct http *h, struct http_exchange *x, const char *why)
{
    if (why)
        err_set(&x->why, EXIT_FAILED_RECORDS, "%s", why);
    if (x->handle)
        finish(h, x);
}

/* Sets x->why of an exchange that libcurl has ended. */
static void explain(struct http_exchange *x, CURLcode code)
{
    curl_easy_getinfo(x->handle, CURLINFO_RESPONSE_CODE, &x->status);
    const int refused = x->status && (x->status < 200 || x->status > 299);
    if (x->why.code)
        return;
    if (code != CURLE_OK && code != CURLE_WRITE_ERROR)
        err_set(&x->why, EXIT_FAILED_RECORDS, "the connection failed: %s",
                curl_easy_strerror(code));
    else if (refused)
        err_set(&x->why, EXIT_FAILED_RECORDS, "HTTP status %ld%s%s", x->status,
                x->refusal.len ? ": " : "", x->refusal.len ? x->refusal.data : "");
}

/* Ends the exchanges that libcurl has ended. Returns how many. */
static int reap(struct http *h)
{
    int left = 0, n = 0;
    CURLMsg *m;
    while ((m = curl_multi_info_read(h->multi, &left)) != NULL) {
        char *to = NULL;
        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &to);
        struct http_exchange *x = (struct http_exchange *)(void *)to;
        explain(x, m->data.result);
        finish(h, x);
        n++;
    }
    return n;
}

void http_wait(struct http *h, int64_t ms)
{
    int running = 0;
    must(curl_multi_perform(h->multi, &running) != CURLM_OK);
    if (reap(h) || ms <= 0)
        return;
    must(curl_multi_poll(h->multi, NULL, 0, (int)ms, NULL) != CURLM_OK ||
         curl_multi_perform(h->multi, &running) != CURLM_OK);
    reap(h);
}

static int keep(void *ctx, const char *bytes, size_t n, int events, struct err *e)
{
    struct buf *b = ctx;
    (void)events;
    if (b->len + n > HTTP_SMALL)
        return err_set(e, EXIT_BAD_DATA, "an answer of more than %d bytes", HTTP_SMALL);
    buf_put(b, bytes, n);
    return 0;
}

int http_get(struct http *h, const char *path, double seconds, struct buf *body, long *status,
             struct err *e)
{
    struct http_exchange x = {.path = path, .take = keep, .ctx = body};
    const int64_t end = clock_ns() + (int64_t)(seconds * 1e9);
    http_start(h, &x);
    while (!x.is_over && clock_ns() < end)
        http_wait(h, 20);
    if (!x.is_over)
        http_stop(h, &x, "no answer");
    *status = x.status;
    buf_free(&x.refusal);
    const int refused = x.status && (x.status < 200 || x.status > 299); /* that is an answer, too */
    if (x.why.code && !refused)
        return err_set(e, EXIT_NO_DEVICE, "%s: no %s: %s", h->base,
                       x.status ? "whole answer" : "server", x.why.text);
    return 0;
}
