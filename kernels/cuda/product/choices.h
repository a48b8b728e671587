/* choices.h - which algorithm the library was fastest with, per shape: a table that outlives the
 * process as a file of one line a shape.
 *
 *     type add align T N K ldy ldx ldw  eight words of the algorithm, in hexadecimal
 *
 * separated by tabs; T stands for all numbers of rows that are rounded up to it. A file that is not
 * exactly of that form is as good as none: the shapes are timed again. Whoever reads an algorithm
 * lets the library check it before using it.
 */
#ifndef KERNELS_CUDA_PRODUCT_CHOICES_H
#define KERNELS_CUDA_PRODUCT_CHOICES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CHOICE_KEY = 9, CHOICE_WORDS = 8 };
struct gemm_choice {
    uint64_t key[CHOICE_KEY];
    uint64_t algo[CHOICE_WORDS];
    int state;   /* 0: from the file, unchecked; 1: first guess; 2: timed; 3: a guess that was not
                  * timed; -1: there is none */
    size_t rows; /* with which it was last found good, of those that share it */
};
struct choices {
    struct gemm_choice *at;
    size_t n, room;
};

/* Where the choices for a device and a version of the library are kept, in a folder that is there:
 * $XDG_CACHE_HOME/crossover/gemm-DEVICE-VERSION.tsv, or below ~/.cache. NULL: nowhere. The
 * caller's. */
char *choices_path(const char *device, size_t version);

/* NULL when there is none of that key. */
struct gemm_choice *choices_find(const struct choices *c, const uint64_t key[CHOICE_KEY]);
/* A new one, all zero but the key. It stays where it is until the next one is added. */
struct gemm_choice *choices_add(struct choices *c, const uint64_t key[CHOICE_KEY]);
void choices_free(struct choices *c);

/* Adds the lines of a file; a missing or broken one adds nothing. */
void choices_read(struct choices *c, const char *path);
/* Writes what was read or timed, beside the file and renamed; a failure is no matter. */
void choices_write(const struct choices *c, const char *path);

#ifdef __cplusplus
}
#endif

#endif
