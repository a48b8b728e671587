#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Tests joules: the generators read them from counters of the processor, measure sums them and
# computes their price. instruments.bats tests the counters of a GPU.
load conforms

setup() {
    set -o pipefail
    BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
}

load measure

reason() { # METRIC REASON < metrics
    [ "$(tee "$T/n" | value "$1" value)" = null ]
    [[ "$(value "$1" value_reason < "$T/n")" = *"$2"* ]]
}

idle() { # LAUNCH WATTS MEMBERS
    one "{kind: \"idle\", launch: $1, power_w: $2} + $3"
}

package() { # HOST-MEMBERS: one batch of two answers, 0.2 s and 30 J
    for p in a b; do
        one "{id: \"$p\", batch: 2, batch_id: 1, batch_ns: 2e8, e2e_ns: 2e8, gpu: null,
            host: ({window_ns: 210000000, energy_begin_j: 5, energy_end_j: 35} + $1)}"
    done
}

@test "energy is gross or net of idle power, by token and request, and null if undefined" {
    # five batches of two answers: 3 s, 40 ticks and 600 J each; the card alone takes 90 and 110 W
    batches() { # LAUNCH GPU-MEMBERS [COUNT]
        for id in $(seq "${3-5}"); do for p in a b; do
            one "{id: \"$p\", batch: 2, batch_id: $id, batch_ns: 3e9, e2e_ns: 3e9, launch: $1,
                gpu: ({energy_begin_j: (1000 * $id), energy_end_j: (1000 * $id + 600), samples: 150,
                      energy_ticks: 40, power_integral_j: 606, power_capped_samples: 30} + $2)}"
        done; done
    }
    { idle 1 90 "{}"; batches 1 "{}"; idle 1 110 "{}"; idle 1 9000 "{foreign_processes: 1}"
      idle 2 5000 "{}"; idle 1 7000 "{model: \"other\"}"; } | measure > "$T/m"
    [ "$(value energy_j_per_token value < "$T/m")" = 75 ]
    [ "$(value energy_net_j_per_token value < "$T/m")" = 37.5 ]
    [ "$(value energy_j_per_request value < "$T/m")" = 300 ]
    [ "$(value power_mean_w value < "$T/m")" = 200 ]
    [ "$(value power_cap_ratio value < "$T/m")" = 0.2 ]
    jq -se 'map(select(.metric == "energy_j_per_token"))[0] | .energy_ticks == 200 and
        .energy_windows == 5 and .idle_power_w == 100 and .power_agrees and
        .power_integral_ratio == 1.01 and .lo == null and
        .label == "GPU board energy, NVML, excludes host"' "$T/m"
    batches 1 "{}" | measure | reason energy_net_j_per_token "idle"
    batches 1 "{energy_ticks: 19}" | measure | reason energy_j_per_token "100 ticks"
    batches 1 "{energy_end_j: null}" | measure | reason energy_j_per_request "no tick"
    batches 1 "{}" 4 | measure | reason power_mean_w "5 batches"
    { batches 1 "{}" 3; batches 2 "{}" 3; } | measure |
        reason power_mean_w "10 s"
    # empty answers used energy too, but have no token to divide it by
    batches 1 "{}" | jq -c '.tokens_to_eos = 0' | measure | reason energy_j_per_token "divide"
    # readings and counter differ: a warning if the sum is larger, and if it is smaller
    batches 1 "{power_integral_j: 560}" | measure 2> "$T/err" > "$T/m"
    grep -q "W023.*6.7 %" "$T/err"
    [ "$(value energy_j_per_token power_agrees < "$T/m")" = false ]
    batches 1 "{power_integral_j: null}" | measure > "$T/m"
    [ "$(value energy_j_per_token power_agrees < "$T/m")" = null ]
    conforms "$T/m"
}

@test "joules of a processor need only 100 ticks of 1 ms, because its counter misses none" {
    idle 1 20 "{device_name: null}" > "$T/idle"
    { package "{}"; cat "$T/idle"; idle 1 900 "{device_name: \"Some GPU\"}"; } | measure > "$T/m"
    [ "$(value energy_j_per_token value < "$T/m")" = 3.75 ]
    [ "$(value energy_net_j_per_token value < "$T/m")" = 3.25 ]
    [ "$(value power_mean_w value < "$T/m")" = 150 ]
    [ "$(value energy_j_per_request label < "$T/m")" = \
        "CPU package energy, RAPL, excludes memory, board and supply" ]
    package '{window_ns: 90000000}' | measure | reason energy_j_per_token "100 ticks"
    package '{energy_begin_j: null, energy_end_j: null, energy_j: null,
        energy_j_reason: "no energy counter of the processor: x"}' |
        measure | reason energy_j_per_token "counter of the processor: x"
    package '{energy_end_j: 4}' > "$T/less"
    run measure "$T/less"
    [ "$status" -eq 65 ] && [[ "$output" = *"host.energy_end_j: expected at least 5, got 4"* ]]
}

@test "joules of the processor's packages come from counters that wrap, or have a reason" {
    printf '{"id":"p%d","prompt_ids":[5,6,7]}\n' 1 2 3 > "$T/prompts"
    GEN=("$BIN/gen-llama" -m synth:tiny-llama --ignore-eos -q)
    timed() { # TREE OUTPUT: a timed run over counters like those of /sys
        CROSSOVER_SYS=$1 "${GEN[@]}" --max-new 400 --warmup 1 --warmup-most 1 --idle-ms 150 \
            "$T/prompts" -o "$2"
        conforms "$2"
        jq -c 'select(.kind == "generation" and .phase == "timed")' "$2" > "$2.timed"
    }
    domain=$T/sys/class/powercap/intel-rapl:0
    mkdir -p "$domain"
    echo package-0 > "$domain/name"
    echo 1000000 > "$domain/max_energy_range_uj"
    echo 980000 > "$domain/energy_uj"
    # 10 mJ every 2 ms or more: at most 5 W, and the counter wraps soon
    (i=980000
    while :; do
        i=$(((i + 10000) % 1000000))
        echo $i > "$T/next"
        mv "$T/next" "$domain/energy_uj"
        sleep 0.002
    done) 3>&- & counter=$!
    timed "$T/sys" "$T/out" || bad=$?
    kill "$counter"
    wait "$counter" || true
    [ -z "$bad" ]
    jq -se 'length == 3 and all(.host | .energy_source == "powercap" and .energy_begin_j >= 0 and
        .energy_end_j >= .energy_begin_j and .energy_end_j - .energy_begin_j <= .window_ns * 5.1e-9
        + 0.011) and ([.[].host | .energy_begin_j, .energy_end_j] | . == sort and .[0] < .[-1]) and
        all(.[]; .host.window_ns >= .batch_ns and
            if .host.window_ns >= 1e8
            then (.host | .energy_j - .energy_end_j + .energy_begin_j | fabs) < 1e-9
            else .host.energy_j == null and (.host.energy_j_reason | test("100 times")) end)' \
        "$T/out.timed"
    jq -se 'map(select(.kind == "idle")) | map(.when) == ["before", "after"] and
        all(.method == "energy counter" and .window_ns >= 15e7 and
            (.power_w == null and .power_w_reason == "something else ran on this machine" or
             .power_w > 0.1 and .power_w < 5.2))' "$T/out"
    # no counter: the reason, in every record and every metric
    timed "$T/none" "$T/out"
    jq -se 'all(.host | .energy_j == null and .energy_source == null and
        (has("energy_begin_j") | not) and (.energy_j_reason |
        startswith("no energy counter of the processor: ") and test("intel-rapl:.*no package")))' \
        "$T/out.timed"
    run ! grep '"kind":"idle"' "$T/out"
    "$BIN/measure" -q "$T/out" | jq -se 'map(select(.metric == "energy_j_per_token"))[0] |
        .value == null and (.value_reason | startswith("no energy counter of the processor"))'
}
