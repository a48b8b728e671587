/* host_monitor.c - see host_monitor.h. Counters are read just before and after a batch, outside its
 * clock: /proc/pressure/cpu in microseconds, /proc/stat in ticks of mostly 10 ms, getrusage() for
 * the switches of this process. If a system lacks one of them, the others decide. */
#include "lib/run/monitor/host_monitor.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/record/rec.h"

/* A batch is tainted above these shares of its time, if longer than these seconds. */
static const double MOST_PRESSURE = 0.05, LEAST_PRESSURE_S = 0.002;
static const double MOST_STOLEN = 0.02, MOST_OTHERS = 0.05, LEAST_TICKS_S = 0.045;
/* Limit on switches per second, used if the system has no pressure counter: the number of switches
 * is not their time. A kernel thread for the pages of a large process may switch in ninety times a
 * second and take 0.2 % of the time. */
static const double MOST_PREEMPTED = 50;
enum { LEAST_PREEMPTED = 10 };
/* Least ticks of the energy counter for a measurement. */
static const double LEAST_TICKS = 100;

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

void host_monitor_open(struct host_monitor *h)
{
    const char *sys = getenv("CROSSOVER_SYS");
    *h = (struct host_monitor){0};
    h->rapl = rapl_open(sys ? sys : "/sys", RAPL_LOOK_MS, &h->unmetered);
}

void host_monitor_close(struct host_monitor *h)
{
    rapl_close(h->rapl);
    h->rapl = NULL;
}

void host_monitor_begin(struct host_monitor *h)
{
    read_state(&h->begin);
    h->begin.joule = rapl_joules(h->rapl); /* last, and first at the end */
}

void host_monitor_end(struct host_monitor *h)
{
    struct host_state end, *begin = &h->begin;
    end.joule = rapl_joules(h->rapl);
    read_state(&end);
    double passed = end.now - begin->now;
    double others = (end.busy - begin->busy) - (end.own - begin->own);
    h->seen = (struct host_seen){
        passed, (end.pressure - begin->pressure) / passed, (end.stolen - begin->stolen) / passed,
        (others > 0 ? others : others <= 0 ? 0 : NAN) / passed, end.preempted - begin->preempted,
        begin->throttled < 0 ? -1 : end.throttled - begin->throttled, begin->joule, end.joule};
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
    if (isnan(s->pressure) && s->preempted > LEAST_PREEMPTED &&
        (double)s->preempted > MOST_PREEMPTED * s->seconds)
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

/* Energy of the packages in J; NaN: too few ticks of the counter. */
static void put_energy(const struct host_monitor *h, json_t *o)
{
    const struct host_seen *s = &h->seen;
    double ticks = s->seconds * 1e9 / RAPL_TICK_NS;
    int known = isfinite(s->begin_j) && isfinite(s->end_j);
    const char *why = !h->rapl ? *h->unmetered.text ? h->unmetered.text : "not asked for"
                      : !known ? "the counter of energy could not be read"
                               : "over before the counter of energy had ticked 100 times";
    json_object_set_new(o, "energy_source", h->rapl ? json_string(rapl_source(h->rapl))
                                                    : json_null());
    rec_set_int(o, "window_ns", (int64_t)(s->seconds * 1e9));
    rec_set_number(o, "energy_j",
                   known && ticks >= LEAST_TICKS ? s->end_j - s->begin_j : (double)NAN, why);
    if (!known)
        return;
    json_object_set_new(o, "energy_begin_j", json_real(s->begin_j));
    json_object_set_new(o, "energy_end_j", json_real(s->end_j));
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
    json_t *o = describe(&h->seen);
    put_energy(h, o);
    json_object_set_new(record, "host", o);
    if (!list)
        json_object_set_new(record, "tainted", list = json_array());
    append_names(list, host_monitor_taints(&h->seen));
}

/* Watches the host while this process is idle. */
static void watch(struct host_monitor *h, int64_t ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    host_monitor_begin(h);
    while (nanosleep(&t, &t) && errno == EINTR)
        continue;
    host_monitor_end(h);
}

json_t *host_monitor_look(struct host_monitor *h, int64_t ms)
{
    json_t *o = json_object(), *reasons = json_array();
    watch(h, ms);
    append_names(reasons, host_monitor_taints(&h->seen));
    json_object_set_new(o, "host", describe(&h->seen));
    json_object_set_new(o, "fit", json_boolean(!json_array_size(reasons)));
    json_object_set_new(o, "reasons", reasons);
    return o;
}

json_t *host_monitor_idle(struct host_monitor *h, const char *when, int64_t ms)
{
    if (!h->rapl || ms <= 0)
        return NULL;
    watch(h, ms);
    const struct host_seen *s = &h->seen;
    int quiet = !host_monitor_taints(s);
    json_t *o = json_object();
    json_object_set_new(o, "when", json_string(when));
    rec_set_int(o, "window_ns", (int64_t)(s->seconds * 1e9));
    rec_set_number(o, "power_w", quiet ? (s->end_j - s->begin_j) / s->seconds : (double)NAN,
                   quiet ? "the counter of energy could not be read"
                         : "something else ran on this machine");
    json_object_set_new(o, "method", json_string("energy counter"));
    return o;
}
