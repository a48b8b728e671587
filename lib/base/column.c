/* column.c - see column.h. Times in nanoseconds, counts and places are whole numbers that lie close
 * together: a full block keeps its least one, and of each the distance from there in 0 to 7 bytes.
 * A block of equal numbers so takes none, and one with any other number keeps all as they are.
 * Code 0 of a block with NaN in it is NaN.
 */
#include "lib/base/column.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

enum { PLAIN = sizeof(double) };

struct column_block {
    double least;         /* what code 0 is, or 1 where there is NaN */
    unsigned char *codes; /* [COLUMN_BLOCK][width], low byte first; PLAIN: doubles */
    unsigned char width, has_nan;
};

/* 1: it comes back as it is from its distance to any other of these, which a double holds. */
static int is_whole(double v)
{
    int minus_zero = signbit(v) && v >= 0;
    return fabs(v) < 0x1p51 && !(v < trunc(v)) && !(v > trunc(v)) && !minus_zero;
}

/* The form of a block: its width, least number and whether NaN is there; PLAIN if it has none. */
static struct column_block form_of(const double *v)
{
    struct column_block b = {.least = (double)NAN};
    double most = (double)NAN;
    for (size_t i = 0; i < COLUMN_BLOCK; i++) {
        if (isnan(v[i])) {
            b.has_nan = 1;
        } else if (!is_whole(v[i])) {
            b.width = PLAIN;
        } else {
            b.least = fmin(b.least, v[i]);
            most = fmax(most, v[i]);
        }
    }
    if (b.width == PLAIN || isnan(most))
        return b;
    for (double codes = most - b.least + b.has_nan; codes >= 1; codes = floor(codes / 256))
        b.width++;
    return b;
}

static void put_code(unsigned char *to, int width, uint64_t code)
{
    for (int i = 0; i < width; i++)
        to[i] = (unsigned char)(code >> 8 * i);
}

/* The full tail as a block. */
static void seal(struct column *c)
{
    size_t blocks = c->n / COLUMN_BLOCK - 1;
    MEM_GROW(c->block, blocks, c->cap_blocks);
    struct column_block *b = &c->block[blocks];
    *b = form_of(c->tail);
    b->codes = b->width ? mem_alloc((size_t)b->width * COLUMN_BLOCK) : NULL;
    if (b->width == PLAIN)
        memcpy(b->codes, c->tail, COLUMN_BLOCK * sizeof *c->tail);
    for (size_t i = 0; i < COLUMN_BLOCK && b->width && b->width < PLAIN; i++) {
        double code = isnan(c->tail[i]) ? 0 : c->tail[i] - b->least + b->has_nan;
        put_code(b->codes + i * b->width, b->width, (uint64_t)code);
    }
}

void column_add(struct column *c, double value)
{
    size_t at = c->n % COLUMN_BLOCK;
    MEM_GROW(c->tail, at, c->cap_tail);
    c->tail[at] = value;
    if (++c->n % COLUMN_BLOCK == 0)
        seal(c);
}

static double of_block(const struct column_block *b, size_t i)
{
    double v;
    uint64_t code = 0;
    if (b->width == PLAIN) {
        memcpy(&v, b->codes + i * PLAIN, sizeof v);
        return v;
    }
    for (int k = b->width; k-- > 0;)
        code = code << 8 | b->codes[i * b->width + (size_t)k];
    return b->has_nan && !code ? (double)NAN : b->least + ((double)code - b->has_nan);
}

double column_at(const struct column *c, size_t i)
{
    size_t at = i / COLUMN_BLOCK;
    return at < c->n / COLUMN_BLOCK ? of_block(&c->block[at], i % COLUMN_BLOCK)
                                    : c->tail[i % COLUMN_BLOCK];
}

void column_free(struct column *c)
{
    for (size_t i = 0; i < c->n / COLUMN_BLOCK; i++)
        free(c->block[i].codes);
    free(c->block);
    free(c->tail);
    *c = (struct column){0};
}
