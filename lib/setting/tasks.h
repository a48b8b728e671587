/* tasks.h - tasks as data: where the items of a task lie, how they become prompts, and the rule by
 * which an answer is right. data/tasks.ndjson has one row for each, and says in "task" of
 * data/record.schema.json what a row holds.
 *
 * A task of several parts is named NAME:PART ("mmlu:anatomy"). Its row is NAME; "{part}" in its
 * file and fetch, and the variable `part` in its templates, stand for PART. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* The rows (the caller's). path NULL: the table of the program. NULL: EXIT_NO_INPUT, EXIT_BAD_DATA
 * (a row without name, rule, or a name that is there twice). */
json_t *tasks_read(const char *path, struct err *e);
/* The row of NAME or NAME:PART, or NULL; borrowed. */
const json_t *tasks_find(const json_t *rows, const char *name);
/* PART of NAME:PART; "" where there is none. */
const char *tasks_part(const char *name);
/* The path of row[key] ("file", "shots_file") in the user's cache; NULL: the row has none. The
 * caller's. */
char *tasks_file(const json_t *row, const char *key, const char *part);
/* *e: the file is not there, and the command that fetches it. Returns -1. */
int tasks_missing(const json_t *row, const char *path, const char *part, struct err *e);
