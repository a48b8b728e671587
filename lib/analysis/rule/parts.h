/* parts.h - the kinds of rules and what they share. Only files of lib/analysis/rule/ include it. */
#pragma once

#include "lib/analysis/rule.h"
#include "lib/base/buf.h"
#include "lib/base/regex.h"

enum { RULE_EDITS = 16, RULE_ARGUMENTS = 16 };

struct rule {
    const json_t *row;
    int (*judge)(struct rule *rule, const char *answer, const char *response, const char **why,
                 struct err *e);
    struct regex *find;          /* extract: finds the answer in the response */
    struct regex *edit[RULE_EDITS]; /* extract: these texts are deleted from both answers */
    int last, lower, boxed;      /* extract: 1: the last match counts; 1: letters become small;
                                    math: 1: the answer is in \boxed */
    int loose;                   /* ifeval: 1: one of eight variants of the text must follow */
    const char *why;             /* program: why there is no sandbox; NULL: there is one */
    struct buf one, two;         /* scratch of the judges */
};

/* Each sets the members of its kind from row.rule (`rule`) and from the chosen member of rule.find
 * (`find`; NULL: the rule has none). -1: EXIT_BAD_DATA. */
int rule_extract_open(struct rule *into, const json_t *rule, const json_t *find, struct err *e);
int rule_program_open(struct rule *r, const json_t *rule, struct err *e);

int rule_extract(struct rule *rule, const char *answer, const char *response, const char **why,
                 struct err *e);
int rule_math(struct rule *rule, const char *answer, const char *response, const char **why,
              struct err *e);
int rule_program(struct rule *judge, const char *answer, const char *response, const char **why,
                 struct err *e);
int rule_list(struct rule *rule, const char *answer, const char *response, const char **why,
              struct err *e); /* list and the four list-*; rule.type says which */
int rule_square(struct rule *rule, const char *answer, const char *response, const char **why,
                struct err *e);
int rule_sudoku(struct rule *rule, const char *answer, const char *response, const char **why,
                struct err *e);
