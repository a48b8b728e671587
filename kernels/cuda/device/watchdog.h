/* watchdog.h - ends the process if the device no longer answers, because the wait for it would
 * never end.
 *
 * A thread that waits for the device reports it here. The watchdog thread wakes once a second and
 * counts the seconds of that wait. The limit is the given number of seconds, or ten times the
 * longest wait that ended well, whichever is more. Beyond the limit the watchdog prints what was
 * waited for and ends the process with exit code 70. It counts its own wake-ups, so time in which
 * the whole process is stopped does not count. */
#pragma once

#include "lib/base/linkage.h"

C_BEGIN

enum { WATCHDOG_SECONDS = 60, WATCHDOG_SECONDS_MOST = 1000000000 };

/* The seconds in the text of $CROSSOVER_WATCHDOG_S; 0: no watchdog. text NULL gives
 * WATCHDOG_SECONDS. Returns -1 if the text is no valid number. */
int watchdog_seconds(const char *text);

struct watchdog;
/* Returns NULL (no watchdog) for 0 seconds. All functions below accept NULL. */
struct watchdog *watchdog_new(int seconds);
void watchdog_start(struct watchdog *watchdog); /* starts the thread */
void watchdog_free(struct watchdog *watchdog);

/* Reports that `what` is waited for; NULL: the wait is over. Returns the value reported before, so
 * waits can nest. Only one thread at a time may call it. */
const char *watchdog_wait(struct watchdog *watchdog, const char *what);

/* Called by the watchdog thread each second. Returns the seconds of the current wait if it is
 * beyond the limit; else 0. */
int watchdog_look(struct watchdog *watchdog);

C_END
