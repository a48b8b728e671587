#!/usr/bin/env bats
# The page of several runs: a row for each run and goal, forecasts beside measurements, and nothing
# pooled. The runs are made from the stored run by changes of machine, fingerprint and times.
load report

# made NAME PRINT CHANGES: the stored run on another machine; CHANGES may change each claim
made() {
    jq -c --arg name "$1" --arg print "$2" "
        (if .name == \"question\" then .hardware = \$name | .fingerprint = \$print
            | .diffusion = \"llada-demo\" | .autoregressive = \"llama-demo\" else . end)
        | (if .name == \"ratio\" and .primary then .llada_ns = 80e6 | .llada_lo_ns = 70e6
            | .llada_hi_ns = 90e6 | .llama_ns = 8e6 | .llama_lo_ns = 7e6 | .llama_hi_ns = 9e6
            else . end) | ($3)" "$CROSSOVER_SHARE/data/demo/stored.ndjson"
}

# check SOURCE HOST MODEL PARADIGM STEPS MEASURED FORECAST: a record of forecast --check
check() {
    jq -cn --arg source "$1" --arg host "$2" --arg model "$3" --arg paradigm "$4" \
        --argjson steps "$5" --argjson measured "$6" --argjson value "$7" '{schema: "crossover/1",
        kind: "forecast", run: "r", what: "check", modelled: true, against: "measurement",
        hardware: "measured", $model, $paradigm, contract: "fixed", dtype: "bf16", quant: "none",
        batch: 1, new_tokens: 128, cache: (if $steps then "none" else null end), $steps,
        metric: "e2e_ns", $source, measured_on: $host, reference_value: $measured, $value,
        ratio: ($value / $measured)}'
}

# Machine A has a forecast; machine B has none, and three launches.
setup_runs() {
    made 'AMD A, 2 cores' aaaaaaaaaaaa . > a
    made 'AMD B, 4 cores' bbbbbbbbbbbb 'if .clock then .value = null | .lo = null | .hi = null
        | .value_reason = "fewer than 5 launches" | .verdict = "UNDECIDED" | .decided = false
        | .launches = 3 else . end
        | if .name == "ratio" and .primary then .llada_ns = 40e6 | .llada_lo_ns = null
            | .llada_hi_ns = null | .llama_lo_ns = null | .llama_hi_ns = null else . end
        | if .name == "answer" then .text = "Undecided on B." else . end' > b
    { check 'AMD A, 2 cores (aaaaaaaaaaaa)' 'AMD A, 2 cores (aaaaaaaaaaaa)' synth:llada-8b \
        masked_diffusion 16 30e9 20e9
      check 'AMD A, 2 cores (aaaaaaaaaaaa)' 'AMD A, 2 cores (aaaaaaaaaaaa)' synth:llama3-8b \
        autoregressive null 5e9 10e9; } > forecasts
}

# row WORDS: the first row of the Markdown page that has these words, its cells without spaces
row() { grep -m 1 "^| .*$1" report.md | sed 's/ *| */|/g; s/\\//g'; }
is() { # WORDS TEXT...: that row is these texts, joined
    local want
    want=$(printf '%s' "${@:2}")
    diff <(row "$1") - <<< "$want"
}

@test "each run has its rows; a missing number has its reason" {
    setup_runs
    report a b forecasts
    is 'AMD A.*32 steps' '|AMD A, 2 cores|32 steps, sum: accuracy (exact match)|80 [70, 90] ms' \
        '|8 [7, 9] ms|13.1 [10.0, 17.0]|5|below 4|'
    is 'AMD A.*64 steps' '|AMD A, 2 cores|64 steps (match not shown), story: judge perplexity' \
        '|80 [70, 90] ms|8 [7, 9] ms|21.0 [18.8, 23.5]|5|between 2 and 4|'
    is 'AMD B.*32 steps' '|AMD B, 4 cores|32 steps, sum: accuracy (exact match)|40 ms|8 ms' \
        '|not known: fewer than 5 launches|3|not known: fewer than 5 launches|'
    # the same tables stand on both pages, and once in the Markdown twin
    says 'AMD B, 4 cores 64 steps (match not shown)'
    says 'Back to the answer on one page'
    says 'AMD B, 4 cores 64 steps (match not shown)' report.html
    [ "$(grep -c '^| AMD B.*32 steps' report.md)" -eq 1 ]
}

@test "the answers of several runs are not pooled" {
    setup_runs
    report a b
    says 'LLaDA is slower than LLaMA in 1; 1 of the runs is not decided\.' report.html
    says 'AMD A, 2 cores: On this machine LLaDA needs 32 steps to match' report.html
    says 'AMD B, 4 cores: Undecided on B\.' report.html
    # no number of one run stands where it could be taken for that of all
    lacks -q 'class="answer">On this machine\|<li tabindex' report.html
    lacks -q 'id="quality"\|id="latency"' report.html tables.html
    # decided only if every run is
    says 'Not decided:' report.html
    made 'AMD B, 4 cores' bbbbbbbbbbbb . > decided
    report a decided
    says 'How sure:' report.html
    says 'LLaDA is slower than LLaMA in 2\.' report.html
}

@test "forecasts do not change the page of one run" {
    setup_runs
    report a
    cp report.html one.html
    report a forecasts
    diff one.html report.html
}

@test "forecasts stand beside measurements; a machine without a forecast is named" {
    setup_runs
    report a b forecasts
    none='not known: no such forecast'
    is 'AMD A.*batch 1' '|AMD A, 2 cores|16 steps, batch 1, 128 tokens, bf16|30 s|20 s|0.667' \
        "|5 s|10 s|2|$none|$none|$none|"
    says 'AMD B, 4 cores: not known, because the input has no forecast for this machine' report.html
    lacks -q 'AMD A, 2 cores: not known' report.html
    says 'Models: synth:llada-8b and synth:llama3-8b' report.html
    # a card has its own name, and its host has the fingerprint
    made 'NVIDIA C, 16 cores' cccccccccccc . > c
    check 'NVIDIA C' 'Some host, 16 cores (cccccccccccc)' synth:llada-8b masked_diffusion 4 \
        2e9 1e9 >> forecasts
    report a c forecasts
    row 'NVIDIA C .*batch 1' | grep -qF '|2 s|1 s|0.500|not known: no such forecast|'
    lacks -q 'because the input has no forecast' report.html
}

@test "forecasts of several machines alone make their page" {
    "$BIN/forecast" -q --no-meta --check \
        "$CROSSOVER_SHARE"/data/measured/{cpu-8b-zen5,gpu-8b-h200}.ndjson > checks
    report --title Made checks
    grep -q '<h1>Made: forecasts beside measurements</h1>' report.html
    says 'these records have no claims' report.html
    row 'NVIDIA H200.*batch 8' | grep -q '776 ms'
    row 'AMD EPYC (Zen 5), 2 cores .*int8' | grep -q '9.87 s'
}

@test "older claims without times say so; machines with one name are told apart" {
    cp "$CROSSOVER_SHARE/data/demo/stored.ndjson" old
    made 'AMD EPYC (Zen 5), 2 cores' aaaaaaaaaaaa 'if .value then .value *= 2 else . end' > a
    made 'AMD EPYC (Zen 5), 2 cores' bbbbbbbbbbbb . > b
    made 'AMD EPYC (Zen 5), 2 cores' bbbbbbbbbbbb 'if .value then .value *= 3 else . end' > again
    report old a b again
    old='not known: not in these older claims'
    row '32 steps' | grep -qF "|$old|$old|"
    for name in '(aaaa)' '(bbbb)' '(bbbb), run 2'; do
        [ "$(grep -cF "| AMD EPYC (Zen 5), 2 cores $name | " report.md)" -eq 2 ]
    done
    says 'Older claims name no models' report.html
}

@test "a LLaMA with lookup is not shown beside a forecast of plain decoding" {
    local measured=$CROSSOVER_SHARE/data/measured/gpu-8b-h200.ndjson
    jq -c 'select(.kind == "metric" and .paradigm == "autoregressive" and .batch == 8)
        | .lookup = 10 | .point = "00000000000f" | .config += " lookup=10" | .workload = "f"
        | if .metric == "e2e_ns" then .value /= 4 else . end' "$measured" > lookup
    "$BIN/forecast" -q --no-meta --check "$measured" lookup \
        "$CROSSOVER_SHARE/data/measured/cpu-8b-zen5.ndjson" > checks
    jq -se 'map(select(.what == "check" and .against == "measurement" and .is_plain == false))
        | length > 0 and all(.name | test("lookup=10"))' checks
    report checks
    row 'NVIDIA H200.*batch 8' | grep -qF '|638 ms|'
    lacks '159 ms' report.md
}

@test "a point that cannot be forecast is counted once, a crossover is not counted" {
    jq -c 'if .paradigm == "masked_diffusion" and .steps == 16 and .batch == 8
        then .suffix = "grow" else . end' \
        "$CROSSOVER_SHARE/data/measured/gpu-8b-h200.ndjson" > grown
    "$BIN/forecast" -q --no-meta --check grown \
        "$CROSSOVER_SHARE/data/measured/cpu-8b-zen5.ndjson" > checks
    jq -se 'map(select(.what == "check" and .against == "measurement" and .value == null)
        | .hardware == "measured") | sort == [false, true]' checks
    report checks
    says '1 point has no forecast: only suffix all' report.html
}

@test "claims without a question are a run of their own" {
    made 'AMD A, 2 cores' aaaaaaaaaaaa . > a
    made x y 'select(.name != "question") | if .name == "answer" then .text = "Other answer."
        else . end' > b
    report a b
    says 'AMD A, 2 cores: On this machine LLaDA needs 32 steps to match' report.html
    says 'a machine: Other answer\.' report.html
    # also beside forecasts of several machines
    "$BIN/forecast" -q --no-meta --check \
        "$CROSSOVER_SHARE"/data/measured/{cpu-8b-zen5,gpu-8b-h200}.ndjson > checks
    report b checks
    lacks -q 'these records have no claims' report.html
    says 'Other answer\.' report.html
}

@test "more runs than the limit are refused at once" {
    jq -nc 'range(100000) | {schema: "crossover/1", kind: "claim", run: "r", name: "question",
        primary: true, decided: true, text: "\(.)"}' > many
    run timeout 60 "$BIN/report" -o report.html many
    [ "$status" -eq 65 ]
    [[ "$output" == *'claims: expected at most 256 runs, got more'* ]]
}
