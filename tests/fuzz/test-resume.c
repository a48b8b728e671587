/* test-resume.c - feeds an arbitrary work file of an interrupted process, with arbitrary sums in a
 * second file: a run that continues it ends in a valid stream. A NUL separates the two files. The
 * first byte says whether the sums are replaced by those of the work file. */
#include "lib/record/rec.h"
#include "lib/record/sums.h"
#include "tests/fuzz/fuzz.h"

#define START "{\"schema\":\"crossover/1\",\"kind\":\"meta\",\"run\":\"local\",\"seed\":7}\n"
#define RECORD(id)                                                                              \
    "{\"schema\":\"crossover/1\",\"kind\":\"quality\",\"run\":\"local\",\"id\":\"" id "\"}\n"

static int fuzz_seed(size_t i, struct buf *to)
{
    static const char *const text[] = {
        "y" START RECORD("a") RECORD("b"),
        "y" START RECORD("a") RECORD("b") "{\"schema\":\"crossover/1\",\"kind\":\"er",
        "y" START RECORD("a") "{\"kind\":\"error\",\"message\":\"m\",\"fatal\":true}\n" RECORD("b"),
        "n" START RECORD("a") "{\"schema\":\"crossover/1\",\"kind\":\"end\",\"run\":\"local\"}\n",
    };
    if (i < sizeof text / sizeof *text)
        buf_text(to, text[i]);
    return to->len > 0;
}

/* Computes the sums that a process would have left for these lines. */
static void seal(const struct buf *work, struct buf *sums)
{
    struct hash *h = hash_new();
    char sum[SUMS_BYTES + 1];
    for (size_t at = 0; at < work->len;) {
        const char *end = memchr(work->data + at, '\n', work->len - at);
        size_t n = end ? (size_t)(end - work->data) + 1 - at : work->len - at;
        hash_add(h, work->data + at, n);
        sums_format(h, sum);
        buf_text(sums, sum);
        at += n;
    }
    hash_free(h);
}

/* Does the work again, as score-exact would. Returns -1 if the work file is refused. */
static int go_on(const struct common *c, struct err *e)
{
    static const struct log silent = {.tool = "fuzz", .level = 0};
    const struct resume_wish wish = {.log = &silent};
    json_t *meta = json_pack("{s:s, s:s, s:s, s:i}", "schema", "crossover/1", "kind", "meta",
                             "run", "local", "seed", 7);
    struct out o;
    struct resume *r;
    int bad = resume_open(&r, &o, c, meta, &wish, e);
    json_decref(meta);
    if (bad)
        return -1;
    for (const json_t *k; (k = resume_next(r)); resume_take(r))
        fuzz_check(json_is_object(k));
    fuzz_check(!resume_left(r));
    struct hash *h = hash_new();
    bad = resume_hash(r, &h, e);
    hash_free(h);
    resume_free(r);
    out_abandon(&o);
    return bad;
}

static void fuzz_one(const char *bytes, size_t n)
{
    struct err e = {0};
    struct common c = COMMON_DEFAULTS;
    int sealed = n && *bytes == 'y';
    bytes += n > 0;
    n -= n > 0;
    struct buf work = fuzz_part(&bytes, &n), sums = fuzz_part(&bytes, &n);
    if (sealed)
        seal(&work, &sums);
    fuzz_put(".run.ndjson.tmp", &work);
    fuzz_put(".run.ndjson.tmp.sha256", &sums);
    c.output = files_at("run.ndjson");
    if (go_on(&c, &e))
        fuzz_check_refused(&e);
    fuzz_check(!*err_witness());
    unlink(files_at(".run.ndjson.tmp"));
    buf_free(&work);
    buf_free(&sums);
}

FUZZ_TARGET("resume", 300)
