/* near.h - finds the known name nearest to an unknown one, for "did you mean". */
#pragma once

/* Start with {.got = WORD}. `name` is the nearest of the names added, or "" if none is near: at
 * most a third of the letters of the longer word may differ. */
struct near {
    const char *got;
    char name[64];
    int edits; /* from `got` to `name` */
};
void near_add(struct near *n, const char *name);
void near_words(struct near *n, const char *words); /* "a|b|c" */

/* Returns " (did you mean --NAME?)", or "" if no name is near; `mark` stands before the name
 * ("--"). */
enum { NEAR_HINT = 96 };
const char *near_hint(const struct near *n, const char *mark, char hint[NEAR_HINT]);
