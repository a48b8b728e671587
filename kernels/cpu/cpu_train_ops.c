/* cpu_train_ops.c - the table of training operations of one level (kernels/train.h). It is not in
 * cpu_ops.c, so that programs that do not train need not link it. */
#include "kernels/cpu/cpu.h"

#define ROW(slot) .slot = CPU(slot),
#define OWN_ROW(slot) .slot = OWN_CPU(slot),

const struct train_ops OWN_CPU(train) = {CPU_TRAIN_SLOTS(ROW) OWN_CPU_TRAIN_SLOTS(OWN_ROW)};
