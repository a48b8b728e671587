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

static uint64_t of_object(const json_t *object)
{
    const char *key;
    const json_t *value;
    uint64_t sum = 0;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
        sum += of_member(key, strlen(key), content_of(value));
    return hash64_bits(JSON_OBJECT, sum);
}

uint64_t content_of(const json_t *value)
{
    uint64_t hash = value ? (uint64_t)json_typeof(value) : JSON_NULL, bits;
    double x;
    size_t i;
    const json_t *one;
    switch (hash) {
    case JSON_OBJECT:
        return of_object(value);
    case JSON_ARRAY:
        json_array_foreach(value, i, one)
            hash = hash64_bits(hash, content_of(one));
        return hash64_bits(hash, json_array_size(value));
    case JSON_STRING:
        return hash64_text(hash, json_string_value(value), json_string_length(value));
    case JSON_INTEGER:
        return hash64_bits(hash, (uint64_t)json_integer_value(value));
    case JSON_REAL:
        x = json_real_value(value);
        memcpy(&bits, &x, sizeof bits);
        return hash64_bits(hash, bits);
    default:
        return hash64_bits(hash, 0);
    }
}

uint64_t content_of_record(const json_t *record)
{
    const char *key;
    const json_t *value;
    uint64_t sum = 0;
    json_object_foreach((json_t *)(uintptr_t)record, key, value)
        if (strcmp(key, "run"))
            sum += of_member(key, strlen(key), content_of(value));
    return sum;
}
