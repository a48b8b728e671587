/* sections.h - the sections of the page of all tables. A section without records writes nothing, or
 * says that there are none. */
#pragma once

#include "lib/report/page.h"
#include "lib/analysis/records/runset.h"

/* The crossovers that exist, the reasons why others do not, and the points to measure next. */
void sections_crossovers(struct page *page, const struct runset *set);
/* Quality, latency, throughput, share of the machine's limits, memory and energy. */
void sections_tables(struct page *page, const struct runset *set);
/* LLaDA against LLaMA at equal work; costs and savings of quantization (kind `comparison`). */
void sections_comparisons(struct page *page, const struct runset *set);
/* Decoding methods against the base of their model (`comparison` by "method"), beside published
 * speed-ups (kind `method`). */
void sections_methods(struct page *page, const struct runset *set);
/* Effects of each option and level of saving, and the claims about them (kind `ablation`). */
void sections_ablation(struct page *page, const struct runset *set);
/* Points of other software stacks, apart from all others (RUNSET_FOREIGN). */
void sections_stacks(struct page *page, const struct runset *set);
/* The names of these stacks; the caller's; NULL: none. */
char *sections_stack_names(const struct runset *set);
/* How far answers of the same weights differ (`comparison` with effect `disagreement`). */
void sections_robustness(struct page *page, const struct runset *set);
/* Sample texts, if the generations are among the records. */
void sections_texts(struct page *page, const struct runset *set);

/* Sources of the prompts, and the judge. */
void sections_data(struct page *page, const struct runset *set);
/* State of the machine before launches, disturbed answers, warm-up and drift. */
void sections_fitness(struct page *page, const struct runset *set);
/* Limits of the numbers. embedded 1: the contestants are the embedded models. */
void sections_threats(struct page *page, const struct runset *set, int embedded);
void sections_machines(struct page *page, const struct runset *set);
void sections_models(struct page *page, const struct runset *set);
/* Checks of the run (kind `check`), with their own texts. */
void sections_checks(struct page *page, const struct runset *set);
/* Numbers of answers and of failures, by kind. */
void sections_outcomes(struct page *page, const struct runset *set);
/* Files, hashes, commands. output: path of the page, for links. */
void sections_origin(struct page *page, const struct runset *set, const char *output);

const char *sections_dash(const char *text); /* text; NULL or "": a dash */
/* Puts the text, or a dash if it is empty; frees the text. */
void sections_cell(struct page *page, struct buf *text);
/* Appends a ratio (none 1) or a difference (none 0) as a change: "-53 [-54, -52] %"; NaN:
 * nothing. */
void sections_change(struct buf *text, double value, double lo, double hi, double none);
/* The relative path from the folder of file `from` to file `to`. The caller frees. */
char *sections_link(const char *from, const char *to);
