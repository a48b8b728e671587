/* load.h - sends requests to a server in a closed or an open loop, and keeps the times of their
 * answers.
 *
 * Closed loop: `in_flight` requests are open at once; the next one is sent when one ends. Open
 * loop: request i is due at a time that the answers do not change (arrivals.h). The latency of a
 * request counts from its due time. If it counted from the send time, a late client would hide the
 * wait. */
#pragma once

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/stat/arrivals.h"
#include "lib/remote/http.h"
#include "lib/remote/reply.h"
#include "lib/remote/sse.h"

struct load_how {
    const char *path;       /* path of the API, below the base of the server */
    size_t in_flight;       /* closed loop; 0: open loop */
    struct arrivals arrivals; /* open loop */
    double patience_s;      /* longest time without text or the end of an answer */
    size_t most;            /* bytes of an answer's text and number of its events, at most */
    const volatile sig_atomic_t *stop; /* a signal that came, or 0 */
};
struct load_request { /* begins as zeroes */
    const char *body;      /* set by the caller; JSON, borrowed */
    size_t n;
    struct reply reply;    /* its times count from admit_ns */
    struct err why;        /* code 0: reply is complete */
    int64_t admit_ns;      /* since the load began: sent (closed loop) or due (open loop) */
    int64_t e2e_ns;        /* from admit_ns to the event with the finish_reason, or without such an
                            * event to the last one */
    int was_sent;          /* 0: a signal came before the request was sent */
    /* while it runs: */
    struct http_exchange x;
    struct sse sse;
    struct buf whole;      /* a body that is no event stream */
    int64_t start_ns, news_ns; /* clock_ns() of admit_ns; of the last text, its end or [DONE] */
    size_t most;
};
/* Sends request[0..n-1] and waits for all answers. *begin_ns = clock_ns() when the load began.
 * *makespan_ns = time from there to the end of the last answer. After a signal nothing more is
 * sent, and open requests are ended. */
void load_run(struct http *http, struct load_request *request, size_t n, const struct load_how *how,
              int64_t *begin_ns, int64_t *makespan_ns);
void load_free(struct load_request *request, size_t n);
