#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Tests ablation switches: without an optimisation the ids are the same, and records, estimate and
# memory show the switch. Also tests row tiles, and the kinds of noise and confidence.
load conforms

setup() {
    set -o pipefail
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    BIN=${BIN:-build/bin}
    T=$BATS_TEST_TMPDIR
    for n in 3 40 11 7; do
        jq -nc --argjson n "$n" '{id: "p\($n)", prompt_ids: [range(10; 10 + $n)]}'
    done > "$T/prompts"
    LLADA=("$BIN/gen-llada" -m data/models/llada-demo --device cpu --gen-length 16 --steps 4
        --block-length 8 --batch 4 --no-meta -q)
    LLAMA=("$BIN/gen-llama" -m data/models/llama-demo --device cpu --max-new 8 --ignore-eos
        --batch 4 --no-meta -q)
}

# same FILE: tests that all points of each of 4 prompts have the same ids; prints the number of
# points
same() {
    jq -se 'group_by(.id) | length == 4 and all(map(.token_ids) | unique | length == 1)' "$1"
    jq -s 'map(.point) | unique | length' "$1"
}

@test "the switches of attention, ffn and head change no id, as points of one process" {
    for cache in none dual features sparse; do
        "${LLADA[@]}" --cache $cache --attention tiled,dense,sliced --attention-heads 1,2 \
            --ffn fused,unfused --head streamed,dense "$T/prompts" > "$T/out"
        [ "$(same "$T/out" | tail -n 1)" -eq 16 ]
    done
    conforms "$T/out"
    jq -se 'all(if .attention == "sliced" then .attention_heads >= 1 else
        .attention_heads == null end) and
        (map(select(.attention == "dense" and .ffn == "unfused" and .head == "dense").config) |
        unique | length == 1 and (.[0] | contains("attention=dense ffn=unfused head=dense")))' \
        "$T/out"
    "${LLAMA[@]}" --attention tiled,dense,sliced --ffn fused,unfused --head streamed,dense \
        --cache on,off "$T/prompts" > "$T/out"
    [ "$(same "$T/out" | tail -n 1)" -eq 24 ]
    conforms "$T/out"
    "$BIN/gen-ltm" -m synth:tiny-ltm --device cpu --max-new 8 --batch 4 --no-meta -q \
        --attention tiled,dense,sliced --ffn fused,unfused --head streamed,dense "$T/prompts" \
        > "$T/out"
    [ "$(same "$T/out" | tail -n 1)" -eq 12 ]
    "${LLADA[@]}" --cfg-scale 1 --head streamed,dense --attention tiled,dense "$T/prompts" \
        > "$T/out"
    [ "$(same "$T/out" | tail -n 1)" -eq 4 ]
}

@test "head rows of the block and of the canvas change no id, by every rule and draft" {
    for rule in schedule threshold klass wino saber; do
        "${LLADA[@]}" --unmask $rule --head-rows masked,block,canvas --cache none,prefix \
            "$T/prompts" > "$T/out"
        jq -se 'group_by([.id, .cache]) | all(map(.token_ids) | unique | length == 1)' "$T/out"
    done
    "${LLADA[@]}" --draft-steps 2 --head-rows masked,block,canvas "$T/prompts" > "$T/out"
    [ "$(same "$T/out" | tail -n 1)" -eq 3 ]
    "${LLADA[@]}" --temperature 0.7 --head-rows masked,canvas --admit static,continuous \
        "$T/prompts" > "$T/out"
    same "$T/out"
}

@test "the memory of the switches is planned and shows in the peak" {
    "${LLADA[@]}" --threads 1 --gen-length 64 --steps 8 --attention tiled,dense \
        --ffn fused,unfused --head streamed,dense --head-rows masked,canvas "$T/prompts" > "$T/out"
    jq -se 'all(.memory.planned_bytes == .memory.allocated_peak_bytes)' "$T/out"
    jq -se 'def peak(f): map(select(f).memory.planned_bytes) | max;
        peak(.head == "dense") > peak(.head == "streamed") and
        peak(.ffn == "unfused") > peak(.ffn == "fused") and
        peak(.head == "dense" and .head_rows == "canvas") >
            peak(.head == "dense" and .head_rows == "masked")' "$T/out"
    "${LLAMA[@]}" -m synth:tiny-llama --cache off --attention tiled,dense,sliced \
        --row-tile 8 "$T/prompts" > "$T/out"
    jq -se 'all(.memory.planned_bytes == .memory.allocated_peak_bytes and .row_tile == 8)' "$T/out"
}

@test "row tiles change no id, take less memory, and are in records and labels" {
    for n in 0 1 16 4096; do
        "${LLADA[@]}" --gen-length 64 --steps 8 --cache none,dual --row-tile $n "$T/prompts" \
            > "$T/$n"
        jq -se 'all(.memory.planned_bytes == .memory.allocated_peak_bytes)' "$T/$n"
        cmp <(jq -c '[.id, .cache, .token_ids]' "$T/$n") <(jq -c '[.id, .cache, .token_ids]' "$T/0")
    done
    conforms "$T/16"
    jq -se 'all(.row_tile == 8 and (.config | contains(" row_tile=8")))' "$T/1"
    jq -se 'all(has("row_tile") | not)' "$T/0"
    jq -s 'map(map(.memory.planned_bytes) | max) | .[0] < .[1]' <(jq -s . "$T/16") \
        <(jq -s . "$T/0") | grep -qx true
    "${LLAMA[@]}" --row-tile 8 --dtype bf16 --quant int8 "$T/prompts" > "$T/tiled"
    "${LLAMA[@]}" --dtype bf16 --quant int8 "$T/prompts" > "$T/whole"
    cmp <(jq -c .token_ids "$T/tiled") <(jq -c .token_ids "$T/whole")
}

@test "--explain names the disabled and the inexact optimisations" {
    "${LLADA[@]}" --explain --attention dense --head dense --row-tile 16 "$T/prompts" > "$T/out"
    jq -e '.kind == "plan" and .exact and .attention == "dense" and .head == "dense" and
        .row_tile == 16 and (.config | contains(" attention=dense head=dense ") and
        contains(" row_tile=16"))' "$T/out"
    for what in "--temperature 1 --gumbel f32" "--confidence-dtype bf16"; do
        # shellcheck disable=SC2086
        "${LLADA[@]}" --explain $what "$T/prompts" | jq -e '.exact == false'
    done
    "${LLADA[@]}" --explain --gumbel f32 "$T/prompts" | jq -e '.exact and .gumbel == null'
}

@test "noise and confidences in floats give nearly the same answers" {
    "${LLADA[@]}" --temperature 1,100 --gumbel f64,f32x,f32 "$T/prompts" > "$T/out"
    conforms "$T/out"
    jq -se 'def ids(t; g): map(select(.temperature == t and .gumbel == g).token_ids);
        (map(.point) | unique | length == 6) and ids(1; "f64") == ids(1; "f32x") and
        ids(100; "f64") == ids(100; "f32x") and
        ids(100; "f64") != ids(100; "f32")' "$T/out" # (-log u)^100 is 0 or infinite
    "${LLADA[@]}" --confidence-dtype f64,f32,bf16 "$T/prompts" > "$T/out"
    jq -se 'map(.point) | unique | length == 3' "$T/out"
    for device in ref cpu; do
        "${LLADA[@]}" --device $device --temperature 0.8 --gumbel f32x --confidence-dtype bf16 \
            --dtype f32 --limit 1 "$T/prompts" | jq -c .token_ids
    done | uniq | wc -l | grep -qx 1
}

@test "aliases set attention's switches, and invalid values are refused" {
    one() { "${LLADA[@]}" --limit 1 "$@" "$T/prompts"; }
    one --enable-flash-attention | jq -e '.attention == "tiled"'
    one --enable-attention-slicing | jq -e '.attention == "sliced" and .attention_heads == 1'
    echo '{"ENABLE_ATTENTION_SLICING": true, "row_tile": 16}' > "$T/file"
    one --settings "$T/file" | jq -e '.attention == "sliced" and .row_tile == 16'
    one --graphs off --alloc direct | jq -e '(has("graphs") or has("alloc")) | not' # of a GPU
    for bad in "--attention flash" "--ffn none" "--head-rows 3" "--gumbel f16" "--graphs no" \
        "--row-tile -1" "--attention-heads 0"; do
        # shellcheck disable=SC2086
        run --separate-stderr one $bad
        [ "$status" -eq 64 ]
    done
}
