/* test-records.c - streams of records, and the parents that they name. The input of the reader is
 * memory: the linker sends input_open() and the like of this target here (--wrap, in the
 * Makefile). */
#include "lib/record/content.h"
#include "lib/record/json.h"
#include "lib/record/lineage.h"
#include "lib/record/rec.h"
#include "lib/base/archive/input.h"
#include "tests/fuzz/fuzz.h"

struct input { /* in place of the one in lib/base/archive/input.c */
    const char *bytes;
    size_t n;
};
static struct input whole, left;

struct input *__wrap_input_open(const char *path, const char *member, int64_t most, struct err *e);
ssize_t __wrap_input_read(struct input *in, char *to, size_t n);
int __wrap_input_failed(const struct input *in);
int __wrap_input_check(const struct input *in, struct err *e);
const char *__wrap_input_name(const struct input *in);
void __wrap_input_close(struct input *in);

struct input *__wrap_input_open(const char *path, const char *member, int64_t most, struct err *e)
{
    (void)path, (void)member, (void)most, (void)e;
    left = whole;
    return &left;
}

ssize_t __wrap_input_read(struct input *in, char *to, size_t n)
{
    n = n < in->n ? n : in->n;
    memcpy(to, in->bytes, n);
    in->bytes += n;
    in->n -= n;
    return (ssize_t)n;
}

int __wrap_input_failed(const struct input *in)
{
    return !in;
}

int __wrap_input_check(const struct input *in, struct err *e)
{
    return in ? 0 : err_set(e, EXIT_IO, "no input");
}

const char *__wrap_input_name(const struct input *in)
{
    return in ? "memory" : "";
}

void __wrap_input_close(struct input *in)
{
    in->n = 0;
}

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

static void as_stream(const char *bytes, size_t n)
{
    const char *path = "memory";
    struct err e = {0};
    whole = (struct input){bytes, n};
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
