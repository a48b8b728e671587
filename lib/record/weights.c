/* weights.c - see weights.h. A stream of a generator has one meta record, and all its generations
 * come from the checkpoint of that record. Records derived from generations repeat the names of
 * their weights. Records after `end` belong to no meta record. */
#include "lib/record/weights.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/hash.h"
#include "lib/record/json.h"

const char *const weights_fields[] = {"weights", "draft_weights", "prior_weights", NULL};

enum { SHOWN = 12 }; /* hex digits of a name, as of a point */

static const char PRIOR[] = "prior.safetensors";
/* Keys in weights->points, see weights.h. */
static const char UNNAMED[] = "unnamed", SAID[] = "said";

/* 1: answers depend on the file. The index and origin.json only describe other files, and the prior
 * has a field of its own. */
static int makes_answers(const char *name)
{
    return strcmp(name, "origin.json") && strcmp(name, "model.safetensors.index.json") &&
           strcmp(name, PRIOR);
}

static json_t *name_of(const char *text, size_t n)
{
    char hex[65];
    hash_bytes(text, n, hex);
    return json_stringn(hex, SHOWN);
}

/* Hashes all that describes random weights: their shape and seed. */
static json_t *name_of_shape(const json_t *checkpoint)
{
    json_t *shape = json_copy((json_t *)(uintptr_t)checkpoint);
    json_object_del(shape, "files");
    char *text = json_dumps(shape, JSON_COMPACT | JSON_SORT_KEYS);
    json_t *name = text ? name_of(text, strlen(text)) : NULL;
    free(text);
    json_decref(shape);
    return name;
}

/* Returns the name of a described checkpoint; NULL if it has no files and is not random. */
static json_t *name_of_model(const json_t *checkpoint)
{
    struct buf all = {0};
    size_t i;
    const json_t *file;
    json_array_foreach(json_object_get(checkpoint, "files"), i, file) {
        const char *name = rec_text(file, "name"), *sum = rec_text(file, "sha256");
        if (name && sum && makes_answers(name))
            buf_format(&all, "%s %s\n", name, sum);
    }
    json_t *name = all.len ? name_of(all.data, all.len)
                   : json_is_true(json_object_get(checkpoint, "weights_random"))
                       ? name_of_shape(checkpoint) : NULL;
    buf_free(&all);
    return name;
}

static json_t *name_of_prior(const json_t *checkpoint)
{
    size_t i;
    const json_t *file;
    json_array_foreach(json_object_get(checkpoint, "files"), i, file) {
        const char *sum = rec_text(file, "sha256");
        if (rec_is(file, "name", PRIOR) && sum)
            return json_stringn(sum, strlen(sum) < SHOWN ? strlen(sum) : SHOWN);
    }
    return NULL;
}

static void set_known(json_t *to, enum weights_part part, json_t *name)
{
    if (name)
        json_object_set_new(to, weights_fields[part], name);
}

void weights_put(json_t *record, const json_t *meta, int uses_draft, int uses_prior)
{
    const json_t *checkpoint = json_object_get(meta, "checkpoint");
    set_known(record, WEIGHTS_MODEL, name_of_model(checkpoint));
    if (uses_draft)
        set_known(record, WEIGHTS_DRAFT, name_of_model(json_object_get(meta, "draft_model")));
    if (uses_prior)
        set_known(record, WEIGHTS_PRIOR, name_of_prior(checkpoint));
}

/* ---- the check ---- */

int weights_is_pooled(const json_t *record)
{
    static const char *const kinds[] = {"generation", "metric", "times", "quality"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(rec_kind(record), kinds[i]))
            return 1;
    return 0;
}

/* Follows the streams: a meta record of a generator names the checkpoints until `end`. */
static void follow(struct weights *weights, const json_t *record)
{
    const char *kind = rec_kind(record), *tool = rec_text(record, "tool");
    const int starts = !strcmp(kind, "meta");
    if (!starts && strcmp(kind, "end"))
        return;
    json_decref(weights->maker);
    weights->maker = NULL;
    if (!starts || !tool || strncmp(tool, "gen-", 4))
        return;
    weights->maker = json_pack("{s:O?, s:O?}", "checkpoint", json_object_get(record, "checkpoint"),
                               "draft_model", json_object_get(record, "draft_model"));
    weights_put(weights->maker, weights->maker, 1, 1);
}

/* 1: answers of the record's point depend on this part of the generator's weights. */
static int is_used(const json_t *record, enum weights_part part)
{
    return part == WEIGHTS_DRAFT   ? rec_text(record, "draft_model") != NULL
           : part == WEIGHTS_PRIOR ? rec_is(record, "z", "dit")
                                   : 1;
}

static json_t *files_of(const json_t *maker, enum weights_part part)
{
    const char *member = part == WEIGHTS_DRAFT ? "draft_model" : "checkpoint";
    return json_object_get(json_object_get(maker, member), "files");
}

/* One side of a difference. */
struct side {
    const char *name;
    const json_t *files; /* NULL: unknown */
};

/* Appends the first file that differs. */
static void put_file(struct buf *text, const json_t *mine, const json_t *theirs)
{
    size_t i, k;
    const json_t *file, *other;
    json_array_foreach(mine, i, file)
        json_array_foreach(theirs, k, other) {
            const char *name = rec_text(file, "name"), *sum = rec_text(file, "sha256");
            const char *other_sum = rec_text(other, "sha256");
            if (!name || !sum || !other_sum || !rec_is(other, "name", name) ||
                !strcmp(sum, other_sum))
                continue;
            buf_format(text, "; %.64s: SHA-256 %.64s here, %.64s there", name, sum, other_sum);
            return;
        }
}

static int refuse(const json_t *record, enum weights_part part, struct side here, const char *at,
                  struct side there, const char *where, struct err *e)
{
    struct buf files = {0};
    const char *config = rec_text(record, "config");
    buf_text(&files, "");
    put_file(&files, here.files, there.files);
    err_set(e, EXIT_BAD_DATA, "%.200s: %s of '%.200s': %.12s here, %.12s in %.200s%s: expected one "
            "checkpoint behind a point; pass the records of each checkpoint alone", at,
            weights_fields[part], config ? config : rec_text(record, "point"), here.name,
            there.name, where, files.data);
    buf_free(&files);
    return -1;
}

/* *here = the weights that the record or its stream names; name NULL: neither names any. Returns -1
 * if the two differ. */
static int learn(const struct weights *weights, const json_t *record, enum weights_part part,
                 struct side *here, struct rec_reader *in, struct err *e)
{
    const char *said = rec_text(record, weights_fields[part]), *made = NULL;
    if (weights->maker && !strcmp(rec_kind(record), "generation") && is_used(record, part))
        made = rec_text(weights->maker, weights_fields[part]);
    *here = (struct side){said ? said : made, made ? files_of(weights->maker, part) : NULL};
    if (!said || !made || !strcmp(said, made))
        return 0;
    return refuse(record, part, (struct side){said, NULL}, rec_where(in), (struct side){made, NULL},
                  "the meta record of its stream", e);
}

/* Notes that a record and its stream name no weights. Counts the point if such records come from
 * several files. */
static void note_unnamed(struct weights *weights, json_t *known, struct rec_reader *in)
{
    const char *where = rec_where(in), *line = strrchr(where, ':');
    const int n = (int)(line ? line - where : 0);
    const char *had = rec_text(known, UNNAMED);
    if (!had)
        rec_set_text(known, UNNAMED, where);
    else if (!json_has(known, "files") && (strncmp(had, where, (size_t)n) || had[n] != ':')) {
        weights->unnamed++;
        json_object_set_new(known, "files", json_true());
    }
}

/* Compares the weights of a record with those of an earlier record of its point. `said` is 1 if the
 * record itself names the weights, and 0 if only its stream does. */
static int compare(struct weights *weights, json_t *known, const json_t *record,
                   enum weights_part part, struct side here, struct rec_reader *in, struct err *e)
{
    const json_t *had = json_object_get(known, weights_fields[part]);
    const int said = rec_text(record, weights_fields[part]) != NULL;
    struct side there = {rec_text(had, "name"), json_object_get(had, "files")};
    const char *where = rec_text(had, "where");
    if (!here.name && json_is_true(json_object_get(had, SAID)) && is_used(record, part)) {
        here.name = "none named";
    } else if (!here.name) {
        if (part == WEIGHTS_MODEL)
            note_unnamed(weights, known, in);
        return 0;
    } else if (said && part == WEIGHTS_MODEL && rec_text(known, UNNAMED)) {
        there = (struct side){"none named", NULL};
        where = rec_text(known, UNNAMED);
    } else if (!had) {
        return json_object_set_new(known, weights_fields[part],
                                   json_pack("{s:s, s:s, s:b, s:O?}", "name", here.name, "where",
                                             rec_where(in), SAID, said, "files", here.files));
    }
    return strcmp(here.name, there.name)
               ? refuse(record, part, here, rec_where(in), there, where, e) : 0;
}

int weights_check(struct weights *weights, const json_t *record, struct rec_reader *in,
                  struct err *e)
{
    const char *point = rec_text(record, "point");
    point = point ? point : rec_text(record, "config");
    follow(weights, record);
    if (!point || !weights_is_pooled(record))
        return 0;
    weights->points = weights->points ? weights->points : json_object();
    json_t *known = json_object_get(weights->points, point);
    if (!known)
        json_object_set_new(weights->points, point, known = json_object());
    for (int part = 0; part < WEIGHTS_PARTS; part++) {
        struct side here = {0};
        if (learn(weights, record, part, &here, in, e) ||
            compare(weights, known, record, part, here, in, e))
            return -1;
    }
    return 0;
}

void weights_free(struct weights *weights)
{
    json_decref(weights->points);
    json_decref(weights->maker);
    *weights = (struct weights){0};
}
