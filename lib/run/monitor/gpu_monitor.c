/* gpu_monitor.c - see gpu_monitor.h. Values of a record were read by the polling thread while the
 * batch ran. Only values that a batch does not change (processes, errors, memory held) are also
 * read before and after it. */
#include "lib/run/monitor/gpu_monitor.h"

#include <errno.h>
#include <math.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/resident.h"
#include "lib/record/rec.h"

static const int64_t PAUSE_NS = 100000000;

void gpu_monitor_open(struct gpu_monitor *g, const char *address, size_t own, uint64_t seed)
{
    *g = (struct gpu_monitor){.gpu = address[0] != 0};
    g->pause.seed = rng_derive(seed, "pause");
    g->nvml = g->gpu ? nvml_open(address, own) : NULL;
    g->poll = gpu_poll_start(g->nvml, GPU_MONITOR_PERIOD_NS);
}

void gpu_monitor_close(struct gpu_monitor *g)
{
    gpu_poll_stop(g->poll);
    nvml_close(g->nvml);
    *g = (struct gpu_monitor){0};
}

int64_t gpu_monitor_foreign(const struct gpu_monitor *g)
{
    struct nvml_state now = {.foreign = -1};
    if (g->nvml)
        nvml_read(g->nvml, &now);
    return now.foreign;
}

static void sleep_ns(int64_t ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    while (nanosleep(&t, &t) && errno == EINTR)
        continue;
}

void gpu_monitor_begin(struct gpu_monitor *g)
{
    int64_t most = g->batch_ns / 10 < PAUSE_NS ? g->batch_ns / 10 : PAUSE_NS;
    if (g->poll && most > 0)
        sleep_ns((int64_t)rng_below(&g->pause, (uint64_t)most));
    nvml_read(g->nvml, &g->begin);
    g->resident_reset = resident_reset();
}

void gpu_monitor_end(struct gpu_monitor *g, const struct batch_trace *trace)
{
    int64_t end = trace->makespan_ns ? trace->start_ns + trace->makespan_ns : clock_ns();
    g->resident_peak = g->resident_reset ? -1 : resident_peak();
    nvml_read(g->nvml, &g->end);
    g->batch_ns = trace->makespan_ns;
    gpu_poll_take(g->poll, trace->start_ns, end, &g->seen);
}

/* ---- records ---- */

static void set_known(json_t *o, const char *key, int64_t value)
{
    json_object_set_new(o, key, value < 0 ? json_null() : json_integer(value));
}

static void set_real(json_t *o, const char *key, double value)
{
    json_object_set_new(o, key, isfinite(value) ? json_real(value) : json_null());
}

static void set_reason(json_t *o, const char *key, const char *reason)
{
    json_object_set_new(o, key, json_string(reason));
}

static int64_t largest(int64_t a, int64_t b, int64_t c)
{
    int64_t m = a > b ? a : b;
    return m > c ? m : c;
}

/* Energy of the batch in J; NaN: too few ticks of the counter. */
static void put_energy(const struct gpu_monitor *g, json_t *o)
{
    const struct gpu_poll_seen *s = &g->seen;
    char few[64];
    snprintf(few, sizeof few, "%lld ticks of the counter: expected %d",
             (long long)s->energy_ticks, GPU_MONITOR_TICKS);
    const char *why = !g->nvml                        ? "the driver does not tell"
                      : !g->batch_ns                  ? "out of memory"
                      : s->energy_ticks < 0           ? "no energy counter"
                      : s->energy_ticks < GPU_MONITOR_TICKS ? few
                                                      : "no tick around the batch";
    int few_ticks = s->energy_ticks < GPU_MONITOR_TICKS || !g->batch_ns;
    set_real(o, "energy_begin_j", g->batch_ns ? s->energy_begin_j : (double)NAN);
    set_real(o, "energy_end_j", g->batch_ns ? s->energy_end_j : (double)NAN);
    set_known(o, "energy_ticks", s->energy_ticks);
    rec_set_number(o, "energy_j",
                   few_ticks ? (double)NAN : s->energy_end_j - s->energy_begin_j, why);
}

/* The reasons why a batch is tainted. Without a reading inside the batch, those just before and
 * after count. */
static json_t *taints(const struct gpu_monitor *g)
{
    static const struct {
        int64_t bit;
        const char *name;
    } reasons[] = {{NVML_HW_SLOWDOWN, "hw_slowdown"},
                   {NVML_SW_THERMAL, "sw_thermal"},
                   {NVML_HW_THERMAL, "hw_thermal"},
                   {NVML_POWER_BRAKE, "power_brake"}};
    int64_t met = g->seen.samples > 0 ? g->seen.reasons : g->seen.around;
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (met > 0 && met & reasons[i].bit)
            json_array_append_new(list, json_string(reasons[i].name));
    if (largest(g->begin.foreign, g->end.foreign, g->seen.foreign) > 0)
        json_array_append_new(list, json_string("foreign_process"));
    if (g->begin.ecc_errors >= 0 && g->end.ecc_errors > g->begin.ecc_errors)
        json_array_append_new(list, json_string("ecc_error"));
    return list;
}

int gpu_monitor_tainted(const struct gpu_monitor *g)
{
    json_t *list = g->gpu ? taints(g) : NULL;
    int met = json_array_size(list) > 0;
    json_decref(list);
    return met;
}

static void put_clocks(const struct gpu_poll_seen *s, json_t *o)
{
    set_known(o, "samples", s->samples);
    set_known(o, "sm_min_mhz", s->sm_min_mhz);
    set_real(o, "sm_mean_mhz", s->sm_mean_mhz);
    set_known(o, "sm_max_mhz", s->sm_max_mhz);
    set_known(o, "memory_min_mhz", s->memory_min_mhz);
    set_known(o, "temperature_max_c", s->temperature_max_c);
    set_known(o, "clock_reasons", s->reasons);
    set_known(o, "power_capped_samples", s->capped);
}

void gpu_monitor_put(const struct gpu_monitor *g, json_t *record)
{
    const struct gpu_poll_seen *s = &g->seen;
    if (!g->gpu) {
        json_object_set_new(record, "gpu", json_null());
        return;
    }
    json_t *o = json_object();
    put_clocks(s, o);
    if (s->samples <= 0)
        set_reason(o, "samples_reason", g->nvml ? "the batch was over before the next reading"
                                                : "the driver does not tell");
    set_real(o, "power_mean_w", s->power_mean_w);
    set_real(o, "power_integral_j", s->power_j);
    put_energy(g, o);
    set_known(o, "used_peak_bytes",
              largest(g->begin.used_bytes, g->end.used_bytes, s->used_peak_bytes));
    set_known(o, "driver_reserved_bytes",
              largest(g->begin.reserved_bytes, g->end.reserved_bytes, s->reserved_bytes));
    set_known(o, "foreign_processes", largest(g->begin.foreign, g->end.foreign, s->foreign));
    set_known(o, "ecc_errors", g->end.ecc_errors);
    json_object_set_new(record, "gpu", o);
    json_object_set_new(record, "tainted", taints(g));
}

/* Peak bytes of this process in the batch; on a host its peak resident set. */
static int64_t find_process_peak(const struct gpu_monitor *g)
{
    return g->gpu ? largest(g->begin.process_bytes, g->end.process_bytes,
                            g->seen.process_peak_bytes)
                  : g->resident_peak;
}

int gpu_monitor_layers(const struct gpu_monitor *g, const struct memory *m)
{
    int64_t process = find_process_peak(g);
    if (m->requested > m->allocated || m->allocated > m->reserved ||
        m->requested_peak > m->allocated_peak || m->allocated_peak > m->reserved_peak)
        return 0;
    if (!g->gpu)
        return 1;
    return process < 0 ? -1 : m->reserved <= (size_t)process;
}

void gpu_monitor_put_memory(const struct gpu_monitor *g, const struct memory *m, json_t *memory)
{
    int64_t process = find_process_peak(g);
    int holds = gpu_monitor_layers(g, m);
    set_known(memory, "device_peak_bytes",
              g->gpu ? largest(g->begin.used_bytes, g->end.used_bytes, g->seen.used_peak_bytes)
                     : process);
    set_known(memory, "process_peak_bytes", process);
    if (process < 0)
        set_reason(memory, "process_peak_bytes_reason",
                   g->gpu ? "the driver does not tell"
                          : "the system does not count a process's peak anew for each batch");
    rec_set_flag(memory, "layers_hold", holds, "the driver does not tell what a process holds");
}

/* Power of the idle GPU: by the energy counter if it ticked before and after, else by the
 * readings. */
static void put_idle(const struct gpu_poll_seen *s, int64_t ns, json_t *o)
{
    double counted = (s->energy_end_j - s->energy_begin_j) / ((double)ns * 1e-9);
    int by_counter = s->energy_ticks > 0 && isfinite(counted);
    rec_set_number(o, "power_w", by_counter ? counted : s->power_mean_w,
                   "the driver does not tell");
    json_object_set_new(o, "method", by_counter ? json_string("energy counter")
                                                : json_string("power readings"));
    set_known(o, "energy_ticks", s->energy_ticks);
    put_clocks(s, o);
    set_known(o, "foreign_processes", s->foreign);
}

json_t *gpu_monitor_idle(struct gpu_monitor *g, const char *when, int64_t ms)
{
    if (!g->poll || ms <= 0)
        return NULL;
    gpu_poll_settle(g->poll);
    struct gpu_poll_seen seen;
    int64_t begin = clock_ns();
    sleep_ns(ms * 1000000);
    int64_t end = clock_ns();
    gpu_poll_take(g->poll, begin, end, &seen);
    json_t *o = json_object();
    json_object_set_new(o, "when", json_string(when));
    rec_set_int(o, "window_ns", end - begin);
    put_idle(&seen, end - begin, o);
    return o;
}
