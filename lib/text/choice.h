/* choice.h - draws N records out of many, by a keyed hash of their id.
 *
 * The N records with the smallest hash of (seed, id) are chosen. A hash depends only on the seed
 * and the record's id. So appending records to a data set replaces few chosen records, and
 * reordering the data set replaces none. If records have tasks, N records of each task are chosen.
 * choice_per_task() can name the tasks, with a number for each; then records of other tasks are not
 * chosen.
 *
 *     struct choice c = {.count = 64, .seed = 7};
 *     if (choice_open(&c, "sum", id)) choice_add(&c, "sum", record);
 *     choice_finish(&c, 0, &e);   // c.v[0..n-1] in the order of choice_add()
 *     choice_free(&c); */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct choice_item {
    uint64_t key;   /* hash of (seed, id) */
    int64_t order;  /* number of the record in the order of choice_add() */
    json_t *record; /* owned */
};

struct choice_group; /* the candidates of a task */

struct choice {
    int64_t count; /* records to choose of each task that choice_per_task() does not name; set by
                    * the caller. 0: such tasks are not chosen */
    uint64_t seed;
    int64_t added; /* number of records added so far */
    struct choice_group *groups; /* one for each task */
    size_t n_groups, cap_groups;
    struct choice_item *v; /* the result */
    size_t n;
};

/* Reads "N" into count, or "TASK=N,TASK=N" into a group for each task. Call it before the first
 * record is added. -1 (EXIT_BAD_USAGE): the text has another form, or names a task twice. */
int choice_per_task(struct choice *choice, const char *text, struct err *e);
/* 0: a record with this id can no longer be chosen, so the caller may skip costly checks. */
int choice_open(const struct choice *choice, const char *task, const char *id);
/* Adds a record (stolen) whose `id` is a text. task: "" if records have no tasks. */
void choice_add(struct choice *choice, const char *task, json_t *record);
/* Fills v. -1 (EXIT_BAD_DATA): a task has fewer records than wanted, or there is no record at all;
 * with allow_fewer this is no error. */
int choice_finish(struct choice *choice, int allow_fewer, struct err *e);
void choice_free(struct choice *choice);
