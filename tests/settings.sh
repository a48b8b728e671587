# settings.sh - tests that make settings and pipelines/README.md show every setting of the
# makefiles, and that make -n, help, settings and plan compile and write nothing.
. tests/house/tap.sh

pipelines/bin/settings >"$scratch/settings"
[ "$(grep -c '^  [A-Za-z_]*=' "$scratch/settings")" -gt 150 ]
ok $? "make settings prints the settings"
without=$(awk '/^  [A-Za-z_]+=/ { name = $0; getline; if ($0 ~ /^ *$/) print name }' \
    "$scratch/settings")
[ -z "$without" ]
ok $? "each with its meaning"
[ -z "$without" ] || printf '# no comment above %s\n' $without
printf '# x.mk - a planted file.\n\nMUTE ?= 1\n' >"$scratch/mute.mk"
sed -e "s|config.mk Makefile|$scratch/mute.mk|" -e '/^cd /d' pipelines/bin/settings |
    sh | awk '/^  MUTE=1/ { getline; if ($0 ~ /^ *$/) found = 1 } END { exit !found }'
ok $? "planted: a setting without a comment is found"
sed -n '/^### config.mk/,$p' pipelines/README.md >"$scratch/page"
pipelines/bin/settings --markdown | diff - "$scratch/page" >"$scratch/diff"
ok $? "pipelines/README.md has the same settings"
sed -n '1,10s/^/# /p' "$scratch/diff"

# SIGPIPE must have its default action: if a caller ignores it, each program reports its failed
# write. MAKEFLAGS of a make that runs this test names a job server that is not open here.
env -u MAKEFLAGS --default-signal=PIPE make --no-print-directory help 2>"$scratch/said" | true
[ ! -s "$scratch/said" ] || { sed "s/^/# /" "$scratch/said"; false; }
ok $? "make help ends quietly when its reader has enough"

# make must check every variable that the environment can set, before a recipe uses it.
make --no-print-directory CUDA=0 print-SETTINGS | tr ' ' '\n' | sort >"$scratch/checked"
makefiles="Makefile config.mk $(find pipelines -name '*.mk')"
# shellcheck disable=SC2086  # names of files
{
    sed -n 's/^  \([A-Za-z_]*\)=.*/\1/p' "$scratch/settings"
    grep -oh '$([A-Z][A-Z_]\+)' $makefiles | tr -d '$()' | sort -u | while read -r name; do
        grep -qE "(^|[ :])$name *[:?+]?=" $makefiles || echo "$name"
    done
} | grep -vx -e CURDIR -e MAKE -e MAKECMDGOALS -e V -e T | sort -u | comm -23 - "$scratch/checked" \
    >"$scratch/unchecked"
[ ! -s "$scratch/unchecked" ]
ok $? "make checks all variables that it takes from the environment"
sed 's/^/# /' "$scratch/unchecked"

printf '%s\n' 'include Makefile' 'define feed' '' '' endef \
    '$(info $(if $(call same,a b,a b$(feed)),same) $(if $(call same,a b,a),same,other))' \
    >"$scratch/same.mk"
make -n -f "$scratch/same.mk" help | grep -qx "same other"
ok $? "a stamp whose line feed make keeps is not written again"

mkdir "$scratch/tree"
cp -r Makefile config.mk pipelines lib kernels tools tests plots "$scratch/tree"
ln -s "$PWD/data" "$scratch/tree"
cd "$scratch/tree" || exit 1
# A shell that notes each start.
printf '#!/bin/sh\necho >>%s/shells\nexec /bin/bash "$@"\n' "$scratch" >"$scratch/shell"
chmod +x "$scratch/shell"
look()
{
    : >"$scratch/shells"
    env -i PATH="$PATH" make --no-print-directory CUDA=0 SHELL="$scratch/shell" "$@" \
        >"$scratch/log" 2>&1
    status=$?
    shells=$(wc -l <"$scratch/shells")
    echo "# make $*: $shells shells"
}
find . | sort >"$scratch/before"
for words in help settings plan '-n phase4' '-n all' '-n report PAGE=decoding,ablation' \
    '-n peer URL=http://localhost/v1' \
    '-n figures' '-n ablation' '-n shapes PROFILE=cpu-8b'; do
    # shellcheck disable=SC2086
    look $words
    find . | sort | diff "$scratch/before" - >"$scratch/diff"
    changed=$?
    [ $status -eq 0 ] && [ $changed -eq 0 ]
    ok $? "make $words compiles and writes nothing"
    sed -n '1,5s/^/# /p' "$scratch/diff"
    [ $status -eq 0 ] || tail -n 3 "$scratch/log" | sed 's/^/# /'
done
look -n phase4
[ "$shells" -gt 0 ] && [ "$shells" -lt 40 ]
ok $? "make -n phase4 of a fresh clone starts fewer than 40 shells"
look figures
[ $status -ne 0 ] && grep -q 'no records in .*: make phase4 phase5' "$scratch/log" &&
    find . ! -name .build.tmp | sort | cmp -s "$scratch/before" -
ok $? "make figures without a run says so and builds nothing"
finish
