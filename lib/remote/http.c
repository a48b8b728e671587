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
    struct http *http = mem_zero(1, sizeof *http);
    must(!(http->multi = curl_multi_init()));
    while (n && base[n - 1] == '/')
        n--;
    http->base = mem_format("%.*s", (int)n, base);
    must(!(http->headers = curl_slist_append(NULL, "Content-Type: application/json")));
    struct curl_slist *more = curl_slist_append(http->headers, "Expect:");
    must(!more);
    if (key) {
        char *line = mem_format("Authorization: Bearer %s", key);
        must(!curl_slist_append(http->headers, line));
        free(line);
    }
    return http;
}

void http_close(struct http *http)
{
    if (!http)
        return;
    curl_multi_cleanup(http->multi);
    curl_slist_free_all(http->headers);
    free(http->base);
    free(http);
    curl_global_cleanup();
}

/* libcurl calls this function with bytes of the body. A result other than n * size ends the
 * transfer. */
static size_t take(char *bytes, size_t size, size_t n, void *ctx)
{
    struct http_exchange *exchange = ctx;
    const size_t all = size * n;
    char *type = NULL;
    curl_easy_getinfo(exchange->handle, CURLINFO_RESPONSE_CODE, &exchange->status);
    curl_easy_getinfo(exchange->handle, CURLINFO_CONTENT_TYPE, &type);
    if (exchange->status < 200 || exchange->status > 299) {
        size_t room = REFUSAL - exchange->refusal.len;
        buf_put(&exchange->refusal, bytes, all < room ? all : room);
        return all;
    }
    int events = type && !strncasecmp(type, "text/event-stream", strlen("text/event-stream"));
    return exchange->take(exchange->ctx, bytes, all, events, &exchange->why) ? 0 : all;
}

void http_start(struct http *http, struct http_exchange *exchange)
{
    CURL *easy = curl_easy_init();
    char *url = mem_format("%s%s", http->base, exchange->path);
    must(!easy);
    exchange->handle = easy;
    int bad = curl_easy_setopt(easy, CURLOPT_URL, url) ||
              curl_easy_setopt(easy, CURLOPT_HTTPHEADER, http->headers) ||
              curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take) ||
              curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange) ||
              curl_easy_setopt(easy, CURLOPT_PRIVATE, exchange) ||
              curl_easy_setopt(easy, CURLOPT_PROXY, "");
    if (exchange->body)
        bad = bad || curl_easy_setopt(easy, CURLOPT_POSTFIELDS, exchange->body) ||
              curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)exchange->n);
    free(url);
    must(bad || curl_multi_add_handle(http->multi, easy));
}

static void finish(struct http *http, struct http_exchange *exchange)
{
    curl_multi_remove_handle(http->multi, exchange->handle);
    curl_easy_cleanup(exchange->handle);
    exchange->handle = NULL;
    exchange->is_over = 1;
}

void http_stop(struct http *http, struct http_exchange *exchange, const char *why)
{
    if (why)
        err_set(&exchange->why, EXIT_FAILED_RECORDS, "%s", why);
    if (exchange->handle)
        finish(http, exchange);
}

/* Sets exchange->why of an exchange that libcurl has ended. */
static void explain(struct http_exchange *exchange, CURLcode code)
{
    curl_easy_getinfo(exchange->handle, CURLINFO_RESPONSE_CODE, &exchange->status);
    const int refused = exchange->status && (exchange->status < 200 || exchange->status > 299);
    if (exchange->why.code)
        return;
    if (code != CURLE_OK && code != CURLE_WRITE_ERROR)
        err_set(&exchange->why, EXIT_FAILED_RECORDS, "the connection failed: %s",
                curl_easy_strerror(code));
    else if (refused)
        err_set(&exchange->why, EXIT_FAILED_RECORDS, "HTTP status %ld%s%s", exchange->status,
                exchange->refusal.len ? ": " : "",
                exchange->refusal.len ? exchange->refusal.data : "");
}

/* Ends the exchanges that libcurl has ended. Returns their number. */
static int reap(struct http *http)
{
    int left = 0, n = 0;
    CURLMsg *message;
    while ((message = curl_multi_info_read(http->multi, &left)) != NULL) {
        char *to = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &to);
        struct http_exchange *exchange = (struct http_exchange *)(void *)to;
        explain(exchange, message->data.result);
        finish(http, exchange);
        n++;
    }
    return n;
}

void http_wait(struct http *http, int64_t ms)
{
    int running = 0;
    must(curl_multi_perform(http->multi, &running) != CURLM_OK);
    if (reap(http) || ms <= 0)
        return;
    must(curl_multi_poll(http->multi, NULL, 0, (int)ms, NULL) != CURLM_OK ||
         curl_multi_perform(http->multi, &running) != CURLM_OK);
    reap(http);
}

static int keep(void *ctx, const char *bytes, size_t n, int events, struct err *e)
{
    struct buf *text = ctx;
    (void)events;
    if (text->len + n > HTTP_SMALL)
        return err_set(e, EXIT_BAD_DATA, "an answer of more than %d bytes", HTTP_SMALL);
    buf_put(text, bytes, n);
    return 0;
}

int http_get(struct http *http, const char *path, double seconds, struct buf *body, long *status,
             struct err *e)
{
    struct http_exchange exchange = {.path = path, .take = keep, .ctx = body};
    const int64_t end = clock_ns() + (int64_t)(seconds * 1e9);
    http_start(http, &exchange);
    while (!exchange.is_over && clock_ns() < end)
        http_wait(http, 20);
    if (!exchange.is_over)
        http_stop(http, &exchange, "no answer");
    *status = exchange.status;
    buf_free(&exchange.refusal);
    /* a refusal is an answer, too */
    const int refused = exchange.status && (exchange.status < 200 || exchange.status > 299);
    if (exchange.why.code && !refused)
        return err_set(e, EXIT_NO_DEVICE, "%s: no %s: %s", http->base,
                       exchange.status ? "whole answer" : "server", exchange.why.text);
    return 0;
}
