/* rule.h - judges whether a response is right, by the rule of its task (lib/setting/tasks.h):
 *
 *   extract  a pattern finds the answer in the response; then both answers are edited and compared
 *            (the filters of lm-eval)
 *   math     answers in LaTeX are compared in the normal form of Hendrycks
 *   list, list-shuffle, list-insert, list-remove, list-replace, latin-square, sudoku
 *            the checks of ParallelBench, for tasks of which several answers are right
 *   ifeval   the checks of instructions of IFEval that need no table of nltk
 *   program  the response is put into a program, which must run to its end in a sandbox
 *   choice   is scored by likelihood (score-ppl --mode choice) and refused here
 *
 * A text in the member "stop" of the task's row ends a response before the rule judges it. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

enum { RULE_NONE = 2 }; /* no verdict */

struct rule;
/* Opens the rule of a task. row: the row of the task; borrowed. find: the name of one of the row's
 * ways to find an answer; NULL: the first way. Returns NULL with EXIT_BAD_DATA (a wrong row) or
 * EXIT_BAD_USAGE (the row has no such way). */
struct rule *rule_open(const json_t *row, const char *find, struct err *e);
void rule_close(struct rule *rule);
/* 1: right; 0: wrong; RULE_NONE: *why (static) says why there is no verdict; -1: EXIT_BAD_DATA, the
 * answer does not fit the rule. */
int rule_judge(struct rule *rule, const char *answer, const char *response, const char **why,
               struct err *e);
