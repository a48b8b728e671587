/* test-rapl.c - tests joules of the processor packages, from a tree like /sys: sums, counters that
 * wrap, and every reason for a missing value. */
#include "lib/record/machine/rapl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "tests/tap.h"

enum { SELDOM = 100000, OFTEN = 5 };
static char tree[] = "/tmp/rapl.XXXXXX";

/* Writes `text` to tree/FOLDER/NAME in one step. */
static void put(const char *folder, const char *name, const char *text)
{
    char *in = mem_format("%s/%s", tree, folder), *path = mem_format("%s/%s", in, name);
    char *part = mem_format("%s.part", path);
    struct err e = {0};
    FILE *f = file_make_folder(in, &e) ? NULL : fopen(part, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) || rename(part, path))
        abort();
    free(in);
    free(path);
    free(part);
}

static void domain(const char *place, const char *name, const char *uj)
{
    char *folder = mem_format("class/powercap/intel-rapl:%s", place);
    put(folder, "name", name);
    put(folder, "max_energy_range_uj", "1000000\n");
    put(folder, "energy_uj", uj);
    free(folder);
}

static int near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

/* Returns 1 if there is no counter, and the reason contains `text`. */
static int is_refused(const char *text)
{
    struct err e = {0};
    struct rapl *r = rapl_open(tree, SELDOM, &e);
    int is = !r && strstr(e.text, text);
    if (!is)
        printf("# %s\n", e.text);
    rapl_close(r);
    return is;
}

static void test_sums(void)
{
    struct err e = {0};
    domain("0", "package-0\n", "700000\n");
    domain("1", "package-1-die-0\n", "5\n");
    domain("2", "psys\n", "0\n");
    domain("0:0", "core\n", "0\n");
    struct rapl *r = rapl_open(tree, SELDOM, &e);
    ok(r && !strcmp(rapl_source(r), "powercap") && near(rapl_joules(r), 0),
       "a counter of energy begins at 0");
    domain("0", "package-0\n", "900000\n");
    domain("1", "package-1-die-0\n", "100005\n");
    domain("2", "psys\n", "500000\n");
    domain("0:0", "core\n", "90000\n");
    ok(near(rapl_joules(r), 0.3), "packages are added; their parts, and what holds them, are not");
    domain("0", "package-0\n", "100000\n");
    ok(near(rapl_joules(r), 0.5) && near(rapl_joules(r), 0.5), "a counter that began anew goes on");
    put("class/powercap/intel-rapl:1", "energy_uj", "");
    ok(isnan(rapl_joules(r)), "a domain that cannot be read leaves no sum");
    domain("1", "package-1-die-0\n", "200005\n");
    ok(near(rapl_joules(r), 0.6), "a domain that can be read again counts again");
    rapl_close(r);
}

/* The counter wraps twice between two readings, and the watching thread sees both. */
static void test_watch(void)
{
    struct err e = {0};
    const struct timespec a_while = {0, 200000000};
    domain("0", "package-0\n", "900000\n");
    struct rapl *r = rapl_open(tree, OFTEN, &e);
    for (int i = 0; i < 2; i++) {
        domain("0", "package-0\n", "100000\n");
        nanosleep(&a_while, NULL);
        domain("0", "package-0\n", "900000\n");
        nanosleep(&a_while, NULL);
    }
    ok(near(rapl_joules(r), 2), "a counter that begins anew twice is watched: %g J",
       rapl_joules(r));
    rapl_close(r);
}

/* Reads as another user, because root may always read. */
static void test_refused(void)
{
    char *path = mem_format("%s/class/powercap/intel-rapl:0/energy_uj", tree);
    int root = !geteuid();
    if (chmod(tree, 0755) || chmod(path, 0) || (root && seteuid(65534)))
        abort();
    ok(is_refused("intel-rapl:0/energy_uj: Permission denied"), "a file that only root may read");
    if (root && seteuid(0))
        abort();
    free(path);
    domain("0", "package-0\n", "-5\n");
    ok(is_refused("expected a number not below 0, got '-5'"), "a counter below 0");
    domain("0", "package-0\n", "12x\n");
    ok(is_refused("got '12x'"), "a counter that is no number");
    domain("0", "psys\n", "5\n");
    domain("1", "psys\n", "5\n");
    ok(is_refused("intel-rapl:*: no package"), "no package");
}

/* The clock of a processor stands for its energy, if the kernel lets us read it. */
static void test_clock(void)
{
    struct err e = {0};
    const struct timespec a_while = {0, 20000000};
    put("bus/event_source/devices/power", "type", "1\n");
    put("bus/event_source/devices/power/events", "energy-pkg", "event=0x00\n");
    put("bus/event_source/devices/power/events", "energy-pkg.scale", "1e-9\n");
    put("bus/event_source/devices/power", "cpumask", "0\n");
    struct rapl *r = rapl_open(tree, SELDOM, &e);
    double before = rapl_joules(r);
    nanosleep(&a_while, NULL);
    double after = rapl_joules(r);
    int counts = r && !strcmp(rapl_source(r), "perf") && before >= 0 && before < 1 &&
                 after - before >= 0.019 && after - before < 5;
    ok(r ? counts : strstr(e.text, "events/energy-pkg: ") != NULL, "events %s",
       r ? "count" : "are not for us here");
    rapl_close(r);
}

/* A kernel that does not know these events, and files with nonsense. */
static void test_events(void)
{
    const char *power = "bus/event_source/devices/power";
    ok(is_refused("devices/power/type: No such file or directory"), "no events either");
    put(power, "type", "4294967295\n");
    put(power, "cpumask", "0\n");
    put("bus/event_source/devices/power/events", "energy-pkg", "event=0x02\n");
    put("bus/event_source/devices/power/events", "energy-pkg.scale", "2.3283064365386963e-10\n");
    ok(is_refused("devices/power/events/energy-pkg: "), "an event that the kernel refuses");
    put(power, "cpumask", "x\n");
    ok(is_refused("cpumask: expected processors, got 'x'"), "a cpumask without numbers is refused");
    put("bus/event_source/devices/power/events", "energy-pkg", "umask=1\n");
    ok(is_refused("expected event=N, got 'umask=1'"),
       "an event description without event= is refused");
}

int main(void)
{
    if (!mkdtemp(tree))
        return 1;
    ok(isnan(rapl_joules(NULL)), "no counter, no joules");
    ok(is_refused("no energy counter of the processor: "), "an empty tree");
    test_sums();
    test_watch();
    test_refused();
    test_events();
    test_clock();
    char *command = mem_format("rm -r '%s'", tree);
    int bad = system(command);
    free(command);
    return tap_done() || bad;
}
