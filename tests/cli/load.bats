#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Prompts that arrive one by one (--arrival-rate): the times of their answers, and the rate of
# requests at which the faster model changes.
load conforms

setup() {
    set -o pipefail
    BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
}

ids() { jq -c 'select(.kind == "generation") | [.id, .token_ids]' "$1"; }

# llama, llada [OPTIONS]: eight answers of the small models
llama() {
    jq -cn 'range(8) | {id: "p\(.)", prompt_ids: [range(1; 3 + .)]}' |
        "$BIN/gen-llama" -q -m synth:tiny-llama --max-new 12 --ignore-eos "$@"
}
llada() {
    jq -cn 'range(8) | {id: "p\(.)", prompt_ids: [range(1; 3 + .)]}' |
        "$BIN/gen-llada" -q -m synth:tiny-llada --gen-length 16 --steps 8 "$@"
}

@test "a prompt that arrives gets the same answer as alone, and its times include the wait" {
    for system in llama llada; do
        "$system" > "$T/alone"
        "$system" --batch 2 --admit continuous --arrival-rate 5000 > "$T/out"
        conforms "$T/out"
        [ "$(ids "$T/out")" = "$(ids "$T/alone")" ]
        # times from the arrival to the end; at most two at once; a batch that lasts to the last end
        jq -se 'map(select(.kind == "generation")) | all(.arrival_rate == 5000) and
            (map(.admit_ns) | . == sort and .[0] == 0 and .[1] > 0) and
            .[0].queue_ns == 0 and (map(.queue_ns) | max) > 0 and
            all(.queue_ns < .ttft_ns and .ttft_ns <= .e2e_ns) and
            (map(.admit_ns + .e2e_ns) | max) == .[0].batch_ns and
            (map([.admit_ns + .queue_ns, .admit_ns + .e2e_ns]) as $spans |
             $spans | all(. as $at | [$spans[] | select(.[0] <= $at[0] and .[1] > $at[0])] |
                              length <= 2))' "$T/out"
        [[ $(jq -r 'select(.kind == "generation").config' "$T/out" | sort -u) == *' rate=5000' ]]
    done
    jq -se 'map(select(.kind == "generation")) | all(has("queue_ns") | not)' "$T/alone"
}

@test "arrivals come from the seed, the launch and the round, and not from the model or the rate" {
    due() { jq -sc 'map(select(.kind == "generation").admit_ns)' "$1"; }
    llama --batch 2 --admit continuous --arrival-rate 2000,4000 --warmup 1 --repeat 2 > "$T/out"
    # a warm-up batch begins with all of its prompts
    jq -se 'map(select(.kind == "generation" and .phase != "timed").admit_ns) | add == 0' "$T/out"
    for r in 0 1; do
        jq -c "select(.kind == \"generation\" and .round == $r and .phase == \"timed\")" "$T/out" \
            > "$T/$r"
        jq -se 'group_by(.arrival_rate) | map(map(.admit_ns)) | .[0] as $slow | .[1] as $fast |
            [range(8) | $slow[.] - 2 * $fast[.] | fabs] | max <= 16' "$T/$r"
    done
    jq -c 'select(.arrival_rate == 2000)' "$T/0" > "$T/first"
    jq -c 'select(.arrival_rate == 2000)' "$T/1" > "$T/second"
    run ! test "$(due "$T/first")" = "$(due "$T/second")"
    llada --batch 2 --admit continuous --arrival-rate 2000 > "$T/other"
    [ "$(due "$T/other")" = "$(due "$T/first")" ]
    llada --batch 2 --admit continuous --arrival-rate 2000 --seed 1 > "$T/seed"
    run ! test "$(due "$T/seed")" = "$(due "$T/other")"
}

@test "a rate of arrivals without continuous admission is a usage error" {
    for system in llama llada; do
        run -64 "$system" --batch 2 --arrival-rate 5
        [[ $output == *'arrival_rate 5: expected admit continuous (--admit continuous)'* ]]
        "$system" --batch 2 --arrival-rate 0 > "$T/out"
    done
}

@test "an answer counts in measure although fewer prompts ran at once than --batch allows" {
    # a busy machine changes no number of answers
    calm() { jq -c 'select(.kind == "generation") | .tainted = []'; }
    llama --batch 64 --admit continuous --arrival-rate 1000 --repeat 2 | calm > "$T/out"
    "$BIN/measure" -q --ttft-limit-ms 60000 "$T/out" > "$T/m"
    jq -se 'INDEX(.metric) | .requests_per_s.value > 0 and
        .goodput_per_s.value == .requests_per_s.value and .e2e_ns.n == 16' "$T/m"
    # but the memory of eight prompts is not that of 64
    jq -se 'INDEX(.metric) | .memory_weights_bytes.value > 0 and
        (.memory_activations_bytes | .value == null and .value_reason == "no full batch")' "$T/m"
    llama --batch 8 --admit continuous --arrival-rate 1000 | calm | "$BIN/measure" -q |
        jq -se 'INDEX(.metric).memory_activations_bytes.value > 0'
    llama --batch 64 --admit continuous | calm | "$BIN/measure" -q > "$T/m"
    jq -se 'INDEX(.metric).e2e_ns | .value == null and .partial == 8' "$T/m"
}

@test "a signal ends the wait for the next prompt and leaves no file" {
    run timeout -s INT 3 "$BIN/gen-llama" -q -m synth:tiny-llama --max-new 4 --batch 2 \
        --admit continuous --arrival-rate 0.0001 -o "$T/out" <(jq -cn \
        'range(3) | {id: "p\(.)", prompt_ids: [1, 2]}')
    [ "$status" -eq 124 ] || [ "$status" -eq 130 ]
    [ ! -e "$T/out" ]
    [ ! -e "$T/.out.tmp" ]
}

# rates RATE...: metric records of two queues. An answer takes a / (1 - rate / mu), the mean time in
# a queue with one server, Poisson arrivals and exponential service: LLaDA with a = 10 ms, mu = 12
# per second, LLaMA with 20 ms, 48. They meet at (20 - 10) / (20 / 12 - 10 / 48) = 6.857 per second.
rates() {
    jq -cn '$ARGS.positional[] | tonumber as $rate
        | ({model: "llada", gen_length: 64, steps: 16, axis: "steps", a: 10, mu: 12,
            paradigm: "masked_diffusion"},
           {model: "llama", max_new: 64, steps: null, axis: null, a: 20, mu: 48,
            paradigm: "autoregressive"})
        | . + {schema: "crossover/1", kind: "metric", run: "r", metric: "e2e_ns",
               direction: "lower", batch: 8, contract: "fixed", admit: "continuous",
               arrival_rate: $rate, series: "s\($rate)", point: "\(.model)\($rate)",
               config: "\(.model) rate=\($rate)", lo: null, hi: null,
               value: (.a / (1 - $rate / .mu) * 1e6)}
        | .value as $v | .model as $m | .launch_values = [range(6) |
            {launch: ., value: ($v * (0.99 + (if $m == "llada" then . else . * 5 % 7 end) / 250))}]
        | del(.a, .mu)' --args "$@"
}
crossover() { jq -c "select(.name == \"$1\") | $2"; }
pareto() { "$BIN/pareto" -q --no-meta "$@"; }

@test "LLaDA answers faster up to the request rate that the queues predict" {
    rates 1 2 4 6 7 8 | pareto > "$T/p"
    conforms "$T/p"
    [ "$(crossover X_rate '[.exists, .direction, .bracket, .over, .steps, .batch, .gen_length]' \
        < "$T/p" | sed 's/\.0//g')" = \
        '[true,"cheaper_up_to",[6,7],"arrival_rate",16,8,64]' ]
    [ "$(crossover X_rate '(.at / 6.857 - 1 | fabs) < 0.01 and .lo < .at and .at < .hi' \
        < "$T/p")" = true ]
    # a point is compared with LLaMA at its own rate, and a rate alone has no crossover
    [ "$(crossover X_lat '[.llama_point, .arrival_rate]' < "$T/p" | sort | sed 's/\.0//g' |
        head -n 2 | tr -d '\n')" = '["llama1",1]["llama2",2]' ]
    [ "$(rates 4 | pareto | crossover X_rate .)" = "" ]
    rates 1 2 4 | pareto > "$T/p"
    [ "$(crossover X_rate '[.exists, .reason]' < "$T/p")" = \
        '[false,"cheaper than LLaMA at every rate measured"]' ]
    { rates 2 | jq -c 'select(.model == "llada")'; rates 4 | jq -c 'select(.model == "llama")'; } |
        "$BIN/pareto" --no-meta 2> "$T/err" > "$T/p"
    grep -q 'no crossover: LLaMA has arrival rate 4, this one 2' "$T/err"
}

@test "the crossovers over rates are with the plain LLaMA, then with one that guesses" {
    rates 1 2 4 6 7 8 | jq -c 'if .model == "llama" then
            ., (.lookup = 4 | .point += "g" | .value /= 9 | .launch_values[].value /= 9)
        else . end' | pareto > "$T/p"
    [ "$(crossover X_rate '[.rival, .bracket]' < "$T/p" | sed 's/\.0//g' | paste -sd ' ')" = \
        '["plain",[6,7]] ["fastest",[null,1]]' ]
}

@test "make load prints latency and good answers by rate, and the highest rate that holds" {
    rates 1 2 4 | jq -c '., (.metric = "requests_per_s" | .value = .arrival_rate),
        (.metric = "goodput_per_s" | .value = .arrival_rate *
            (if .model == "llada" and .arrival_rate > 2 then 0.5 else 0.95 end))' > "$T/m"
    jq -sr -f pipelines/experiment/load/load.jq "$T/m" > "$T/text"
    grep -qx 'llada steps=16 batch=8, 4 requests/s: 15 ms .* 4 answers/s, 50 % within the limits' \
        "$T/text"
    grep -qx 'llada steps=16 batch=8: 90 % within the limits up to 2 requests/s, not at 4' "$T/text"
    grep -qx 'llama batch=8: 90 % within the limits at every rate measured, up to 4 requests/s' \
        "$T/text"
    jq -c 'if .model == "llama" and .arrival_rate == 2 and .metric == "goodput_per_s"
        then .value = null | .value_reason = "times of tokens are not known" else . end' "$T/m" |
        jq -sr -f pipelines/experiment/load/load.jq > "$T/text"
    grep -qx 'llama batch=8: 90 % within the limits unknown at 2 requests/s: times of tokens .*' \
        "$T/text"
    grep -qx 'llada .*: 90 % within the limits up to 2 requests/s, not at 4' "$T/text"
    { rates 2; rates 2 | jq -c '.batch = 16 | .point += "b" |
        if .model == "llada" then .value *= 9 | .launch_values[].value *= 9 else . end'; } |
        pareto > "$T/p"
    jq -sr -f pipelines/phase/scale.jq "$T/p" |
        grep -q '^X_batch (batch size, 64 tokens, 4 a step, 2 requests/s): cheaper up to '
    rates 6 7 | pareto | jq -sr -f pipelines/phase/scale.jq |
        grep -q '^X_rate (requests/s, 64 tokens, 8 at once, 4 a step): cheaper up to 6\.[89] \['
}

# x_q SERIES WORD: an X_q record of the series. 16 steps are shown to be as good (true), to be worse
# (false), or neither (null); 32 steps are as good
x_q() {
    jq -cn --arg series "$1" --argjson good "$2" '{schema: "crossover/1", kind: "crossover",
        run: "r", name: "X_q", llada: "llada", llama: "llama", axis: "steps", over: "steps",
        series: $series, quality_metric: "accuracy", exists: true, at: 16,
        tests: [{at: 16, p_noninferior: 0.01, noninferior: $good},
                {at: 32, p_noninferior: 0.01, noninferior: true}]}'
}

@test "X_rate says whether its step count is as good as LLaMA by the X_q of the same series" {
    # the identity of the series without arrivals, one prompt at a time
    rates 1 | jq -c 'select(.model == "llada") | del(.arrival_rate, .series, .point, .config) |
        .batch = 1 | .admit = "static" | (., (.steps = 32)) | .config = "s\(.steps)"' |
        pareto > "$T/alone"
    series=$(jq -r 'select(.kind == "crossover").series' "$T/alone" | sort -u)
    [ "${#series}" -eq 12 ]
    for good in true false; do
        { rates 1 2 4; x_q "$series" $good; } | pareto > "$T/p"
        conforms "$T/p"
        [ "$(crossover X_rate '[.as_good, .as_good_by, has("as_good_reason")]' < "$T/p")" = \
            "[$good,\"accuracy\",false]" ]
    done
    { rates 1 2 4; x_q "$series" null; } | pareto > "$T/p"
    [ "$(crossover X_rate '[.as_good, .as_good_by, .as_good_reason]' < "$T/p")" = \
        '[null,"accuracy","undecided"]' ]
    # worse by one of two qualities
    { rates 1 2 4; x_q "$series" true; x_q "$series" false | sed 's/accuracy/chrf/'; } |
        pareto > "$T/p"
    [ "$(crossover X_rate '[.as_good, .as_good_by]' < "$T/p")" = '[false,"accuracy,chrf"]' ]
    # worse for one task, against one of two LLaMA; a record without the test decides nothing
    for of in '.task = "sum"' '.llama_point = "other"'; do
        { rates 1 2 4; x_q "$series" true; x_q "$series" false | jq -c "$of"; } | pareto > "$T/p"
        [ "$(crossover X_rate '[.as_good, .as_good_by]' < "$T/p")" = '[false,"accuracy"]' ]
    done
    { rates 1 2 4; x_q "$series" true; x_q "$series" true | jq -c '.tests[0].at = 8'; } |
        pareto > "$T/p"
    [ "$(crossover X_rate '[.as_good, .as_good_reason]' < "$T/p")" = '[null,"undecided"]' ]
    # records against the fastest LLaMA do not count
    { rates 1 2 4; x_q "$series" false | jq -c '.rival = "fastest"'; x_q "$series" true; } |
        pareto > "$T/p"
    [ "$(crossover X_rate .as_good < "$T/p")" = true ]
    # another series, another LLaMA, or no test at this step count
    for of in '.series = "other"' '.llama = "llama2"' '.tests[0].at = 8'; do
        { rates 1 2 4; x_q "$series" true | jq -c "$of"; } | pareto > "$T/p"
        [ "$(crossover X_rate '[.as_good, .as_good_reason]' < "$T/p")" = \
            '[null,"no X_q tests this step count"]' ]
    done
    { rates 1 2 4; x_q "$series" true; } | pareto | jq -sr -f pipelines/phase/scale.jq |
        grep -q '^X_rate .*; 16 steps are as good as LLaMA by accuracy$'
    rates 1 2 4 | pareto | jq -sr -f pipelines/phase/scale.jq |
        grep -q '; 16 steps are not shown to be as good as LLaMA (no X_q tests this step count)$'
}

# measured RATE...: the metrics of rates() that the page shows, with intervals
measured() {
    rates "$@" | jq -c '.lo = .value * 0.9 | .hi = .value * 1.1 | .level = 0.95 | .unit = "ns"
        | ., (.metric = "ttft_ns"),
          (.metric = "requests_per_s", .metric = "goodput_per_s" | .unit = "per_s"
           | .direction = "higher"
           | .value = .arrival_rate * (if .metric == "goodput_per_s" then 0.5 else 1 end)
           | .lo = .value * 0.9 | .hi = .value * 1.1 | .ttft_limit_ns = 5e8)'
}

@test "the page shows prompts that arrive in one section and one figure, and in no other table" {
    BIN=$(realpath "$BIN")
    measured 1 2 4 6 7 8 > "$T/m"
    jq -c 'del(.arrival_rate) | select(.point == "llada1") | .point = "p" | .config = "alone" |
        .admit = "static"' "$T/m" > "$T/alone"
    # the page and the figure show the crossover with plain LLaMA in any order of records
    pareto "$T/m" > "$T/p"
    crossover X_rate '.rival = "fastest" | .at = 3 | .lo = 2 | .hi = 4' < "$T/p" |
        cat - "$T/p" > "$T/both"
    mv "$T/both" "$T/p"
    mkdir "$T/figures"
    command -v gnuplot > /dev/null || skip "no gnuplot here"
    export CROSSOVER_SHARE=$PWD
    "$BIN/plot" -q --type load "$T/m" "$T/p" -o "$T/figures/load.svg"
    grep -q 'as long as LLaMA at 6\.8[0-9] \[6\.[0-9]*, 6\.[0-9]*\] requests/s\. 16 steps are' \
        "$T/figures/load.txt"
    [ "$(grep -c '<title>ll[a-z]*, .*8 at once, [0-9] requests/s: ' "$T/figures/load.svg")" -eq 12 ]
    "$BIN/report" -q --figures "$T/figures" "$T/m" "$T/alone" "$T/p" -o "$T/report.html"
    cd "$T"
    table() { sed -n "/^## $1/,/^## /p" report.md; }
    [ "$(table 'Requests that arrive' | grep -c '^| ll')" -eq 12 ]
    table 'Requests that arrive' |
        grep -q '^| llada, 16 steps, 8 at once | 4 | 15.* ms | .* ms | 4 .*/s | 2 .*2\.20.* /s |'
    table 'Requests that arrive' | grep -q 'limits: 500 ms to the first token)'
    table 'Requests that arrive' | grep -q 'LLaDA answers faster than LLaMA up to 6\.8[0-9] '
    table Crossovers | grep '^| X..rate' | grep -q '4 a step; not shown to be as good as LLaMA'
    # the other tables have the other point alone
    [ "$(table Latency | grep -c '^| alone')" -eq 1 ]
    [ "$(table Latency | grep -c '^| ll')" -eq 0 ]
    [ "$(grep -c '^!.*(figures/load.svg)' report.md)" -eq 2 ]
    # without such points nothing is said about them
    "$BIN/report" -q "$T/alone" -o "$T/report.html"
    [ "$(grep -c 'Requests that arrive' report.md)" -eq 0 ]
    "$BIN/plot" -q --type load "$T/alone" -o "$T/none.svg"
    grep -q '^No data: .* (make load)' "$T/none.txt"
}

# curve: generations and metrics of seven loads with a fixed number of requests, 2 prompts, 3 rounds
curve() {
    jq -cn '{kind: "meta", tool: "gen-llama", version: "1", commit: "c"},
        ([1, 2, 4, 8, 16, 32, 64][] as $b | {model: "m", steps: null, batch: $b}
         | (range(2) as $id | range(3) as $round | . + {kind: "generation", phase: "timed", seed: 1,
              arrival_rate: 0, id: "p\($id)", prompts: 2, launch: 0, round: $round,
              token_ids: [$id], batch_ns: 5e11}),
           . + {kind: "metric", metric: "tpot_ns", p90: (1e7 * $b)},
           . + {kind: "metric", metric: "output_tokens_per_s", value: (60 * $b)})'
}

@test "a load with a fixed number of requests is held against the rules of MLPerf Endpoints" {
    rules() { jq -nr -f pipelines/experiment/load/endpoints.jq; }
    curve | rules > "$T/text"
    grep -qx '  2: 120, 50' "$T/text"
    [ "$(grep -c '^kept: ' "$T/text")" -eq 7 ]
    [ "$(grep -c '^BROKEN: ' "$T/text")" -eq 0 ]
    broken() { # FILTER WORDS: the only rule that this change breaks
        [ "$(curve | jq -c "$1" | rules | grep '^BROKEN' | cut -d : -f 2-)" = " $2" ]
    }
    broken 'select(.batch != 64)' '7 to 32 points: 6'
    # points at other rates, beside those at rate 0
    { curve; curve | jq -c 'select(.kind != "meta") | .arrival_rate = 2 | .batch *= 3'; } | rules |
        cmp - "$T/text"
    broken '.arrival_rate = null' \
        'a fixed number of requests at work'
    broken 'if .batch == 8 then .batch_ns = 1e11 else . end' \
        'steady state of 1200 s, or of 600 s where few requests are at work: 300 s at 8'
    broken 'select(.batch != 8 or .round != 1 or .id != "p1")' \
        'whole passes over the data: not at [8]'
    broken 'if .batch == 8 then .seed = 2 else . end' \
        'one seed and one build at all points: 1 c'
    broken 'if .batch == 8 and .id == "p1" then .token_ids = [7] else . end' \
        'the accuracy of all points is the same: 1 answers differ'
}
