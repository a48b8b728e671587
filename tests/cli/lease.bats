#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# The package of make lease: programs with their libraries, and the script that runs its parts on
# the machine with a GPU, here on the emulated device.

setup() {
    set -o pipefail
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    BIN=$(realpath "${BIN:-build/bin}") T=$BATS_TEST_TMPDIR
    OBJECT=$(realpath "${TESTBIN:-build/tests}/libcrossover-cuda.so")
    [ -e "$OBJECT" ] || skip "no C++ compiler, so no emulated device"
    TREE=$T/tree LEASE=$T/tree/build/lease
    mkdir -p "$TREE"/{pipelines/bin,results/m/p} "$LEASE"
    cp pipelines/bin/lease "$TREE/pipelines/bin"
    echo '{"id":"p","prompt_ids":[5,6,7]}' > "$TREE/results/m/p/shape-prompts-1.ndjson"
    printf '{"id":"p%d","prompt_ids":[5,6,7]}\n' {1..16} > \
        "$TREE/results/m/p/shape-prompts-16.ndjson"
    # CROSSOVER_CUDA names the emulated device; the object of a card is found beside the tools
    export CROSSOVER_CUDA=$LEASE/bin/libcrossover-cuda.so
    pipelines/bin/pack-lease "$LEASE" "$BIN"/{gen-llama,gen-llada} "$OBJECT" "$(command -v jq)"
}

@test "packed programs find their libraries, and read no archive" {
    run env -i LD_LIBRARY_PATH="$LEASE/lib" ldd "$LEASE/bin/gen-llama"
    [[ $output == *"libarchive.so.13 => $LEASE/lib"* ]]
    [[ $output == *"libjansson.so.4 => $LEASE/lib"* ]]
    [[ $output != *"not found"* && $output != *libxml2* ]]
    env -i LD_LIBRARY_PATH="$LEASE/lib" CROSSOVER_CUDA="$CROSSOVER_CUDA" \
        "$LEASE/bin/gen-llama" -m synth:tiny-llama --device cuda --max-new 2 --no-meta -q \
        "$TREE/results/m/p/shape-prompts-1.ndjson" |
        "$LEASE/bin/jq" -se 'map(select(.kind == "generation")) |
            length == 1 and .[0].device_name == "emulated device (host)"'
}

@test "parts run with their limits; status, log and results of each are kept" {
    export OUT=$T/out LLADA=synth:tiny-llada LLAMA=synth:tiny-llama LENGTH=4 STEPS=2
    cd "$TREE"
    printf '%s\n' 'echo r/shape-none-16/' 'echo r/shape-none-1/' 'exit 3 # r/shape-none-8-512/' \
        > "$LEASE/launches"
    # ncu is on no machine of these tests
    run -0 pipelines/bin/lease turns:120 shapes:20 batches:20 profile:20
    [ "$(cut -d ' ' -f 1,2 "$OUT/parts" | paste -sd ,)" = \
        "turns 0,shapes 0,batches 0,profile 77" ]
    grep -q 'shapes: status 3: exit 3' "$OUT/shapes.log"
    [ "$(cat "$OUT"/{shapes,batches}.log | grep -v status)" = $'r/shape-none-1/\nr/shape-none-16/' ]
    for system in llada llama; do
        jq -se 'map(select(.kind == "generation" and .phase == "timed")) | length == 5' \
            "$OUT/turns/$system-0.ndjson"
    done
    tar -tzf "$OUT/lease-out.tar.gz" ./turns/llama-2.ndjson
}

@test "without names the parts fit into 15 minutes; others run when they are named" {
    pipelines/bin/lease -n > "$T/usual"
    [ "$(cut -d ' ' -f 1 "$T/usual" | paste -sd ,)" = "check,same,vector,bench,profile,shapes" ]
    awk '{ n += $2 } END { exit !(n > 600 && n <= 900) }' "$T/usual"
    [ "$(pipelines/bin/lease -n racecheck formats:5)" = $'racecheck 120\nformats 5' ]
    # the comment at the top lists every part, and no others
    [ "$(sed -n '/^part_/s/part_\([a-z]*\)().*/\1/p' pipelines/bin/lease | sort)" = "$(sed -n \
        '2,/^set/{s/, / /g;s/^#   \([a-z][a-z ]*[a-z]\)\(   *[a-z].*\)$/\1/p}' \
        pipelines/bin/lease | tr ' ' '\n' | sort)" ]
}

@test "parts of generations run all their points, each format and batch in a process" {
    export OUT=$T/out LLADA=synth:tiny-llada LLAMA=synth:tiny-llama LENGTH=4 STEPS=16
    export BATCH=1,2 FORMATS='int8 fp8' LENGTHS=8,16 CAPS=33M
    cd "$TREE"
    run -0 pipelines/bin/lease vector formats lengths caches caps
    cat "$OUT"/*.log "$OUT/parts" >&2
    [ "$(cut -d ' ' -f 1,2 "$OUT/parts" | paste -sd ,)" = \
        "vector 0,formats 0,lengths 0,caches 0,caps 0" ]
    points() { # TEXT FILES: the different texts of the timed records
        jq -sr "map(select(.kind == \"generation\" and .phase == \"timed\" and .status == \"ok\") |
            \"$1\") | unique | join(\",\")" "$OUT"/$2
    }
    [ "$(points '\(.quant)' 'vector-*')" = int8,int8-vector ]
    [ "$(points '\(.quant) \(.batch)' 'formats-*-llada-*')" = \
        "fp8 1,fp8 2,int8 1,int8 2" ]
    [ "$(points '\(.gen_length) \(.steps) \(.batch)' 'lengths-llada-*')" = \
        "16 2 1,16 2 2,16 4 1,16 4 2,8 2 1,8 2 2,8 4 1,8 4 2" ]
    [ "$(points '\(.cache) \(.gen_length)' 'caches-*' | tr , '\n' | wc -l)" -eq 14 ]
    [ "$(points '\(.model)' 'caps-33M-*')" = synth:tiny-llada,synth:tiny-llama ]

    sed -i '/"kind":"end"/d' "$OUT/lengths-llama-2.ndjson" # as if the limit had ended it
    tar -czf "$T/out.tar.gz" -C "$OUT" .
    cd "$BATS_TEST_DIRNAME/../.."
    make --no-print-directory BIN="$BIN" BUILD="$(dirname "$BIN")" CUDA=0 LEASE="$T/merge" \
        LEASE_OUT="$T/out.tar.gz" CARD=test MEASURED="$T/measured/x" lease-merge
    [ "$(ls "$T/measured" | paste -sd ' ')" = \
        "$(printf 'gpu-%s-test.ndjson\n' caches formats lengths vector | paste -sd ' ')" ]
    jq -se 'map(select(.metric == "e2e_ns" and .value > 0)) |
        (map(.cache) | unique | length) == 7 and length == 14' "$T/measured/gpu-caches-test.ndjson"
    jq -se 'map(select(.metric == "e2e_ns") | [.gen_length // .max_new, .batch, .steps]) | unique |
        length == 10' "$T/measured/gpu-lengths-test.ndjson"
    jq -se '[.[] | select(.metric == "memory_reserved_peak_bytes").value] | length > 0 and
        all(. > 0)' "$T/measured/gpu-formats-test.ndjson"
}

@test "a rehearsal: real launches, bench and merge, with the files and programs of the package" {
    local tool make=(make --no-print-directory BIN="$BIN" BUILD="$(dirname "$BIN")" CUDA=0
        PROFILE=gpu-8b LLADA=synth:tiny-llada LLAMA=synth:tiny-llama SHAPE_BATCH=1
        SHAPE_STEPS=1,2,4 SHAPE_TO=8 LAUNCHES=2 SHAPE_PROMPT=16 SHAPE_LENGTH=8)
    local R=$TREE/results/m/gpu-8b
    cp "${TESTBIN:-build/tests}/bench/bench" "$LEASE/bin" # it needs no other library
    cp pipelines/bin/side-by-side "$TREE/pipelines/bin"
    "${make[@]}" RESULTS="$TREE/results/m" "$R"/shape-{none-1/launches.mk,prompts-1.ndjson}
    "${make[@]}" RESULTS="$TREE/results/m" -n shapes | grep -o 'pipelines/bin/side-by-side .*' |
        sed "s|$BIN/|build/lease/bin/|g; s|$TREE/||g" > "$LEASE/launches"
    [ "$(wc -l < "$LEASE/launches")" -eq 2 ]
    mkdir "$T"/{bare,there}
    for tool in bash sh env cat cp mv rm mkdir ls head tail tee wc sort paste cut tr date \
        dirname basename timeout uname tar gzip xz grep sed awk; do
        ln -s "$(command -v "$tool")" "$T/bare/$tool"
    done
    tar -C "$TREE" -cf - build pipelines results | tar -C "$T/there" -xf -
    mv "$TREE" "$T/gone"
    rm -r "$T/there/results/m/p" # the prompts of the other tests
    cd "$T/there"
    CROSSOVER_CUDA=$PWD/build/lease/bin/libcrossover-cuda.so OUT=$T/out PAIR=tiny \
        LENGTH=4 FORMATS=fp8 BENCH_FLAGS='--repeat 1 --point 0.003' \
        LLADA=synth:tiny-llada LLAMA=synth:tiny-llama PATH=$T/bare HOME=$T \
        run pipelines/bin/lease vector:300 bench:300 shapes:300
    cat "$T"/out/*.log "$T/out/parts" >&2
    [ "$(cut -d ' ' -f 1,2 "$T/out/parts" | paste -sd ,)" = "vector 0,bench 0,shapes 0" ]
    cd "$BATS_TEST_DIRNAME/../.."
    "${make[@]}" LEASE="$T/merge" LEASE_OUT="$T/out/lease-out.tar.gz" CARD=test \
        MEASURED="$T/measured/x" lease-merge
    [ "$(ls "$T/measured" | paste -sd ' ')" = \
        "gpu-8b-test.ndjson gpu-bench-test.ndjson gpu-vector-test.ndjson" ]
    # a time may be missing where this machine was disturbed; the memory is there in any case
    jq -se 'map(select(.metric == "memory_requested_peak_bytes" and .value > 0) |
        "\(.model) \(.steps)") | sort == ["synth:tiny-llada 1", "synth:tiny-llada 2",
        "synth:tiny-llada 4", "synth:tiny-llama null"]' "$T/measured/gpu-8b-test.ndjson"
    ! grep -q "$T" "$T"/measured/*
}

@test "a batch takes its prompts from the file with most prompts, and is refused without them" {
    export OUT=$T/out LLADA=synth:tiny-llada LLAMA=synth:tiny-llama LENGTH=4 STEPS=2
    export BATCH=2,17 FORMATS=int8
    mkdir -p "$TREE/results/z/q"
    cp "$TREE/results/m/p/shape-prompts-1.ndjson" "$TREE/results/z/q"
    cd "$TREE"
    run -0 pipelines/bin/lease formats
    cat "$OUT/formats.log" >&2
    grep -q '^formats 66 ' "$OUT/parts"
    grep -q 'expected 17 prompts, got fewer in the largest file, .*/m/p/shape-prompts-16' \
        "$OUT/formats.log"
    [ "$(wc -l < "$OUT/prompts-2")" -eq 2 ]
    [ -s "$OUT/formats-int8-llama-2.ndjson" ]
    [ ! -e "$OUT/formats-int8-llama-17.ndjson" ]
}

@test "lease -n writes nothing; an unknown part is refused before any part runs" {
    export OUT=$T/out
    rm -r "$TREE/results"
    cd "$TREE"
    run -0 --separate-stderr pipelines/bin/lease -n vector
    [ "$output$stderr" = 'vector 30' ]
    run -64 pipelines/bin/lease profile vectr:20
    [[ $output == "lease: expected one of check "*" vector "*", got vectr" ]]
    [ ! -e "$OUT" ]
}

@test "a merge leaves out cut lines only; a part that it cannot store is named and keeps its file" {
    mkdir -p "$T/out" "$T/measured"
    merge() {
        tar -czf "$T/out.tar.gz" -C "$T/out" .
        run --separate-stderr pipelines/bin/merge-lease "$T/out.tar.gz" card "$T/work" \
            "$T/measured" 16
    }
    printf '%s\n' '{"kind":"check","n":1}' '{"kind":"chec' > "$T/out/check-a.ndjson"
    truncate -s -1 "$T/out/check-a.ndjson"
    echo '{"kind":"check","n":2}' > "$T/out/check-b.ndjson"
    echo '{"kind":"roofline","n":3}' > "$T/out/bench-a.ndjson"
    export BIN
    merge
    [ "$status" -eq 0 ]
    [ "$stderr" = 'lease-merge: check-a.ndjson: its last line is incomplete and is left out' ]
    [ "$(jq -s 'map(.n) | add' "$T/measured/gpu-check-card.ndjson")" -eq 3 ]

    mkdir -p "$T/out/shapes/shape-none-1/launch"
    echo '{"kind":"generation"}' > "$T/out/shapes/shape-none-1/launch/llada-00.ndjson"
    printf '%s\n' '{"n":' '{"n":4}' > "$T/out/bench-a.ndjson"
    echo 'vector 124 30' > "$T/out/parts"
    echo old > "$T/measured/gpu-8b-card.ndjson"
    merge
    [ "$status" -eq 65 ]
    for why in 'bench-a.ndjson is broken' 'part bench is not stored' \
        'part vector is not stored: no generation' 'part 8b is not stored: it needs the limits'; do
        [[ $stderr == *"lease-merge: $why"* ]]
    done
    [ "$(jq .n "$T/measured/gpu-bench-card.ndjson")" -eq 3 ]
    [ "$(cat "$T/measured/gpu-8b-card.ndjson")" = old ]
    [ "$(ls "$T/measured" | wc -l)" -eq 3 ]
}

@test "the tests run first, also under synccheck; other tools are parts of their own" {
    export OUT=$T/out PROMPTS=$TREE/results/m/p/shape-prompts-1.ndjson
    mkdir -p "$TREE/tests/gpu" "$LEASE/gpu"
    cp tests/gpu/{check,models.sh} "$TREE/tests/gpu"
    printf '%s\n' '#!/bin/sh' 'echo ok 1 - it; echo 1..1' > "$LEASE/gpu/test-one"
    printf '%s\n' '#!/bin/sh' '[ "$2" != racecheck ] || exit 9' \
        'while [ "${1#/}" = "$1" ]; do shift; done' 'exec "$@"' > "$LEASE/bin/compute-sanitizer"
    chmod +x "$LEASE/gpu/test-one" "$LEASE/bin/compute-sanitizer"
    cd "$TREE"
    run -0 pipelines/bin/lease check initcheck racecheck
    cat "$OUT"/*.log >&2
    [ "$(cut -d ' ' -f 1,2 "$OUT/parts" | paste -sd ,)" = "check 0,initcheck 0,racecheck 1" ]
    [ "$(jq -r '"\(.part) \(.text) \(.pass)"' \
        "$OUT"/check-{tests,synccheck,initcheck,racecheck}.ndjson)" = \
"tests test-one: 1 assertions true
sanitize synccheck test-one true
sanitize initcheck test-one true
sanitize racecheck test-one false" ]
}

@test "a part that takes too long is ended, and the next one runs" {
    export OUT=$T/out
    cd "$TREE"
    mkdir -p "$TREE/results/m/p/shape-none-1"
    printf '%s\n' 'touch results/m/p/shape-none-1/done' 'sleep 60 # r/shape-none-8/' > \
        "$LEASE/launches"
    run -0 pipelines/bin/lease shapes:1 profile:20
    [ "$(cut -d ' ' -f 1,2 "$OUT/parts" | paste -sd ,)" = "shapes 124,profile 77" ]
    # what was launched before is in the results
    tar -tzf "$OUT/lease-out.tar.gz" ./shapes/shape-none-1/done
}
