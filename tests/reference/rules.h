/* rules.h - published rules of unmasking that belong to no family, in double precision. */
#pragma once

#include "tests/reference/canvas.h"

/* Fills the canvas by the rule `name`, with the fields of the request (families.h). Returns 0 if
 * there is no such rule. */
int rules_run(struct canvas *c, struct model *m, const json_t *request, const char *name);
