/* column.h - a long list of numbers, kept in as few bytes as they can be had back from, bit by bit.
 * What comes out is what went in; NaN comes out as NaN.
 */
#ifndef BASE_COLUMN_H
#define BASE_COLUMN_H

#include <stddef.h>

enum { COLUMN_BLOCK = 512 };

struct column { /* begins as zeroes */
    struct column_block *block; /* of COLUMN_BLOCK numbers each */
    size_t cap_blocks;
    double *tail; /* those behind the last full block */
    size_t n, cap_tail;
};

void column_add(struct column *c, double value);
double column_at(const struct column *c, size_t i); /* i < c->n */
void column_free(struct column *c);

#endif
