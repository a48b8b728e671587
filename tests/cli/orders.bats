#!/usr/bin/env bats
# compare: the modes that judge a whole run: orders of points over templates and seeds, accuracy
# under parallelism, and the parts of the time of a step.
load conforms

setup() {
    set -o pipefail
    BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
}

compare() { "$BIN/compare" --no-meta "$@"; }

# scores CHAT SEED BETTER: right answers of three points to 60 prompts. The point BETTER is right
# most often; the others follow in order
scores()
{
    jq -nc --arg chat "$1" --argjson seed "$2" --arg better "$3" '["a", "b", "c"] as $points
        | ([$better] + ($points - [$better])) as $order | range(60) as $i | range(3) as $k
        | {schema: "crossover/1", kind: "quality", run: "r", config: $order[$k], model: $order[$k],
           arch: "llama", batch: 1, temperature: 1, point: "\($order[$k])\($chat)", seed: $seed,
           shots: 5, id: "p\($i)", metric: "accuracy", direction: "higher",
           value: (if $i % 4 >= $k then 1 else 0 end)}
          + if $chat == "" then {} else {conditions: "chat=\($chat)"} end'
}

@test "an order holds over templates and seeds, flips or is open" {
    { scores "" 1 a; scores own 1 a; scores "" 2 a; } > "$T/same"
    compare --ranking "$T/same" > "$T/out"
    conforms "$T/out"
    jq -e '.verdict == "HOLDS" and .tau == 1 and .lo == 1 and .n == 60 and .flips == []
        and .places == ["chat=own shots=5 seed=1", "shots=5 seed=1", "shots=5 seed=2"]
        and (.systems | sort) == ["a", "b", "c"]' "$T/out"
    { cat "$T/same"; scores own 3 b; } | compare --ranking > "$T/out"
    conforms "$T/out"
    jq -e '.verdict == "FLIPS" and .tau < 1 and .hi < 1 and (.flips | length) == 1
        and ([.flips[0] | .first, .second] | sort) == ["a", "b"]
        and (.flips[0] | [.first_better, .second_better] | map(length) | sort) == [1, 3]
        and (.text | test("it flips: . is better than . with .*seed"))
        and (.pairs | map({([.first, .second] | sort | add): .verdict}) | add) ==
            {ab: "FLIPS", ac: "HOLDS", bc: "HOLDS"}' "$T/out"
    # answers that are not drawn are the same under every seed
    jq -c 'if .model == "c" then .temperature = 0 | select(.seed == 1) else . end' "$T/same" |
        compare --ranking > "$T/greedy"
    jq -e '.verdict == "HOLDS" and (.places | length) == 3 and .left_out == 0' "$T/greedy"
    # 28 common prompts show nothing; a place that lacks a point does not count
    { jq -c 'select(.id | ltrimstr("p") | tonumber < 28)' "$T/same"; scores "" 4 a |
        jq -c 'select(.model != "c")'; } | compare --ranking > "$T/out"
    jq -e '.verdict == "UNDECIDED" and .tau == 1 and .lo < 1 and .left_out == 1 and
        any(.pairs[]; .verdict == "UNDECIDED")' "$T/out"
    # an empty name of the conditions is no name
    { scores "" 1 a | jq -c '.conditions = ""'; scores own 1 a; } | jq -c 'del(.shots, .seed)' |
        compare --ranking > "$T/out"
    jq -e '.verdict == "HOLDS" and .places == ["chat=own", "no template"]' "$T/out"
    # shares of an answer are no right or wrong answers: a difference of 0.02 in every prompt shows
    { scores "" 1 a; scores own 1 a; } | jq -c '({a: 1, b: 2, c: 3}[.model]) as $k
        | .value = 0.5 - 0.02 * $k + 0.001 * ((.id | ltrimstr("p") | tonumber) * $k % 11)' |
        compare --ranking > "$T/out"
    jq -e '.verdict == "HOLDS" and .lo == 1' "$T/out"
    # 6 right answers more of 60 do not show an order, 7 do: the score test, less one prompt
    for more in 6 7; do
        { scores "" 1 a; scores own 1 a; } | jq -c --argjson more $more 'select(.model != "c")
            | .value = (if .model == "b" and (.id | ltrimstr("p") | tonumber) < $more then 0
                        else 1 end)' | compare --ranking
    done > "$T/out"
    jq -se 'map(.verdict) == ["UNDECIDED", "HOLDS"]' "$T/out"
    # a point has the words that its labels have in every place
    { scores "" 1 a; scores own 1 a; } |
        jq -c '.config = "model \(.model) \(.conditions // "plain") 8 steps"' |
        compare --ranking > "$T/out"
    jq -e '(.systems | sort) == (["a", "b", "c"] | map("model \(.) 8 steps"))' "$T/out"
    # an answer that was given three times counts three times: 0.75 is more than 0.625 on average
    { scores own 1 a; scores "" 1 a | jq -c '(.id | ltrimstr("p") | tonumber) as $i | .value = 1
        | if .model == "a" then (.copies = 3), (.value = 0)
          elif $i % 4 == 0 then . else ., (.value = 0) end'; } | jq -c 'select(.model != "c")' |
        compare --ranking > "$T/out"
    jq -e '.verdict == "HOLDS" and .tau == 1' "$T/out"
    # the order holds in one task and flips in the other
    { jq -c '.task = "x"' "$T/same"; { scores "" 1 a; scores own 1 a; scores "" 2 b; } |
        jq -c '.task = "y" | .id += "y"'; } | compare --ranking > "$T/out"
    conforms "$T/out"
    jq -se 'map([.task // "all", .verdict]) | sort ==
        [["all", "UNDECIDED"], ["x", "HOLDS"], ["y", "FLIPS"]]' "$T/out"
    # equal ids of two tasks are different prompts
    jq -c '.task = ("x", "y")' "$T/same" | compare --ranking > "$T/out"
    jq -se 'map([.task // "all", .n]) | sort == [["all", 120], ["x", 60], ["y", 60]]' "$T/out"
    scores "" 1 a | { ! compare --ranking 2> "$T/err" > "$T/out"; }
    grep -q "two or more points under two or more templates or seeds" "$T/err"
    # without a direction no point is better than another
    jq -c '.metric = "share" | del(.direction)' "$T/same" |
        { ! compare --ranking 2> "$T/err" > "$T/out"; }
    grep -q "expected a quality, with a direction, of two or more points" "$T/err"
}

@test "points that differ by less than the margin under all templates and seeds are the same" {
    # a and b are right on as many prompts, but not on the same ones; c is always wrong
    { scores "" 1 a; scores own 1 a; } | jq -c '(.id[1:] | tonumber % 4) as $i | .value =
        (if .config == "a" and $i > 0 or .config == "b" and $i != 1 then 1 else 0 end)' > "$T/in"
    compare --ranking --margin accuracy=0.3 "$T/in" > "$T/out" 2> "$T/err"
    conforms "$T/out"
    jq -e '.verdict == "SAME" and .margin == 0.3 and .margin_relative == false and .lo < 1
        and (.pairs | map({([.first, .second] | sort | add): .verdict}) | add) ==
            {ab: "SAME", ac: "HOLDS", bc: "HOLDS"}' "$T/out"
    grep -q "it holds for 2 pairs; 1 pair is shown to differ by less than 0.3 everywhere" "$T/err"
    # the margins of other qualities, and the default of 5 points, are too small here
    compare --ranking --margin 0.01,other=0.3 "$T/in" | jq -e '.verdict == "UNDECIDED"'
    compare --ranking "$T/in" | jq -e '.verdict == "UNDECIDED" and .margin == 0.05
        and (.pairs | map(.verdict) | sort) == ["HOLDS", "HOLDS", "UNDECIDED"]'
    # an order that is shown, or flips, is not called the same by any margin
    { scores "" 1 a; scores own 1 a; } | compare --ranking --margin 0.99 |
        jq -e '.verdict == "HOLDS"'
    { scores "" 1 a; scores own 1 b; } | compare --ranking --margin 0.99 |
        jq -e '.verdict == "FLIPS"'
    # a relative margin
    compare --ranking --margin 40% "$T/in" | jq -e '.verdict == "SAME" and .margin_relative'
}

@test "accuracy under parallelism is computed for the curve of a sweep and for one point" {
    jq -nc '[["d4", "d", 8, 60], ["d2", "d", 16, 70], ["a", "a", 32, 80]][]
        as [$c, $s, $passes, $right] | range(100) as $i
        | {schema: "crossover/1", run: "r", config: $c, point: $c, series: $s, model: $s, batch: 1,
           arch: (if $s == "a" then "llama" else "llada" end), id: "p\($i)"}
        | (. + {kind: "generation", phase: "timed", status: "ok", new_tokens: 32,
                tokens_to_eos: 32, passes: $passes}),
          (. + {kind: "quality", metric: "accuracy", direction: "higher",
                value: (if $i < $right then 1 else 0 end)})' > "$T/in"
    compare --aup "$T/in" > "$T/out"
    conforms "$T/out"
    jq -se 'map({(.series): .}) | add
        | (.a.value - 80 | fabs) < 1e-9 and .a.curve[0].tokens_per_forward == 1
          and (.d.value - 2 * 70 | fabs) < 1e-9 # 60 is below 70 - 5
          and .d.lo < .d.value and .d.value < .d.hi and .d.n == 100 and .d.best_percent == 80
          and (.d.curve | map(.tokens_per_forward)) == [2, 4]' "$T/out" # along the curve
    grep -v '"quality".*"id":"p99"\|"id":"p99".*"quality"' "$T/in" | compare --aup > "$T/out"
    jq -se 'all(.n == 99 and .left_out == 1)' "$T/out"
    # two tasks with the same ids, in one of which one answer in ten is right
    jq -c '.task = ("x", "y") | if .task == "y" and .kind == "quality" then
        .value = (if .id | endswith("0") then 1 else 0 end) else . end' "$T/in" |
        compare --aup > "$T/out"
    conforms "$T/out"
    jq -se 'length == 4 and (map({("\(.task)\(.series)"): .}) | add | .xa.best_percent == 80
        and (.xa.value - 80 | fabs) < 1e-9 and (.ya.value - 10 | fabs) < 1e-9
        and .yd.best_percent == 10)' "$T/out"
    # two sets of prompts with the same ids; the second has other answers and lacks a point
    { jq -c '.workload = "s1"' "$T/in"
      jq -c '.workload = "s2" | select(.point != "d2")
          | if .kind == "quality" then .value = (if .id | endswith("0") then 1 else 0 end)
            else .passes *= 2 end' "$T/in"; } > "$T/sets"
    compare --aup "$T/sets" > "$T/out" 2> "$T/err"
    conforms "$T/out"
    jq -se 'length == 4 and all(.n == 100 and .left_out == 0 and .unpaired == [])
        and (map({("\(.workload)\(.series)"): .}) | add
             | (.s1a.value - 80 | fabs) < 1e-9 and (.s1d.value - 140 | fabs) < 1e-9
               and (.s2a.value - 0.5 * 10 | fabs) < 1e-9 and (.s2d.value - 2 * 10 | fabs) < 1e-9
               and .s2d.best_percent == 10)' "$T/out"
    # scores that name no set count in the set of their answers
    jq -c 'select(.workload == "s1") | if .kind == "quality" then del(.workload) else . end' \
        "$T/sets" | compare --aup > "$T/one"
    jq -se 'map(.value) | sort | length == 2 and (.[0] - 80 | fabs) < 1e-9' "$T/one"
    # distinct answers of a prompt weigh as often as they were given
    { jq -c 'select(.point == "a")' "$T/in"
      jq -c 'select(.point == "a" and .id == "p0") | .copies = 3 | .launch = 2 | .seed = 2
          | if .passes then .passes = 7 * 32 else .value = 0 end' "$T/in"; } |
        compare --aup > "$T/out"
    jq -e '(.curve[0].tokens_per_forward - 103 / (99 + 1 + 21) | fabs) < 1e-9
        and (.curve[0].accuracy_percent - 79.25 | fabs) < 1e-9' "$T/out"
    jq -c 'select(.id == "p0")' "$T/in" | compare --aup > "$T/out"
    jq -se 'all(.n == 1 and .lo == null and .hi == null and .lo_reason == "n<2")' "$T/out"
    # a point without accuracy, and one without passes
    { cat "$T/in"; jq -c 'select(.point == "a") | .point = ("b", "c", "e") | .series = .point
        | .config = "\(.point)!" | select(.point != "b" or .kind != "quality")
        | if .point == "c" then del(.passes) else . end' "$T/in"; } |
        compare --aup > "$T/out" 2> "$T/err"
    conforms "$T/out"
    jq -se 'length == 3 and all(.n == 100 and .unpaired == ["b!", "c!"])' "$T/out"
    [ "$(grep -c "b! left out: no prompt has both a timed answer and an accuracy of this point" \
        "$T/err")" -eq 1 ] # not once for each curve
    grep quality "$T/in" | { ! compare --aup 2> "$T/err" > "$T/out"; }
    grep -q "timed generation records" "$T/err"
}

# answers FILE: ceilings, and answers that take 1 s; 0.4 s of arithmetic, of which a quarter of the
# rows is needed, or 0.2 s of reading
answers()
{
    jq -nc '{schema: "crossover/1", run: "r", machine: "m"} |
        (. + {kind: "roofline", name: "bytes", ceiling: true, threads: 2, bytes_per_s: 1e10,
              flops_per_s: 1e11, unit: "f32"}),
        (range(8) as $i | . + {kind: "generation", config: "c", point: "c", model: "m", threads: 2,
            arch: "llada", batch: 1, phase: "timed", status: "ok", id: "p\($i)", e2e_ns: 1e9,
            passes: 10, model_flops: 4e10, model_bytes: (if $i < 4 then 2e9 else 5e8 end),
            flops_unit: "f32", rows: 400, prompt_tokens: 60, committed_tokens: 40})' > "$1"
}

@test "the time of a step splits into architecture, algorithm and system" {
    answers "$T/in"
    compare --split "$T/in" > "$T/out" 2> "$T/err"
    conforms "$T/out"
    # needed: max(0.1, 0.2) in one half, max(0.1, 0.05) in the other
    jq -e '(.architecture_percent - 15 | fabs) < 1e-9 and (.algorithm_percent - 25 | fabs) < 1e-9
        and (.system_percent - 60 | fabs) < 1e-9 and (.sum_percent - 100 | fabs) < 1e-9
        and .step_ns == 1e8 and .n == 8 and .architecture_percent_lo < 15' "$T/out"
    grep -q "a step of 100 ms = architecture 15.0 % + algorithm 25.0 % + system 60.0 %" "$T/err"
    jq -c '.e2e_ns |= if . then . / 4 else . end' "$T/in" | compare -q --split > "$T/out"
    jq -e '.system_percent < 0 and .sum_percent > 102' "$T/out" # the ceilings cannot hold
    grep generation "$T/in" | { ! compare --split 2> "$T/err" > "$T/out"; }
    # rows that are not known are not "all needed"
    for f in '.rows = 0' 'del(.rows)' 'del(.prompt_tokens)' 'del(.committed_tokens)'; do
        jq -c "select(.id) |= ($f)" "$T/in" | { ! compare --split > "$T/none" 2> /dev/null; } ||
            return 1
    done
}

@test "a split of steps counts undisturbed answers by prompt, on one machine" {
    answers "$T/in"
    compare -q --split "$T/in" > "$T/once"
    # repeats of a prompt do not count as further prompts
    { cat "$T/in"; grep generation "$T/in"; } | compare -q --split > "$T/twice"
    diff "$T/once" "$T/twice"
    jq -c 'select(.id) | .tainted = ["load"] | .e2e_ns *= 100' "$T/in" > "$T/disturbed"
    compare --split "$T/in" "$T/disturbed" 2> "$T/err" > "$T/out"
    jq -e '.step_ns == 1e8 and .n == 8 and .tainted == 8' "$T/out"
    grep -q "c: 8 disturbed answers left out" "$T/err"
    { grep roofline "$T/in"; cat "$T/disturbed"; } | compare --split > "$T/out" 2> "$T/err"
    conforms "$T/out"
    jq -e '.step_ns == null and .step_ns_reason == "every answer was disturbed" and .n == 0
        and .system_percent == null and .sum_percent == null' "$T/out"
    ! grep -q "a step of" "$T/err"
    on() { echo '{"schema":"crossover/1","kind":"meta","run":"r","tool":"gen-llada",
        "machine":{"fingerprint":"'"$1"'","cores":2}}' | jq -c; }
    { on one; cat "$T/in"; } > "$T/one"
    { on two; cat "$T/in"; } > "$T/two"
    compare -q --split "$T/one" "$T/one" | jq -e '.n == 8'
    run compare --split "$T/one" "$T/two"
    [ "$status" -eq 65 ] && [[ $output == *"answers of one machine, got those of a processor, 2 \
cores (one) and of a processor, 2 cores (two)"* ]]
}
