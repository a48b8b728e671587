/* rec-members.c - reading and writing members of a record; see rec.h.
 *
 * Reading never fails: a member that is absent or of another type is NULL, NaN or the caller's
 * value. A number that is not finite is written as null, with the reason beside it. */
#include "lib/record/rec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"

static const int64_t MORE_MAX = (int64_t)1 << 53;

const char *rec_text(const json_t *record, const char *key)
{
    return json_string_value(json_object_get(record, key));
}

int rec_is(const json_t *record, const char *key, const char *text)
{
    const char *got = rec_text(record, key);
    return got && !strcmp(got, text);
}

int rec_same(const json_t *a, const json_t *b, const char *key)
{
    const json_t *x = json_object_get(a, key), *y = json_object_get(b, key);
    return (json_is_null(x) ? NULL : x) == (json_is_null(y) ? NULL : y) ||
           (x && y && json_equal(x, y));
}

const char *rec_type(const json_t *value)
{
    if (!value)
        return "nothing";
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a text";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_NULL: return "null";
    default: return "true or false";
    }
}

const char *rec_kind(const json_t *record)
{
    const char *kind = rec_text(record, "kind");
    return kind ? kind : "";
}

int64_t rec_failures(const json_t *record)
{
    int64_t more = rec_int(record, "more", 1);
    return strcmp(rec_kind(record), "error") ? 0 : more < 1 || more > MORE_MAX ? 1 : more;
}

double rec_number(const json_t *record, const char *key)
{
    const json_t *value = json_object_get(record, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

double rec_copies(const json_t *record)
{
    const double copies = rec_number(record, "copies");
    return copies > 0 ? copies : 1;
}

int64_t rec_int(const json_t *record, const char *key, int64_t otherwise)
{
    const json_t *value = json_object_get(record, key);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : otherwise;
}

static void must(int bad)
{
    if (bad)
        err_machine(__FILE__, __LINE__, "cannot build a record (out of memory, or not UTF-8)");
}

void rec_set_number(json_t *record, const char *key, double value, const char *reason)
{
    if (isfinite(value)) {
        must(json_object_set_new(record, key, json_real(value)));
        return;
    }
    char *reason_key = mem_format("%s_reason", key);
    must(json_object_set_new(record, key, json_null()));
    must(json_object_set_new(record, reason_key, json_string(reason ? reason : "not finite")));
    free(reason_key);
}

void rec_set_int(json_t *record, const char *key, int64_t value)
{
    must(json_object_set_new(record, key, json_integer(value)));
}

void rec_set_text(json_t *record, const char *key, const char *value)
{
    json_object_set_new(record, key, value ? json_string(value) : json_null());
}

json_t *rec_int_list(const int32_t *v, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(v[i]));
    return list;
}

void rec_set_flag(json_t *record, const char *key, int flag, const char *reason)
{
    if (flag < 0)
        rec_set_number(record, key, (double)NAN, reason);
    else
        must(json_object_set_new(record, key, json_boolean(flag)));
}

void rec_copy(json_t *to, const char *key, const json_t *from, const char *member)
{
    json_t *value = json_object_get(from, member);
    must(json_object_set_new(to, key, value ? json_incref(value) : json_null()));
}

int rec_lists(const json_t *record, const char *key, const char *text)
{
    const json_t *value;
    size_t i;
    json_array_foreach(json_object_get(record, key), i, value)
        if (json_is_string(value) && !strcmp(json_string_value(value), text))
            return 1;
    return 0;
}

double rec_as_written(double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.15g", value);
    return strtod(text, NULL);
}

int rec_inputs(const char *const *paths, size_t n, json_t **list, struct err *e)
{
    json_t *all = n ? json_array() : NULL;
    for (size_t i = 0; i < n && all; i++) {
        char hex[65];
        if (!file_is_regular(paths[i])) {
            json_decref(all);
            all = NULL;
        } else if (hash_file(paths[i], hex, e)) {
            json_decref(all);
            return -1;
        } else {
            json_t *path = json_string(paths[i]);
            json_array_append_new(all, json_pack("{s:o, s:s}", "path",
                                                 path ? path : json_string("(not UTF-8)"),
                                                 "sha256", hex));
        }
    }
    *list = all;
    return 0;
}
