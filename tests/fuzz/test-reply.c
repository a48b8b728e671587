/* test-reply.c - feeds bytes of a server as an event stream, cut anywhere: an answer whose
 * emissions add up to its text, or a refusal; and files of other benchmarks as records. */
#include "tests/fuzz/fuzz.h"

#include "lib/record/rec.h"
#include "lib/remote/imported.h"
#include "lib/remote/recount.h"
#include "lib/remote/sse.h"

static int take(void *ctx, const char *data, size_t n, struct err *e)
{
    struct reply *r = ctx;
    return reply_event(r, data, n, (int64_t)r->events, e);
}

/* The stream at once and byte by byte must give the same answer or the same refusal. */
static void check_reply(const char *bytes, size_t n)
{
    struct reply a = {0}, b = {0};
    struct sse s = {0}, t = {0};
    struct err x = {0}, y = {0};
    struct recount c;
    int bad = sse_feed(&s, bytes, n, take, &a, &x), worse = 0;
    for (size_t i = 0; i < n && !worse; i++)
        worse = sse_feed(&t, bytes + i, 1, take, &b, &y);
    fuzz_check(bad == worse && !strcmp(x.text, y.text) && a.text.len == b.text.len);
    if (bad)
        fuzz_check_refused(&x);
    for (size_t i = 0; i < a.n; i++)
        fuzz_check(a.emit[i].end > (i ? a.emit[i - 1].end : 0) && a.emit[i].end <= a.text.len);
    fuzz_check(bad || !a.n || a.emit[a.n - 1].end == a.text.len);
    struct err why = {0};
    if (!bad && !reply_check(&a, &why) && !recount_answer(&c, &a, NULL, &why)) {
        fuzz_check(c.tokens >= 0 && c.retokenized == -1);
        recount_free(&c);
    }
    reply_free(&a);
    reply_free(&b);
    sse_free(&s);
    sse_free(&t);
}

static int take_record(void *ctx, json_t *record, struct err *e)
{
    int *n = ctx;
    (void)e;
    fuzz_check(rec_number(record, "e2e_ns") >= 0 && rec_text(record, "stack"));
    fuzz_check(!(rec_number(record, "ttft_ns") > rec_number(record, "e2e_ns")));
    json_decref(record);
    ++*n;
    return 0;
}

static int take_bad(void *ctx, const struct err *why, const char *where, const json_t *id,
                    struct err *e)
{
    (void)ctx, (void)id, (void)e;
    fuzz_check(why->code && *why->text && *where);
    return 0;
}

static void check_import(const char *bytes, size_t n)
{
    int records = 0;
    int64_t skipped = 0;
    struct err e = {0};
    const struct imported_take to = {&records, take_record, take_bad};
    if (imported_read(fuzz_file(bytes, n), &(struct imported_how){0}, &to, &skipped, &e))
        fuzz_check_refused(&e);
}

static int fuzz_seed(size_t i, struct buf *to)
{
    static const char *const seeds[] = {
        "data: {\"choices\":[{\"text\":\"a \\u20ac\",\"finish_reason\":null}]}\n\n"
        "data:{\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"stop\"}]}\r\n\r\n"
        ": x\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":3}}\n\n"
        "data: [DONE]\n\n",
        "data: {\"choices\":[{\"delta\":{\"reasoning_content\":null,\"reasoning\":\"r\"}}]}\n\n",
        "data: {\"error\":{\"message\":\"no\"}}\n\n",
        "{\"duration\":2,\"completed\":1,\"model_id\":\"a/b\",\"ttfts\":[0.5,0],"
        "\"itls\":[[0.25],[]],"
        "\"output_lens\":[2,0],\"input_lens\":[7,1],\"errors\":[\"\",\"x\"],\"start_times\":[3,4]}",
        "{\"metadata\":{\"request_start_ns\":1,\"request_end_ns\":9000000},\"metrics\":"
        "{\"request_latency\":{\"value\":4,\"unit\":\"ms\"},"
        "\"time_to_first_token\":{\"value\":1,\"unit\":\"ms\"},"
        "\"inter_chunk_latency\":{\"value\":[1,2],\"unit\":\"ms\"},\"output_sequence_length\":"
        "{\"value\":3}},\"error\":null}\n{\"metadata\":{},\"metrics\":null,\"error\":{}}\n",
        "[{\"n_gen\":8,\"n_prompt\":0,\"samples_ns\":[5,6],\"model_filename\":\"a\","
        "\"n_threads\":2}]"};
    if (i >= sizeof seeds / sizeof *seeds)
        return 0;
    buf_text(to, seeds[i]);
    return 1;
}

static void fuzz_one(const char *bytes, size_t n)
{
    check_reply(bytes, n);
    check_import(bytes, n);
}

FUZZ_TARGET("reply", 400)
