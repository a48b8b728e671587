/* methods.h - ways of decoding by name, as data: a method is the settings that make it, who
 * proposed it, and what was published of it. Any record whose settings are those of a method is of
 * that method, whoever ran it.
 *
 *     {"kind":"method", "method":"dual + factor", "system":"llada",
 *      "settings":{"cache":"dual", "unmask":"factor"}, "source":"...", "published":[...]}
 *
 * A setting that a method does not name is the experiment's (length, block, batch, contract: what
 * labels always show, and what no method of the file names), else it has its default.
 */
#ifndef SETTING_METHODS_H
#define SETTING_METHODS_H

#include <jansson.h>

#include "lib/setting/system.h"

struct method {
    const struct settings_table *table;
    const char *name;
    json_t *record, *settings; /* settings: borrowed from the record */
};
struct methods {
    struct method *v; /* in the order of the file; names differ, and so do settings */
    size_t n;
};

/* -1: EXIT_NO_INPUT, EXIT_BAD_DATA (no such system or setting, a name that is there twice). Records
 * of other kinds are skipped. */
int methods_read(struct methods *m, const char *path, struct err *e);
/* Appends a record (borrowed) of kind method; `where` for messages. -1: EXIT_BAD_DATA. */
int methods_take(struct methods *m, json_t *record, const char *where, struct err *e);
/* All of an array of records that are methods; those that are none name nothing. */
void methods_gather(struct methods *m, const json_t *records);
void methods_free(struct methods *m);
/* The method that a record with the fields of its system's table is of, or NULL. */
const struct method *methods_of(const struct methods *m, const json_t *record);
/* 1: the first method of its system, what the others are compared with. NULL: 0. */
int methods_is_base(const struct methods *m, const struct method *of);
/* *point = the method at every combination of the lists in given[] (settings_cross). The caller's
 * to free. -1: EXIT_BAD_USAGE. */
int methods_points(const struct method *m, const char *const *given, struct settings **point,
                   size_t *n, struct err *e);

#endif
