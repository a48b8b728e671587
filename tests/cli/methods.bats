#!/usr/bin/env bats
# Decoding methods by name: their schedule, their points, comparison, figure and table.
bats_require_minimum_version 1.5.0
load conforms

setup() {
    set -o pipefail
    BIN=$(realpath "${BIN:-$BATS_TEST_DIRNAME/../../build/bin}")
    ROOT=$(realpath "$BATS_TEST_DIRNAME/../..")
    cd "$BATS_TEST_TMPDIR" || exit 1
}

# A negated command cannot fail a test in bats; this function can.
lacks() { if grep "$@"; then return 1; fi; }

# fails CODE WORDS COMMAND...
fails() {
    run "-$1" --separate-stderr "${@:3}"
    grep -qF -e "$2" <<< "$stderr"
}

method() { # NAME SYSTEM SETTINGS [SPEEDUP]
    jq -cn --arg m "$1" --arg s "$2" --argjson v "$3" --argjson p "${4:-null}" \
        '{schema: "crossover/1", kind: "method", run: "t", method: $m, system: $s, settings: $v,
          source: "here"} + (if $p then {published: [{speedup: $p, on: "a card",
                                                      counting: "to_eos"}]} else {} end)'
}

three() {
    method vanilla llada '{"unmask":"schedule","cache":"none","steps":null}'
    method factor llada '{"unmask":"factor"}' 3
    method dual-factor llada '{"cache":"dual","unmask":"factor","factor":0.5}' 9.5
    method plain llama '{"cache":"on"}'
}

@test "every record of data/methods.ndjson is a method, and each is a point of its own" {
    conforms "$ROOT/data/methods.ndjson"
    "$BIN/schedule" --steps 64 --gen-length 64 --block-length 32 --launches 1 \
        --methods "$ROOT/data/methods.ndjson" --no-meta > plan
    for s in llada llama; do
        [ "$(jq -s --arg s $s 'map(select(.system == $s))[0].points | length' plan)" -eq \
          "$(jq -s --arg s $s 'map(select(.system == $s).settings
              | [.[] | if type == "array" then length else 1 end] | reduce .[] as $n (1; . * $n))
              | add' "$ROOT/data/methods.ndjson")" ]
    done
    [ "$(jq -r .source "$ROOT/data/methods.ndjson" | grep -c .)" -eq \
      "$(wc -l < "$ROOT/data/methods.ndjson")" ]
}

# Ids of all methods on the embedded models, in f32, so that no near tie decides.
ids_of_methods() { # FLAGS...
    gzip -dc "$ROOT/data/corpus/valid.ndjson.gz" |
        jq -c 'select(.id == "valid-000512" or .id == "valid-001911")' > prompts
    "$BIN/schedule" --steps 32 --gen-length 32 --block-length 16 --contract fixed \
        --launches 1 --methods <(jq -c 'select(.only == null and .drafter == null)' \
            "$ROOT/data/methods.ndjson") \
        --no-meta > plan
    for s in llada llama; do
        "$BIN/gen-$s" -q --no-meta -m "$ROOT/data/models/$s-demo" --dtype f32 --schedule plan \
            --launch "$(jq -r --arg s $s 'select(.system == $s).launch' plan)" --warmup 0 "$@" \
            prompts
    done | jq -c 'select(.kind == "generation") | {config, id, token_ids}' | sort
}

@test "every method gives the ids of its golden record" {
    ids_of_methods --device cpu > got
    diff "$ROOT/tests/fixtures/methods-ids.txt" got
}

@test "a method has its settings and the given values of all others" {
    three > m
    "$BIN/schedule" --steps 4,16 --gen-length 16 --block-length 8 --batch 1,2 \
        --launches 1 --methods m --no-meta > plan
    # steps 4 and 16 (16 is also vanilla), and two more methods; each at two batch sizes
    jq -es 'map(select(.system == "llada"))[0].points
            | length == 8
              and (map(select(.unmask == "factor")) | length == 4 and all(.block_length == 8))
              and (map(select(.factor == 0.5)) | map(.batch) | sort == [1, 2])' plan
}

@test "each value of a list is a point of its method and has its own name" {
    { three; method lookup llama '{"cache":"on","lookup":[2,5,10]}'; } > m
    conforms m
    "$BIN/schedule" --steps 16 --gen-length 16 --block-length 8 --batch 1,2 --launches 1 \
        --methods m --no-meta > plan
    jq -es 'map(select(.system == "llama"))[0].points | map([.batch, .lookup // 0]) | sort ==
            [[1, 0], [1, 2], [1, 5], [1, 10], [2, 0], [2, 2], [2, 5], [2, 10]]' plan
    # a record is compared under the name of its value; a value that the list lacks has no name
    run_of > in
    jq -c 'if .arch == "llama" and .lookup == 5 then .lookup = 7 | .point += "7" else . end' in |
        "$BIN/compare" --no-meta --methods m --cost e2e_ns - > out
    [ "$(jq -r 'select(.metric == "e2e_ns" and .base_setting == "plain").setting' out |
        sort | paste -sd ,)" = 'lookup 10,lookup 2' ]
    # two lists are crossed
    method both llama '{"lookup":[2,5],"lookup_ngram":[1,2,3]}' > m
    "$BIN/schedule" --gen-length 16 --launches 1 --systems llama --methods m --no-meta |
        jq -es '.[0].points | map(select(.lookup)) | length == 6'
}

@test "published speed-ups belong to every value of a list" {
    three | jq -c 'if .method == "dual-factor" then .settings.factor = [0.5, 2] else . end' > m
    run_of > in
    "$BIN/compare" --no-meta --methods m --cost e2e_ns in > by-method
    "$BIN/report" -q --format markdown in by-method m -o page.md
    for value in 0.5 2; do
        grep -q "^| synth:tiny-llada | dual-factor $value |.*9.5 times, a card" page.md
    done
    grep -q '^| synth:tiny-llada | factor |.*3 times, a card' page.md
}

@test "a published speed-up belongs to the method of this name, not to one that begins like it" {
    { method vanilla llada '{"unmask":"schedule","cache":"none","steps":null}'
      method dual llada '{"cache":"dual","unmask":"factor","factor":[2]}' 3
      method 'dual + factor' llada '{"cache":"dual","unmask":"factor","factor":0.5}' 9.5; } > m
    run_of > in
    "$BIN/compare" --no-meta --methods m --cost e2e_ns in > by-method
    "$BIN/report" -q --format markdown in by-method m -o page.md
    grep -q '^| synth:tiny-llada | dual 2 |.*3 times, a card' page.md
    grep -q '^| synth:tiny-llada | dual + factor |.*9.5 times, a card' page.md
    "$BIN/plot" --type methods in by-method m -o f.svg
    [ "$(grep '^[0-9]' f.tsv | cut -f 9 | paste -sd ' ')" = "NaN NaN 9.5 3" ]
}

@test "a method is labelled by the values of its lists, and looks the same at all of them" {
    { three
      method wino llada '{"unmask":"wino","cache":["prefix","dual"]}'
      method 'block 4' llada '{"unmask":"threshold"}'
      method lookup llama '{"lookup":[2,5],"lookup_ngram":[2,3]}'; } > m
    run_of | jq -c 'if .kind != "quality" then .
        elif .id == "p0" then del(.id) | .summary = true | .n = 10 else empty end' > in
    "$BIN/plot" --type pareto in m -o f.svg
    [ "$(sed -n '/^# labels/,/^$/p' f.tsv | grep '^[0-9]' | cut -f 4 | sed 's/^ $/none/' | sort |
        paste -sd ,)" = '16,2 2,2 3,5 2,5 3,dual,none,none,none,none,prefix' ]
    [ "$(grep -c "^series_method\[.*'lookup'" f.gp)" = 4 ]
    [ "$(grep -c "^series_method\[.*'wino'" f.gp)" = 2 ]
    grep -q "^series_method\[.*'block 4'" f.gp
}

@test "an unknown method is refused" {
    method a llada '{"unmask":"factor"}' > m
    cat m m > twice
    fails 65 "'a' is there twice" "$BIN/schedule" --methods twice
    method a llada '{"unmaks":"factor"}' > m
    fails 65 "'unmaks' is not a setting of llada" "$BIN/schedule" --methods m
    method a llada '{"unmask":"magic"}' > m
    fails 65 unmask "$BIN/schedule" --methods m
    method a llama '{"lookup":[]}' > m
    fails 65 "expected lists of 1 or more values" "$BIN/schedule" --methods m
    method a llama '{"lookup":[2,"many"]}' > m
    fails 65 lookup "$BIN/schedule" --methods m
    method a llama '{"lookup":[2,[5]]}' > m
    fails 65 lookup "$BIN/schedule" --methods m
    method a llama "{\"lookup\":$(seq 65 | jq -sc .)}" > m
    fails 65 "at most 64 combinations" "$BIN/schedule" --methods m
    { method a llama '{"lookup":[2]}'; method 'a 2' llama '{"lookup":3}'; } > m
    fails 65 "method 'a 2': the name 'a 2' is there twice" "$BIN/schedule" --methods m
    method a llama '{"lookup":[2,2]}' > m
    fails 65 "method 'a': the name 'a 2' is there twice" "$BIN/schedule" --methods m
    # keys are tested before their lists are crossed, which many keys would make endless
    method a llama '{"1":[1]}' |
        jq -c '.settings = ([range(1; 100001) | {key: "\(.)", value: [1]}] | from_entries)' > m
    fails 65 "'1' is not a setting of llama" timeout 60 "$BIN/schedule" --methods m
    method a gpt '{}' > m
    fails 65 "system: expected llama, llada or ltm, got 'gpt'" "$BIN/schedule" --methods m
    echo '{"kind":"metric"}' > m
    fails 65 "no methods" "$BIN/schedule" --methods m
    fails 66 nowhere "$BIN/schedule" --methods nowhere
}

# Metrics and answers of three LLaDA methods and of LLaMA, five launches of 10 prompts: factor is 4
# times as fast as vanilla and as good, dual-factor 8 times and worse; LLaMA 2 times. The settings
# are those of generations.
run_of() {
    echo '{"id":"p0","text":"one two"}' > prompt
    "$BIN/schedule" --steps 16 --gen-length 16 --block-length 8 --launches 1 \
        --contract answer --methods m --no-meta > plan
    "$BIN/gen-llada" -m synth:tiny-llada --schedule plan --launch 0 --warmup 0 --no-meta -q \
        prompt > made
    "$BIN/gen-llama" -m synth:tiny-llama --schedule plan --launch 0 --warmup 0 --no-meta -q \
        prompt >> made
    jq -c 'select(.kind == "generation") | del(.id, .memory, .host, .tainted, .text, .token_ids)
        | (if .arch == "llama" then [40, 10] elif .unmask == "schedule" then [80, 9]
           elif .cache == "none" then [20, 9] else [10, 0] end) as [$took, $right]
        | . + {weights_random: false, workload: "w", prompts: 10}
        | . + {kind: "metric", metric: "e2e_ns", value: ($took * 1e6), lo: ($took * 0.9e6),
               hi: ($took * 1.1e6), n: 10, launches: 5, unit: "ns", direction: "lower",
               launch_values: [range(5) | {launch: ., value: (($took + . * 0.01) * 1e6)}]},
          . + {kind: "times", ids: [range(10) | "p\(.)"], tasks: [range(10) | null],
               launches: [range(5)], cpu_ns: [range(5) | [range(10) | null]], disturbed_cells: 0,
               e2e_ns: [range(5) as $l | [range(10) | ($took + $l * 0.01) * 1e6 + .]]},
          (range(10) as $i | . + {kind: "quality", id: "p\($i)", metric: "accuracy",
                                  value: (if $i < $right then 1 else 0 end),
                                  direction: "higher"})' made
}

@test "methods are compared with the first of their system" {
    three > m
    run_of > in
    "$BIN/compare" --no-meta --methods m --cost e2e_ns in > out
    conforms out
    jq -es 'map(select(.metric == "e2e_ns") | {(.setting): .}) | add
            | keys == ["dual-factor", "factor"]
              and all(.by == "method" and .base_setting == "vanilla")
              and (.factor.value - 0.25 | fabs < 0.01)' out
    jq -es 'map(select(.metric == "accuracy") | {(.setting): .}) | add
            | ."dual-factor".hi < 0 and .factor.value == 0' out
}

@test "figure and page show speed, accuracy and published claims" {
    three > m
    run_of > in
    "$BIN/compare" --no-meta --methods m --cost e2e_ns in > by-method
    "$BIN/compare" --no-meta --by paradigm --cost e2e_ns in > ratios
    "$BIN/plot" --type methods in by-method m -o f.svg
    grep -q 'dual-factor' f.svg
    [ "$(grep '^[0-9]' f.tsv | cut -f 3 | awk '{ printf "%.2g ", $1 }')" = "1 2 4 8 " ]
    "$BIN/report" -q --format markdown in by-method ratios m -o page.md
    # the short page compares each method with plain LLaMA, the fastest first
    sed -n '/^## Decoding methods/,/^## /p;/^# All tables/q' page.md > part
    [ "$(grep '^| synth' part | cut -d '|' -f 2 | tr -d ' \n')" = \
        "synth:tiny-llada,dual-factorsynth:tiny-llada,factorsynth:tiny-llama,plain\
synth:tiny-llada,vanilla" ]

    grep -q '^| synth:tiny-llada, vanilla | .* | 2.00 .* | 90 % | .*10 .* points | not shown |' part
    grep -q '^| synth:tiny-llada | dual-factor |.*9.5 times, a card (to\\_eos)' page.md
    grep -q 'interval is less accurate than the base: dual-factor' page.md
    lacks -q '^| synth:tiny-llama | plain' page.md # LLaMA has no other method to compare
}

@test "labels of the figure's ticks do not overlap" {
    three > m
    run_of > in
    "$BIN/compare" --no-meta --methods m --cost e2e_ns in |
        jq -c 'if .setting == "factor" then .setting = "vicinity-threshold" else . end' > by-method
    for far in 1 0.35; do # times as fast, up to 8 and up to 3
        jq -c --argjson far $far 'if .metric == "e2e_ns" and .kind == "comparison"
            then .value /= $far | .lo /= $far | .hi /= $far else . end' by-method > far
        "$BIN/plot" --type methods in far -o f.svg
        for f in f f-narrow; do # middle, height and text of each; 5.6 pixels a letter
            sed -n 's/.*translate(\(.*\),\(.*\))".*anchor="middle">$/\2 \1/p; t next
                b; :next; n; s/<[^>]*>//g; p' "$f.svg" | paste -d ' ' - - | sort -n -k 1,1 -k 2,2 |
                awk '$3 !~ /^-?[0-9.]+$/ { next }
                     $1 == y && $2 - x < 2.8 * (length($3) + letters) + 2 { bad = 1 }
                     { y = $1; x = $2; letters = length($3); n++ }
                     END { exit bad || n < 5 }'
        done
    done
}

@test "no table of the page has more than eight columns" {
    three > m
    run_of > in
    "$BIN/compare" --no-meta --methods m --cost e2e_ns in > by-method
    jq -c 'if .kind == "metric" then ., (.metric = "passes" | .unit = "passes" | .value = 3)
        else . end' in > more
    "$BIN/report" -q --format markdown more by-method m -o page.md
    grep -q '^| Model | Method | Latency | Speed-up | Accuracy |' page.md
    grep -q '^| Model | Method | Tokens per second | Tokens per pass | Passes | Rows |' page.md
    [ "$(grep '^|' page.md | awk -F ' [|] ' '{ print NF }' | sort -n | tail -n 1)" -le 8 ]
}

@test "the base of the comparisons has the same name everywhere" {
    three | sed 's/vanilla/single/' > m
    run_of > in
    "$BIN/compare" --no-meta --methods m --cost e2e_ns in > by-method
    "$BIN/plot" --type methods in by-method -o f.svg
    grep -q '>single<' f.svg
    grep -q 'speed-up over single ' f.txt
    "$BIN/report" -q --format markdown in by-method -o page.md
    grep -q '^| synth:tiny-llada | single |' page.md
}

@test "a series of a method is named by the method, not by a value of its axis" {
    three > m
    run_of > in
    jq -c 'select(.kind == "metric") | .metric = "output_tokens_per_s" | .unit = "per_s"
        | .direction = "higher"' in > rates
    "$BIN/plot" --type throughput rates m -o t.svg
    for name in ' factor' ' dual-factor' ', 16 steps'; do
        grep -q ">synth:tiny-llada$name<" t.svg
    done
    "$BIN/plot" --type throughput rates -o t.svg
    grep -q '>synth:tiny-llada cache=dual unmask=factor, .*0.5<' t.svg
}

@test "without methods the page does not mention them" {
    three > m
    run_of > in
    "$BIN/report" -q --format markdown in -o page.md
    lacks -q 'Way of decoding' page.md
    "$BIN/plot" --type methods in -o f.svg
    grep -q 'no comparison by method' f.txt
}
