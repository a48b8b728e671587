/* gguf.c - reads the header of a GGUF file; see gguf.h. No number of the file is trusted: a length
 * is compared with the bytes that are left before it is used, products are checked for overflow,
 * and the kept items are limited. */
#include "lib/checkpoint/gguf.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/text/utf8.h"

enum { TYPE_U8, TYPE_I8, TYPE_U16, TYPE_I16, TYPE_U32, TYPE_I32, TYPE_F32, TYPE_BOOL, TYPE_TEXT,
       TYPE_ARRAY, TYPE_U64, TYPE_I64, TYPE_F64, TYPES };
static const unsigned char type_bytes[TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

struct gguf_reader {
    const unsigned char *bytes;
    size_t n, at;
    uint64_t kept; /* items of arrays so far */
    const char *path;
    struct err *e;
};

/* The next n bytes; NULL: the file ends before. */
static const unsigned char *take(struct gguf_reader *reader, uint64_t n)
{
    const unsigned char *at = reader->bytes + reader->at;
    if (n > reader->n - reader->at) {
        err_set(reader->e, EXIT_BAD_DATA,
                "%s: byte %zu: expected %llu more bytes of the header, got "
                "%zu", reader->path, reader->at, (unsigned long long)n, reader->n - reader->at);
        return NULL;
    }
    reader->at += (size_t)n;
    return at;
}

static uint64_t number_at(const unsigned char *at, size_t bytes)
{
    uint64_t v = 0;
    while (bytes-- > 0)
        v = v << 8 | at[bytes];
    return v;
}

static int take_number(struct gguf_reader *reader, size_t bytes, uint64_t *v)
{
    const unsigned char *at = take(reader, bytes);
    if (at)
        *v = number_at(at, bytes);
    return at ? 0 : -1;
}

static const char *take_text(struct gguf_reader *reader, size_t *n)
{
    uint64_t bytes;
    if (take_number(reader, 8, &bytes))
        return NULL;
    *n = (size_t)bytes;
    return (const char *)take(reader, bytes);
}

/* Reads a name as a C string, the caller's. NULL: the name is refused. */
static char *take_name(struct gguf_reader *reader, const char *what)
{
    size_t n, at = reader->at;
    const char *text = take_text(reader, &n);
    if (!text)
        return NULL;
    if (n && n <= GGUF_MAX_NAME && !memchr(text, 0, n) && utf8_valid(text, n) == n)
        return mem_format("%.*s", (int)n, text);
    err_set(reader->e, EXIT_BAD_DATA,
            "%s: byte %zu: name of a %s: expected 1 to %d bytes of UTF-8, got "
            "%zu bytes", reader->path, at, what, GGUF_MAX_NAME, n);
    return NULL;
}

/* A number or boolean as JSON; null if JSON cannot hold it: infinite, NaN, or 2^63 and more. */
static json_t *scalar(const unsigned char *at, uint64_t type)
{
    const size_t bytes = type_bytes[type];
    const uint64_t number = number_at(at, bytes);
    const int is_signed = type == TYPE_I8 || type == TYPE_I16 || type == TYPE_I32;
    const uint64_t sign = is_signed && bytes ? UINT64_C(1) << (8 * bytes - 1) : 0;
    json_t *j = NULL;
    float single;
    double real;
    memcpy(&single, at, bytes == 4 ? 4 : 0);
    memcpy(&real, at, bytes == 8 ? 8 : 0);
    if (type == TYPE_F32)
        j = json_real((double)single);
    else if (type == TYPE_F64)
        j = json_real(real);
    else if (type == TYPE_BOOL)
        j = json_boolean(number != 0);
    else if (number <= INT64_MAX || type == TYPE_I64)
        j = json_integer((json_int_t)((number ^ sign) - sign));
    return j ? j : json_null();
}

/* The next value of a type that is not an array. NULL: the file ends. */
static json_t *take_value(struct gguf_reader *reader, uint64_t type)
{
    size_t n;
    const char *text = type == TYPE_TEXT ? take_text(reader, &n) : NULL;
    const unsigned char *at = type == TYPE_TEXT ? NULL : take(reader, type_bytes[type]);
    if (!text && !at)
        return NULL;
    json_t *j = text ? json_stringn(text, n) : scalar(at, type);
    return j ? j : json_null(); /* null for a text that is not UTF-8 */
}

static int refuse_type(const struct gguf_reader *reader, const char *key, uint64_t type)
{
    return err_set(reader->e, EXIT_BAD_DATA, "%s: %s: expected a type from 0 to %d and no array "
                   "inside an array, got type %llu", reader->path, key, TYPES - 1,
                   (unsigned long long)type);
}

/* Reads an array. *out = its items if the key is one of the tokenizer, else null. */
static int take_array(struct gguf_reader *reader, const char *key, json_t **out)
{
    uint64_t type, count;
    const int keeps = !strncmp(key, "tokenizer.", 10);
    if (take_number(reader, 4, &type) || take_number(reader, 8, &count))
        return -1;
    if (type >= TYPES || type == TYPE_ARRAY)
        return refuse_type(reader, key, type);
    if (keeps && count > GGUF_MAX_ITEMS - reader->kept)
        return err_set(reader->e, EXIT_BAD_DATA,
                       "%s: %s: expected at most %d items in all arrays of "
                       "the tokenizer, got %llu more after %llu", reader->path, key, GGUF_MAX_ITEMS,
                       (unsigned long long)count, (unsigned long long)reader->kept);
    reader->kept += keeps ? count : 0;
    *out = keeps ? json_array() : json_null();
    for (uint64_t i = 0; i < count; i++) {
        json_t *item = take_value(reader, type);
        if (!item)
            return -1;
        if (keeps)
            json_array_append_new(*out, item);
        else
            json_decref(item);
    }
    return 0;
}

static int take_key(struct gguf_reader *reader, json_t *meta)
{
    uint64_t type;
    char *key = take_name(reader, "key");
    json_t *value = NULL;
    int bad = !key || take_number(reader, 4, &type);
    if (!bad && type >= TYPES)
        bad = refuse_type(reader, key, type);
    else if (!bad && type == TYPE_ARRAY)
        bad = take_array(reader, key, &value);
    else if (!bad)
        bad = !(value = take_value(reader, type));
    if (!bad && json_object_get(meta, key))
        bad = err_set(reader->e, EXIT_BAD_DATA, "%s: the key %s appears twice", reader->path, key);
    if (!bad)
        json_object_set(meta, key, value);
    json_decref(value);
    free(key);
    return bad ? -1 : 0;
}

/* Reads name, shape, format and offset (into the data) of a tensor, and computes its bytes. */
static int take_tensor(struct gguf_reader *reader, struct tensor *tensor, uint64_t *offset)
{
    uint64_t rank, size, id;
    size_t values = 1, bytes = 1, total = 1;
    if (!(tensor->name = take_name(reader, "tensor")) || take_number(reader, 4, &rank))
        return -1;
    if (rank < 1 || rank > 4)
        return err_set(reader->e, EXIT_BAD_DATA,
                       "%s: tensor %s: expected a rank from 1 to 4, got %llu", reader->path,
                       tensor->name, (unsigned long long)rank);
    tensor->rank = (size_t)rank;
    for (size_t i = tensor->rank; i-- > 0;) {
        if (take_number(reader, 8, &size))
            return -1;
        tensor->shape[i] = (size_t)size;
        if (size > INT32_MAX || mem_size_mul(total, tensor->shape[i], &total))
            return err_set(reader->e, EXIT_BAD_DATA, "%s: tensor %s: expected sizes below 2^31 and "
                           "a product below 2^64, got %llu", reader->path, tensor->name,
                           (unsigned long long)size);
    }
    if (take_number(reader, 4, &id) || take_number(reader, 8, offset))
        return -1;
    const char *dtype = tensor_block_dtype((uint32_t)id, &values, &bytes);
    if (!dtype)
        return err_set(reader->e, EXIT_BAD_DATA,
                       "%s: tensor %s: expected F32, F16, BF16, Q8_0, Q4_0, "
                       "Q4_1, Q4_K or Q6_K, got format %llu", reader->path, tensor->name,
                       (unsigned long long)id);
    memcpy(tensor->dtype, dtype, strlen(dtype) + 1);
    if (mem_size_mul(total / values, bytes, &tensor->bytes))
        return err_set(reader->e, EXIT_BAD_DATA, "%s: tensor %s: expected less than 2^64 bytes",
                       reader->path, tensor->name);
    if (tensor->shape[tensor->rank - 1] % values)
        return err_set(reader->e, EXIT_BAD_DATA,
                       "%s: tensor %s: expected a row length that is a "
                       "multiple of %zu, got %zu",
                       reader->path, tensor->name, values, tensor->shape[tensor->rank - 1]);
    return 0;
}

/* Points each tensor to its bytes in the file. */
static int place(const struct gguf_reader *reader, struct tensor *list, const uint64_t *offset,
                 size_t n, const json_t *meta)
{
    const json_t *said = json_object_get(meta, "general.alignment");
    const json_int_t align = said ? json_integer_value(said) : 32;
    if (align < 1 || align > 1 << 16 || (align & (align - 1)))
        return err_set(reader->e, EXIT_BAD_DATA,
                       "%s: general.alignment: expected a power of 2 up to "
                       "65536, got %lld", reader->path, (long long)align);
    const size_t begin = (reader->at + (size_t)align - 1) / (size_t)align * (size_t)align;
    for (size_t i = 0; i < n; i++) {
        if (begin > reader->n || offset[i] > reader->n - begin ||
            list[i].bytes > reader->n - begin - (size_t)offset[i] || offset[i] % (uint64_t)align)
            return err_set(reader->e, EXIT_BAD_DATA,
                           "%s: tensor %s: expected %zu bytes at a multiple "
                           "of %lld from byte %zu on, got offset %llu in a file of %zu",
                           reader->path, list[i].name, list[i].bytes, (long long)align, begin,
                           (unsigned long long)offset[i], reader->n);
        list[i].data = reader->bytes + begin + (size_t)offset[i];
    }
    return 0;
}

static int parse(struct gguf_reader *reader, struct tensor **list, size_t *count, json_t *meta)
{
    uint64_t version, tensors, keys;
    const unsigned char *magic = take(reader, 4);
    if (magic && memcmp(magic, "GGUF", 4))
        return err_set(reader->e, EXIT_BAD_DATA, "%s: expected a file that begins with GGUF",
                       reader->path);
    if (!magic || take_number(reader, 4, &version) || take_number(reader, 8, &tensors) ||
        take_number(reader, 8, &keys))
        return -1;
    if (version < 2 || version > 3)
        return err_set(reader->e, EXIT_BAD_DATA, "%s: GGUF version: expected 2 or 3, got %llu",
                       reader->path, (unsigned long long)version);
    if (tensors > GGUF_MAX_ENTRIES || keys > GGUF_MAX_ENTRIES)
        return err_set(reader->e, EXIT_BAD_DATA,
                       "%s: expected at most %d tensors and keys, got %llu "
                       "and %llu", reader->path, GGUF_MAX_ENTRIES, (unsigned long long)tensors,
                       (unsigned long long)keys);
    for (uint64_t i = 0; i < keys; i++)
        if (take_key(reader, meta))
            return -1;
    uint64_t *offset = mem_zero((size_t)tensors + 1, sizeof *offset);
    *list = mem_zero((size_t)tensors + 1, sizeof **list);
    int bad = 0;
    for (*count = 0; !bad && *count < tensors; ++*count)
        bad = take_tensor(reader, *list + *count, offset + *count);
    bad = bad || place(reader, *list, offset, *count, meta);
    free(offset);
    return bad ? -1 : 0;
}

int gguf_is(const char *path)
{
    size_t n = strlen(path);
    return n > 5 && !strcmp(path + n - 5, ".gguf");
}

int gguf_parse(const unsigned char *bytes, size_t n, const char *path, struct tensor **list,
               size_t *count, json_t **meta, struct err *e)
{
    struct gguf_reader reader = {.bytes = bytes, .n = n, .path = path, .e = e};
    *meta = json_object();
    *list = NULL;
    *count = 0;
    if (!parse(&reader, list, count, *meta))
        return 0;
    for (size_t i = 0; i < *count; i++)
        free((*list)[i].name);
    free(*list);
    json_decref(*meta);
    *list = NULL;
    *meta = NULL;
    return -1;
}
