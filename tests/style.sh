# style.sh - tests the budgets of length and the rules of style that a compiler does not check.
. tests/house/tap.sh

clean "functions, files and lines keep to their budgets" tests/house/budgets . over
clean "long functions have words for names" tests/house/letters .
clean "no tabs, unfinished work, back-end switches, headers read twice or mutable state" \
    tests/house/source .

mkdir -p "$scratch"/{tools,lib,kernels,tests}
body() { seq "$1" | sed 's/.*/    x += &;/'; }
{ printf 'int kernel(int x)\n{\n'; body 100; printf '}\n'; } | plant kernels/ref/fine.c
clean "a kernel may have 100 lines" tests/house/budgets "$scratch" over
{ printf '/* whole.c - a thing.\n *\n * One file because its parts mean nothing alone.\n */\n'
  seq 501; } | plant lib/base/whole.c
{ printf '# whole - a script.\n#\n# One file because it is read in one go.\nset -e\n'
  seq 501; } | plant tests/gpu/whole
clean "a file with a reason may be long" tests/house/budgets "$scratch" over
{ printf '/* late.c - a thing. */\nint a;\n/* One file because I say so. */\n'; seq 501; } |
    plant lib/base/late.c
{ printf '/* mute.c - a thing.\n * One file because\n */\n'; seq 501; } | plant lib/base/mute.c
{ printf 'int lib_long(int x)\n{\n'; body 81; printf '}\n'; } | plant lib/base/long.c
seq 501 | plant lib/base/tall.c
printf '/* %099d */\n' 0 | plant tools/wide.c
caught 'long.c: lib_long: 81 lines' "planted: a long function" tests/house/budgets "$scratch"
caught 'tall.c: 501 lines' "planted: a long file" tests/house/budgets "$scratch"
caught 'late.c: 504 lines' "planted: a reason that is not in the first comment" \
    tests/house/budgets "$scratch"
caught 'mute.c: 504 lines' "planted: a reason that says nothing" tests/house/budgets "$scratch"
caught 'wide.c:1: 105 columns' "planted: a long line" tests/house/budgets "$scratch"
caught '2 functions' "functions are counted" tests/house/budgets "$scratch"
{ printf 'static __global__ void __launch_bounds__(64) long_kernel(int x)\n{\n'; body 121
  printf '}\n'; } | plant kernels/cuda/long.cu
seq 501 | plant kernels/cuda/tall.cuh
printf '/* %099d */\n' 0 | plant tests/emulate/wide.cc
printf '# %099d\n' 0 | plant tests/gpu/wide
for fault in 'long.cu: long_kernel: 121 lines, limit 120' 'tall.cuh: 501 lines' \
    'emulate/wide.cc:1: 105 columns' 'gpu/wide:1: 101 columns'; do
    caught "$fault" "planted: $fault" tests/house/budgets "$scratch"
done

rm -rf "$scratch"/*
mkdir -p "$scratch"/{tools,lib,kernels,tests}
plant lib/base/good.h <<'END'
#pragma once
struct good { int a; };
extern const char good_text[];
END
plant lib/base/good.c <<'END'
/* good.c - what is good; see good.h and README.md.
 *
 * Nothing bad is ever done. */
#include "lib/base/good.h"
static const int good_table[] = {1, 2};
static int good_one(struct good *g);
struct tool { int a; };

static int good_one(struct good *g)
{
    static const int k = 3;
    return g->a + good_table[0] + k;
}
END
plant lib/base/host_device.h <<'END'
#pragma once
#ifdef __CUDACC__
#endif
C_BEGIN
int both(void);
C_END
END
plant kernels/cuda/device/both.h <<'END'
#pragma once
C_BEGIN
int both_sides(void);
C_END
END
plant kernels/cuda/good.cuh <<'END'
#pragma once
#if __CUDA_ARCH__ >= 900 && CUDART_VERSION >= 12030
#endif
END
plant kernels/cuda/good.cu <<'END'
static __device__ float twice(float x) { return 2 * x; }
static __global__ void good(float *y)
{
    y[0] = twice(y[0]);
}
END
plant tests/gpu/good <<<'#!/bin/sh'
clean "plain code passes" tests/house/source "$scratch"
printf 'int a;\tint b;\n' | plant tools/tab.c
printf '/* TO%s: later */\n' DO | plant tools/later.c
printf 'int f(void); \n' | plant tools/blank.c
plant kernels/switch.c <<<'#ifdef HAVE_CUDA'
plant lib/io/bare.h <<<'int bare(void);'
plant lib/stat/state.c <<'END'
static int counter;
struct good box;
static double table[4] = {0};
END
plant lib/stat/inner.c <<'END'
int next(void)
{
    static int n;
    return n++;
}
END
printf 'int a;\tint b;\n' | plant kernels/cuda/tab.cu
printf 'int f(void); \n' | plant tests/emulate/blank.cc
printf '# TO%s: later\n' DO | plant tests/gpu/later
plant kernels/cuda/bare.cuh <<<'int bare(void);'
plant kernels/switch.h <<<'#ifdef __CUDACC__'
plant kernels/cuda/asks.cu <<<'#ifdef HAVE_CUDA'
plant kernels/linked.c <<<'extern "C" int linked(void);'
plant kernels/cuda/linked.cu <<<'extern "C" void linked(void) {}'
plant lib/model/both.h <<<'#ifdef __cplusplus'
plant kernels/shared.h <<<'extern "C" {'
plant kernels/cuda/shared.cu <<<'    __shared__ float sums[32];'
plant kernels/cuda/state.cu <<'END'
static int counter;
static __device__ int box;
END
plant lib/base/mute.c <<<'int a;'
plant tools/brief.c <<<'/* brief.c - see brief.h. */'
printf ' * Source: measuring%s 3.2.\n' .md | plant lib/base/cites.h
printf '# as reliability%s says\n' .md | plant pipelines/cites.mk
printf '/* two ends / %s\n' '*/' | plant lib/base/twice.h
for fault in 'lib/base/mute.c: opens with no comment' 'tools/brief.c: opens with 1 line' \
    'lib/base/cites.h:1: cites' 'pipelines/cites.mk:1: cites' \
    'lib/base/twice.h:1: a comment that ends twice'; do
    caught "$fault" "planted: $fault" tests/house/source "$scratch"
done
for fault in 'tab.c:1: tab' 'cuda/tab.cu:1: tab' 'emulate/blank.cc:1: blank' \
    'gpu/later:1: unfinished' 'bare.cuh: no #pragma once' \
    'kernels/switch.h:1: back-end' \
    'asks.cu:1: back-end' 'linked.c:1: C linkage' 'linked.cu:1: C linkage' \
    'both.h:1: C++ asked' 'kernels/shared.h:1: C linkage' 'shared.cu:1: shared memory' \
    'cuda/state.cu:1: mutable' 'cuda/state.cu:2: mutable' \
    'later.c:1: unfinished' 'blank.c:1: blank' 'switch.c:1: back-end' \
    'bare.h: no #pragma once' 'state.c:1: mutable' 'state.c:2: mutable' \
    'state.c:3: mutable' 'inner.c:3: mutable'; do
    caught "$fault" "planted: $fault" tests/house/source "$scratch"
done

rm -rf "$scratch"/*
mkdir -p "$scratch"/{tools,lib,kernels}
long() # HEAD DECLARATION: a function of 16 lines with this head and declaration
{
    printf '/* a note: https://example.org/a */\n%s\n{\n%s\n' "$1" "$2"
    seq 12 | sed 's/.*/    use(&);/'
    printf '}\n'
}
{ long 'static int words(const struct buf *text, int n, struct err *e)' \
    '    double x = 1, y[2] = {1, 2}; /* char *s; */'
  printf 'int brief(char *s)\n{\n    return *s;\n}\n'; } | plant lib/base/words.c
clean "words, numbers x and y, and short functions pass" tests/house/letters "$scratch"
long 'int head(const struct buf *b)' '    int n = 0;' | plant lib/base/head.c
long 'int second(int n)' '    size_t at = f(n, 2), s = 0;' | plant tools/second.c
long 'int loop(int n)' '    for (size_t t = 0; t < n; t++)' | plant kernels/loop.c
long 'void CPU(level)(float *out, int r)' '    int n = 0;' | plant kernels/cpu/level.c
long 'int object(int n)' '    struct point x = {0};' | plant lib/stat/object.h
for fault in 'head.c:2: head: "b"' 'second.c:2: second: "s"' 'loop.c:2: loop: "t"' \
    'level.c:2: level: "r"' 'object.h:2: object: "x"'; do
    caught "$fault" "planted: $fault" tests/house/letters "$scratch"
done
finish
