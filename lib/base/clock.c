/* clock.c - see clock.h. RAW is not slewed by NTP, so a ratio of two durations is a ratio. */
#include "lib/base/clock.h"

#include <time.h>

int64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void clock_wall(char text[32])
{
    time_t now = time(NULL);
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}
