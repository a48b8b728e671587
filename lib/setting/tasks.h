/* tasks.h - reads the table of tasks: where the items of a task lie, how they become prompts, and
 * the rule by which an answer is right. data/tasks.ndjson has one row for each task. "task" in
 * data/record.schema.json describes a row.
 *
 * A task of several parts is named NAME:PART ("mmlu:anatomy"). Its row has the name NAME. PART
 * replaces "{part}" in the row's members `file` and `fetch`, and is the variable `part` of its
 * templates. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* Returns the rows (the caller's) of the table at `path`; path NULL: data/tasks.ndjson of the
 * program. Returns NULL on errors: EXIT_NO_INPUT; EXIT_BAD_DATA: a row has no name or no rule, or a
 * name appears twice. */
json_t *tasks_read(const char *path, struct err *e);
/* The row of NAME or NAME:PART, or NULL; borrowed. */
const json_t *tasks_find(const json_t *rows, const char *name);
/* PART of NAME:PART; "" if the name has no part. */
const char *tasks_part(const char *name);
/* The path of row[key] ("file", "shots_file") in the user's cache; NULL: the row has none. The
 * caller's. */
char *tasks_file(const json_t *row, const char *key, const char *part);
/* Sets *e: the file `path` is missing, with the command that fetches it. Returns -1. */
int tasks_missing(const json_t *row, const char *path, const char *part, struct err *e);
