/* test-processor.c - tests how a machine is identified: different processors with one name are two
 * machines, in records and in the folder of results. A value that the system does not give is
 * null. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/record/machine/machine.h"
#include "lib/record/machine/processor.h"
#include "lib/record/rec.h"
#include "tests/tap.h"

static char tmp[] = "/tmp/test-processor-XXXXXX";

static void plant(const char *root, const char *path, const char *text)
{
    char *to = mem_format("%s/%s/%s", tmp, root, path), *slash = strrchr(to, '/');
    *slash = 0;
    int made = !file_make_folder(to, NULL);
    *slash = '/';
    FILE *f = made ? fopen(to, "w") : NULL;
    if (!f || fputs(text, f) < 0 || fclose(f))
        err_machine(__FILE__, __LINE__, "a file cannot be planted");
    free(to);
}

/* Plants a virtual machine: the first processor in /proc/cpuinfo of x86-64. */
static void plant_x86(const char *root, const char *vendor, int family, int model,
                      const char *flags)
{
    char *text = mem_format("processor\t: 0\nvendor_id\t: %s\ncpu family\t: %d\nmodel\t\t: %d\n"
                            "model name\t: AMD EPYC\nstepping\t: 1\ncpu MHz\t\t: 2445.424\n"
                            "flags\t\t: fpu sse2 %s hypervisor\nbogomips\t: 4890.84\n\n"
                            "processor\t: 1\nvendor_id\t: Other\ncpu family\t: 1\n",
                            vendor, family, model, flags);
    plant(root, "proc/cpuinfo", text);
    free(text);
}

static json_t *processor(const char *root)
{
    char *path = mem_format("%s/%s", tmp, root);
    json_t *p = processor_describe(path);
    free(path);
    return p;
}

static int is_called(const json_t *p, const char *name)
{
    char *is = processor_name(p);
    int same = is && name ? !strcmp(is, name) : is == name;
    free(is);
    return same;
}

static int called(const char *root, const char *name)
{
    json_t *p = processor(root);
    int same = is_called(p, name);
    json_decref(p);
    return same;
}

static int has(const json_t *p, const char *key, const char *text)
{
    const char *is = rec_text(p, key);
    return is && !strcmp(is, text);
}

static void test_x86(void)
{
    plant_x86("zen3", "AuthenticAMD", 25, 1, "fma avx2 bmi2 f16c");
    plant("zen3", "sys/devices/system/cpu/cpu0/cache/index0/size", "32K\n");
    plant("zen3", "sys/devices/system/cpu/cpu0/cache/index1/size", "512K\n");
    json_t *p = processor("zen3");
    ok(has(p, "cpu", "AMD EPYC") && has(p, "cpu_vendor", "AuthenticAMD") &&
           rec_int(p, "cpu_family", -1) == 25 && rec_int(p, "cpu_model", -1) == 1 &&
           rec_int(p, "cpu_stepping", -1) == 1,
       "the first processor's vendor, family, model, stepping");
    ok(has(p, "cpu_flags", "avx2 bmi2 f16c fma") && has(p, "cpu_caches", "32K 512K"),
       "the processor's instruction sets, sorted, and caches");
    ok(has(p, "microarchitecture", "Zen 3") && is_called(p, "AMD EPYC (Zen 3)"),
       "a processor's name contains its microarchitecture");
    json_decref(p);
    plant_x86("zen5", "AuthenticAMD", 26, 2, "avx2 avx512f amx");
    ok(called("zen5", "AMD EPYC (Zen 5)"),
       "a processor of the same name and another family is a Zen 5");
    plant_x86("zen4", "AuthenticAMD", 25, 0x11, "avx2");
    plant_x86("spr", "GenuineIntel", 6, 0x8f, "avx2");
    plant_x86("new", "AuthenticAMD", 99, 2, "avx2");
    ok(called("zen4", "AMD EPYC (Zen 4)") && called("spr", "AMD EPYC (Sapphire Rapids)"),
       "one family, two kinds; another vendor");
    ok(called("new", "AMD EPYC (family 99, model 2)"),
       "a processor that is not in the table is named by its numbers");
}

static void test_others(void)
{
    plant("arm", "proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd asimddp "
          "bf16\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x1\n"
          "CPU part\t: 0xd40\nCPU revision\t: 2\n\nprocessor\t: 1\n");
    json_t *p = processor("arm");
    ok(has(p, "microarchitecture", "Neoverse V1") && rec_int(p, "cpu_model", -1) == 0xd40 &&
           rec_int(p, "cpu_stepping", -1) == 18 && has(p, "cpu_flags", "asimddp bf16"),
       "arm64: implementer, part, variant and revision");
    json_decref(p);
    plant("odd", "proc/cpuinfo", "no colon\n: no key\nmodel\t: 12x\ncpu family\t: -4\nstepping\t:\n"
          "model name\t: \xff\xfe\nflags\t: \n");
    p = processor("odd");
    ok(json_is_null(json_object_get(p, "cpu")) && json_is_null(json_object_get(p, "cpu_model")) &&
           json_is_null(json_object_get(p, "cpu_family")) &&
           json_is_null(json_object_get(p, "cpu_stepping")) && is_called(p, NULL),
       "a value that is neither number nor text is null");
    json_decref(p);
    p = processor("nothing");
    size_t null = 0;
    const char *key;
    json_t *v;
    json_object_foreach(p, key, v)
        null += json_is_null(v);
    ok(json_object_size(p) == 8 && null == 8, "without the files all of it is null");
    json_decref(p);
    p = json_pack("{s:s, s:i}", "cpu", "AMD EPYC", "cores", 2);
    ok(is_called(p, "AMD EPYC"), "a machine of an older record has its name");
    json_decref(p);
}

/* Returns the machine's fingerprint in records and the name of its folder. The caller frees. */
static char *prints_of(const char *root)
{
    char *path = mem_format("%s/%s", tmp, root), line[64] = "";
    char *command = mem_format("pipelines/bin/machine %s", path);
    json_t *m = machine_describe_below(path);
    FILE *f = popen(command, "r");
    if (!f || !fgets(line, sizeof line, f) || pclose(f))
        line[0] = 0;
    line[strcspn(line, "\n")] = 0;
    char *both = mem_format("%s %s", rec_text(m, "fingerprint"), line);
    json_decref(m);
    free(command);
    free(path);
    return both;
}

static void differ(const char *a, const char *b, const char *what)
{
    char *x = prints_of(a), *y = prints_of(b);
    ok(strlen(x) == 25 && strlen(y) == 25 && strncmp(x, y, 12) && strcmp(x + 13, y + 13), "%s",
       what);
    free(x);
    free(y);
}

static void test_prints(void)
{
    char *x = prints_of("zen3");
    plant("zen3", "proc/loadavg", "1.0\n");
    char *y = prints_of("zen3");
    ok(!strcmp(x, y), "the same machine has the same prints");
    free(x);
    free(y);
    differ("zen3", "zen5", "two kinds of one name are two machines, in records and folders");
    plant_x86("less", "AuthenticAMD", 25, 1, "fma bmi2 f16c");
    differ("zen3", "less", "machines that differ in an instruction set and a cache are two");
    char *path = mem_format("%s/zen5", tmp);
    json_t *m = machine_describe_below(path);
    ok(has(m, "microarchitecture", "Zen 5") && rec_int(m, "cores", 0) > 0,
       "a machine says what its processor is");
    json_decref(m);
    free(path);
}

int main(void)
{
    if (!mkdtemp(tmp))
        return 1;
    test_x86();
    test_others();
    test_prints();
    char *command = mem_format("rm -r %s", tmp);
    ok(system(command) == 0, "the planted files are removed");
    free(command);
    return tap_done();
}
