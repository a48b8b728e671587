/* fitness.h - records about the machine before the first batch and after the last one: whether
 * other work disturbs it, and the power that it takes at rest. */
#pragma once

#include "lib/run/session.h"

/* Watches the host while this process is idle. NULL: the run has no fitness record. The caller's
 * reference. */
json_t *fitness_look(struct session *session);
/* Writes the fitness record of that look, which it takes; NULL: nothing. -1: *e of the output. */
int fitness_write(struct session *session, json_t *look, struct err *e);
/* Writes the power of the idle GPU, or of the processors, with the model loaded; `when` is before
 * or after. Energy belongs to one process: there is no such record if another process may continue
 * the run. -1: *e of the output. */
int fitness_idle(struct session *session, const char *when, struct err *e);
