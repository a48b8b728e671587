/* near.h - which of the known names was meant by one that is not known. */
#ifndef BASE_CLI_NEAR_H
#define BASE_CLI_NEAR_H

/* Starts with {.got = WORD}; `name` is the nearest of those that were added, "" when none is near
 * enough to be meant: at most a third of the longer word's letters differ. */
struct near {
    const char *got;
    char name[64];
    int edits; /* of `name` */
};
void near_add(struct near *n, const char *name);
void near_words(struct near *n, const char *words); /* "a|b|c" */

/* " (did you mean --NAME?)", or "" without one; `mark` stands before the name ("--"). */
enum { NEAR_HINT = 96 };
const char *near_hint(const struct near *n, const char *mark, char hint[NEAR_HINT]);

#endif
