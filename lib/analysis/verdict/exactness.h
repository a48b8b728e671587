/* exactness.h - judges flags that must not change a token. A case (data/exact.ndjson) names such
 * flags. `make exact` generates answers with and without these flags, on the same prompts. A case
 * holds if all answers have the same ids. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* A list with the fields of an exactness record for each case and each of its systems, in this
 * order; the caller's reference. cases: exact_case records, borrowed. records: generation records,
 * borrowed; their members `case`, `system` and `role` ("base" or "run") say to which run they
 * belong. An answer that failed, or that only one run has, counts as different. A case that `needs`
 * something and has no generations is not applicable. NULL: the generations of a case do not show
 * that its flags took effect (EXIT_BAD_DATA). */
json_t *exactness_judge(const json_t *cases, const json_t *records, struct err *e);
