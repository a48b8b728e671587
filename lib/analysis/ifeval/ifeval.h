/* ifeval.h - rule "ifeval" of lib/analysis/rule.h: the instructions of IFEval that need no table of
 * nltk and no detector of languages. */
#pragma once

#include "lib/base/err.h"

/* As rule_judge(). loose: an instruction is followed if any of eight texts follows it. */
int ifeval_judge(int loose, const char *answer, const char *response, const char **why,
                 struct err *e);
