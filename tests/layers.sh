# layers.sh - tests the rooms of the sources. A file includes only its own room and rooms below it.
# Code that reads records neither includes nor links code that runs models. No modules and no files
# include each other in a circle, and no files call each other in a circle. The name of a global
# function begins with the name of its module.
. tests/house/tap.sh

clean "every include points down, and no modules and no files form a cycle" tests/house/layers .
clean "every global function bears the name of its module" tests/house/prefixes .
objects=$(dirname "${BIN:-build/bin}")/obj
clean "no files call each other in a circle" tests/house/circles . "$objects"
bin=${BIN:-build/bin}
analysis=$(make -s print-RECORD_TOOLS | xargs -n 1 printf "$bin/%s ")
# shellcheck disable=SC2086
clean "a tool that reads records links no kernel, decoder, gradient or network" \
    tests/house/links "$objects" $analysis
[ "$(wc -w <<<"$analysis")" -ge 10 ] &&
    [ "$(tests/house/links "$objects" "$bin/gen-llada" | wc -l)" -gt 100 ]
ok $? "gen-llada links them"
[ -e "$objects/lib/run/runner.o" ] && [ "$(find lib kernels -name '*.[ch]' | wc -l)" -gt 20 ]
ok $? "there was something to look at"
! nm "$bin/gen-llama" | grep -qi backprop && nm "$bin/train-lm" | grep -qi backprop
ok $? "gen-llama links no gradient"

order='tools lib/forecast lib/report lib/figure lib/analysis lib/run lib/latent lib/decode lib/train
    lib/network lib/checkpoint lib/text lib/setting lib/record lib/stat kernels lib/base'
mkdir -p "$scratch"/{tools,lib,kernels,tests}
above=
for room in $order; do
    if [ -n "$above" ]; then
        plant "$room/up.c" <<<"#include \"$above/thing.h\""
        caught "^$room/up.c:1: $room must not include $above/thing.h" \
            "planted: $room includes $above" tests/house/layers "$scratch"
    fi
    above=$room
done
rm -rf "$scratch"/*
mkdir -p "$scratch"/{tools,lib,kernels,tests}
above=
for room in head product layer attention weights device; do
    if [ -n "$above" ]; then
        plant kernels/cuda/$room/up.cu <<<"#include \"kernels/cuda/$above/thing.h\""
        plant kernels/cuda/$above/down.cu <<<"#include \"kernels/cuda/$room/thing.h\""
        caught "^kernels/cuda/$room/up.cu:1: kernels/cuda/$room must not include" \
            "planted: kernels/cuda/$room includes $above" tests/house/layers "$scratch"
        rm "$scratch/kernels/cuda/$room/up.cu"
    fi
    above=$room
done
plant kernels/cuda/open.cu <<<"#include \"kernels/cuda/head/thing.h\""
plant kernels/cuda/device/under.cu <<<"#include \"kernels/cuda/cuda.h\""
clean "the folders of kernels/cuda include down, the files beside them any and by any" \
    tests/house/layers "$scratch"
plant kernels/cuda/spare/thing.cu <<<"#include \"kernels/cuda/cuda.h\""
caught "^kernels/cuda/spare/thing.cu:1: a room nobody drew: kernels/cuda/spare" \
    "planted: a folder of kernels/cuda that nobody drew" tests/house/layers "$scratch"

rm -rf "$scratch"/*
mkdir -p "$scratch"/{tools,lib,kernels,tests}
plant lib/decode/unmask/a.c <<<'#include "lib/run/point.h"'
plant lib/checkpoint/families/b.h <<<'#  include "lib/network/network.h"'
plant lib/stat/f.c <<<'#include "stat.h"'
plant lib/extra/g.c <<<'#include "lib/base/err.h"'
plant lib/base/e.h <<<'#include "lib/extra/g.h"'
plant tools/h.c <<<'#include "tests/tap.h"'
plant kernels/cuda/i.cu <<<'#include "tests/emulate/emulate.cuh"'
plant kernels/cuda/j.cuh <<<'#include "lib/record/json.h"'
plant kernels/cuda/k.cc <<<'#include "lib/network/network.h"'
plant lib/analysis/l.c <<<'#include "lib/run/methods.h"'
plant lib/report/m.c <<<'#include "lib/network/cost.h"'
plant lib/figure/n.h <<<'#include "kernels/dtype.h"'
plant lib/setting/o.c <<<'#include "lib/decode/decoder.h"'
for fault in lib/analysis/l.c lib/report/m.c lib/figure/n.h lib/setting/o.c \
    lib/decode/unmask/a.c lib/checkpoint/families/b.h lib/stat/f.c lib/extra/g.c \
    lib/base/e.h tools/h.c kernels/cuda/i.cu kernels/cuda/j.cuh kernels/cuda/k.cc; do
    caught "^$fault:1: " "planted: $fault" tests/house/layers "$scratch"
done

rm -rf "$scratch"/*
mkdir -p "$scratch"/{tools,lib,kernels,tests}
above=
for room in $order; do
    [ -z "$above" ] || [ "$room" = lib/run ] || plant "$above/good.c" <<<"#include \"$room/good.h\""
    above=$room
done
plant lib/decode/unmask/rule.c <<<'#include "lib/decode/unmask.h"'
plant lib/decode/unmask.c <<<'#include "lib/decode/rules.h"'
plant lib/text/one.c <<<'#include "lib/text/one-part.h"'
plant lib/text/one-part.c <<<'#include "lib/text/one-part.h"'
plant lib/text/one-whole.c <<<'#include "lib/text/one.h"'
plant lib/text/inner.h <<<'#include "lib/text/one.h"'
plant lib/text/inner/run.h <<<'#include "lib/text/inner.h"'
plant lib/text/inner/inner.c <<<'#include "lib/text/inner/run.h"'
plant lib/text/two.h <<<'#include "lib/text/one.h"'
plant lib/forecast/four.c <<<'#include "lib/network/cost.h"'
plant lib/analysis/five.c <<<'#include "lib/setting/system.h"'
plant kernels/cuda/three.cu <<<'#include "kernels/cuda/three.cuh"'
plant kernels/cuda/three.cuh <<<'#include "kernels/cuda/three.h"'
plant tests/unit/test-two.c <<<'#include "lib/text/two.h"'
clean "allowed includes pass, also those between parts of one module" tests/house/layers "$scratch"

plant lib/text/one-other.c <<<'#include "lib/text/two.h"'
caught 'cycle of modules: \(lib/text/one \)\?lib/text/two lib/text/one\( lib/text/two\)\?$' \
    "planted: a cycle of two modules" tests/house/layers "$scratch"
rm "$scratch/lib/text/one-other.c"
plant lib/text/one-part.h <<<'#include "lib/text/one.h"'
caught 'cycle of files: lib/text/one lib/text/one-part lib/text/one$' \
    "planted: a part that needs the whole, and the whole it" tests/house/layers "$scratch"
rm "$scratch/lib/text/one-part.h"
plant lib/text/inner.h <<<'#include "lib/text/inner/run.h"'
caught 'cycle of modules: .*lib/text/inner/run' \
    "planted: a public header that needs its inside" tests/house/layers "$scratch"
rm "$scratch/lib/text/inner.h"
plant lib/stat/a.h <<<'#include "lib/stat/b.h"'
plant lib/stat/b.c <<<'#include "lib/stat/c.h"'
plant lib/stat/c.h <<<'#include "lib/stat/a.h"'
caught 'cycle of modules: lib/stat/a lib/stat/b lib/stat/c lib/stat/a$' \
    "planted: a cycle of three modules" tests/house/layers "$scratch"
rm -r "$scratch/lib/stat"
plant kernels/cuda/three.h <<<'#include "kernels/cuda/four.cuh"'
plant kernels/cuda/four.cuh <<<'#include "kernels/cuda/three.cuh"'
caught 'cycle of modules: kernels/cuda/' "planted: a cycle of .cuh and .h" \
    tests/house/layers "$scratch"

rm -rf "$scratch"/*
mkdir -p "$scratch"/{lib,kernels}
plant lib/stat/good.h <<'END'
/* good.h - good( is a word of this comment, and so is
 * other( here. */
int good(int x);
const struct thing *good_thing(const char *text,
                               int (*call)(void *ctx));
void good_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
typedef int callback(void *ctx);
static inline int twice(int x) { return 2 * x; }
extern const char texts[];
#define GOOD(x) other(x)
END
plant lib/stat/crossover.h <<<'double crossover_rise(int x);'
plant lib/stat/good-part.c <<'END'
static int helper(int x)
{
    return other(x);
}
static const int table[] = {1, 2};
int good_part(int x)
{
    return helper(x);
}
END
plant lib/decode/unmask/margin.c <<<'int unmask_margin(int x)'
plant lib/decode/unmask/entropy.c <<<'int entropy_settle(int x)'
plant lib/decode/walk.h <<<'int walk(int x);'
plant lib/decode/walk/run.h <<<'int walk_step(int x);'
plant lib/decode/walk/walk.c <<<'int walk(int x)'
plant lib/decode/walk/step.c <<<'int walk_step(int x)'
plant lib/text/cut.h <<<'int cut(int x);'
plant lib/text/cut-all.c <<<'int cut(int x)'
plant lib/text/cut/edge.c <<<'int edge_of(int x)'
plant kernels/ops.h <<<'int backend_open(int x);'
plant kernels/backend.c <<<'int backend_open(int x)'
plant kernels/compose.c <<<'void host_qkv(int x)'
plant kernels/cpu/cpu_rows.c <<<'void CPU(rope)(int x)'
plant kernels/ref/ref_mat.c <<<'void ref_embed(int x)'
plant kernels/cuda/gemv.cu <<'END'
template <class A>
static __global__ void __launch_bounds__(64)
gemv_rows(A *y)
DEVICE int lane(void)
extern "C" int gemv(int x)
template <class A>
void launch_rows(A *y)
extern "C" int crossover_cuda_open(int x)
END
plant kernels/cuda/product.h <<<'int gemv(int x);'
plant kernels/cuda/device/alloc.cu <<<'void cuda_alloc(int x)'
clean "names that bear their module's pass" tests/house/prefixes "$scratch"
plant lib/stat/bad.h <<<'int good_other(int x);'
plant lib/stat/badly.h <<<'int badlyer(int x);'
plant lib/stat/bad-part.c <<<'struct thing *thing_make(int x)'
plant lib/decode/unmask/order.c <<<'int settle(int x)'
plant lib/decode/walk/hop.c <<<'int hop_far(int x)'
plant lib/decode/walk/jump.h <<<'int jump(int x);'
plant lib/base/odd.c <<<'__attribute__((noinline)) int strange(int x)'
plant kernels/some.c <<<'size_t other_thing(int x)'
plant kernels/ops.h <<<'int nowhere_open(int x);'
plant kernels/cuda/rows.cu <<<'void norm_rows(int x)'
plant kernels/cuda/many.cu <<<'extern "C" int single(int x)'
plant kernels/cuda/dlsym.cu <<<'extern "C" int crossover_other(int x)'
plant kernels/cuda/device/lent.cu <<<'void alloc_lent(int x)'
for fault in lib/stat/bad.h:1:.good_other lib/stat/badly.h:1:.badlyer \
    lib/stat/bad-part.c:1:.thing_make lib/decode/unmask/order.c:1:.settle \
    lib/decode/walk/hop.c:1:.hop_far lib/decode/walk/jump.h:1:.jump \
    kernels/some.c:1:.other_thing kernels/ops.h:1:.nowhere_open kernels/cuda/rows.cu:1:.norm_rows \
    lib/base/odd.c:1:.strange kernels/cuda/many.cu:1:.single \
    kernels/cuda/dlsym.cu:1:.other kernels/cuda/device/lent.cu:1:.alloc_lent; do
    caught "^$fault does not" "planted: $fault" tests/house/prefixes "$scratch"
done

rm -rf "$scratch"/*
compiled() # SOURCE OBJECT: standard input
{
    plant "$1"
    mkdir -p "$scratch/obj/${2%/*}"
    ${CC:-cc} -x c -c -o "$scratch/obj/$2" "$scratch/$1"
}
compiled lib/stat/rise.c lib/stat/rise.o <<<'int low(int x); int rise(int x) { return low(x); }'
compiled lib/stat/low.c lib/stat/low.o <<<'int low(int x) { return x; }'
compiled lib/stat/table.c lib/stat/table.o <<<'extern const int rows; int row(int x);
    int (*const table[])(int x) = {row, row};
    int table_at(int x) { return table[x < rows](x); }'
compiled lib/stat/row.c lib/stat/row.o <<<'const int rows = 4; int table_at(int x);
    int row(int x) { return table_at(x); }'
clean "files that call down pass, and a table of what calls it" \
    tests/house/circles "$scratch" "$scratch/obj"
while read -r sources objects suffix; do
    rm -rf "$scratch"/{lib,kernels}
    compiled "$sources/rise.$suffix" "$objects/rise.o" <<<'int low(int x);
        int rise(int x) { return low(x); }'
    compiled "$sources/low.$suffix" "$objects/low.o" <<<'int (*up(void))(int x);
        int low(int x) { return up()(x); }'
    compiled "$sources/up.$suffix" "$objects/up.o" <<<'int rise(int x);
        int (*up(void))(int x) { return rise; }'
    for part in rise low up; do
        caught "^circle of files:.* $sources/$part[.]$suffix\\b" \
            "planted: three files in a circle, $objects/$part" \
            tests/house/circles "$scratch" "$scratch/obj"
    done
    rm "$scratch/$sources/up.$suffix"
    clean "no source of $objects/up is left: no circle" \
        tests/house/circles "$scratch" "$scratch/obj"
done <<'END'
lib/stat lib/stat c
kernels/cpu kernels/avx2/cpu c
kernels/cuda pic/kernels/cuda c
kernels/cuda emulate/kernels/cuda cu
END
rm -rf "$scratch"/{lib,kernels,obj}
gpu=kernels/cuda
compiled $gpu/product/rise.cu $gpu/product/rise.o <<<'int low(int x);
    int rise(int x) { return low(x); }'
compiled $gpu/device/low.cu $gpu/device/low.o <<<'int low(int x) { return x; }'
compiled $gpu/product/even.cu $gpu/product/even.o <<<'int even(int x) { return x; }'
clean "folders of kernels/cuda that call one way pass" \
    tests/house/circles "$scratch" "$scratch/obj"
compiled $gpu/device/other.cu $gpu/device/other.o <<<'int even(int x);
    int other(int x) { return even(x); }'
caught "^circle of files:.* $gpu/device\\b" "planted: two folders of kernels/cuda in a circle" \
    tests/house/circles "$scratch" "$scratch/obj"
rm -rf "$scratch"/*
compiled lib/decode/walk.c lib/decode/walk.o <<<'int walk(void); int walk(void) { return 1; }'
compiled tools/read.c tools/read.o <<<'int main(void) { return 0; }'
compiled tools/run.c tools/run.o <<<'int walk(void); int main(void) { return walk(); }'
${CC:-cc} -o "$scratch/read" "$scratch/obj/tools/read.o"
${CC:-cc} -o "$scratch/run" "$scratch/obj/tools/run.o" "$scratch/obj/lib/decode/walk.o"
clean "a tool that links nothing of lib/decode passes" \
    tests/house/links "$scratch/obj" "$scratch/read"
caught "^run: links walk of .*lib/decode/walk.o" "planted: a tool that links a decoder" \
    tests/house/links "$scratch/obj" "$scratch/run"
finish
