/* machine.c - the description of this machine; see machine.h.
 *
 * The values come from the system (/proc, /sys, uname); a missing value is null. The fingerprint
 * tells records of two machines apart, so it contains nothing that changes between two runs on the
 * same machine (load, clocks, free memory). */
#include "lib/record/machine/machine.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/record/machine/nvml.h"
#include "lib/record/machine/processor.h"

/* Returns the value of the first "key : value" line of a file as a JSON text, or JSON null. */
static json_t *value_of(const char *path, const char *key)
{
    FILE *file = fopen(path, "r");
    char line[512];
    json_t *out = NULL;
    while (file && !out && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, strlen(key)))
            continue;
        char *begin = colon + 1, *end = begin + strlen(begin);
        while (isspace((unsigned char)*begin))
            begin++;
        while (end > begin && isspace((unsigned char)end[-1]))
            *--end = 0;
        out = json_string(begin);
    }
    if (file)
        fclose(file);
    return out ? out : json_null();
}

/* Returns the names of the GPUs, "NVIDIA H200, NVIDIA H200", from the driver's folder in /proc, or
 * from the driver's library on systems without that folder (containers, WSL). JSON null without a
 * driver. */
static json_t *gpus(void)
{
    const char *root = "/proc/driver/nvidia/gpus";
    struct dirent **list = NULL;
    int n = scandir(root, &list, NULL, alphasort);
    struct buf names = {0};
    for (int i = 0; i < n; i++) {
        if (list[i]->d_name[0] != '.') {
            char *path = mem_format("%s/%s/information", root, list[i]->d_name);
            json_t *model = value_of(path, "Model");
            if (json_is_string(model))
                buf_format(&names, "%s%s", names.len ? ", " : "", json_string_value(model));
            json_decref(model);
            free(path);
        }
        free(list[i]);
    }
    free(list);
    char *asked = names.len ? NULL : nvml_names();
    const char *found = asked ? asked : names.data;
    json_t *out = found ? json_string(found) : json_null();
    free(asked);
    buf_free(&names);
    return out ? out : json_null();
}

/* Returns the version of the driver, "580.82.07", from the kernel module, else from the driver's
 * library; JSON null without a driver. */
static json_t *driver(void)
{
    FILE *file = fopen("/sys/module/nvidia/version", "r");
    char line[64] = "";
    char *asked = NULL;
    if (file) {
        if (fscanf(file, "%63s", line) != 1)
               line[0] = 0;
        fclose(file);
    }
    if (!line[0])
        asked = nvml_driver();
    json_t *out = asked ? json_string(asked) : line[0] ? json_string(line) : NULL;
    free(asked);
    return out ? out : json_null();
}

json_t *machine_describe_below(const char *root)
{
    struct utsname system = {0};
    (void)uname(&system);
    char *kernel = mem_format("%s %s %s", system.sysname, system.release, system.machine);
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    json_t *machine = processor_describe(root);
    json_t *rest = json_pack("{s:I, s:I, s:s, s:s, s:o}", "cores",
                             (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "memory_bytes",
                             (json_int_t)pages * page, "kernel", kernel, "compiler", __VERSION__,
                             "gpu", gpus());
    free(kernel);
    json_t *version = driver();
    int bad = !machine || !rest || json_object_update(machine, rest);
    json_decref(rest);
    if (!bad && json_is_string(version)) /* no null: machines without a driver keep fingerprints */
        json_object_set(machine, "driver", version);
    char *text = bad ? NULL : json_dumps(machine, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text)
        err_machine(__FILE__, __LINE__, "cannot describe the machine (out of memory)");
    char hex[65];
    hash_bytes(text, strlen(text), hex);
    free(text);
    hex[12] = 0;
    json_object_set_new(machine, "driver", version);
    json_object_set_new(machine, "fingerprint", json_string(hex));
    return machine;
}

json_t *machine_describe(void)
{
    return machine_describe_below("");
}
