/* gather.c - see gather.h. Verdicts need all records at once, because claims are looked up by
 * option and metric, and stored claims by name. Such files have hundreds of records, so an array is
 * enough. */
#include "lib/analysis/verdict/gather.h"

#include <string.h>

#include "lib/analysis/records/scale.h"
#include "lib/analysis/records/source.h"
#include "lib/base/buf.h"
#include "lib/record/rec.h"

static int is_wanted(const json_t *record, const char *const *kinds)
{
    for (; *kinds; kinds++)
        if (!strcmp(rec_kind(record), *kinds))
            return 1;
    return 0;
}

/* Fills *e: there is no record of these kinds, for example "metric or comparison". Returns -1. */
static int set_missing(struct err *e, const char *const *kinds, const char *path)
{
    struct buf text = {0};
    for (size_t i = 0; kinds[i]; i++)
        buf_format(&text, "%s%s", i ? " or " : "", kinds[i]);
    err_set(e, EXIT_BAD_DATA, "%s: expected records of kind %s, found none", path, text.data);
    buf_free(&text);
    return -1;
}

/* Reads all records. 0: read to the end; -1: the file could not be read further. */
static int read_all(struct rec_reader *in, const char *const *kinds, struct source *source,
                    json_t *list, struct err *unsound, struct err *e)
{
    json_t *firsts = NULL;
    int got = 1, bad = 0;
    while (got && !bad) {
        json_t *record = NULL;
        struct err line = {0};
        got = rec_read(in, &record, &line);
        bad = got > 0 && scale_check(&firsts, record, rec_where(in), e);
        if (got > 0 && source) {
            json_t *marked = source_mark(source, record, rec_where(in));
            json_decref(record);
            record = marked;
        }
        if (got > 0 && is_wanted(record, kinds))
            json_array_append(list, record);
        json_decref(record);
        if (got < 0 && line.code != EXIT_BAD_DATA)
            bad = err_set(e, line.code, "%s", line.text);
        else if (got < 0 && !unsound->code)
            *unsound = line;
    }
    json_decref(firsts);
    return bad ? -1 : 0;
}

json_t *gather_records(const char *const *paths, size_t n, const char *const *kinds,
                       enum gather marks, struct err *unsound, struct err *e)
{
    *unsound = (struct err){0};
    struct rec_reader *in = rec_read_open(paths, n, e);
    if (!in)
        return NULL;
    struct source source = {0};
    json_t *list = json_array();
    int bad = read_all(in, kinds, marks == GATHER_MARKED ? &source : NULL, list, unsound, e);
    source_free(&source);
    rec_read_close(in);
    if (!bad && !json_array_size(list))
        bad = set_missing(e, kinds, n ? paths[0] : "-");
    if (bad) {
        json_decref(list);
        return NULL;
    }
    return list;
}
