/* methods.h - decoding methods as data: a name, the settings that make the method, its source and
 * its published results. A record belongs to a method if it has the settings of the method.
 *
 *     {"kind":"method", "method":"dual + factor", "system":"llada",
 *      "settings":{"cache":"dual", "unmask":"factor"}, "source":"...", "published":[...]}
 *
 * A setting may have a list of values ("lookup":[2, 5, 10]). Each value is a point of the method;
 * with several lists, each combination.
 *
 * A method with a member `drafter` needs a --draft model of the family that this member names.
 * A setting that a method does not name is free (may have any value) in two cases: labels always
 * show it (length, block, batch, contract), or no method of this system in the file names it.
 * Otherwise the setting must have its default. */
#pragma once

#include <jansson.h>

#include "lib/setting/system.h"

struct method {
    const struct settings_table *table;
    const char *name;
    json_t *record, *settings; /* settings: borrowed from the record */
    json_t *variants; /* an array: the settings with one value of each list */
};
struct methods {
    struct method *v; /* in the order of the file, with different names and settings */
    size_t n;
    json_t *names; /* {name of a variant: place of its method in v} */
};

/* Reads the methods of a file; skips records of other kinds. -1: EXIT_NO_INPUT, EXIT_BAD_DATA (an
 * unknown system or setting, a name that two methods or two variants have). */
int methods_read(struct methods *methods, const char *path, struct err *e);
/* Appends a record (borrowed) of kind method; `where` for messages. -1: EXIT_BAD_DATA. */
int methods_take(struct methods *methods, json_t *record, const char *where, struct err *e);
/* *methods = the methods among an array of records; invalid ones are skipped. */
void methods_gather(struct methods *methods, const json_t *records);
void methods_free(struct methods *methods);
/* The method of a record that has the fields of its system's table, or NULL. */
const struct method *methods_of(const struct methods *methods, const json_t *record);
/* "5": the value that a record of the method has for each setting with a list, separated by spaces;
 * "": no list. The caller frees. */
char *methods_values(const struct method *method, const json_t *record);
/* "lookup 5": the name of the method and these values. The caller frees. */
char *methods_name(const struct method *method, const json_t *record);
/* The method that has a variant of this name (methods_name()), or NULL. */
const struct method *methods_named(const struct methods *methods, const char *name);
/* 1: `of` is the first method of its system; other methods are compared with it. of NULL: 0. */
int methods_is_base(const struct methods *methods, const struct method *of);
/* *point = each variant of the method at all combinations of the lists in given[] (settings_cross);
 * the caller's to free. -1: EXIT_BAD_USAGE. */
int methods_points(const struct method *method, const char *const *given, struct settings **point,
                   size_t *n, struct err *e);
