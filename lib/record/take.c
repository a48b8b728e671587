/* take.c - the loop over records that every reducing tool has; see take.h.
 *
 * A record that is bad costs itself alone: it becomes an error record in the output, is counted,
 * and the next one is read. Only an input that ends before its end, or an output that cannot be
 * written, stops the loop.
 */
#include "lib/record/take.h"

#include <string.h>

static int is_known(const char *kind)
{
    static const char *const known[] = {"meta", "end", "parent", "prompt", "generation", "metric",
                                        "quality", "front", "crossover", "suggest", "train",
                                        "roofline", "idle", ""};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(kind, known[i]))
            return 1;
    return 0;
}

/* Steals the record. -1 with bad->code: malformed; -1 without: *e filled. */
static int one(struct take *t, struct rec_writer *out, take_fn *fn, void *ctx, json_t *record,
               struct err *bad, struct err *e)
{
    const char *kind = rec_kind(record);
    int got = 0;
    if (!strcmp(kind, "error"))
        t->failed++;
    else if (!is_known(kind))
        got = rec_pass(out, record, e);
    else if ((got = fn(ctx, record, bad)) > 0)
        t->taken++;
    json_decref(record);
    return got < 0 ? -1 : 0;
}

int take_all(struct take *t, struct rec_reader *in, struct rec_writer *out, const struct log *log,
             int64_t limit, take_fn *fn, void *ctx, struct err *e)
{
    while (!limit || t->taken < limit) {
        struct err bad = {0};
        json_t *record;
        int got = rec_read(in, &record, &bad);
        if (got == 0)
            break;
        if (got > 0 && !one(t, out, fn, ctx, record, &bad, e))
            continue;
        if (!bad.code)
            return -1;
        if (bad.code != EXIT_BAD_DATA)
            return err_set(e, bad.code, "%s", bad.text);
        t->bad++;
        t->failed++;
        const char *where = rec_where(in);
        int says = !strncmp(bad.text, where, strlen(where));
        log_note(log, "%s%s%s", says ? "" : where, says ? "" : ": ", bad.text);
        if (rec_error(out, &bad, rec_where(in), e))
            return -1;
    }
    return 0;
}

int take_verdict(const struct take *t, const struct log *log, int64_t max_failed)
{
    if (t->failed <= max_failed)
        return EXIT_OK;
    log_note(log, "%lld failed records, %lld allowed by --max-failed", (long long)t->failed,
             (long long)max_failed);
    return t->bad ? EXIT_BAD_DATA : EXIT_FAILED_RECORDS;
}
