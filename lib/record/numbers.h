/* numbers.h - lists of whole numbers, eight bytes each. Records of answers are mostly such lists:
 * as JSON values each number would be an allocation, so a reader that is asked to
 * (rec_read_numbers) keeps those that are known by name apart from the record.
 */
#ifndef RECORD_NUMBERS_H
#define RECORD_NUMBERS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { NUMBERS_LISTS = 5 };
extern const char *const numbers_names[NUMBERS_LISTS]; /* of the members that may be kept apart */

struct numbers { int64_t *v; size_t n, cap; int is; }; /* is: the record has this list */
struct numbers_apart { /* begins as zeroes */
    struct numbers of[NUMBERS_LISTS];
    int apart; /* 1: of the record at hand they are here and not in it */
};

/* The list of that name, borrowed. NULL: it is not kept apart (or `a` is NULL): what the record
 * says, if anything, is in it, and no list of whole numbers. */
const struct numbers *numbers_of(const struct numbers_apart *a, const char *name);
size_t numbers_place(const char *name, size_t n); /* in numbers_names; NUMBERS_LISTS: not there */

/* Reads a JSON list of integers of at most 18 digits from p on; where it ends. NULL: it is
 * something else, right or wrong, and *to is undefined. */
const char *numbers_read(struct numbers *to, const char *p, const char *end);
/* Moves those lists of the record in which all are integers, and says of the others that they are
 * not: the same lists, however it was read. */
void numbers_take_out(struct numbers_apart *a, json_t *record);
void numbers_forget(struct numbers_apart *a); /* the next record has none yet */
int numbers_any(const struct numbers_apart *a);
void numbers_free(struct numbers_apart *a);

#endif
