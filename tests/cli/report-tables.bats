#!/usr/bin/env bats
# The page of all tables: doubts about the numbers, and the tables behind them.

load report

@test "a self-test that did not pass is listed as a doubt" {
    c='schema: "crossover/1", kind: "check", run: "r", check: "same"'
    for check in '{'"$c"', verdict: "UNDECIDED", handicap: "FOUND", pass: false, text: "A/A: 12"}' \
        '{'"$c"', verdict: "SAME", handicap: "MISSED", text: "A/A: 12"}' \
        '{'"$c"', verdict: "DIFFERENT", text: "A/A: 12"}' \
        '{schema: "crossover/1", kind: "check", run: "r", check: "agree", pass: false,
          text: "A/A: 12"}'; do
        jq -cn "$check" > check
        report "${ALL[@]}" check
        says 'Doubt: A self-test did not pass: A/A: 12'
        grep -qE '^- Doubt: A self-test did not pass: A/A: 12' report.md
    done
    jq -cn '{'"$c"', verdict: "SAME", handicap: "FOUND", pass: true, text: "A/A: 12"}' > check
    report "${ALL[@]}" check
    lacks Doubt report.md
}

@test "a disturbed, unfit or cold run is listed as a doubt; a few disturbed batches are not" {
    metrics() { jq -c "if .kind == \"metric\" then . + $1 else . end
        | select(.kind != \"meta\" and .kind != \"end\")" "$F/plot-metric.ndjson"; }
    look() { for i in $(seq "$1"); do
        jq -cn "{schema: \"crossover/1\", kind: \"fitness\", run: \"r\", launch: $i, fit: $2,
            reasons: [\"other_load\"], host: {others_ratio: 0.5}}"; done; }
    metrics '{disturbed: true, tainted: 120, timed: 120, lo: null, hi: null}' > m
    report m "$F"/plot-{quality,front}.ndjson
    says "Doubt: At [0-9]* of 14 points other work ran "
    says ' 84 of 84 points\| 14 of 14 points'
    metrics '{tainted: 40, timed: 120}' > m
    report m "$F"/plot-{quality,front}.ndjson
    says 'Doubt: 25 % of the timed answers were disturbed'
    metrics '{tainted: 4, timed: 120}' > m
    report m "$F"/plot-{quality,front}.ndjson
    lacks Doubt report.md
    says 'Other work ran on the machine during [0-9]* of [0-9]* timed answers'
    metrics '{warmup_steady: false}' > m
    report m "$F"/plot-{quality,front}.ndjson
    says 'Doubt: At [0-9]* of 14 points a warm-up ended before'
    { look 3 false; look 10 true; } > fitness
    report "${ALL[@]}" fitness
    says 'Doubt: The machine was not quiet before 3 of 13 launches'
    says 'quiet before 10 of 13 launches'
    grep -q '^| – | 1 | no | other\\_load | 0.500 |' report.md
    # a record in two files counts once: the copy that names its sweep
    jq -c '.sweep = "steps"' fitness > named
    report "${ALL[@]}" fitness named
    says 'quiet before 10 of 13 launches'
    grep -q '^| steps | 1 | no | other\\_load | 0.500 |' report.md
    { look 1 false; look 12 true; } > fitness
    report "${ALL[@]}" fitness
    lacks Doubt report.md
    lacks 'a thread computed' report.md
    # processors that sometimes share a core
    look 12 true | jq -c '.threads = 2 | .effective_cores = 1.9 + .launch / 100' > fitness
    report "${ALL[@]}" fitness
    says 'Before launches, .* a thread computed 0.95 to 1.01 times as fast '
    lacks 'share a core' report.md
    # the number of cores is shown separately
    jq -cn '{schema: "crossover/1", kind: "fitness", run: "r", cores: 3, fit: true, reasons: [],
        text: "machine 1: 3 cores"}' >> fitness
    report "${ALL[@]}" fitness
    says 'Before launches, .* a thread computed 0.95 to 1.01 times as fast '
    jq -c 'if .launch == 5 then .effective_cores = 1.02 else . end' fitness > shared
    report "${ALL[@]}" shared
    says 'changed between launches: a thread computed 0.51 to 1.01 times as fast as a thread alone'
}

@test "findings of measure --verify are listed as a doubt" {
    metrics() { jq -c "if .kind == \"metric\" and .batch == 1 then . + $1 else . end
        | select(.kind != \"meta\" and .kind != \"end\")" "$F/plot-metric.ndjson"; }
    doubted() { # FIELDS WORDS
        metrics "$1" > m
        report m "$F"/plot-{quality,front}.ndjson
        says "Doubt: $2"
    }
    doubted '{deterministic: false}' 'At [0-9]* of 14 points repeats of a prompt gave other tokens'
    doubted '{distinct_ratio: 0.05, prompts: 20}' 'At [0-9]* of 14 points all prompts have the same'
    doubted '{repeat_ratio: 0.5}' 'At [0-9]* of 14 points repeats take less than 0.9 of the time'
    doubted '{steady: false}' 'Times drift over the batches of [0-9]* of 14 points'
    # no doubt if the number is normal, or may be chance
    for fine in '{deterministic: false, temperature: 1}' \
        '{steady: (.steps != 64)}' '{distinct_ratio: 1, repeat_ratio: 1, deterministic: true}'; do
        metrics "$fine" > m
        report m "$F/plot-front.ndjson"
        lacks Doubt report.md
    done
}

@test "the latent model has its own table against LLaMA, with intervals" {
    of() { # VI_STEPS RATIO: a comparison of a latent point with LLaMA
        jq -cn --argjson n "$1" --argjson times "$2" '{schema: "crossover/1", run: "r",
            kind: "comparison", config: "ltm-demo vi_steps=\($n)", model: "ltm-demo", arch: "ltm",
            by: "paradigm", setting: "latent", base_config: "llama c", metric: "e2e_ns",
            effect: "ratio", value: $times, lo: ($times - 0.1), hi: ($times + 0.1),
            verdict: "SLOWER", p_holm: 0.01, launches: 5}'
    }
    { of 0 1.5; of 4 2.5; } > third
    report "${ALL[@]}" third
    sed -n '/^## Latent thought model against LLaMA/,/^## /p' report.md > table
    [ "$(grep -c '^| ltm-demo vi.*steps=' table)" -eq 2 ]
    grep -q '| 2.50 .*2.40, 2.60.* | SLOWER |' table
    lacks -q 'LLaDA against LLaMA' tables.html
}

@test "each table has its CSV beside it, with the numbers of the records" {
    report "${ALL[@]}"
    [ "$(grep -c '<table>' tables.html)" -eq "$(grep -c 'href="data:text/csv' tables.html)" ]
    grep -o 'href="data:text/csv;charset=utf-8,Configuration,e2e_ns[^"]*' tables.html | head -n 1 |
        sed 's/^[^,]*,//; s/%0D%0A/\n/g; s/%20/ /g; s/%3D/=/g; s/%5F/_/g' > csv
    grep -q '^Configuration,e2e_ns,e2e_ns_lo,e2e_ns_hi,ttft_ns,' csv
    want=$(jq -r 'select(.metric == "e2e_ns" and .steps == 64 and .batch == 1)
        | "\(.config),\(.value),\(.lo),\(.hi),"' "$F/plot-metric.ndjson")
    grep -qF "$want" csv
}

@test "the page's script has the hash that the page names, and sorts by number" {
    report "${ALL[@]}"
    sed -n 's/^<script>\(.*\)<\/script>$/\1/p' tables.html | tr -d '\n' > script
    [ -s script ]
    sum=$(openssl dgst -sha256 -binary script | base64)
    grep -qF "script-src 'sha256-$sum'" tables.html
    want=$(jq -r 'select(.metric == "e2e_ns" and .steps == 64 and .batch == 1) | .value' \
        "$F/plot-metric.ndjson")
    grep -q "<td data-v=\"$want\"" tables.html
    # the main page needs no such doubt
    lacks -q '<script\|script-src' report.html
}

@test "rows and tables that are all null are left out" {
    jq -c 'select(.metric == "e2e_ns") | .value = null | .lo = null | .hi = null
        | .launch_values = null' "$F/plot-metric.ndjson" > null
    jq -c 'select(.metric == "e2e_ns" and .batch == 1 and .steps != 64)
        | select(.kind == "metric")' "$F/plot-metric.ndjson" > some
    report null
    lacks -q '<h2 [^>]*>Latency' tables.html
    jq -c 'select(.steps == 64 and .batch == 1)' null > one
    report one some
    grep -q '^| llada-demo steps=16 .* ms' report.md
    lacks -q '^| llada-demo steps=64 ' report.md
}

@test "gaps, percentiles and prompts have tables of their own" {
    about='schema: "crossover/1", run: "r", model: "m", batch: 1'
    g() { jq -cn "{$about, kind: \"metric\", config: \"$1\", arch: \"$2\", steps: $3,
        metric: \"$4\", value: $5, p90: 2e6, p95: 3e6, p99: null, p99_reason: \"n<299\", max: 9e6,
        prompts: 12, workload: \"e057\", direction: \"lower\"}"; }
    { g llama llama null itl_ns 1e6; g llama llama null visible_gap_ns 1e6
      g llama llama null longest_gap_ns 4e6; g llama llama null e2e_ns 5e7
      g llama llama null ttft_ns 5e6
      for i in 1 2 3; do
          jq -cn "{schema: \"crossover/1\", run: \"r\", kind: \"prompt\", id: \"p$i\", text: \"t\",
              source: \"stories.txt\", task: \"story\"}"
      done; } > in
    report in
    [ "$(grep -A 2 '^| Configuration | inter-token latency' report.md | tail -n 1)" = \
        '| llama | 1 ms | 3 ms | 1 ms | 3 ms | 4 ms | 9 ms |' ]
    grep -q '^| Configuration | inter-token latency | inter-token latency, p95 | gap between' \
        report.md
    grep -q '^| llama | 2 ms | 3 ms | 9 ms | 2 ms | 3 ms |$' report.md # no p99 at all
    says 'Workload e057: 12 prompts'
    grep -q '^| stories.txt | story | 3 |$' report.md
}

@test "tokens per pass are a row for each sweep, with the points folded and those left out named" {
    report "${ALL[@]}"
    lacks -q 'id="parallelism"\|id="split"' tables.html
    jq -c 'select(.metric == "e2e_ns" and .batch == 1 and (.steps == 16 or .steps == 64))' \
        "$F/plot-metric.ndjson" | jq -sc '
        {schema: "crossover/1", kind: "aup", run: "r", model: "x", arch: "llada", series: "s",
         task: "sum", workload: "e057", value: 123.4, lo: 117.5, hi: 131.25, level: 0.95,
         best_percent: 87.5, n: 40, left_out: 0, unpaired: ["b!", "c!"],
         curve: (sort_by(-.steps) | map({point: (.point // .config), config,
             accuracy_percent: (.steps + 8),
             tokens_per_forward: (64 / .steps), lo: 0.75, hi: 4.5}))}
        | ., (.model = "alone" | .series = "t" | .n = 1 | .value = 55 | .lo = null | .hi = null
              | .curve = [{point: "t", config: "alone at=1", accuracy_percent: 50,
                           tokens_per_forward: 1.125, lo: null, hi: null}])' > areas
    report "${ALL[@]}" areas areas
    lacks -q 'Tokens per pass' report.html
    sed -n '/^## Tokens per pass/,/^## /p' report.md > table
    [ "$(grep '^| llada-demo |' table)" = \
        '| llada-demo | sum | 1 to 4 | 123 \[118, 131\] | 87.5 | 40 |' ]
    grep -qF '| alone | sum | 1.12 | 55 | 87.5 | 1 |' table
    [ "$(grep -c '^| llada-demo steps=' table)" -eq 2 ]
    grep -q '^| llada-demo steps=16 .*| sum | 4 .*0.750, 4.50.* | 24 |$' table
    grep -qF '| alone at=1 | sum | 1.12 | 50 |' table
    says 'Left out, because no prompt has both a timed answer and an accuracy:'
    [ "$(grep -cx -- '- [bc]!' report.md)" -eq 2 ]
    # equal tasks of two sets of prompts have rows that differ
    jq -c '., (.workload = "aaaa" | .value = 99)' areas > sets
    report "${ALL[@]}" sets
    grep -qF '| llada-demo | sum, prompts aaaa | 1 to 4 | 99 ' report.md
    grep -qF '| llada-demo | sum, prompts e057 | 1 to 4 | 123 ' report.md
}

@test "the parts of a step are a row for each point; null parts have a reason" {
    jq -c 'select(.metric == "e2e_ns" and .batch == 1 and .kind == "metric") |
        {schema, run, kind: "steptime", config, point: (.point // .config), model, arch, batch,
         step_ns: 2.5e6, architecture_percent: 15, architecture_percent_lo: 12,
         architecture_percent_hi: 17.5, algorithm_percent: 25, algorithm_percent_lo: 24,
         algorithm_percent_hi: 26, system_percent: 60, system_percent_lo: 58,
         system_percent_hi: 62, sum_percent: 100, level: 0.95, n: 8, tainted: 3, steps}
        | if .steps == 64 then .sum_percent = 103.5 | .system_percent = -3.5
            | .system_percent_lo = null | .system_percent_hi = null
          elif .steps == 16 then with_entries(if .key | test("percent|step_ns")
              then .value = null else . end) | .step_ns_reason = "every answer was disturbed"
              | .n = 0
          else . end | del(.steps)' "$F/plot-metric.ndjson" > parts
    report "${ALL[@]}" parts parts
    lacks -q 'Parts of the time' report.html
    sed -n '/^## Parts of the time of a step/,/^## /p' report.md > table
    [ "$(grep -c '^| ll' table)" -eq "$(wc -l < parts)" ]
    grep -qF '| 2.50 ms | 15 \[12, 17.5\] | 25 \[24, 26\] | 60 \[58, 62\] | 100 | 8 | 3 |' table
    grep -q '^| llada-demo steps=64 .* .-3.50 | 104 | 8 | 3 |$' table
    row=$(grep '^| llada-demo steps=16 ' table)
    [[ $row == *' every answer was disturbed | – | – | – | – | 0 | 3 |' ]]
}

@test "the disagreement of the same weights is one row" {
    c='schema: "crossover/1", kind: "comparison", run: "r", config: "m nf4", base_config: "m",
       model: "m", by: "quant", setting: "nf4", effect: "disagreement", base_value: null,
       config_value: null, n: 12'
    jq -cn "{$c, metric: \"differing_answers_ratio\", value: 0.25, lo: 0.125, hi: 0.5},
            {$c, metric: \"differing_ids_ratio\", value: 0.0625, lo: null, hi: null},
            {$c, metric: \"first_difference_tokens\", value: 7, lo: 3, hi: 9},
            ({$c, metric: \"accuracy\", value: -0.125, lo: -0.25, hi: 0}
                | .effect = \"difference\" | .by = \"isa\"),
            {$c, metric: \"first_difference_steps\", value: null, value_reason: \"none\"}" \
        > compared
    report compared
    grep -q '^## Differences between answers of the same weights$' report.md
    [ "$(grep '^| m | quant nf4' report.md | tr -d '\\')" = \
        "| m | quant nf4 | 25 [12.5, 50] % | 6.25 % | 7 [3, 9] | – | -12.5\
 [-25, 0] points | 12 |" ]
    lacks 'Quantization: costs' report.md
}

@test "numbers of toy models, random weights and models of time are marked" {
    jq -cn '{schema: "crossover/1", kind: "workload", run: "r", text: "Prompts: 9 of a file.",
        warning: "Toys: the judge is small.",
        training_text: "Training compute: a 2 million rows, b 5 million."}' > w
    report "${ALL[@]}" w
    says "Training compute: a 2 million rows, b 5 million[.]"
    says "Toys: the judge is small."
    grep -q '^- Prompts: 9 of a file.' report.md
    jq -c 'select(.kind == "metric") | .modelled = true | .weights_random = true' \
        "$F/plot-metric.ndjson" > m
    report m
    says 'Some numbers are modelled, not measured'
    says 'The weights are random'
    says 'These records have no self-test, which'
    printf 'the judge is LLAMA itself\n<b>two</b>' > words
    report --remarks words "${ALL[@]}"
    grep -qF '<li>the judge is LLAMA itself.</li>' tables.html
    grep -qF '<li>&lt;b&gt;two&lt;/b&gt;.</li>' tables.html
    run report --remarks absent "${ALL[@]}"
    [ "$status" -eq 66 ]
}

@test "the table of crossovers names the rate of arrivals" {
    jq -c 'select(.kind == "crossover" and .name == "X_lat" and .exists)
        | .gen_length = 64 | ., (.arrival_rate = 0.5 | .series += "r")' \
        "$F/plot-front.ndjson" > x
    report x
    says ' X_lat [^X]* 64 tokens, 0[.]5 requests/s '
    says ' X_lat [^X]* 64 tokens [0-9]'
}

@test "LaTeX tables are balanced, fit a page and hold the numbers of the records" {
    "$BIN/report" -q --format latex -o t.tex "${ALL[@]}"
    [ "$(ls)" = t.tex ]
    [ "$(grep -c '^.begin{table}$' t.tex)" -eq "$(grep -c '^.end{table}$' t.tex)" ]
    [ "$(grep -c '^.toprule$' t.tex)" -eq "$(grep -c 'begin{tabular}' t.tex)" ]
    # rows that do not fit a page continue in another float
    grep -qF '\caption{The table above, continued.}' t.tex
    [ "$(awk '/begin.table/ { n = 0 } { n++ } /end.table/ && n > most { most = n }
        END { print most }' t.tex)" -lt 60 ]
    grep -qF '\usepackage[T1]{fontenc}\usepackage{booktabs,graphicx}' t.tex
    grep -qF 'X\_par & -- & judge perplexity & 1 & -- & 24.5 {[}17.2, 34{]} steps &' t.tex
}

@test "twenty thousand records from several files are deduplicated in seconds" {
    awk 'BEGIN { for (i = 0; i < 20000; i++) {
        printf "{\"kind\":\"comparison\",\"metric\":\"e2e_ns\",\"config\":\"c%d\"}\n", i
        printf "{\"kind\":\"fitness\",\"launch\":%d,\"fit\":true,\"host\":{}}\n", i } }' > many
    (ulimit -t 10; report many many)
    says 'quiet before 20000 of 20000 launches'
}
