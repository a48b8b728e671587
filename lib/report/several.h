/* several.h - the pages of several runs, on one machine or on several. A row is the answer of one
 * run; nothing is pooled. The tables of single runs are left out, because they would mix the times
 * of different runs. */
#pragma once

#include "lib/analysis/claim/runs.h"
#include "lib/analysis/records/runset.h"
#include "lib/report/page.h"

/* Fills the main page, from page_begin() to page_end(). title: used if no claim states a
 * question. */
void several_overview(struct page *page, const struct runs *runs, const char *title);
/* Fills the page of all tables between page_begin() and page_end(). The caller then adds remarks to
 * the last list. output: path of the main page, for links. */
void several_tables(struct page *page, const struct runs *runs, const struct runset *set,
                    const char *output);
