/* rules.h - published rules of unmasking that are no family's own, in double precision. */
#pragma once

#include "tests/reference/canvas.h"

/* Fills the canvas by the rule of that name, with the fields of the request (families.h). 0: there
 * is no such rule. */
int rules_run(struct canvas *c, struct model *m, const json_t *request, const char *name);
