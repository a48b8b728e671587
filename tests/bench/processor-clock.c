/* processor-clock.c - a shared object for LD_PRELOAD that replaces every clock of a program by the
 * processor time of all its threads, divided by CLOCK_THREADS. So a peer measures itself by the
 * clock of `bench --clock cpu`. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *t)
{
    const char *threads = getenv("CLOCK_THREADS");
    const int64_t n = threads ? atoi(threads) : 1, second = 1000000000;
    (void)clock;
    if (syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, t))
        return -1;
    const int64_t ns = (t->tv_sec * second + t->tv_nsec) / (n > 0 ? n : 1);
    *t = (struct timespec){ns / second, ns % second};
    return 0;
}
