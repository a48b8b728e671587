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
    printf '%s\n' 'echo first' 'exit 3' > "$LEASE/launches"
    # ncu is on no machine of these tests, and part nonsense does not exist
    run -0 pipelines/bin/lease turns:120 shapes:20 profile:20 nonsense:20
    [ "$(cut -d ' ' -f 1,2 "$OUT/parts" | paste -sd ,)" = \
        "turns 0,shapes 0,profile 77,nonsense 127" ]
    grep -q 'shapes: status 3: exit 3' "$OUT/shapes.log"
    for system in llada llama; do
        jq -se 'map(select(.kind == "generation" and .phase == "timed")) | length == 5' \
            "$OUT/turns/$system-0.ndjson"
    done
    tar -tzf "$OUT/lease-out.tar.gz" ./turns/llama-2.ndjson
}

@test "a part that takes too long is ended, and the next one runs" {
    export OUT=$T/out
    cd "$TREE"
    echo 'sleep 60' > "$LEASE/launches"
    run -0 pipelines/bin/lease shapes:1 profile:20
    [ "$(cut -d ' ' -f 1,2 "$OUT/parts" | paste -sd ,)" = "shapes 124,profile 77" ]
}
