/* test-safetensors.c - headers of safetensors files: the tensors of an opened file cover it. */
#include "lib/checkpoint/safetensors.h"
#include "tests/fuzz/fuzz.h"

/* A seed is u64 N, a header of N bytes, data. */
static int fuzz_seed(size_t i, struct buf *to)
{
    static const char *const header[] = {
        "{}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}",
        "{\"__metadata__\":{\"format\":\"pt\",\"k\\u0041\":\"v\"},"
        "\"b\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[4,6]},"
        "\"a.weight\":{\"shape\":[4],\"dtype\":\"U8\",\"data_offsets\":[0,4]},"
        "\"z\":{\"dtype\":\"F4\",\"shape\":[1,2,0],\"data_offsets\":[6,6]}}  ",
    };
    static const size_t data[] = {0, 24, 6};
    if (i >= sizeof data / sizeof *data)
        return 0;
    size_t n = strlen(header[i]);
    for (int k = 0; k < 8; k++)
        buf_char(to, (char)(n >> 8 * k));
    buf_text(to, header[i]);
    for (size_t k = 0; k < data[i]; k++)
        buf_char(to, (char)k);
    return 1;
}

static void fuzz_one(const char *bytes, size_t n)
{
    struct err e = {0};
    struct tensors *t = safetensors_open_file(fuzz_file(bytes, n), &e);
    size_t sum = 0, seen = 0;
    if (!t) {
        fuzz_check_refused(&e);
        fuzz_check(e.code == EXIT_BAD_DATA);
        return;
    }
    for (size_t i = 0; i < safetensors_count(t); i++) {
        const struct tensor *it = safetensors_at(t, i);
        fuzz_check(safetensors_find(t, it->name) == it);
        for (size_t k = 0; k < it->bytes; k++)
            sum += it->data[k];
        seen += it->bytes;
    }
    fuzz_check(sum <= 255 * seen && seen <= n);
    safetensors_close(t);
}

FUZZ_TARGET("safetensors", 2000)
