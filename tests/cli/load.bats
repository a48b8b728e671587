#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Prompts that arrive one by one (--arrival-rate): the times of their answers, and the rate of
# requests at which the faster model changes.
load conforms

setup() {
    set -o pipefail
    BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
}

ids() { jq -c 'select(.kind == "generation") | [.id, .token_ids]' "$1"; }

# llama, llada [OPTIONS]: eight answers of the small models
llama() {
    jq -cn 'range(8) | {id: "p\(.)", prompt_ids: [range(1; 3 + .)]}' |
        "$BIN/gen-llama" -q -m synth:tiny-llama --max-new 12 --ignore-eos "$@"
}
llada() {
    jq -cn 'range(8) | {id: "p\(.)", prompt_ids: [range(1; 3 + .)]}' |
        "$BIN/gen-llada" -q -m synth:tiny-llada --gen-length 16 --steps 8 "$@"
}

@test "prompts that arrive get the answers that they get alone; their times include the wait" {
    for system in llama llada; do
        "$system" > "$T/alone"
        "$system" --batch 2 --admit continuous --arrival-rate 5000 > "$T/out"
        conforms "$T/out"
        [ "$(ids "$T/out")" = "$(ids "$T/alone")" ]
        # times from the arrival to the end; at most two at once; a batch that lasts to the last end
        jq -se 'map(select(.kind == "generation")) | all(.arrival_rate == 5000) and
            (map(.admit_ns) | . == sort and .[0] == 0 and .[1] > 0) and
            .[0].queue_ns == 0 and (map(.queue_ns) | max) > 0 and
            all(.queue_ns < .ttft_ns and .ttft_ns <= .e2e_ns) and
            (map(.admit_ns + .e2e_ns) | max) == .[0].batch_ns and
            (map([.admit_ns + .queue_ns, .admit_ns + .e2e_ns]) as $spans |
             $spans | all(. as $at | [$spans[] | select(.[0] <= $at[0] and .[1] > $at[0])] |
                              length <= 2))' "$T/out"
        [[ $(jq -r 'select(.kind == "generation").config' "$T/out" | sort -u) == *' rate=5000' ]]
    done
    jq -se 'map(select(.kind == "generation")) | all(has("queue_ns") | not)' "$T/alone"
}

@test "arrivals come from the seed, the launch and the round, and not from the model or the rate" {
    due() { jq -sc 'map(select(.kind == "generation").admit_ns)' "$1"; }
    llama --batch 2 --admit continuous --arrival-rate 2000,4000 --warmup 1 --repeat 2 > "$T/out"
    # a warm-up batch begins with all of its prompts
    jq -se 'map(select(.kind == "generation" and .phase != "timed").admit_ns) | add == 0' "$T/out"
    for r in 0 1; do
        jq -c "select(.kind == \"generation\" and .round == $r and .phase == \"timed\")" "$T/out" \
            > "$T/$r"
        jq -se 'group_by(.arrival_rate) | map(map(.admit_ns)) | .[0] as $slow | .[1] as $fast |
            [range(8) | $slow[.] - 2 * $fast[.] | fabs] | max <= 16' "$T/$r"
    done
    jq -c 'select(.arrival_rate == 2000)' "$T/0" > "$T/first"
    jq -c 'select(.arrival_rate == 2000)' "$T/1" > "$T/second"
    run ! test "$(due "$T/first")" = "$(due "$T/second")"
    llada --batch 2 --admit continuous --arrival-rate 2000 > "$T/other"
    [ "$(due "$T/other")" = "$(due "$T/first")" ]
    llada --batch 2 --admit continuous --arrival-rate 2000 --seed 1 > "$T/seed"
    run ! test "$(due "$T/seed")" = "$(due "$T/other")"
}

@test "an answer counts in measure although fewer prompts ran at once than --batch allows" {
    llama --batch 64 --admit continuous --arrival-rate 1000 --repeat 2 > "$T/out"
    "$BIN/measure" -q --ttft-limit-ms 60000 "$T/out" > "$T/m"
    jq -se 'INDEX(.metric) | .requests_per_s.value > 0 and
        .goodput_per_s.value == .requests_per_s.value and .e2e_ns.n == 16' "$T/m"
    llama --batch 64 --admit continuous | "$BIN/measure" -q > "$T/m"
    jq -se 'INDEX(.metric).e2e_ns | .value == null and .partial == 8' "$T/m"
}

@test "a signal ends the wait for the next prompt, and no half answer is written" {
    run timeout -s INT 3 "$BIN/gen-llama" -q -m synth:tiny-llama --max-new 4 --batch 2 \
        --admit continuous --arrival-rate 0.0001 -o "$T/out" <(jq -cn \
        'range(3) | {id: "p\(.)", prompt_ids: [1, 2]}')
    [ "$status" -eq 124 ] || [ "$status" -eq 130 ]
    ! grep -q '"kind":"generation"' "$T"/out*
}
