/* test-safetensors.c - tests the rules of the format one by one: files that are good or bad for one
 * reason; cut at every byte; flipped at every bit; 100,000 tensors; written files are read back. */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/checkpoint/safetensors.h"
#include "tests/files.h"
#include "tests/tap.h"

static char path[128]; /* folder/x */

/* Makes a file with this header and `data` bytes after it. */
static void make(struct buf *b, const void *header, size_t n, size_t data)
{
    buf_clear(b);
    for (int i = 0; i < 8; i++)
        buf_char(b, (char)(n >> 8 * i));
    buf_put(b, header, n);
    for (size_t i = 0; i < data; i++)
        buf_char(b, (char)(i * 7 + 1));
}

/* Tests that `path` is a good file (says NULL), or is refused with 65 and a message with `says`. */
static int judge(const char *says, struct err *e)
{
    *e = (struct err){0};
    struct tensors *t = safetensors_open_file(path, e);
    int as_said = says ? !t && e->code == EXIT_BAD_DATA && strstr(e->text, says) &&
                             strstr(e->text, path) && !strchr(e->text, '\n')
                       : t && !e->code;
    safetensors_close(t);
    return as_said;
}

#define T "\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]"
#define GOOD "{\"a\":{" T "}}"
static const struct { const char *group, *header; size_t data; const char *says;
} cases[] = {
    /* whitespace and encoding */
    {"space", " \t\r\n" GOOD, 4, NULL},
    {"space", GOOD " \t\r\n   ", 4, NULL},
    {"space",
     " { \"a\" : { \"dtype\" : \"U8\" , \"shape\" : [ 4 ] , \"data_offsets\" : [ 0 , 4 ] } } ", 4,
     NULL},
    {"space", "\v" GOOD, 4, "'[' or '{' expected"},
    {"space", "\xef\xbb\xbf" GOOD, 4, "'[' or '{' expected"},
    {"space", "\xc2\xa0" GOOD, 4, "'[' or '{' expected"},
    {"space", "{\"\xff\":{" T "}}", 4, "unable to decode byte 0xff"},
    {"space", "{\"\xc0\x80\":{" T "}}", 4, "unable to decode byte 0xc0"},
    {"space", "{\"\xed\xa0\x80\":{" T "}}", 4, "unable to decode byte 0xed"},
    {"space", "{\"\xf4\x90\x80\x80\":{" T "}}", 4, "unable to decode byte 0xf4"},
    {"space", "{\"\xe2\x82\":{" T "}}", 4, "unable to decode byte 0xe2"},
    {"space", "{\"\xe2\x82\xac\xf0\x9f\x98\x80\":{" T "}}", 4, NULL},
    {"space", GOOD "\xff", 4, "unable to decode byte 0xff"},
    /* shape of the JSON */
    {"json", "", 0, "'[' or '{' expected"},
    {"json", "{}", 0, NULL},
    {"json", "{ }", 0, NULL},
    {"json", "{}", 1, "1 bytes"},
    {"json", "[]", 0, "expected a JSON object"},
    {"json", "1", 0, "'{'"},
    {"json", "\"a\"", 0, "'{'"},
    {"json", "null", 0, "'{'"},
    {"json", "{", 0, "string or '}' expected"},
    {"json", "}", 0, "'{'"},
    {"json", GOOD GOOD, 4, "end of file expected"},
    {"json", GOOD ",", 4, "end of file expected"},
    {"json", "{\"a\" {" T "}}", 4, "':'"},
    {"json", "{\"a\":[" T "]}", 4, "']' expected"},
    {"json", "{\"a\":null}", 0, "expected dtype"},
    {"json", "{\"a\":1}", 0, "expected dtype"},
    {"json", "/* c */" GOOD, 4, "'{'"},
    {"json", "{\"a\":{\"dtype\":\"U8\",\"shape\":[[[[4]]]],\"data_offsets\":[0,4]}}", 4, "integer"},
    /* fields */
    {"field", "{\"a\":{}}", 0, "dtype, shape and data_offsets"},
    {"field", "{\"a\":{\"shape\":[4],\"data_offsets\":[0,4]}}", 4, "expected dtype"},
    {"field", "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,4]}}", 4, "expected dtype"},
    {"field", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4]}}", 4, "expected dtype"},
    {"field", "{\"a\":{" T ",\"x\":1}}", 4, "expected dtype"},
    {"field", "{\"a\":{" T ",\"Dtype\":\"U8\"}}", 4, "expected dtype"},
    {"field", "{\"a\":{" T ",\"dtype\":\"U8\"}}", 4, "duplicate object key"},
    {"field", "{\"a\":{" T ",\"shape\":[4]}}", 4, "duplicate object key"},
    {"field", "{\"a\":{" T ",\"data_offsets\":[0,4]}}", 4, "duplicate object key"},
    {"field", "{\"a\":{\"dtype\\u0000\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4,
     "NUL byte"},
    {"field", "{\"a\":{\"\\u0064type\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, NULL},
    {"field", "{\"a\":{\"data_offsets\":[0,4],\"shape\":[4],\"dtype\":\"U8\"}}", 4, NULL},
    {"field", "{\"a\":{\"dtype\":8,\"shape\":[4],\"data_offsets\":[0,4]}}", 4,
     "a dtype of the format"},
    {"field", "{\"a\":{\"dtype\":null,\"shape\":[4],\"data_offsets\":[0,4]}}", 4,
     "a dtype of the format"},
    {"field", "{\"a\":{\"dtype\":{\"U8\":null},\"shape\":[4],\"data_offsets\":[0,4]}}", 4,
     "a dtype of the format"},
    {"field", "{\"a\":{\"dtype\":\"U8\",\"shape\":4,\"data_offsets\":[0,4]}}", 4,
     "a shape of at most 8"},
    {"field", "{\"a\":{\"dtype\":\"U8\",\"shape\":{},\"data_offsets\":[0,4]}}", 4,
     "a shape of at most 8"},
    {"field", "{\"a\":{\"dtype\":\"U8\",\"shape\":[\"4\"],\"data_offsets\":[0,4]}}", 4, "integer"},
    {"field", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4.0],\"data_offsets\":[0,4]}}", 4,
     "a shape of at most 8"},
    {"field", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4e0],\"data_offsets\":[0,4]}}", 4,
     "a shape of at most 8"},
    {"field", "{\"a\":{\"dtype\":\"U8\",\"shape\":[-4],\"data_offsets\":[0,4]}}", 4, "integer"},
    {"field", "{\"a\":{\"dtype\":\"U8\",\"shape\":[+4],\"data_offsets\":[0,4]}}", 4,
     "invalid token"},
    {"field", "{\"a\":{\"dtype\":\"U8\",\"shape\":[04],\"data_offsets\":[0,4]}}", 4,
     "invalid token"},
    {"field", "{\"a\":{\"dtype\":\"U8\",\"shape\":[-0],\"data_offsets\":[0,0]}}", 0, NULL},
    {"field", "{\"a\":{\"dtype\":\"U8\",\"shape\":[0x4],\"data_offsets\":[0,4]}}", 4,
     "']' expected"},
    {"field", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4,],\"data_offsets\":[0,4]}}", 4,
     "unexpected token"},
    {"field", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4 1],\"data_offsets\":[0,4]}}", 4,
     "']' expected"},
    {"field", "{\"a\":{\"dtype\":\"U8\",\"shape\":[true],\"data_offsets\":[0,4]}}", 4, "integer"},
    {"field", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[]}}", 4,
     "two data_offsets"},
    {"field", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0]}}", 4,
     "two data_offsets"},
    {"field", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4,4]}}", 4,
     "two data_offsets"},
    {"field", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0.0,4]}}", 4,
     "two data_offsets"},
    {"field", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[-1,3]}}", 4,
     "two data_offsets"},
    {"field", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":{\"a\":0}}}", 4,
     "two data_offsets"},
    /* arithmetic */
    {"sum", "{\"a\":{\"dtype\":\"U8\",\"shape\":[18446744073709551616],\"data_offsets\":[0,4]}}", 4,
     "too big integer"},
    {"sum", "{\"a\":{\"dtype\":\"U8\",\"shape\":[18446744073709551615],\"data_offsets\":[0,4]}}", 4,
     "too big integer"},
    {"sum", "{\"a\":{\"dtype\":\"U8\",\"shape\":[281474976710656],\"data_offsets\":[0,4]}}", 4,
     "2^48"},
    {"sum", "{\"a\":{\"dtype\":\"U8\",\"shape\":[2147483648],\"data_offsets\":[0,4]}}", 4,
     "dimension"},
    {"sum", "{\"a\":{\"dtype\":\"U8\",\"shape\":[2147483647],\"data_offsets\":[0,4]}}", 4, "need"},
    {"sum", "{\"a\":{\"dtype\":\"U8\",\"shape\":[2147483647,2147483647,5],\"data_offsets\":[0,4]}}",
     4, "overflows"},
    {"sum", "{\"a\":{\"dtype\":\"F64\",\"shape\":[2147483647,2147483647],\"data_offsets\":[0,4]}}",
     4, "overflows"},
    {"sum",
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[2147483647,2147483647,2147483647,0],"
     "\"data_offsets\":[0,0]}}",
     0, "overflows"},
    {"sum",
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[0,2147483647,2147483647,2147483647],"
     "\"data_offsets\":[0,0]}}",
     0, NULL},
    {"sum", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,4],\"data_offsets\":[0,4]}}", 4,
     NULL},
    {"sum", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,4],\"data_offsets\":[0,4]}}", 4,
     "a shape of at most 8"},
    {"sum",
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[281474976710652,281474976710656]}}",
     4, "2^48"},
    {"sum",
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[281474976710651,281474976710655]}}",
     4, "ends at data byte"},
    {"sum", "{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1, "whole number"},
    {"sum", "{\"a\":{\"dtype\":\"F4\",\"shape\":[4],\"data_offsets\":[0,2]}}", 2, NULL},
    {"sum", "{\"a\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[0,3]}}", 3, NULL},
    {"sum", "{\"a\":{\"dtype\":\"F6_E3M2\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1,
     "whole number"},
    /* coverage of the data */
    {"cover", GOOD, 3, "holds 3 bytes"},
    {"cover", GOOD, 5, "tensors cover 4"},
    {"cover", GOOD, 0, "holds 0 bytes"},
    {"cover", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,0]}}", 4, "need 4 bytes"},
    {"cover", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,3]}}", 4, "need 4 bytes"},
    {"cover", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,5]}}", 5, "need 4 bytes"},
    {"cover", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,4]}}", 4,
     "need 16 bytes"},
    {"cover", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[1,5]}}", 5, "hole"},
    {"cover", "{\"a\":{" T "},\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[5,7]}}", 7,
     "hole"},
    {"cover", "{\"a\":{" T "},\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[3,5]}}", 5,
     "overlap"},
    {"cover", "{\"a\":{" T "},\"b\":{" T "}}", 4, "overlap"},
    {"cover", "{\"a\":{" T "},\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}", 4,
     "overlap"},
    {"cover", "{\"a\":{" T "},\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[4,6]}}", 6,
     NULL},
    {"cover", "{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[4,6]},\"a\":{" T "}}", 6,
     NULL},
    {"cover", "{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1, NULL},
    {"cover", "{\"a\":{\"dtype\":\"U8\",\"shape\":[2,0],\"data_offsets\":[0,0]}}", 0, NULL},
    {"cover", "{\"a\":{" T "},\"z\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 4,
     NULL},
    {"cover", "{\"a\":{" T "},\"z\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[4,4]}}", 4,
     NULL},
    {"cover", "{\"a\":{" T "},\"z\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[2,2]}}", 4,
     "overlap"},
    {"cover", "{\"z\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[2,2]}}", 2, "hole"},
    {"cover", "{\"z\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[9,9]}}", 2,
     "ends at data byte"},
    {"cover",
     "{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]},"
     "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
     5, NULL},
    /* metadata */
    {"meta", "{\"__metadata__\":{}}", 0, NULL},
    {"meta", "{\"__metadata__\":{\"format\":\"pt\"},\"a\":{" T "}}", 4, NULL},
    {"meta", "{\"a\":{" T "},\"__metadata__\":{\"k\":\"\\u0000\\ud83d\\ude00\"}}", 4, NULL},
    {"meta", "{\"__metadata__\":null}", 0, "expected a map of strings"},
    {"meta", "{\"__metadata__\":[]}", 0, "expected a map of strings"},
    {"meta", "{\"__metadata__\":\"x\"}", 0, "expected a map of strings"},
    {"meta", "{\"__metadata__\":{\"k\":1}}", 0, "expected a map of strings"},
    {"meta", "{\"__metadata__\":{\"k\":null}}", 0, "expected a map of strings"},
    {"meta", "{\"__metadata__\":{\"k\":{\"x\":\"y\"}}}", 0, "expected a map of strings"},
    {"meta", "{\"__metadata__\":{\"k\":[\"x\"]}}", 0, "expected a map of strings"},
    {"meta", "{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, "duplicate object key"},
    {"meta", "{\"__metadata__\":{\"k\":\"1\",\"\\u006b\":\"2\"}}", 0, "duplicate object key"},
    {"meta", "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "duplicate object key"},
    {"meta", "{\"__metadata__\":{},\"\\u005f_metadata__\":{}}", 0, "duplicate object key"},
    {"meta", "{\"__metadata__\":{\"k\":\"1\",}}", 0, "string or '}' expected"},
    {"meta", "{\"__metadata__\":{\"k\\u0000\":\"1\"}}", 0, "NUL"},
    /* names and strings */
    {"name", "{\"\":{" T "}}", 4, "name of 0 bytes"},
    {"name", "{\"a\\u0000b\":{" T "}}", 4, "NUL"},
    {"name", "{\"a\":{" T "},\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[4,5]}}", 5,
     "duplicate object key"},
    {"name", "{\"a\":{" T "},\"\\u0061\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[4,5]}}",
     5, "duplicate object key"},
    {"name", "{\"../../etc/passwd\":{" T "}}", 4, NULL},
    {"name", "{\"%s%n\":{" T "}}", 4, NULL},
    {"name", "{\"%s%n\":{\"x\":1}}", 4, "%s%n"},
    {"name", "{\"\\u001b[31m\":{\"x\":1}}", 4, "\\x1b[31m"},
    {"name", "{\"\\ud83d\":{" T "}}", 4, "invalid Unicode '\\uD83D'"},
    {"name", "{\"\\ud83dx\\u0041\":{" T "}}", 4, "invalid Unicode '\\uD83D'"},
    {"name", "{\"\\ud83d\\u0041\":{" T "}}", 4, "invalid Unicode '\\uD83D\\u0041'"},
    {"name", "{\"\\ude00\":{" T "}}", 4, "invalid Unicode '\\uDE00'"},
    {"name", "{\"\\u12g4\":{" T "}}", 4, "invalid escape"},
    {"name", "{\"\\x41\":{" T "}}", 4, "invalid escape"},
    {"name", "{\"a\nb\":{" T "}}", 4, "unexpected newline"},
    {"name", "{\"\\\"\\\\\\/\\b\\f\\n\\r\\t\":{" T "}}", 4, NULL},
    {"name", "{\"a", 0, "premature end of input"},
    {"name", "{\"a\\", 0, "invalid escape"},
    {"name", "{\"a\\u00", 0, "invalid escape"},
};

static void test_cases(struct buf *b)
{
    struct err e;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make(b, cases[i].header, strlen(cases[i].header), cases[i].data);
        files_put(path, b->data, b->len);
        int good = judge(cases[i].says, &e);
        ok(good, "%s %zu: %s", cases[i].group, i, cases[i].says ? e.text : "accepted");
        if (!good)
            printf("# header %s\n# wanted %s, got %d %s\n", cases[i].header,
                   cases[i].says ? cases[i].says : "a good file", e.code, e.text);
    }
}

static void test_dtypes(struct buf *b)
{
    static const struct { const char *name; int bytes; } all[] = { /* bytes of 8 elements */
        {"BOOL", 8}, {"F4", 4}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8}, {"I8", 8},
        {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
        {"I16", 16}, {"U16", 16}, {"F16", 16}, {"BF16", 16}, {"I32", 32}, {"U32", 32},
        {"F32", 32}, {"C64", 64}, {"F64", 64}, {"I64", 64}, {"U64", 64},
        {"f32", 0}, {"F", 0}, {"", 0}, {"FP32", 0}, {"F32 ", 0}, {"F32\\u0000", 0}, {"Q4_0", 0},
        {"AVERYLONGDTYPENAMETHATFITSNOWHERE", 0}};
    char header[200];
    struct err e;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int extra = 0; extra < (all[i].bytes ? 2 : 1); extra++) {
            int n = (all[i].bytes ? all[i].bytes : 32) + extra;
            snprintf(header, sizeof header,
                     "{\"a\":{\"dtype\":\"%s\",\"shape\":[8],\"data_offsets\":[0,%d]}}",
                     all[i].name, n);
            make(b, header, strlen(header), (size_t)n);
            files_put(path, b->data, b->len);
            ok(judge(!all[i].bytes ? "a dtype of the format" : extra ? "need" : NULL, &e),
               "dtype %s with %d bytes: %s", all[i].name, n, e.text);
        }
}

/* Framing: the first 8 bytes and the size of the file. */
static void test_framing(struct buf *b)
{
    static const struct { uint64_t length; const char *says; } lengths[] = {
        {0, "end of file"}, {1, "end of file"}, {(sizeof GOOD - 1) + 4, "end of file expected"},
        {(sizeof GOOD - 1) + 5, "header needs"}, {100000000, "header needs 100000008"},
        {100000001, "above the limit"}, {UINT64_MAX, "above the limit"},
        {UINT64_MAX - 7, "above the limit"}, {1ULL << 63, "above the limit"}};
    struct err e;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        make(b, GOOD, sizeof GOOD - 1, 4);
        for (int j = 0; j < 8; j++)
            b->data[j] = (char)(lengths[i].length >> 8 * j);
        files_put(path, b->data, b->len);
        ok(judge(lengths[i].says, &e), "header length %llu: %s",
           (unsigned long long)lengths[i].length, e.text);
    }
    static const char *const starts[] = {"GGUF\3\0\0\0aaaaaaaaa", "PK\3\4aaaaaaaaaaaaa",
                                         "version https://g"};
    static const char *const says[] = {"GGUF", "PyTorch", "git-lfs"};
    for (size_t i = 0; i < 3; i++) {
        files_put(path, starts[i], 17);
        ok(judge(says[i], &e), "%s", e.text);
    }
    files_put(path, "", 0);
    ok(judge("0 bytes", &e), "empty file: %s", e.text);
    make(b, GOOD "\0\0", sizeof GOOD + 1, 4);
    files_put(path, b->data, b->len);
    ok(judge("a NUL byte", &e), "NUL padding: %s", e.text);
    char name[1200], header[1300];
    for (int n = 1024; n <= 1025; n++) {
        memset(name, 'n', sizeof name);
        name[n] = 0;
        snprintf(header, sizeof header, "{\"%s\":{" T "}}", name);
        make(b, header, strlen(header), 4);
        files_put(path, b->data, b->len);
        ok(judge(n == 1024 ? NULL : "name of 1025 bytes", &e), "a name of %d bytes", n);
    }
}

#define TWO                                                                                        \
    "{\"__metadata__\":{\"format\":\"pt\"},\"a.b\":{\"dtype\":\"F32\",\"shape\":[2,3],"            \
    "\"data_offsets\":[0,24]},\"c\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[24,28]}}"

/* B2: no part of a file may be accepted as a file. */
static void test_cuts(struct buf *b)
{
    int missed = 0;
    struct err e;
    make(b, TWO, sizeof TWO - 1, 28);
    for (size_t n = 0; n < b->len; n++) {
        files_put(path, b->data, n);
        missed += !judge("", &e);
    }
    ok(missed == 0, "cut at each of %zu bytes: all refused", b->len);
    buf_char(b, 0);
    files_put(path, b->data, b->len);
    ok(judge("tensors cover 28", &e), "one byte too many: %s", e.text);
    b->len--;
}

/* B3: a file with a flipped bit gives a valid set of tensors or code 65. */
static void test_flips(struct buf *b)
{
    size_t bits = 8 * (8 + sizeof TWO - 1), taken = 0, refused = 0;
    make(b, TWO, sizeof TWO - 1, 28);
    for (size_t i = 0; i < bits; i++) {
        b->data[i / 8] = (char)(b->data[i / 8] ^ 1 << i % 8);
        files_put(path, b->data, b->len);
        struct err e = {0};
        struct tensors *t = safetensors_open_file(path, &e);
        size_t bytes = 0;
        for (size_t j = 0; t && j < safetensors_count(t); j++)
            bytes += safetensors_at(t, j)->bytes;
        taken += t && bytes == 28;
        refused += !t && e.code == EXIT_BAD_DATA;
        safetensors_close(t);
        b->data[i / 8] = (char)(b->data[i / 8] ^ 1 << i % 8);
    }
    ok(taken + refused == bits && refused > bits / 2,
       "%zu single-bit flips: %zu refused, %zu still a proved set", bits, refused, taken);
}

/* B4: a large number of tensors. */
static void test_volume(struct buf *b)
{
    struct buf h = {0};
    struct err e = {0};
    struct rusage before, after;
    const size_t n = 100000;
    buf_char(&h, '{');
    for (size_t i = 0; i < n; i++)
        buf_format(&h, "%s\"t%zu\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%zu,%zu]}",
                   i ? "," : "", i * 7919 % n, 4 * i, 4 * i + 4);
    buf_char(&h, '}');
    make(b, h.data, h.len, 4 * n);
    files_put(path, b->data, b->len);
    clock_t start = clock();
    struct tensors *t = safetensors_open_file(path, &e);
    size_t found = 0;
    for (size_t i = 0; t && i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%zu", i);
        found += safetensors_find(t, name) != NULL;
    }
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    ok(found == n && seconds < 5, "100,000 tensors in %.2f s", seconds);
    safetensors_close(t);

    const size_t spaces = 99999999;
    make(b, "", 0, 0);
    for (int i = 0; i < 8; i++)
        b->data[i] = (char)(spaces >> 8 * i);
    buf_reserve(b, spaces);
    memset(b->data + 8, ' ', spaces);
    files_put(path, b->data, 8 + spaces);
    buf_free(&h);
    getrusage(RUSAGE_SELF, &before);
    start = clock();
    int refused = judge("end of file", &e);
    seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    getrusage(RUSAGE_SELF, &after);
    ok(refused && seconds < 5 && after.ru_maxrss - before.ru_maxrss < 300000,
       "a header of 99,999,999 spaces in %.2f s: %s", seconds, e.text);
    memset(b->data + 8, ',', spaces);
    files_put(path, b->data, 8 + spaces);
    ok(judge("at most 4000000 values", &e), "a header of commas: %s", e.text);
    buf_free(b);
}

static void test_write(void)
{
    const unsigned char data[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    struct tensor list[] = {
        {.name = (char *)"z \"q\" \xe2\x82\xac",
         .dtype = "F32",
         .rank = 2,
         .shape = {2, 3},
         .bytes = 24,
         .data = data},
        {.name = (char *)"empty",
         .dtype = "I64",
         .rank = 1,
         .shape = {0},
         .bytes = 0,
         .data = data},
        {.name = (char *)"s", .dtype = "BF16", .rank = 0, .bytes = 2, .data = data + 24},
    };
    json_t *metadata = json_pack("{s:s}", "format", "pt");
    struct err e = {0};
    struct stat st;
    ok(!safetensors_write(path, list, 3, metadata, &e), "written: %s", e.text);
    struct tensors *t = safetensors_open_file(path, &e);
    ok(t && safetensors_count(t) == 3 && safetensors_files(t) == 1 &&
           !strcmp(safetensors_file(t, 0), path), "the written file is read: %s", e.text);
    for (size_t i = 0; t && i < 3; i++) {
        const struct tensor *r = safetensors_find(t, list[i].name);
        ok(r && !strcmp(r->dtype, list[i].dtype) && r->rank == list[i].rank &&
               !memcmp(r->shape, list[i].shape, r->rank * sizeof *r->shape) &&
               r->bytes == list[i].bytes && !memcmp(r->data, list[i].data, r->bytes),
           "tensor %s is as it was", list[i].name);
    }
    ok(t && !safetensors_find(t, "none") && !safetensors_find(t, ""), "no other name is found");
    ok(t && !stat(path, &st) && st.st_size % 2 == 0 && !safetensors_unchanged(t, &e), "unchanged");
    ok(!safetensors_write(path, list, 1, NULL, &e) && t && !safetensors_unchanged(t, &e),
       "a file replaced by rename leaves the open one as it was");
    safetensors_close(t);
    t = safetensors_open_file(path, &e);
    int fd = open(path, O_WRONLY | O_APPEND);
    if (write(fd, "x", 1) != 1)
        exit(1);
    close(fd);
    ok(t && safetensors_unchanged(t, &e) == -1 && e.code == EXIT_IO && strstr(e.text, "changed"),
       "a file that grows is noticed: %s", e.text);
    safetensors_close(t);
    e = (struct err){0};
    list[0].bytes = 23;
    ok(safetensors_write(path, list, 3, NULL, &e) == -1 && e.code,
       "a wrong size is not written: %s", e.text);
    e = (struct err){0};
    ok(safetensors_write("/nonexistent/x", list + 1, 1, NULL, &e) == -1 &&
           e.code == EXIT_CANNOT_CREATE, "no folder: %s", e.text);
    json_decref(metadata);
}

static void test_open(void)
{
    struct err e = {0};
    ok(!safetensors_open_file("/nonexistent/x", &e) && e.code == EXIT_NO_INPUT, "missing: %s",
       e.text);
    e = (struct err){0};
    ok(!safetensors_open_file(files_root, &e) && e.code == EXIT_NO_INPUT, "a folder: %s", e.text);
    e = (struct err){0};
    unlink(path);
    ok(!mkfifo(path, 0600) && !safetensors_open_file(path, &e) && e.code == EXIT_NO_INPUT,
       "a FIFO does not hang: %s", e.text);
    unlink(path);
}

int main(void)
{
    struct buf b = {0};
    files_begin();
    snprintf(path, sizeof path, "%s/x", files_root);
    test_cases(&b);
    test_dtypes(&b);
    test_framing(&b);
    test_cuts(&b);
    test_flips(&b);
    test_write();
    test_volume(&b);
    test_open();
    buf_free(&b);
    files_end();
    return tap_done();
}
