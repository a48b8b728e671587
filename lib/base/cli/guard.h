/* guard.h - what a process settles before it opens its first file. */
#ifndef BASE_CLI_GUARD_H
#define BASE_CLI_GUARD_H

/* Called by opt_parse at the start of every tool:
 * - a closed descriptor 0, 1 or 2 is filled with one on which reading (0) or writing (1) fails, so
 *   that no file which is opened later becomes standard output;
 * - a write past the limit of file sizes is an error (EFBIG), not a signal;
 * - a mapped file that was cut while it is read ends the process with EXIT_IO and one line;
 * - an allocation that fails inside jansson ends it with EXIT_INTERNAL, as one of mem.h does. */
void guard_start(void);

#endif
