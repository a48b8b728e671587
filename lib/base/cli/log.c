/* log.c - messages on standard error; see log.h.
 *
 * Each message is written in one call, so that lines of tools on one terminal do not mix. A message
 * may quote untrusted text, so all its control characters are escaped. */
#include "lib/base/cli/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "lib/base/plain.h"

static void say(const struct log *log, const char *mark, const char *format, va_list ap)
{
    char text[1200], clean[2 * sizeof text];
    int n = snprintf(text, sizeof text, "%s: %s", log->tool, mark);
    vsnprintf(text + n, sizeof text - (size_t)n, format, ap);
    plain_text(clean, sizeof clean, text);
    fprintf(stderr, "%s\n", clean);
}

void log_error(const struct log *log, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say(log, "", format, ap);
    va_end(ap);
}

void log_note(const struct log *log, const char *format, ...)
{
    if (log->level < 1)
        return;
    va_list ap;
    va_start(ap, format);
    say(log, "", format, ap);
    va_end(ap);
}

void log_more(const struct log *log, const char *format, ...)
{
    if (log->level < 2)
        return;
    va_list ap;
    va_start(ap, format);
    say(log, "", format, ap);
    va_end(ap);
}

void log_warn(const struct log *log, const char *code, const char *format, ...)
{
    if (log->level < 1)
        return;
    char mark[32];
    snprintf(mark, sizeof mark, "warning %s: ", code);
    va_list ap;
    va_start(ap, format);
    say(log, mark, format, ap);
    va_end(ap);
}
