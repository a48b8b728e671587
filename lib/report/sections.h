/* sections.h - the parts of a report: what the records of a run say, written to a page. A part
 * without records writes nothing, or says that there are none. */
#ifndef REPORT_SECTIONS_H
#define REPORT_SECTIONS_H

#include "lib/report/page.h"
#include "lib/analysis/runset.h"

/* The answer: one lead sentence, one item for each further batch size or quality metric, and
 * what to measure next. */
void sections_answers(struct page *p, const struct runset *s);
/* The three crossovers as a table. */
void sections_crossovers(struct page *p, const struct runset *s);
/* Quality, latency, throughput, share of the machine's limits and memory of every configuration. */
void sections_tables(struct page *p, const struct runset *s);
/* The two systems at the same work, and what quantization costs in quality and saves in memory
 * (kind `comparison`). */
void sections_comparisons(struct page *p, const struct runset *s);
/* Some of the texts themselves, when the generations are among the records. */
void sections_texts(struct page *p, const struct runset *s);

void sections_machines(struct page *p, const struct runset *s);
void sections_models(struct page *p, const struct runset *s);
/* Self-tests of the run (kind `check`), each by its own words. */
void sections_checks(struct page *p, const struct runset *s);
/* How many answers there are, and how many went wrong in which way. */
void sections_outcomes(struct page *p, const struct runset *s);
/* Files, hashes, commands. `output`: the page, for links. */
void sections_origin(struct page *p, const struct runset *s, const char *output);

/* How `to` is reached from the folder of the file `from`. The caller frees. */
char *sections_link(const char *from, const char *to);

#endif
