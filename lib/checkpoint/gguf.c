/* gguf.c - reads the header of a GGUF file; see gguf.h. Every number of the file is hostile: a
 * length is compared with the bytes that are left before it is used, products are checked, and what
 * is kept is limited. */
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
static const unsigned char *take(struct gguf_reader *r, uint64_t n)
{
    const unsigned char *p = r->bytes + r->at;
    if (n > r->n - r->at) {
        err_set(r->e, EXIT_BAD_DATA, "%s: byte %zu: expected %llu more bytes of the header, got "
                "%zu", r->path, r->at, (unsigned long long)n, r->n - r->at);
        return NULL;
    }
    r->at += (size_t)n;
    return p;
}

static uint64_t number_at(const unsigned char *p, size_t bytes)
{
    uint64_t v = 0;
    while (bytes-- > 0)
        v = v << 8 | p[bytes];
    return v;
}

static int take_number(struct gguf_reader *r, size_t bytes, uint64_t *v)
{
    const unsigned char *p = take(r, bytes);
    if (p)
        *v = number_at(p, bytes);
    return p ? 0 : -1;
}

static const char *take_text(struct gguf_reader *r, size_t *n)
{
    uint64_t bytes;
    if (take_number(r, 8, &bytes))
        return NULL;
    *n = (size_t)bytes;
    return (const char *)take(r, bytes);
}

/* A name as a C string, the caller's. NULL: refused. */
static char *take_name(struct gguf_reader *r, const char *what)
{
    size_t n, at = r->at;
    const char *text = take_text(r, &n);
    if (!text)
        return NULL;
    if (n && n <= GGUF_MAX_NAME && !memchr(text, 0, n) && utf8_valid(text, n) == n)
        return mem_format("%.*s", (int)n, text);
    err_set(r->e, EXIT_BAD_DATA, "%s: byte %zu: name of a %s: expected 1 to %d bytes of UTF-8, got "
            "%zu bytes", r->path, at, what, GGUF_MAX_NAME, n);
    return NULL;
}

/* A number as JSON; null: JSON has no such number. */
static json_t *scalar(const unsigned char *p, uint64_t type)
{
    const size_t bytes = type_bytes[type];
    const uint64_t v = number_at(p, bytes);
    const int is_signed = type == TYPE_I8 || type == TYPE_I16 || type == TYPE_I32;
    const uint64_t sign = is_signed && bytes ? UINT64_C(1) << (8 * bytes - 1) : 0;
    json_t *j = NULL;
    float f;
    double d;
    memcpy(&f, p, bytes == 4 ? 4 : 0);
    memcpy(&d, p, bytes == 8 ? 8 : 0);
    if (type == TYPE_F32)
        j = json_real((double)f);
    else if (type == TYPE_F64)
        j = json_real(d);
    else if (type == TYPE_BOOL)
        j = json_boolean(v != 0);
    else if (v <= INT64_MAX || type == TYPE_I64)
        j = json_integer((json_int_t)((v ^ sign) - sign));
    return j ? j : json_null();
}

/* The next value of a type that is not an array. NULL: the file ends. */
static json_t *take_value(struct gguf_reader *r, uint64_t type)
{
    size_t n;
    const char *text = type == TYPE_TEXT ? take_text(r, &n) : NULL;
    const unsigned char *p = type == TYPE_TEXT ? NULL : take(r, type_bytes[type]);
    if (!text && !p)
        return NULL;
    json_t *j = text ? json_stringn(text, n) : scalar(p, type);
    return j ? j : json_null(); /* text that is not UTF-8 */
}

static int refuse_type(const struct gguf_reader *r, const char *key, uint64_t type)
{
    return err_set(r->e, EXIT_BAD_DATA, "%s: %s: expected a type from 0 to %d and no array "
                   "inside an array, got type %llu", r->path, key, TYPES - 1,
                   (unsigned long long)type);
}

/* An array; its items are kept if it is one of the tokenizer. */
static int take_array(struct gguf_reader *r, const char *key, json_t **out)
{
    uint64_t type, count;
    const int keeps = !strncmp(key, "tokenizer.", 10);
    if (take_number(r, 4, &type) || take_number(r, 8, &count))
        return -1;
    if (type >= TYPES || type == TYPE_ARRAY)
        return refuse_type(r, key, type);
    if (keeps && count > GGUF_MAX_ITEMS - r->kept)
        return err_set(r->e, EXIT_BAD_DATA, "%s: %s: expected at most %d items in all arrays of "
                       "the tokenizer, got %llu more after %llu", r->path, key, GGUF_MAX_ITEMS,
                       (unsigned long long)count, (unsigned long long)r->kept);
    r->kept += keeps ? count : 0;
    *out = keeps ? json_array() : json_null();
    for (uint64_t i = 0; i < count; i++) {
        json_t *item = take_value(r, type);
        if (!item)
            return -1;
        if (keeps)
            json_array_append_new(*out, item);
        else
            json_decref(item);
    }
    return 0;
}

static int take_key(struct gguf_reader *r, json_t *meta)
{
    uint64_t type;
    char *key = take_name(r, "key");
    json_t *value = NULL;
    int bad = !key || take_number(r, 4, &type);
    if (!bad && type >= TYPES)
        bad = refuse_type(r, key, type);
    else if (!bad && type == TYPE_ARRAY)
        bad = take_array(r, key, &value);
    else if (!bad)
        bad = !(value = take_value(r, type));
    if (!bad && json_object_get(meta, key))
        bad = err_set(r->e, EXIT_BAD_DATA, "%s: the key %s appears twice", r->path, key);
    if (!bad)
        json_object_set(meta, key, value);
    json_decref(value);
    free(key);
    return bad ? -1 : 0;
}

/* Name, shape, format, bytes and offset (into the data) of a tensor. */
static int take_tensor(struct gguf_reader *r, struct tensor *t, uint64_t *offset)
{
    uint64_t rank, size, id;
    size_t values = 1, bytes = 1, total = 1;
    if (!(t->name = take_name(r, "tensor")) || take_number(r, 4, &rank))
        return -1;
    if (rank < 1 || rank > 4)
        return err_set(r->e, EXIT_BAD_DATA, "%s: tensor %s: expected a rank from 1 to 4, got %llu",
                       r->path, t->name, (unsigned long long)rank);
    t->rank = (size_t)rank;
    for (size_t i = t->rank; i-- > 0;) {
        if (take_number(r, 8, &size))
            return -1;
        t->shape[i] = (size_t)size;
        if (size > INT32_MAX || mem_size_mul(total, t->shape[i], &total))
            return err_set(r->e, EXIT_BAD_DATA, "%s: tensor %s: expected sizes below 2^31 and "
                           "a product below 2^64, got %llu", r->path, t->name,
                           (unsigned long long)size);
    }
    if (take_number(r, 4, &id) || take_number(r, 8, offset))
        return -1;
    const char *dtype = tensor_block_dtype((uint32_t)id, &values, &bytes);
    if (!dtype)
        return err_set(r->e, EXIT_BAD_DATA, "%s: tensor %s: expected F32, F16, BF16, Q8_0, Q4_0, "
                       "Q4_1, Q4_K or Q6_K, got format %llu", r->path, t->name,
                       (unsigned long long)id);
    memcpy(t->dtype, dtype, strlen(dtype) + 1);
    if (mem_size_mul(total / values, bytes, &t->bytes))
        return err_set(r->e, EXIT_BAD_DATA, "%s: tensor %s: expected less than 2^64 bytes", r->path,
                       t->name);
    if (t->shape[t->rank - 1] % values)
        return err_set(r->e, EXIT_BAD_DATA, "%s: tensor %s: expected a row length that is a "
                       "multiple of %zu, got %zu", r->path, t->name, values, t->shape[t->rank - 1]);
    return 0;
}

/* Points each tensor to its bytes in the file. */
static int place(const struct gguf_reader *r, struct tensor *list, const uint64_t *offset, size_t n,
                 const json_t *meta)
{
    const json_t *said = json_object_get(meta, "general.alignment");
    const json_int_t align = said ? json_integer_value(said) : 32;
    if (align < 1 || align > 1 << 16 || (align & (align - 1)))
        return err_set(r->e, EXIT_BAD_DATA, "%s: general.alignment: expected a power of 2 up to "
                       "65536, got %lld", r->path, (long long)align);
    const size_t begin = (r->at + (size_t)align - 1) / (size_t)align * (size_t)align;
    for (size_t i = 0; i < n; i++) {
        if (begin > r->n || offset[i] > r->n - begin ||
            list[i].bytes > r->n - begin - (size_t)offset[i] || offset[i] % (uint64_t)align)
            return err_set(r->e, EXIT_BAD_DATA, "%s: tensor %s: expected %zu bytes at a multiple "
                           "of %lld from byte %zu on, got offset %llu in a file of %zu", r->path,
                           list[i].name, list[i].bytes, (long long)align, begin,
                           (unsigned long long)offset[i], r->n);
        list[i].data = r->bytes + begin + (size_t)offset[i];
    }
    return 0;
}

static int parse(struct gguf_reader *r, struct tensor **list, size_t *count, json_t *meta)
{
    uint64_t version, tensors, keys;
    const unsigned char *magic = take(r, 4);
    if (magic && memcmp(magic, "GGUF", 4))
        return err_set(r->e, EXIT_BAD_DATA, "%s: expected a file that begins with GGUF", r->path);
    if (!magic || take_number(r, 4, &version) || take_number(r, 8, &tensors) ||
        take_number(r, 8, &keys))
        return -1;
    if (version < 2 || version > 3)
        return err_set(r->e, EXIT_BAD_DATA, "%s: GGUF version: expected 2 or 3, got %llu", r->path,
                       (unsigned long long)version);
    if (tensors > GGUF_MAX_ENTRIES || keys > GGUF_MAX_ENTRIES)
        return err_set(r->e, EXIT_BAD_DATA, "%s: expected at most %d tensors and keys, got %llu "
                       "and %llu", r->path, GGUF_MAX_ENTRIES, (unsigned long long)tensors,
                       (unsigned long long)keys);
    for (uint64_t i = 0; i < keys; i++)
        if (take_key(r, meta))
            return -1;
    uint64_t *offset = mem_zero((size_t)tensors + 1, sizeof *offset);
    *list = mem_zero((size_t)tensors + 1, sizeof **list);
    int bad = 0;
    for (*count = 0; !bad && *count < tensors; ++*count)
        bad = take_tensor(r, *list + *count, offset + *count);
    bad = bad || place(r, *list, offset, *count, meta);
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
    struct gguf_reader r = {.bytes = bytes, .n = n, .path = path, .e = e};
    *meta = json_object();
    *list = NULL;
    *count = 0;
    if (!parse(&r, list, count, *meta))
        return 0;
    for (size_t i = 0; i < *count; i++)
        free((*list)[i].name);
    free(*list);
    json_decref(*meta);
    *list = NULL;
    *meta = NULL;
    return -1;
}
