/* order.h - the smaller and the larger of two sizes, and comparisons for qsort(): ascending. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline size_t order_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t order_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Order texts (const char *), doubles and int64_t. */
static inline int order_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static inline int order_reals(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline int order_ints(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}
