/* kept.h - the records that an earlier process left, each as the few members that can be asked of
 * it: some 60 bytes a record, however long its line is.
 */
#ifndef RECORD_KEPT_H
#define RECORD_KEPT_H

#include <jansson.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/hash.h"

struct quick_form;
struct sums;

enum kept_member {
    KEPT_KIND, KEPT_ID, KEPT_WHERE, KEPT_STATUS, KEPT_MORE, KEPT_SEQ, KEPT_BATCH_ID, KEPT_VALUE,
    KEPT_VALUE_SE, KEPT_SCORED_TOKENS, KEPT_MEMBERS
};

/* One record; borrowed from its list. */
struct kept {
    size_t bytes;                   /* of its line, with the line feed */
    const char *json[KEPT_MEMBERS]; /* as it stands there; "": it is not there */
};

/* As rec_is, rec_int and rec_number (rec.h) say it of a whole record. */
int kept_is(const struct kept *k, enum kept_member m, const char *text);
int64_t kept_int(const struct kept *k, enum kept_member m, int64_t otherwise);
double kept_number(const struct kept *k, enum kept_member m);
/* 1: the member is there and is this value (NULL: none is). */
int kept_equals(const struct kept *k, enum kept_member m, const json_t *value);

struct kept_list { /* all zero: empty */
    struct buf all;
    struct quick_form *form; /* of the line added last; or NULL */
    size_t at;       /* of the next record */
    int64_t records; /* that were added */
};

/* Adds a line, without its line feed, that is a record if its sum says so; nothing else is made of
 * bytes that are none. */
void kept_add(struct kept_list *l, const char *line, size_t n);
int kept_next(struct kept_list *l, struct kept *k); /* the next one: 1; 0: there is none */
void kept_free(struct kept_list *l);                /* leaves an empty list */

/* Adds the records behind the first line of a work file that its sums prove, but for the last one
 * that has a sum, which may be torn. *proof, the caller's, is the hash of the first line, and
 * becomes that of all. Nothing changes where a sum does not fit. */
void kept_prove(struct kept_list *l, const struct sums *s, int fd, struct hash **proof);

#endif
