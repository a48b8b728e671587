#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Tests readings of a GPU's driver while batches run on the emulated device (tests/emulate). A
# stand-in for the driver's library (tests/fixtures/preload/nvml.c) is busy while this process is
# busy.
load conforms

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    . tests/reference/build.sh
    F=$BATS_FILE_TMPDIR
    "$MAKE_CHECKPOINT" --dtype BF16 --width 64 --heads 2 --ffn 128 "$F/llama"
    cat > "$F/prompts" << 'END'
{"id":"p1","prompt_ids":[72,5]}
{"id":"p2","prompt_ids":[84,104,101,32,102,111,120]}
{"id":"p3","prompt_ids":[255,0,17,34,51,68,85,102,119]}
{"id":"p4","prompt_ids":[9,8,7,6,5,250,240,230,220,210,200]}
END
    mkdir "$F/driver"
    ${CC:-cc} -shared -fPIC -o "$F/driver/libnvidia-ml.so.1" tests/fixtures/preload/nvml.c ||
        rmdir "$F/driver"
}

setup() {
    set -o pipefail
    export BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR F=$BATS_FILE_TMPDIR
    export CROSSOVER_CUDA="${TESTBIN:-build/tests}/libcrossover-cuda.so"
    [ -e "$CROSSOVER_CUDA" ] || skip "no C++ compiler, so no emulated device"
    [ -d "$F/driver" ] || skip "no compiler"
    GEN=("$BIN/gen-llama" -m "$F/llama" --device cuda --ignore-eos --no-meta)
}

# NAME=VALUE... -- FLAGS...: runs with the driver's library. $T/all: its records; $T/out: the
# generation records; $T/err: the messages.
driver() {
    local said=()
    while [ "${1---}" != -- ]; do said+=("$1"); shift; done
    env LD_LIBRARY_PATH="$F/driver" "${said[@]}" "${GEN[@]}" --max-new 16 --idle-ms 160 "${@:2}" \
        "$F/prompts" > "$T/all" 2> "$T/err"
    conforms "$T/all"
    # disturbances of the host of this test do not belong to the card
    jq -c 'if .tainted then .tainted -= ["cpu_pressure", "cpu_stolen", "other_load", "preempted",
        "cpu_thermal"] else . end' "$T/all" > "$T/card"
    mv "$T/card" "$T/all"
    jq -c 'select(.kind == "generation")' "$T/all" > "$T/out"
}

all() { # FILTER: true of every generation
    jq -se "length > 0 and all($1)" "$T/out"
}

@test "readings of the driver for a batch were taken while it ran" {
    driver
    [ "$(wc -l < "$T/out")" -eq 4 ]
    all '.tainted == [] and .batch_ns as $ns | .gpu | .samples > 0 and .samples <= $ns / 2e7 + 1 and
        .sm_min_mhz == 1980 and .sm_max_mhz == 1980 and .sm_mean_mhz == 1980 and
        .memory_min_mhz == 3201 and .temperature_max_c == 55 and
        .power_mean_w > 112.5 and .power_mean_w < 612.6 and
        (.power_integral_j / .power_mean_w * 1e9 - $ns | fabs) < 1e3 and
        .clock_reasons == 0 and .power_capped_samples == 0'
    all '.gpu | .energy_begin_j > 1000 and .energy_end_j > .energy_begin_j and
        .foreign_processes == 0 and .ecc_errors == 0 and .driver_reserved_bytes == 33554432 and
        .used_peak_bytes == 536870912'
    all '.memory | .device_peak_bytes == 536870912 and .process_peak_bytes == 123456789 and
        .layers_hold'
    # from batch to batch the energy only grows
    jq -se '[.[] | .gpu.energy_begin_j, .gpu.energy_end_j] | . == sort' "$T/out"
}

@test "if a card slows in one batch, only this batch is marked" {
    # the cold batch: before others the card is busy with what they prepare
    driver NVML_BURST=2 NVML_REASONS=0x44 -- --warmup 1
    jq -se '(.[0] | .tainted == ["hw_thermal"] and .memory.device_peak_bytes == 537919488 and
        (.gpu | .clock_reasons == 68 and .sm_min_mhz == 1500 and .sm_max_mhz == 1980 and
         .sm_mean_mhz > 1500 and .sm_mean_mhz < 1980 and .power_capped_samples == 1)) and
        (.[1:] | length == 4 and all(.tainted == [] and .gpu.clock_reasons == 0))' "$T/out"
    jq -c 'if .phase == "cold" then .phase = "timed" else . end' "$T/all" |
        "$BIN/measure" --no-meta |
        jq -se 'map(select(.metric == "e2e_ns"))[0] | .tainted == 1 and .timed == 4'
}

@test "a batch shorter than the interval of readings has null with a reason; heat is seen" {
    # looks that take 0.8 s: one before it, one after it
    driver NVML_REASONS=0x40 NVML_SLOW_MS=800 -- --max-new 1 --limit 1 --idle-ms 0
    all '.gpu | .samples == 0 and .clock_reasons == null and .sm_mean_mhz == null and
        .power_mean_w == null and .power_integral_j == null and (.samples_reason | length) > 0'
    all '.tainted == ["hw_thermal"]'
}

@test "joules are those of the batch, and null if the counter has hardly ticked" {
    driver NVML_TICK_MS=5 -- --max-new 320 --batch 4
    all '.batch_ns as $ns | .gpu | .energy_ticks >= 100 and
        (.energy_j - .energy_end_j + .energy_begin_j | fabs) < 1e-6 and
        (.energy_j / .power_integral_j - 1 | fabs) < 0.05 and
        .energy_j / ($ns * 1e-9) > 112.5 and .energy_j / ($ns * 1e-9) < 620'
    jq -se 'map(select(.kind == "idle")) | map(.when) == ["before", "after"] and
        all(.power_w > 50 and .power_w < 400 and .window_ns >= 16e7 and
            .method == "energy counter")' "$T/all"
    driver NVML_TICK_MS=300 -- --max-new 240 --limit 1
    all '.gpu | .energy_j == null and .energy_ticks > 0 and .energy_ticks < 100 and
        .energy_j_reason == "\(.energy_ticks) ticks of the counter: expected 100"'
    "$BIN/measure" --no-meta "$T/all" | jq -se '
        map(select(.metric // "" | test("energy|power_mean"))) | length == 4 and
        all(.value == null and (.value_reason | type) == "string")'
}

@test "idle power is measured for the given time" {
    driver -- --idle-ms 0 --limit 1
    run ! grep '"kind":"idle"' "$T/all"
    [ -s "$T/out" ]
    driver NVML_LACKS=Init --
    run ! grep '"kind":"idle"' "$T/all"
    [ -s "$T/out" ]
}

@test "a process that seems to hold less memory than its allocator gives a warning" {
    driver NVML_PROCESS_BYTES=1000
    [ "$(grep -c W102 "$T/err")" -eq 4 ]
    all '.memory | .layers_hold == false and .process_peak_bytes == 1000'
    run "$BIN/measure" --verify --no-meta "$T/out"
    [ "$status" -eq 65 ]
    driver NVML_HOST=1
    run ! grep W102 "$T/err"
    all '.memory | .layers_hold == null and (.layers_hold_reason | length) > 0'
}

@test "the GPUs and the driver have names, even without the driver's folder in /proc" {
    [ ! -d /proc/driver/nvidia/gpus ] || skip "a driver is here"
    machine() { # FIELD NAME=VALUE...
        env LD_LIBRARY_PATH="$F/driver" "${@:2}" "$BIN/gen-llama" -m "$F/llama" --device cpu \
            --max-new 1 -q "$F/prompts" | jq -c "select(.kind == \"meta\").machine.$1"
    }
    [ "$(machine gpu)" = '"Some GPU, Some GPU"' ]
    [ "$(machine gpu NVML_LACKS=Count)" = null ]
    [ "$(machine gpu NVML_LACKS=Name)" = null ]
    [ "$(machine gpu NVML_LACKS=Init)" = null ]
    [ "$(machine driver)" = '"1.2"' ]
    [ "$(machine driver NVML_LACKS=Version)" = null ]
    # another driver is another machine
    [ "$(machine fingerprint)" != "$(machine fingerprint NVML_LACKS=Version)" ]
    [ "$(machine fingerprint)" = "$(machine fingerprint NVML_LACKS=Energy)" ]
}

@test "each figure that the driver does not give is null" {
    lacking() { # FUNCTION FIELDS: null beside energy_j, for which the batches are too short
        driver NVML_LACKS="$1" -- --limit 1
        all ". as \$r | [\$r.gpu | to_entries[] | select(.value == null).key] - [\"energy_j\"] ==
            $2"
    }
    lacking Clock '["sm_min_mhz","sm_mean_mhz","sm_max_mhz","memory_min_mhz"]'
    lacking Power '["power_mean_w","power_integral_j"]'
    lacking Energy '["energy_begin_j","energy_end_j","energy_ticks"]'
    all '.gpu.energy_j_reason == "no energy counter"'
    jq -se 'map(select(.kind == "idle")) | length == 2 and all(.method == "power readings" and
        .power_w > 50)' "$T/all"
    driver NVML_LACKS=Fields -- --limit 1 # before driver 530: means of a second
    all '(.gpu.power_mean_w - 300 | fabs) < 1e-6'
    lacking Temperature '["temperature_max_c"]'
    lacking Reasons '["clock_reasons","power_capped_samples"]'
    lacking Memory '["used_peak_bytes","driver_reserved_bytes"]'
    lacking Memory_v2 '["driver_reserved_bytes"]' # before driver 510: both in one number
    all '.memory.device_peak_bytes == 570425344'
    lacking Processes '["foreign_processes"]'
    all '.memory.process_peak_bytes == null'
    lacking Ecc '["ecc_errors"]'
    driver NVML_LACKS=Init -- --limit 1
    all 'all(.gpu | to_entries[]; .value == null or (.key | endswith("_reason")))'
}

@test "disturbed times are marked and left out" {
    tainted() { # NAMES NAME=VALUE
        driver "$2"
        [ "$(wc -l < "$T/out")" -eq 4 ]
        all ".tainted == $1"
    }
    tainted '["hw_thermal"]' NVML_REASONS=0x40
    "$BIN/measure" --no-meta "$T/all" |
        jq -se 'map(select(.metric == "e2e_ns"))[0] | .tainted == 4 and .disturbed and
            .lo_reason == "the machine was disturbed"'
    tainted '["foreign_process"]' NVML_FOREIGN=1
    all '.gpu.foreign_processes == 1'
    tainted '["foreign_process"]' NVML_FOREIGN=200 # more than there is room for
    tainted '[]' NVML_HOST=1 # in a container this process has another pid, and is no stranger
    all '.gpu.foreign_processes == 0 and .memory.process_peak_bytes == null'
    tainted '["hw_slowdown","sw_thermal","power_brake"]' NVML_REASONS=0xa8
    tainted '[]' NVML_REASONS=0x4 # a power cap is how these cards run
    "$BIN/measure" --no-meta "$T/all" |
        jq -se 'map(select(.metric == "power_cap_ratio"))[0] | .value == 1 and .timed == 4'
}

@test "processes that take turns do not count as foreign to each other" {
    local n
    take_turns() { # PARTY
        env LD_LIBRARY_PATH="$F/driver" NVML_FOREIGN="$FOREIGN" "${GEN[@]}" --gen-length 4 \
            --warmup 1 -q --turns "$T/turns-$FOREIGN" --party "$1/2" "$F/prompts" \
            -o "$T/party-$1"
    }
    FOREIGN=1
    take_turns 0 &
    take_turns 1
    wait $!
    for n in 0 1; do
        jq -se 'map(select(.phase == "timed")) | length > 0 and
            all(.gpu.foreign_processes == 0)' "$T/party-$n"
    done
    FOREIGN=2
    run ! take_turns 0
    [ "$status" -eq 75 ]
}

@test "a process that waits for its turn does not read the driver" {
    party() { # PARTY
        env LD_LIBRARY_PATH="$F/driver" NVML_FOREIGN=1 NVML_LOOKS="$T/looks-$1" "${GEN[@]}" \
            --gen-length 4 --warmup 1 -q --turns "$T/turns" --party "$1/2" "$F/prompts" \
            -o "$T/party-$1"
    }
    looks() { wc -c < "$T/looks-0"; }
    party 0 &
    local before=-1 same=0
    for _ in $(seq 100); do # it waits for the other party once no more looks are added
        sleep 0.3
        [ -e "$T/looks-0" ] || continue
        if [ "$(looks)" -eq "$before" ]; then same=$((same + 1)); else same=0; fi
        [ "$same" -lt 3 ] || break
        before=$(looks)
    done
    [ "$before" -gt 0 ]
    sleep 0.5 # 25 periods
    [ "$(looks)" -eq "$before" ]
    party 1
    wait $!
    [ "$(looks)" -gt "$before" ]
    jq -se 'map(select(.phase == "timed")) | length > 0 and all(.gpu | has("samples"))' "$T/party-0"
}
