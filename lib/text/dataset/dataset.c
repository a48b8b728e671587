/* dataset.c - reads prompts from files; see dataset.h for the formats.
 *
 * One loop: the next unit (a JSON text or a paragraph) is cut from the stream, turned into an
 * object {id?, text, ...}, and gets its id and source. A generated id has the number of the unit,
 * so it does not depend on the choice of records. A file named as a table is refused, because its
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
    struct buf lead; /* bytes of the first line that looks_json() read to find the format */
    int64_t line, at, units, passed_over;
    struct span *made; /* units whose id is generated, in order */
    size_t spans, cap;
    int broken, done;
};

/* ---- opening ---- */

static const char *after_slash(const char *text)
{
    const char *slash = strrchr(text, '/');
    return slash ? slash + 1 : text;
}

/* "data/x.zip:raw/wiki.test.raw" -> "x.zip:raw/wiki.test.raw" and "wiki.test". */
static void set_names(struct dataset *dataset, const char *path)
{
    const char *name = input_name(dataset->in);
    dataset->base = mem_text(!strcmp(path, "-") ? "stdin" : name + (after_slash(path) - path));
    dataset->stem = mem_text(after_slash(dataset->base));
    static const char *const packed[] = {".gz", ".bz2", ".xz", ".zst"};
    size_t n = strlen(dataset->stem);
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++) {
        size_t length = strlen(packed[i]);
        if (n > length && !strcmp(dataset->stem + n - length, packed[i]))
            dataset->stem[n -= length] = 0;
    }
    char *dot = strrchr(dataset->stem, '.');
    if (!dot || dot == dataset->stem)
        return;
    dataset->table = !strcasecmp(dot, ".csv") ? "csv" : !strcasecmp(dot, ".tsv") ? "tsv" : NULL;
    *dot = 0;
}

struct dataset *dataset_open(const char *path, const struct dataset_options *options, struct err *e)
{
    struct dataset *dataset = mem_zero(1, sizeof *dataset);
    dataset->o = *options;
    dataset->in = input_open(path, options->member, options->max_bytes, e);
    if (!dataset->in) {
        free(dataset);
        return NULL;
    }
    if (strcmp(options->format, "auto"))
        dataset->format = options->format;
    set_names(dataset, path);
    split_start(&dataset->split, input_file(dataset->in), (size_t)options->max_line);
    return dataset;
}

void dataset_close(struct dataset *dataset)
{
    if (!dataset)
        return;
    input_close(dataset->in);
    buf_free(&dataset->unit);
    buf_free(&dataset->lead);
    json_decref(dataset->id);
    free(dataset->base);
    free(dataset->stem);
    free(dataset->made);
    free(dataset);
}

int dataset_broken(const struct dataset *dataset)
{
    return dataset->broken;
}

const char *dataset_name(const struct dataset *dataset)
{
    return input_name(dataset->in);
}

const char *dataset_note(const struct dataset *dataset)
{
    return input_note(dataset->in);
}

/* Notes that the id of this unit is generated. */
static void note_made(struct dataset *dataset)
{
    if (!dataset->spans || dataset->made[dataset->spans - 1].to + 1 < dataset->units) {
        MEM_GROW(dataset->made, dataset->spans, dataset->cap);
        dataset->made[dataset->spans++].from = dataset->units;
    }
    dataset->made[dataset->spans - 1].to = dataset->units;
}

int dataset_made(const struct dataset *dataset, const char *id)
{
    const size_t n = strlen(dataset->stem);
    if (strncmp(id, dataset->stem, n) || id[n] != '-' || id[n + 1] < '1' || id[n + 1] > '9' ||
        strspn(id + n + 1, "0123456789") != strlen(id + n + 1) || strlen(id + n + 1) > 18)
        return 0;
    const int64_t unit = strtoll(id + n + 1, NULL, 10);
    size_t lo = 0, hi = dataset->spans;
    while (lo < hi) {
        size_t middle = (lo + hi) / 2;
        if (dataset->made[middle].to < unit)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo < dataset->spans && dataset->made[lo].from <= unit;
}

int dataset_makes_id(const struct dataset *dataset)
{
    return dataset->spans && dataset->made[dataset->spans - 1].to == dataset->units;
}

int64_t dataset_line(const struct dataset *dataset)
{
    return dataset->line;
}

const json_t *dataset_id(const struct dataset *dataset)
{
    return dataset->id;
}

int64_t dataset_passed_over(const struct dataset *dataset)
{
    return dataset->passed_over;
}

/* ---- words ---- */

static int64_t count_words(const char *text, size_t n)
{
    int64_t words = 0;
    for (size_t i = 0; i < n; i++)
        words += !dataset_is_blank(text[i]) && (i == 0 || dataset_is_blank(text[i - 1]));
    return words;
}

static size_t cut_at(const char *text, size_t n, int64_t words)
{
    if (words == DATASET_HALF)
        words = (count_words(text, n) + 1) / 2;
    size_t i = 0;
    while (i < n && words > 0) {
        while (i < n && dataset_is_blank(text[i]))
            i++;
        while (i < n && !dataset_is_blank(text[i]))
            i++;
        words--;
    }
    return i;
}

/* ---- text formats ---- */

/* Appends one line without its line end to dataset->unit. Returns 1; 0 at the end of the input; -1
 * if the line is longer than the limit. */
static int add_line(struct dataset *dataset)
{
    FILE *file = input_file(dataset->in);
    buf_reserve(&dataset->unit, 0);
    size_t start = dataset->unit.len;
    int byte, any = dataset->lead.len > 0, over = 0;
    buf_put(&dataset->unit, dataset->lead.data, dataset->lead.len);
    buf_clear(&dataset->lead);
    while ((byte = getc_unlocked(file)) != EOF) {
        any = 1;
        if (byte == '\n')
            break;
        if (dataset->unit.len - start >= (size_t)dataset->o.max_line)
            over = 1;
        else
            buf_char(&dataset->unit, (char)byte);
    }
    if (!any)
        return 0;
    dataset->at++;
    if (dataset->unit.len > start && dataset->unit.data[dataset->unit.len - 1] == '\r')
        dataset->unit.data[--dataset->unit.len] = 0;
    return over ? -1 : 1;
}

static int all_blank(const char *text, size_t n)
{
    while (n > 0 && dataset_is_blank(text[n - 1]))
        n--;
    return n == 0;
}

static int is_heading(const char *text, size_t n)
{
    while (n > 0 && dataset_is_blank(*text))
        text++, n--;
    while (n > 0 && dataset_is_blank(text[n - 1]))
        n--;
    return n >= 5 && text[0] == '=' && text[1] == ' ' && text[n - 1] == '=' && text[n - 2] == ' ';
}

/* Reads the next paragraph into dataset->unit; for wikitext it is one line. */
static int next_paragraph(struct dataset *dataset, struct err *e)
{
    buf_clear(&dataset->unit);
    for (;;) {
        size_t start = dataset->unit.len;
        int got = add_line(dataset);
        const char *text = dataset->unit.data ? dataset->unit.data + start : "";
        size_t n = dataset->unit.len - start;
        if (start == 0)
            dataset->line = dataset->at;
        if (got < 0 || dataset->unit.len > (size_t)dataset->o.max_line)
            return err_set(e, EXIT_BAD_DATA, "line or paragraph longer than %lld bytes",
                           (long long)dataset->o.max_line);
        if (got > 0 && !dataset->format && !all_blank(text, n))
            dataset->format = is_heading(text, n) ? "wikitext" : "text";
        int wiki = dataset->format && !strcmp(dataset->format, "wikitext");
        if (got == 0 || all_blank(text, n) || (wiki && is_heading(text, n))) {
            dataset->unit.len = start;
            if (dataset->unit.len && dataset->unit.data[dataset->unit.len - 1] == '\n')
                dataset->unit.len--;
            if (dataset->unit.len || got == 0)
                return dataset->unit.len > 0;
            continue;
        }
        if (wiki)
            return 1;
        buf_char(&dataset->unit, '\n');
    }
}

static enum dataset_piece refuse_table(struct dataset *dataset, struct err *e)
{
    const char *name = strchr(dataset->base, ':') ? after_slash(dataset->base)
                                                  : input_name(dataset->in);
    dataset->broken = dataset->done = 1;
    dataset->line = 1;
    err_set(e, EXIT_BAD_DATA, "a table of %s-separated values; convert it first: mlr --i%s "
            "--ojsonl cat '%s' > out.jsonl (or say --format text)",
            *dataset->table == 'c' ? "comma" : "tab", dataset->table, name);
    return DATASET_BROKEN;
}

static enum dataset_piece from_paragraph(struct dataset *dataset, json_t *out, struct err *e)
{
    const char *text = dataset->unit.data;
    size_t n = dataset->unit.len;
    int wiki = !strcmp(dataset->format, "wikitext");
    int64_t words = dataset->o.split_set ? dataset->o.split_words
                    : wiki               ? DATASET_HALF
                                         : DATASET_NO_SPLIT;
    while (wiki && n > 0 && dataset_is_blank(*text))
        text++, n--;
    while (wiki && n > 0 && dataset_is_blank(text[n - 1]))
        n--;
    size_t cut = words == DATASET_NO_SPLIT ? n : cut_at(text, n, words);
    if (words != DATASET_NO_SPLIT && cut == n)
        return DATASET_SKIPPED; /* nothing is left for the reference */
    int bad = 0;
    if (memchr(text, 0, n))
        bad = err_set(e, EXIT_BAD_DATA, "a NUL byte in the text");
    else if (dataset_put(out, "text", text, cut) ||
             (cut < n && dataset_put(out, "reference", text + cut, n - cut)))
        bad = err_set(e, EXIT_BAD_DATA, "the text is not valid UTF-8");
    return bad ? DATASET_BROKEN : DATASET_KEPT;
}

/* ---- units of all formats ---- */

/* 1: the input is JSON, judged by the first byte that is not white space. A byte order mark is
 * dropped. dataset->lead keeps the other bytes that were read of the first line that is not
 * blank. */
static int looks_json(struct dataset *dataset)
{
    static const char mark[] = "\xef\xbb\xbf";
    FILE *file = input_file(dataset->in);
    struct buf *lead = &dataset->lead;
    int byte = getc(file);
    while (byte != EOF && lead->len < 3 && byte == (unsigned char)mark[lead->len]) {
        buf_char(lead, (char)byte);
        byte = getc(file);
    }
    if (lead->len == 3)
        buf_clear(lead);
    const int is_text = lead->len > 0; /* another character that begins as the mark does */
    while (!is_text && (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r')) {
        dataset->at += byte == '\n';
        dataset->split.at += byte == '\n';
        if (byte == '\n')
            buf_clear(lead);
        else if (lead->len < (size_t)dataset->o.max_line)
            buf_char(lead, (char)byte);
        byte = getc(file);
    }
    if (byte != EOF)
        ungetc(byte, file);
    return !is_text && (byte == '{' || byte == '[');
}

static int reads_json(struct dataset *dataset)
{
    if (dataset->format)
        return strcmp(dataset->format, "text") && strcmp(dataset->format, "wikitext");
    if (dataset->units > 0)
        return 1; /* JSON whose first unit was broken */
    return looks_json(dataset);
}

/* Sets the members id and source. */
static int finish(struct dataset *dataset, json_t *out, enum dataset_piece how, struct err *e)
{
    json_t *given = json_object_get(out, "id"), *id = dataset_as_text(given);
    if (given && !json_is_null(given) && !id)
        return err_set(e, EXIT_BAD_DATA, "id: expected a text or a number");
    if (!id || dataset->o.renumber) {
        json_decref(id);
        char *made = mem_format("%s-%lld", dataset->stem, (long long)dataset->units);
        id = json_string(made);
        if (id)
            note_made(dataset);
        else /* a file name that is not UTF-8 */
            id = json_sprintf("%lld", (long long)dataset->units);
        free(made);
    }
    if (json_object_set_new(out, "id", id))
        err_machine(__FILE__, __LINE__, "out of memory");
    if (json_string_length(id) == 0 || json_string_length(id) > 4096)
        return err_set(e, EXIT_BAD_DATA, "id: expected 1 to 4096 bytes");
    if (!json_object_get(out, "source")) {
        char *source = mem_format("%s%s", dataset->base,
                                  how == DATASET_ALPACA ? ":alpaca-input" : "");
        (void)dataset_put(out, "source", source, strlen(source));
        free(source);
    }
    return 0;
}

/* Cuts and converts one unit. */
static enum dataset_piece unit(struct dataset *dataset, json_t *out, struct err *e)
{
    int json = reads_json(dataset);
    if (!json && !dataset->format && dataset->table)
        return refuse_table(dataset, e);
    int got = json ? split_next(&dataset->split, &dataset->unit, e) : next_paragraph(dataset, e);
    if (json)
        dataset->line = dataset->split.line;
    if (got == 0)
        return DATASET_END;
    dataset->units++;
    if (got < 0) {
        dataset->broken = json && feof(input_file(dataset->in)); /* cut inside an object or array */
        return DATASET_BROKEN;
    }
    enum dataset_piece how = json ? dataset_from_json(&dataset->o, &dataset->format,
                                                      dataset->unit.data, dataset->unit.len, out, e)
                                  : from_paragraph(dataset, out, e);
    int kept = how == DATASET_KEPT || how == DATASET_ALPACA;
    return !kept ? how : finish(dataset, out, how, e) ? DATASET_BROKEN : DATASET_KEPT;
}

int dataset_next(struct dataset *dataset, json_t **prompt, struct err *e)
{
    *prompt = NULL;
    while (!dataset->done) {
        json_t *out = json_pack("{s:n}", "id"); /* makes id the first member */
        struct err why = {0};
        enum dataset_piece piece = unit(dataset, out, &why);
        if (piece == DATASET_KEPT) {
            *prompt = out;
            return 1;
        }
        json_decref(dataset->id);
        dataset->id = json_incref(json_object_get(out, "id"));
        json_decref(out);
        dataset->passed_over += piece == DATASET_SKIPPED;
        struct err cut = {0};
        if (piece == DATASET_END || ferror(input_file(dataset->in))) {
            dataset->done = 1;
            dataset->broken = input_check(dataset->in, &cut) != 0;
            if (dataset->broken)
                return err_set(e, cut.code, "%s", cut.text);
        }
        if (piece == DATASET_BROKEN)
            return err_set(e, why.code, "%s:%lld: %s", input_name(dataset->in),
                           (long long)dataset->line, why.text);
    }
    return 0;
}
