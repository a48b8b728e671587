# style.sh - budgets of length and the rules of style that a compiler does not see.
. tests/house/tap.sh

clean "functions, files and lines keep to their budgets" tests/house/budgets . over
clean "no tabs, unfinished work, back-end switches, missing guards or mutable state" \
    tests/house/source .

mkdir -p "$scratch"/{tools,lib,kernels,tests}
body() { seq "$1" | sed 's/.*/    x += &;/'; }
{ printf 'int kernel(int x)\n{\n'; body 100; printf '}\n'; } | plant kernels/ref/fine.c
clean "a kernel may have 100 lines" tests/house/budgets "$scratch" over
{ printf 'int lib_long(int x)\n{\n'; body 81; printf '}\n'; } | plant lib/base/long.c
seq 501 | plant lib/base/tall.c
printf '/* %099d */\n' 0 | plant tools/wide.c
caught 'long.c: lib_long: 81 lines' "planted: a long function" tests/house/budgets "$scratch"
caught 'tall.c: 501 lines' "planted: a long file" tests/house/budgets "$scratch"
caught 'wide.c:1: 105 columns' "planted: a long line" tests/house/budgets "$scratch"
caught '2 functions' "functions are counted" tests/house/budgets "$scratch"

rm -rf "$scratch"/*
mkdir -p "$scratch"/{tools,lib,kernels,tests}
plant lib/base/good.h <<'END'
#ifndef BASE_GOOD_H
#define BASE_GOOD_H
struct good { int a; };
extern const char good_text[];
#endif
END
plant lib/base/good.c <<'END'
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
clean "plain code passes" tests/house/source "$scratch"
printf 'int a;\tint b;\n' | plant tools/tab.c
printf '/* TO%s: later */\n' DO | plant tools/later.c
printf 'int f(void); \n' | plant tools/blank.c
plant kernels/switch.c <<<'#ifdef HAVE_CUDA'
plant lib/io/bare.h <<<'int bare(void);'
plant lib/io/wrong.h <<<'#ifndef WRONG_H'
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
for fault in 'tab.c:1: tab' 'later.c:1: unfinished' 'blank.c:1: blank' 'switch.c:1: back-end' \
    'bare.h: no guard IO_BARE_H' 'wrong.h: no guard' 'state.c:1: mutable' 'state.c:2: mutable' \
    'state.c:3: mutable' 'inner.c:3: mutable'; do
    caught "$fault" "planted: $fault" tests/house/source "$scratch"
done
finish
