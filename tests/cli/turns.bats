#!/usr/bin/env bats
# --turns: two generators work prompt by prompt, one at a time; pipelines/bin/side-by-side runs a
# pair.
bats_require_minimum_version 1.5.0
load conforms

setup() {
    set -o pipefail
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    BIN=$(realpath "${BIN:-build/bin}")
    T=$BATS_TEST_TMPDIR
    printf '{"id":"%s","text":"Tom has %s apples."}\n' a 3 b 5 > "$T/prompts"
    "$BIN/schedule" --launches 1 --systems llada,llama --steps 2,4 --batch 1 \
        --gen-length 8 --block-length 8 --no-meta --seed 1 -o "$T/schedule"
}

# party SYSTEM FLAGS...: prints the command of one party
party() {
    local system=$1
    shift
    echo "$BIN/gen-$system" -q -m "data/models/$system-demo" --threads 1 --schedule \
        "$T/schedule" --launch 0 --warmup 1 "$T/prompts" -o "$T/$system" "$@"
}

timed() { jq -c 'select(.kind == "generation" and .phase == "timed")' "$T/$1"; }

@test "both models do the same number of work units on each prompt, one at a time" {
    # shellcheck disable=SC2046  # words
    pipelines/bin/side-by-side "$T" 1 0 turns -- $(party llada) -- $(party llama)
    [ "$(timed llada | jq -r .id | paste -sd ' ')" = "a a b b" ]
    [ "$(timed llama | jq -c '[.id, .round]' | paste -sd ' ')" = \
        '["a",0] ["a",1] ["b",0] ["b",1]' ]
    timed llada | jq -se 'group_by(.id) | map(map(.steps) | sort) | unique == [[2, 4]]'
    timed llada | jq -se 'all(.cpu_ns > 0 and .cpu_ns < 1e10)'
    [ ! -e "$T/turns-0.tmp" ]
    conforms "$T/llada"
}

@test "a party with fewer points works twice at each, and its turns are spread" {
    "$BIN/schedule" --launches 1 --systems llada,llama --steps 1,2,4,8 --batch 1 \
        --gen-length 8 --block-length 8 --no-meta --seed 1 -o "$T/schedule"
    # shellcheck disable=SC2046
    pipelines/bin/side-by-side "$T" 1 0 turns -- $(party llada) -- $(party llama)
    [ "$(timed llama | jq -c '[.id, .round]' | paste -sd ' ')" = \
        '["a",0] ["a",1] ["b",0] ["b",1]' ]
    [ "$(timed llada | jq -r .id | paste -sd ' ')" = "a a a a b b b b" ]
    # between two turns of llama the second and the third batch of llada ran
    jq -s '.[1].start_ns - .[0].start_ns - .[0].batch_ns' <(timed llama) > "$T/gap"
    timed llada | jq -se --argjson gap "$(< "$T/gap")" '$gap > .[1].batch_ns + .[2].batch_ns'
}

@test "a party that adds rounds gets the loads of the other party" {
    "$BIN/schedule" --launches 1 --systems llada,llama --steps 2,4 --batch 2 --admit continuous \
        --arrival-rate 2000 --gen-length 8 --block-length 8 --no-meta --seed 1 -o "$T/schedule"
    # shellcheck disable=SC2046
    pipelines/bin/side-by-side "$T" 1 0 turns -- $(party llada) -- $(party llama)
    [ "$(timed llama | jq -c '[.id, .round]' | paste -sd ' ')" = \
        '["a",0] ["b",0] ["a",1] ["b",1]' ]
    { timed llada; timed llama; } | jq -se 'group_by(.id) | map(map(.admit_ns) | unique) |
        map(length) == [1, 1] and .[1][0] > 0'
}

@test "parties that run one after the other give the same answers" {
    # shellcheck disable=SC2046
    pipelines/bin/side-by-side "$T" 1 0 turns -- $(party llada) -- $(party llama)
    timed llada | jq -c '[.id, .steps, .token_ids]' | sort > "$T/turns"
    rm "$T/llada"
    # shellcheck disable=SC2046
    pipelines/bin/side-by-side "$T" 1 0 alone -- $(party llada) -- $(party llama)
    timed llada | jq -c '[.id, .steps, .token_ids]' | sort | cmp - "$T/turns"
}

@test "a party that fails ends the pair" {
    # shellcheck disable=SC2046
    run timeout 60 pipelines/bin/side-by-side "$T" 1 0 turns \
        -- $(party llada) -- $(party llama --bogus)
    [ "$status" -eq 64 ]
    [ ! -e "$T/llada" ] || ! grep -q '"status":"ok","kind":"end"' "$T/llada"
    run -64 "$BIN/gen-llama" -m data/models/llama-demo --party 0/2 "$T/prompts"
    [[ $output == *"expected --turns FILE beside it"* ]]
    run -64 "$BIN/gen-llama" -m data/models/llama-demo --turns "$T/t" --party 2/2 "$T/prompts"
    [[ $output == *"--party: expected K/N"* ]]
}

@test "a handicap makes each pass twice and does not change the answers" {
    answers() {
        # shellcheck disable=SC2046
        $(party llama "$@") && timed llama | jq -c .token_ids && rm "$T/llama"
    }
    [ "$(answers)" = "$(answers --handicap 2)" ]
}
