/* log.h - messages on standard error. Data go to standard output only. Each message is one line;
 * control characters are written as \xNN (plain.h). */
#pragma once

/* The tool that messages name, and the level: 0 prints errors only, 1 also warnings and notes, 2
 * also the details of log_more(). */
struct log {
    const char *tool;
    int level;
};
/* Prints an error, at every level. */
void log_error(const struct log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void log_note(const struct log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_more(const struct log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints a warning, which says what was found and what to try. The `code` of a warning, such as
 * "W012", never changes. */
void log_warn(const struct log *log, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
