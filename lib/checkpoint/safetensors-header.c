/* safetensors-header.c - the JSON header of a file: { name: {dtype, shape, data_offsets}, ... } and
 * one map of strings called __metadata__.
 *
 * Source: huggingface/safetensors README "Format", and stricter rules of this project: no
 * unknown field, no duplicate of any kind, no empty name or NUL in a name, rank and dimensions
 * bounded. */
#include "lib/checkpoint/safetensors-header.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/json.h"

#define INTEGER_MAX (((json_int_t)1 << 48) - 1)

struct header {
    const char *where;
    size_t bytes;
    const unsigned char *data;
    size_t data_bytes;
    struct tensor *list;
    size_t count;
    struct err *e;
};

/* Number of the integers in the array, each from 0 to 2^48-1; -1: not so, or more than `most`. */
static int take_integers(const json_t *array, size_t *v, size_t most)
{
    size_t n = json_array_size(array);
    for (size_t i = 0; i < n && n <= most; i++) {
        const json_t *x = json_array_get(array, i);
        if (!json_is_integer(x) || json_integer_value(x) < 0 || json_integer_value(x) > INTEGER_MAX)
            return -1;
        v[i] = (size_t)json_integer_value(x);
    }
    return json_is_array(array) && n <= most ? (int)n : -1;
}

/* Checks that shape x dtype = offsets, and that offsets are inside the data. */
static int prove_range(const struct header *h, struct tensor *t, const size_t offsets[2])
{
    const char *why;
    if (tensor_bytes(t->dtype, t->shape, t->rank, &t->bytes, &why))
        return err_set(h->e, EXIT_BAD_DATA, "%s: tensor \"%.200s\": %s", h->where, t->name, why);
    if (offsets[1] < offsets[0] || offsets[1] - offsets[0] != t->bytes)
        return err_set(h->e, EXIT_BAD_DATA,
                       "%s: tensor \"%.200s\": shape and dtype need %zu bytes, data_offsets are "
                       "[%zu, %zu]", h->where, t->name, t->bytes, offsets[0], offsets[1]);
    if (offsets[1] > h->data_bytes)
        return err_set(h->e, EXIT_BAD_DATA, "%s: tensor \"%.200s\" ends at data byte %zu, but the "
                       "file holds %zu bytes of data (cut short?)", h->where, t->name, offsets[1],
                       h->data_bytes);
    t->data = h->data + offsets[0];
    return 0;
}

static int take_tensor(const struct header *h, const char *name, const json_t *fields,
                       struct tensor *t)
{
    const json_t *dtype = json_object_get(fields, "dtype");
    const json_t *shape = json_object_get(fields, "shape");
    const json_t *place = json_object_get(fields, "data_offsets");
    size_t offsets[2] = {0, 0}, length = strlen(name);
    *t = (struct tensor){.name = mem_text(name)};
    if (length == 0 || length > HEADER_MAX_NAME)
        return err_set(h->e, EXIT_BAD_DATA, "%s: tensor name of %zu bytes (\"%.100s\"): expected 1 "
                       "to %d", h->where, length, name, HEADER_MAX_NAME);
    if (!dtype || !shape || !place || json_object_size(fields) != 3)
        return err_set(h->e, EXIT_BAD_DATA, "%s: tensor \"%.200s\": expected an object of dtype, "
                       "shape and data_offsets", h->where, name);
    const char *type = json_string_value(dtype);
    if (!type || strlen(type) != json_string_length(dtype) || !tensor_dtype_bits(type))
        return err_set(h->e, EXIT_BAD_DATA, "%s: tensor \"%.200s\": dtype \"%.40s\" is none of the "
                       "format's (F32, F16, BF16, ...)", h->where, name, type ? type : "");
    snprintf(t->dtype, sizeof t->dtype, "%s", type);
    int rank = take_integers(shape, t->shape, TENSOR_MAX_RANK);
    if (rank < 0 || take_integers(place, offsets, 2) != 2)
        return err_set(h->e, EXIT_BAD_DATA, "%s: tensor \"%.200s\": %s: expected %s integers from "
                       "0 to 2^48-1", h->where, name, rank < 0 ? "shape" : "data_offsets",
                       rank < 0 ? "at most 8" : "two");
    t->rank = (size_t)rank;
    return prove_range(h, t, offsets);
}

static int check_metadata(const struct header *h, json_t *o)
{
    const char *key;
    const json_t *value;
    int bad = !json_is_object(o);
    json_object_foreach(o, key, value)
        bad |= !json_is_string(value);
    return bad ? err_set(h->e, EXIT_BAD_DATA, "%s: __metadata__: expected an object of strings",
                         h->where) : 0;
}

/* By offset; an empty tensor comes before another one at the same offset. */
static int compare_place(const void *a, const void *b)
{
    const struct tensor *x = a, *y = b;
    if (x->data != y->data)
        return x->data < y->data ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Checks that tensors cover the data: first at 0, each after the one before, last at the end. */
static int prove_cover(const struct header *h)
{
    size_t at = 0, before = 8 + h->bytes;
    if (h->count)
        qsort(h->list, h->count, sizeof *h->list, compare_place);
    for (size_t i = 0; i < h->count; i++) {
        const struct tensor *t = &h->list[i];
        size_t begin = (size_t)(t->data - h->data);
        if (begin != at)
            return err_set(h->e, EXIT_BAD_DATA,
                           "%s: tensor \"%.200s\" begins at data byte %zu, expected %zu (%s)",
                           h->where, t->name, begin, at, begin < at ? "overlap" : "hole");
        at += t->bytes;
    }
    if (at != h->data_bytes)
        return err_set(h->e, EXIT_BAD_DATA, "%s: file is %zu bytes, header needs %zu: the data "
                       "hold %zu bytes of which the tensors cover %zu", h->where,
                       before + h->data_bytes, before + at, h->data_bytes, at);
    return 0;
}

static int take_all(struct header *h, json_t *all)
{
    const char *name;
    json_t *value;
    int bad = 0;
    h->list = mem_zero(json_object_size(all), sizeof *h->list);
    json_object_foreach(all, name, value)
        if (!bad)
            bad = !strcmp(name, "__metadata__") ? check_metadata(h, value)
                                                : take_tensor(h, name, value, &h->list[h->count++]);
    return bad || prove_cover(h) ? -1 : 0;
}

int safetensors_header_parse(const char *text, size_t n, const char *where,
                             const unsigned char *data, size_t data_bytes, struct tensor **list,
                             size_t *count, struct err *e)
{
    struct header h = {.where = where, .bytes = n, .data = data, .data_bytes = data_bytes, .e = e};
    json_error_t why;
    json_t *all = json_strict(text, n, &why);
    int bad = json_is_object(all)
                  ? take_all(&h, all)
                  : err_set(e, EXIT_BAD_DATA, "%s: header byte %d: %s", where,
                            all ? 0 : why.position, all ? "expected an object" : why.text);
    json_decref(all);
    if (bad) {
        safetensors_header_free(h.list, h.count);
        h.list = NULL;
        h.count = 0;
    }
    *list = h.list;
    *count = h.count;
    return bad ? -1 : 0;
}

void safetensors_header_free(struct tensor *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(list[i].name);
    free(list);
}
