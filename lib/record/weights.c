/* weights.c - see weights.h. Derived records carry the names of their generations, so records that
 * tools compare always name their weights. */
#include "lib/record/weights.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/hash.h"
#include "lib/record/rec.h"

enum { SHOWN = 12 }; /* hex digits of a name, as of a point */

static const char PRIOR[] = "prior.safetensors";

/* 1: answers depend on the file. The index and origin.json only describe other files. */
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

/* The name of a described checkpoint; NULL: it has no files and is not random. */
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

static void set_known(json_t *to, const char *field, json_t *name)
{
    if (name)
        json_object_set_new(to, field, name);
}

void weights_put(json_t *record, const json_t *meta, int uses_draft, int uses_prior)
{
    const json_t *checkpoint = json_object_get(meta, "checkpoint");
    set_known(record, "weights", name_of_model(checkpoint));
    if (uses_draft)
        set_known(record, "draft_weights", name_of_model(json_object_get(meta, "draft_model")));
    if (uses_prior)
        set_known(record, "prior_weights", name_of_prior(checkpoint));
}
