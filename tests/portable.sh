# portable.sh - tests that no shipped file names folders of one machine or holds a secret.
. tests/house/tap.sh

clean "no path of a developer's machine, no secret" tests/house/portable .

w=work r=root h=home t=tmp
plant lib/good.c <<END
static char path[] = "/tmp/thing-XXXXXX";
/* /$t is where \$HOME/$w goes; a/$r/b, "$w/x", https://example.org/$w/page */
END
plant sub/good.mk <<<'results/$(FP)/tmp/x'
clean "ordinary text passes" tests/house/portable "$scratch"
printf 'x = "/%s/main/a"\n' "$w" | plant one.c
printf 'cd /%s && make\n' "$r" | plant two.sh
printf 'at /%s/anna/models\n' "$h" | plant three.md
printf 'open("/%s/mine.txt")\n' "$t" | plant four.c
printf -- '-----BEGIN RSA PRIVATE %s-----\n' KEY | plant five.txt
printf 'token=hf_%s\n' AbCdEfGhIjKlMnOpQrStUvWxYz0123456789 | plant six.txt
for fault in one.c two.sh three.md four.c five.txt six.txt; do
    caught "^$fault:1:" "planted: $fault" tests/house/portable "$scratch"
done

# The Dockerfile: its lines are checked one by one, as far as this is possible without an engine.
bases=$(sed -n 's/^ARG [A-Z_]*BASE=//p; s/^#.*--build-arg [A-Z_]*BASE=\([^ ]*\).*/\1/p' Dockerfile)
! grep -vE '^(\$BASE|.*:.*[0-9]{8}.*|.*:[0-9]+\.[0-9]+\.[0-9]+-.*)$' <<<"$bases" && [ -n "$bases" ]
ok $? "the Dockerfile is built on dated images and packages of that day"
tests/house/container . --lines 2>/dev/null
ok $? "each line of the Dockerfile is one that its check in a chroot carries out"
plant box/Dockerfile <<<$'ARG BASE=debian\nFROM $BASE\nUSER nobody\nENTRYPOINT ["make"]'
caught 'USER: no line' "planted: a line that it does not know" tests/house/container \
    "$scratch/box" --lines
what="the Dockerfile builds in a chroot, and every tool runs there"
if [ -n "${CONTAINER-}" ]; then
    said=$(tests/house/container . ${CONTAINER_BASE:+"$CONTAINER_BASE"} 2>&1)
    status=$?
    case $status in
    77) skip "$what" "$(tail -n 1 <<<"$said")" ;;
    *) ok $status "$what"; [ $status -eq 0 ] || tail -n 30 <<<"$said" | sed 's/^/# /' ;;
    esac
else
    skip "$what" "takes minutes, root and a mirror: make container-check"
fi
missing=$(sed -n 's/^RUN \([^ ]*\).*/\1/p; s/.*&& \(\.\/[a-z]*\) .*/\1/p' Dockerfile |
    while read -r program; do [ -x "$program" ] || echo "$program"; done)
[ -z "$missing" ]
ok $? "programs that the Dockerfile runs exist and are executable"
mkdir -p "$scratch"/etc/{sources.list.d,apt.conf.d}
list=$scratch/etc/sources.list.d/debian.sources
plant etc/sources.list.d/debian.sources <<'END'
Types: deb
# http://snapshot.debian.org/archive/debian/20250520T000000Z
URIs: http://deb.debian.org/debian
Suites: bookworm
END
cp "$list" "$scratch/before"
pipelines/bin/snapshot "" "$scratch/etc" && cmp -s "$list" "$scratch/before" &&
    pipelines/bin/snapshot 1 "$scratch/etc" && [ "$(grep -c '^URIs: ' "$list")" -eq 1 ] &&
    grep -qx 'URIs: http://snapshot.debian.org/archive/debian/20250520T000000Z' "$list" &&
    grep -q Check-Valid-Until "$scratch/etc/apt.conf.d/snapshot" &&
    cp "$list" "$scratch/before" && pipelines/bin/snapshot 1 "$scratch/etc" &&
    cmp -s "$list" "$scratch/before" && pipelines/bin/snapshot 1 "$scratch/none"
ok $? "packages come from the archive of the image's day, once; elsewhere nothing is done"
mkdir "$scratch/bin"
for t in bash sed cat dirname uname printf env; do ln -s "$(type -P $t)" "$scratch/bin/$t"; done
ln -s "$(type -P true)" "$scratch/bin/apt-get"
said=$(PATH=$scratch/bin "$(type -P sh)" ./bootstrap --check 2>&1)
status=$?
unnamed=$(for p in gcc g++ make pkg-config libjansson-dev libarchive-dev gnuplot-nox jq bats; do
    case " $said " in *" $p "*) ;; *) echo "$p" ;; esac
done)
[ $status -eq 1 ] && [ -z "$unnamed" ]
ok $? "bootstrap --check names every missing package"
for t in make gcc; do
    printf '#!/bin/sh\necho ran >>%s\n' "$scratch/ran" >"$scratch/bin/$t"
    chmod +x "$scratch/bin/$t"
done
said=$(PATH=$scratch/bin "$(type -P sh)" ./bootstrap --help 2>&1)
[ $? -eq 0 ] && [[ $said == *"Usage: ./bootstrap"*--check* ]] && [ ! -e "$scratch/ran" ]
ok $? "bootstrap --help prints the usage and runs nothing"
said=$(PATH=$scratch/bin "$(type -P sh)" ./bootstrap --chekc 2>&1)
[ $? -eq 64 ] && [[ $said == *"unknown option '--chekc'"* ]] && [ ! -e "$scratch/ran" ]
ok $? "bootstrap exits with 64 on an unknown option"

# dist FOLDER ARCHIVE: make dist writes only the archive, so another make may work in the folder
dist()
{
    env -u MAKEFLAGS CROSSOVER_HELD="$1" make -s -C "$1" CUDA=0 dist DIST="$2"
}
what=("a clone without the history gives the same archive a second later, byte by byte"
    "the archive alone is enough for make, and names its commit")
if git rev-parse --git-dir >"$scratch/said" 2>&1; then
    dist "$PWD" "$scratch/one.tar.gz" && sleep 1 &&
        git clone -q --depth 1 "file://$PWD" "$scratch/clone" &&
        (umask 077 && TZ=Asia/Tokyo dist "$scratch/clone" "$scratch/two.tar.gz") &&
        cmp "$scratch"/{one,two}.tar.gz
    ok $? "${what[0]}"
    mkdir "$scratch/empty"
    tar xzf "$scratch/one.tar.gz" -C "$scratch/empty"
    alone() { env -u MAKEFLAGS -u CROSSOVER_HELD GIT_CEILING_DIRECTORIES="$scratch" \
        make -s -C "$scratch"/empty/crossover-* CUDA=0 "$@"; }
    alone -n tools >"$scratch/said" 2>&1 && grep -q 'bin/gen-llada' "$scratch/said" &&
        [ "$(alone print-COMMIT)" = "$(git rev-parse HEAD | cut -c 1-12)" ]
    ok $? "${what[1]}"
else
    for w in "${what[@]}"; do skip "$w" "no clone"; done
fi
finish
