/* exactness.h - judges flags that must not change a token. A case (data/exact.ndjson) names
 * such flags; make exact generates with and without them, on the same prompts. A case holds if
 * all answers have the same ids. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* The fields of an exactness record for each case and each of its systems, in this order. cases:
 * exact_case records; records: generation records whose members `case`, `system` and `role` ("base"
 * or "run") say which run they belong to; all borrowed. An answer that failed, or that one run
 * alone has, differs. A case that `needs` something and has no generations is not applicable.
 * NULL: the generations of a case do not show that its flags took effect (EXIT_BAD_DATA). The
 * caller's reference. */
json_t *exactness_judge(const json_t *cases, const json_t *records, struct err *e);
