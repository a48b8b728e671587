/* parts.h - the kinds of rules; private to rule.h. */
#pragma once

#include "lib/analysis/rule.h"
#include "lib/base/buf.h"
#include "lib/base/regex.h"

enum { RULE_EDITS = 16, RULE_ARGUMENTS = 16 };

struct rule {
    const json_t *row;
    int (*judge)(struct rule *rule, const char *answer, const char *response, const char **why,
                 struct err *e);
    struct regex *find;          /* extract */
    struct regex *edit[RULE_EDITS]; /* extract: what is deleted from both */
    int last, lower, boxed;      /* extract: the last match, case; math: find \boxed */
    int loose;                   /* ifeval: any of eight texts may follow */
    const char *why;             /* program: no sandbox can be made */
    struct buf one, two;         /* work of the judges */
};

/* Each sets its members of *into from row.rule and the chosen member of rule.find (NULL: it has
 * none). -1: EXIT_BAD_DATA. */
int rule_extract_open(struct rule *into, const json_t *rule, const json_t *find, struct err *e);
int rule_program_open(struct rule *r, const json_t *rule, struct err *e);

int rule_extract(struct rule *rule, const char *answer, const char *response, const char **why,
                 struct err *e);
int rule_math(struct rule *rule, const char *answer, const char *response, const char **why,
              struct err *e);
int rule_program(struct rule *judge, const char *answer, const char *response, const char **why,
                 struct err *e);
int rule_list(struct rule *rule, const char *answer, const char *response, const char **why,
              struct err *e); /* and its five variants, by rule.type */
int rule_square(struct rule *rule, const char *answer, const char *response, const char **why,
                struct err *e);
int rule_sudoku(struct rule *rule, const char *answer, const char *response, const char **why,
                struct err *e);
