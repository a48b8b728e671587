/* watch.h - a process whose device has stopped answering comes to an end: a wait for
 * it would otherwise never end.
 *
 * Whoever waits for the device says so; a thread that wakes once a second counts the seconds of
 * that wait. When they are more than there is patience for, it says what was waited for and ends
 * the process with 70. There is patience for so many seconds, or for ten times the longest wait
 * that ended well, whichever is more. The seconds are those that the thread has seen: what passes
 * while the whole process is stopped does not count.
 */
#ifndef KERNELS_CUDA_DEVICE_WATCH_H
#define KERNELS_CUDA_DEVICE_WATCH_H

#ifdef __cplusplus
extern "C" {
#endif

enum { WATCH_SECONDS = 60, WATCH_SECONDS_MOST = 1000000000 };

/* $CROSSOVER_WATCHDOG_S as text to seconds, 0: do not watch; NULL is WATCH_SECONDS. -1: it is no
 * such number. */
int watch_seconds(const char *text);

struct watch;
struct watch *watch_new(int seconds); /* NULL for 0: nobody watches, which all of these allow */
void watch_start(struct watch *w);    /* the thread */
void watch_free(struct watch *w);

/* From now on `what` is waited for; NULL: nothing is. Returns what was before, so waits can nest.
 * One thread at a time may call it. */
const char *watch_wait(struct watch *w, const char *what);

/* What the thread does each second. Returns the seconds of a wait that lasts too long; else 0. */
int watch_look(struct watch *w);

#ifdef __cplusplus
}
#endif

#endif
