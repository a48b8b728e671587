#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# gen-llada from outside: records, lists, launches, refusals (ids: test-diffuse.c, agreement.bats).

setup() {
    set -o pipefail
    BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
    cat > "$T/prompts" << 'END'
{"id":"p1","text":"one two three","answer":"17","task":"sum"}
{"id":"p2","prompt_ids":[5,6,7,8,9,10,11]}
{"id":"p3","text":"four","reference":"five"}
END
    GEN=("$BIN/gen-llada" -m synth:tiny-llada --gen-length 8)
}

# ids FILE: prints config, id and token ids of each generation, sorted
ids() { jq -c 'select(.kind == "generation") | [.id, .steps, .token_ids]' "$1" | sort; }

@test "a generation holds settings, result, events and memory" {
    "${GEN[@]}" --steps 4 --block-length 4 "$T/prompts" > "$T/out"
    [ "$(jq -r .kind "$T/out" | tr '\n' ' ')" = "meta generation generation generation end " ]
    jq -s -e '.[0] | .checkpoint.model and (.prompts_sha256 | length == 64) and .prompts == 3
        and .tokenizer_sha256 == null and .backend.threads >= 1' "$T/out"
    jq -s -e '.[1] | .id == "p1" and .answer == "17" and .task == "sum" and .prompt_tokens == 3
        and .config == "synth:tiny-llada steps=4 gen=8 block=4 contract=fixed batch=1"
        and .arch == "llada"
        and .weights_random and .steps == 4 and .gen_length == 8 and .block_length == 4
        and .phase == "timed" and .launch == 0 and .round == 0 and .seq == 0 and .status == "ok"
        and .text == null and .text_reason == "no tokenizer" and .new_tokens == 8
        and .denoise_steps == 4 and .canvas_positions == 44 and .rows == 44
        and .committed_tokens == 8' "$T/out"
    jq -s -e '.[1:4] | all(.prompt_tokens + 8 <= 15 and (.emit_tokens | add) == 8
        and (.step_ns | length) == 4 and (.emit_ns | length) == (.emit_tokens | length)
        and .ttft_commit_ns <= .ttft_ns and .ttft_ns <= .ttf_block_ns and .ttft_ns == .emit_ns[0]
        and .ttf_block_ns < .e2e_ns and .e2e_ns == .emit_ns[-1] and .batch_ns == .e2e_ns
        and .start_ns > 0)' "$T/out"
    jq -s -e '.[1:4] | all(.memory | .weights_bytes > 0 and .kv_bytes == 0
        and .activations_bytes > 0 and .requested_peak_bytes <= .allocated_peak_bytes
        and .allocated_peak_bytes <= .reserved_peak_bytes
        and .reserved_peak_bytes <= .device_peak_bytes)' "$T/out"
}

@test "lists of steps and batches run in one process, and the batch does not change the ids" {
    "${GEN[@]}" --steps 2,8 --batch 1,3 --no-meta "$T/prompts" > "$T/out"
    [ "$(jq -r .config "$T/out" | sort -u | wc -l)" -eq 4 ]
    [ "$(ids "$T/out" | uniq | wc -l)" -eq 6 ]
    [ "$(ids "$T/out" | uniq -d | wc -l)" -eq 6 ]
    jq -s -e 'map(select(.batch == 3)) | all(.batch_filled == 3) and
        (map(.batch_id) | unique | length) == 2' "$T/out"
}

@test "a seed gives the same ids at every batch and thread count; another seed gives other ids" {
    "${GEN[@]}" --temperature 1 --threads 1 --no-meta "$T/prompts" > "$T/a"
    "${GEN[@]}" --temperature 1 --threads 3 --batch 2 --no-meta "$T/prompts" > "$T/b"
    tac "$T/prompts" | "${GEN[@]}" --temperature 1 --no-meta > "$T/c"
    cmp <(ids "$T/a") <(ids "$T/b")
    cmp <(ids "$T/a") <(ids "$T/c")
    cat > "$T/schedule" << 'END'
{"kind":"launch","launch":0,"system":"llada","seed":1,"rounds":1,"points":[{}]}
END
    "${GEN[@]}" --temperature 1 --schedule "$T/schedule" --no-meta "$T/prompts" > "$T/d"
    run cmp <(ids "$T/a") <(ids "$T/d")
    [ "$status" -eq 1 ]
}

@test "warm-up batches are tagged: the first of the process is cold" {
    "${GEN[@]}" --steps 2,4 --warmup 2 --repeat 2 --no-meta "$T/prompts" > "$T/out"
    [ "$(jq -r '"\(.phase)\(.round)"' "$T/out" | uniq -c | tr -s ' \n' ' ')" = \
        " 1 cold0 1 warmup0 3 timed0 2 warmup0 3 timed0 6 timed1 " ]
    jq -s -e 'map(.seq) == [range(length)]' "$T/out"
}

@test "a launch of a schedule runs its points in the given order, with rounds and tags" {
    jq -n -c '{kind: "launch", seed: 0, rounds: 1} |
        (. + {launch: 0, system: "llada", points: [{steps: 1}]}),
        (. + {launch: 3, system: "llama", points: [{max_new: 1}]}),
        (. + {launch: 3, system: "llada", rounds: 2, points: [{steps: 8, batch: 2},
            {steps: 2, gen_length: 4, block_length: 2, batch: 1, max_new: null}]})' \
        > "$T/schedule"
    "${GEN[@]}" --schedule "$T/schedule" --launch 3 --no-meta "$T/prompts" > "$T/out"
    [ "$(jq -r '"\(.launch)/\(.round)/\(.steps)/\(.gen_length)/\(.block_length)/\(.batch)"' \
        "$T/out" | uniq -c | tr -s ' \n' ' ')" = \
        " 3 3/0/8/8/8/2 3 3/0/2/4/2/1 3 3/1/8/8/8/2 3 3/1/2/4/2/1 " ]
    run "${GEN[@]}" --schedule "$T/schedule" --launch 4 "$T/prompts"
    [ "$status" -eq 65 ]
    [[ $output == *"launch record 4"* ]]
}

@test "lengths that do not divide evenly give exit code 64 and name the constraint" {
    run "${GEN[@]}" --block-length 3 "$T/prompts"
    [ "$status" -eq 64 ]
    [[ $output == *"gen-length 8 must be a multiple of block-length 3"* ]]
    run "${GEN[@]}" --block-length 2 --steps 4,6 "$T/prompts"
    [ "$status" -eq 64 ]
    [[ $output == *"steps 6 must be a multiple"* ]]
    for bad in "--gen-length 0" "--steps 0" "--steps 4,,8" "--block-length 16" "--temperature -1" \
        "--temperature nan" "--cfg-scale -1" "--cache magic" "--batch 0" "--unmask magic" \
        "--unmask threshold --remasking random"; do
        run "${GEN[@]}" $bad "$T/prompts" # several words on purpose
        [ "$status" -eq 64 ]
    done
    run "$BIN/gen-llada"
    [ "$status" -eq 64 ]
}

@test "with more steps than masks, idle steps are skipped" {
    "${GEN[@]}" --steps 16,8 --no-meta "$T/prompts" > "$T/out"
    jq -s -e 'all(.denoise_steps == 8)' "$T/out"
    [ "$(jq -c .token_ids "$T/out" | sort -u | wc -l)" -le 3 ]
}

@test "a bad prompt is an error record and exit 1; the exit code is 65 if no prompt is good" {
    jq -n -c '{id: "long", prompt_ids: [range(505) | 7]}' | cat - "$T/prompts" > "$T/odd"
    run --separate-stderr "${GEN[@]}" "$T/odd"
    [ "$status" -eq 1 ]
    [ "$(jq -r .kind <<< "$output" | tr '\n' ' ')" = \
        "meta error generation generation generation end " ]
    [[ $(jq -r 'select(.kind == "error") | .message' <<< "$output") == *"context"* ]]
    [ "$(jq -r 'select(.kind == "error") | .id' <<< "$output")" = long ]
    [[ $stderr == *"$T/odd:1: prompt 'long': 505 tokens and 8 to generate"*"the context" ]]
    { echo 'nonsense'; cat "$T/prompts"; } > "$T/odd"
    run --separate-stderr "${GEN[@]}" "$T/odd"
    [ "$status" -eq 1 ]
    [ "$(jq -r 'select(.kind == "error") | .where' <<< "$output")" = "$T/odd:1" ]
    [ "$(jq -r .kind <<< "$output" | grep -c generation)" -eq 3 ]
    run --separate-stderr "${GEN[@]}" <(echo nonsense)
    [ "$status" -eq 65 ]
    { "$BIN/prep-prompts" "$T/prompts" | head -n -1; } > "$T/cut" # without its end
    run --separate-stderr "${GEN[@]}" "$T/cut"
    [ "$status" -eq 65 ]
    [[ $stderr == *"the stream was cut"* ]]
    run "${GEN[@]}" /dev/null
    [ "$status" -eq 65 ]
    run "${GEN[@]}" "$T/absent"
    [ "$status" -eq 66 ]
}

@test "a prompt that holds the mask token is refused" {
    for id in $(seq 500 511); do
        echo '{"id":"m'"$id"'","prompt_ids":[5,'"$id"']}'
    done > "$T/masks"
    run --separate-stderr "${GEN[@]}" "$T/masks"
    [ "$status" -eq 1 ]
    [ "$(jq -r .kind <<< "$output" | grep -c error)" -eq 1 ]
    [[ $(jq -r 'select(.kind == "error") | .code + .message' <<< "$output") == \
        bad_data*"mask token"* ]]
}

@test "too little memory for a batch or for the weights gives a record" {
    cap=$("${GEN[@]}" --no-meta "$T/prompts" | jq -s 'map(.memory.reserved_peak_bytes) | max')
    run --separate-stderr "${GEN[@]}" --batch 3,1 --mem-cap "$cap" --no-meta "$T/prompts"
    [ "$status" -eq 1 ]
    [ "$(jq -r '"\(.batch) \(.status)"' <<< "$output" | sort | uniq -c | tr -s ' \n' ' ')" = \
        " 3 1 ok 3 3 oom " ]
    jq -s -e 'map(select(.status == "oom")) | all(.token_ids == [] and .e2e_ns == null
        and .text_reason == "out of memory" and .stop == null)' <<< "$output"
    run --separate-stderr "${GEN[@]}" --mem-cap 100K --no-meta "$T/prompts"
    [ "$status" -eq 1 ]
    [ "$(jq -r .status <<< "$output" | sort | uniq -c | tr -s ' \n' ' ')" = " 3 oom " ]
    [[ $stderr == *W101* ]]
}

@test "--halve: a batch that does not fit runs in parts, whose times are not those of a batch" {
    one=$("${GEN[@]}" --no-meta "$T/prompts" | jq -s 'map(.memory.reserved_peak_bytes) | max')
    "${GEN[@]}" --batch 3 --halve --no-meta "$T/prompts" > "$T/whole"
    jq -s -e 'all(.batch_filled == 3 and .batch_halved == false)' "$T/whole"
    "${GEN[@]}" --batch 3 --halve --mem-cap "$one" --no-meta "$T/prompts" > "$T/parts"
    jq -s -e 'length == 3 and all(.status == "ok" and .batch == 3 and .batch_halved and
        .batch_filled == 1) and map(.batch_id) == [0, 1, 2]' "$T/parts"
    [ "$(ids "$T/parts")" = "$(ids "$T/whole")" ]
    "$BIN/measure" --no-meta "$T/parts" |
        jq -s -e 'all(.value == null and .oom == 3 and .timed == 0 and .status == "oom")'
    "${GEN[@]}" --batch 3 --warmup 2 --halve --mem-cap "$one" --no-meta "$T/prompts" |
        jq -s -e 'map(.phase)[:6] == ["cold", "warmup", "warmup", "warmup", "warmup", "warmup"]'
    # one prompt that does not fit stays a record
    run --separate-stderr "${GEN[@]}" --batch 3 --halve --mem-cap $((one - 100000)) --no-meta \
        "$T/prompts"
    [ "$status" -eq 1 ]
    jq -s -e 'map(.status) | index("oom") != null and length == 3' <<< "$output"
    [[ $stderr == *W105*" need "*" bytes ("*" of weights, "*"--mem-cap has "* ]]
}

@test "SIGTERM leaves whole records and an end record, and the exit code is 143" {
    "${GEN[@]}" --repeat 100000 "$T/prompts" > "$T/out" &
    pid=$!
    for _ in $(seq 100); do
        [ "$(wc -l < "$T/out")" -gt 3 ] && break
        sleep 0.05
    done
    kill -TERM "$pid"
    status=0
    wait "$pid" || status=$?
    [ "$status" -eq 143 ]
    jq -e -n '[inputs] | last | .kind == "end" and .status == "interrupted"' "$T/out"
}

@test "a wrong model, a wrong device and an output onto an input are refused" {
    run "$BIN/gen-llada" -m synth:tiny-llama "$T/prompts"
    [ "$status" -eq 65 ]
    [[ $output == *gen-llama* ]]
    run "${GEN[@]}" --device tpu "$T/prompts"
    [ "$status" -eq 64 ]
    run "${GEN[@]}" -o "$T/prompts" "$T/prompts"
    [ "$status" -eq 64 ]
    [ "$(wc -l < "$T/prompts")" -eq 3 ]
    run "${GEN[@]}" -o "$T/absent/out" "$T/prompts"
    [ "$status" -eq 73 ]
}

@test "help begins with examples and says which work the clock contains" {
    "$BIN/gen-llada" --help > "$T/help"
    [ "$(sed -n 3p "$T/help")" = "Examples:" ]
    grep -q "^Clock: the clock of a batch starts when" "$T/help"
}

@test "lists of settings are crossed in one process; unused settings make no points" {
    "${GEN[@]}" --unmask schedule,threshold,factor --threshold 0.3,0.9 --factor 1,2 --steps 4,8 \
        --block-length 4,8 --temperature 0,1 --no-meta "$T/prompts" > "$T/out"
    # 2 schedules, 2 thresholds, 2 factors; each with 2 blocks and 2 temperatures; 3 prompts
    jq -s -e 'length == 6 * 2 * 2 * 3 and (map(.point) | unique | length) == 24
        and (map(.config) | unique | length) == 24' "$T/out"
    jq -s -e 'group_by(.series) | length == 12 and all(.[]; (map(.axis) | unique | length) == 1
        and (map(.point) | unique | length) == 2)' "$T/out"
    jq -s -e 'all(.[]; if .unmask == "schedule" then .axis == "steps" and .threshold == null
        elif .unmask == "threshold" then .axis == "threshold" and .steps == null
        else .axis == "factor" and .steps == null and .factor != null end)' "$T/out"
}

@test "a point does not depend on the spelling of its options or the prompts" {
    "${GEN[@]}" --no-meta "$T/prompts" > "$T/a"
    "${GEN[@]}" --no-meta --steps 8 --unmask schedule --cfg-scale 0 --limit 1 "$T/prompts" > "$T/b"
    "${GEN[@]}" --no-meta --seed 9 --limit 1 "$T/prompts" > "$T/other"
    "${GEN[@]}" --no-meta --stop-at-eos --limit 1 "$T/prompts" > "$T/c"
    "${GEN[@]}" --no-meta --contract answer --limit 1 "$T/prompts" > "$T/d"
    [ "$(jq -r '"\(.point) \(.contract)"' "$T/c" "$T/d" | sort -u | cut -d ' ' -f 2)" = answer ]
    [ "$(jq -r .point "$T/a" "$T/b" | sort -u | wc -l)" -eq 1 ]
    [ "$(jq -r .point "$T/a" "$T/other" | sort -u | wc -l)" -eq 2 ] # other random weights
    [ "$(jq -r .workload "$T/a" "$T/b" | sort -u | wc -l)" -eq 2 ]
    [ "$(jq -r .prompts "$T/b")" = 1 ]
    [ "$(jq -r .point "$T/a" "$T/c" | sort -u | wc -l)" -eq 2 ]
}

@test "a schedule may name any setting, and refuses unknown ones" {
    "$BIN/schedule" --systems llada --launches 1 --gen-length 8 --block-length 8 \
        --unmask threshold,factor --threshold 0.5,0.9 --no-meta > "$T/schedule"
    jq -s -e '.[0].points | length == 3 and all(.[]; has("steps") | not)' "$T/schedule"
    "${GEN[@]}" --schedule "$T/schedule" --no-meta "$T/prompts" > "$T/out"
    [ "$(jq -r '"\(.unmask) \(.threshold)"' "$T/out" | sort -u | xargs)" = \
        "factor null threshold 0.5 threshold 0.9" ]
    sed 's/"unmask"/"unmsk"/' "$T/schedule" > "$T/odd"
    run "${GEN[@]}" --schedule "$T/odd" "$T/prompts"
    [ "$status" -eq 65 ]
    [[ $output == *"'unmsk' is not a setting of llada"* ]]
    run "${GEN[@]}" --schedule "$T/schedule" --steps 2,4 "$T/prompts"
    [ "$status" -eq 64 ]
}

@test "credit, slowfast, saber and wino record settings and results and refuse bad values" {
    gzip -dc data/corpus/valid.ndjson.gz | jq -c 'select(.id)' | sed -n '1,3p' > "$T/real"
    LLADA=("$BIN/gen-llada" -q --no-meta -m data/models/llada-demo --gen-length 32
           --block-length 16 --batch 3)
    "${LLADA[@]}" --unmask credit,slowfast,saber,wino --cache none,dual "$T/real" > "$T/out"
    jq -s -e 'length == 24 and all(.[]; .steps == null and (.emit_tokens | add) == 32 and
        (.commit_tokens | add) == .committed_tokens + .remasked_tokens and
        .committed_tokens == 32 and .denoise_steps < 32)' "$T/out"
    jq -s -e 'group_by(.unmask) | map({(.[0].unmask): map(.remasked_tokens) | add}) | add |
        .credit == 0 and .slowfast == 0 and .saber > 0 and .wino > 0' "$T/out"
    # slots that may be masked again are readable when their block is done
    jq -s -e 'map(select(.unmask == "saber" or .unmask == "wino")) |
        all(.[]; .emit_tokens == [16, 16] and .ttft_ns == .ttf_block_ns)' "$T/out"
    jq -s -e 'all(.[]; if .unmask == "credit" then .credit_decay == 0.8 and .wino_draft == null
        else .credit_decay == null end)' "$T/out"
    jq -s -e 'map(select(.unmask == "wino")) | all(.[]; .rows == .canvas_positions +
        16 * .denoise_steps)' "$T/out"
    # with neutral parameters the rules equal each other, or commit one token a pass
    "${LLADA[@]}" --unmask schedule --steps 32 "$T/real" > "$T/vanilla"
    "${LLADA[@]}" --unmask saber --saber-floor 1 --saber-least 1 "$T/real" > "$T/a"
    "${LLADA[@]}" --unmask wino --wino-draft 1 "$T/real" > "$T/b"
    "${LLADA[@]}" --unmask credit --credit-threshold 1 --credit-weight 0 "$T/real" > "$T/c"
    "${LLADA[@]}" --unmask slowfast --slowfast-sure 1 --slowfast-reach 0 "$T/real" > "$T/d"
    for f in a b c d; do
        cmp <(jq -c '[.id, .token_ids]' "$T/vanilla") <(jq -c '[.id, .token_ids]' "$T/$f")
    done
    "${LLADA[@]}" --unmask credit --credit-weight 0 "$T/real" > "$T/a"
    "${LLADA[@]}" --unmask threshold "$T/real" > "$T/b"
    cmp <(jq -c '[.id, .token_ids, .commit_tokens]' "$T/a") \
        <(jq -c '[.id, .token_ids, .commit_tokens]' "$T/b")
    run "${GEN[@]}" --unmask wino --cfg-scale 1 "$T/prompts"
    [ "$status" -eq 64 ] && [[ $output == *"wino and s2d2 go with cfg-scale 0 only"* ]]
    run "${GEN[@]}" --unmask credit --temperature 1 "$T/prompts"
    [ "$status" -eq 64 ] && [[ $output == *"credit goes with temperature 0 only"* ]]
}

@test "klass commits tokens that are confident and stable" {
    gzip -dc data/corpus/valid.ndjson.gz | jq -c 'select(.id)' | sed -n '1,3p' > "$T/real"
    "$BIN/gen-llada" -q --no-meta -m data/models/llada-demo --gen-length 32 --block-length 16 \
        --unmask klass --kl-threshold 0,0.01 --kl-history 1 --batch 1,3 "$T/real" > "$T/out"
    jq -s -e 'length == 12 and all(.[]; .conf_threshold == 0.9 and .kl_history == 1) and
        all(group_by([.id, .kl_threshold])[]; map(.token_ids) | unique | length == 1) and
        all(.[] | select(.kl_threshold == 0); .denoise_steps == 32) and
        all(.[] | select(.kl_threshold > 0); .denoise_steps < 28)' "$T/out"
    run "${GEN[@]}" --unmask klass --cfg-scale 1 "$T/prompts"
    [ "$status" -eq 64 ] && [[ $output == *"klass goes with cfg-scale 0"* ]]
}

@test "drafts give the same ids in fewer passes" {
    gzip -dc data/corpus/valid.ndjson.gz | jq -c 'select(.id)' | sed -n '1,3p' > "$T/real"
    "$BIN/gen-llada" -q --no-meta -m data/models/llada-demo --gen-length 16 --block-length 8 \
        --cache none,dual --draft-steps 0,4 --batch 1,3 "$T/real" > "$T/out"
    jq -s -e 'length == 24 and all(group_by([.id, .cache])[]; map(.token_ids) | unique |
            length == 1) and
        all(.[]; .denoise_steps + .accepted_steps == 16 and (.commit_tokens | add) == 16) and
        all(.[] | select(.draft_steps == 0); .drafted_steps == 0) and
        all(.[] | select(.draft_steps == 4); .accepted_steps > 0 and
            (.config | test("draft_steps=4")))' "$T/out"
}

# made WORD...: runs gen-llada with three blocks in 12 steps and these options
made() { "$BIN/gen-llada" -q --no-meta -m synth:tiny-llada --gen-length 24 --block-length 8 \
    --steps 12 "$@" "$T/prompts"; }

@test "caches, suffixes and paces save rows, not passes; neutral values change nothing" {
    made > "$T/plain"
    all=$(jq -s 'map(.rows) | add' "$T/plain")
    plain=$(ids "$T/plain")
    for way in "--cache delayed --delayed-refresh 1" "--cache dual --refresh 1" \
        "--suffix window --suffix-window 24" "--suffix dropout --suffix-scale 9 --suffix-sigma 0" \
        "--block-decay 1" "--pace uniform"; do
        # shellcheck disable=SC2086
        made $way > "$T/out"
        [ "$(ids "$T/out")" = "$plain" ]
        [ "$(jq -s 'map(.rows) | add' "$T/out")" = "$all" ]
    done
    for way in "--cache vicinity --vicinity-warmup 1 --vicinity-before 2 --vicinity-after 2" \
        "--cache delayed" "--suffix window --suffix-window 4" \
        "--suffix dropout" "--suffix grow" "--cache dual --suffix grow --refresh 2"; do
        # shellcheck disable=SC2086
        made $way > "$T/out"
        jq -s -e --argjson all "$all" 'all(.status == "ok" and .denoise_steps == 12 and
            .committed_tokens == 24) and (map(.rows) | add) < $all' "$T/out"
    done
    made --cache vicinity | jq -s -e 'all(.vicinity_before == 16 and .vicinity_warmup == 4 and
        .refresh == 0 and .delayed_refresh == null and .suffix == "all" and
        .suffix_window == null and .pace == "uniform" and
        .admit == "static" and .admit_ns == 0)'
    # the window and the last slot: 4 slots and 1 after the first block, 4 after the second
    made --suffix window --suffix-window 4 --limit 1 |
        jq -e '.rows == 4 * (3 + 8 + 5) + 4 * (3 + 16 + 5) + 4 * (3 + 24)'
    made --suffix grow --limit 1 | jq -e '.rows == 4 * (11 + 19 + 27)'
}

@test "dropout draws by the seed and the prompt, not by the batch" {
    for batch in 1 3; do
        made --suffix dropout --suffix-window 12 --batch $batch | jq -c '[.id, .rows, .token_ids]' |
            sort > "$T/$batch"
    done
    cmp "$T/1" "$T/3"
    made --suffix dropout --suffix-window 12 --seed 5 | jq -c '[.id, .rows]' | sort > "$T/other"
    ! cmp -s <(jq -c '.[:2]' "$T/1") "$T/other" || false
}

@test "paces and decays distribute the steps exactly" {
    for pace in "uniform 2,2,2,2" "cosine 1,2,2,3" "front 3,2,2,1"; do
        made --pace "${pace% *}" | jq -s -e --argjson b "[${pace#* }]" \
            'all(.commit_tokens == $b + $b + $b and .denoise_steps == 12)'
    done
    made --block-decay 0.5 --steps 12,13 | jq -s -e 'all(.denoise_steps == .steps and
        .commit_tokens[0] < .commit_tokens[-1])'
    run made --steps 13
    [ "$status" -eq 64 ] && [[ $output == *"steps 13 must be a multiple"* ]]
    run made --block-decay 0.5 --steps 2
    [ "$status" -eq 64 ] && [[ $output == *"steps 2 must be at least the number of blocks"* ]]
    # a setting without effect is null: a decay works with the schedule only
    made --unmask threshold,prophet --block-decay 0.5 --pace front > "$T/out"
    jq -s -e 'all(.block_decay == null and (.pace != null) == (.unmask == "prophet"))' "$T/out"
}

@test "a falling threshold commits no slower; an exact cache needs a block-causal model" {
    made --unmask threshold --threshold 0.0032 --threshold-decay 0,0.5 > "$T/out"
    jq -s -e '(map(select(.threshold_decay == 0).denoise_steps) | add) >
              (map(select(.threshold_decay > 0).denoise_steps) | add)' "$T/out"
    run --separate-stderr made --cache exact
    [ "$status" -eq 64 ]
    [[ $stderr == *"cache exact: expected a model with a block-causal mask"* ]]
}

@test "a growing canvas has fewer rows, and prompts that join a batch write the same text" {
    gzip -dc data/corpus/valid.ndjson.gz | jq -c 'select(.id)' | sed -n '1,4p' > "$T/real"
    real() { "$BIN/gen-llada" -q --no-meta -m data/models/llada-demo --gen-length 64 \
        --block-length 8 --unmask threshold --contract answer --batch 4 "$@" "$T/real"; }
    real > "$T/all"
    real --suffix grow > "$T/grow"
    real --batch 2 --admit continuous > "$T/join"
    [ "$(ids "$T/join")" = "$(ids "$T/all")" ]
    jq -se 'all(.batch_id == 0) and map(select(.admit_ns > 0).id) == map(.id)[2:]' "$T/join"
    jq -s -e --slurpfile all "$T/all" 'all(.status == "ok") and
        (map(.rows / .denoise_steps) | add) < ($all | map(.rows / .denoise_steps) | add)' "$T/grow"
}

@test "caches inside the layers save rows or memory; neutral values change nothing" {
    gen() { "${GEN[@]}" --gen-length 16 --block-length 4 --batch 3 --no-meta "$@" "$T/prompts"; }
    gen > "$T/none"
    gen --cache dual > "$T/dual"
    gen --cache features --prompt-refresh 1 --response-refresh 1 > "$T/all"
    gen --cache sparse --keep 1 --keep-delay 0 > "$T/kept"
    cmp <(ids "$T/none") <(ids "$T/all")
    cmp <(ids "$T/dual") <(ids "$T/kept")
    gen --cache features,sparse --update 0.25,0.5 --keep 0.25 > "$T/out"
    jq -s -e '(map([.cache, .update, .keep]) | unique)
        == [["features", 0.25, null], ["features", 0.5, null], ["sparse", null, 0.25]]
        and all(.[]; .status == "ok" and .denoise_steps == 16 and .model_flops > 0)
        and (map(select(.update == 0.25).rows) | add) < (map(select(.update == 0.5).rows) | add)
        and all(.[]; select(.cache == "features")
                | .prompt_refresh == 50 and .response_refresh == 7)
        and all(.[]; select(.cache == "sparse") | .keep_delay == 1)' "$T/out"
    jq -s -e '(map(select(.cache == "dual").memory.kv_bytes) | max) as $dual
        | all(.[]; if .cache == "sparse" then .memory.kv_bytes < $dual * 0.6
                   elif .cache == "features" then .memory.kv_bytes == 2 * $dual else true end)' \
        "$T/dual" "$T/out"
    run "${GEN[@]}" --cache features --suffix grow "$T/prompts"
    [ "$status" -eq 64 ]
    [[ $output == *"cache features goes with suffix all only"* ]]
    run "${GEN[@]}" --cache sparse --keep 1.5 "$T/prompts"
    [ "$status" -eq 64 ]
}
