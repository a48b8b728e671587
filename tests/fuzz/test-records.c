/* test-records.c - streams of records, and the parents that they name. */
#include "lib/record/content.h"
#include "lib/record/json.h"
#include "lib/record/lineage.h"
#include "lib/record/rec.h"
#include "tests/fuzz/memory.h"

static int fuzz_seed(size_t i, struct buf *to)
{
    static const char *const file[] = {
        "tests/fixtures/plot-metric.ndjson", "tests/fixtures/plot-quality.ndjson",
        "data/prompts/human.ndjson"};
    static const char own[] =
        "{\"schema\":\"crossover/1\",\"kind\":\"meta\",\"run\":\"local\",\"inputs\":[]}\n"
        "{\"kind\":\"generation\",\"id\":\"a\",\"status\":\"ok\",\"point\":\"x\","
        "\"block_length\":4,\"commit_tokens\":[1,3,2,2],\"token_ids\":[1,2]}\n";
    enum { FILES = sizeof file / sizeof *file };
    if (i < FILES)
        fuzz_take(file[i], 500, to);
    else if (i == FILES)
        buf_text(to, own);
    return to->len > 0;
}

static void as_stream(const char *bytes, size_t n)
{
    const char *path = MEMORY_FOLDER;
    struct err e = {0};
    memory_put(0, path, bytes, n);
    struct rec_reader *r = rec_read_open(&path, 1, &e);
    int got = 1;
    if (!r)
        fuzz_check_refused(&e);
    while (r && (got > 0 || e.code == EXIT_BAD_DATA)) {
        json_t *j;
        e = (struct err){0};
        got = rec_read(r, &j, &e);
        if (got < 0)
            fuzz_check_refused(&e);
        if (got > 0) {
            /* another order and other escapes */
            char *text = json_dumps(j, JSON_SORT_KEYS | JSON_ENSURE_ASCII |
                                           JSON_REAL_PRECISION(17));
            json_t *copy = json_strict(text, strlen(text), NULL);
            fuzz_check(json_equal(j, copy) && content_of_record(j) == content_of_record(copy));
            json_decref(copy);
            free(text);
        }
        json_decref(j);
    }
    rec_read_close(r);
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
    as_stream(bytes, n);
    as_lineage(bytes, n);
}

FUZZ_TARGET("records", 200)
