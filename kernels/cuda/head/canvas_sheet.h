/* canvas_sheet.h - the layout of shared memory in the block that advances a canvas (advance.cu). */
#pragma once

#include "kernels/advance.h"

enum { CANVAS_THREADS = 512 };
enum { SUM_BAD, SUM_TAKES, SUM_BACKS, SUM_WRITTEN, SUM_MASKS, SUM_EDITED, SUMS };

struct sheet {
    uint64_t *bits;             /* [capacity] scores of the answers, mapped to integers of the same
                                 * order */
    double *confidence;         /* [capacity] confidences of the answers */
    int32_t *id;                /* [capacity] the id that each answer may commit */
    int32_t *pick;              /* [capacity] indices of answers, best first */
    struct canvas_state *state; /* copy of the canvas state, after thread 0 changed it */
    int *sum;                   /* [SUMS] by SUM_BAD, ... */
    int *votes;                 /* [CANVAS_THREADS / 32] room for block_below() */
};

HOST_DEVICE size_t sheet_bytes(size_t capacity)
{
    size_t each = sizeof(uint64_t) + sizeof(double) + 2 * sizeof(int32_t);
    size_t shared = (SUMS + CANVAS_THREADS / 32) * sizeof(int);
    return sizeof(struct canvas_state) + shared + capacity * each;
}

/* The arrays inside `shared`, the widest values first, so that each is aligned. */
HOST_DEVICE struct sheet sheet_of(unsigned char *shared, size_t capacity)
{
    struct sheet sheet;
    sheet.state = (struct canvas_state *)(void *)shared;
    sheet.bits = (uint64_t *)(void *)(sheet.state + 1);
    sheet.confidence = (double *)(void *)(sheet.bits + capacity);
    sheet.id = (int32_t *)(void *)(sheet.confidence + capacity);
    sheet.pick = sheet.id + capacity;
    sheet.sum = (int *)(void *)(sheet.pick + capacity);
    sheet.votes = sheet.sum + SUMS;
    return sheet;
}
