# layers.sh - a file includes only its own layer and those below it (README, "The rooms").
. tests/house/tap.sh

clean "every include keeps to its layer" tests/house/layers .
[ "$(find lib kernels -name '*.[ch]' | wc -l)" -gt 20 ]
ok $? "there was something to look at"

plant lib/base/a.c <<<'#include "lib/record/json.h"'
plant lib/io/b.c <<<'#include "lib/stat/stat.h"'
plant lib/model/c.h <<<'#  include "tools/d.h"'
plant kernels/ref/e.c <<<'#include "lib/network/network.h"'
plant lib/stat/f.c <<<'#include "stat.h"'
plant lib/extra/g.c <<<'#include "lib/base/err.h"'
plant tools/h.c <<<'#include "tests/tap.h"'
mkdir -p "$scratch/tests"
plant kernels/cuda/i.cu <<<'#include "tests/emulate/emulate.cuh"'
plant kernels/cuda/j.cuh <<<'#include "lib/record/json.h"'
plant kernels/cuda/k.cc <<<'#include "lib/network/network.h"'
for fault in lib/base/a.c lib/io/b.c lib/model/c.h kernels/ref/e.c lib/stat/f.c lib/extra/g.c \
    tools/h.c kernels/cuda/i.cu kernels/cuda/j.cuh kernels/cuda/k.cc; do
    caught "^$fault:1: " "planted: $fault" tests/house/layers "$scratch"
done
rm -rf "$scratch"/*
plant tools/good.c <<<'#include "lib/network/network.h"'
plant lib/model/good.c <<<'#include "kernels/ops.h"'
mkdir -p "$scratch/kernels" "$scratch/tests"
clean "what is allowed passes" tests/house/layers "$scratch"
finish
