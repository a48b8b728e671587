/* family-check.c - functions that the readers of config.json share: a refusal that names file, key,
 * expected and actual value, and a check of keys that must have a certain value. All readers may
 * call this file, because it calls no other file of the room. */
#include "lib/checkpoint/family.h"

#include <stdlib.h>
#include <string.h>

#include "lib/record/json.h"

int family_lists(const char *const *list, const char *key)
{
    for (; list && *list; list++)
        if (!strcmp(*list, key))
            return 1;
    return 0;
}

int family_refuse(const struct family_source *source, const char *key, const char *expected)
{
    const json_t *value = json_object_get(source->json, key);
    char *got = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15))
                      : NULL;
    err_set(source->e, EXIT_BAD_DATA, "%s: %.100s: expected %s, got %.200s", source->path, key,
            expected, got ? got : "nothing (the key is missing)");
    free(got);
    return -1;
}

/* 1: two JSON values are equal. Numbers are compared by value, so 1 equals 1.0. */
static int same_value(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    return json_equal(a, b);
}

int family_check_fixed(const struct family_source *source, const struct family_fixed *k)
{
    for (; k->key; k++) {
        if (!json_has(source->json, k->key)) {
            if (k->use == KEY_REQUIRED)
                return family_refuse(source, k->key, k->value);
            continue;
        }
        json_t *want = json_loads(k->value, JSON_DECODE_ANY, NULL);
        int same = same_value(want, json_object_get(source->json, k->key));
        json_decref(want);
        if (!same)
            return family_refuse(source, k->key, k->value);
    }
    return 0;
}
