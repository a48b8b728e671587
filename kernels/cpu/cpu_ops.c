/* cpu_ops.c - the table of operations of one level. Each level has functions with names of its own
 * (CPU(): level.h), so that several levels fit in one program. The level amx (OWN) only replaces
 * products; its other operations are those of the level below (LEVEL). Operations for memory and
 * order are the same for all levels (HOST_OPS). */
#include "kernels/cpu/cpu.h"
#include "kernels/host.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define ROW(slot) .slot = CPU(slot),
#define OWN_ROW(slot) .slot = OWN_CPU(slot),

static const struct mixing_ops mixing = {MIXING_SLOTS(ROW)};
const struct ops OWN_CPU(ops) = {
    CPU_SLOTS(ROW) OWN_CPU_SLOTS(OWN_ROW) HOST_OPS,
    .name = "cpu", .level = TEXT(OWN), .mixing = &mixing,
#ifdef TRAIN_IN_OPS /* levels of the tests, which ops.c does not know */
    .train = &OWN_CPU(train),
#endif
};
