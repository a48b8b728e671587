# tiles.sh - tests that compilers keep all stores into the configuration of AMX's tiles
# (kernels/cpu/amx/tmm.h): each installed compiler, at -O2 and at -O3. On a processor with AMX the
# instructions run. Elsewhere they trap, and the trap handler reads what they would have read.
. tests/house/tap.sh

if [ "$(uname -m)" != x86_64 ]; then
    skip "the configuration of tiles arrives whole" "AMX is of x86-64"
    finish
fi
probe() # COMPILER FLAGS...: builds and runs the probe
{
    local cc=$1
    shift
    "$cc" -std=c11 -D_GNU_SOURCE -I. -Wall -Wextra -Werror "$@" \
        tests/emulate/configuration.c kernels/amx-x86.c -o "$scratch/probe" 2>"$scratch/said" ||
        return 3
    "$scratch/probe" 16 >"$scratch/said" 2>&1
}
for cc in cc gcc-12 clang-14 clang; do
    command -v "$cc" >/dev/null || continue
    for level in -O2 -O3; do
        probe "$cc" $level
        ok $? "$cc $level: $(tail -n 1 "$scratch/said")"
    done
done
probe cc -O2 -DLOST
[ $? -eq 1 ]
ok $? "planted: all but 8 bytes are lost: $(tail -n 1 "$scratch/said")"
finish
