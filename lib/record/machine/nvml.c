/* nvml.c - see nvml.h. The functions used here have kept their names and arguments since 2016
 * (compute processes: version 3, 2021). Their prototypes are declared here, so the build needs no
 * header of the CUDA toolkit. A function that the driver lacks leaves its numbers at -1. */
#include "lib/record/machine/nvml.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"

enum { PROCESSES = 64, SM_CLOCK = 1, MEMORY_CLOCK = 2, UNCORRECTED = 1, TOO_SMALL = 7 };
enum { POWER_INSTANT = 186, TYPE_UNSIGNED = 1 };

struct memory_info {
    unsigned long long total, free, used;
};
struct memory_info2 {
    unsigned version; /* of this struct: its size and, from bit 24 on, 2 */
    unsigned long long total, reserved, free, used;
};
/* A value that is requested by its number. */
struct field_value {
    unsigned id, scope;
    long long at_us, took_us;
    unsigned type;
    int rc;
    union {
        unsigned u;
        unsigned long long ull;
        double d;
    } value;
};
struct process_info {
    unsigned pid;
    unsigned long long bytes; /* all ones: not known */
    unsigned gpu_instance, compute_instance;
};

struct nvml {
    void *library, *gpu;
    unsigned own; /* processes of this measurement */
    int (*shutdown)(void);
    int (*clock)(void *gpu, int type, unsigned *mhz);
    int (*power)(void *gpu, unsigned *mw);
    int (*fields)(void *gpu, int count, struct field_value *list);
    int (*energy)(void *gpu, unsigned long long *mj);
    int (*temperature)(void *gpu, int sensor, unsigned *c);
    int (*reasons)(void *gpu, unsigned long long *bits);
    int (*memory)(void *gpu, struct memory_info *info);
    int (*memory2)(void *gpu, struct memory_info2 *info);
    int (*processes)(void *gpu, unsigned *count, struct process_info *list);
    int (*ecc)(void *gpu, int type, int counter, unsigned long long *errors);
};

/* *to = the function `name` of the library, or NULL. (ISO C does not convert between function and
 * object pointers; POSIX gives both the same bytes.) */
static void find(const struct nvml *n, const char *name, void *to)
{
    void *f = dlsym(n->library, name);
    memcpy(to, &f, sizeof f);
}

static void find_all(struct nvml *n)
{
    find(n, "nvmlShutdown", &n->shutdown);
    find(n, "nvmlDeviceGetClockInfo", &n->clock);
    find(n, "nvmlDeviceGetPowerUsage", &n->power);
    find(n, "nvmlDeviceGetFieldValues", &n->fields);
    find(n, "nvmlDeviceGetTotalEnergyConsumption", &n->energy);
    find(n, "nvmlDeviceGetTemperature", &n->temperature);
    find(n, "nvmlDeviceGetCurrentClocksEventReasons", &n->reasons);
    if (!n->reasons) /* its name before driver 535 */
        find(n, "nvmlDeviceGetCurrentClocksThrottleReasons", &n->reasons);
    find(n, "nvmlDeviceGetMemoryInfo", &n->memory);
    find(n, "nvmlDeviceGetMemoryInfo_v2", &n->memory2);
    find(n, "nvmlDeviceGetComputeRunningProcesses_v3", &n->processes);
    find(n, "nvmlDeviceGetTotalEccErrors", &n->ecc);
}

/* Starts the library and finds the GPU. 0: both worked. */
static int start(struct nvml *n, const char *address)
{
    int (*init)(void);
    int (*by_address)(const char *address, void **gpu);
    find(n, "nvmlInit_v2", &init);
    find(n, "nvmlDeviceGetHandleByPciBusId_v2", &by_address);
    if (!init || !by_address || !n->shutdown || init())
        return -1;
    if (by_address(address, &n->gpu)) {
        n->shutdown();
        return -1;
    }
    return 0;
}

struct nvml *nvml_open(const char *address, size_t own)
{
    struct nvml *n = mem_zero(1, sizeof *n);
    n->own = (unsigned)own;
    n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (n->library) {
        find_all(n);
        if (!start(n, address))
            return n;
        dlclose(n->library);
    }
    free(n);
    return NULL;
}

void nvml_close(struct nvml *n)
{
    if (!n)
        return;
    n->shutdown();
    dlclose(n->library);
    free(n);
}

static void list_names(const struct nvml *n, struct buf *out)
{
    int (*init)(void), (*shutdown)(void), (*count)(unsigned *n);
    int (*by_index)(unsigned i, void **gpu), (*name)(void *gpu, char *text, unsigned room);
    unsigned gpus;
    find(n, "nvmlInit_v2", &init);
    find(n, "nvmlShutdown", &shutdown);
    find(n, "nvmlDeviceGetCount_v2", &count);
    find(n, "nvmlDeviceGetHandleByIndex_v2", &by_index);
    find(n, "nvmlDeviceGetName", &name);
    if (!init || !shutdown || !count || !by_index || !name || init())
        return;
    for (unsigned i = 0, end = count(&gpus) ? 0 : gpus; i < end; i++) {
        void *gpu;
        char text[96];
        if (!by_index(i, &gpu) && !name(gpu, text, sizeof text))
            buf_format(out, "%s%s", out->len ? ", " : "", text);
    }
    shutdown();
}

char *nvml_names(void)
{
    struct nvml n = {.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
    struct buf names = {0};
    if (n.library) {
        list_names(&n, &names);
        dlclose(n.library);
    }
    return names.data;
}

char *nvml_driver(void)
{
    struct nvml n = {.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
    int (*init)(void), (*shutdown)(void), (*version)(char *text, unsigned room);
    char text[80] = "";
    if (!n.library)
        return NULL;
    find(&n, "nvmlInit_v2", &init);
    find(&n, "nvmlShutdown", &shutdown);
    find(&n, "nvmlSystemGetDriverVersion", &version);
    if (init && shutdown && version && !init()) {
        if (version(text, sizeof text))
            text[0] = 0;
        shutdown();
    }
    dlclose(n.library);
    return text[0] ? mem_text(text) : NULL;
}

/* Returns the power at this moment. The older call, used where this one is missing, returns the
 * mean of a second on most cards since 2020. */
static int64_t read_power(struct nvml *n)
{
    struct field_value value = {.id = POWER_INSTANT};
    unsigned mw;
    if (n->fields && !n->fields(n->gpu, 1, &value) && !value.rc && value.type == TYPE_UNSIGNED)
        return value.value.u;
    return n->power && !n->power(n->gpu, &mw) ? (int64_t)mw : -1;
}

static void read_memory(struct nvml *n, struct nvml_state *out)
{
    struct memory_info info;
    struct memory_info2 two = {.version = (unsigned)sizeof two | 2u << 24};
    if (n->memory2 && !n->memory2(n->gpu, &two)) {
        out->used_bytes = (int64_t)two.used;
        out->reserved_bytes = (int64_t)two.reserved;
    } else if (n->memory && !n->memory(n->gpu, &info)) {
        out->used_bytes = (int64_t)info.used;
    }
}

/* The driver lists own and foreign processes. In a container it may list pids of the host, so
 * foreign processes are counted (all minus own), not recognized by their pids. */
static void read_processes(struct nvml *n, struct nvml_state *out)
{
    struct process_info list[PROCESSES];
    unsigned count = PROCESSES, me = (unsigned)getpid();
    int rc = n->processes ? n->processes(n->gpu, &count, list) : -1;
    if (rc == 0 || rc == TOO_SMALL) /* there may be more than fit */
        out->foreign = count > n->own ? count - n->own : 0;
    for (unsigned i = 0; rc == 0 && i < count; i++)
        if (list[i].pid == me && list[i].bytes <= INT64_MAX)
            out->process_bytes = (int64_t)list[i].bytes;
}

void nvml_glance(struct nvml *n, struct nvml_state *out)
{
    unsigned reading;
    unsigned long long wide;
    *out = (struct nvml_state){-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    if (!n)
        return;
    /* first, close to the caller's reading of the clock */
    if (n->energy && !n->energy(n->gpu, &wide))
        out->energy_mj = (int64_t)wide;
    if (n->clock && !n->clock(n->gpu, SM_CLOCK, &reading))
        out->sm_mhz = reading;
    if (n->clock && !n->clock(n->gpu, MEMORY_CLOCK, &reading))
        out->memory_mhz = reading;
    out->power_mw = read_power(n);
    if (n->temperature && !n->temperature(n->gpu, 0, &reading))
        out->temperature_c = reading;
    if (n->reasons && !n->reasons(n->gpu, &wide))
        out->reasons = (int64_t)wide;
    read_memory(n, out);
}

void nvml_read(struct nvml *n, struct nvml_state *out)
{
    unsigned long long v;
    nvml_glance(n, out);
    if (!n)
        return;
    if (n->ecc && !n->ecc(n->gpu, UNCORRECTED, 0, &v))
        out->ecc_errors = (int64_t)v;
    read_processes(n, out);
}
