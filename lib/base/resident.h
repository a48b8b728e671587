/* resident.h - the memory of this process that is in main memory (its resident set), as the system
 * counts it: the most since a moment of our choice, which getrusage() cannot tell; and how much
 * more the system could give it.
 */
#ifndef BASE_RESIDENT_H
#define BASE_RESIDENT_H

#include <stdint.h>

/* Gives back what the allocator keeps of freed memory. */
void resident_trim(void);
/* Lets the peak begin anew with what is resident now. -1: this system cannot (Linux can: proc(5),
 * /proc/PID/clear_refs). */
int resident_reset(void);
/* The peak since, or since the process began, in bytes; -1: the system does not tell. */
int64_t resident_peak(void);
int64_t resident_peak_of(long pid); /* of another process, since it began its program */
/* What of the resident memory that is no file's lies in huge pages now, in bytes; -1: the system
 * does not tell. It walks over all pages, which takes some milliseconds for each gigabyte of small
 * ones. */
int64_t resident_huge(void);

/* Bytes that could be had without swapping, what is held of files included, and all there are: of
 * the machine, or of the narrowest control group (cgroup v2 or v1) that we are in, where that is
 * less. root: in front of /proc and /sys, "" but in tests. -1: the system does not tell. */
int resident_room(const char *root, int64_t *available, int64_t *total);

#endif
