#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# The tools on the emulated CUDA device (tests/emulate): a small form of `make gpu-check`, which
# runs on a real one; records, readings of the driver, too little memory. device.bats has the rest.
load conforms

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    . tests/reference/build.sh
    F=$BATS_FILE_TMPDIR
    "$MAKE_CHECKPOINT" --dtype BF16 --width 64 --heads 2 --ffn 128 "$F/llama"
    "$MAKE_CHECKPOINT" --arch llada --dtype BF16 --width 64 --heads 2 --ffn 128 "$F/llada"
    BIN=${BIN:-build/bin}
    "$BIN/write-corpus" --count 20 --seed 1 -o "$F/corpus"
    "$BIN/train-lm" -q --no-meta --arch ltm --width 32 --layers 2 --heads 2 --kv-heads 1 --ffn 48 \
        --vocab 300 --context 256 --latents 2 --window 8 --vi-steps 2 --steps 4 --rows 384 \
        --max-len 96 --threads 1 --out "$F/ltm" "$F/corpus" > "$F/loss"
    cat > "$F/prompts" << 'EOF'
{"id":"p1","prompt_ids":[72,5]}
{"id":"p2","prompt_ids":[84,104,101,32,102,111,120]}
{"id":"p3","prompt_ids":[255,0,17,34,51,68,85,102,119]}
{"id":"p4","prompt_ids":[9,8,7,6,5,250,240,230,220,210,200]}
EOF
}

setup() {
    set -o pipefail
    export BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR F=$BATS_FILE_TMPDIR
    export CROSSOVER_CUDA="${TESTBIN:-build/tests}/libcrossover-cuda.so"
    [ -e "$CROSSOVER_CUDA" ] || skip "no C++ compiler, so no emulated device"
    LLAMA_GEN=("$BIN/gen-llama" -m "$F/llama" --device cuda --max-new 3 --ignore-eos --no-meta -q)
    LLADA_GEN=("$BIN/gen-llada" -m "$F/llada" --device cuda --gen-length 4 --steps 2 --no-meta -q)
}

# Random weights choose between nearly equal ids, so rounding shows more than in a trained model.
check() {
    LLAMA="$F/llama" LLADA="$F/llada" LTM="$F/ltm" PROMPTS="$F/prompts" SHARE=0.6 NEAR=0.01 \
        tests/gpu/check --tiny "$@"
}

@test "f32: a device gives the ids of the CPU for all models, alone and in batches" {
    check --only identity,batch -o "$T/out/gpu-check.ndjson" > "$T/said"
    [ "$(tail -n 1 "$T/said")" = "22 passed, 0 failed" ]
    conforms "$T/out/gpu-check.ndjson"
    jq -se 'length == 22 and all(.pass and .machine_fingerprint == "out" and
        .device_name == "emulated device (host)" and (.date | test("^20.*Z$")) and .commit)' \
        "$T/out/gpu-check.ndjson"
}

@test "bf16, int8, nf4, fp8: results are near the CPU's, and every run gives the same" {
    check --only tolerance,repeat > "$T/said"
    [ "$(tail -n 1 "$T/said")" = "13 passed, 0 failed" ]
}

@test "gpu-check finds planted faults" {
    # stand-ins that always give the same answers, except on the device: other ones, none, or noisy
    # ones
    mkdir "$T/bin"
    cat > "$T/bin/tool" << 'EOF'
#!/bin/bash
for prompts; do :; done
[ "$prompts" != --version ] || exec echo tool
case "$* " in *synth:*|*"device cpu "*|*"device ref "*) FAULT=none ;; esac
rounds=$(sed -n 's/.*--repeat \([0-9]*\).*/\1/p' <<< "$*")
answer='{"id":"\1","token_ids":[1,2,3],"metric":"x_nats","value":10,"device_name":"none"}'
for _ in $(seq "${rounds:-1}"); do cat "$prompts"; done |
    sed -n 's/.*"id":"\([^"]*\)".*/'"$answer/p" |
    case $FAULT in
    none) cat ;;
    other) sed '/"p3"/s/3\]/4]/' ;;
    in-batch) case $* in *"batch 8"*) sed 's/\[1/[2/' ;; *) cat ;; esac ;;
    silent) true ;;
    far) sed 's/"value":10/"value":10.2/; s/\[1,2,3\]/[1,3,2]/' ;;
    once) if [ -e "$0.again" ]; then cat; else touch "$0.again"; fi ;;
    restless) sed "s/\[1/[$(date +%N | sed 's/^0*//')/" ;;
    drifting) sed '4s/\[1/[9/' ;;
    esac
EOF
    chmod +x "$T/bin/tool"
    for tool in gen-llama gen-llada gen-ltm score-ppl; do ln -s tool "$T/bin/$tool"; done
    BIN=$T/bin
    found() { # FAULT PARTS LAST
        FAULT=$1 run check --only "$2"
        [ "${lines[-1]}" = "$3" ]
    }
    found none identity,tolerance,batch,repeat "35 passed, 0 failed"
    [ "$status" -eq 0 ]
    found other identity "0 passed, 18 failed"
    [ "$status" -eq 1 ]
    found in-batch batch "2 passed, 2 failed"
    found far tolerance "0 passed, 9 failed"
    found restless repeat "0 passed, 4 failed"
    found drifting repeat "0 passed, 4 failed" # the second round of a process
    found once repeat "2 passed, 2 failed" # the first run of each tool says nothing
    found silent tolerance,batch,repeat "0 passed, 17 failed"
}

@test "gpu-check runs programs, counts their results, and notes missing programs" {
    printf '#!/bin/sh\necho "ok 1 - a"\necho "1..1"\n' > "$T/good"
    printf '#!/bin/sh\necho "not ok 1 - b"\nexit 1\n' > "$T/bad"
    printf '#!/bin/sh\necho "ok 1 - a"\necho "1..2"\n' > "$T/short"
    chmod +x "$T/good" "$T/bad" "$T/short"
    CUDA_HOME=$T PATH=$(dirname "$(command -v jq)"):/usr/bin:/bin \
        run check --only tests,sanitize "$T/good" "$T/bad" "$T/short"
    [ "$status" -eq 1 ]
    [[ "$output" == *"ok 1 - tests: good: 1 assertions"*"not ok 2 - tests: bad"* ]]
    [[ "$output" == *"# not ok 1 - b"* ]]
    command -v compute-sanitizer || [[ "${lines[-1]}" = "1 passed, 2 failed, 1 skipped" ]]
    # a sanitizer that finds an error in one of the programs
    mkdir "$T/bin"
    printf '#!/bin/sh\necho "=== $*"\ncase "$*" in *bad*) exit 9 ;; esac\n' > \
        "$T/bin/compute-sanitizer"
    chmod +x "$T/bin/compute-sanitizer"
    CUDA_HOME=$T run check --only sanitize "$T/good" "$T/bad"
    [ "$status" -eq 1 ]
    [ "${lines[-1]}" = "2 passed, 2 failed" ]
    [[ "$output" == *"# === --tool memcheck --error-exitcode 9 "* ]]
}

@test "gpu-check without a device prints one line and exits with 69" {
    EMULATE_DEVICES=0 run --separate-stderr check
    [ "$status" -eq 69 ] && [ -z "$output" ] && [ "${#stderr_lines[@]}" -eq 1 ]
    CROSSOVER_CUDA=$T/none.so run --separate-stderr check
    [ "$status" -eq 69 ] && [ -z "$output" ] && [ "${#stderr_lines[@]}" -eq 1 ]
    run --separate-stderr check --device cuda:7
    [ "$status" -eq 69 ] && [ -z "$output" ] && [ "${#stderr_lines[@]}" -eq 1 ]
    run --separate-stderr check --device gpu
    [ "$status" -eq 64 ] && [ "${#stderr_lines[@]}" -eq 1 ]
    run --separate-stderr check --only batch,identiy
    [ "$status" -eq 64 ] && [ "${#stderr_lines[@]}" -eq 1 ] && [[ "$stderr" == *" got identiy" ]]
}

@test "records name the device; without the driver's library the driver's fields are null" {
    for gen in LLAMA_GEN LLADA_GEN; do
        local -n command=$gen
        "${command[@]}" "$F/prompts" > "$T/out"
        conforms "$T/out"
        jq -se 'length == 4 and all(.device == "cuda" and .isa == "sm_90" and
            .device_name == "emulated device (host)" and .dtype == "bf16" and
            (.gpu | length == 20 and all(to_entries[]; .value == null or
                (.key | endswith("_reason")))) and .tainted == [] and .kind == "generation" and
            (.memory | [.device_peak_bytes, .process_peak_bytes, .layers_hold] |
                all(. == null)) and .memory.weights_bytes > 100000)' "$T/out"
    done
    "$BIN/gen-llama" -m "$F/llama" --device cpu --max-new 1 --no-meta "$F/prompts" |
        jq -se 'all(.gpu == null and has("tainted") == false and .device_name == null)'
}

@test "processes that share a file of choices record the same digest" {
    for i in 1 2; do
        "${LLADA_GEN[@]}" --gemm-choices "$T/choices" --gen-length 96 "$F/prompts" > "$T/$i"
        conforms "$T/$i"
    done
    cmp <(jq .library_choices "$T/1") <(jq .library_choices "$T/2")
    jq -se 'all(.library_choices | test("^[0-9a-f]{12}$"))' "$T/1"
    head -1 "$T/choices" | grep -qx 'cuBLASLt 1'
    echo 'cuBLASLt 2' > "$T/choices"
    run -65 "${LLADA_GEN[@]}" --gemm-choices "$T/choices" "$F/prompts"
    [[ $output == *"--gemm-choices: $T/choices: expected"* ]]
}

@test "too little memory gives oom records and exit code 1" {
    short() { # BYTES COMMAND...
        EMULATE_MEMORY=$1 run --separate-stderr "${@:2}" "$F/prompts"
        [ "$status" -eq 1 ]
        jq -se 'length == 4 and all(.status == "oom" and .token_ids == [] and .e2e_ns == null)' \
            <<< "$output"
    }
    for gen in LLAMA_GEN LLADA_GEN; do
        local -n command=$gen
        short 100000 "${command[@]}" # of the device: not even for the weights
        EMULATE_MEMORY=2500000 run --separate-stderr "${command[@]}" "$F/prompts"
        [ "$status" -eq 0 ]
    done
    short 2500000 "${LLAMA_GEN[@]}" --dtype f32 --max-new 400 --batch 4 # nor beside them
    short 2500000 "${LLADA_GEN[@]}" --dtype f32 --gen-length 400 --steps 400 --batch 4
}

@test "memory held by other processes is exit code 75, and the processes are named" {
    EMULATE_MEMORY=100000000 EMULATE_TAKEN=99900000 run --separate-stderr "${LLAMA_GEN[@]}" \
        "$F/prompts"
    [ "$status" -eq 75 ]
    [ -z "$output" ]
    [ "${#stderr_lines[@]}" -eq 1 ]
    [[ "$stderr" == *"bytes of weights, but emulated device (host) has "* ]]
    [[ "$stderr" == *"other processes use it"* ]]
}

@test "a device that fails leaves nothing half-written" {
    for call in 60 150; do
        for command in gen-llada gen-llama "score-ppl --mode nll"; do
            model=$F/llada
            [ "$command" = gen-llada ] || model=$F/llama
            EMULATE_FAIL=$call:700 run --separate-stderr "$BIN"/$command -m "$model" \
                --device cuda --dtype f32 -o "$T/out.ndjson" "$F/prompts"
            [ "$status" -eq 70 ]
            [ "${#stderr_lines[@]}" -eq 1 ]
            [ ! -e "$T/out.ndjson" ]
            rm -f "$T/.out.ndjson.tmp" # resume.bats goes on from it
        done
    done
}

@test "--halve: a batch that does not fit runs in parts, with the texts of each prompt alone" {
    { cat "$F/prompts"; sed 's/"p/"q/' "$F/prompts"; } > "$T/eight"
    FILL=("${LLADA_GEN[@]}" --dtype f32 --gen-length 24 --steps 2)
    EMULATE_MEMORY=10000000 run --separate-stderr "${FILL[@]}" --batch 8 "$T/eight"
    [ "$status" -eq 1 ]
    jq -se 'length == 8 and all(.status == "oom" and .batch_halved == false)' <<< "$output"
    EMULATE_MEMORY=10000000 "${FILL[@]}" --batch 8 --halve "$T/eight" > "$T/halved"
    conforms "$T/halved"
    jq -se 'length == 8 and all(.status == "ok" and .batch == 8 and .batch_filled == 4 and
        .batch_halved) and map(.batch_id) == [0, 0, 0, 0, 1, 1, 1, 1]' "$T/halved"
    "${FILL[@]}" --batch 1 "$T/eight" > "$T/alone"
    cmp <(jq -c '[.id, .token_ids]' "$T/halved") <(jq -c '[.id, .token_ids]' "$T/alone")
}

@test "a model that cannot fit is refused in one line before loading" {
    EMULATE_MEMORY=2200000 run --separate-stderr "$BIN/gen-llada" -m "$F/llada" --device cuda \
        --no-meta --dtype f32 --gen-length 500 --steps 500 --cfg-scale 1 "$F/prompts"
    [ "$status" -eq 1 ]
    [ "${#stderr_lines[@]}" -eq 1 ]
    [[ "$stderr" == *"W105: "*"a prompt of 11 tokens and 500 to generate need "*" of weights, "*\
" of cache, "*" of activations) and emulated device (host) has "*" free of 2200000"* ]]
}

@test "memory reserved by an earlier, larger batch is released, except with --trim off" {
    jq -nc '(range(4) | {id: "p\(.)", prompt_ids: [range(150)]}), {id: "q", prompt_ids: [1, 2]}' \
        > "$T/long"
    for trim in batch off; do
        "$BIN/gen-llama" -m synth:tiny-llama --device cuda --ignore-eos --no-meta -q --max-new 1 \
            --batch 4 --trim $trim "$T/long" > "$T/$trim"
    done
    jq -se '.[0].memory.reserved_peak_bytes > 50000000 and .[4].batch_id == 1 and
        .[4].memory.reserved_peak_bytes < 40000000' "$T/batch"
    jq -se '.[4].memory.reserved_peak_bytes > 50000000' "$T/off"
    cmp <(jq -c .token_ids "$T/batch") <(jq -c .token_ids "$T/off")
}

@test "ids are the same without graphs, without a pool and without tiles" {
    sed -n '2,3p' "$F/prompts" > "$T/two"
    for what in "" "--graphs off" "--alloc direct" "--attention dense" "--attention sliced" \
        "--ffn unfused" "--head dense" "--head-rows canvas" "--row-tile 8"; do
        # shellcheck disable=SC2086
        "${LLADA_GEN[@]}" --dtype f32 --batch 2 --cache none,dual $what "$T/two" > "$T/llada"
        # shellcheck disable=SC2086
        "${LLAMA_GEN[@]}" --dtype f32 --batch 2 --warmup 1 ${what/--head-rows*/} "$T/two" \
            > "$T/llama"
        conforms "$T/llada"
        jq -c '[.id, .cache, .phase, .token_ids]' "$T/llada" "$T/llama" > "$T/ids"
        [ -e "$T/usual" ] || cp "$T/ids" "$T/usual"
        cmp "$T/ids" "$T/usual"
        case $what in
        --graphs*) jq -se 'all(.graphs == "off" and (.config | contains(" graphs=off")))' \
            "$T/llama" ;;
        --alloc*) jq -se 'all(.alloc == "direct" and .memory.reserved_peak_bytes ==
            .memory.allocated_peak_bytes)' "$T/llama" ;;
        *) jq -se 'all(has("graphs") or has("alloc") | not)' "$T/llama" ;;
        esac
    done
    "${LLADA_GEN[@]}" --temperature 1 --gumbel f64,f32,f32x --confidence-dtype f64,bf16 \
        "$F/prompts" | jq -se 'map(.point) | unique | length == 6'
}

@test "only --tf32 rounds f32 products, and only products of more than 8 rows" {
    for what in "" "--tf32 off" "--tf32 on"; do
        # shellcheck disable=SC2086
        "$BIN/score-ppl" --mode nll -m "$F/llama" --device cuda --dtype f32 $what --no-meta -q \
            "$F/prompts" > "$T/nll${what// /}"
    done
    cmp "$T/nll" "$T/nll--tf32off"
    # p4 has 11 ids, p3 has 9, of which 8 are read
    jq -se 'map(select(.id) | {(.id): .value}) | add | .p1 and .p4' "$T/nll"
    jq -ne --slurpfile a "$T/nll" --slurpfile b "$T/nll--tf32on" 'def values: map(select(.id) |
        {(.id): .value}) | add; ($a | values) as $a | ($b | values) as $b
        | $a.p1 == $b.p1 and $a.p4 != $b.p4 and (($a.p4 - $b.p4) / $a.p4 | fabs < 1e-3)'
    conforms "$T/nll--tf32on"
    jq -se 'map(select(.summary)) | length > 0 and all(.tf32 == "on")' "$T/nll--tf32on"
    cat "$T/nll" "$T/nll--tf32on" | "$BIN/compare" --by tf32 --no-meta -q > "$T/compared"
    jq -se 'map(select(.metric == "ppl")) | length == 1 and .[0].setting == "on" and
        .[0].base_setting == null and .[0].value != 1' "$T/compared"
    long=(--batch 4 --gen-length 8 --steps 8)
    "${LLADA_GEN[@]}" "${long[@]}" --dtype f32 --tf32 on "$F/prompts" > "$T/on"
    conforms "$T/on"
    jq -se 'all(.tf32 == "on" and (.config | contains(" tf32=on")))' "$T/on"
    "${LLADA_GEN[@]}" "${long[@]}" --dtype f32 --tf32 on --explain "$F/prompts" |
        jq -e '.exact == false'
    # bf16, a processor, and a device without the library have no such field
    "${LLADA_GEN[@]}" "${long[@]}" --dtype bf16 --tf32 on "$F/prompts" > "$T/other"
    "${LLADA_GEN[@]}" "${long[@]}" --dtype f32 --tf32 on --device cpu "$F/prompts" >> "$T/other"
    EMULATE_LIBRARY=0 "${LLADA_GEN[@]}" "${long[@]}" --dtype f32 --tf32 on "$F/prompts" \
        >> "$T/other"
    jq -se 'length == 12 and all(has("tf32") | not)' "$T/other"
}
