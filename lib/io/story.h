/* story.h - the parts of a report: what the records of a run say, written to a page. A part without
 * records writes nothing, or says that there are none. */
#ifndef IO_STORY_H
#define IO_STORY_H

#include "lib/io/page.h"
#include "lib/io/runset.h"

/* The answer: one lead sentence, one item for each further batch size or quality metric, and
 * what to measure next. */
void story_answers(struct page *p, const struct runset *s);
/* The three crossovers as a table. */
void story_crossovers(struct page *p, const struct runset *s);
/* Quality, latency, throughput, share of the machine's limits and memory of every configuration. */
void story_tables(struct page *p, const struct runset *s);
/* What quantization costs in quality and saves in memory (kind `comparison`). */
void story_comparisons(struct page *p, const struct runset *s);
/* Some of the texts themselves, when the generations are among the records. */
void story_texts(struct page *p, const struct runset *s);

void story_machines(struct page *p, const struct runset *s);
void story_models(struct page *p, const struct runset *s);
/* Self-tests of the run (kind `check`), each by its own words. */
void story_checks(struct page *p, const struct runset *s);
/* How many answers there are, and how many went wrong in which way. */
void story_outcomes(struct page *p, const struct runset *s);
/* Files, hashes, commands. `output`: the page, for links. */
void story_origin(struct page *p, const struct runset *s, const char *output);

/* How `to` is reached from the folder of the file `from`. The caller frees. */
char *story_link(const char *from, const char *to);

#endif
