/* log.h - talk on standard error: data never goes there, talk never goes to standard output. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stddef.h>
#include <stdint.h>

/* Names the tool and the level: 0 errors only, 1 warnings and notes, 2 more. Call once in main. */
struct log {
    const char *tool;
    int level;
};
void log_note(const struct log *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_more(const struct log *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A warning says what was seen and what to try; `code` like "W012" is stable. */
void log_warn(const struct log *l, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A progress line "tool: 12/64 prompts, 3.1/s, 17 s left": on a terminal at most 5 a second and
 * rewritten in place; with --progress=always a plain line at most every 30 s. */
struct progress {
    const struct log *log;
    const char *unit;
    int64_t total; /* 0: not known */
    int mode;      /* 0 never, 1 terminal, 2 plain lines */
    int64_t start_ns, last_ns;
};
void progress_start(struct progress *p, const struct log *l, const char *when, const char *unit,
                    int64_t total);
void progress_at(struct progress *p, int64_t done, const char *extra); /* extra may be NULL */
void progress_end(struct progress *p); /* clears the line */

#endif
