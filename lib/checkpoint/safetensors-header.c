/* safetensors-header.c - parses and checks the JSON header of a file; see safetensors-header.h.
 *
 * The JSON parser refuses repeated names, bad UTF-8 and text behind the object (json.h). This file
 * checks fields and ranges, and that the tensors cover the data.
 *
 * Source: huggingface/safetensors README "Format". Stricter rules of this project: no unknown
 * field, no empty name, rank and dimensions are bounded. */
#include "lib/checkpoint/safetensors-header.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/json.h"

#define INTEGER_MAX ((INT64_C(1) << 48) - 1)

/* Arguments of all functions. where: the file, for messages; data: the data part of the file. */
struct header {
    const char *where;
    const unsigned char *data;
    size_t data_bytes;
    struct err *e;
};

static int refuse(const struct header *header, const char *name, const char *expected,
                  const json_t *value)
{
    char got[JSON_SHOWN];
    return err_set(header->e, EXIT_BAD_DATA, "%s: tensor \"%.200s\": expected %s, got %s",
                   header->where, name, expected, json_shown(value, got));
}

/* Reads a list of at most `max` whole numbers from 0 to 2^48-1. -1: it is something else. */
static int take_integers(const json_t *list, size_t max, size_t *v, size_t *count)
{
    const json_t *one;
    size_t i;
    *count = json_array_size(list);
    if (!json_is_array(list) || *count > max)
        return -1;
    json_array_foreach(list, i, one) {
        if (!json_is_integer(one) || json_integer_value(one) < 0 ||
            json_integer_value(one) > INTEGER_MAX)
            return -1;
        v[i] = (size_t)json_integer_value(one);
    }
    return 0;
}

/* Checks that shape x dtype = offsets, and that offsets are inside the data. */
static int prove_range(const struct header *header, struct tensor *tensor, const size_t offsets[2])
{
    const char *why;
    if (tensor_bytes(tensor->dtype, tensor->shape, tensor->rank, &tensor->bytes, &why))
        return err_set(header->e, EXIT_BAD_DATA, "%s: tensor \"%.200s\": %s", header->where,
                       tensor->name, why);
    if (offsets[1] < offsets[0] || offsets[1] - offsets[0] != tensor->bytes)
        return err_set(header->e, EXIT_BAD_DATA,
                       "%s: tensor \"%.200s\": shape and dtype need %zu bytes, data_offsets are "
                       "[%zu, %zu]",
                       header->where, tensor->name, tensor->bytes, offsets[0], offsets[1]);
    if (offsets[1] > header->data_bytes)
        return err_set(header->e, EXIT_BAD_DATA,
                       "%s: tensor \"%.200s\" ends at data byte %zu, but the "
                       "file holds %zu bytes of data (cut short?)", header->where, tensor->name,
                       offsets[1], header->data_bytes);
    tensor->data = header->data + offsets[0];
    return 0;
}

static int take_tensor(const struct header *header, struct tensor *tensor, const json_t *entry)
{
    const json_t *dtype = json_object_get(entry, "dtype"), *shape = json_object_get(entry, "shape");
    const json_t *places = json_object_get(entry, "data_offsets");
    const char *text = json_string_value(dtype);
    size_t offsets[2] = {0, 0}, n = 0;
    if (!*tensor->name || strlen(tensor->name) > HEADER_MAX_NAME)
        return err_set(header->e, EXIT_BAD_DATA,
                       "%s: tensor name of %zu bytes (\"%.100s\"): expected 1 "
                       "to %d", header->where, strlen(tensor->name), tensor->name, HEADER_MAX_NAME);
    if (!dtype || !shape || !places || json_object_size(entry) != 3)
        return refuse(header, tensor->name, "dtype, shape and data_offsets", entry);
    if (!text || strlen(text) != json_string_length(dtype) || !tensor_dtype_bits(text))
        return refuse(header, tensor->name, "a dtype of the format (F32, F16, BF16, ...)", dtype);
    if (take_integers(shape, TENSOR_MAX_RANK, tensor->shape, &tensor->rank))
        return refuse(header, tensor->name, "a shape of at most 8 integers from 0 to 2^48-1",
                      shape);
    if (take_integers(places, 2, offsets, &n) || n != 2)
        return refuse(header, tensor->name, "two data_offsets from 0 to 2^48-1", places);
    snprintf(tensor->dtype, sizeof tensor->dtype, "%s", text);
    return prove_range(header, tensor, offsets);
}

static int check_metadata(const struct header *header, const json_t *metadata)
{
    const char *key;
    const json_t *value;
    int bad = !json_is_object(metadata);
    json_object_foreach((json_t *)(uintptr_t)metadata, key, value)
        bad |= !json_is_string(value);
    return bad ? err_set(header->e, EXIT_BAD_DATA, "%s: __metadata__: expected a map of strings",
                         header->where) : 0;
}

/* For qsort: by offset; at the same offset an empty tensor comes first. */
static int compare_place(const void *a, const void *b)
{
    const struct tensor *x = a, *y = b;
    if (x->data != y->data)
        return x->data < y->data ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Sorts the tensors by offset and checks that they cover the data without hole or overlap. */
static int prove_cover(const struct header *header, struct tensor *list, size_t count)
{
    size_t at = 0;
    if (count)
        qsort(list, count, sizeof *list, compare_place);
    for (size_t i = 0; i < count; i++) {
        const struct tensor *tensor = &list[i];
        size_t begin = (size_t)(tensor->data - header->data);
        if (begin != at)
            return err_set(header->e, EXIT_BAD_DATA,
                           "%s: tensor \"%.200s\" begins at data byte %zu, expected %zu (%s)",
                           header->where, tensor->name, begin, at, begin < at ? "overlap" : "hole");
        at += tensor->bytes;
    }
    return at == header->data_bytes ? 0
           : err_set(header->e, EXIT_BAD_DATA,
                     "%s: the file holds %zu bytes of data, but its tensors "
                     "cover %zu", header->where, header->data_bytes, at);
}

static int take_all(const struct header *header, const json_t *all, struct tensor *list,
                    size_t *count)
{
    const char *name;
    const json_t *entry;
    json_object_foreach((json_t *)(uintptr_t)all, name, entry) {
        if (!strcmp(name, "__metadata__")) {
            if (check_metadata(header, entry))
                return -1;
            continue;
        }
        list[*count].name = mem_text(name);
        if (take_tensor(header, &list[(*count)++], entry))
            return -1;
    }
    return prove_cover(header, list, *count);
}

/* 1: the text may hold more than HEADER_MAX_VALUES values. This counts ',', '[' and '{' before
 * parsing, also those inside strings. */
static int has_too_many_values(const char *text, size_t n)
{
    size_t values = 0;
    for (size_t i = 0; i < n; i++)
        values += text[i] == ',' || text[i] == '[' || text[i] == '{';
    return values > HEADER_MAX_VALUES;
}

int safetensors_header_parse(const char *text, size_t n, const char *where,
                             const unsigned char *data, size_t data_bytes, struct tensor **list,
                             size_t *count, struct err *e)
{
    const struct header header = {where, data, data_bytes, e};
    json_error_t why;
    *list = NULL;
    *count = 0;
    if (has_too_many_values(text, n))
        return err_set(e, EXIT_BAD_DATA, "%s: header: expected at most %d values", where,
                       HEADER_MAX_VALUES);
    json_t *all = json_strict(text, n, &why);
    if (!all)
        return err_set(e, EXIT_BAD_DATA, "%s: header byte %d: %s", where, why.position, why.text);
    if (!json_is_object(all)) {
        json_decref(all);
        return err_set(e, EXIT_BAD_DATA, "%s: header: expected a JSON object", where);
    }
    *list = mem_zero(json_object_size(all), sizeof **list);
    int bad = take_all(&header, all, *list, count);
    json_decref(all);
    if (!bad)
        return 0;
    safetensors_header_free(*list, *count);
    *list = NULL;
    *count = 0;
    return -1;
}

void safetensors_header_free(struct tensor *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(list[i].name);
    free(list);
}
