/* dataset.c - prompts from files; see dataset.h for the formats.
 *
 * One loop: the next unit (a JSON text or a paragraph) is cut from the stream, turned into an
 * object {id?, text, ...}, and finished with id and source. A generated id has the number of
 * its unit, so it does not depend on the choice of records. A table (by its name) is refused: its
 * rows would become lines of paragraphs. */
#include "lib/text/dataset.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/text/dataset/object.h"
#include "lib/base/archive/input.h"
#include "lib/text/split.h"

struct span { int64_t from, to; };

struct dataset {
    struct dataset_options o;
    struct input *in;
    const char *format; /* NULL until the first unit shows it */
    char *base;         /* name without folders: "wiki.zip:wikitext-2-raw/wiki.test.raw" */
    char *stem;         /* for ids: "wiki.test" */
    const char *table;  /* "csv" or "tsv", by the name; NULL: neither */
    json_t *id;         /* id of the last broken record, or NULL */
    struct split split;
    struct buf unit;
    int64_t line, at, units, passed_over;
    struct span *made; /* units whose id is generated, in order */
    size_t spans, cap;
    int broken, done;
};

/* ---- opening ---- */

static const char *after_slash(const char *s)
{
    const char *slash = strrchr(s, '/');
    return slash ? slash + 1 : s;
}

/* "data/x.zip:raw/wiki.test.raw" -> "x.zip:raw/wiki.test.raw" and "wiki.test". */
static void set_names(struct dataset *d, const char *path)
{
    const char *name = input_name(d->in);
    d->base = mem_text(!strcmp(path, "-") ? "stdin" : name + (after_slash(path) - path));
    d->stem = mem_text(after_slash(d->base));
    static const char *const packed[] = {".gz", ".bz2", ".xz", ".zst"};
    size_t n = strlen(d->stem);
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++) {
        size_t m = strlen(packed[i]);
        if (n > m && !strcmp(d->stem + n - m, packed[i]))
            d->stem[n -= m] = 0;
    }
    char *dot = strrchr(d->stem, '.');
    if (!dot || dot == d->stem)
        return;
    d->table = !strcasecmp(dot, ".csv") ? "csv" : !strcasecmp(dot, ".tsv") ? "tsv" : NULL;
    *dot = 0;
}

struct dataset *dataset_open(const char *path, const struct dataset_options *o, struct err *e)
{
    struct dataset *d = mem_zero(1, sizeof *d);
    d->o = *o;
    d->in = input_open(path, o->member, o->max_bytes, e);
    if (!d->in) {
        free(d);
        return NULL;
    }
    if (strcmp(o->format, "auto"))
        d->format = o->format;
    set_names(d, path);
    split_start(&d->split, input_file(d->in), (size_t)o->max_line);
    return d;
}

void dataset_close(struct dataset *d)
{
    if (!d)
        return;
    input_close(d->in);
    buf_free(&d->unit);
    json_decref(d->id);
    free(d->base);
    free(d->stem);
    free(d->made);
    free(d);
}

int dataset_broken(const struct dataset *d)
{
    return d->broken;
}

const char *dataset_name(const struct dataset *d)
{
    return input_name(d->in);
}

const char *dataset_note(const struct dataset *d)
{
    return input_note(d->in);
}

/* Notes that the id of this unit is generated. */
static void note_made(struct dataset *d)
{
    if (!d->spans || d->made[d->spans - 1].to + 1 < d->units) {
        MEM_GROW(d->made, d->spans, d->cap);
        d->made[d->spans++].from = d->units;
    }
    d->made[d->spans - 1].to = d->units;
}

int dataset_made(const struct dataset *d, const char *id)
{
    const size_t n = strlen(d->stem);
    if (strncmp(id, d->stem, n) || id[n] != '-' || id[n + 1] < '1' || id[n + 1] > '9' ||
        strspn(id + n + 1, "0123456789") != strlen(id + n + 1) || strlen(id + n + 1) > 18)
        return 0;
    const int64_t unit = strtoll(id + n + 1, NULL, 10);
    size_t lo = 0, hi = d->spans;
    while (lo < hi) {
        size_t middle = (lo + hi) / 2;
        if (d->made[middle].to < unit)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo < d->spans && d->made[lo].from <= unit;
}

int dataset_makes_id(const struct dataset *d)
{
    return d->spans && d->made[d->spans - 1].to == d->units;
}

int64_t dataset_line(const struct dataset *d)
{
    return d->line;
}

const json_t *dataset_id(const struct dataset *d)
{
    return d->id;
}

int64_t dataset_passed_over(const struct dataset *d)
{
    return d->passed_over;
}

/* ---- words ---- */

static int64_t count_words(const char *s, size_t n)
{
    int64_t words = 0;
    for (size_t i = 0; i < n; i++)
        words += !dataset_is_blank(s[i]) && (i == 0 || dataset_is_blank(s[i - 1]));
    return words;
}

static size_t cut_at(const char *s, size_t n, int64_t words)
{
    if (words == DATASET_HALF)
        words = (count_words(s, n) + 1) / 2;
    size_t i = 0;
    while (i < n && words > 0) {
        while (i < n && dataset_is_blank(s[i]))
            i++;
        while (i < n && !dataset_is_blank(s[i]))
            i++;
        words--;
    }
    return i;
}

/* ---- text formats ---- */

/* Appends one line without its end to d->unit. 1, 0 at the end, -1 over the limit. */
static int add_line(struct dataset *d)
{
    FILE *f = input_file(d->in);
    buf_reserve(&d->unit, 0);
    size_t start = d->unit.len;
    int c, any = 0, over = 0;
    while ((c = getc_unlocked(f)) != EOF) {
        any = 1;
        if (c == '\n')
            break;
        if (d->unit.len - start >= (size_t)d->o.max_line)
            over = 1;
        else
            buf_char(&d->unit, (char)c);
    }
    if (!any)
        return 0;
    d->at++;
    if (d->unit.len > start && d->unit.data[d->unit.len - 1] == '\r')
        d->unit.data[--d->unit.len] = 0;
    if (d->at == 1 && d->unit.len >= 3 && !memcmp(d->unit.data, "\xef\xbb\xbf", 3)) {
        d->unit.len -= 3;
        memmove(d->unit.data, d->unit.data + 3, d->unit.len + 1);
    }
    return over ? -1 : 1;
}

static int all_blank(const char *s, size_t n)
{
    while (n > 0 && dataset_is_blank(s[n - 1]))
        n--;
    return n == 0;
}

static int is_heading(const char *s, size_t n)
{
    while (n > 0 && dataset_is_blank(*s))
        s++, n--;
    while (n > 0 && dataset_is_blank(s[n - 1]))
        n--;
    return n >= 5 && s[0] == '=' && s[1] == ' ' && s[n - 1] == '=' && s[n - 2] == ' ';
}

/* Reads the next paragraph into d->unit; for wikitext it is one line. */
static int next_paragraph(struct dataset *d, struct err *e)
{
    buf_clear(&d->unit);
    for (;;) {
        size_t start = d->unit.len;
        int r = add_line(d);
        const char *s = d->unit.data ? d->unit.data + start : "";
        size_t n = d->unit.len - start;
        if (start == 0)
            d->line = d->at;
        if (r < 0 || d->unit.len > (size_t)d->o.max_line)
            return err_set(e, EXIT_BAD_DATA, "line or paragraph longer than %lld bytes",
                           (long long)d->o.max_line);
        if (r > 0 && !d->format && !all_blank(s, n))
            d->format = is_heading(s, n) ? "wikitext" : "text";
        int wiki = d->format && !strcmp(d->format, "wikitext");
        if (r == 0 || all_blank(s, n) || (wiki && is_heading(s, n))) {
            d->unit.len = start;
            if (d->unit.len && d->unit.data[d->unit.len - 1] == '\n')
                d->unit.len--;
            if (d->unit.len || r == 0)
                return d->unit.len > 0;
            continue;
        }
        if (wiki)
            return 1;
        buf_char(&d->unit, '\n');
    }
}

static enum dataset_piece refuse_table(struct dataset *d, struct err *e)
{
    const char *name = strchr(d->base, ':') ? after_slash(d->base) : input_name(d->in);
    d->broken = d->done = 1;
    d->line = 1;
    err_set(e, EXIT_BAD_DATA, "a table of %s-separated values; convert it first: mlr --i%s "
            "--ojsonl cat '%s' > out.jsonl (or say --format text)",
            *d->table == 'c' ? "comma" : "tab", d->table, name);
    return DATASET_BROKEN;
}

static enum dataset_piece from_paragraph(struct dataset *d, json_t *out, struct err *e)
{
    const char *s = d->unit.data;
    size_t n = d->unit.len;
    int wiki = !strcmp(d->format, "wikitext");
    int64_t words = d->o.split_set ? d->o.split_words : wiki ? DATASET_HALF : DATASET_NO_SPLIT;
    while (wiki && n > 0 && dataset_is_blank(*s))
        s++, n--;
    while (wiki && n > 0 && dataset_is_blank(s[n - 1]))
        n--;
    size_t cut = words == DATASET_NO_SPLIT ? n : cut_at(s, n, words);
    if (words != DATASET_NO_SPLIT && cut == n)
        return DATASET_SKIPPED; /* nothing is left for the reference */
    int bad = 0;
    if (memchr(s, 0, n))
        bad = err_set(e, EXIT_BAD_DATA, "a NUL byte in the text");
    else if (dataset_put(out, "text", s, cut) ||
             (cut < n && dataset_put(out, "reference", s + cut, n - cut)))
        bad = err_set(e, EXIT_BAD_DATA, "the text is not valid UTF-8");
    return bad ? DATASET_BROKEN : DATASET_KEPT;
}

/* ---- all ---- */

/* 1: JSON, by the first byte that is not white space. */
static int looks_json(struct dataset *d)
{
    FILE *f = input_file(d->in);
    int c = getc(f), bom = c == 0xef;
    if (bom) { /* 3 bytes, of which ungetc can return only one, so a mark is dropped here */
        (void)getc(f);
        (void)getc(f);
        c = getc(f);
    }
    while (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        d->at += c == '\n';
        d->split.at += c == '\n';
        c = getc(f);
    }
    if (c != EOF)
        ungetc(c, f);
    return c == '{' || c == '[';
}

static int reads_json(struct dataset *d)
{
    if (d->format)
        return strcmp(d->format, "text") && strcmp(d->format, "wikitext");
    if (d->units > 0)
        return 1; /* JSON whose first unit was broken */
    return looks_json(d);
}

/* id and source. */
static int finish(struct dataset *d, json_t *out, enum dataset_piece how, struct err *e)
{
    json_t *given = json_object_get(out, "id"), *id = dataset_as_text(given);
    if (given && !json_is_null(given) && !id)
        return err_set(e, EXIT_BAD_DATA, "id: expected a text or a number");
    if (!id || d->o.renumber) {
        json_decref(id);
        char *made = mem_format("%s-%lld", d->stem, (long long)d->units);
        id = json_string(made);
        if (id)
            note_made(d);
        else
            id = json_sprintf("%lld", (long long)d->units); /* a file name that is not UTF-8 */
        free(made);
    }
    if (json_object_set_new(out, "id", id))
        err_machine(__FILE__, __LINE__, "out of memory");
    if (json_string_length(id) == 0 || json_string_length(id) > 4096)
        return err_set(e, EXIT_BAD_DATA, "id: expected 1 to 4096 bytes");
    if (!json_object_get(out, "source")) {
        char *source = mem_format("%s%s", d->base, how == DATASET_ALPACA ? ":alpaca-input" : "");
        (void)dataset_put(out, "source", source, strlen(source));
        free(source);
    }
    return 0;
}

/* Cuts and converts one unit. */
static enum dataset_piece unit(struct dataset *d, json_t *out, struct err *e)
{
    int json = reads_json(d);
    if (!json && !d->format && d->table)
        return refuse_table(d, e);
    int r = json ? split_next(&d->split, &d->unit, e) : next_paragraph(d, e);
    if (json)
        d->line = d->split.line;
    if (r == 0)
        return DATASET_END;
    d->units++;
    if (r < 0) {
        d->broken = json && feof(input_file(d->in)); /* cut inside an object or array */
        return DATASET_BROKEN;
    }
    enum dataset_piece how =
        json ? dataset_from_json(&d->o, &d->format, d->unit.data, d->unit.len, out, e)
             : from_paragraph(d, out, e);
    int kept = how == DATASET_KEPT || how == DATASET_ALPACA;
    return !kept ? how : finish(d, out, how, e) ? DATASET_BROKEN : DATASET_KEPT;
}

int dataset_next(struct dataset *d, json_t **prompt, struct err *e)
{
    *prompt = NULL;
    while (!d->done) {
        json_t *out = json_pack("{s:n}", "id"); /* the first member */
        struct err why = {0};
        enum dataset_piece r = unit(d, out, &why);
        if (r == DATASET_KEPT) {
            *prompt = out;
            return 1;
        }
        json_decref(d->id);
        d->id = json_incref(json_object_get(out, "id"));
        json_decref(out);
        d->passed_over += r == DATASET_SKIPPED;
        struct err cut = {0};
        if (r == DATASET_END || ferror(input_file(d->in))) {
            d->done = 1;
            d->broken = input_check(d->in, &cut) != 0;
            if (d->broken)
                return err_set(e, cut.code, "%s", cut.text);
        }
        if (r == DATASET_BROKEN)
            return err_set(e, why.code, "%s:%lld: %s", input_name(d->in), (long long)d->line,
                           why.text);
    }
    return 0;
}
