/* event.h - points in time on the device (ops.event_record, ops.event_wait). */
#pragma once

#include "kernels/ops.h"

/* Make the events when the back end is opened, and free them when it is closed. */
void event_open(struct backend *backend);
void event_close(struct backend *backend);
