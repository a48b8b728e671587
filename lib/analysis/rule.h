/* rule.h - the rule of a task (lib/setting/tasks.h): is a response right?
 *
 *   extract  a pattern finds the answer, then both are edited and compared (lm-eval's filters)
 *   math     the answer in LaTeX, in Hendrycks' normal form
 *   list, list-shuffle, list-insert, list-remove, list-replace, latin-square, sudoku
 *            ParallelBench's checks of an answer of which several are right
 *   ifeval   IFEval's checks of instructions, as far as they need no table of nltk
 *   program  the response is put into a program, which must run to its end in a sandbox
 *   choice   scored by likelihood (score-ppl --mode choice), never here
 *
 * "stop" of the row ends a response before the rule sees it. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

enum { RULE_NONE = 2 }; /* no verdict */

struct rule;
/* row: borrowed. find: which of the row's ways to find an answer; NULL: its first one. NULL:
 * EXIT_BAD_DATA (a wrong row), EXIT_BAD_USAGE (it has no such way). */
struct rule *rule_open(const json_t *row, const char *find, struct err *e);
void rule_close(struct rule *rule);
/* 1: right; 0: wrong; RULE_NONE: *why (static) says why there is no verdict; -1: EXIT_BAD_DATA, the
 * answer does not fit the rule. */
int rule_judge(struct rule *rule, const char *answer, const char *response, const char **why,
               struct err *e);
