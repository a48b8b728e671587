/* test-records.c - streams of records: read plainly, unchanged and with lists apart they are the
 * same stream; and lines that are only looked through. */
#include "lib/record/content.h"
#include "lib/record/kept.h"
#include "lib/record/lineage.h"
#include "lib/record/rec.h"
#include "tests/fuzz/fuzz.h"

static int fuzz_seed(size_t i, struct buf *to)
{
    static const char *const file[] = {
        "tests/fixtures/measure-generation.ndjson", "tests/fixtures/plot-metric.ndjson",
        "tests/fixtures/plot-quality.ndjson", "data/prompts/human.ndjson"};
    static const char own[] =
        "{\"schema\":\"crossover/1\",\"kind\":\"meta\",\"run\":\"local\",\"inputs\":[]}\n"
        "{\"kind\":\"generation\",\"id\":\"a\",\"status\":\"ok\",\"point\":\"x\","
        "\"block_length\":4,\"commit_tokens\":[1,3,2,2],\"token_ids\":[1,2]}\n";
    enum { FILES = sizeof file / sizeof *file };
    if (i < FILES)
        fuzz_take(file[i], 2048, to);
    else if (i == FILES)
        buf_text(to, own);
    return to->len > 0;
}

/* A reader of one file of the given kind. */
static struct rec_reader *open_as(const char *path, int kind)
{
    struct err e = {0};
    struct rec_reader *r = rec_read_open(&path, 1, &e);
    if (!r)
        fuzz_check_refused(&e);
    if (r && kind == 1)
        rec_read_unchanging(r);
    if (r && kind == 2)
        rec_read_numbers(r);
    return r;
}

/* The next record of each of three readers is the same one. 0: the end. */
static int same_next(struct rec_reader *const r[3])
{
    json_t *j[3] = {0};
    struct err e[3] = {{0}};
    int got[3];
    for (int i = 0; i < 3; i++)
        if ((got[i] = rec_read(r[i], &j[i], &e[i])) < 0)
            fuzz_check_refused(&e[i]);
    fuzz_check(got[0] == got[1] && got[0] == got[2]);
    fuzz_check(!strcmp(e[0].text, e[1].text) && !strcmp(e[0].text, e[2].text));
    if (got[0] > 0) {
        fuzz_check(json_equal(j[0], j[1]) && content_of_record(j[0]) == rec_read_content(r[1]));
        fuzz_check(rec_read_content(r[1]) == rec_read_content(r[2]));
        for (int i = 0; i < 3; i++)
            json_decref(j[i]);
    }
    return got[0] > 0 || (got[0] < 0 && e[0].code == EXIT_BAD_DATA);
}

static void as_stream(const char *path)
{
    struct rec_reader *r[3];
    for (int i = 0; i < 3; i++)
        r[i] = open_as(path, i);
    fuzz_check(!r[0] == !r[1] && !r[0] == !r[2]);
    while (r[0] && same_next(r))
        ;
    for (int i = 0; i < 3; i++)
        rec_read_close(r[i]);
}

/* Lines kept by their members alone. */
static void as_kept(const char *bytes, size_t n)
{
    struct kept_list l = {0};
    struct kept k;
    int64_t seen = 0;
    for (size_t at = 0; at < n;) {
        const char *end = memchr(bytes + at, '\n', n - at);
        size_t len = end ? (size_t)(end - bytes) - at : n - at;
        kept_add(&l, bytes + at, len);
        at += len + 1;
    }
    while (kept_next(&l, &k)) {
        for (int m = 0; m < KEPT_MEMBERS; m++) {
            kept_is(&k, (enum kept_member)m, "ok");
            kept_int(&k, (enum kept_member)m, -1);
            kept_number(&k, (enum kept_member)m);
            kept_equals(&k, (enum kept_member)m, NULL);
        }
        seen++;
    }
    fuzz_check(seen == l.records);
    kept_free(&l);
}

static void as_lineage(const char *bytes, size_t n)
{
    struct err e = {0};
    struct lineage *l = lineage_new();
    if (lineage_add(l, "x", bytes, n / 2, &e) ||
        lineage_add(l, "x", bytes + n / 2, n - n / 2, &e) || lineage_end(l, "x", &e))
        fuzz_check_refused(&e);
    fuzz_check(json_is_object(lineage_missing(l)));
    lineage_free(l);
}

static void fuzz_one(const char *bytes, size_t n)
{
    const char *path = fuzz_file(bytes, n);
    as_stream(path);
    as_kept(bytes, n);
    as_lineage(bytes, n);
}

FUZZ_TARGET("records", 200)
