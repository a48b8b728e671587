#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Memory options of the tools: levels, settings from a file, planned and allocated bytes, the order
# of savings when memory is short. Records of oom and --halve: gen-llada.bats; a device: gpu.bats.
load conforms

setup() {
    set -o pipefail
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    BIN=${BIN:-build/bin}
    T=$BATS_TEST_TMPDIR
    for n in 3 40 11 7 25; do
        jq -nc --argjson n "$n" '{id: "p\($n)", prompt_ids: [range(10; 10 + $n)]}'
    done > "$T/prompts"
    LLADA=("$BIN/gen-llada" -m data/models/llada-demo --device cpu --gen-length 16 --steps 4)
    LLAMA=("$BIN/gen-llama" -m data/models/llama-demo --device cpu --max-new 8 --ignore-eos)
}

generations() { jq -c 'select(.kind == "generation")' "$1"; }
ids() { jq -c 'select(.kind == "generation") | [.id, .batch, .token_ids]' "$1" | sort; }

# refused CODE TEXT COMMAND...: tests that COMMAND ends with CODE, no output, and one line with TEXT
refused() {
    run --separate-stderr "${@:3}"
    [ "$status" -eq "$1" ] && [ -z "$output" ] && [ "${#stderr_lines[@]}" -eq 1 ] &&
        [[ "$stderr" == *"$2"* ]] || { echo "$status: $stderr"; return 1; }
}

@test "a level prints its options and is in records; explicit options override it" {
    "${LLAMA[@]}" --no-meta "$T/prompts" > "$T/none" 2> "$T/said"
    [ ! -s "$T/said" ]
    jq -se 'all(.level == null and .quant == "none")' "$T/none"
    at() { # LEVEL TEXT OPTION...: it says the text, and is what these options are
        "${LLAMA[@]}" --no-meta --level "$1" "$T/prompts" > "$T/$1" 2> "$T/said"
        grep -qF "level $1:$2; always on" "$T/said"
        "${LLAMA[@]}" --no-meta "${@:3}" "$T/prompts" > "$T/plain"
        cmp <(jq -c '[.config, .point, .kv_dtype, .quant, .token_ids]' "$T/$1") \
            <(jq -c '[.config, .point, .kv_dtype, .quant, .token_ids]' "$T/plain")
        jq -se --arg l "$1" 'all(.level == $l)' "$T/$1"
        conforms "$T/$1"
    }
    at exact " nothing is switched on"
    cmp <(ids "$T/exact") <(ids "$T/none")
    at mild " --kv-dtype bf16 --row-tile 512" --kv-dtype bf16 --row-tile 512
    at moderate " --kv-dtype bf16 --quant int8 --row-tile 512" --kv-dtype bf16 --quant int8 \
        --row-tile 512
    at aggressive " --kv-dtype bf16 --quant nf4 --row-tile 512" --kv-dtype bf16 --quant nf4 \
        --row-tile 512
    jq -s 'map(map(.memory.planned_bytes) | max) | . == (sort | reverse) and .[0] > 2 * .[3]' \
        <(jq -s . "$T/exact") <(jq -s . "$T/mild") <(jq -s . "$T/moderate") \
        <(jq -s . "$T/aggressive") | grep -x true > /dev/null
    "${LLAMA[@]}" --no-meta --level aggressive --quant none "$T/prompts" > "$T/out" 2> "$T/said"
    grep -qF "level aggressive: --kv-dtype bf16 --quant none (given) --row-tile 512;" "$T/said"
    jq -se 'all(.level == "aggressive" and .quant == "none" and .kv_dtype == "bf16")' "$T/out"
    "${LLAMA[@]}" --no-meta --level mild --row-tile 0 "$T/prompts" > "$T/out" 2> "$T/said"
    grep -qF " --row-tile 0 (given);" "$T/said"
    refused 64 "got 'moderat' (did you mean moderate?)" "${LLAMA[@]}" --level moderat "$T/prompts"
}

@test "no level changes the format of a packed checkpoint" {
    "$BIN/pack-model" -q -m data/models/llama-demo --quant int8 --out "$T/packed" -o "$T/pack"
    "$BIN/gen-llama" -m "$T/packed" --level aggressive --max-new 2 --no-meta --limit 1 \
        "$T/prompts" > "$T/out" 2> "$T/said"
    jq -e '.quant == "int8" and .kv_dtype == "bf16"' "$T/out"
    grep -qF "no --quant (the checkpoint is packed)" "$T/said"
}

@test "aliases from other programs set the options of this one" {
    one() { "${LLAMA[@]}" --no-meta -q --limit 1 --max-new 1 "$@" "$T/prompts"; }
    one --apply-all | jq -e '.level == "aggressive" and .quant == "nf4"'
    one --load-in-8bit | jq -e '.level == null and .quant == "int8"'
    one --load-in-4bit | jq -e '.quant == "nf4"'
    one --cache-precision bfloat16 | jq -e '.kv_dtype == "bf16" and (.config | contains("kv=bf16"))'
    echo '{"OPTIMIZED_GPU_MEMORY": true, "CACHE_PRECISION": "float32"}' > "$T/file"
    one --settings "$T/file" --quant int8 | jq -e '.kv_dtype == "f32"'
    one --use-kv-cache off | jq -e '.cache == "off"'
    one --compile off | jq -e '.status == "ok"'
    echo '{"use_kv_cache": true, "compile": false}' > "$T/file"
    one --settings "$T/file" | jq -e '.cache == "on"'
    refused 64 "--cache-precision float16: keys and values are kept as bfloat16 or float32" \
        "${LLAMA[@]}" --cache-precision float16 "$T/prompts"
    refused 64 "use-kv-cache" "${LLADA[@]}" --use-kv-cache on "$T/prompts"
}

@test "only --level aggressive runs the model of --pruned" {
    "$BIN/pack-model" -q -m data/models/llama-demo --prune-ffn 0.3 --prune-score l2 \
        --out "$T/pruned" -o "$T/pack"
    "${LLAMA[@]}" --max-new 2 --level aggressive --pruned "$T/pruned" --no-meta "$T/prompts" \
        > "$T/out" 2> "$T/said"
    grep -q "level aggressive: .*--quant nf4 .*--pruned $T/pruned;" "$T/said"
    "${LLAMA[@]}" -m "$T/pruned" --max-new 2 --level aggressive --no-meta -q "$T/prompts" \
        > "$T/same"
    "${LLAMA[@]}" --max-new 2 --level aggressive --no-meta -q "$T/prompts" > "$T/whole"
    cmp <(ids "$T/out") <(ids "$T/same")
    weights() { jq -s '.[0].memory.weights_bytes' "$1"; }
    [ "$(weights "$T/out")" -eq "$(weights "$T/same")" ]
    [ "$(weights "$T/out")" -lt "$(weights "$T/whole")" ]
    "${LLAMA[@]}" --max-new 2 --level moderate --pruned "$T/pruned" --no-meta "$T/prompts" \
        > "$T/out" 2> "$T/said"
    grep -q -- "--pruned $T/pruned is not used: it needs --level aggressive" "$T/said"
    refused 65 "expected a checkpoint that pack-model --prune-heads or --prune-ffn made" \
        "${LLAMA[@]}" --level aggressive --pruned data/models/judge-demo "$T/prompts"
}

@test "--settings reads options from a file; options of the command line override them" {
    cat > "$T/file" << 'END'
{"steps": [2, 4], "GEN_LENGTH": 8, "batch": "1,5", "quant": "int8", "stop_at_eos": false,
 "temperature": 0.5, "mem_cap": "1G", "unmask": null, "quiet": true, "halve": true}
END
    "$BIN/gen-llada" -m data/models/llada-demo --settings "$T/file" --no-meta --batch 5 \
        "$T/prompts" > "$T/out"
    jq -se 'length == 10 and all(.gen_length == 8 and .batch == 5 and .quant == "int8" and
        .temperature == 0.5 and .contract == "fixed") and (map(.steps) | unique == [2, 4])' "$T/out"
    "$BIN/gen-llada" -m data/models/llada-demo --device cpu --gen-length 8 --steps 2,4 --batch 5 \
        --quant int8 --temperature 0.5 --no-meta "$T/prompts" > "$T/same"
    cmp <(ids "$T/out") <(ids "$T/same")
    echo '{"contract": "fixed", "level": "mild"}' > "$T/file"
    "${LLAMA[@]}" --settings "$T/file" --level moderate --no-meta -q "$T/prompts" |
        jq -se 'all(.level == "moderate" and .quant == "int8")'
}

@test "--settings refuses a missing or invalid file" {
    file() { # TEXT CONTENT
        printf '%s' "$2" > "$T/file"
        refused 65 "$1" "${LLADA[@]}" --settings "$T/file" "$T/prompts"
    }
    file "'qaunt' is not an option of gen-llada (did you mean quant?)" '{"qaunt": "int8"}'
    file "'x\x0ay' is not an option" '{"x\ny": 1}'
    file "is not an option" "{\"$(printf 'a%.0s' {1..5000})\": 1}"
    formats='int8|nf4|fp8|int8-vector|nf4-f32|fp4|q4'
    file "--quant: expected one of none|$formats, got 'int7' (did you mean int8?)" \
        '{"quant": "int7"}'
    file "--threads: expected an integer from 0 to 1024, got '-1'" '{"threads": -1}'
    file "--threads: expected an integer from 0 to 1024, got '1,2'" '{"threads": [1, 2]}'
    file "--explain: expected true or false, got '1'" '{"explain": 1}'
    file "steps: expected a text, a number, true, false or a list of them, got {" '{"steps": {}}'
    file "steps: expected a text" '{"steps": []}'
    file "steps: expected a text" '{"steps": [[1]]}'
    file "steps: expected a text" '{"steps": "1\u0000"}'
    file "cannot name another one" '{"settings": "other"}'
    file "expected an object of options" '[1]'
    file "$T/file" '{"steps": 1'
    file "$T/file" '{"steps": 1, "steps": 2}'
    head -c 1048577 /dev/zero | tr '\0' ' ' > "$T/large"
    refused 65 large "${LLADA[@]}" --settings "$T/large" "$T/prompts"
    refused 66 none "${LLADA[@]}" --settings "$T/none" "$T/prompts"
    printf '{"steps": 0}' > "$T/file"
    refused 64 "with --settings $T/file: --steps: expected" "$BIN/gen-llada" \
        -m data/models/llada-demo --settings "$T/file" "$T/prompts"
}

@test "--explain prints the plan of an 8B shape in little memory and ends with 0" {
    [ "$(nm -D "$BIN/gen-llama" | grep -c __asan)" -eq 0 ] || skip "sanitizers take memory"
    explain() { (ulimit -v 3000000; "$BIN/$1" -m "synth:$2" --device cpu "${@:3}" "$T/prompts"); }
    explain gen-llada llada-8b --explain --dtype bf16 --mem-cap 8G --batch 1,4 \
        -o "$T/out" 2> "$T/said"
    conforms "$T/out"
    jq -se 'map(.kind) == ["meta", "plan", "plan", "end"] and
        all(.[1:3][]; .fits == false and .batch_fits == 0 and .exact and
            .weights_bytes > 16.0e9 and .weights_bytes < 16.1e9 and .kv_bytes == 0 and
            .available_bytes == 8 * pow(2; 30) and .logits_bytes < .activations_bytes and
            .planned_bytes == .weights_bytes + .kv_bytes + .activations_bytes)' "$T/out"
    [ "$(grep -c 'MB of weights.* 0 of [14] prompts fit together (try --on-oom plan)' \
        "$T/said")" -eq 2 ]
    explain gen-llada llada-8b --explain --level aggressive --mem-cap 8G --no-meta \
        > "$T/out" 2> "$T/said"
    jq -e '.fits and .batch_fits == 1 and .exact == false and .level == "aggressive" and
        .quant == "nf4" and .weights_bytes < 6.2e9' "$T/out"
    grep -q 'level aggressive: ' "$T/said"
    grep -q 'synth:llada-8b on cpu: matrices bf16-f32, quantization nf4, cache bf16; ' "$T/said"
    grep -q ': it fits$' "$T/said"
    # a plan prints the chosen level before anything is loaded, and that level fits
    explain gen-llama llama3-8b --explain --on-oom plan --mem-cap 10G --no-meta \
        > "$T/out" 2> "$T/said"
    jq -e '.fits and .level == "moderate" and .quant == "int8"' "$T/out"
    grep -q 'W110.* it runs at level moderate (--on-oom plan)' "$T/said"
}

# plan FILE COMMAND...: tests that the plan of --explain for each point is what its run takes, kind
# by kind, and that each batch takes its plan within 5 %.
plan() {
    "${@:2}" --no-meta -q --explain "$T/prompts" > "$T/plan"
    "${@:2}" --no-meta -q "$T/prompts" > "$1"
    jq -n --slurpfile plan "$T/plan" --slurpfile run "$1" '
        def near($a; $b): ($a - $b) * ($a - $b) <= $b * $b * 0.0004; # 2 %
        ($run | group_by(.point)) as $points
        | ($points | length) == ($plan | length)
          and ($points | map(.[0].config) | unique) == ($plan | map(.config) | unique)
          and all($run[]; .status == "ok" and
              near(.memory.planned_bytes; .memory.allocated_peak_bytes))
          and all($plan[]; . as $p | $points[] | select(.[0].config == $p.config)
              | (max_by(.memory.planned_bytes) | .memory) as $m
              | $p.fits and near($p.planned_bytes; $m.allocated_peak_bytes)
                and near($p.weights_bytes; $m.weights_bytes)
                and near($p.kv_bytes; $m.kv_bytes)
                and near($p.activations_bytes; $m.activations_bytes))' | grep -qx true ||
        { echo "${*:2}"; cat "$T/plan"; jq -c '[.config, .memory]' "$1"; return 1; }
}

@test "allocated memory equals the plan over formats, batches, lengths and caches" {
    sed -i 3q "$T/prompts"
    for format in "--dtype f32" "--dtype bf16 --kv-dtype f32" "--level mild" "--level moderate" \
        "--level aggressive"; do
        # shellcheck disable=SC2086
        plan "$T/run" "$BIN/gen-llada" -m data/models/llada-demo --device cpu $format \
            --gen-length 16,32 --block-length 16 --steps 2 --batch 1,3 --cache none,dual,features
        # shellcheck disable=SC2086
        plan "$T/run" "$BIN/gen-llama" -m data/models/llama-demo --device cpu $format \
            --max-new 2,6 --batch 1,3 --cache on,off
    done
    for shape in tiny-llada:gen-llada tiny-llama:gen-llama; do
        plan "$T/run" "$BIN/${shape#*:}" -m "synth:${shape%:*}" --device cpu --batch 1,3
        plan "$T/run" "$BIN/${shape#*:}" -m "synth:${shape%:*}" --device ref --quant int8 --batch 2
    done
    plan "$T/run" "${LLAMA[@]}" --max-new 3 --admit static,continuous --batch 1,2
    for rate in 0 1000; do # any prompt may take any place
        for batch in 2 3 5; do
            plan "$T/run" "${LLAMA[@]}" --max-new 3 --batch $batch --admit continuous \
                --arrival-rate $rate
            plan "$T/run" "${LLADA[@]}" --batch $batch --admit continuous --arrival-rate $rate
        done
    done
    plan "$T/run" "${LLAMA[@]}" --max-new 3 --draft data/models/judge-demo --draft-tokens 0,3
}

@test "allocated memory equals the plan for 8192 tokens of prompt and for 128 prompts" {
    for system in llada llama; do
        cp -r data/models/$system-demo "$T/$system"
        sed -E 's/("max_(sequence_length|position_embeddings)": )512/\110000/' \
            data/models/$system-demo/config.json > "$T/$system/config.json"
    done
    jq -cn '{id: "long", prompt_ids: [range(8192) | . * 7 % 1000]}' > "$T/prompts"
    plan "$T/run" "$BIN/gen-llama" -m "$T/llama" --max-new 2 --ignore-eos
    plan "$T/run" "$BIN/gen-llada" -m "$T/llada" --gen-length 4 --steps 1
    jq -cn 'range(128) | {id: "p\(.)", prompt_ids: [range(5 + . % 7)]}' > "$T/prompts"
    plan "$T/run" "$BIN/gen-llama" -m "$T/llama" --max-new 8 --ignore-eos --batch 128
    plan "$T/run" "$BIN/gen-llada" -m "$T/llada" --gen-length 8 --steps 2 --batch 128 \
        --cache none,dual
}

@test "allocated memory equals the plan for prompts of 32,000 ids" {
    "$BIN/write-corpus" -q --count 40 --seed 1 -o "$T/corpus"
    for system in llada llama; do # small models: attention over 32,000 ids is slow
        "$BIN/train-lm" -q --arch $system --width 64 --layers 2 --heads 2 --kv-heads 1 --ffn 96 \
            --vocab 300 --context 512 --steps 1 --rows 64 --min-len 16 --max-len 32 \
            --out "$T/$system" "$T/corpus" > "$T/loss"
        sed -i -E 's/("max_(sequence_length|position_embeddings)": )512/\133000/' \
            "$T/$system/config.json"
    done
    jq -cn '{id: "long", prompt_ids: [range(32000) | . * 7 % 250]}' > "$T/prompts"
    plan "$T/run" "$BIN/gen-llama" -m "$T/llama" --device cpu --max-new 1 --ignore-eos
    plan "$T/run" "$BIN/gen-llada" -m "$T/llada" --device cpu --gen-length 4 --steps 1
    jq -se '.[0] | .prompt_tokens == 32000 and .status == "ok"' "$T/run"
}

@test "a draft model that a point does not use is in none of its bytes" {
    own() { jq -S 'select((.draft_tokens // 0) == 0) | .memory // {weights_bytes, planned_bytes}
        | del(.load_peak_bytes, .load_allocated_peak_bytes, .huge_page_bytes, .device_peak_bytes,
              .process_peak_bytes)' "$@"; }
    guess=(--draft data/models/judge-demo --draft-tokens 0,3)
    for more in "" --explain; do
        # shellcheck disable=SC2086
        "${LLAMA[@]}" --max-new 3 --no-meta -q $more "$T/prompts" > "$T/plain"
        # shellcheck disable=SC2086
        "${LLAMA[@]}" --max-new 3 --no-meta -q $more "${guess[@]}" "$T/prompts" > "$T/both"
        own "$T/plain" > "$T/expected"
        [ -s "$T/expected" ]
        own "$T/both" | diff "$T/expected" -
    done
    # the file exists, so a run must have room for it
    need=$(jq -s 'map(.planned_bytes) | max' "$T/both")
    "${LLAMA[@]}" --max-new 3 --no-meta -q --explain "${guess[@]}" --mem-cap $((need / 2)) \
        "$T/prompts" | jq -se 'length == 2 and all(.fits | not)'
}

@test "on a device a draft model that a point does not use is in none of its bytes" {
    export CROSSOVER_CUDA="${TESTBIN:-build/tests}/libcrossover-cuda.so"
    [ -e "$CROSSOVER_CUDA" ] || skip "no C++ compiler, so no emulated device"
    sed -i 1q "$T/prompts"
    # device FILE [option...]: prints the memory of the point without guesses
    device() {
        "$BIN/gen-llama" -q --no-meta -m data/models/llama-demo --device cuda --dtype f32 \
            --max-new 3 "${@:2}" "$T/prompts" | jq 'select(.draft_tokens == 0).memory' > "$1"
    }
    device "$T/plain"
    device "$T/both" --draft data/models/llama-demo --draft-tokens 0,3
    jq -se '(map([.weights_bytes, .requested_bytes, .allocated_bytes, .planned_bytes]) | unique |
        length) == 1 and all(.allocated_peak_bytes <= .reserved_peak_bytes)' "$T/plain" "$T/both"
}

@test "--on-oom plan takes the first level that fits, prints and records it" {
    need() { "${LLAMA[@]}" --no-meta -q --explain "$@" "$T/prompts" | jq .planned_bytes; }
    cap=$((($(need --level mild) + $(need --level moderate)) / 2))
    run --separate-stderr "${LLAMA[@]}" --mem-cap "$cap" --no-meta "$T/prompts"
    [ "$status" -eq 1 ]
    jq -se 'all(.status == "oom" and .level == null)' <<< "$output"
    "${LLAMA[@]}" --mem-cap "$cap" --on-oom plan --no-meta "$T/prompts" > "$T/out" 2> "$T/said"
    grep -q 'W110: llama-demo: a prompt of 40 tokens and 8 to generate need .* bytes .* and '\
'--mem-cap has .* free of .*; it runs at level moderate (--on-oom plan)$' "$T/said"
    grep -q ' level moderate: --kv-dtype bf16 --quant int8 --row-tile 512;' "$T/said"
    "${LLAMA[@]}" --level moderate --no-meta -q "$T/prompts" > "$T/moderate"
    jq -se --argjson cap "$cap" 'all(.status == "ok" and .level == "moderate" and
        .quant == "int8" and .new_tokens == 8 and .memory.reserved_peak_bytes <= $cap)' "$T/out"
    cmp <(ids "$T/out") <(ids "$T/moderate")
    # explicit options stay, so the run does not fit
    run --separate-stderr "${LLAMA[@]}" --mem-cap "$cap" --on-oom plan --quant none \
        --device-map all --no-meta "$T/prompts"
    [ "$status" -eq 1 ]
    [[ $stderr == *"W110"*"no level is small enough (--on-oom plan)"* ]]
    jq -se 'all(.status == "oom" and .level == null)' <<< "$output"
    # a run that fits is not changed
    "${LLAMA[@]}" --on-oom plan --no-meta "$T/prompts" > "$T/out" 2> "$T/said"
    [ ! -s "$T/said" ]
    jq -se 'all(.level == null and .batch_halved == false)' "$T/out"
}

@test "--on-oom plan halves a batch that does not fit before it changes a level" {
    one=$("${LLADA[@]}" --no-meta "$T/prompts" | jq -s 'map(.memory.reserved_peak_bytes) | max')
    "${LLADA[@]}" --batch 5 --on-oom plan --mem-cap "$one" --no-meta "$T/prompts" \
        > "$T/out" 2> "$T/said"
    jq -se 'length == 5 and all(.status == "ok" and .level == null and .batch == 5 and
        .batch_halved and .batch_filled < 5 and .gen_length == 16 and .denoise_steps == 4)' \
        "$T/out"
    "${LLADA[@]}" --no-meta --batch 5 "$T/prompts" > "$T/whole"
    cmp <(ids "$T/out") <(ids "$T/whole")
    [ "$(grep -c 'do not fit together: they and later batches run as halves' "$T/said")" -eq 1 ]
    "${LLADA[@]}" --batch 5 --mem-cap "$one" --explain --no-meta -q "$T/prompts" |
        jq -e '.fits == false and .batch_fits == 1'
}

@test "blocks are allocated for a batch and none in a pass; fragmentation is recorded" {
    "${LLADA[@]}" --gen-length 16 --steps 2,16 --cache none,dual --no-meta -q "$T/prompts" |
        jq -se 'all(.memory | .fragmentation_ratio >= 1 and .fragmentation_ratio < 1.5 and
            .load_peak_bytes > .weights_bytes and
            .load_allocated_peak_bytes == .weights_bytes) and
            (group_by(.cache) | all(map(.memory.alloc_calls) | unique | length == 1))'
    "${LLAMA[@]}" --max-new 1,30 --no-meta -q "$T/prompts" |
        jq -se 'map(.memory.alloc_calls) | unique | length == 1 and .[0] > 0 and .[0] < 9'
    "${LLAMA[@]}" --mem-cap 10K --no-meta -q --limit 1 "$T/prompts" > "$T/out" || [ $? -eq 1 ]
    jq -e '.memory.planned_bytes == null' "$T/out"
    conforms "$T/out"
}

@test "on a device that is too small --on-oom cpu uses the CPU, --on-oom plan a level" {
    export CROSSOVER_CUDA="${TESTBIN:-build/tests}/libcrossover-cuda.so"
    [ -e "$CROSSOVER_CUDA" ] || skip "no C++ compiler, so no emulated device"
    small=("$BIN/gen-llama" -m data/models/llama-demo --device cuda --max-new 2 --no-meta
           --limit 1 "$T/prompts")
    EMULATE_MEMORY=2200000 "${small[@]}" --on-oom cpu > "$T/out" 2> "$T/said"
    jq -se 'all(.status == "ok" and .device == "cpu" and .device_name == null and
        (.config | contains("device=cpu")))' "$T/out"
    grep -q 'W110: .* and emulated device (host) has .*; it runs on the CPU, ' "$T/said"
    "${small[@]}" --on-oom cpu 2> "$T/said" | jq -se 'all(.device == "cuda")'
    [ ! -s "$T/said" ]
    EMULATE_MEMORY=32000000 "$BIN/gen-llama" -m data/models/llama-demo --device cuda --dtype f32 \
        --max-new 2 --no-meta --limit 1 --on-oom plan "$T/prompts" > "$T/out" 2> "$T/said"
    jq -se 'all(.status == "ok" and .device == "cuda" and .level != null and
        .memory.load_allocated_peak_bytes >= .memory.weights_bytes and
        .memory.load_allocated_peak_bytes < 2 * .memory.weights_bytes)' "$T/out"
    grep -q 'W110: .* it runs at level ' "$T/said"
}

