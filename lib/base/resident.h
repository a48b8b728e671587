/* resident.h - the resident set of this process (its pages in main memory) as the system counts it:
 * the peak since a chosen moment, which getrusage() cannot report; and the memory that is free. */
#pragma once

#include <stdint.h>

/* Returns freed memory that the allocator keeps to the system. */
void resident_trim(void);
/* Sets the peak to the present resident set. -1: this system cannot (Linux can: proc(5),
 * /proc/PID/clear_refs). */
int resident_reset(void);
/* The peak in bytes since the last reset, or since the process began; -1: not known. */
int64_t resident_peak(void);
int64_t resident_peak_of(long pid); /* the peak of another process, since its exec */
/* Bytes of anonymous resident memory in huge pages now; -1: not known. The kernel walks all pages:
 * some milliseconds per gigabyte of small pages. */
int64_t resident_huge(void);

/* available: bytes free without swapping, including the file cache; total: all bytes. Both are of
 * the machine, or of the control group of this process (cgroup v2 or v1) that has less. root:
 * prefix of /proc and /sys, "" except in tests. Returns -1 if the numbers are not known. */
int resident_room(const char *root, int64_t *available, int64_t *total);
