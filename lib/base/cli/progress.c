/* progress.c - see progress.h. The rate is the mean since the start: work comes in batches, and a
 * rate of the last moments would jump with each of them. */
#include "lib/base/cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"

void progress_start(struct progress *progress, const struct log *log, const char *when,
                    const char *unit, int64_t total)
{
    *progress = (struct progress){.log = log, .unit = unit, .total = total, .start_ns = clock_ns()};
    int tty = isatty(STDERR_FILENO);
    if (strcmp(when, "never") && log->level > 0)
        progress->mode = tty ? 1 : !strcmp(when, "always") ? 2 : 0;
    progress->last_ns = progress->start_ns;
}

void progress_at(struct progress *progress, int64_t done, const char *extra)
{
    progress_within(progress, done, 0, extra);
}

void progress_within(struct progress *progress, int64_t done, double part, const char *extra)
{
    int64_t now = clock_ns(), gap = progress->mode == 1 ? 200000000 : 30000000000;
    if (!progress->mode || now - progress->last_ns < gap)
        return;
    progress->last_ns = now;
    double seconds = (double)(now - progress->start_ns) * 1e-9, all = (double)done + part;
    double rate = seconds > 0 ? all / seconds : 0;
    char left[48] = "";
    if (progress->total > 0 && rate > 0)
        snprintf(left, sizeof left, ", %.0f s left", ((double)progress->total - all) / rate);
    char of[24] = "";
    if (progress->total > 0)
        snprintf(of, sizeof of, "/%lld", (long long)progress->total);
    fprintf(stderr, "%s%s: %lld%s %s, %.3g/s%s%s%s%s", progress->mode == 1 ? "\r\033[K" : "",
            progress->log->tool, (long long)done, of, progress->unit, rate, left, extra ? ", " : "",
            extra ? extra : "", progress->mode == 1 ? "" : "\n");
}

void progress_end(struct progress *progress)
{
    if (progress->mode == 1)
        fputs("\r\033[K", stderr);
}
