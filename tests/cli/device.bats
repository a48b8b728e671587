#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# --device: the chosen back end, where the CUDA library is looked for, messages when it or its
# device is missing, and the records that stay when the device fails (emulated: tests/emulate).

setup() {
    set -o pipefail
    BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
    echo '{"id":"p","prompt_ids":[5,6,7,8,9,10,11]}' > "$T/prompt"
    SHORT=(-m synth:tiny-llama --max-new 2 --ignore-eos --no-meta "$T/prompt")
    unset CROSSOVER_CUDA
}

# refused CODE TEXT COMMAND...: tests that COMMAND ends with CODE, no output, and one line with TEXT
refused() {
    local code=$1 text=$2
    shift 2
    run --separate-stderr "$@"
    [ "$status" -eq "$code" ] && [ -z "$output" ] && [ "${#stderr_lines[@]}" -eq 1 ] &&
        [[ "$stderr" == *"$text"* ]]
}

@test "without the library of the CUDA back end a run ends with 69; auto uses the CPU" {
    mkdir "$T/bin"
    cp "$BIN/gen-llama" "$T/bin/"
    refused 69 "gen-llama: --device cuda: this build has no CUDA back end" \
        "$T/bin/gen-llama" --device cuda "${SHORT[@]}"
    refused 69 "gen-llama: --device cuda:3: " "$T/bin/gen-llama" --device cuda:3 "${SHORT[@]}"
    run --separate-stderr "$T/bin/gen-llama" "${SHORT[@]}"
    [ "$status" -eq 0 ]
    [ "$(jq -r .device <<< "$output")" = cpu ]
    [ -z "$stderr" ]
}

@test "the CUDA library is found beside the program, and after install in lib/crossover" {
    mkdir -p "$T/bin" "$T/lib/crossover" "$T/driver"
    ${CC:-cc} -shared -fPIC -o "$T/driver/libcuda.so.1" tests/fixtures/preload/cuda.c ||
        skip "no compiler"
    export LD_LIBRARY_PATH=$T/driver
    cp "$BIN/gen-llama" "$T/bin/"
    echo nothing > "$T/lib/crossover/libcrossover-cuda.so"
    refused 69 "/lib/crossover/libcrossover-cuda.so: " \
        "$T/bin/gen-llama" --device cuda "${SHORT[@]}"
    echo nothing > "$T/bin/libcrossover-cuda.so"
    refused 69 "$T/bin/libcrossover-cuda.so: " "$T/bin/gen-llama" --device cuda "${SHORT[@]}"
    run --separate-stderr "$T/bin/gen-llama" "${SHORT[@]}"
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
}

@test "without a driver the CUDA library is not loaded: none of its constructors runs" {
    mkdir -p "$T/bin" "$T/driver"
    echo nothing > "$T/driver/libcuda.so.1" # found before one that may be here, and no library
    cat > "$T/loud.c" << 'END'
#include <unistd.h>
__attribute__((constructor)) static void start(void) { (void)!write(2, "loaded", 6); }
END
    ${CC:-cc} -shared -fPIC -o "$T/bin/libcrossover-cuda.so" "$T/loud.c" || skip "no compiler"
    cp "$BIN/gen-llama" "$T/bin/"
    export LD_LIBRARY_PATH=$T/driver
    refused 69 "--device cuda: no NVIDIA driver is installed" \
        "$T/bin/gen-llama" --device cuda "${SHORT[@]}"
    run --separate-stderr "$T/bin/gen-llama" "${SHORT[@]}"
    [ "$status" -eq 0 ] && [ "$(jq -r .device <<< "$output")" = cpu ] && [ -z "$stderr" ]
    # a library that is named is loaded
    run --separate-stderr env CROSSOVER_CUDA="$T/bin/libcrossover-cuda.so" \
        "$T/bin/gen-llama" --device cuda "${SHORT[@]}"
    [ "$status" -eq 69 ] && [[ $stderr == loaded* ]]
}

@test "CROSSOVER_CUDA names the CUDA library" {
    export CROSSOVER_CUDA="$T/none.so"
    refused 69 "--device cuda: $T/none.so: " "$BIN/gen-llama" --device cuda "${SHORT[@]}"
    export CROSSOVER_CUDA=libm.so.6
    refused 69 "crossover_cuda_open" "$BIN/gen-llama" --device cuda "${SHORT[@]}"
    run --separate-stderr "$BIN/gen-llama" --device auto "${SHORT[@]}"
    [ "$status" -eq 0 ]
    [ "$(jq -r .device <<< "$output")" = cpu ]
    [ -z "$stderr" ]
}

@test "an impossible device is bad usage; instruction sets belong to the CPU" {
    for name in cuda: cuda:x cuda:-1 cuda:1x cuda1 gpu ''; do
        refused 64 "--device: expected auto, ref, cpu or cuda[:N], got '$name'" \
            "$BIN/gen-llama" --device "$name" "${SHORT[@]}"
    done
    refused 64 "cuda:99999999999" "$BIN/gen-llama" --device cuda:99999999999 "${SHORT[@]}"
    refused 69 "got --device cuda" "$BIN/gen-llama" --device cuda --isa portable "${SHORT[@]}"
}

emulated() {
    export CROSSOVER_CUDA="${TESTBIN:-build/tests}/libcrossover-cuda.so"
    [ -e "$CROSSOVER_CUDA" ] || skip "no C++ compiler, so no emulated device"
}

@test "a usable device runs each --device that names it, and auto prefers it" {
    emulated
    ref=$("$BIN/gen-llama" --device ref --dtype f32 "${SHORT[@]}" | jq -c .token_ids)
    for name in auto cuda cuda:0; do
        run --separate-stderr "$BIN/gen-llama" --device "$name" --dtype f32 "${SHORT[@]}"
        [ "$status" -eq 0 ]
        [ -z "$stderr" ]
        [ "$(jq -r .device <<< "$output")" = cuda ]
        [ "$(jq -c .token_ids <<< "$output")" = "$ref" ]
    done
}

@test "no device, driver or code, or an old driver, is 69 with advice; auto uses the CPU" {
    emulated
    absent() { # TEXT NAME=VALUE
        refused 69 "--device cuda: $1" env "$2" "$BIN/gen-llama" --device cuda "${SHORT[@]}"
        run --separate-stderr env "$2" "$BIN/gen-llama" "${SHORT[@]}"
        [ "$status" -eq 0 ] && [ -z "$stderr" ] && [ "$(jq -r .device <<< "$output")" = cpu ]
    }
    absent "there is an NVIDIA driver but no CUDA device" EMULATE_DEVICES=0
    absent "no NVIDIA driver is installed" EMULATE_DRIVER=0
    absent "the NVIDIA driver is for CUDA 11.4, this build needs" EMULATE_DRIVER=11040
    absent "this build has no code for CUDA device 0" EMULATE_CAPABILITY=7.5
    refused 69 "--device cuda:1: there is no CUDA device 1" \
        "$BIN/gen-llama" --device cuda:1 "${SHORT[@]}"
}

@test "a device that fails ends the run with 70 and one line; whole records stay" {
    emulated
    seq 12 | sed 's/.*/{"id":"p&","prompt_ids":[5,6,7,8,9,10,11]}/' > "$T/prompts"
    for call in 40 300 500; do
        run --separate-stderr env EMULATE_FAIL=$call:719 "$BIN/gen-llama" --device cuda \
            -m synth:tiny-llama --max-new 4 --ignore-eos --no-meta "$T/prompts"
        [ "$status" -eq 70 ]
        [ "${#stderr_lines[@]}" -eq 1 ]
        [[ "$stderr" == *"kernels/cuda/"*"(719)"*"a restart may help"* ]]
        records=$(jq -c 'select(.kind == "generation" and .status == "ok").id' <<< "$output")
    done
    [ "$(head -n 1 <<< "$records")" = '"p1"' ] # of the last try: there was time for some
}

@test "CROSSOVER_WATCHDOG_S: it sets the seconds to wait for a device, or is bad usage" {
    emulated
    for device in cuda auto; do
        for seconds in x -1 1.5 ''; do
            refused 64 "CROSSOVER_WATCHDOG_S: expected seconds (0: never), got '$seconds'" \
                env CROSSOVER_WATCHDOG_S="$seconds" "$BIN/gen-llama" --device $device "${SHORT[@]}"
        done
    done
    for seconds in 0 600; do
        run --separate-stderr env CROSSOVER_WATCHDOG_S=$seconds "$BIN/gen-llama" --device cuda \
            "${SHORT[@]}"
        [ "$status" -eq 0 ]
        [ -z "$stderr" ]
    done
}
