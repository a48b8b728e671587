/* host_monitor.c - see host_monitor.h. All is read just before and just after a batch, outside its
 * clock: /proc/pressure/cpu counts microseconds, /proc/stat ticks of mostly 10 ms, getrusage() the
 * switches of this process. A system that lacks one of them is judged by the others.
 */
#include "lib/run/host_monitor.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/record/rec.h"

/* Above these shares of the time, for more than so many seconds, a batch does not count. */
static const double MOST_PRESSURE = 0.05, LEAST_PRESSURE_S = 0.002;
static const double MOST_STOLEN = 0.02, MOST_OTHERS = 0.05, LEAST_TICKS_S = 0.045;
/* Switches a second: a kernel's own work makes a few. */
static const double MOST_PREEMPTED = 50;
enum { LEAST_PREEMPTED = 10 };

/* ---- readings ---- */

static double read_pressure(void)
{
    unsigned long long us;
    double s = NAN;
    FILE *f = fopen("/proc/pressure/cpu", "r");
    if (f && fscanf(f, "some %*s %*s %*s total=%llu", &us) == 1)
        s = (double)us * 1e-6;
    if (f)
        fclose(f);
    return s;
}

/* The first line: user nice system idle iowait irq softirq steal, in ticks. */
static void read_ticks(struct host_state *to)
{
    unsigned long long v[8];
    double hz = (double)sysconf(_SC_CLK_TCK);
    FILE *f = fopen("/proc/stat", "r");
    to->busy = to->stolen = NAN;
    if (f && fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", v, v + 1, v + 2, v + 3, v + 4,
                    v + 5, v + 6, v + 7) == 8) {
        to->busy = (double)(v[0] + v[1] + v[2] + v[5] + v[6]) / hz;
        to->stolen = (double)v[7] / hz;
    }
    if (f)
        fclose(f);
}

static int64_t read_throttled(void)
{
    long long n = -1;
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", "r");
    if (f && fscanf(f, "%lld", &n) != 1)
        n = -1;
    if (f)
        fclose(f);
    return n;
}

static double seconds(const struct timeval *t)
{
    return (double)t->tv_sec + 1e-6 * (double)t->tv_usec;
}

static void read_state(struct host_state *to)
{
    struct rusage own;
    getrusage(RUSAGE_SELF, &own);
    to->own = seconds(&own.ru_utime) + seconds(&own.ru_stime);
    to->preempted = own.ru_nivcsw;
    to->pressure = read_pressure();
    read_ticks(to);
    to->throttled = read_throttled();
    to->now = (double)clock_ns() * 1e-9;
}

void host_monitor_begin(struct host_monitor *h)
{
    read_state(&h->begin);
}

void host_monitor_end(struct host_monitor *h)
{
    struct host_state end, *begin = &h->begin;
    read_state(&end);
    double passed = end.now - begin->now;
    double others = (end.busy - begin->busy) - (end.own - begin->own);
    h->seen = (struct host_seen){
        passed, (end.pressure - begin->pressure) / passed, (end.stolen - begin->stolen) / passed,
        (others > 0 ? others : others <= 0 ? 0 : NAN) / passed, end.preempted - begin->preempted,
        begin->throttled < 0 ? -1 : end.throttled - begin->throttled};
}

/* ---- the verdict ---- */

static int is_above(double share, double most, double passed, double least_s)
{
    return share > most && share * passed > least_s;
}

unsigned host_monitor_taints(const struct host_seen *s)
{
    unsigned t = 0;
    if (is_above(s->pressure, MOST_PRESSURE, s->seconds, LEAST_PRESSURE_S))
        t |= HOST_PRESSURE;
    if (is_above(s->stolen, MOST_STOLEN, s->seconds, LEAST_TICKS_S))
        t |= HOST_STOLEN;
    if (is_above(s->others, MOST_OTHERS, s->seconds, LEAST_TICKS_S))
        t |= HOST_OTHERS;
    if (s->preempted > LEAST_PREEMPTED && (double)s->preempted > MOST_PREEMPTED * s->seconds)
        t |= HOST_PREEMPTED;
    if (s->throttled > 0)
        t |= HOST_THERMAL;
    return t;
}

static void append_names(json_t *list, unsigned taints)
{
    static const char *const names[] = {"cpu_pressure", "cpu_stolen", "other_load", "preempted",
                                        "cpu_thermal"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (taints >> i & 1)
            json_array_append_new(list, json_string(names[i]));
}

static json_t *describe(const struct host_seen *s)
{
    json_t *o = json_object();
    rec_set_number(o, "pressure_ratio", s->pressure, "the system does not tell");
    rec_set_number(o, "stolen_ratio", s->stolen, "the system does not tell");
    rec_set_number(o, "others_ratio", s->others, "the system does not tell");
    rec_set_int(o, "preempted", s->preempted);
    rec_set_number(o, "throttled", s->throttled < 0 ? (double)NAN : (double)s->throttled,
                   "the system does not tell");
    return o;
}

void host_monitor_put(const struct host_monitor *h, json_t *record)
{
    json_t *list = json_object_get(record, "tainted");
    json_object_set_new(record, "host", describe(&h->seen));
    if (!list)
        json_object_set_new(record, "tainted", list = json_array());
    append_names(list, host_monitor_taints(&h->seen));
}

json_t *host_monitor_look(struct host_monitor *h, int64_t ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    json_t *o = json_object(), *reasons = json_array();
    host_monitor_begin(h);
    while (nanosleep(&t, &t) && errno == EINTR)
        continue;
    host_monitor_end(h);
    append_names(reasons, host_monitor_taints(&h->seen));
    json_object_set_new(o, "host", describe(&h->seen));
    json_object_set_new(o, "fit", json_boolean(!json_array_size(reasons)));
    json_object_set_new(o, "reasons", reasons);
    return o;
}
