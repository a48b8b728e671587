/* guard.h - prepares a process before it opens its first file. */
#pragma once

/* Called by opt_parse at the start of every tool:
 * - opens /dev/null in place of a closed descriptor 0, 1 or 2, so that reading (0) or writing (1)
 *   fails and no file opened later becomes standard output;
 * - makes a write beyond the file size limit an error (EFBIG), not a signal;
 * - ends the process with EXIT_IO and one line if a mapped file is cut short while it is read;
 * - ends the process with EXIT_INTERNAL if an allocation inside jansson fails, as mem.h does. */
void guard_start(void);
