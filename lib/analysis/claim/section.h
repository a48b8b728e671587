/* section.h - adds the claims with the sentences of each section of the page, and with the title of
 * each figure. */
#pragma once

#include "lib/analysis/claim/finding.h"

void section_all(json_t *list, const struct findings *findings);
