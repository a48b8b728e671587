/* take.c - the reading loop of the tools that reduce records; see take.h. Only an input or output
 * that fails ends the loop. */
#include "lib/analysis/records/take.h"

#include <string.h>

#include "lib/analysis/records/broken.h"
#include "lib/analysis/records/identity.h"
#include "lib/record/repeats.h"

static int is_known(const char *kind)
{
    static const char *const known[] = {"meta", "end", "parent", "prompt", "generation", "metric",
                                        "times", "quality", "front", "crossover", "suggest",
                                        "train", "roofline", "idle", ""};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(kind, known[i]))
            return 1;
    return 0;
}

/* Takes one record. Returns -1 with *bad filled if the record is refused, or with *e filled if the
 * output fails. */
static int take_one(struct take *take, struct repeats *seen, struct rec_writer *out, take_fn *fn,
                    void *ctx, const json_t *record, struct err *bad, struct err *e)
{
    const char *kind = rec_kind(record);
    take->failed += rec_failures(record);
    if (!strcmp(kind, "error"))
        return 0;
    if (!is_known(kind) && !(take->also && !strcmp(kind, take->also)))
        return rec_pass(out, record, e);
    if (take->per_run && (!strcmp(kind, "meta") || !strcmp(kind, "parent"))) {
        const struct repeats fresh = {.dropped = seen->dropped};
        repeats_free(seen);
        *seen = fresh;
    }
    int got = repeats_take(seen, record, bad);
    take->unsound |= got < 0;
    if (got == 0 && (got = fn(ctx, record, bad)) > 0)
        take->taken++;
    return got < 0 ? -1 : 0;
}

/* Writes an error record for a malformed line or record. */
static int note_bad(struct take *take, struct rec_reader *in, struct rec_writer *out,
                    const struct log *log, const json_t *record, const struct err *bad,
                    struct err *e)
{
    const char *where = rec_where(in);
    struct err placed = *bad;
    take->bad++;
    take->unable += bad->code == EXIT_FAILED_RECORDS;
    take->failed++;
    broken_place(&placed, where);
    if (take->bad <= REC_BAD_SAID)
        log_error(log, "%s", placed.text);
    return rec_bad(out, bad, where, json_object_get(record, "id"), e);
}

int take_all(struct take *take, struct rec_reader *in, struct rec_writer *out,
             const struct log *log, int64_t limit, take_fn *fn, void *ctx, struct err *e)
{
    struct repeats seen = {0};
    struct identity identity = {0};
    int rc = 0;
    while (!rc && (!limit || take->taken < limit)) {
        struct err bad = {0};
        json_t *record;
        int got = rec_read(in, &record, &bad);
        if (got == 0)
            break;
        int failed = got < 0 || identity_fits(&identity, record, in, &bad) ||
                     identity_check(&identity, record, in, e) ||
                     take_one(take, &seen, out, fn, ctx, record, &bad, e);
        if (failed && (bad.code == EXIT_BAD_DATA || bad.code == EXIT_FAILED_RECORDS))
            rc = note_bad(take, in, out, log, record, &bad, e);
        else if (failed)
            rc = err_set(e, bad.code, "%s", bad.text); /* keeps an error that *e has */
        json_decref(record);
    }
    take->unsound |= rec_read_unsound(in);
    take->repeats = out->repeats = seen.dropped;
    json_decref(out->inputs);
    out->inputs = rec_read_inputs(in);
    repeats_free(&seen);
    if (identity.weights.unnamed)
        log_warn(log, "W043", WEIGHTS_UNNAMED, (long long)identity.weights.unnamed);
    identity_free(&identity);
    return rc;
}

int take_verdict(const struct take *take, const struct log *log, int64_t max_failed)
{
    if (take->repeats)
        log_note(log, "%lld identical records were left out", (long long)take->repeats);
    if (take->bad > REC_BAD_SAID)
        log_error(log, "and %lld more bad records like these",
                  (long long)(take->bad - REC_BAD_SAID));
    if (take->failed <= max_failed)
        return EXIT_OK;
    log_error(log, "%lld failed records, %lld allowed by --max-failed", (long long)take->failed,
              (long long)max_failed);
    return take->unsound || !(take->taken || take->unable) ? EXIT_BAD_DATA : EXIT_FAILED_RECORDS;
}
