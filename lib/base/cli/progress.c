/* progress.c - see progress.h. The rate is the mean since the start: work comes in batches, and a
 * rate of the last moments would jump with each of them. */
#include "lib/base/cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"

void progress_start(struct progress *p, const struct log *l, const char *when, const char *unit,
                    int64_t total)
{
    *p = (struct progress){.log = l, .unit = unit, .total = total, .start_ns = clock_ns()};
    int tty = isatty(STDERR_FILENO);
    if (strcmp(when, "never") && l->level > 0)
        p->mode = tty ? 1 : !strcmp(when, "always") ? 2 : 0;
    p->last_ns = p->start_ns;
}

void progress_at(struct progress *p, int64_t done, const char *extra)
{
    progress_within(p, done, 0, extra);
}

void progress_within(struct progress *p, int64_t done, double part, const char *extra)
{
    int64_t now = clock_ns(), gap = p->mode == 1 ? 200000000 : 30000000000;
    if (!p->mode || now - p->last_ns < gap)
        return;
    p->last_ns = now;
    double s = (double)(now - p->start_ns) * 1e-9, all = (double)done + part;
    double rate = s > 0 ? all / s : 0;
    char left[48] = "";
    if (p->total > 0 && rate > 0)
        snprintf(left, sizeof left, ", %.0f s left", ((double)p->total - all) / rate);
    char of[24] = "";
    if (p->total > 0)
        snprintf(of, sizeof of, "/%lld", (long long)p->total);
    fprintf(stderr, "%s%s: %lld%s %s, %.3g/s%s%s%s%s", p->mode == 1 ? "\r\033[K" : "", p->log->tool,
            (long long)done, of, p->unit, rate, left, extra ? ", " : "", extra ? extra : "",
            p->mode == 1 ? "" : "\n");
}

void progress_end(struct progress *p)
{
    if (p->mode == 1)
        fputs("\r\033[K", stderr);
}
