/* section.h - the sentences of each section of the page, and the title of each figure.
 */
#ifndef ANALYSIS_CLAIM_SECTION_H
#define ANALYSIS_CLAIM_SECTION_H

#include "lib/analysis/claim/finding.h"

void section_all(json_t *list, const struct findings *f);

#endif
