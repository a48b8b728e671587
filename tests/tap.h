/* tap.h - the Test Anything Protocol: a test is a program that prints "ok" or "not ok" lines. */
#pragma once

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_count, tap_failed;

/* Prints ok or not ok with a printf-like text. Returns the condition. The line is flushed at
 * once: a child process would otherwise write the buffered line again. */
#define ok(condition, ...)                                                                        \
    ((condition) ? (printf("ok %d - ", ++tap_count), printf(__VA_ARGS__), puts(""),               \
                    fflush(stdout), 1)                                                            \
                 : (printf("not ok %d - ", ++tap_count), printf(__VA_ARGS__), puts(""),           \
                    printf("# %s:%d: %s\n", __FILE__, __LINE__, #condition), fflush(stdout),      \
                    tap_failed++, 0))

#define skip(why) printf("ok %d # SKIP %s\n", ++tap_count, why)

/* Prints the number of tests. Last statement of main: returns the exit code. */
static inline int tap_done(void)
{
    printf("1..%d\n", tap_count);
    return tap_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
