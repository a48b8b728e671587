/* task.h - turns an item of a known task into a prompt, by the templates of the task's row
 * (lib/setting/tasks.h). Examples (shots) may precede the question. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/base/err.h"

struct task;
enum { TASK_SHOTS = -1 }; /* shots: as many examples as the row says */

/* name: NAME or NAME:PART. table: a file with the rows; NULL: the program's table. Returns NULL on
 * errors: EXIT_NO_INPUT: the file of examples is missing; EXIT_BAD_DATA: a template is wrong;
 * EXIT_BAD_USAGE: there is no such task, or it has no examples. */
struct task *task_open(const char *name, const char *table, int64_t shots, struct err *e);
void task_close(struct task *task);
/* Path of the file of items in the user's cache; the caller's. NULL: EXIT_NO_INPUT with the command
 * that fetches the file. */
char *task_items(const struct task *task, struct err *e);
const char *task_id_field(const struct task *task); /* NULL: the items have no id; borrowed */
/* Sets members of out: task, shots, text or messages; answer, or choices and right_choice. -1
 * (EXIT_BAD_DATA): *e names the field. */
int task_fill(const struct task *task, const json_t *item, json_t *out, struct err *e);
/* 1: the row leaves this item out, and the item is counted under its reason; 0: the item is used.
 * -1: EXIT_BAD_DATA. */
int task_leaves_out(const struct task *task, const json_t *item, struct err *e);
/* {reason: number of items left out so far}; borrowed. */
const json_t *task_left_out(const struct task *task);
