/* test-header.c - feeds headers of safetensors files in memory: accepted tensors cover the data.
 * The first two bytes are the size of the data. test-safetensors.c tests whole files. */
#include "lib/checkpoint/safetensors-header.h"
#include "tests/fuzz/fuzz.h"

enum { DATA = 1 << 16 };

static int fuzz_seed(size_t i, struct buf *to)
{
    static const char *const header[] = {
        "{}", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}",
        "{\"__metadata__\":{\"format\":\"pt\",\"k\\u0041\":\"v\"},"
        "\"b\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[4,6]},"
        "\"a.weight\":{\"shape\":[4],\"dtype\":\"U8\",\"data_offsets\":[0,4]},"
        "\"z\":{\"dtype\":\"F4\",\"shape\":[1,2,0],\"data_offsets\":[6,6]}}  "};
    static const char data[] = {0, 24, 6};
    if (i >= sizeof data)
        return 0;
    buf_put(to, &data[i], 1);
    buf_put(to, "", 1);
    buf_text(to, header[i]);
    return 1;
}

static void fuzz_one(const char *bytes, size_t n)
{
    static const unsigned char data[DATA];
    struct err e = {0};
    struct tensor *list;
    size_t count, sum = 0;
    if (n < 2)
        return;
    size_t size = (unsigned char)bytes[0] | (size_t)(unsigned char)bytes[1] << 8;
    if (safetensors_header_parse(bytes + 2, n - 2, "x", data, size, &list, &count, &e)) {
        fuzz_check_refused(&e);
        fuzz_check(e.code == EXIT_BAD_DATA && !list);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        fuzz_check(list[i].data == data + sum && *list[i].name);
        sum += list[i].bytes;
    }
    fuzz_check(sum == size);
    safetensors_header_free(list, count);
}

FUZZ_TARGET("header", 2000)
