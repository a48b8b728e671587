/* sections.h - the sections of the page of all tables. A section without records writes nothing, or
 * says that there are none. */
#pragma once

#include "lib/report/page.h"
#include "lib/analysis/records/runset.h"

/* The crossovers that exist, the reasons why others do not, and the points to measure next. */
void sections_crossovers(struct page *p, const struct runset *s);
/* Quality, latency, throughput, share of the machine's limits, memory and energy. */
void sections_tables(struct page *p, const struct runset *s);
/* LLaDA against LLaMA at equal work; costs and savings of quantization (kind `comparison`). */
void sections_comparisons(struct page *p, const struct runset *s);
/* Decoding methods against the base of their model (`comparison` by "method"), beside published
 * speed-ups (kind `method`). */
void sections_methods(struct page *p, const struct runset *s);
/* Effects of each option and level of saving, and the claims about them (kind `ablation`). */
void sections_ablation(struct page *p, const struct runset *s);
/* Points of other software stacks, apart from all others (RUNSET_FOREIGN). */
void sections_stacks(struct page *p, const struct runset *s);
/* The names of these stacks; the caller's; NULL: none. */
char *sections_stack_names(const struct runset *s);
/* How far answers of the same weights differ (`comparison` with effect `disagreement`). */
void sections_robustness(struct page *p, const struct runset *s);
/* Sample texts, if the generations are among the records. */
void sections_texts(struct page *p, const struct runset *s);

/* Sources of the prompts, and the judge. */
void sections_data(struct page *p, const struct runset *s);
/* State of the machine before launches, disturbed answers, warm-up and drift. */
void sections_fitness(struct page *p, const struct runset *s);
/* Limits of the numbers. embedded 1: the contestants are the embedded models. */
void sections_threats(struct page *p, const struct runset *s, int embedded);
void sections_machines(struct page *p, const struct runset *s);
void sections_models(struct page *p, const struct runset *s);
/* Checks of the run (kind `check`), with their own texts. */
void sections_checks(struct page *p, const struct runset *s);
/* Numbers of answers and of failures, by kind. */
void sections_outcomes(struct page *p, const struct runset *s);
/* Files, hashes, commands. output: path of the page, for links. */
void sections_origin(struct page *p, const struct runset *s, const char *output);

const char *sections_dash(const char *s); /* s; NULL or "": a dash */
/* Puts the text, or a dash if it is empty; frees the text. */
void sections_cell(struct page *p, struct buf *text);
/* Appends a ratio (none 1) or a difference (none 0) as a change: "-53 [-54, -52] %"; NaN:
 * nothing. */
void sections_change(struct buf *b, double value, double lo, double hi, double none);
/* The relative path from the folder of file `from` to file `to`. The caller frees. */
char *sections_link(const char *from, const char *to);
