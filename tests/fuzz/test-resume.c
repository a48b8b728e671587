/* test-resume.c - an arbitrary work file of an interrupted process: a run that continues it ends in
 * a valid stream. */
#include "lib/record/rec.h"
#include "tests/fuzz/fuzz.h"

#define START "{\"schema\":\"crossover/1\",\"kind\":\"meta\",\"run\":\"local\",\"seed\":7}\n"
#define RECORD(id)                                                                              \
    "{\"schema\":\"crossover/1\",\"kind\":\"quality\",\"run\":\"local\",\"id\":\"" id "\"}\n"

static int fuzz_seed(size_t i, struct buf *to)
{
    static const char *const text[] = {
        START RECORD("a") RECORD("b"),
        START RECORD("a") RECORD("b") "{\"schema\":\"crossover/1\",\"kind\":\"er",
        START RECORD("a") "{\"kind\":\"error\",\"message\":\"m\",\"fatal\":true}\n" RECORD("b"),
        START RECORD("a") "{\"schema\":\"crossover/1\",\"kind\":\"end\",\"run\":\"local\"}\n",
    };
    if (i < sizeof text / sizeof *text)
        buf_text(to, text[i]);
    return to->len > 0;
}

/* Goes through the same work again, as score-exact would. -1: refused. */
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
    resume_hash(r, &h);
    hash_free(h);
    resume_free(r);
    out_abandon(&o);
    return 0;
}

static void fuzz_one(const char *bytes, size_t n)
{
    struct err e = {0};
    struct common c = COMMON_DEFAULTS;
    struct buf work = fuzz_part(&bytes, &n);
    fuzz_put(".run.ndjson.tmp", &work);
    c.output = files_at("run.ndjson");
    if (go_on(&c, &e))
        fuzz_check_refused(&e);
    unlink(files_at(".run.ndjson.tmp"));
    buf_free(&work);
}

FUZZ_TARGET("resume", 300)
