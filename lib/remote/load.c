/* load.c - see load.h. One thread sends and receives, and only stores texts with their times of
 * arrival. Tokens are counted after the load (recount.h), because counting would delay it. */
#include "lib/remote/load.h"

#include <string.h>

#include "lib/base/clock.h"

/* Time between two checks for signals and silent servers. After [DONE] the server has this time to
 * end its answer, so that the connection can be used again. */
enum { LOOK_MS = 100 };

/* ---- an answer ---- */

static int take_event(void *ctx, const char *data, size_t n, struct err *e)
{
    struct load_request *r = ctx;
    const int had_ended = r->reply.stop != NULL;
    const size_t had = r->reply.text.len;
    const int64_t now = clock_ns();
    if (reply_event(&r->reply, data, n, now - r->start_ns, e))
        return -1;
    if (r->reply.text.len > had || (r->reply.stop && !had_ended) || r->reply.is_done)
        r->news_ns = now; /* an empty event is no progress */
    if (r->reply.events > r->most)
        return err_set(e, EXIT_BAD_DATA, "%zu events: more than the requested tokens allow",
                       r->reply.events);
    if (r->reply.text.len > r->most)
        return err_set(e, EXIT_BAD_DATA, "event %zu: more text than the requested tokens allow "
                       "(%zu bytes)", r->reply.events, r->reply.text.len);
    if (!had_ended)
        r->e2e_ns = now - r->start_ns;
    return 0;
}

static int take_bytes(void *ctx, const char *bytes, size_t n, int events, struct err *e)
{
    struct load_request *r = ctx;
    if (events)
        return sse_feed(&r->sse, bytes, n, take_event, r, e);
    buf_put(&r->whole, bytes, n);
    return r->whole.len > SSE_EVENT ? err_set(e, EXIT_BAD_DATA, "an answer of more than %d bytes",
                                              SSE_EVENT)
                                    : 0;
}

static void send(struct http *h, struct load_request *r, const struct load_how *how, int64_t now)
{
    r->was_sent = 1;
    r->news_ns = now;
    r->most = how->most;
    r->x = (struct http_exchange){.path = how->path, .body = r->body, .n = r->n,
                                  .take = take_bytes, .ctx = r};
    http_start(h, &r->x);
}

/* Ends an exchange: takes the rest of the answer, and checks that the answer is complete. */
static void settle(struct load_request *r)
{
    struct err fault = {0};
    if (r->whole.len && !r->x.why.code)
        take_event(r, r->whole.data, r->whole.len, &fault);
    if (r->x.why.code)
        r->why = r->x.why;
    else if (fault.code || reply_check(&r->reply, &fault))
        r->why = fault;
    if (r->why.code && r->reply.n && r->x.status)
        err_prefix(&r->why, "after %zu emissions", r->reply.n);
    buf_free(&r->whole);
    buf_free(&r->x.refusal);
    sse_free(&r->sse);
}

/* ---- the load ---- */

struct load { /* a load at work; requests from `first` to `next` may be open */
    struct http *http;
    struct load_request *v;
    size_t n, first, next, open;
    const struct load_how *how;
    int64_t begin_ns, due_ns;
};

static int has_stopped(const struct load *l)
{
    return l->how->stop && *l->how->stop;
}

/* Sends what may be sent now. Returns the milliseconds until the next one is due, LOOK_MS at
 * most. */
static int64_t send_due(struct load *l)
{
    while (l->next < l->n && !has_stopped(l)) {
        struct load_request *r = &l->v[l->next];
        const int64_t now = clock_ns();
        if (l->how->in_flight ? l->open >= l->how->in_flight : now < l->begin_ns + l->due_ns)
            break;
        r->start_ns = l->how->in_flight ? now : l->begin_ns + l->due_ns;
        r->admit_ns = r->start_ns - l->begin_ns;
        send(l->http, r, l->how, now);
        l->open++;
        l->next++;
        l->due_ns = arrivals_due(&l->how->arrivals, l->next, l->due_ns);
    }
    if (l->how->in_flight || l->next == l->n)
        return LOOK_MS;
    const int64_t ms = (l->begin_ns + l->due_ns - clock_ns()) / 1000000;
    return ms < 0 ? 0 : ms < LOOK_MS ? ms : LOOK_MS;
}

/* Ends an exchange after [DONE], if the server does not end it itself. */
static void end_done(struct http *h, struct load_request *r, int64_t now)
{
    if (now - r->news_ns > LOOK_MS * INT64_C(1000000))
        http_stop(h, &r->x, NULL);
}

/* Settles requests that are over, and ends those that say nothing for too long. */
static void look(struct load *l)
{
    const int64_t now = clock_ns(), patience = (int64_t)(l->how->patience_s * 1e9);
    for (size_t i = l->first; i < l->next; i++) {
        struct load_request *r = &l->v[i];
        if (!r->x.take)
            continue;
        if (!r->x.is_over && has_stopped(l))
            http_stop(l->http, &r->x, "interrupted");
        else if (!r->x.is_over && r->reply.is_done)
            end_done(l->http, r, now);
        else if (!r->x.is_over && now - r->news_ns > patience)
            http_stop(l->http, &r->x, "no text within the time of --timeout: the server hangs");
        if (!r->x.is_over)
            continue;
        settle(r);
        r->x.take = NULL;
        l->open--;
    }
    while (l->first < l->next && !l->v[l->first].x.take)
        l->first++;
}

void load_run(struct http *h, struct load_request *v, size_t n, const struct load_how *how,
              int64_t *begin_ns, int64_t *makespan_ns)
{
    struct load l = {.http = h, .v = v, .n = n, .how = how, .begin_ns = clock_ns()};
    while ((l.next < n && !has_stopped(&l)) || l.open) {
        http_wait(h, send_due(&l));
        look(&l);
    }
    *begin_ns = l.begin_ns;
    *makespan_ns = 0;
    for (size_t i = 0; i < n; i++) {
        const int64_t end = v[i].admit_ns + v[i].e2e_ns;
        *makespan_ns = end > *makespan_ns ? end : *makespan_ns;
    }
}

void load_free(struct load_request *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        reply_free(&v[i].reply);
}
