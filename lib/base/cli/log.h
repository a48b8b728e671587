/* log.h - messages on standard error. Data go to standard output only. Each message is one line;
 * control characters are written as \xNN (plain.h). */
#pragma once

/* Names the tool and the level: 0 errors only, 1 warnings and notes, 2 more. Call once in main. */
struct log {
    const char *tool;
    int level;
};
/* An error: printed at every level. */
void log_error(const struct log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void log_note(const struct log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_more(const struct log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A warning: what was found and what to try. `code`, like "W012", never changes. */
void log_warn(const struct log *log, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
