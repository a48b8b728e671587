/* cpu_train_ops.c - the table of gradients of one level (kernels/train.h), apart from cpu_ops.c:
 * programs that do not train leave it out. */
#include "kernels/cpu/cpu.h"

#define ROW(slot) .slot = CPU(slot),
#define OWN_ROW(slot) .slot = OWN_CPU(slot),

const struct train_ops OWN_CPU(train) = {CPU_TRAIN_SLOTS(ROW) OWN_CPU_TRAIN_SLOTS(OWN_ROW)};
