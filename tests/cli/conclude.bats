#!/usr/bin/env bats
# conclude: the statements of a run in words and in numbers that agree with each other; and whether
# two runs state the same.
load conforms
load conclude

@test "two tasks: each has a sentence with steps, metric, margin and time" {
    state '{}'
    answer "LLaDA needs 8 steps to match LLaMA on sums (accuracy within 5 points) and takes 1.41\
 times as long [1.40, 1.42]. On stories (judge perplexity within 10 %) LLaDA needs 16 steps and\
 takes 2.79 times as long [2.76, 2.83]."
    decided true
    conforms claims.ndjson
    diff claims.ndjson "$F/claims.ndjson"
}

@test "the order of records does not change the output" {
    state '{}'
    cp claims.ndjson first
    tac run.ndjson | "$BIN/conclude" --no-meta --quality "$GOALS" > claims.ndjson
    diff first claims.ndjson
}

@test "one task: the sentence names the machine, the metric and the fastest way" {
    state '{}' --quality sum:accuracy:0.05
    answer "On this machine LLaDA needs 8 steps to match LLaMA on sums (accuracy within 5 points)\
 and takes 1.41 times as long [1.40, 1.42]; with unmask=factor cache=dual 0.85 times [0.84, 0.85]."
}

@test "without tasks the sentence is about all prompts" {
    state '{"tasks": []}' --quality judge_ppl:0.1
    says "LLaDA needs 16 steps to match LLaMA (judge perplexity within 10 %) and takes"
    claim '.name == "crossing" and .key == "X_q"' '.task == null and .value == 16'
}

@test "goals work by bytes, by a metric where less is better, and over repeated answers" {
    state '{}'
    # other JQ-CHANGES QUALITY...: makes the claims of the same run with other quality records
    other()
    {
        jq -c "if .kind == \"quality\" then $1 else . end" run.ndjson |
            "$BIN/conclude" --no-meta --quality "$2" > claims.ndjson
    }
    other '.scored_bytes = 160' story:judge_bits_per_byte:0.05
    # (log2 1.6 - log2 1.4) / 4, and the noise of 160 prompts
    claim '.name == "quality" and .key == "8 steps"' '.value > 0.046 and .value < 0.051 and
        .lo < .value and .value < .hi and .prompts == 160'
    other '.metric |= sub("accuracy"; "errors") | if .metric == "errors" then
        .value = 1 - .value | .direction = "lower" else . end' sum:errors:0.05
    claim '.key == "X_q"' '.value == 8 and .lo == 4'
    # a right answer that occurs three times, and a wrong one
    other 'if .metric == "accuracy" then (.copies = 3, (.copies = 1 | .seed = 2 | .value = 0))
        else . end' sum:accuracy:0.05
    jq -r 'select(.key == "quality").text' claims.ndjson | grep -F 'ccuracy is 0.731 against 0.731'
}

@test "a goal is not judged if nothing says which values of its metric are better" {
    state '{}'
    jq -c 'if .metric == "accuracy" then .metric = "errors" | .value = 1 - .value
        | del(.direction) else . end' run.ndjson |
        "$BIN/conclude" --no-meta --quality sum:errors:0.05 > claims.ndjson
    says "Undecided: no record says if more or less is better."
    # the direction of accuracy is known without records
    jq -c 'if .metric == "accuracy" then del(.direction) else . end' run.ndjson > bare.ndjson
    "$BIN/conclude" --no-meta --quality sum:accuracy:0.05 bare.ndjson > claims.ndjson
    says "On this machine LLaDA needs 8 steps to match LLaMA on sums"
}

@test "an order of points that flips, or is open, over templates and seeds leaves nothing decided" {
    state '{}'
    # ranking VERDICT METRIC [TASK]: makes the claims of the same run with such a ranking record
    ranking()
    {
        jq -nc --arg v "$1" --arg m "$2" --arg t "${3-}" '{schema: "crossover/1",
            kind: "ranking", run: "t", metric: $m, tau: 0.5, lo: 0, hi: 1, verdict: $v,
            systems: ["a", "b"], places: ["seed=1", "seed=2"], flips: [], n: 40,
            text: "Order of 2 points: \($v)."}
            + if $t == "" then {} else {task: $t} end' | tee ranking.json |
            "$BIN/conclude" --no-meta --quality "$GOALS" run.ndjson - > claims.ndjson
    }
    ranking HOLDS accuracy
    decided true
    claim '.name == "sure"' '.decided and (.text | test("Order of 2 points: HOLDS[.]"))'
    ranking FLIPS judge_ppl
    says "Undecided: the order of points flips over templates and seeds"
    decided false
    claim '.name == "sure"' '.decided == false'
    ranking UNDECIDED accuracy
    says "Undecided: the order of points is not shown to hold over templates and seeds"
    ranking FLIPS entropy_nats # no goal is about it
    decided true
    ranking FLIPS accuracy other # and none about accuracy of this task
    decided true
    ranking UNDECIDED accuracy sum
    decided false
    # pairs VERDICT VERDICT: a ranking record of three points, of which the last two are in the
    # answer
    pairs()
    {
        jq -c --arg first "$1" --arg answer "$2" --slurpfile run run.ndjson '
            ([$run[] | select(.steps == 8 and .unmask == "schedule" and .cache == "none").config]
                | unique) as $llada |
            ([$run[] | select(.arch == "llama" and .lookup == 0).config] | unique) as $llama |
            .verdict = "FLIPS" | .margin = 0.05 | .margin_relative = false |
            .pairs = [{first: "other", second: $llama[0], verdict: $first},
                {first: $llama[0], second: $llada[0], verdict: $answer}] |
            if ($llada + $llama | length) == 2 then . else error end' ranking.json |
            "$BIN/conclude" --no-meta --quality "$GOALS" run.ndjson - > claims.ndjson
    }
    ranking UNDECIDED accuracy sum
    pairs FLIPS HOLDS
    decided true
    pairs HOLDS FLIPS
    says "Undecided: the order of points flips over templates and seeds"
    decided false
    pairs HOLDS UNDECIDED
    decided false
    # points that are the same within the margin of the goal, a larger one, a share
    pairs HOLDS SAME
    decided true
    same() # MARGIN RELATIVE: the two points of the answer are the same within this margin
    {
        jq -c --argjson by "$1" --argjson relative "$2" '.verdict = "SAME"
            | .margin = $by | .margin_relative = $relative' ranking.json |
            "$BIN/conclude" --no-meta --quality "$GOALS" run.ndjson - > claims.ndjson
    }
    same 0.05 false
    decided true
    same 0.06 false
    says "Undecided: the order of points is not shown to hold over templates and seeds"
    decided false
    same 0.05 true
    decided false
    same null false
    decided false
    # a ranking that holds, but of other points
    jq -c '.verdict = "HOLDS" | .pairs = [{first: "other", second: "another", verdict: "HOLDS"}]' \
        ranking.json | "$BIN/conclude" --no-meta --quality "$GOALS" run.ndjson - > claims.ndjson
    decided false
    # points that are the same do not support that one is worse
    state '{"right": [60, 60, 60, 60, 60, 97]}'
    decided true
    same 0.05 false
    decided false
}

@test "sentences, cards and crossings of a run hold the same numbers" {
    state '{}'
    claim '.key == "X_q" and .task == "sum"' '.value == 8 and .lo == 4 and .hi == 8'
    claim '.key == "X_q" and .task == "story"' '.value == 16 and .lo == 8'
    jq -se '(map(select(.key == "equal quality" and .task == "sum"))[0].value) as $v
        | map(select(.key == "time_at_equal_quality"))[0].value == $v' claims.ndjson
    # a rate is the inverse of a time, here 16 times LLaMA's time for 64 tokens
    claim '.name == "card" and .key == "throughput"' '.value > 0.6 and .value < 0.8 and
        .verdict == "SLOWER"'
    claim '.key == "memory" and .name == "card"' '.value > 1.05 and .value < 1.06 and .lo == null'
    claim '.key == "vanilla"' '.value > 11 and (.note | test("the mean text has 43 tokens"))'
    claim '.key == "fastest way" and .task == "sum"' '.comparisons == 1 and .verdict == "FASTER"'
}

@test "LLaDA is faster, as fast, or faster than plain LLaMA only: each has its sentence" {
    state '{"pace": 0.5}' --quality sum:accuracy:0.05
    says "and takes 0.50 times as long ["
    decided true
    state '{"pace": 1, "spread": 0.02}' --quality sum:accuracy:0.05
    says "and takes the same time (1.00 times ["
    says ", but 1.11 times ["
    says "] against LLaMA lookup=4"
    # plain LLaMA is one of the two that the fastest is chosen from
    claim '.name == "ratio" and (.key | test("fastest LLaMA"))' '.comparisons == 2 and
        .chosen == "lookup=4" and .candidates == ["lookup=4", "llama-demo"]'
    decided true
    # a second model, number format or chat template is no way of plain LLaMA
    for other in '.model = "a"' '.quant = "int8"' '.dtype = "bf16"' '.conditions = "chat=x"'; do
        jq -c "if .lookup == 4 then $other else . end" run.ndjson |
            "$BIN/conclude" --no-meta --quality sum:accuracy:0.05 - > others.ndjson
        grep -q '"key":"equal quality"' others.ndjson
        [ "$(grep -c 'fastest LLaMA' others.ndjson)" = 0 ]
    done
    # SAME within 2 % does not show that a model is no slower
    claim '.name == "ratio" and .key == "equal quality"' '.lo < 1 and 1 < .hi'
    claim '.key == "X_par"' '.value == null and (.decided | not)'
    state '{"pace": 1, "spread": 0.5}' --quality sum:accuracy:0.05
    says "Undecided: LLaDA needs 8 steps"
    says "faster or slower undecided"
    decided false
}

@test "the lowest step count measured is an upper bound" {
    state '{"right": [97, 97, 97, 97, 97, 97]}' --quality sum:accuracy:0.05
    says "LLaDA needs at most 4 steps to match LLaMA on sums"
    claim '.key == "X_q"' '.value == 4 and .lo == null'
}

@test "a system that is never as good is worse, or is not shown to be as good" {
    state '{"right": [60, 60, 60, 60, 60, 97]}'
    says "LLaDA does not match LLaMA on sums (accuracy within 5 points), even with 64 steps, which"
    decided true
    claim '.key == "X_q" and .task == "sum"' '.value == null and .decided'
    claim '.key == "time_at_equal_quality"' '.task == "story"'
    claim '.key == "largest step count"' '.task == "sum" and .value > 11'
    claim '.key == "equal quality"' '.task == "story"'
    state '{"right": [94, 94, 94, 60, 94, 97]}' --quality sum:accuracy:0.05
    says "Undecided: LLaDA is not shown to match LLaMA on sums (accuracy within 5 points)"
    decided false
    claim '.key == "time_at_equal_quality"' '.value == null and (.note | test("not shown"))'
    claim '.key == "X_par"' '.value == null'
}

@test "a sequence ends at the first count that is not shown; later counts are not tested" {
    state '{"right": [97, 60, 97, 97, 97, 97]}' --quality sum:accuracy:0.05
    says "LLaDA needs 64 steps"
    claim '.name == "quality" and .key == "16 steps"' '.shown == false'
    claim '.name == "quality" and .key == "8 steps"' '.shown == null and .shown_reason != null'
}

@test "other methods share one error rate: two need more evidence each than one alone" {
    decoding() { jq -r 'select(.key == "decoding").text' claims.ndjson | tee /dev/stderr; }
    state '{}' --quality sum:accuracy:0.04
    [[ $(decoding) == *": 1 of 1 other methods is shown to match LLaMA;"* ]]
    jq -c 'select(.factor == 1 and .batch == 1) | .factor = 2 | .point = "000000000006"
        | .config = "llada dual-factor-2" | .series = "aea7d7d7b587"' run.ndjson > second
    "$BIN/conclude" --no-meta --quality sum:accuracy:0.04 run.ndjson second > claims.ndjson
    [[ $(decoding) == *": 0 of 2 other methods are shown to match LLaMA." ]]
}

@test "for different work no time is stated, and the reason is given" {
    state '{"disturbed": 0.7, "cpu": false}'
    says "Undecided: other work disturbed the timed launches, so times are not compared. LLaDA\
 needs 8 steps to match LLaMA on sums (accuracy within 5 points)"
    decided false
    no_ratio
    jq -se 'map(select(.unit == "x" and .clock)) | length >= 5 and all(.value == null and
        .lo == null and .hi == null and .value_reason == "disturbed")' claims.ndjson
    state '{"launches": 4}'
    says "Undecided: fewer than 5 launches were timed, so times are not compared."
    no_ratio
}

@test "with processor time a disturbed run has an answer that names the clock" {
    state '{"disturbed": 0.7}'
    says "times the processor time ["
    decided true
    jq -se 'map(select(.clock).clock) | unique == ["cpu"]' claims.ndjson
    state '{"disturbed": 0.7}' --clock wall
    says "Undecided: other work"
    state '{}' --clock cpu
    says "times the processor time"
    # a GPU has no processor time of its own
    state '{"disturbed": 0.7, "device": "cuda:0"}'
    says "Undecided: other work"
}

@test "few prompts, no scores, random weights and one model each have their own answer" {
    state '{"scored": 20}'
    says "Undecided: too few prompts were scored. LLaDA with 64 steps takes 11.3 times as long as"
    claim '.key == "X_q" and .task == "sum"' '.value == null and (.value_reason | test("too few"))'
    jq -se 'map(select(.name == "quality")) | all(.value == null and .shown == null)' claims.ndjson
    state '{}' --quality other:accuracy:0.05
    says "Undecided: no prompt of the task was timed"
    # the goal that was tested comes first, with its time
    state '{}' --quality other:accuracy:0.05,sum:accuracy:0.05
    says "Undecided: no prompt of the task was timed. LLaDA needs 8 steps to match LLaMA on sums\
 (accuracy within 5 points) and takes 1.41 times"
    grep -qF "On other (accuracy) quality was not scored." answer
    state '{"random": true}'
    answer "The weights are random, so quality is not compared. LLaDA with 64 steps takes 11.3\
 times as long as LLaMA [11.2, 11.4]."
    jq -se 'map(select(.name == "quality" or .name == "crossing") | select(.quality_metric)) |
        all(.value == null)' claims.ndjson
    jq -se 'map(.key) | index("largest step count") and (index("equal quality") | not)' \
        claims.ndjson
    state '{"llama": false}'
    answer "Undecided: no LLaMA was measured beside LLaDA."
    no_ratio
    state '{"llada": false}'
    answer "Undecided: no plain LLaDA was measured beside LLaMA."
    no_ratio
    echo '{"kind":"x"}' | "$BIN/conclude" --no-meta -q > claims.ndjson
    answer "Undecided: neither LLaDA nor LLaMA was measured."
}

@test "if a self-test fails, the answer begins with Undecided and compares no times" {
    state '{"verdict": "DIFFERENT"}'
    says "Undecided: the self-test found a false difference. LLaDA needs 8 steps"
    [[ $(<answer) != *" times "* ]]
    state '{"verdict": "UNDECIDED"}'
    says "Undecided: the self-test interval is too wide. LLaDA needs 8 steps"
    [[ $(<answer) != *" times "* ]]
    state '{"handicap": "MISSED"}'
    says "Undecided: the self-test missed a known slowdown. LLaDA needs 8 steps"
    [[ $(<answer) != *" times "* ]]
    decided false
    claim '.name == "sure"' '.text | test("slowed by 5 % was not found slower")'
    # nor do the cards of times and rates: they are null, with the reason
    jq -se 'map(select(.name == "card" and .value == null and
        (.note | startswith("the self-test missed a known slowdown")))) | length == 3' claims.ndjson
    # nor where no quality is compared, or no goal was declared
    state '{"handicap": "MISSED", "random": true}'
    answer "Undecided: the self-test missed a known slowdown."
    state '{"handicap": "MISSED"}' --quality ''
    answer "Undecided: the self-test missed a known slowdown."
    decided false
    state '{"launches": 4}' --quality ''
    decided false
    state '{}' --quality ''
    says "On this machine LLaDA with 64 steps takes 11.3 times as long as LLaMA ["
    decided true
    state '{"checks": false}'
    decided true
    claim '.name == "sure"' '.text | test("no self-test")'
}

@test "an answer has at most 40 words in every case" {
    for task in '["sum", "story"]' '["a", "b", "c", "d"]'; do
        goals=$(jq -nr --argjson t "$task" \
            '$t | map("\(.):accuracy:0.05", "\(.):judge_ppl:0.1") | join(",")')
        for right in 97 94 60; do
            for change in '{}' '{"disturbed": 0.7, "cpu": false}' '{"verdict": "DIFFERENT"}' \
                '{"spread": 0.5, "pace": 1}' '{"scored": 20}' '{"pace": 0.95, "disturbed": 0.7}'; do
                state "$(jq -nc --argjson o "$change" --argjson t "$task" --argjson r "$right" \
                    '$o + {tasks: $t, right: [$r, $r, $r, 60, $r, 97]}')" --quality "$goals"
            done
        done
    done
}

@test "goals that make no sense are refused" {
    for goals in sum: accuracy 0.05 sum:accuracy:2 a:b:c:0.1 sum:accuracy:0.05:x sum:accuracy:-1 \
        sum:accuracy:x sum::0.05 :accuracy:0.05 sum:accuracy:; do
        run "$BIN/conclude" --quality "$goals" < /dev/null
        [ "$status" -eq 64 ]
    done
    run "$BIN/conclude" no-such-file
    [ "$status" -eq 66 ]
    run "$BIN/compare" --stored no-such-file "$F/claims.ndjson"
    [ "$status" -eq 66 ]
    run "$BIN/compare" --stored "$F/measure-metric.ndjson" "$F/claims.ndjson"
    [ "$status" -eq 65 ]
}

# ---- two runs ----

# against STATUS: compares then.ndjson with claims.ndjson
against()
{
    run "$BIN/compare" --no-meta --stored then.ndjson claims.ndjson -o checks.ndjson
    echo "$output"
    [ "$status" -eq "$1" ]
}
alter() { jq -c "$1" claims.ndjson > then.ndjson; ! cmp -s then.ndjson claims.ndjson; }

@test "a run agrees with itself and with another draw of its times" {
    state '{}'
    cp claims.ndjson then.ndjson
    against 0
    [[ $output == *"agrees: "*" 0 differ, "*" of "*" times compared"* ]]
    conforms checks.ndjson
    state '{"spread": 0.15, "pace": 1.43}'
    against 0
    # several goals of one task are distinguished
    state '{}' --quality sum:accuracy:0.05,sum:judge_ppl:0.1
    cp claims.ndjson then.ndjson
    against 0
}

@test "every altered claim is found" {
    state '{}'
    alter 'if .name == "answer" then .text |= sub("needs 8"; "needs 4") else . end'
    against 1
    [[ $output == *"DIFFERS  answer: "* ]]
    alter 'if .name == "answer" then .text |= sub("1.41 times"; "0.41 times") else . end'
    against 1
    alter 'if .name == "answer" then .text |= sub("sums"; "stories") else . end'
    against 1
    # a sentence agrees if its interval overlaps, and differs if its number is outside its interval
    alter 'if .name == "answer" then .text |=
        sub("1.41 times as long .1.40, 1.42."; "1.6 times as long [1.2, 2.1]") else . end'
    against 0
    alter 'if .name == "answer" then .text |= sub("1.40, 1.42"; "1.50, 1.60") else . end'
    against 1
    alter 'if .key == "X_par" and .task == "sum" then .value = 8 | .lo = 4 | .hi = 8 else . end'
    against 1
    [[ $output == *"DIFFERS  crossing X_par, sum: "* ]]
    alter 'if .key == "X_q" and .task == "sum" then .value = 16 else . end'
    against 1
    alter 'if .key == "X_q" and .task == "sum" then .value = 16 | .lo = 8 | .hi = 16 else . end'
    against 1
    alter 'if .key == "fastest way" and .task == "sum" then .value *= 1.3 else . end'
    against 1
    alter 'if .key == "vanilla" then .value *= 1.3 | .lo *= 1.3 | .hi *= 1.3 else . end'
    against 1
    alter 'if .name == "quality" and .key == "8 steps" then .value += 0.001 else . end'
    against 1
    alter 'if .name == "answers" then .sha256 |= sub("^."; "x") else . end'
    against 1
    [[ $output == *"DIFFERS  answers "* ]]
}

@test "a judge on another instruction set rounds otherwise: its perplexity may differ by 0.2 %" {
    state '{}' --quality sum:accuracy:0.05,sum:judge_ppl:0.1
    alter 'if .name == "quality" and .quality_metric == "judge_ppl" then .value *= 1.001 else . end'
    against 0
    alter 'if .name == "quality" and .quality_metric == "judge_ppl" then .value *= 1.01 else . end'
    against 1
}

@test "an altered X_par is found" {
    state '{"pace": 0.5}' --quality sum:accuracy:0.05
    claim '.key == "X_par"' '.value == 8'
    alter 'if .key == "X_par" then .value = 16 else . end'
    against 1
    alter 'if .key == "X_par" then .value = null | .lo = null | .hi = null else . end'
    against 1
}

@test "a disturbed run compares no times and ends with 69" {
    state '{}'
    cp claims.ndjson then.ndjson
    state '{"disturbed": 0.7, "cpu": false}'
    against 69
    [[ $output == *"not compared: "*" 0 differ, "*"; 0 of "[1-9]*" times compared" ]]
    # a stored run without times compares none either
    cp claims.ndjson then.ndjson
    against 69
    # its quality claims are still compared
    state '{"disturbed": 0.7, "cpu": false, "right": [60, 60, 60, 60, 60, 97]}'
    against 1
}

@test "on another kind of machine times have a wider factor, and ids may part" {
    state '{}'
    jq -c 'if .name == "question" then .hardware = "other" else . end
        | if .name == "answers" then .hardware = "other" | .sha256 |= sub("^."; "x") else . end' \
        claims.ndjson > then.ndjson
    state '{"pace": 2}'
    against 0
    state '{"pace": 4}'
    against 1
}

@test "a stored stream that was edited is compared all the same, with a warning" {
    state '{}'
    "$BIN/conclude" --quality "$GOALS" run.ndjson > claims.ndjson
    sed 's/needs 8 steps/needs 4 steps/' claims.ndjson > then.ndjson
    against 1
    [[ $output == *"edited after it was written"* ]]
}

@test "X_lat is the one with plain LLaMA in any order of records" {
    state '{}'
    series=$(jq -r 'select(.steps == 8 and .unmask == "schedule" and .cache == "none") | .series' \
        run.ndjson | sort -u | head -n 1)
    for rivals in "fastest 3 plain 6" "plain 6 fastest 3"; do
        # shellcheck disable=SC2086 # words
        jq -cn --arg series "$series" '$ARGS.positional as $p | (0, 2) as $i
            | {schema: "crossover/1", kind: "crossover", run: "t", name: "X_lat", llada: "llada",
               llama: "llama", exists: true, task: "sum", series: $series, rival: $p[$i],
               cost_metric: "e2e_ns", at: ($p[$i + 1] | tonumber), lo: 2, hi: 7}' --args $rivals |
            "$BIN/conclude" --no-meta --quality "$GOALS" run.ndjson - > claims.ndjson
        [ "$(jq -c 'select(.key == "X_lat").value' claims.ndjson)" = 6 ]
    done
}

@test "two different records of one place are refused, equal records are not" {
    state '{}'
    cp claims.ndjson once
    jq -c 'select(.metric == "accuracy") | .value = 1 - .value' run.ndjson > second
    run "$BIN/conclude" --no-meta --quality "$GOALS" run.ndjson second
    [ "$status" -eq 65 ]
    [[ $output == *"second:1: a second, different 'accuracy' record"* ]]
    jq -c 'select(.kind == "quality" or .kind == "metric")' run.ndjson > again
    "$BIN/conclude" --no-meta --quality "$GOALS" run.ndjson again | cmp - once
}

@test "a broken value or name of a metric is left out and named with file and line" {
    state '{}'
    cp run.ndjson good
    while IFS='|' read -r words kind bad; do
        jq -c "if .metric == \"$kind\" then $bad else . end" good > run
        run "$BIN/conclude" -q --no-meta --quality "$GOALS" run
        echo "$bad: $status $output"
        [ "$status" -eq 1 ]
        [[ $output == *"conclude: run:"*": $words"* ]]
    done << 'END'
value: expected a number from 0 to 1 or null, got 100|accuracy|.value = 100
value: expected a number from -0.001 to 1e+60 or null, got "1"|judge_nll_nats|.value = "1"
value: expected a number from -0.001 to 1e+60 or null, got -1|judge_nll_nats|.value = -1
value: expected a number from 0 to 1e+60|memory_allocated_peak_bytes|.value = 1e308
metric: expected a name of a-z, 0-9 and _, got|accuracy|.metric = "\u0430ccuracy"
metric: expected a name of a-z, 0-9 and _, got|accuracy|.metric = " "
END
}
