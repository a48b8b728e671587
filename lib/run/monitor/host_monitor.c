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

/* A batch is tainted if a share of its time is above MOST_ and also longer than these seconds. */
static const double MOST_PRESSURE = 0.05, LEAST_PRESSURE_S = 0.002;
static const double MOST_STOLEN = 0.02, MOST_OTHERS = 0.05, LEAST_TICKS_S = 0.045;
/* Limit on switches per second. It is used only if the system has no pressure counter, because the
 * number of switches does not tell the lost time: a kernel thread for the pages of a large process
 * may switch in ninety times a second and take 0.2 % of the time. */
static const double MOST_PREEMPTED = 50;
enum { LEAST_PREEMPTED = 10 };
/* Least ticks of the energy counter for a measurement. */
static const double LEAST_TICKS = 100;

/* ---- readings ---- */

static double read_pressure(void)
{
    unsigned long long us;
    double s = NAN;
    FILE *file = fopen("/proc/pressure/cpu", "r");
    if (file && fscanf(file, "some %*s %*s %*s total=%llu", &us) == 1)
        s = (double)us * 1e-6;
    if (file)
        fclose(file);
    return s;
}

/* Reads the first line of /proc/stat: user nice system idle iowait irq softirq steal, in ticks. */
static void read_ticks(struct host_state *to)
{
    unsigned long long v[8];
    double hz = (double)sysconf(_SC_CLK_TCK);
    FILE *file = fopen("/proc/stat", "r");
    to->busy = to->stolen = NAN;
    if (file && fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", v, v + 1, v + 2, v + 3,
                       v + 4, v + 5, v + 6, v + 7) == 8) {
        to->busy = (double)(v[0] + v[1] + v[2] + v[5] + v[6]) / hz;
        to->stolen = (double)v[7] / hz;
    }
    if (file)
        fclose(file);
}

static int64_t read_throttled(void)
{
    long long n = -1;
    FILE *file = fopen("/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", "r");
    if (file && fscanf(file, "%lld", &n) != 1)
        n = -1;
    if (file)
        fclose(file);
    return n;
}

static double seconds(const struct timeval *time)
{
    return (double)time->tv_sec + 1e-6 * (double)time->tv_usec;
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

void host_monitor_open(struct host_monitor *monitor)
{
    const char *sys = getenv("CROSSOVER_SYS");
    *monitor = (struct host_monitor){0};
    monitor->rapl = rapl_open(sys ? sys : "/sys", RAPL_LOOK_MS, &monitor->unmetered);
}

void host_monitor_close(struct host_monitor *monitor)
{
    rapl_close(monitor->rapl);
    monitor->rapl = NULL;
}

void host_monitor_begin(struct host_monitor *monitor)
{
    read_state(&monitor->begin);
    /* energy is read last here and first at the end, to leave out the other readings */
    monitor->begin.joule = rapl_joules(monitor->rapl);
}

void host_monitor_end(struct host_monitor *monitor)
{
    struct host_state end, *begin = &monitor->begin;
    end.joule = rapl_joules(monitor->rapl);
    read_state(&end);
    double passed = end.now - begin->now;
    double others = (end.busy - begin->busy) - (end.own - begin->own);
    monitor->seen = (struct host_seen){
        passed, (end.pressure - begin->pressure) / passed, (end.stolen - begin->stolen) / passed,
        (others > 0 ? others : others <= 0 ? 0 : NAN) / passed, end.preempted - begin->preempted,
        begin->throttled < 0 ? -1 : end.throttled - begin->throttled, begin->joule, end.joule};
}

/* ---- taints and records ---- */

static int is_above(double share, double most, double passed, double least_s)
{
    return share > most && share * passed > least_s;
}

unsigned host_monitor_taints(const struct host_seen *seen)
{
    unsigned taints = 0;
    if (is_above(seen->pressure, MOST_PRESSURE, seen->seconds, LEAST_PRESSURE_S))
        taints |= HOST_PRESSURE;
    if (is_above(seen->stolen, MOST_STOLEN, seen->seconds, LEAST_TICKS_S))
        taints |= HOST_STOLEN;
    if (is_above(seen->others, MOST_OTHERS, seen->seconds, LEAST_TICKS_S))
        taints |= HOST_OTHERS;
    if (isnan(seen->pressure) && seen->preempted > LEAST_PREEMPTED &&
        (double)seen->preempted > MOST_PREEMPTED * seen->seconds)
        taints |= HOST_PREEMPTED;
    if (seen->throttled > 0)
        taints |= HOST_THERMAL;
    return taints;
}

static void append_names(json_t *list, unsigned taints)
{
    static const char *const names[] = {"cpu_pressure", "cpu_stolen", "other_load", "preempted",
                                        "cpu_thermal"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (taints >> i & 1)
            json_array_append_new(list, json_string(names[i]));
}

/* Sets the energy of the packages in J; null if the counter ticked too rarely. */
static void put_energy(const struct host_monitor *monitor, json_t *object)
{
    const struct host_seen *seen = &monitor->seen;
    double ticks = seen->seconds * 1e9 / RAPL_TICK_NS;
    int known = isfinite(seen->begin_j) && isfinite(seen->end_j);
    const char *why = !monitor->rapl
                          ? *monitor->unmetered.text ? monitor->unmetered.text : "not asked for"
                      : !known ? "the counter of energy could not be read"
                               : "over before the counter of energy had ticked 100 times";
    json_object_set_new(object, "energy_source",
                        monitor->rapl ? json_string(rapl_source(monitor->rapl)) : json_null());
    rec_set_int(object, "window_ns", (int64_t)(seen->seconds * 1e9));
    rec_set_number(object, "energy_j",
                   known && ticks >= LEAST_TICKS ? seen->end_j - seen->begin_j : (double)NAN, why);
    if (!known)
        return;
    json_object_set_new(object, "energy_begin_j", json_real(seen->begin_j));
    json_object_set_new(object, "energy_end_j", json_real(seen->end_j));
}

static json_t *describe(const struct host_seen *seen)
{
    json_t *object = json_object();
    rec_set_number(object, "pressure_ratio", seen->pressure, "the system does not tell");
    rec_set_number(object, "stolen_ratio", seen->stolen, "the system does not tell");
    rec_set_number(object, "others_ratio", seen->others, "the system does not tell");
    rec_set_int(object, "preempted", seen->preempted);
    rec_set_number(object, "throttled", seen->throttled < 0 ? (double)NAN : (double)seen->throttled,
                   "the system does not tell");
    return object;
}

void host_monitor_put(const struct host_monitor *monitor, json_t *record)
{
    json_t *list = json_object_get(record, "tainted");
    json_t *object = describe(&monitor->seen);
    put_energy(monitor, object);
    json_object_set_new(record, "host", object);
    if (!list)
        json_object_set_new(record, "tainted", list = json_array());
    append_names(list, host_monitor_taints(&monitor->seen));
}

/* Watches the host while this process is idle. */
static void watch(struct host_monitor *monitor, int64_t ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    host_monitor_begin(monitor);
    while (nanosleep(&time, &time) && errno == EINTR)
        continue;
    host_monitor_end(monitor);
}

json_t *host_monitor_look(struct host_monitor *monitor, int64_t ms)
{
    json_t *object = json_object(), *reasons = json_array();
    watch(monitor, ms);
    append_names(reasons, host_monitor_taints(&monitor->seen));
    json_object_set_new(object, "host", describe(&monitor->seen));
    json_object_set_new(object, "fit", json_boolean(!json_array_size(reasons)));
    json_object_set_new(object, "reasons", reasons);
    return object;
}

json_t *host_monitor_idle(struct host_monitor *monitor, const char *when, int64_t ms)
{
    if (!monitor->rapl || ms <= 0)
        return NULL;
    watch(monitor, ms);
    const struct host_seen *seen = &monitor->seen;
    int quiet = !host_monitor_taints(seen);
    json_t *object = json_object();
    json_object_set_new(object, "when", json_string(when));
    rec_set_int(object, "window_ns", (int64_t)(seen->seconds * 1e9));
    rec_set_number(
        object, "power_w", quiet ? (seen->end_j - seen->begin_j) / seen->seconds : (double)NAN,
        quiet ? "the counter of energy could not be read" : "something else ran on this machine");
    json_object_set_new(object, "method", json_string("energy counter"));
    return object;
}
