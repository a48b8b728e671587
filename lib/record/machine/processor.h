/* processor.h - which processor a computer has. The name that the system gives it does not say:
 * virtual machines of one provider are all "AMD EPYC", whatever lies beneath. Family, model and
 * stepping do, and so do the instructions that the engine's levels (kernels/ops.c) depend on and
 * the sizes of the caches.
 */
#ifndef RECORD_MACHINE_PROCESSOR_H
#define RECORD_MACHINE_PROCESSOR_H

#include <jansson.h>

/* Of the first processor of /proc/cpuinfo and /sys/devices/system/cpu/cpu0/cache below `root`
 * ("": the system's own): cpu (its name, a text), cpu_vendor, cpu_family, cpu_model, cpu_stepping,
 * cpu_flags (a text, sorted; "": none of those that matter), cpu_caches ("32K 32K 512K 32768K"),
 * microarchitecture ("Zen 3"). Null: the system does not say, or it is not in the table. On arm64
 * vendor, family, model and stepping are implementer, architecture, part, and 16 variant +
 * revision. Nothing of it changes from one run to the next. The caller's reference. */
json_t *processor_describe(const char *root);
/* "AMD EPYC (Zen 3)", "AMD EPYC (family 26, model 2)", "AMD EPYC": of a machine's or a processor's
 * members, as far as they are there. NULL: it has no name. The caller's. */
char *processor_name(const json_t *machine);

#endif
