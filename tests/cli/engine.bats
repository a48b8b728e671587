#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Tests the options of device and precision: they are the same in every tool and are written to
# records, and a wrong value is refused with the list of possible values.

setup() {
    set -o pipefail
    BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
    echo '{"id":"p","prompt_ids":[5,6,7,8,9,10,11]}' > "$T/prompt"
    GEN=("$BIN/gen-llama" -m synth:tiny-llama --max-new 6 --ignore-eos --no-meta)
}

isas() { # those that run here, from the message that lists them
    "${GEN[@]}" --isa none "$T/prompt" 2>&1 | sed 's/.*back end has \(.*\) here.*/\1/; s/,//g'
}

@test "a missing instruction set is refused with the list of the existing sets" {
    run --separate-stderr "${GEN[@]}" --isa none "$T/prompt"
    [ "$status" -eq 69 ]
    [ "$output" = "" ]
    [[ "$stderr" == "gen-llama: --isa none: the CPU back end has "*portable* ]]
    run --separate-stderr "${GEN[@]}" --device ref --isa portable "$T/prompt"
    [ "$status" -eq 69 ]
    run --separate-stderr "$BIN/score-ppl" --mode nll -m synth:tiny-llama --isa none "$T/prompt"
    [ "$status" -eq 69 ]
    [[ "$stderr" == "score-ppl: --isa none: "* ]]
    echo '{"id":"a","text":"one two three"}' > "$T/corpus"
    run --separate-stderr "$BIN/train-lm" --isa none --out "$T/m" "$T/corpus"
    [ "$status" -eq 69 ]
}

@test "amx that cannot run gives the reason" {
    isas | grep -qw amx && skip "it can be had here"
    run --separate-stderr "${GEN[@]}" --isa amx "$T/prompt"
    [ "$status" -eq 69 ]
    [[ "$stderr" == "gen-llama: --isa amx: the CPU back end has "*": the "*AMX* ]]
    run --separate-stderr "${GEN[@]}" -v "$T/prompt"
    [ "$status" -eq 0 ]
    [[ "$stderr" == *"--isa auto does not try amx: the "*AMX* ]]
    run --separate-stderr "${GEN[@]}" "$T/prompt"
    [[ "$stderr" != *amx* ]]
}

@test "every instruction set of this machine runs, and the record names it" {
    [ -n "$(isas)" ]
    for isa in $(isas); do
        "${GEN[@]}" --dtype f32 --isa "$isa" "$T/prompt" > "$T/$isa"
        jq -e --arg isa "$isa" '.isa == $isa and (.config | endswith("dtype=f32 isa=" + $isa))' \
            "$T/$isa"
        [ "$(jq '.token_ids | length' "$T/$isa")" -eq 6 ]
    done
}

@test "dtype, cache and quantization are as asked, or follow the checkpoint" {
    row() { "${GEN[@]}" "$@" "$T/prompt" | jq -r '"\(.dtype) \(.kv_dtype) \(.quant)"'; }
    [ "$(row)" = "bf16-f32 f32 none" ]
    [ "$(row --dtype bf16)" = "bf16 bf16 none" ]
    [ "$(row --dtype f32)" = "f32 f32 none" ]
    [ "$(row --dtype bf16-f32)" = "bf16-f32 f32 none" ]
    [ "$(row --dtype bf16 --kv-dtype f32)" = "bf16 f32 none" ]
    [ "$(row --dtype f32 --kv-dtype bf16)" = "f32 bf16 none" ]
    [ "$(row --dtype f32 --quant int8)" = "f32 bf16 int8" ]
    run --separate-stderr "${GEN[@]}" --quant nf4 "$T/prompt"
    [ "$status" -eq 65 ]
    [[ "$stderr" == *"[64, 160]"*"multiple of 64"* ]]
    for flag in dtype kv-dtype quant; do
        run --separate-stderr "${GEN[@]}" --$flag f8 "$T/prompt"
        [ "$status" -eq 64 ]
    done
}

@test "a bf16 cache takes half the bytes, and --verbose prints the estimated memory" {
    "${GEN[@]}" -v --kv-dtype f32 "$T/prompt" > "$T/f32" 2> "$T/log"
    "${GEN[@]}" --kv-dtype bf16 "$T/prompt" > "$T/bf16"
    [ "$(jq .memory.kv_bytes "$T/f32")" -eq $((2 * $(jq .memory.kv_bytes "$T/bf16"))) ]
    # 2 layers x (7 + 6) slots x 2 heads x 16 values x 4 bytes, K and V, each a multiple of 64
    [ "$(jq .memory.kv_bytes "$T/f32")" -eq $((2 * 2 * 13 * 2 * 16 * 4)) ]
    read -r kv paper act act_paper < <(grep 'bytes of cache' "$T/log" | sed 's/.*batch 0: //' |
        tr -cs '0-9\n' ' ')
    [ "$kv" -eq "$paper" ]
    [ "$act" -eq "$act_paper" ]
    [ "$kv" -eq "$(jq .memory.kv_bytes "$T/f32")" ]
    [ "$act" -eq "$(jq .memory.activations_bytes "$T/f32")" ]
}

@test "threads are the allowed processors, and never change the ids" {
    one=$("${GEN[@]}" --threads 1 "$T/prompt" | jq -c .token_ids)
    nll() { "$BIN/score-ppl" --mode nll -m data/models/llama-demo --no-meta "$@" \
        "$T/prompt"; }
    few=$(nll --threads 1 | jq -c .value)
    for n in 2 3 64 128; do
        [ "$("${GEN[@]}" --threads $n "$T/prompt" | jq -c .token_ids)" = "$one" ]
        [ "$n" -eq 3 ] || [ "$(nll --threads $n | jq -c .value)" = "$few" ]
    done
    cpu=$(taskset -pc $$ | sed 's/.*: //; s/[,-].*//')
    [ "$(taskset -c "$cpu" "${GEN[@]}" "$T/prompt" | jq .threads)" -eq 1 ]
    [ "$(taskset -c "$cpu" "${GEN[@]}" --threads 2 "$T/prompt" | jq -c .token_ids)" = "$one" ]
}

@test "a format runs on the instruction set that was quickest here, once for all runs" {
    export XDG_CACHE_HOME=$T/cache
    "${GEN[@]}" --isa portable "$T/prompt" > "$T/named"
    [ -z "$(find "$XDG_CACHE_HOME" -type f)" ] # who names one needs no clock
    read -r first second rest <<< "$(isas | tr '\n' ' ')"
    [ -n "$rest" ] || skip "one instruction set beside portable C: nothing to choose"
    "${GEN[@]}" -v --dtype bf16 "$T/prompt" > "$T/now" 2> "$T/log"
    isa=$(jq -r .isa "$T/now")
    grep -qE "^gen-llama: isa $isa for bf16: .* $first [0-9.]+ [0-9.]+, .*\(measured now\)$" \
        "$T/log"
    "${GEN[@]}" -v --dtype bf16 "$T/prompt" > "$T/again" 2> "$T/log"
    grep -q '(measured before)$' "$T/log"
    "${GEN[@]}" --dtype bf16 --isa "$isa" "$T/prompt" > "$T/named"
    [ "$(jq -c '[.isa, .token_ids]' "$T/now" "$T/again" "$T/named" | sort -u | wc -l)" -eq 1 ]

    # a planted clock makes the first instruction set slow for bf16 only; the others are equal
    file=$(echo "$XDG_CACHE_HOME"/crossover/levels/*)
    jq -c --arg isa "$first" '.of.levels as $set | .ns |= with_entries(.key as $format |
            .value |= [range(length) as $i | if $format == "bf16" and $i % 2 == 1 and
                           $set[$i / 2 | floor] == $isa then 2000 else 1000 end])' \
        "$file" > "$T/times"
    cp "$T/times" "$file"
    [ "$("${GEN[@]}" --dtype bf16 "$T/prompt" | jq -r .isa)" = "$second" ]
    [ "$("${GEN[@]}" --dtype f32 "$T/prompt" | jq -r .isa)" = "$first" ]
    [ "$("${GEN[@]}" --dtype bf16 --isa "$first" "$T/prompt" | jq -r .isa)" = "$first" ]
    # every tool that runs a network, and the meta record
    "$BIN/score-ppl" --mode nll -m synth:tiny-llama --dtype bf16 "$T/prompt" > "$T/scores"
    jq -se --arg isa "$second" '[.[0].backend.isa] | unique == [$isa]' "$T/scores"
    "$BIN/gen-llada" -m synth:tiny-llada --dtype bf16 --gen-length 4 --block-length 4 --steps 2 \
        "$T/prompt" > "$T/llada"
    jq -se --arg isa "$second" '[.[0].backend.isa, .[1].isa] | unique == [$isa]' "$T/llada"
    cmp "$T/times" "$file"

    # a damaged file, and no place for a file
    head -c 100 "$T/times" > "$file"
    "${GEN[@]}" -v --dtype bf16 "$T/prompt" 2> "$T/log" > /dev/null
    grep -q '(measured now)$' "$T/log"
    [ "$(jq ".ns | length" "$file")" -eq "$(jq ".ns | length" "$T/times")" ]
    XDG_CACHE_HOME=/dev/null "${GEN[@]}" -v --dtype bf16 "$T/prompt" 2> "$T/log" > /dev/null
    grep -q '(measured now)$' "$T/log"
}

