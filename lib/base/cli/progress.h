/* progress.h - the progress line on standard error. */
#pragma once

#include <stdint.h>

#include "lib/base/cli/log.h"

/* A progress line "tool: 12/64 prompts, 3.1/s, 17 s left". On a terminal the line is rewritten in
 * place, at most 5 times a second. Elsewhere --progress=always prints a plain line at most every
 * 30 s. */
struct progress {
    const struct log *log;
    const char *unit;
    int64_t total; /* 0: not known */
    int mode;      /* 0 never, 1 terminal, 2 plain lines */
    int64_t start_ns, last_ns;
};
void progress_start(struct progress *progress, const struct log *log, const char *when,
                    const char *unit, int64_t total);
/* Shows that `done` units are done. extra: more text for the line, or NULL. */
void progress_at(struct progress *progress, int64_t done, const char *extra);
/* progress_at() while more units are in work. part: the finished part of their work, in units. */
void progress_within(struct progress *progress, int64_t done, double part, const char *extra);
void progress_end(struct progress *progress); /* clears the line */
