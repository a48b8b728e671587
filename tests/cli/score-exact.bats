#!/usr/bin/env bats
# score-exact: generation records with answers in, accuracy out.
load conforms

setup() {
    set -o pipefail
    BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
    F=tests/fixtures
}

score() { "$BIN/score-exact" -q --no-meta "$@"; }

one() { # FIELDS
    jq -cn "{kind: \"generation\", run: \"r\", id: \"p\", config: \"c\", model: \"m\",
             arch: \"llama\", batch: 1, phase: \"timed\", status: \"ok\"} + $1"
}

# verdict ANSWER TEXT [OPTION...]: prints 1, 0 or nothing
verdict() {
    local answer=$1 text=$2
    shift 2
    jq -cn --arg a "$answer" --arg t "$text" '{kind: "generation", run: "r", id: "p", config: "c",
        model: "m", phase: "timed", status: "ok", answer: $a, text: $t}' |
        score "$@" | jq -r 'select(.id).value'
}

@test "the golden stream of generations gives the stored qualities" {
    score $F/measure-generation.ndjson | diff - $F/score-exact-quality.ndjson
}

@test "a quality record copies the fields of its answer unchanged" {
    while IFS='|' read -r words bad; do
        run score < <(one '{answer: "5", text: "5"}'
                      one "{id: \"q\", answer: \"6\", text: \"6\"} + $bad")
        echo "$bad: $status $output"
        [ "$status" -eq 1 ]
        [[ "$output" == *"$words"* ]]
    done << 'END'
task: expected a text, got true or false|{task: true}
seed: expected a whole number, got an array|{seed: []}
copies: expected a whole number from 1 to 4294967295, got 0|{copies: 0}
copies: expected a whole number from 1|{copies: 5000000000}
END
}

@test "the last number of a text is its answer" {
    [ "$(verdict 17 'First 3, then 17.')" = 1 ]
    [ "$(verdict 17 'It is 17, not 18')" = 0 ]
    [ "$(verdict 17 'no number at all')" = 0 ]
    [ "$(verdict 17 '')" = 0 ]
    [ "$(verdict '#### 1,050' 'So $1050.00')" = 1 ]
    [ "$(verdict 0.5 'half, .5 or 0.50')" = 1 ]
    [ "$(verdict -4 'it is -4')" = 1 ]
    [ "$(verdict 4 'it is -4')" = 0 ]
    [ "$(verdict 3 '5-3')" = 1 ]
    [ "$(verdict 7 '007')" = 1 ]
    [ "$(verdict 0 'minus nought: -0.0')" = 1 ]
    [ "$(verdict 2 'see 2, in b12')" = 1 ]
    [ "$(verdict 3 '1,2,3')" = 1 ]
    [ "$(verdict 12345678901234567890 'big: 12345678901234567891')" = 0 ]
}

@test "--match chooses other ways to match" {
    [ "$(verdict 3 'First 3, then 17.' --match=first-number)" = 1 ]
    [ "$(verdict Paris 'It is Paris.' --match=contains)" = 1 ]
    [ "$(verdict paris 'It is Paris.' --match=contains)" = 0 ]
    [ "$(verdict Paris ' Paris
' --match=exact)" = 1 ]
    [ "$(verdict Paris 'Paris.' --match=exact)" = 0 ]
    run verdict 3 3 --match=roughly
    [ "$status" -ne 0 ]
}

@test "auto matches a number as last-number, {in braces} in any order, other words exactly" {
    [ "$(verdict '12 cups' 'So 5, then 12.')" = 1 ]
    [ "$(verdict 'cup, key' ' cup, key
')" = 1 ]
    [ "$(verdict 'cup, key' 'key, cup')" = 0 ]
    [ "$(verdict 'cup, key' 'a cup, key')" = 0 ]
    [ "$(verdict '{cup, key, map}' ' map, cup,key')" = 1 ]
    for wrong in 'map, cup' 'map, cup, cup' 'map, cup, key, key' 'cup key map' '' 'cups, key, map'
    do
        [ "$(verdict '{cup, key, map}' "$wrong")" = 0 ]
    done
    [ "$(verdict '{cup, cup}' 'cup, cup')" = 1 ]
    [ "$(verdict '{cup, cup}' 'cup')" = 0 ]
    [ "$(verdict 'cup, key' 'key, cup' --match=any-order)" = 1 ]
    [ "$(verdict '2, 3' '3, 2' --match=any-order)" = 1 ]
    one '{answer: "cup", text: "cup"}' | score | jq -se '.[1].method == "exact, Wilson interval"'
    { one '{answer: "cup", text: "cup"}'; one '{id: "q", answer: "7", text: "7"}'; } | score |
        jq -se '.[2].method == "auto, Wilson interval"'
}

@test "each of several tasks has its own summary" {
    { for n in 1 2 3 4; do one "{id: \"c$n\", task: \"copy\", answer: \"a, b\", text: \"a, b\"}"
      done
      for n in 1 2; do one "{id: \"m$n\", task: \"Long Sums\", answer: \"$n\", text: \"1\"}"; done
      one '{id: "n", answer: "7", text: "8"}'; } | score > "$T/q"
    [ "$(jq -r 'select(.summary) | "\(.metric) \(.value * .n | round) \(.n)"' "$T/q" | xargs)" = \
        "accuracy 5 7 accuracy_copy 4 4 accuracy_long_sums 1 2" ]
    conforms "$T/q"
    jq -c 'select(.task == "copy") | .task' "$T/q" | [ "$(wc -l)" -eq 4 ]
    for n in 1 2; do one "{id: \"c$n\", task: \"copy\", answer: \"a\", text: \"a\"}"; done | score |
        jq -se 'map(select(.summary)) | length == 1'
    for n in $(seq 20); do one "{id: \"c$n\", task: \"t$n\", answer: \"a\", text: \"a\"}"; done |
        "$BIN/score-exact" --no-meta > "$T/q" 2> "$T/err"
    [ "$(jq -c 'select(.summary)' "$T/q" | wc -l)" -eq 17 ]
    grep -q '16 tasks have their own accuracy; 4 answers of further tasks' "$T/err"
}

@test "a summary has Wilson's interval" {
    for n in $(seq 20); do
        one "{id: \"p$n\", answer: \"7\", text: (if $n <= 15 then \"7\" else \"8\" end)}"
    done | score | tail -1 > "$T/s"
    [ "$(jq -c '[.summary, .value, .n, (.lo * 1e4 | floor), (.hi * 1e4 | floor)]' "$T/s")" = \
      "[true,0.75,20,5312,8881]" ]
}

@test "the prompt is the unit: several answers count as one share of right ones" {
    # 20 prompts in 5 launches, each with a seed of its own: 10 always right, 10 once in 5
    for n in $(seq 20); do for launch in 1 2 3 4 5; do
        one "{id: \"p$n\", answer: \"7\", seed: $launch, launch: $launch, token_ids: [$n],
              text: (if $n <= 10 or $launch == 1 then \"7\" else \"8\" end)}"
    done; done > "$T/g"
    score "$T/g" | tail -1 > "$T/s"
    [ "$(jq -c '[.n, (.value * 1e6 | round), (.lo * 1e4 | floor), (.hi * 1e4 | floor)]' "$T/s")" = \
      "[20,600000,3865,7811]" ] # Wilson's of 12 among 20
    # one record of each answer with its number gives the same
    jq -c '.token_ids = [.text | tonumber]' "$T/g" > "$T/raw"
    jq -cn -f pipelines/phase/distinct.jq "$T/raw" > "$T/distinct"
    [ "$(jq -s -c '[length, (map(.copies) | add), (map(.copies) | unique)]' "$T/distinct")" = \
        "[30,100,[1,4,5]]" ]
    score "$T/distinct" > "$T/q"
    conforms "$T/q"
    tail -1 "$T/q" | diff - "$T/s"
    [ "$(jq -s 'map(.copies // 0) | add' "$T/q")" -eq 100 ]
}

@test "answers without a score are counted" {
    { one '{text: "7", seq: 1}'; one '{answer: "7", text: "7"}'
      one '{answer: "7", text: "8", round: 1}'
      one '{id: "q", answer: 7, text: "7", phase: "cold"}'
      one '{id: "q", answer: 7, text: "7"}'; } > "$T/in"
    "$BIN/score-exact" --no-meta "$T/in" > "$T/q" 2> "$T/err"
    grep -q 'skipped: 1 without an answer, 1 further rounds, 1 not timed or not ok' "$T/err"
    [ "$(jq -c 'select(.summary) | [.value, .n]' "$T/q" | sed 's/\.0//')" = "[1,2]" ]
}

@test "random weights have no quality" {
    one '{answer: "7", text: "7", weights_random: true}' | score > "$T/q"
    [ "$(jq -c '[.value, .value_reason]' "$T/q" | sort -u)" = '[null,"random weights"]' ]
}

@test "an answer that cannot be matched is an error, and so is no record" {
    run score --match=last-number < <(one '{answer: "Paris", text: "7"}')
    [ "$status" -eq 65 ]
    [[ "$output" == *"expected a number for --match=last-number, got 'Paris'"* ]]
    run score < <(one '{answer: "7", text: null}')
    [ "$status" -eq 65 ]
    run score --match=last-number < <(one '{answer: "Paris", text: "7"}'
        one '{id: "q", answer: "7", text: "7"}')
    [ "$status" -eq 1 ] # the other one is scored
    [ "$(grep -c '"summary":true' <<< "$output")" -eq 1 ]
    run score < /dev/null
    [ "$status" -eq 65 ]
}

@test "a point on two sets of prompts has two summaries; each carries its identity" {
    for w in aa bb; do
        one "{point: \"000000000001\", workload: \"$w\", threshold: 0.9, axis: \"threshold\",
              series: \"000000000002\", answer: \"7\", text: \"7\"}"
    done | score > "$T/q"
    [ "$(jq -c 'select(.summary) | [.point, .workload, .n, .axis, .series, .threshold]' "$T/q" |
        paste -sd ' ')" = '["000000000001","aa",1,"threshold","000000000002",0.9] '\
'["000000000001","bb",1,"threshold","000000000002",0.9]' ]
}
