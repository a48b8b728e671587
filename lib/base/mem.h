/* mem.h - allocations that end the process when they fail; sizes with overflow checks. */
#pragma once

#include <stddef.h>

#include "lib/base/linkage.h"

C_BEGIN

/* Like malloc, calloc, realloc, strdup, asprintf. If an allocation fails, the process prints one
 * line on standard error and exits 70. The caller frees the result with free(). A size of 0 gives a
 * valid pointer. */
void *mem_alloc(size_t bytes);
void *mem_zero(size_t count, size_t size);
void *mem_resize(void *p, size_t count, size_t size);
char *mem_text(const char *text);
char *mem_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Aligned to 64 bytes (a cache line, an AVX-512 vector); freed with free(). Not cleared. */
void *mem_aligned(size_t bytes);

/* *out = a * b, or a + b. Returns -1 if the result would wrap. For sizes that come from a file. */
int mem_size_mul(size_t a, size_t b, size_t *out);
int mem_size_add(size_t a, size_t b, size_t *out);

/* Makes room for one more element in a growable array: memory p, n elements in use, cap elements
 * allocated. */
#define MEM_GROW(p, n, cap)                                                                     \
    do {                                                                                        \
        if ((n) >= (cap)) {                                                                     \
            (cap) = (cap) ? 2 * (cap) : 16;                                                     \
            (p) = mem_resize((p), (cap), sizeof *(p));                                          \
        }                                                                                       \
    } while (0)

C_END
