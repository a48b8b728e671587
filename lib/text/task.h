/* task.h - an item of a known task as a prompt: by the templates of its row (lib/setting/tasks.h),
 * after the examples that are shown. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/base/err.h"

struct task;
enum { TASK_SHOTS = -1 }; /* as many examples as the row says */

/* name: NAME or NAME:PART. table: NULL, or a file instead of the program's table. NULL:
 * EXIT_NO_INPUT (the examples are not there), EXIT_BAD_DATA (a template), EXIT_BAD_USAGE (no such
 * task, or no examples to show). */
struct task *task_open(const char *name, const char *table, int64_t shots, struct err *e);
void task_close(struct task *task);
/* Path of the items in the user's cache; the caller's. NULL: EXIT_NO_INPUT with the command that
 * fetches them. */
char *task_items(const struct task *task, struct err *e);
const char *task_id_field(const struct task *task); /* NULL: the items have no id; borrowed */
/* Sets task, shots, text or messages, and answer or choices and right_choice. -1: EXIT_BAD_DATA, *e
 * names the field. */
int task_fill(const struct task *task, const json_t *item, json_t *out, struct err *e);
/* 1: the row leaves this item out, and its reason is counted; 0: not. -1: EXIT_BAD_DATA. */
int task_leaves_out(const struct task *task, const json_t *item, struct err *e);
const json_t *task_left_out(const struct task *task); /* {reason: items so far}; borrowed */
