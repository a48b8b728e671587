/* sections.h - the sections of the page of all tables. A section without records writes nothing, or
 * a sentence that there are no records. */
#pragma once

#include "lib/report/page.h"
#include "lib/analysis/records/runset.h"

/* The crossovers that exist, the reasons why others do not, and the points to measure next. */
void sections_crossovers(struct page *page, const struct runset *set);
/* Quality, latency, throughput, share of the machine's limits, memory and energy. */
void sections_tables(struct page *page, const struct runset *set);
/* LLaDA, and the latent thought model, against LLaMA at equal work; costs and savings of
 * quantization (kind `comparison`). */
void sections_comparisons(struct page *page, const struct runset *set);
/* Decoding methods against the base of their model (`comparison` by "method"), beside published
 * speed-ups (kind `method`). */
void sections_methods(struct page *page, const struct runset *set);
/* Tokens per pass and accuracy under parallelism (kind `aup`). */
void sections_parallelism(struct page *page, const struct runset *set);
/* The time of a step in architecture, algorithm and system (kind `steptime`). */
void sections_split(struct page *page, const struct runset *set);
/* Effects of each option and level of saving, and the claims about them (kind `ablation`). */
void sections_ablation(struct page *page, const struct runset *set);
/* Points of other software stacks (RUNSET_FOREIGN), which no other section shows. */
void sections_stacks(struct page *page, const struct runset *set);
/* The names of the other software stacks, "A; B"; the caller's; NULL: there are none. */
char *sections_stack_names(const struct runset *set);
/* Latency and goodput of prompts that arrive, by rate (RUNSET_LOADED). */
void sections_load(struct page *page, const struct runset *set);
/* A sentence for each LLaDA setting with a crossover over rates (X_rate). */
void sections_load_sentences(struct page *page, const struct runset *set);
/* How far answers of the same weights differ (`comparison` with effect `disagreement`). */
void sections_robustness(struct page *page, const struct runset *set);
/* Sample texts, if generation records are among the records. */
void sections_texts(struct page *page, const struct runset *set);

/* Sources of the prompts, and the judge. */
void sections_data(struct page *page, const struct runset *set);
/* State of the machine before each launch, disturbed answers, warm-up and drift. */
void sections_fitness(struct page *page, const struct runset *set);
/* Limits of the numbers. embedded 1: the contestants are the embedded models. */
void sections_threats(struct page *page, const struct runset *set, int embedded);
/* List items: the machines; the models. */
void sections_machines(struct page *page, const struct runset *set);
void sections_models(struct page *page, const struct runset *set);
/* Self-tests of the run (kind `check`), with the texts of the records. */
void sections_checks(struct page *page, const struct runset *set);
/* Numbers of answers and of failures, by kind. */
void sections_outcomes(struct page *page, const struct runset *set);
/* Files, hashes, commands. output: path of the page, for links. */
void sections_origin(struct page *page, const struct runset *set, const char *output);

const char *sections_dash(const char *text); /* text, or a dash if text is NULL or "" */
/* Puts a cell with the text, or with a dash if the text is empty. Frees the text. */
void sections_cell(struct page *page, struct buf *text);
/* Appends a ratio (none 1) or a difference of shares (none 0) as a change with its interval:
 * "-53 [-54, -52] %", or "points" in place of %. lo or hi NaN: no interval. value NaN: appends
 * nothing. */
void sections_change(struct buf *text, double value, double lo, double hi, double none);
/* The relative path from the folder of file `from` to file `to`. The caller frees. */
char *sections_link(const char *from, const char *to);
