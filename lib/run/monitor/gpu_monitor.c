/* gpu_monitor.c - see gpu_monitor.h. The polling thread reads the values of a record while the
 * batch runs. Only values that a batch does not change (processes, errors, memory held) are also
 * read before and after the batch. */
#include "lib/run/monitor/gpu_monitor.h"

#include <errno.h>
#include <math.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/resident.h"
#include "lib/record/rec.h"

static const int64_t PAUSE_NS = 100000000;

void gpu_monitor_open(struct gpu_monitor *monitor, const char *address, size_t own, uint64_t seed)
{
    *monitor = (struct gpu_monitor){.gpu = address[0] != 0};
    monitor->pause.seed = rng_derive(seed, "pause");
    monitor->nvml = monitor->gpu ? nvml_open(address, own) : NULL;
    monitor->poll = gpu_poll_start(monitor->nvml, GPU_MONITOR_PERIOD_NS);
}

void gpu_monitor_close(struct gpu_monitor *monitor)
{
    gpu_poll_stop(monitor->poll);
    nvml_close(monitor->nvml);
    *monitor = (struct gpu_monitor){0};
}

int64_t gpu_monitor_foreign(const struct gpu_monitor *monitor)
{
    struct nvml_state now = {.foreign = -1};
    if (monitor->nvml)
        nvml_read(monitor->nvml, &now);
    return now.foreign;
}

static void sleep_ns(int64_t ns)
{
    struct timespec time = {ns / 1000000000, ns % 1000000000};
    while (nanosleep(&time, &time) && errno == EINTR)
        continue;
}

void gpu_monitor_begin(struct gpu_monitor *monitor)
{
    int64_t most = monitor->batch_ns / 10 < PAUSE_NS ? monitor->batch_ns / 10 : PAUSE_NS;
    if (monitor->poll && most > 0)
        sleep_ns((int64_t)rng_below(&monitor->pause, (uint64_t)most));
    nvml_read(monitor->nvml, &monitor->begin);
    monitor->resident_reset = resident_reset();
}

void gpu_monitor_end(struct gpu_monitor *monitor, const struct batch_trace *trace)
{
    int64_t end = trace->makespan_ns ? trace->start_ns + trace->makespan_ns : clock_ns();
    monitor->resident_peak = monitor->resident_reset ? -1 : resident_peak();
    nvml_read(monitor->nvml, &monitor->end);
    monitor->batch_ns = trace->makespan_ns;
    gpu_poll_take(monitor->poll, trace->start_ns, end, &monitor->seen);
}

/* ---- records ---- */

static void set_known(json_t *object, const char *key, int64_t value)
{
    json_object_set_new(object, key, value < 0 ? json_null() : json_integer(value));
}

static void set_real(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key, isfinite(value) ? json_real(value) : json_null());
}

static void set_reason(json_t *object, const char *key, const char *reason)
{
    json_object_set_new(object, key, json_string(reason));
}

static int64_t largest(int64_t a, int64_t b, int64_t c)
{
    int64_t m = a > b ? a : b;
    return m > c ? m : c;
}

/* Sets the energy of the batch in J; null if the counter ticked too rarely. */
static void put_energy(const struct gpu_monitor *monitor, json_t *object)
{
    const struct gpu_poll_seen *seen = &monitor->seen;
    char few[64];
    snprintf(few, sizeof few, "%lld ticks of the counter: expected %d",
             (long long)seen->energy_ticks, GPU_MONITOR_TICKS);
    const char *why = !monitor->nvml                           ? "the driver does not tell"
                      : !monitor->batch_ns                     ? "out of memory"
                      : seen->energy_ticks < 0                 ? "no energy counter"
                      : seen->energy_ticks < GPU_MONITOR_TICKS ? few
                                                               : "no tick around the batch";
    int few_ticks = seen->energy_ticks < GPU_MONITOR_TICKS || !monitor->batch_ns;
    set_real(object, "energy_begin_j", monitor->batch_ns ? seen->energy_begin_j : (double)NAN);
    set_real(object, "energy_end_j", monitor->batch_ns ? seen->energy_end_j : (double)NAN);
    set_known(object, "energy_ticks", seen->energy_ticks);
    rec_set_number(object, "energy_j",
                   few_ticks ? (double)NAN : seen->energy_end_j - seen->energy_begin_j, why);
}

/* Lists the reasons why a batch is tainted. Without a reading inside the batch, the readings just
 * before and after it count. */
static json_t *taints(const struct gpu_monitor *monitor)
{
    static const struct {
        int64_t bit;
        const char *name;
    } reasons[] = {{NVML_HW_SLOWDOWN, "hw_slowdown"},
                   {NVML_SW_THERMAL, "sw_thermal"},
                   {NVML_HW_THERMAL, "hw_thermal"},
                   {NVML_POWER_BRAKE, "power_brake"}};
    int64_t met = monitor->seen.samples > 0 ? monitor->seen.reasons : monitor->seen.around;
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (met > 0 && met & reasons[i].bit)
            json_array_append_new(list, json_string(reasons[i].name));
    if (largest(monitor->begin.foreign, monitor->end.foreign, monitor->seen.foreign) > 0)
        json_array_append_new(list, json_string("foreign_process"));
    if (monitor->begin.ecc_errors >= 0 && monitor->end.ecc_errors > monitor->begin.ecc_errors)
        json_array_append_new(list, json_string("ecc_error"));
    return list;
}

int gpu_monitor_tainted(const struct gpu_monitor *monitor)
{
    json_t *list = monitor->gpu ? taints(monitor) : NULL;
    int met = json_array_size(list) > 0;
    json_decref(list);
    return met;
}

static void put_clocks(const struct gpu_poll_seen *seen, json_t *object)
{
    set_known(object, "samples", seen->samples);
    set_known(object, "sm_min_mhz", seen->sm_min_mhz);
    set_real(object, "sm_mean_mhz", seen->sm_mean_mhz);
    set_known(object, "sm_max_mhz", seen->sm_max_mhz);
    set_known(object, "memory_min_mhz", seen->memory_min_mhz);
    set_known(object, "temperature_max_c", seen->temperature_max_c);
    set_known(object, "clock_reasons", seen->reasons);
    set_known(object, "power_capped_samples", seen->capped);
}

void gpu_monitor_put(const struct gpu_monitor *monitor, json_t *record)
{
    const struct gpu_poll_seen *seen = &monitor->seen;
    if (!monitor->gpu) {
        json_object_set_new(record, "gpu", json_null());
        return;
    }
    json_t *object = json_object();
    put_clocks(seen, object);
    if (seen->samples <= 0)
        set_reason(object, "samples_reason",
                   monitor->nvml ? "the batch was over before the next reading"
                                 : "the driver does not tell");
    set_real(object, "power_mean_w", seen->power_mean_w);
    set_real(object, "power_integral_j", seen->power_j);
    put_energy(monitor, object);
    set_known(object, "used_peak_bytes",
              largest(monitor->begin.used_bytes, monitor->end.used_bytes, seen->used_peak_bytes));
    set_known(
        object, "driver_reserved_bytes",
        largest(monitor->begin.reserved_bytes, monitor->end.reserved_bytes, seen->reserved_bytes));
    set_known(object, "foreign_processes",
              largest(monitor->begin.foreign, monitor->end.foreign, seen->foreign));
    set_known(object, "ecc_errors", monitor->end.ecc_errors);
    json_object_set_new(record, "gpu", object);
    json_object_set_new(record, "tainted", taints(monitor));
}

/* Returns the peak bytes of this process in the batch; on a host, its peak resident set. */
static int64_t find_process_peak(const struct gpu_monitor *monitor)
{
    return monitor->gpu ? largest(monitor->begin.process_bytes, monitor->end.process_bytes,
                                  monitor->seen.process_peak_bytes)
                        : monitor->resident_peak;
}

int gpu_monitor_layers(const struct gpu_monitor *monitor, const struct memory *memory)
{
    int64_t process = find_process_peak(monitor);
    if (memory->requested > memory->allocated || memory->allocated > memory->reserved ||
        memory->requested_peak > memory->allocated_peak ||
        memory->allocated_peak > memory->reserved_peak)
        return 0;
    if (!monitor->gpu)
        return 1;
    return process < 0 ? -1 : memory->reserved <= (size_t)process;
}

static int64_t without(int64_t bytes, size_t idle)
{
    return bytes < (int64_t)idle ? bytes : bytes - (int64_t)idle;
}

void gpu_monitor_put_memory(const struct gpu_monitor *monitor, const struct memory *host,
                            size_t idle, json_t *memory)
{
    int64_t process = find_process_peak(monitor);
    int holds = gpu_monitor_layers(monitor, host);
    set_known(memory, "device_peak_bytes",
              without(monitor->gpu ? largest(monitor->begin.used_bytes, monitor->end.used_bytes,
                                             monitor->seen.used_peak_bytes)
                                   : process,
                      idle));
    set_known(memory, "process_peak_bytes", without(process, idle));
    if (process < 0)
        set_reason(memory, "process_peak_bytes_reason",
                   monitor->gpu ? "the driver does not tell"
                                : "the system does not count a process's peak anew for each batch");
    rec_set_flag(memory, "layers_hold", holds, "the driver does not tell what a process holds");
}

/* Sets the power of the idle GPU: by the energy counter if it ticked before and after the window,
 * else by the readings of power. */
static void put_idle(const struct gpu_poll_seen *seen, int64_t ns, json_t *object)
{
    double counted = (seen->energy_end_j - seen->energy_begin_j) / ((double)ns * 1e-9);
    int by_counter = seen->energy_ticks > 0 && isfinite(counted);
    rec_set_number(object, "power_w", by_counter ? counted : seen->power_mean_w,
                   "the driver does not tell");
    json_object_set_new(object, "method", by_counter ? json_string("energy counter")
                                                     : json_string("power readings"));
    set_known(object, "energy_ticks", seen->energy_ticks);
    put_clocks(seen, object);
    set_known(object, "foreign_processes", seen->foreign);
}

json_t *gpu_monitor_idle(struct gpu_monitor *monitor, const char *when, int64_t ms)
{
    if (!monitor->poll || ms <= 0)
        return NULL;
    gpu_poll_settle(monitor->poll);
    struct gpu_poll_seen seen;
    int64_t begin = clock_ns();
    sleep_ns(ms * 1000000);
    int64_t end = clock_ns();
    gpu_poll_take(monitor->poll, begin, end, &seen);
    json_t *object = json_object();
    json_object_set_new(object, "when", json_string(when));
    rec_set_int(object, "window_ns", end - begin);
    put_idle(&seen, end - begin, object);
    return object;
}
