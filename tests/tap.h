/* tap.h - the Test Anything Protocol in a page: a test is a program that says "ok" or "not ok". */
#pragma once

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_count, tap_failed;

/* Says ok or not ok; the text is printf-like. Returns the condition. */
#define ok(condition, ...)                                                                      \
    ((condition) ? (printf("ok %d - ", ++tap_count), printf(__VA_ARGS__), puts(""), 1)          \
                 : (printf("not ok %d - ", ++tap_count), printf(__VA_ARGS__), puts(""),         \
                    printf("# %s:%d: %s\n", __FILE__, __LINE__, #condition), tap_failed++, 0))

#define skip(why) printf("ok %d # SKIP %s\n", ++tap_count, why)

/* Last statement of main. */
static inline int tap_done(void)
{
    printf("1..%d\n", tap_count);
    return tap_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
