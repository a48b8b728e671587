/* choice.h - draws N records out of many, by a keyed hash of their id.
 *
 * The records with the smallest hash of (seed, id) are chosen. A hash depends only on the seed and
 * the record's id: appending to a data set replaces few chosen records, and reordering it replaces
 * none. With tasks, N records of each are chosen; or only the tasks that choice_per_task() names,
 * with a number for each.
 *
 *     struct choice c = {.count = 64, .seed = 7};
 *     if (choice_open(&c, "sum", id)) choice_add(&c, "sum", record);
 *     choice_finish(&c, 0, &e);   // c.v[0..n-1] in the order they were added
 *     choice_free(&c); */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct choice_item {
    uint64_t key;
    int64_t order;
    json_t *record; /* owned */
};

struct choice_group; /* one task's candidates */

struct choice {
    int64_t count; /* of each task that is not named; set by the caller; 0: take none of these */
    uint64_t seed;
    int64_t added;
    struct choice_group *groups; /* one for each task */
    size_t n_groups, cap_groups;
    struct choice_item *v; /* the result */
    size_t n;
};

/* Reads "N" into count, or "TASK=N,TASK=N" into a group for each task; before the first record. -1
 * (EXIT_BAD_USAGE): it is neither, or a task is named twice. */
int choice_per_task(struct choice *choice, const char *text, struct err *e);
/* 0: a record with this id can no longer be chosen, so the caller may skip costly checks. */
int choice_open(const struct choice *choice, const char *task, const char *id);
/* Takes the record (stolen); its `id` is a text. task: "" for one group. */
void choice_add(struct choice *choice, const char *task, json_t *record);
/* Fills v. -1 (EXIT_BAD_DATA): a task, or the whole, has fewer than count, unless allow_fewer. */
int choice_finish(struct choice *choice, int allow_fewer, struct err *e);
void choice_free(struct choice *choice);
