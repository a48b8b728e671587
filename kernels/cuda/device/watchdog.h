/* watchdog.h - ends the process when the device has stopped answering; its wait would never end.
 *
 * A thread that waits for the device reports it here. The watchdog thread wakes once a second
 * and counts the seconds of that wait. The limit is the given number of seconds, or ten times
 * the longest wait that ended well, whichever is more. Beyond it the watchdog prints what was
 * waited for and ends the process with 70. It counts only seconds that it has seen: time in
 * which the whole process is stopped does not count. */
#pragma once

#include "lib/base/linkage.h"

C_BEGIN

enum { WATCHDOG_SECONDS = 60, WATCHDOG_SECONDS_MOST = 1000000000 };

/* $CROSSOVER_WATCHDOG_S as text to seconds; 0: no watchdog. NULL gives WATCHDOG_SECONDS. -1: not a
 * valid number. */
int watchdog_seconds(const char *text);

struct watchdog;
/* NULL for 0 seconds: no watchdog. All functions below accept NULL. */
struct watchdog *watchdog_new(int seconds);
void watchdog_start(struct watchdog *watchdog); /* the thread */
void watchdog_free(struct watchdog *watchdog);

/* Reports that `what` is waited for; NULL: the wait is over. Returns the earlier value, so waits
 * can nest. Only one thread at a time may call it. */
const char *watchdog_wait(struct watchdog *watchdog, const char *what);

/* Called by the thread each second. Returns the seconds of a wait beyond its limit; else 0. */
int watchdog_look(struct watchdog *watchdog);

C_END
