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
    struct load_request *request = ctx;
    const int had_ended = request->reply.stop != NULL;
    const size_t had = request->reply.text.len;
    const int64_t now = clock_ns();
    if (reply_event(&request->reply, data, n, now - request->start_ns, e))
        return -1;
    if (request->reply.text.len > had || (request->reply.stop && !had_ended) ||
        request->reply.is_done)
        request->news_ns = now; /* an empty event is no progress */
    if (request->reply.events > request->most)
        return err_set(e, EXIT_BAD_DATA, "%zu events: more than the requested tokens allow",
                       request->reply.events);
    if (request->reply.text.len > request->most)
        return err_set(e, EXIT_BAD_DATA, "event %zu: more text than the requested tokens allow "
                       "(%zu bytes)", request->reply.events, request->reply.text.len);
    if (!had_ended)
        request->e2e_ns = now - request->start_ns;
    return 0;
}

static int take_bytes(void *ctx, const char *bytes, size_t n, int events, struct err *e)
{
    struct load_request *request = ctx;
    if (events)
        return sse_feed(&request->sse, bytes, n, take_event, request, e);
    buf_put(&request->whole, bytes, n);
    return request->whole.len > SSE_EVENT ? err_set(e, EXIT_BAD_DATA,
                                                    "an answer of more than %d bytes", SSE_EVENT)
                                          : 0;
}

static void send(struct http *http, struct load_request *request, const struct load_how *how,
                 int64_t now)
{
    request->was_sent = 1;
    request->news_ns = now;
    request->most = how->most;
    request->x = (struct http_exchange){.path = how->path, .body = request->body, .n = request->n,
                                        .take = take_bytes, .ctx = request};
    http_start(http, &request->x);
}

/* Ends an exchange: takes the rest of the answer, and checks that the answer is complete. */
static void settle(struct load_request *request)
{
    struct err fault = {0};
    if (request->whole.len && !request->x.why.code)
        take_event(request, request->whole.data, request->whole.len, &fault);
    if (request->x.why.code)
        request->why = request->x.why;
    else if (fault.code || reply_check(&request->reply, &fault))
        request->why = fault;
    if (request->why.code && request->reply.n && request->x.status)
        err_prefix(&request->why, "after %zu emissions", request->reply.n);
    buf_free(&request->whole);
    buf_free(&request->x.refusal);
    sse_free(&request->sse);
}

/* ---- the load ---- */

struct load { /* a load at work; requests from `first` to `next` may be open */
    struct http *http;
    struct load_request *v;
    size_t n, first, next, open;
    const struct load_how *how;
    int64_t begin_ns, due_ns;
};

static int has_stopped(const struct load *load)
{
    return load->how->stop && *load->how->stop;
}

/* Sends the requests that may be sent now. Returns the milliseconds until the next request is due,
 * LOOK_MS at most. */
static int64_t send_due(struct load *load)
{
    while (load->next < load->n && !has_stopped(load)) {
        struct load_request *request = &load->v[load->next];
        const int64_t now = clock_ns();
        if (load->how->in_flight ? load->open >= load->how->in_flight
                                 : now < load->begin_ns + load->due_ns)
            break;
        request->start_ns = load->how->in_flight ? now : load->begin_ns + load->due_ns;
        request->admit_ns = request->start_ns - load->begin_ns;
        send(load->http, request, load->how, now);
        load->open++;
        load->next++;
        load->due_ns = arrivals_due(&load->how->arrivals, load->next, load->due_ns);
    }
    if (load->how->in_flight || load->next == load->n)
        return LOOK_MS;
    const int64_t ms = (load->begin_ns + load->due_ns - clock_ns()) / 1000000;
    return ms < 0 ? 0 : ms < LOOK_MS ? ms : LOOK_MS;
}

/* Ends an exchange after [DONE], if the server does not end it itself. */
static void end_done(struct http *http, struct load_request *request, int64_t now)
{
    if (now - request->news_ns > LOOK_MS * INT64_C(1000000))
        http_stop(http, &request->x, NULL);
}

/* Settles requests that are over, and ends requests whose server sends nothing for too long. */
static void look(struct load *load)
{
    const int64_t now = clock_ns(), patience = (int64_t)(load->how->patience_s * 1e9);
    for (size_t i = load->first; i < load->next; i++) {
        struct load_request *request = &load->v[i];
        if (!request->x.take)
            continue;
        if (!request->x.is_over && has_stopped(load))
            http_stop(load->http, &request->x, "interrupted");
        else if (!request->x.is_over && request->reply.is_done)
            end_done(load->http, request, now);
        else if (!request->x.is_over && now - request->news_ns > patience)
            http_stop(load->http, &request->x,
                      "no text within the time of --timeout: the server hangs");
        if (!request->x.is_over)
            continue;
        settle(request);
        request->x.take = NULL;
        load->open--;
    }
    while (load->first < load->next && !load->v[load->first].x.take)
        load->first++;
}

void load_run(struct http *http, struct load_request *request, size_t n, const struct load_how *how,
              int64_t *begin_ns, int64_t *makespan_ns)
{
    struct load load = {.http = http, .v = request, .n = n, .how = how, .begin_ns = clock_ns()};
    while ((load.next < n && !has_stopped(&load)) || load.open) {
        http_wait(http, send_due(&load));
        look(&load);
    }
    *begin_ns = load.begin_ns;
    *makespan_ns = 0;
    for (size_t i = 0; i < n; i++) {
        const int64_t end = request[i].admit_ns + request[i].e2e_ns;
        *makespan_ns = end > *makespan_ns ? end : *makespan_ns;
    }
}

void load_free(struct load_request *request, size_t n)
{
    for (size_t i = 0; i < n; i++)
        reply_free(&request[i].reply);
}
