#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# score-ppl: every record names the judge, and a judge that is also a contestant gives a warning.
load conforms

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    export BIN="${BIN:-build/bin}" D="$BATS_FILE_TMPDIR"
    "$BIN/prep-prompts" -q --count 2 --seed 1 data/corpus/valid.ndjson.gz -o "$D/prompts"
    "$BIN/gen-llama" -q -m data/models/llama-demo --max-new 8 --threads 1 "$D/prompts" -o "$D/llama"
}

setup() {
    set -o pipefail
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
}

# judged MODEL FILE: prints quality records; messages go to $T/err
judged() { "$BIN/score-ppl" --threads 1 --no-meta -m "$1" "$2" 2> "$T/err"; }

@test "each record names the judge and the hash of its weights" {
    judged data/models/judge-demo "$D/llama" > "$T/q"
    jq -se 'length > 4 and all(.judge == "judge-demo" and (.judge_sha256 | test("^[0-9a-f]{64}$")))
        and ([.[].judge_sha256] | unique | length == 1)' "$T/q"
    judged data/models/llama-demo "$D/llama" > "$T/other"
    [ "$(jq -r .judge_sha256 "$T/q" | sort -u)" != "$(jq -r .judge_sha256 "$T/other" | sort -u)" ]
    conforms "$T/q"
}

@test "a judge that is also a contestant gives a warning, by name or by weights" {
    judged data/models/llama-demo "$D/llama" > /dev/null
    grep -q 'W202.*llama-demo is a contestant' "$T/err"
    [ "$(grep -c W202 "$T/err")" -eq 1 ]
    judged data/models/judge-demo "$D/llama" > /dev/null
    ! grep -q W202 "$T/err" || false
    # the same weights under another name
    cp -r data/models/llama-demo "$T/another-name"
    judged "$T/another-name" "$D/llama" > /dev/null
    grep -q 'W202' "$T/err"
}

@test "a response that two points share has one value; after another prompt the value differs" {
    record() { jq -nc --arg c "$1" --arg p "$2" --arg t "$3" \
        '{kind: "generation", config: $c, id: "a", prompt: $p, text: $t}'; }
    { record x "Tom has" " 3 apples."; record y "Tom has" " 3 apples."
      record z "Tom" " has 3 apples."; } > "$T/g"
    nats() { jq -c 'select(.metric == "judge_nll_nats") | [.config, .value, .scored_tokens]' "$@"; }
    judged data/models/judge-demo "$T/g" > "$T/q"
    while read -r line; do
        echo "$line" > "$T/one"
        judged data/models/judge-demo "$T/one"
    done < "$T/g" > "$T/each"
    [ "$(nats "$T/q" | wc -l)" -eq 3 ]
    cmp <(nats "$T/q") <(nats "$T/each")
    [ "$(nats "$T/q" | jq -s 'map(.[1]) | unique | length')" -eq 2 ]
}

@test "a drawn answer counts for each seed, a greedy one once; the prompt stays the unit" {
    for temperature in 0 1; do for seed in 1 2 2; do
        jq -nc --argjson t $temperature --argjson s $seed '("p", "q") | {kind: "generation",
            config: "t\($t)", temperature: $t, seed: $s, launch: $s, id: ., prompt: "Tom has",
            text: (if $s == 1 then " 3 apples." else " a dog." end)}'
    done; done | uniq > "$T/g"
    judged data/models/judge-demo "$T/g" > "$T/q"
    jq -se 'map(select(.metric == "judge_nll_nats") | .config) | sort
        == ["t0", "t0", "t1", "t1", "t1", "t1"]' "$T/q"
    jq -se 'map(select(.summary and .metric == "judge_ppl").n) == [2, 2]' "$T/q"
    jq -se '(map(select(.config == "t1"))) as $t
        | ($t | map(select(.metric == "judge_nll_nats")) | (map(.value) | add)
              / (map(.scored_tokens) | add) | exp) as $ppl
        | $t | map(select(.summary and .metric == "judge_ppl").value - $ppl | fabs < 1e-9)
        == [true]' "$T/q"
}

@test "qualities carry the point, the workload and all settings" {
    judged data/models/judge-demo "$D/llama" > "$T/q"
    wanted=$(jq -c 'select(.kind == "generation") | [.point, .workload, .series, .dtype, .top_k]' \
        "$D/llama" | sort -u)
    [ "$(jq -c '[.point, .workload, .series, .dtype, .top_k]' "$T/q" | sort -u)" = "$wanted" ]
}

@test "likelihoods of one text with and without quantization are two comparable points" {
    jq -c 'select(.id) | {id, text: "Once upon a time there was a boat."}' "$D/prompts" > "$T/texts"
    for q in none int8; do
        "$BIN/score-ppl" -q --threads 1 --no-meta --mode nll -m data/models/llama-demo --quant $q \
            "$T/texts"
    done > "$T/q"
    [ "$(jq -r .point "$T/q" | sort -u | wc -l)" -eq 2 ]
    "$BIN/compare" --no-meta --by quant "$T/q" > "$T/c"
    [ "$(jq -c '[.metric, .setting, .n]' "$T/c")" = '["ppl","int8",2]' ]
}

@test "one bad text or too little memory gives exit code 1 and does not stop other texts" {
    { echo '{"id":"empty","prompt_ids":[]}'; grep "\"kind\":\"prompt\"" "$D/prompts"; } > "$T/in"
    nll=("$BIN/score-ppl" --mode nll -m data/models/llama-demo --threads 1 --device cpu --no-meta)
    run --separate-stderr "${nll[@]}" "$T/in"
    [ "$status" -eq 1 ]
    jq -se 'map(select(.kind == "error").id) == ["empty"] and
        (map(select(.metric == "nll_nats" and .value > 0)) | length) >= 2' <<< "$output"
    "${nll[@]}" --max-failed 1 "$T/in" > "$T/q"
    run --separate-stderr "${nll[@]}" <(head -n 1 "$T/in")
    [ "$status" -eq 65 ] # nothing to score
    jq -c 'select(.id) | {id, text: (.text * 6)}' "$D/prompts" > "$T/long"
    run --separate-stderr "${nll[@]}" --mem-cap 9M "$T/long"
    [ "$status" -eq 1 ]
    [[ $stderr == *"out of memory for the activations"* ]]
    jq -se 'map(select(.kind == "error").code) == ["failed", "failed"]' <<< "$output"
}
