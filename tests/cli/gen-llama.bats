#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Tests gen-llama from outside. tests/model/test-autoregress.c and agreement.bats test the ids
# themselves.

setup() {
    set -o pipefail
    BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
    cat > "$T/prompts" << 'END'
{"id":"p1","text":"one two three","answer":"17"}
{"id":"p2","prompt_ids":[5,6,7,8,9,10,11]}
{"id":"p3","messages":[{"role":"user","content":"four five"}]}
END
    GEN=("$BIN/gen-llama" -m synth:tiny-llama --max-new 8 --ignore-eos --no-meta)
}

ids() { jq -c '[.id, .token_ids]' "$1" | sort; }

@test "a generation holds settings, result, one event for each token, and memory" {
    "${GEN[@]}" "$T/prompts" > "$T/out"
    jq -s -e 'length == 3 and (.[0] | .id == "p1" and .answer == "17" and .prompt_tokens == 3
        and .config == "synth:tiny-llama max_new=8 contract=fixed batch=1"
        and .arch == "llama" and .contract == "fixed"
        and .steps == null and .max_new == 8 and .cache == "on" and .top_k == 0
        and .denoise_steps == 0 and .rows == 10 and .committed_tokens == 8 and .stop == "length"
        and .memory.kv_bytes > 0)' "$T/out"
    jq -s -e 'all(.emit_tokens == [1,1,1,1,1,1,1,1] and .emit_ns == .step_ns
        and (.emit_ns == (.emit_ns | sort)) and .ttft_ns == .emit_ns[0]
        and .ttft_commit_ns == .ttft_ns and .ttf_block_ns == .ttft_ns
        and .e2e_ns == .emit_ns[-1])' "$T/out"
    jq -s -e '.[2] | .prompt == "four five" and .prompt_tokens == 2' "$T/out"
}

@test "cache, batch and threads do not change the ids; a seed changes them" {
    "${GEN[@]}" --temperature 1 "$T/prompts" > "$T/a"
    "${GEN[@]}" --temperature 1 --batch 3 --threads 3 "$T/prompts" > "$T/b"
    "${GEN[@]}" --temperature 1 --cache off "$T/prompts" > "$T/c"
    "${GEN[@]}" "$T/prompts" > "$T/greedy"
    cmp <(ids "$T/a") <(ids "$T/b")
    cmp <(ids "$T/a") <(ids "$T/c")
    run cmp <(ids "$T/a") <(ids "$T/greedy")
    [ "$status" -eq 1 ]
    jq -s -e '.[0].rows == 52 and (.[0].config | endswith("cache=off"))' "$T/c"
}

@test "guesses and places in the batch change the rows of a pass but no id" {
    own=(--draft synth:tiny-llama)
    for T_ in 1 0; do
        "${GEN[@]}" --temperature $T_ --max-new 120 "$T/prompts" > "$T/plain"
        "${GEN[@]}" --temperature $T_ --max-new 120 --batch 2 --lookup 4,8 --lookup-ngram 1,3 \
            --admit static,continuous "$T/prompts" > "$T/lookup"
        [ "$(jq -r .point "$T/lookup" | sort -u | wc -l)" -eq 8 ]
        cmp <(ids "$T/plain") <(ids "$T/lookup" | uniq)
        "${GEN[@]}" --temperature $T_ --max-new 120 "${own[@]}" --draft-tokens 0,3 "$T/prompts" \
            > "$T/draft"
        cmp <(ids "$T/plain") <(ids "$T/draft" | uniq)
    done
    jq -se 'all(.lookup == 0 and .lookup_ngram == null and .draft_tokens == 0
        and .draft_model == null and .admit == "static" and .admit_ns == 0 and .passes == 120
        and .drafted_tokens == 0 and .accepted_tokens == 0)' "$T/plain"
    jq -se 'all(.drafted_tokens >= .accepted_tokens and .new_tokens == .accepted_tokens + .passes
        and (.step_ns | length) == .passes and (.emit_tokens | add) == .new_tokens) and
        (map(.accepted_tokens) | add) > 0 and
        (map(select(.admit == "continuous")) | all(.batch_filled == 2) and
         (map(select(.admit_ns > 0)) | length) == 4)' "$T/lookup"
    jq -se '[.[] | select(.draft_tokens == 3)] | all(.draft_model == "synth:tiny-llama"
        and .passes == 31 and .accepted_tokens == 89 and .drafted_tokens == 89
        and (.config | endswith(" draft_tokens=3 draft=synth:tiny-llama")))' "$T/draft"
    jq -se '[.[] | select(.draft_tokens == 0)] | length == 3 and all(.draft_model == null)' \
        "$T/draft"
    [ "$(jq -r 'select(.draft_tokens == 0).point' "$T/draft" | sort -u)" = \
        "$(jq -r .point "$T/plain" | sort -u)" ]
}

@test "a draft model gives the same tokens, or the record says what differs" {
    refuse() { # STATUS WORDS COMMAND...: one line with the words
        run --separate-stderr "${@:3}"
        [ "$status" -eq "$1" ] && [[ $stderr == *"$2"* && $stderr != *$'\n'* ]]
    }
    refuse 65 "vocabulary has 128256 ids: expected the 512" \
        "${GEN[@]}" --draft synth:llama3.2-1b "$T/prompts"
    refuse 65 "expected an autoregressive model" "${GEN[@]}" --draft synth:tiny-llada "$T/prompts"
    refuse 66 no-such-model "${GEN[@]}" --draft "$T/no-such-model" "$T/prompts"
    refuse 64 "expected --draft MODEL" "${GEN[@]}" --draft-tokens 2 "$T/prompts"
    refuse 64 "draft_tokens above 0" \
        "${GEN[@]}" --draft synth:tiny-llama --draft-tokens 0 "$T/prompts"
    refuse 64 "expected at most one above 0" \
        "${GEN[@]}" --draft synth:tiny-llama --lookup 2 "$T/prompts"
    demo=("$BIN/gen-llama" -m data/models/judge-demo --max-new 3 -q "$T/texts" --draft)
    echo '{"id":"p","text":"once upon a time"}' > "$T/texts"
    "${demo[@]}" data/models/llama-demo | jq -se '.[0].draft_model.model == "llama-demo" and
        .[1].draft_model == "llama-demo" and .[1].status == "ok"'
    mkdir "$T/other"
    cp data/models/llama-demo/{config.json,model.safetensors} "$T/other"
    refuse 65 "no tokenizer: expected that of judge-demo" "${demo[@]}" "$T/other"
    sed 's/<|mdm_mask|>/<|other|>/' data/models/llama-demo/tokenizer.json \
        > "$T/other/tokenizer.json"
    refuse 65 "id 1023 is '<|other|>', not '<|mdm_mask|>'" "${demo[@]}" "$T/other"
    jq -c . data/models/llama-demo/tokenizer.json > "$T/other/tokenizer.json"
    "${demo[@]}" "$T/other" > "$T/out" # other bytes, the same tokens
}

@test "a peak of memory is recorded for the batch that made it" {
    [ "$(nm -D "$BIN/gen-llama" | grep -c __asan)" -eq 0 ] || skip "sanitizers keep what is freed"
    for i in {1..64}; do echo "{\"id\":\"p$i\",\"prompt_ids\":[$i,5,7]}"; done > "$T/many"
    "$BIN/gen-llama" -m synth:tiny-llama --device cpu --ignore-eos --no-meta -q --max-new 300 \
        --batch 64,1 "$T/many" > "$T/out"
    if [ -w /proc/self/clear_refs ]; then
        jq -se '(map(select(.batch_id == 0))[0] | .batch == 64 and
            .memory.process_peak_bytes > .memory.reserved_peak_bytes) and
            (map(select(.batch == 1).memory.process_peak_bytes) | max) + 8000000 <
            (map(select(.batch == 64).memory.process_peak_bytes) | max)' "$T/out"
    else
        jq -se 'all(.memory | .process_peak_bytes == null and
            (.process_peak_bytes_reason | length > 0))' "$T/out"
    fi
}

@test "filters: top-k 1 and a tiny top-p are greedy" {
    "${GEN[@]}" "$T/prompts" > "$T/a"
    "${GEN[@]}" --temperature 2 --top-k 1 "$T/prompts" > "$T/b"
    "${GEN[@]}" --temperature 2 --top-p 0.000001 "$T/prompts" > "$T/c"
    cmp <(ids "$T/a") <(ids "$T/b")
    cmp <(ids "$T/a") <(ids "$T/c")
    jq -s -e '.[0].config | endswith("temp=2 top_p=1e-06")' "$T/c"
}

@test "batches, warm-up and rounds run in their order" {
    "${GEN[@]}" --batch 1,2 --warmup 1 --repeat 2 "$T/prompts" > "$T/out"
    [ "$(jq -r '"\(.phase)\(.round)x\(.batch)"' "$T/out" | uniq -c | tr -s ' \n' ' ')" = \
        " 1 cold0x1 3 timed0x1 2 warmup0x2 3 timed0x2 3 timed1x1 3 timed1x2 " ]
    jq -s -e 'map(select(.batch == 2 and .phase == "timed") | .batch_filled) == [2,2,1,2,2,1]' \
        "$T/out"
}

@test "a launch of a schedule runs its points in each round" {
    jq -n -c '{kind: "launch", launch: 1, system: "llama", rounds: 2,
        points: [{max_new: 3}, {max_new: 2, batch: 3}]}' > "$T/schedule"
    "${GEN[@]}" --schedule "$T/schedule" --launch 1 "$T/prompts" > "$T/out"
    [ "$(jq -r '"\(.launch)/\(.round)/\(.max_new)/\(.batch)"' "$T/out" | uniq -c |
        tr -s ' \n' ' ')" = \
        " 3 1/0/3/1 3 1/0/2/3 3 1/1/3/1 3 1/1/2/3 " ]
}

@test "bad options and models are refused" {
    for bad in "--max-new 0" "--temperature -1" "--temperature 1e9" "--top-p 0" "--top-p 1.5" \
        "--top-k -1" "--cache maybe" "--batch x" "--seed 1e9x" "--frobnicate"; do
        run "${GEN[@]}" $bad "$T/prompts" # several words on purpose
        [ "$status" -eq 64 ]
    done
    run "$BIN/gen-llama" -m synth:tiny-llada "$T/prompts"
    [ "$status" -eq 65 ]
    run "$BIN/gen-llama" -m "$T/no-such-model" "$T/prompts"
    [ "$status" -eq 66 ]
}

@test "prompts may come from standard input, --limit bounds them, -o names the output" {
    "${GEN[@]}" --limit 2 -o "$T/out" < "$T/prompts"
    [ "$(wc -l < "$T/out")" -eq 2 ]
    run bash -c '"$@" > /dev/full' - "${GEN[@]}" "$T/prompts"
    [ "$status" -eq 74 ]
}

@test "a bad prompt does not stop the other prompts" {
    { echo '{"id":"big","prompt_ids":[999999]}'; echo '{"id":"p1"}'; cat "$T/prompts"; } > "$T/odd"
    run --separate-stderr "${GEN[@]}" "$T/odd"
    [ "$status" -eq 1 ]
    [ "$(jq -r 'select(.kind == "error").id' <<< "$output" | xargs)" = "big p1 p1" ]
    # The bad p1 has taken the name.
    [ "$(jq -r .kind <<< "$output" | sort | uniq -c | tr -s ' \n' ' ')" = " 3 error 2 generation " ]
    jq -nc '{id: "a", prompt_ids: [range(16380) | . % 400 + 5]}' > "$T/long"
    run "$BIN/gen-llama" -m synth:tiny-ministral3 --no-meta --max-new 5 "$T/long"
    [ "$status" -eq 1 ] && [[ $output == *"at most 16384, the context (llama_4_scaling_beta, "* ]]
}

@test "too little memory gives records with status oom" {
    run --separate-stderr "${GEN[@]}" --mem-cap 100K "$T/prompts"
    [ "$status" -eq 1 ]
    jq -s -e 'length == 3 and all(.status == "oom")' <<< "$output"
}

@test "a disturbed batch is tainted, and run again; a warm-up goes on until it is steady" {
    GEN=("${GEN[@]/--no-meta/-q}")
    run "${GEN[@]}" --warmup 2 --warmup-most 6 --repeat 1 "$T/prompts" -o "$T/warm"
    [ "$status" -eq 0 ]
    jq -se 'map(select(.kind == "generation" and .phase == "timed")) | length > 0 and
        all(.warmup_batches >= 2 and .warmup_batches <= 6 and (.warmup_steady | type) == "boolean"
            and .attempt == 0 and (.host | has("pressure_ratio")) and .prepare_ns >= 0)' "$T/warm"
    jq -se 'map(select(.kind == "fitness")) | length == 1 and (.[0].fit | type) == "boolean"' \
        "$T/warm"
    for threads in 1 2; do
        "${GEN[@]}" --threads $threads --warmup 1 "$T/prompts" -o "$T/cores"
        jq -se --argjson threads $threads 'map(select(.kind == "fitness"))[0] |
            .threads == $threads and if $threads == 1 then .effective_cores_reason == "one thread"
                else .effective_cores > 0.1 and .effective_cores < 8 end' "$T/cores"
    done
    busy=()
    for _ in $(seq $((4 * $(nproc)))); do
        (while :; do :; done) 3>&- & busy+=($!)
    done
    "${GEN[@]}" --max-new 400 --warmup 1 --again 1 "$T/prompts" -o "$T/busy" || status=$?
    kill "${busy[@]}"
    jq -se 'map(select(.kind == "generation" and .phase == "timed")) |
        any(.attempt == 1) and (map(select(.tainted != [])) | length > 0)' "$T/busy"
    jq -se 'map(select(.kind == "fitness")) | .[0].fit == false and .[0].reasons != []' "$T/busy"
}

@test "the rounds of a schedule are run once each" {
    "$BIN/schedule" --systems llama --batch 1,2 --gen-length 8 --launches 1 \
        --rounds 2 --no-meta -o "$T/schedule"
    "${GEN[@]:0:3}" --schedule "$T/schedule" --launch 0 "$T/prompts" -o "$T/out"
    jq -se 'map(select(.kind == "generation")) | group_by([.batch, .id]) | length == 6 and
        all(map(.round) | sort == [0, 1])' "$T/out"
}

@test "with a schedule --draft serves the launches that guess; the schedule sets the tokens" {
    "$BIN/schedule" --systems llama --gen-length 4 --launches 1 --no-meta > "$T/plan"
    run "${GEN[@]}" --draft "$T/no-such-model" --schedule "$T/plan" --launch 0 "$T/prompts"
    [ "$status" -eq 66 ]
    [[ $output == *no-such-model* ]]
    "${GEN[@]}" --draft synth:tiny-llama --schedule "$T/plan" --launch 0 --warmup 0 "$T/prompts" |
        jq -se 'map(select(.kind == "generation")) | length > 0 and
            all(.draft_model == null and .draft_tokens == 0 and (has("draft_arch") | not))'
    jq -c 'if .points then .points += [.points[0] + {draft_tokens: 2}] else . end' "$T/plan" \
        > "$T/guesses"
    "${GEN[@]}" --draft synth:tiny-llama --schedule "$T/guesses" --launch 0 --warmup 0 \
        "$T/prompts" | jq -se 'map(select(.kind == "generation") | [.draft_tokens, .draft_arch]) |
            unique == [[0, null], [2, "llama"]]'
}
