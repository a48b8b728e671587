/* schema.h - checks a record against data/record.schema.json and describes the first error. It
 * knows the keywords of JSON Schema that this file uses, and ends the program at any other
 * keyword. */
#pragma once

#include <jansson.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "tests/files.h"

enum { SCHEMA_PATTERNS = 256 };

struct schema {
    json_t *all;
    char wrong[256];
    struct { const json_t *of; regex_t re; } pattern[SCHEMA_PATTERNS]; /* compiled once */
    size_t patterns;
};

static inline int schema_wrong(struct schema *s, const char *where, const char *what,
                               const json_t *got)
{
    char *text = got ? json_dumps(got, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    if (!*s->wrong)
        snprintf(s->wrong, sizeof s->wrong, "%s: %s%s%.60s", where, what, text ? ", got " : "",
                 text ? text : "");
    free(text);
    return -1;
}

/* Ends the program at a keyword that schema_value() does not know, and at a reference to a
 * definition that does not exist: both would have no effect. */
static inline void schema_know(const json_t *all, json_t *of)
{
    static const char known[] = " $ref type enum pattern minimum maximum minItems required anyOf "
                                "items properties additionalProperties definitions description "
                                "$schema title ";
    const char *key;
    char word[64];
    json_t *member, *one;
    size_t i;
    const char *ref = json_string_value(json_object_get(of, "$ref"));
    const char *slash = ref ? strrchr(ref, '/') : NULL;
    if (ref && !(slash && json_object_get(json_object_get(all, "definitions"), slash + 1))) {
        printf("Bail out! the schema has no definition %s\n", ref);
        exit(EXIT_FAILURE);
    }
    json_object_foreach(of, key, member) {
        snprintf(word, sizeof word, " %s ", key);
        if (!strstr(known, word) ||
            (json_is_boolean(member) && !strcmp(key, "additionalProperties"))) {
            printf("Bail out! the schema has the keyword%sthat schema.h does not know\n", word);
            exit(EXIT_FAILURE);
        }
        if (!strcmp(key, "properties") || !strcmp(key, "definitions")) {
            const char *name;
            json_object_foreach(member, name, one)
                schema_know(all, one);
            continue;
        }
        schema_know(all, member);
        json_array_foreach(member, i, one)
            schema_know(all, one);
    }
}

static inline void schema_open(struct schema *s, const char *path)
{
    s->all = json_load_file(path, 0, NULL);
    if (!s->all)
        files_fail(path);
    schema_know(s->all, s->all);
}

static inline void schema_close(struct schema *s)
{
    for (size_t i = 0; i < s->patterns; i++)
        regfree(&s->pattern[i].re);
    json_decref(s->all);
}

/* Members with these names (ended by NULL) come unchanged from the input of a tool, so they are not
 * checked. */
static inline void schema_release(struct schema *s, const char *const *names)
{
    const char *kind;
    json_t *of;
    json_object_foreach(json_object_get(s->all, "definitions"), kind, of)
        for (size_t i = 0; strcmp(kind, "envelope") && names[i]; i++) {
            json_t *need = json_object_get(of, "required");
            json_object_del(json_object_get(of, "properties"), names[i]);
            for (size_t k = json_array_size(need); k-- > 0;)
                if (!strcmp(json_string_value(json_array_get(need, k)), names[i]))
                    json_array_remove(need, k);
        }
}

/* 10.0 is an integer, as JSON Schema says. */
static inline int schema_is_type(const json_t *v, const char *type)
{
    return !strcmp(type, "object")    ? json_is_object(v)
           : !strcmp(type, "array")   ? json_is_array(v)
           : !strcmp(type, "string")  ? json_is_string(v)
           : !strcmp(type, "boolean") ? json_is_boolean(v)
           : !strcmp(type, "null")    ? json_is_null(v)
           : !strcmp(type, "number")  ? json_is_number(v)
                                      : json_is_number(v) &&
                                            floor(json_number_value(v)) == json_number_value(v);
}

static inline int schema_fits_type(const json_t *v, const json_t *type)
{
    int fits = json_is_string(type) && schema_is_type(v, json_string_value(type));
    for (size_t i = 0; i < json_array_size(type); i++)
        fits |= schema_is_type(v, json_string_value(json_array_get(type, i)));
    return fits;
}

static inline int schema_matches(struct schema *s, const json_t *pattern, const char *text)
{
    size_t i = 0;
    while (i < s->patterns && s->pattern[i].of != pattern)
        i++;
    if (i == SCHEMA_PATTERNS)
        files_fail("more patterns than there is room for");
    if (i == s->patterns) {
        s->pattern[s->patterns++].of = pattern;
        if (regcomp(&s->pattern[i].re, json_string_value(pattern), REG_EXTENDED | REG_NOSUB))
            files_fail(json_string_value(pattern));
    }
    return !regexec(&s->pattern[i].re, text, 0, NULL, 0);
}

static int schema_value(struct schema *s, const json_t *of, json_t *v, const char *where);

static inline int schema_object(struct schema *s, const json_t *of, json_t *v)
{
    const json_t *properties = json_object_get(of, "properties");
    const json_t *other = json_object_get(of, "additionalProperties");
    const char *key;
    json_t *one, *need;
    size_t i;
    json_array_foreach(json_object_get(of, "required"), i, need) {
        key = json_string_value(need);
        if (!json_object_get(v, key))
            return schema_wrong(s, key, "is missing", NULL);
    }
    json_object_foreach(v, key, one) {
        const json_t *its = json_object_get(properties, key);
        if ((its || other) && schema_value(s, its ? its : other, one, key))
            return -1;
    }
    return 0;
}

static inline int schema_any(struct schema *s, const json_t *forms, json_t *v, const char *where)
{
    for (size_t i = 0; i < json_array_size(forms); i++) {
        if (!schema_value(s, json_array_get(forms, i), v, where))
            return 0;
        *s->wrong = 0;
    }
    return schema_wrong(s, where, "fits none of the forms", v);
}

/* Returns -1 if v does not fit `of`; s->wrong then says why. */
static int schema_value(struct schema *s, const json_t *of, json_t *v, const char *where)
{
    const json_t *type = json_object_get(of, "type"), *list = json_object_get(of, "enum");
    const json_t *least = json_object_get(of, "minimum"), *most = json_object_get(of, "maximum");
    const json_t *pattern = json_object_get(of, "pattern");
    const char *ref = json_string_value(json_object_get(of, "$ref"));
    double x = json_number_value(v);
    json_t *one;
    int among = !list;
    size_t i;
    json_array_foreach(list, i, one)
        among |= json_equal(one, v);
    if (ref && schema_value(s, json_object_get(json_object_get(s->all, "definitions"),
                                               strrchr(ref, '/') + 1), v, where))
        return -1;
    if (type && !schema_fits_type(v, type))
        return schema_wrong(s, where, "is of another type", v);
    if (!among || (pattern && json_is_string(v) &&
                   !schema_matches(s, pattern, json_string_value(v))))
        return schema_wrong(s, where, "is another text", v);
    if (json_is_number(v) && ((least && x < json_number_value(least)) ||
                              (most && x > json_number_value(most))))
        return schema_wrong(s, where, "is out of range", v);
    if (json_is_array(v) && json_object_get(of, "minItems") &&
        (json_int_t)json_array_size(v) < json_integer_value(json_object_get(of, "minItems")))
        return schema_wrong(s, where, "has too few items", v);
    if (json_object_get(of, "items"))
        json_array_foreach(v, i, one)
            if (schema_value(s, json_object_get(of, "items"), one, where))
                return -1;
    if (json_object_get(of, "anyOf") && schema_any(s, json_object_get(of, "anyOf"), v, where))
        return -1;
    return json_is_object(v) ? schema_object(s, of, v) : 0;
}

/* Returns -1 if a record does not fit its kind; s->wrong then describes the error. A prompt of a
 * user has no kind. */
static inline int schema_record(struct schema *s, json_t *record)
{
    const char *kind = json_string_value(json_object_get(record, "kind"));
    const json_t *all = json_object_get(s->all, "definitions"), *of = json_object_get(all, kind);
    *s->wrong = 0;
    if (!json_is_object(record))
        return schema_wrong(s, "record", "is no object", record);
    if (!json_object_get(record, "kind"))
        return schema_value(s, json_object_get(all, "bare_prompt"), record, "record");
    return schema_value(s, json_object_get(all, "envelope"), record, "record") ||
                   (of && schema_value(s, of, record, "record"))
               ? -1
               : 0;
}
