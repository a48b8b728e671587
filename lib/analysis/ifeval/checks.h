/* checks.h - the checks of rule "ifeval": does a text follow an instruction? Each returns 1, 0,
 * RULE_NONE (*why), or -1: EXIT_BAD_DATA, the arguments do not fit. Source: lm-eval 0.4.13, ifeval,
 * and nltk 3.10.4, which cuts words: what counts, not how it is written. */
#pragma once

#include <jansson.h>

#include "lib/analysis/rule.h"
#include "lib/analysis/ifeval/python.h"

struct asked {
    const char *id;        /* of the instruction */
    const json_t *arguments;
    struct piece text;
    const char **why;
    struct err *e;
};

/* ---- arguments ---- */

/* A number above 0 (the public code draws a missing one at random), a text that is not empty. */
int checks_number(const struct asked *asked, const char *name, double *number);
int checks_text(const struct asked *asked, const char *name, const char **text);
/* 1: n is less than, or at least, the number `name`, as the argument `relation` says. */
int checks_amount(const struct asked *asked, double n, const char *name, const char *relation);
int checks_refuse(const struct asked *asked, const char *name, const char *expected);

/* ---- letters and words ---- */

int checks_letter_frequency(const struct asked *asked);
int checks_number_words(const struct asked *asked);
int checks_number_paragraphs(const struct asked *asked);
int checks_first_word(const struct asked *asked);

/* ---- format ---- */

int checks_placeholders(const struct asked *asked);
int checks_bullets(const struct asked *asked);
int checks_constrained(const struct asked *asked);
int checks_highlights(const struct asked *asked);
int checks_title(const struct asked *asked);
int checks_two_responses(const struct asked *asked);
int checks_repeat_prompt(const struct asked *asked);
int checks_end(const struct asked *asked);
int checks_quotation(const struct asked *asked);
int checks_no_comma(const struct asked *asked);

/* ---- patterns, capitals, JSON ---- */

int checks_existence(const struct asked *asked);
int checks_forbidden(const struct asked *asked);
int checks_frequency(const struct asked *asked);
int checks_sections(const struct asked *asked);
int checks_postscript(const struct asked *asked);
int checks_capitals(const struct asked *asked);
int checks_json(const struct asked *asked);
