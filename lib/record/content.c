/* content.c - see content.h. The hashes of members are added, so their order does not count. The
 * elements of an array are hashed one after the other: their order counts. The type of a value is a
 * part of its hash, so 1 and 1.0 differ. */
#include "lib/record/content.h"

#include <string.h>

#include "lib/base/hash64.h"

static uint64_t of_member(const char *key, size_t n, uint64_t value)
{
    return hash64_bits(hash64_text(0, key, n), value);
}

static uint64_t of_object(const json_t *o)
{
    const char *key;
    const json_t *v;
    uint64_t sum = 0;
    json_object_foreach((json_t *)(uintptr_t)o, key, v)
        sum += of_member(key, strlen(key), content_of(v));
    return hash64_bits(JSON_OBJECT, sum);
}

uint64_t content_of(const json_t *v)
{
    uint64_t h = v ? (uint64_t)json_typeof(v) : JSON_NULL, bits;
    double x;
    size_t i;
    const json_t *one;
    switch (h) {
    case JSON_OBJECT:
        return of_object(v);
    case JSON_ARRAY:
        json_array_foreach(v, i, one)
            h = hash64_bits(h, content_of(one));
        return hash64_bits(h, json_array_size(v));
    case JSON_STRING:
        return hash64_text(h, json_string_value(v), json_string_length(v));
    case JSON_INTEGER:
        return hash64_bits(h, (uint64_t)json_integer_value(v));
    case JSON_REAL:
        x = json_real_value(v);
        memcpy(&bits, &x, sizeof bits);
        return hash64_bits(h, bits);
    default:
        return hash64_bits(h, 0);
    }
}

uint64_t content_of_record(const json_t *record)
{
    const char *key;
    const json_t *v;
    uint64_t sum = 0;
    json_object_foreach((json_t *)(uintptr_t)record, key, v)
        if (strcmp(key, "run"))
            sum += of_member(key, strlen(key), content_of(v));
    return sum;
}
