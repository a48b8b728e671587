#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Offloaded layers with their keys and values: the same tokens for any number of them, memory as
# planned, messages before the run, offloading as the last measure, a store that cannot be made.
load conforms

setup() {
    set -o pipefail
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    BIN=${BIN:-build/bin}
    T=$BATS_TEST_TMPDIR
    mkdir "$T/spool"
    export TMPDIR=$T/spool
    for n in 3 40 11; do
        jq -nc --argjson n "$n" '{id: "p\($n)", prompt_ids: [range(10; 10 + $n)]}'
    done > "$T/prompts"
    LLADA=("$BIN/gen-llada" -m data/models/llada-demo --device cpu --gen-length 16 --steps 4)
    LLAMA=("$BIN/gen-llama" -m data/models/llama-demo --device cpu --max-new 8 --ignore-eos)
}

ids() {
    jq -c 'select(.kind == "generation") | [.id, .batch, .cache, .token_ids]' "$1" | sort
}

# refused CODE TEXT COMMAND...: tests that COMMAND ends with CODE, no output, and a last line with
# TEXT
refused() {
    run --separate-stderr "${@:3}"
    [ "$status" -eq "$1" ] && [ -z "$output" ] &&
        [[ "${stderr_lines[-1]}" == *"$2"* ]] || { echo "$status: $stderr"; return 1; }
}

# same COMMAND...: tests that COMMAND gives the same tokens with any number of offloaded layers (0
# to 4 of 4), and that its records have this number.
same() {
    "$@" --no-meta -q "$T/prompts" > "$T/whole"
    jq -se 'all(has("offload_layers") or has("offload_bytes") | not)' "$T/whole"
    for map in 0 2 last:1; do
        "$@" --no-meta -q --device-map "$map" "$T/prompts" > "$T/out" || return 1
        cmp <(ids "$T/out") <(ids "$T/whole") || { echo "$map: $*"; return 1; }
        jq -se --arg map "$map" '($map | split(":") | last | tonumber) as $stay
            | all(.status == "ok" and .offload_layers == 4 - $stay and .slow_down_ratio >= 1 and
                  .offload_bytes_per_s > 0 and (.config | contains(" offload=\(4 - $stay)")))
            and all(.offload_bytes > .offload_kv_bytes and
                    (.memory.kv_bytes == 0) == (.offload_kv_bytes == 0))' "$T/out" || return 1
    done
}

@test "any device map gives the same tokens, for both models, batches, caches and formats" {
    same "${LLADA[@]}" --batch 1,3 --cache none,dual,features
    same "${LLADA[@]}" --block-length 8 --steps 8 --limit 2 --cache prefix,sparse,vicinity,delayed
    same "${LLADA[@]}" --cfg-scale 1 --unmask threshold --temperature 0.5
    same "${LLAMA[@]}" --batch 1,3 --cache on,off
    same "${LLAMA[@]}" --lookup 3 --batch 2
    for map in all 4 99; do # all layers stay: the same point
        "${LLAMA[@]}" --lookup 3 --batch 2 --no-meta -q --device-map "$map" "$T/prompts" > "$T/out"
        cmp <(jq -c "[.point, .token_ids]" "$T/out") <(jq -c "[.point, .token_ids]" "$T/whole")
    done
    for quant in int8 nf4; do
        same "${LLADA[@]}" --quant "$quant"
        same "${LLAMA[@]}" --quant "$quant" --batch 3
    done
    "${LLADA[@]}" --device-map 1 -o "$T/records" "$T/prompts" 2> "$T/said"
    conforms "$T/records"
    jq -se 'map(select(.kind == "generation")) | length == 3 and
        all(.offload_wait_ns >= 0 and .offload_wait_ns <= .batch_ns)' "$T/records"
    grep -q 'llada-demo: 3 of 4 layers are offloaded: a pass reads .* MB '\
'(.* of keys and values) at .* MB/s (measured), '\
'which takes .* s, while it computes for .* s (measured on layers): .* times as long$' "$T/said"
    rmdir "$T/spool"
}

# planned ALL CAP COMMAND...: COMMAND is oom under CAP. Tests that with --device-map auto it gives
# its ids below CAP, within 5 % of a plan below ALL, the bytes that it takes whole.
planned() {
    run --separate-stderr "${@:3}" --mem-cap "$2" --no-meta -q "$T/prompts"
    [ "$status" -eq 1 ]
    jq -se 'all(.status == "oom")' <<< "$output"
    "${@:3}" --mem-cap "$2" --device-map auto --no-meta -q "$T/prompts" > "$T/out"
    "${@:3}" --no-meta -q "$T/prompts" > "$T/whole"
    cmp <(ids "$T/out") <(ids "$T/whole")
    jq -se --argjson cap "$2" --argjson all "$1" '
        def near($a; $b): ($a - $b) * ($a - $b) <= $b * $b * 0.0025;
        all(.status == "ok" and .offload_layers >= 3 and (.memory |
            .reserved_peak_bytes <= $cap and .load_allocated_peak_bytes <= $cap and
            near(.planned_bytes; .allocated_peak_bytes) and .planned_bytes < $all))' "$T/out" ||
        { jq -c '[.offload_layers, .memory]' "$T/out"; return 1; }
}

# needs COMMAND...: prints the bytes of its largest batch.
needs() { "$@" --no-meta -q --explain "$T/prompts" | jq -s 'map(.planned_bytes) | max'; }

@test "--device-map auto runs in less memory than the weights take, with the same tokens" {
    for command in LLADA LLAMA; do
        declare -n run=$command
        all=$(needs "${run[@]}" --dtype f32)
        least=$(needs "${run[@]}" --dtype f32 --device-map 0)
        [ "$least" -lt $((all * 9 / 10)) ]
        planned "$all" $((least + least / 20)) "${run[@]}" --dtype f32
        all=$(needs "${run[@]}" --batch 3 --quant int8)
        least=$(needs "${run[@]}" --batch 3 --quant int8 --device-map 0)
        planned "$all" $((least + least / 16)) "${run[@]}" --batch 3 --quant int8
    done
    # a model that fits has no offloaded layer
    "${LLAMA[@]}" --device-map auto --mem-cap 1G --no-meta "$T/prompts" 2> "$T/said" |
        jq -se 'all(has("offload_layers") | not)'
    [ ! -s "$T/said" ]
    run --separate-stderr "${LLAMA[@]}" --device-map auto --mem-cap 100K --no-meta "$T/prompts"
    [ "$status" -eq 1 ]
    [[ $stderr == *"W112"*"does not fit even with all layers offloaded"* ]]
}

@test "a long text runs in memory that holds neither all weights nor all keys and values" {
    "$BIN/write-corpus" --count 40 --seed 1 -o "$T/corpus"
    for arch in llama llada; do
        "$BIN/train-lm" -q --arch "$arch" --out "$T/$arch" --width 64 --layers 24 --heads 4 \
            --kv-heads 4 --ffn 256 --vocab 300 --context 1024 --steps 2 --rows 64 --min-len 16 \
            --max-len 32 "$T/corpus" > "$T/loss"
    done
    long() { # MODEL COMMAND...: with ids, batches and memory as without a cap
        local all cap
        all=("$BIN/gen-$1" -m "$T/$1" --device cpu --dtype f32 --row-tile 64 "${@:2}" "$T/prompts"
             --no-meta -q)
        cap=$("${all[@]}" --explain --device-map 0 | jq '.planned_bytes * 1.2 | floor')
        "${all[@]}" --explain | jq -se --argjson cap "$cap" \
            'all(.weights_bytes > $cap and .kv_bytes > $cap)'
        "${all[@]}" > "$T/whole"
        "${all[@]}" --device-map auto --mem-cap "$cap" > "$T/out"
        cmp <(ids "$T/out") <(ids "$T/whole")
        jq -se --argjson cap "$cap" 'all(.status == "ok" and .offload_layers >= 16 and
            .offload_kv_bytes > $cap and .memory.reserved_peak_bytes <= $cap and
            .memory.planned_bytes == .memory.allocated_peak_bytes)' "$T/out"
    }
    jq -nc '{id: "p", prompt_ids: [range(10; 290)]}' > "$T/prompts"
    long llama --max-new 80 --ignore-eos
    long llada --gen-length 320 --block-length 64 --steps 10 --cache prefix
}

# apart COMMAND...: tests the same tokens with keys and values of any number of layers offloaded,
# the matrices in memory or not, in the planned memory.
apart() {
    "$@" --no-meta -q "$T/prompts" > "$T/whole"
    for map in 0 first:2; do
        stay=${map#*:}
        "$@" --no-meta -q --kv-map "$map" "$T/prompts" > "$T/out" || return 1
        cmp <(ids "$T/out") <(ids "$T/whole") || { echo "$map: $*"; return 1; }
        jq -se --argjson kv $((4 - stay)) 'all(.status == "ok" and .offload_kv_layers == $kv and
            (has("offload_layers") | not) and .offload_bytes == .offload_kv_bytes and
            .offload_bytes > 0 and .slow_down_ratio >= 1 and
            (.config | contains(" kv_offload=\($kv)")) and
            .memory.planned_bytes == .memory.allocated_peak_bytes)' "$T/out" || return 1
    done
    "$@" --no-meta -q --kv-map all --device-map 1 "$T/prompts" > "$T/out"
    cmp <(ids "$T/out") <(ids "$T/whole")
    jq -se 'all(.offload_layers == 3 and .offload_kv_layers == 0 and .offload_kv_bytes == 0 and
        .offload_bytes > 0 and .memory.planned_bytes == .memory.allocated_peak_bytes)' "$T/out"
}

@test "--kv-map offloads keys and values, keeps matrices resident and changes no token" {
    apart "${LLAMA[@]}" --batch 1,3 --threads 1
    apart "${LLAMA[@]}" --quant nf4 --batch 3 --kv-dtype bf16 --threads 1
    apart "${LLADA[@]}" --block-length 8 --cache prefix,dual --batch 3 --threads 1
    "${LLAMA[@]}" --kv-map 1 -o "$T/records" "$T/prompts" 2> "$T/said"
    conforms "$T/records"
    grep -q 'llama-demo: keys and values of 3 of 4 layers are offloaded, and the matrices of 0$' \
        "$T/said"
    # without a cache there are no keys and values to offload
    "${LLADA[@]}" --kv-map 0 --no-meta -q "$T/prompts" |
        jq -se 'all(.status == "ok" and .offload_bytes == 0 and .slow_down_ratio == 1)'
    for map in -1 x first: auto:2 ''; do
        refused 64 "--kv-map: expected all, auto, N, first:N or last:N, got '$map'" \
            "${LLADA[@]}" --kv-map "$map" "$T/prompts"
    done
}

@test "keys and values are offloaded before matrices if that suffices" {
    jq -nc '{id: "p", prompt_ids: [range(10; 450)]}' > "$T/prompts"
    own=("${LLAMA[@]}" --max-new 40 --batch 1 --no-meta --threads 1)
    all=$("${own[@]}" -q --explain "$T/prompts" | jq .planned_bytes)
    least=$("${own[@]}" -q --explain --kv-map 0 "$T/prompts" | jq .planned_bytes)
    [ "$least" -lt "$all" ]
    "${own[@]}" -q "$T/prompts" > "$T/whole"
    [ $((all - least)) -gt $((all / 32)) ] # of which a host wants a 64th for other things
    cap=$all # whole pages are more
    for how in --kv-map --device-map; do
        "${own[@]}" -q $how auto --mem-cap "$cap" "$T/prompts" > "$T/out"
        cmp <(ids "$T/out") <(ids "$T/whole")
        jq -se --argjson cap "$cap" 'all(.status == "ok" and .offload_kv_layers >= 3 and
            (has("offload_layers") | not) and .memory.reserved_peak_bytes <= $cap)' "$T/out"
    done
    # a plan offloads after all levels, and prints that
    own+=(--kv-dtype f32 --quant none --row-tile 8)
    least=$("${own[@]}" -q --explain --kv-map 0 "$T/prompts" | jq .planned_bytes)
    all=$("${own[@]}" -q --explain "$T/prompts" | jq .planned_bytes)
    "${own[@]}" --on-oom plan --mem-cap "$all" "$T/prompts" \
        > "$T/out" 2> "$T/said"
    grep -q 'W110: llama-demo: .* it runs at level aggressive with keys and values of [34] of 4 '\
'layers offloaded (--on-oom plan)$' "$T/said"
    jq -se 'all(.status == "ok" and .offload_kv_layers >= 3 and
        (has("offload_layers") | not))' "$T/out"
    # explicit options stay
    run --separate-stderr "${own[@]}" --on-oom plan --kv-map all --device-map all \
        --mem-cap "$all" "$T/prompts"
    [ "$status" -eq 1 ]
    # with less memory layers are offloaded with their keys and values
    both=$("${own[@]}" -q --explain --device-map 0 "$T/prompts" | jq .planned_bytes)
    "${own[@]}" -q --device-map auto --mem-cap $(((both * 3 + least) / 4)) "$T/prompts" |
        jq -se 'all(.status == "ok" and .offload_layers >= 3 and
            (has("offload_kv_layers") | not))'
    run --separate-stderr "${own[@]}" --kv-map auto --mem-cap "$both" "$T/prompts"
    [ "$status" -eq 1 ]
    [[ $stderr == *"W112"*"even with all keys and values offloaded (--kv-map auto)"* ]]
}

@test "--explain prints the offloaded layers and their cost, and loads nothing" {
    "${LLADA[@]}" --device-map 1 --batch 1,3 --explain -o "$T/plan" "$T/prompts" 2> "$T/said"
    conforms "$T/plan"
    "${LLADA[@]}" --device-map 1 --batch 1,3 -q --no-meta "$T/prompts" > "$T/run"
    jq -n --slurpfile plan "$T/plan" --slurpfile run "$T/run" '
        ($plan | map(select(.kind == "plan"))) as $plan
        | ($plan | length) == 2 and all($plan[]; . as $p
            | .offload_layers == 3 and .slow_down_ratio >= 1 and .offload_bytes_per_s > 0 and .exact
              and any($run[]; .config == $p.config and .offload_bytes == $p.offload_bytes))' |
        grep -qx true
    [ "$(grep -c ' 3 of 4 layers are offloaded: ' "$T/said")" -eq 2 ]
}

@test "--on-oom plan offloads only if no level fits, and not against --device-map" {
    # with --quant given the last level does not fit, so layers are offloaded
    least=$(needs "${LLAMA[@]}" --kv-dtype bf16 --dtype f32 --device-map 0)
    cap=$((least + least / 20))
    "${LLAMA[@]}" --dtype f32 --quant none --batch 3 --mem-cap "$cap" --on-oom plan --no-meta \
        "$T/prompts" > "$T/out" 2> "$T/said"
    grep -q 'W110: llama-demo: .* it runs at level aggressive with [34] of 4 layers offloaded '\
'(--on-oom plan)$' "$T/said"
    jq -se --argjson cap "$cap" 'all(.status == "ok" and .level == "aggressive" and .quant == "none"
        and .offload_layers >= 3 and .new_tokens == 8 and .memory.reserved_peak_bytes <= $cap)' \
        "$T/out"
    "${LLAMA[@]}" --dtype f32 --kv-dtype bf16 --batch 3 --no-meta -q "$T/prompts" > "$T/whole"
    cmp <(jq -c '[.id, .token_ids]' "$T/out") <(jq -c '[.id, .token_ids]' "$T/whole")
    # a level that fits comes first
    "${LLAMA[@]}" --dtype f32 --mem-cap "$cap" --on-oom plan --no-meta "$T/prompts" 2> "$T/said" |
        jq -se 'all(.status == "ok" and .level != null and .quant != "none" and
            (has("offload_layers") | not))'
    run --separate-stderr "${LLAMA[@]}" --dtype f32 --quant none --device-map all \
        --mem-cap "$cap" --on-oom plan --no-meta "$T/prompts"
    [ "$status" -eq 1 ]
    [[ $stderr == *"W110"*"no level is small enough"* ]]
}

@test "a store that cannot be made gives 73 or 74, an invalid map 64" {
    for map in -1 x 3x first: first:x auto:2 ''; do
        refused 64 "--device-map: expected all, auto, N, first:N or last:N, got '$map'" \
            "${LLADA[@]}" --device-map "$map" "$T/prompts"
    done
    refused 73 "$T/none: cannot create a file for layers: No such file or directory "\
"(choose another folder with --offload-dir)" "${LLADA[@]}" --device-map 0 \
        --offload-dir "$T/none" "$T/prompts"
    refused 73 "$T/prompts: cannot create a file for layers: Not a directory" \
        "${LLADA[@]}" --device-map 0 --offload-dir "$T/prompts" "$T/prompts"
    refused 73 "cannot create a file for layers" \
        env TMPDIR="$T/none" "${LLADA[@]}" --device-map 0 "$T/prompts"
    (
        trap '' XFSZ
        ulimit -f 100
        refused 74 "bytes of layers: File too large" \
            "${LLADA[@]}" --device-map 0 "$T/prompts"
    )
    rmdir "$T/spool"
}

@test "a store folder in memory saves nothing, and a warning says so" {
    [ "$(stat -f -c %T /dev/shm 2> /dev/null)" = tmpfs ] && [ -w /dev/shm ] || skip "no tmpfs here"
    own=("${LLADA[@]}" --offload-dir /dev/shm --no-meta "$T/prompts" -o "$T/out")
    "${own[@]}" --device-map 1 2> "$T/said"
    grep -q 'W113: /dev/shm: this folder for offloaded layers is in memory itself' "$T/said"
    "${own[@]}" --device-map 4 2> "$T/said"
    [ "$(grep -c W113 "$T/said")" -eq 0 ]
}

@test "an interrupted run leaves no file of layers; a running one has no visible file" {
    "${LLADA[@]}" --device-map 0 --gen-length 256 --block-length 32 --steps 256 --repeat 100 \
        -o "$T/out" "$T/prompts" 2> "$T/said" &
    for _ in {1..600}; do # behind the store that is only timed
        [ ! -s "$T/.out.tmp" ] || ! ls -l "/proc/$!/fd" | grep -q "$T/spool/.*(deleted)" || break
        sleep 0.1
    done
    ls -l "/proc/$!/fd" | grep "$T/spool/.*(deleted)" > /dev/null
    [ -z "$(ls -A "$T/spool")" ]
    kill -INT $!
    status=0
    wait $! || status=$?
    [ "$status" -eq 130 ]
    rmdir "$T/spool"
}

@test "on an emulated device tokens are the same, passes recorded, and memory as planned" {
    export CROSSOVER_CUDA="${TESTBIN:-build/tests}/libcrossover-cuda.so"
    [ -e "$CROSSOVER_CUDA" ] || skip "no C++ compiler, so no emulated device"
    sed -i 1q "$T/prompts"
    on() { # STAY TOOL MODEL OPTION...: it runs with all layers but STAY outside, too
        for map in all $1; do
            "$BIN/$2" -m "$3" --device cuda --no-meta -q --device-map "$map" "${@:4}" \
                "$T/prompts" > "$T/$map"
        done
        cmp <(ids "$T/$1") <(ids "$T/all")
        jq -se 'def near($a; $b): ($a - $b) * ($a - $b) <= $b * $b * 0.0025;
            all(.status == "ok" and .offload_layers >= 2 and .offload_wait_ns == null and
            near(.memory.planned_bytes; .memory.allocated_peak_bytes))' "$T/$1"
    }
    on 0 gen-llada synth:tiny-llada --gen-length 8 --block-length 8 --steps 4 --batch 2
    on 0 gen-llada synth:tiny-llada --gen-length 8 --block-length 4 --steps 4 --cache dual \
        --quant int8
    on 1 gen-llama data/models/llama-demo --max-new 4 --ignore-eos
    kept() { # STAY TOOL MODEL OPTION...: keys and values outside, matrices on the device
        for map in all $1; do
            "$BIN/$2" -m "$3" --device cuda --no-meta -q --kv-map "$map" "${@:4}" "$T/prompts" \
                > "$T/$map"
        done
        cmp <(ids "$T/$1") <(ids "$T/all")
        jq -se 'def near($a; $b): ($a - $b) * ($a - $b) <= $b * $b * 0.0025;
            all(.status == "ok" and .offload_kv_layers >= 2 and .offload_wait_ns == null and
            (has("offload_layers") | not) and .offload_bytes == .offload_kv_bytes and
            near(.memory.planned_bytes; .memory.allocated_peak_bytes))' "$T/$1"
    }
    kept 0 gen-llada synth:tiny-llada --gen-length 8 --block-length 4 --steps 4 --cache dual
    kept 1 gen-llama data/models/llama-demo --max-new 4 --ignore-eos
    EMULATE_MEMORY=36000000 "$BIN/gen-llama" -m data/models/llama-demo --device cuda --dtype f32 \
        --max-new 1 --no-meta -q --device-map auto "$T/prompts" > "$T/out"
    jq -se 'all(.status == "ok" and .device == "cuda" and .offload_layers >= 3)' "$T/out"
}

# The group's limit is above --mem-cap, so that its peak is a measurement and no limit. The resident
# set is not used: it counts pages of shared files too, which the group is not charged for.
@test "in a control group with less memory than the weights take, a run stays within --mem-cap" {
    [ "$(nm -D "$BIN/gen-llama" | grep -c __asan)" -eq 0 ] || skip "sanitizers take memory"
    cap=190000000
    for shape in small-llada:gen-llada small-llama:gen-llama; do
        how=(--max-new 3)
        [ "$shape" != small-llada:gen-llada ] || how=(--gen-length 8 --block-length 8 --steps 2)
        how=("$BIN/${shape#*:}" -m "synth:${shape%:*}" --device cpu --warmup 0 "${how[@]}"
             --limit 1 "$T/prompts")
        "${how[@]}" > "$T/whole" 2> "$T/said"
        pipelines/bin/within $((cap + cap / 8)) "$T/group" "${how[@]}" --mem-cap "$cap" \
            --device-map auto > "$T/out" 2> "$T/said" || { cat "$T/said"; return 1; }
        jq -se --argjson cap "$cap" 'map(select(.kind == "generation")) |
            all(.status == "ok" and .offload_layers >= 3 and
            .memory.reserved_peak_bytes <= $cap)' "$T/out"
        jq -nc --arg cap 190M --argjson bytes "$cap" --slurpfile group "$T/group" \
            --slurpfile whole "$T/whole" --slurpfile run "$T/out" \
            -f pipelines/experiment/offload/caps.jq > "$T/cap"
        conforms "$T/cap"
        jq -e '.same_ids and .measured_ratio > 0' "$T/cap"
        ! jq -e .group_peak_reason "$T/group" || skip "$(jq -r .group_peak_reason "$T/group")"
        jq -e --argjson cap "$cap" '.group_peak <= $cap' "$T/cap"
    done
}
