/* rapl.c - see rapl.h. A package stores the last value of its counter and the joules up to it. Each
 * reading adds the difference; after a wrap, the rest of the range plus the present value. A lock
 * separates readings of the caller and of the thread. */
#include "lib/record/machine/rapl.h"

#include <errno.h>
#include <glob.h>
#include <linux/perf_event.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/mem.h"

struct package {
    char *path;         /* folder of its powercap counter; NULL: it is read by an event */
    int event;          /* descriptor of the event; -1: none */
    double last, range; /* last value and range of the counter: microjoules, or counts */
    double unit, joule; /* joules of one count; joules since rapl_open() */
};

struct rapl {
    struct package package[RAPL_PACKAGES];
    size_t n;
    long look_ms;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int watched, stop;
};

/* ---- files of the system ---- */

/* Reads the first line of FOLDER/NAME. -1: *e. */
static int read_line(const char *folder, const char *name, char *line, int room, struct err *e)
{
    char *path = mem_format("%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    int good = file && fgets(line, room, file);
    if (!good)
        err_set(e, EXIT_NO_INPUT, "%s: %s", path,
                !file ? strerror(errno) : ferror(file) ? "cannot be read" : "is empty");
    else
        line[strcspn(line, "\n")] = 0;
    if (file)
        fclose(file);
    free(path);
    return good ? 0 : -1;
}

static int read_number(const char *folder, const char *name, double *v, struct err *e)
{
    char line[64], *end;
    if (read_line(folder, name, line, sizeof line, e))
        return -1;
    *v = strtod(line, &end);
    return end > line && !*end && isfinite(*v) && *v >= 0
               ? 0
               : err_set(e, EXIT_BAD_DATA, "%s/%s: expected a number not below 0, got '%s'", folder,
                         name, line);
}

/* ---- powercap ---- */

static int add_domain(struct rapl *rapl, const char *folder, struct err *e)
{
    struct package package = {.event = -1, .unit = 1e-6};
    char name[64];
    if (read_line(folder, "name", name, sizeof name, e))
        return -1;
    if (strncmp(name, "package-", 8) || rapl->n == RAPL_PACKAGES) /* "psys" contains the packages */
        return 0;
    if (read_number(folder, "energy_uj", &package.last, e) ||
        read_number(folder, "max_energy_range_uj", &package.range, e))
        return -1;
    package.path = mem_text(folder);
    rapl->package[rapl->n++] = package;
    return 0;
}

static void forget(struct rapl *rapl)
{
    for (size_t i = 0; i < rapl->n; i++) {
        free(rapl->package[i].path);
        if (rapl->package[i].event >= 0)
            close(rapl->package[i].event);
    }
    rapl->n = 0;
}

/* Opens the domains of the first level, "intel-rapl:0". Those below them are cores and memory. */
static int open_powercap(struct rapl *rapl, const char *sys, struct err *e)
{
    char *pattern = mem_format("%s/class/powercap/intel-rapl:*", sys);
    glob_t found = {0};
    int bad = 0;
    if (!glob(pattern, 0, NULL, &found))
        for (size_t i = 0; !bad && i < found.gl_pathc; i++)
            if (!strchr(strrchr(found.gl_pathv[i], '/') + sizeof "intel-rapl:", ':'))
                bad = add_domain(rapl, found.gl_pathv[i], e);
    globfree(&found);
    if (bad)
        forget(rapl); /* a sum of some packages would be wrong */
    else if (!rapl->n)
        err_set(e, EXIT_NO_DEVICE, "%s: no package", pattern);
    free(pattern);
    return rapl->n ? 0 : -1;
}

/* ---- performance events ---- */

static int open_event(const char *folder, unsigned type, unsigned long long config, int cpu,
                      struct err *e)
{
    struct perf_event_attr attr = {.type = type, .size = sizeof attr, .config = config};
    long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        err_set(e, EXIT_NO_DEVICE, "%s/events/energy-pkg: %s", folder, strerror(errno));
    return (int)fd;
}

/* Opens the event on each processor of a list like "0,18-19": one per package. */
static int open_packages(struct rapl *rapl, const char *folder, struct package like, unsigned type,
                         unsigned long long config, char *list, struct err *e)
{
    char *rest = NULL;
    for (char *range = strtok_r(list, ",", &rest); range; range = strtok_r(NULL, ",", &rest)) {
        int first, last, n = sscanf(range, "%d-%d", &first, &last);
        if (n < 1 || first < 0)
            return err_set(e, EXIT_BAD_DATA, "%s/cpumask: expected processors, got '%s'", folder,
                           range);
        for (int cpu = first; cpu <= (n < 2 ? first : last) && rapl->n < RAPL_PACKAGES; cpu++) {
            like.event = open_event(folder, type, config, cpu, e);
            if (like.event < 0)
                return -1;
            rapl->package[rapl->n++] = like;
        }
    }
    return 0;
}

static int open_perf(struct rapl *rapl, const char *sys, struct err *e)
{
    char *folder = mem_format("%s/bus/event_source/devices/power", sys), event[64], list[256];
    struct package like = {.event = -1};
    double type;
    unsigned long long config = 0;
    int bad = read_number(folder, "type", &type, e) ||
              read_line(folder, "events/energy-pkg", event, sizeof event, e) ||
              read_number(folder, "events/energy-pkg.scale", &like.unit, e) ||
              read_line(folder, "cpumask", list, sizeof list, e);
    if (!bad && sscanf(event, "event=%llx", &config) != 1)
        bad = err_set(e, EXIT_BAD_DATA, "%s/events/energy-pkg: expected event=N, got '%s'", folder,
                      event);
    if (bad || open_packages(rapl, folder, like, (unsigned)type, config, list, e))
        forget(rapl);
    free(folder);
    return rapl->n ? 0 : -1;
}

/* ---- readings ---- */

/* Reads the counter of a package. -1: it cannot be read. */
static int read_counter(const struct package *package, double *v)
{
    uint64_t count;
    if (package->path)
        return read_number(package->path, "energy_uj", v, NULL);
    if (read(package->event, &count, sizeof count) != sizeof count)
        return -1;
    *v = (double)count;
    return 0;
}

static double joules_locked(struct rapl *rapl)
{
    double sum = 0, now;
    for (size_t i = 0; i < rapl->n; i++) {
        struct package *package = &rapl->package[i];
        if (read_counter(package, &now)) {
            sum = NAN;
            continue;
        }
        package->joule += package->unit *
                          (now - package->last + (now < package->last ? package->range : 0));
        package->last = now;
        sum += package->joule;
    }
    return sum;
}

double rapl_joules(struct rapl *rapl)
{
    if (!rapl)
        return NAN;
    pthread_mutex_lock(&rapl->lock);
    double sum = joules_locked(rapl);
    pthread_mutex_unlock(&rapl->lock);
    return sum;
}

static void *watch(void *ctx)
{
    struct rapl *rapl = ctx;
    struct timespec time;
    pthread_mutex_lock(&rapl->lock);
    clock_gettime(CLOCK_MONOTONIC, &time);
    while (!rapl->stop) {
        time.tv_sec += rapl->look_ms / 1000;
        time.tv_nsec += rapl->look_ms % 1000 * 1000000;
        time.tv_sec += time.tv_nsec / 1000000000;
        time.tv_nsec %= 1000000000;
        while (!rapl->stop && pthread_cond_timedwait(&rapl->wake, &rapl->lock, &time) != ETIMEDOUT)
            continue;
        joules_locked(rapl);
    }
    pthread_mutex_unlock(&rapl->lock);
    return NULL;
}

/* Starts the thread. 0: it runs. */
static int start_watch(struct rapl *rapl)
{
    pthread_condattr_t monotonic;
    sigset_t all, mine;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&rapl->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &mine);
    rapl->watched = !pthread_create(&rapl->thread, NULL, watch, rapl);
    pthread_sigmask(SIG_SETMASK, &mine, NULL);
    return rapl->watched ? 0 : -1;
}

struct rapl *rapl_open(const char *sys, long look_ms, struct err *e)
{
    struct rapl *rapl = mem_zero(1, sizeof *rapl);
    struct err powercap = {0}, perf = {0};
    rapl->look_ms = look_ms;
    pthread_mutex_init(&rapl->lock, NULL);
    if (open_powercap(rapl, sys, &powercap) && open_perf(rapl, sys, &perf)) {
        err_set(e, EXIT_NO_DEVICE, "no energy counter of the processor: %s; %s", powercap.text,
                perf.text);
    } else {
        rapl_joules(rapl); /* events start at zero when they are opened */
        if (!rapl->package->path || !start_watch(rapl))
            return rapl;
        err_set(e, EXIT_INTERNAL, "no thread to watch the energy counter: %s", strerror(errno));
    }
    rapl_close(rapl);
    return NULL;
}

void rapl_close(struct rapl *rapl)
{
    if (!rapl)
        return;
    if (rapl->watched) {
        pthread_mutex_lock(&rapl->lock);
        rapl->stop = 1;
        pthread_cond_signal(&rapl->wake);
        pthread_mutex_unlock(&rapl->lock);
        pthread_join(rapl->thread, NULL);
        pthread_cond_destroy(&rapl->wake);
    }
    forget(rapl);
    pthread_mutex_destroy(&rapl->lock);
    free(rapl);
}

const char *rapl_source(const struct rapl *rapl)
{
    return rapl->package->path ? "powercap" : "perf";
}
