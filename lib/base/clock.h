/* clock.h - time. Durations come from the monotonic clock; wall time is only for people. */
#pragma once

#include <stdint.h>

#include "lib/base/linkage.h"

C_BEGIN

int64_t clock_ns(void);                 /* CLOCK_MONOTONIC_RAW, nanoseconds */
int64_t clock_cpu_ns(void);             /* processor time of this process, all its threads */
void clock_wall(char text[32]);         /* RFC 3339 UTC, "2026-11-20T10:13:00Z" */

C_END
