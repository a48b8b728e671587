/* fitness.h - writes records about the machine before the first batch and after the last one:
 * whether other work disturbs the machine, and the power that it takes at rest. */
#pragma once

#include "lib/run/session.h"

/* Watches the host while this process is idle. Returns the start of a fitness record, the caller's
 * reference; NULL if the run writes none. */
json_t *fitness_look(struct session *session);
/* Writes the fitness record that fitness_look() started (stolen); look NULL: writes nothing.
 * Returns -1 with *e filled if the output fails. */
int fitness_write(struct session *session, json_t *look, struct err *e);
/* Writes the power of the idle GPU, or of the processors, with the model loaded; `when` is before
 * or after. Energy belongs to one process, so there is no such record if another process may
 * continue the run. Returns -1 with *e filled if the output fails. */
int fitness_idle(struct session *session, const char *when, struct err *e);
