/* front.h - the page that answers: the first screen, then sections of one sentence, one figure and
 * one table of at most FRONT_ROWS rows each. Sentences and numbers are those of claims and of other
 * records; none is made here. */
#ifndef REPORT_FRONT_H
#define REPORT_FRONT_H

#include "lib/analysis/runset.h"
#include "lib/report/page.h"
#include "lib/report/shelf.h"

enum { FRONT_ROWS = 12 };

struct front {
    const char *title;        /* the question where no claim says it */
    const struct shelf *shelf;
    const struct page *tables; /* the page of all tables, for links to its sections */
    int embedded;             /* the models are the embedded ones */
};
void front_fill(struct page *p, const struct runset *s, const struct front *f);

/* The tables of the sections. Each writes none without records. */
void front_quality(struct page *p, const struct runset *s);
void front_decoding(struct page *p, const struct runset *s);
void front_scale(struct page *p, const struct runset *s);
void front_memory(struct page *p, const struct runset *s);
void front_method(struct page *p, const struct runset *s, int embedded);

#endif
