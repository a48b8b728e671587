/* ifeval.h - judges by rule "ifeval" (lib/analysis/rule.h): checks the instructions of IFEval that
 * need no table of nltk and no detector of languages. */
#pragma once

#include "lib/base/err.h"

/* Returns and reports as rule_judge() does. loose 1: an instruction is followed if any of eight
 * variants of the response follows it (ifeval.c). */
int ifeval_judge(int loose, const char *answer, const char *response, const char **why,
                 struct err *e);
