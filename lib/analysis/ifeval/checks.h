/* checks.h - the checks of rule "ifeval": does a text follow an instruction? Each check returns 1:
 * yes; 0: no; RULE_NONE: no verdict, *why says why; -1: the arguments of the instruction do not fit
 * (EXIT_BAD_DATA). Source of the rules, not of the code: lm-eval 0.4.13 (ifeval) and nltk 3.10.4,
 * which cuts words. */
#pragma once

#include <jansson.h>

#include "lib/analysis/rule.h"
#include "lib/analysis/ifeval/python.h"

struct asked {
    const char *id;        /* name of the instruction */
    const json_t *arguments; /* its member of kwargs */
    struct piece text;
    const char **why;
    struct err *e;
};

/* ---- arguments ---- */

/* Reads an argument: a number above 0, or a text that is not empty. 0: read; -1: missing or wrong.
 * (The public code draws a missing argument at random.) */
int checks_number(const struct asked *asked, const char *name, double *number);
int checks_text(const struct asked *asked, const char *name, const char **text);
/* Compares n with the argument `name`: 1 if the argument `relation` ("less than", "at least")
 * holds, else 0; -1: an argument is wrong. */
int checks_amount(const struct asked *asked, double n, const char *name, const char *relation);
/* Fills the error for a wrong argument; returns -1. */
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
