/* event.h - points in time on the device (ops.event_record, ops.event_wait). */
#pragma once

#include "kernels/ops.h"

/* Made at open, freed at close. */
void event_open(struct backend *backend);
void event_close(struct backend *backend);
