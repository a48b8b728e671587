/* repeats.c - see repeats.h. Of each record only two hashes are kept, so a million fit; `run` is no
 * part of what is compared, because it names the stream and not what was measured. Which members
 * are the place of a record is one list for each kind. */
#include "lib/record/repeats.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/record/rec.h"

enum { HALF = 33 }; /* 32 hex digits and NUL */

static const char *const of_generation[] = {"phase", "launch", "round", "seq", "id", NULL};
static const char *const of_metric[] = {"metric", NULL};
static const char *const of_quality[] = {"metric", "id", "seed", "summary", NULL};

/* The members that are the place of a record of this kind; NULL: it has none. */
static const char *const *place_of(const char *kind)
{
    return !strcmp(kind, "generation") ? of_generation
           : !strcmp(kind, "metric")   ? of_metric
           : !strcmp(kind, "quality")  ? of_quality
                                       : NULL;
}

static void half_hash(const json_t *value, char hex[HALF])
{
    char all[65], *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    if (!text)
        err_machine(__FILE__, __LINE__, "cannot write a record as text (out of memory)");
    hash_bytes(text, strlen(text), all);
    memcpy(hex, all, HALF - 1);
    hex[HALF - 1] = 0;
    free(text);
}

static void add(json_t *list, const json_t *r, const char *key)
{
    json_t *v = json_object_get(r, key);
    json_array_append_new(list, v ? json_incref(v) : json_null());
}

static void hash_place(const json_t *r, const char *const *members, char hex[HALF])
{
    json_t *place = json_array();
    add(place, r, "kind");
    add(place, r, rec_text(r, "point") ? "point" : "config");
    add(place, r, "workload");
    for (; *members; members++)
        add(place, r, *members);
    half_hash(place, hex);
    json_decref(place);
}

static int refuse(const json_t *r, struct err *e)
{
    const char *config = rec_text(r, "config"), *metric = rec_text(r, "metric");
    if (metric)
        return err_set(e, EXIT_BAD_DATA, "a second, different '%s' record of '%s' on the same "
                       "prompts", metric, config ? config : "?");
    return err_set(e, EXIT_BAD_DATA, "another answer in the same place of the same launch of '%s': "
                   "give each process its own --launch", config ? config : "?");
}

int repeats_take(struct repeats *s, const json_t *r, struct err *e)
{
    const char *const *members = place_of(rec_kind(r));
    if (!members)
        return 0;
    char place[HALF], content[HALF];
    json_t *bare = json_copy((json_t *)(uintptr_t)r);
    json_object_del(bare, "run");
    half_hash(bare, content);
    json_decref(bare);
    hash_place(r, members, place);
    if (!s->seen)
        s->seen = json_object();
    const char *had = json_string_value(json_object_get(s->seen, place));
    if (!had) {
        json_object_set_new(s->seen, place, json_string(content));
        return 0;
    }
    if (strcmp(had, content))
        return refuse(r, e);
    s->dropped++;
    return 1;
}

void repeats_free(struct repeats *s)
{
    json_decref(s->seen);
    *s = (struct repeats){0};
}
