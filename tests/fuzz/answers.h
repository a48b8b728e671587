/* answers.h - makes seeds for targets that score answers: made-up answers together with the right
 * answer, and answers of a generator. */
#pragma once

#include "tests/fuzz/mutate.h"

static int fuzz_seed(size_t i, struct buf *to)
{
    static const char own[] =
        "{\"kind\":\"generation\",\"id\":\"%d\",\"config\":\"c\",\"seed\":7,\"copies\":%d,\"task\":"
        "\"copy\",\"answer\":\"%s\",\"reference\":[\"A cat, 1,050.0 of it\",\"b a\"],"
        "\"text\":\"{b, a} -7 cat 1,050 of it\"}\n";
    static const char *const answers[] = {"{a, b}", "1050", "-7.50", "cat", "1,050.0 or 3"};
    enum { ANSWERS = sizeof answers / sizeof *answers };
    if (i < 2)
        buf_char(to, (char)('a' + i));
    for (size_t k = 0; i == 0 && k < ANSWERS; k++)
        buf_format(to, own, (int)k, (int)k + 1, answers[k]);
    if (i == 1)
        mutate_take("tests/fixtures/measure-generation.ndjson", 1, 5, 10, to);
    return i < 2;
}
