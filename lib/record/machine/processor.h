/* processor.h - describes the identity of a processor. The name is not enough: a provider calls all
 * its virtual machines "AMD EPYC". Family, model, stepping, the instruction sets that the engine
 * chooses levels by (kernels/ops.c) and the cache sizes tell processors apart. */
#pragma once

#include <jansson.h>

/* Describes the first processor in /proc/cpuinfo and /sys/devices/system/cpu/cpu0/cache below
 * `root` ("": the system): cpu (its name, a text), cpu_vendor, cpu_family, cpu_model, cpu_stepping,
 * cpu_flags (the flags that levels are chosen by, sorted; "": none), cpu_caches ("32K 32K 512K
 * 32768K"), microarchitecture ("Zen 3"). A member is null if the system does not report it, or if
 * the table of microarchitectures lacks the processor. On arm64 vendor, family, model and stepping
 * are implementer, architecture, part, and 16 * variant + revision. All members are constant
 * between runs. The caller's reference. */
json_t *processor_describe(const char *root);
/* Returns "AMD EPYC (Zen 3)", "AMD EPYC (family 26, model 2)" or "AMD EPYC", by the members of a
 * machine or a processor that are present. NULL: no member names a processor. The caller's. */
char *processor_name(const json_t *machine);
