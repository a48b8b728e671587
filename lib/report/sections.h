/* sections.h - the page of all tables: what the records of a run say. A part without records writes
 * nothing, or says that there are none. */
#ifndef REPORT_SECTIONS_H
#define REPORT_SECTIONS_H

#include "lib/report/page.h"
#include "lib/analysis/records/runset.h"

/* Every crossover that exists, why others do not, and what to measure next. */
void sections_crossovers(struct page *p, const struct runset *s);
/* Quality, latency, throughput, share of the machine's limits and memory of every configuration. */
void sections_tables(struct page *p, const struct runset *s);
/* Which configurations write at least as fast as somebody reads, `speed` words a minute. */
void sections_reader(struct page *p, const struct runset *s, double speed);
/* The run in other benchmarks' words, and its tokens by other rules of counting. */
/* What quantization costs in quality and saves in memory (kind `comparison`). */
void sections_comparisons(struct page *p, const struct runset *s);
/* Ways of decoding against the base of their system (by "method"; kind `method` says what was
 * published of them). */
void sections_methods(struct page *p, const struct runset *s);
/* What each option and level of saving takes and changes, and what was claimed of it (kind
 * `ablation`). */
void sections_ablation(struct page *p, const struct runset *s);
/* How far answers of the same weights differ (the same kind, effect `disagreement`). */
void sections_robustness(struct page *p, const struct runset *s);
/* Some of the texts themselves, when the generations are among the records. */
void sections_texts(struct page *p, const struct runset *s);

/* Where the prompts come from, and who judged. */
void sections_data(struct page *p, const struct runset *s);
/* Looks at the machine before launches, disturbed answers, warm-up and drift. */
void sections_fitness(struct page *p, const struct runset *s);
/* What the numbers cannot say. embedded: the contestants are the embedded models. */
void sections_threats(struct page *p, const struct runset *s, int embedded);
void sections_machines(struct page *p, const struct runset *s);
void sections_models(struct page *p, const struct runset *s);
/* Self-tests of the run (kind `check`), each by its own words. */
void sections_checks(struct page *p, const struct runset *s);
/* How many answers there are, and how many went wrong in which way. */
void sections_outcomes(struct page *p, const struct runset *s);
/* Files, hashes, commands. `output`: the page, for links. */
void sections_origin(struct page *p, const struct runset *s, const char *output);

const char *sections_dash(const char *s);
/* How `to` is reached from the folder of the file `from`. The caller frees. */
char *sections_link(const char *from, const char *to);

#endif
