#!/usr/bin/env bats
# Tests forecast. Work is compared with the counts of the generators. Times are compared with those
# of ideal machines that do one operation or move one byte a nanosecond.
load conforms

setup() {
    set -o pipefail
    BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
    export CROSSOVER_SHARE=$PWD
    row reader 1e15 1e9 > "$T/table"
    row counter 1e9 1e15 >> "$T/table"
    row both 4e9 1e9 >> "$T/table"
    row small 1e9 1e9 '{memory_bytes: 1e5}' >> "$T/table"
}

# row NAME FLOPS BYTES [MORE]: prints a row of a machine
row() {
    jq -cn --arg n "$1" --argjson f "$2" --argjson b "$3" \
        "{name: \$n, form: \"gpu\", f32_flops_per_s: \$f, bytes_per_s: \$b, memory_bytes: 1e12} +
         ${4:-{\}}"
}

forecast() { "$BIN/forecast" -q --no-meta "$@"; }
tiny() {
    forecast -m synth:tiny-llada,synth:tiny-llama --hardware-table "$T/table" --dtype f32 \
        --mfu 1 --mbu 1 "$@"
}

# sound FILE: tests that every record fits the schema and is marked as modelled
sound() {
    conforms "$1"
    [ "$(jq -s 'length > 0 and all(.[]; .modelled == true)' "$1")" = true ]
}

# refuses CODE WORDS COMMAND...: tests a refusal
refuses() {
    run "${@:3}"
    echo "$output"
    [ "$status" = "$1" ] && [[ $output == *"$2"* ]]
}

@test "passes cost what the generators count, with and without a cache" {
    echo '{"id":"p","prompt_ids":[11,42,300,7,99]}' > "$T/p"
    fields='[.model, .cache, .model_flops, .model_bytes]'
    for cache in none prefix dual vicinity delayed; do
        "$BIN/gen-llada" -q --no-meta -m synth:tiny-llada --dtype f32 --gen-length 8 \
            --block-length 4 --steps 6 --cache $cache "$T/p" | jq -c "$fields"
        tiny --hardware reader --prompt 5 --gen-length 8 --block-length 4 --steps 6 \
            --cache $cache | jq -c "select(.what == \"point\" and .cache) | $fields" >> "$T/mine"
    done > "$T/theirs"
    "$BIN/gen-llama" -q --no-meta -m synth:tiny-llama --dtype f32 --max-new 8 --contract fixed \
        "$T/p" | jq -c ".cache = null | $fields" >> "$T/theirs"
    tiny --hardware reader --prompt 5 --gen-length 8 --block-length 4 --steps 6 |
        jq -c "select(.what == \"point\" and .cache == null) | $fields" >> "$T/mine"
    [ "$(wc -l < "$T/theirs")" = 6 ]
    diff "$T/theirs" "$T/mine"
    run tiny --hardware reader --cache exact
    [ "$status" -eq 64 ] && [[ $output == *"cache exact: expected a model with a block-causal"* ]]
}

@test "the time on an ideal machine is that of its bytes or operations, the longer one" {
    tiny --hardware reader,counter --prompt 5 --gen-length 3 --steps 3 > "$T/out"
    sound "$T/out"
    [ "$(jq -s '[.[] | select(.what == "point") |
        if .hardware == "reader" then .e2e_ns / .model_bytes, .memory_bound_ratio
        else .e2e_ns / .model_flops, 1 - .memory_bound_ratio end |
        . > 0.999999 and . < 1.000001] | length == 8 and all' "$T/out")" = true ]
    tiny --hardware reader --prompt 5 --gen-length 3 --steps 3 --mbu 0.5 |
        jq -s -e --slurpfile whole "$T/out" '.[0].e2e_ns == 2 * $whole[0].e2e_ns and
            .[0].mbu_from == "stated"'
}

@test "at the crossover both systems take the same time" {
    tiny --hardware both --prompt 40 --gen-length 64 --steps 1,2,3,4,5,6,7,8 > "$T/out"
    jq -s -e '.[-1].what == "crossover" and .[-1].steps > 2 and .[-1].steps < 8' "$T/out"
    jq -s -e '(.[-1].llama_e2e_ns) as $ns | .[-1].steps as $s |
        .[8].e2e_ns == $ns and (.[($s | floor) - 1].e2e_ns <= $ns) and
        .[$s | floor].e2e_ns >= $ns' "$T/out"
    # On the reader only bytes cost time. LLaMA also reads its keys in every pass.
    tiny --hardware reader --prompt 300 --gen-length 8 --steps 8 |
        jq -s -e '.[-1].steps == null and .[-1].censored == "above"'
    tiny --hardware counter --prompt 200 --gen-length 8 --block-length 1 --steps 8 |
        jq -s -e '.[-1].steps == null and .[-1].censored == "below"'
}

@test "a model that does not fit has no time, and the reason is given" {
    tiny --hardware small --prompt 5 --gen-length 3 --steps 3 > "$T/out"
    sound "$T/out"
    jq -s -e '.[0].fits == false and .[0].e2e_ns == null and
        .[0].e2e_ns_reason == "does not fit in memory"' "$T/out"
    tiny --hardware counter --prompt 5000 --gen-length 4 --steps 4 |
        jq -s -e '.[0].e2e_ns_reason | test("context")'
}

# measured PARADIGM POINT METRIC VALUE ROWS MORE: a metric record of a point
measured() {
    jq -cn --arg p "$1" --arg id "$2" --arg m "$3" --argjson v "$4" --argjson rows "$5" \
        "{schema: \"crossover/1\", kind: \"metric\", run: \"r\", config: \$id, point: \$id,
          paradigm: \$p, metric: \$m, value: \$v, rows: \$rows, threads: 1, flops_unit: \"f32\",
          dtype: \"f32\", kv_dtype: \"f32\", quant: \"none\", batch: 1, contract: \"fixed\"} + $6"
}

@test "shares come from other measured points, never from the point itself" {
    echo '{"schema":"crossover/1","kind":"roofline","run":"r","name":"c","ceiling":true,
           "flops_per_s":1e9,"bytes_per_s":1e15,"unit":"f32","threads":1}' | jq -c . > "$T/in"
    tiny -m synth:tiny-llada --hardware counter --prompt 5 --gen-length 8 --steps 8,4 > "$T/model"
    more='{model: "synth:tiny-llada", gen_length: 8, block_length: 8, cache: "none"}'
    for steps in 8 4; do # a machine that reaches a half at one point and a quarter at the other
        share=$(jq -n "if $steps == 8 then 0.5 else 0.25 end")
        ns=$(jq -s "[.[] | select(.steps == $steps)][0].e2e_ns / $share" "$T/model")
        for m in "mfu_ratio $share" "mbu_ratio 0.01" "e2e_ns $ns"; do
            measured masked_diffusion s$steps $m $((13 * steps)) "$more + {steps: $steps}"
        done
    done >> "$T/in"
    forecast --check -m synth:tiny-llada "$T/in" | jq -c 'select(.against == "measurement")' \
        > "$T/out"
    sound "$T/out"
    jq -s -e 'map(.steps) == [8, 4] and map(.prompt_tokens) == [5, 5] and
        map(.mfu_ratio) == [0.25, 0.5] and map(.ratio * 1000 | round) == [2000, 500]' "$T/out"
    forecast -m synth:tiny-llada --dtype f32 --hardware-table "$T/table" --hardware counter \
        --steps 8 --gen-length 8 "$T/in" |
        jq -s -e '.[0] | .mfu_from == "measured" and .mfu_ratio == 0.375 and .mfu_witnesses == 2 and
            .mbu_from == "assumed"'
}

@test "two machines of one name: each has its own ceilings and takes the other's shares" {
    more='{model: "synth:tiny-llada", gen_length: 8, block_length: 8, cache: "none", steps: 8}'
    tiny -m synth:tiny-llada --hardware counter --prompt 5 --gen-length 8 --steps 8 > "$T/model"
    for m in '3 0.5 1e9' '5 0.25 4e9'; do
        read -r kind share peak <<< "$m"
        ns=$(jq -s ".[0].e2e_ns * 1e9 / $peak / $share" "$T/model")
        { jq -cn --arg k "Zen $kind" '{schema: "crossover/1", kind: "parent", run: "r",
            tool: "gen-llada", machine: {cpu: "E", cores: 2, fingerprint: "aaaaaaaaaaaa",
                microarchitecture: $k}}'
          jq -cn --argjson p $peak '{schema: "crossover/1", kind: "roofline", run: "r", name: "c",
            ceiling: true, flops_per_s: $p, bytes_per_s: 1e15, unit: "f32", threads: 1}'
          for v in "mfu_ratio $share" "mbu_ratio 0.01" "e2e_ns $ns"; do
              measured masked_diffusion s8 $v 104 "$more"
          done; } > "$T/zen$kind"
    done
    forecast --check -m synth:tiny-llada "$T/zen3" "$T/zen5" |
        jq -c 'select(.against == "measurement")' > "$T/out"
    sound "$T/out"
    jq -s -e 'map(.source | sub(" .aaaaaaaaaaaa.$"; "")) ==
            ["E (Zen 3), 2 cores", "E (Zen 5), 2 cores"] and
        map(.mfu_ratio) == [0.25, 0.5] and map(.ratio * 1000 | round) == [2000, 500]' "$T/out"
    # Two files are of one machine. Neither takes shares from the other, and each has its own
    # ceilings.
    jq -c 'if .kind == "roofline" then .flops_per_s *= 8 elif .point then .point = "t" else . end' \
        "$T/zen3" > "$T/again"
    forecast --check -m synth:tiny-llada "$T/zen3" "$T/again" "$T/zen5" |
        jq -s -e 'map(select(.against == "measurement")) | map(.mfu_ratio) == [0.25, 0.25, 0.5] and
            map(.ratio * 1000 | round) == [2000, 250, 500]'
    # no line through step counts uses points of two machines
    sweep 1 2 > "$T/s"
    { jq -c 'select(.kind == "parent")' "$T/zen3"; cat "$T/s"
      jq -c 'select(.kind == "parent")' "$T/zen5"; sweep 4 8; } > "$T/both"
    forecast --along-steps --steps 16 "$T/both" | jq -s -e 'map(select(.what == "line")) |
        map(.measured_steps) == [[1, 2], [4, 8]]'
}

@test "a device of the table is forecast by its data sheet, too" {
    row sheet 2e9 1e15 '{device_name: "Card"}' > "$T/table"
    more='{model: "synth:tiny-llada", gen_length: 8, block_length: 8, cache: "none", steps: 8,
        device_name: "Card"}'
    { jq -cn '{schema: "crossover/1", kind: "roofline", run: "r", name: "c", ceiling: true,
        flops_per_s: 1e9, bytes_per_s: 1e15, unit: "f32", device_name: "Card"}'
      for v in "mfu_ratio 0.5" "mbu_ratio 0.01" "e2e_ns 1e6"; do
          measured masked_diffusion s8 $v 104 "$more"
      done; } > "$T/in"
    forecast --check -m synth:tiny-llada --hardware-table "$T/table" "$T/in" |
        jq -s -e 'map(select(.against == "measurement")) |
            map(.hardware) == ["measured", "sheet"] and map(.source) == ["Card", "Card"] and
            .[0].value == 2 * .[1].value'
}

@test "the stored records of every machine are read, and give the table of errors" {
    forecast --check data/measured/*.ndjson | jq -c 'select(.kind == "forecast")' > "$T/out"
    sound "$T/out"
    files=0
    for f in data/measured/*.ndjson; do # each point of each file, by its time
        jq -c 'select(.metric == "e2e_ns") | .value' "$f" > "$T/times"
        [ -s "$T/times" ] || continue # of kernels, of tests, of caps
        files=$((files + 1))
        jq -s -e --slurpfile t "$T/times" '[.[] | select(.against == "measurement" and
            .hardware == "measured" and .ratio > 0) | .reference_value] as $v |
            $t - $v == []' "$T/out"
    done
    [ "$files" -ge 5 ]
    jq -s -e 'map(select(.against == "measurement") | .source) | unique |
        length >= 3 and any(test("Zen 3")) and any(test("Zen 5")) and any(test("H100"))' "$T/out"
    jq -s -e 'any(.[]; .hardware == "h100-sxm" and .against == "measurement" and .ratio > 0)' \
        "$T/out"
    jq -sr -f pipelines/experiment/shapes/forecast-check.jq "$T/out" > "$T/table"
    cat "$T/table"
    tr -s ' \n' '  ' < data/measured/README.md > "$T/page"
    grep '^[|-]' "$T/table" | while IFS= read -r line; do # the page says what the target prints
        grep -Fq -- "$line" "$T/page" || { echo "README.md lacks: $line"; exit 1; }
    done
    # every stored crossover is forecast, and the tool says which model its error favours
    stored=$(jq -s 'map(select(.kind == "forecast" and .what == "crossover")) | length' \
        data/measured/*.ndjson)
    jq -s -e --argjson n "$stored" 'map(select(.metric == "steps" and .hardware == "measured" and
        .what == "check")) | length == $n and all(.[]; .ratio > 0)' "$T/out"
    favour='forecasts by data sheet favour LLaDA by [0-9]* %, at every crossover '
    favour+='(forecast / measured: [0-9.]*'
    said=$(jq -r 'select(.what == "bias").text' "$T/out" | grep -o "^$favour")
    tr '\n' ' ' < tools/README.md |
        grep -F "favour LLaDA at every crossover ($(grep -o '[0-9.]*$' <<< "$said") in" > "$T/none"
    "$BIN/forecast" --check data/measured/*.ndjson 2>&1 > "$T/none" | grep "$favour"
    "$BIN/forecast" --hardware h200 data/measured/*.ndjson 2>&1 > "$T/grid" | grep "$favour"
    # the range of a card comes from the errors of all measured cards
    jq -s -e --slurpfile errors "$T/out" '[$errors[] | select(.against == "measurement" and
            (.hardware | test("^h[12]00")))] as $e |
        def ratios($m; $p; $q): [$e[] | select(.metric == $m and .paradigm == $p and
            .quant == $q) | .ratio];
        map(select(.hardware == "h200" and .what == "point" or .hardware == "h200" and
            .what == "crossover" and .steps > 0)) | length >= 5 and all(.[];
            (if .what == "point" then "e2e_ns" else "steps" end) as $m | .[$m] as $v |
            ratios($m; .paradigm; .quant) as $r | ($v / ($r | max) / .lo - 1 | fabs) < 1e-9 and
            ($v / ($r | min) / .hi - 1 | fabs) < 1e-9)' "$T/grid"
    # the ratio of a rate is inverted, so an optimistic forecast is below 1
    jq -s -e '(.[] | select(.what == "check" and .source == "github.com/zeux/calm, README")) as $c
        | .[] | select(.what == "errors" and (.source | endswith($c.source)))
        | $c.metric == "output_tokens_per_s" and (.ratio * $c.ratio - 1 | fabs) < 1e-9 and
          .n == 1 and .least == .ratio and .most == .ratio' "$T/out"
}

# crossing STEPS: prints the records of a measured card: LLaDA with 8 slots at 4 and 8 steps, and
# LLaMA. Both take the same time at STEPS.
crossing() {
    row sheet 4e9 1e9 '{device_name: "Card"}' > "$T/table"
    jq -cn '{schema: "crossover/1", kind: "roofline", run: "r", name: "c", ceiling: true,
        flops_per_s: 2e9, bytes_per_s: 5e8, unit: "f32", threads: 1, device_name: "Card"}'
    more='{model: "synth:tiny-llada", gen_length: 8, block_length: 8, cache: "none",
        device_name: "Card"}'
    measured masked_diffusion s4 e2e_ns 4e6 52 "$more + {steps: 4}"
    measured masked_diffusion s8 e2e_ns 8e6 104 "$more + {steps: 8}"
    measured autoregressive t e2e_ns "${1}e6" 12 '{model: "synth:tiny-llama", max_new: 8,
        device_name: "Card"}'
    jq -cn --argjson s "$1" '{schema: "crossover/1", kind: "forecast", run: "r", what: "crossover",
        modelled: true, model: "synth:tiny-llada", llama: "synth:tiny-llama", batch: 1,
        dtype: "f32", quant: "none", threads: 1, contract: "fixed", cache: "none",
        device_name: "Card", new_tokens: 8, measured_steps: [4, 8], disturbed: false, steps: $s}'
}

@test "a measured crossover is forecast, and the sign of the error is stated" {
    both() { forecast -m synth:tiny-llada,synth:tiny-llama --hardware-table "$T/table" "$@"; }
    crossing 5 > "$T/in"
    both --check "$T/in" | jq -c 'select(.kind == "forecast")' > "$T/out"
    sound "$T/out"
    at=$(jq -s 'map(select(.what == "check" and .metric == "steps" and .hardware == "sheet"))[0] |
        .value' "$T/out")
    jq -s -e 'map(select(.what == "check" and .metric == "steps")) | map(.hardware) ==
        ["measured", "sheet"] and all(.[]; .reference_value == 5 and
            (.ratio * 5 / .value - 1 | fabs) < 1e-9)' "$T/out"
    # the forecast is that of the grid
    both --check --mfu 1 --mbu 1 "$T/in" |
        jq -s 'map(select(.metric == "steps" and .what == "check" and .hardware == "sheet"))[0] |
            .value' > "$T/checked"
    both --hardware sheet --mfu 1 --mbu 1 --prompt 5 --gen-length 8 --steps 8 --dtype f32 "$T/in" |
        jq -s -e --slurpfile at "$T/checked" 'map(select(.what == "crossover" and
            .hardware == "sheet"))[0].steps == $at[0] and $at[0] > 1'
    for side in "LLaDA 0.5" "LLaMA 2"; do # measured at a half and at twice what is forecast
        read -r who times <<< "$side"
        crossing "$(jq -n "$at * $times")" > "$T/in"
        both --check "$T/in" | jq -s -e --arg w $who --argjson t $times '
            map(select(.what == "bias" and .group == "crossovers" and .basis == "data sheet"))[0] |
            .favours == $w and (.ratio * $t - 1 | fabs) < 1e-9 and .n == 1 and
            .spread_ratio == null and (.text | test("favour \($w) by "))'
    done
    # one measured crossover is below the forecast, one is above it
    { crossing "$(jq -n "$at * 0.5")"; crossing "$(jq -n "$at * 2")" | tail -n 1; } > "$T/in"
    both --check "$T/in" | jq -s -e 'map(select(.what == "bias" and .group == "crossovers" and
        .basis == "data sheet"))[0] | .favours == null and (.ratio - 1 | fabs) < 1e-9 and
        .least < 1 and .most > 1 and (.spread_ratio | log) > 0.9 and
        (.text | test("favour neither model"))'
    # a crossover of a disturbed machine does not count
    crossing 5 | jq -c 'if .what then .disturbed = true else . end' > "$T/in"
    both --check "$T/in" | jq -s -e 'all(.[]; .metric != "steps")'
}

@test "a forecast without a check has no band, and says so" {
    tiny --hardware both --prompt 5 --gen-length 8 --steps 4 > "$T/out"
    sound "$T/out"
    jq -s -e 'length == 3 and all(.[]; .lo == null and .hi == null and
        (.lo_reason | test("^no (check|forecast)")))' "$T/out"
    crossing 5 > "$T/in"
    row host 1e9 1e9 '{form: "cpu"}' >> "$T/table"
    forecast -m synth:tiny-llada,synth:tiny-llama --hardware-table "$T/table" --hardware host \
        --dtype f32 "$T/in" | jq -s -e 'map(select(.what == "point")) | length > 1 and all(.[];
            .lo == null and .lo_reason == "no forecast of this kind was checked")'
}

@test "the tables are sound, and every published figure has its forecast or a reason" {
    for kind in hardware published; do
        jq -c --arg k $kind '. + {schema: "crossover/1", kind: $k, run: "r"}' data/$kind.ndjson \
            > "$T/$kind"
        conforms "$T/$kind"
    done
    jq -s -e '(map(.name) | unique | length) == length' data/published.ndjson
    forecast --check > "$T/out"
    sound "$T/out"
    jq -s -e --slurpfile p data/published.ndjson 'map(select(.what == "check")) |
        length == ($p | length) and all(.[]; (.ratio != null) != (.ratio_reason != null)) and
        (map(select(.ratio != null)) | length > 25)' "$T/out"
    # The engine calm runs near the limits of the card: its figures are within 20 % of the model.
    jq -s -e 'map(select(.what == "check" and (.source | test("calm")))) | length == 3 and
        all(.[]; .ratio > 0.8 and .ratio < 1.2)' "$T/out"
}

@test "the cost of fitting latents is not modelled, and a message says so" {
    run --separate-stderr "$BIN/forecast" -m synth:tiny-ltm
    [ "$status" -eq 64 ]
    [[ $stderr == *"the time to fit latents cannot be forecast"* ]]
}

@test "broken tables and lists are refused by name" {
    refuses 64 "--hardware: expected names" forecast --hardware no-such
    refuses 64 "--steps: expected up to" forecast --steps 4,x
    refuses 64 "multiple" forecast --gen-length 128 --block-length 48
    refuses 66 "no-such" forecast --hardware-table "$T/no-such"
    row a 1 0 > "$T/bad"
    refuses 65 "bytes_per_s: expected" forecast --hardware-table "$T/bad"
    row a 1 1 | jq -c 'del(.form)' > "$T/bad"
    refuses 65 "form" forecast --hardware-table "$T/bad"
    { row a 1 1; row a 1 1; } > "$T/bad"
    refuses 65 "each name once" forecast --hardware-table "$T/bad"
    echo '{"name":"x","value":-1}' > "$T/bad"
    refuses 65 "expected name, source" forecast --check --published "$T/bad"
}

# sweep STEPS...: prints e2e_ns records. LLaDA takes f (10 + 5 s) ms at s steps; its five launches
# have f = 1, 2, 1, 2 and the root of 2. LLaMA takes 60 ms in each of its five launches.
sweep() {
    jq -cn --args '{schema: "crossover/1", kind: "metric", run: "r", metric: "e2e_ns", batch: 2,
            contract: "fixed", workload: "w", dtype: "bf16", quant: "none", threads: 2} as $all |
        [1, 2, 1, 2, (2 | sqrt)] as $f |
        ($ARGS.positional[] | tonumber | . as $s | $all + {model: "c", config: "c\($s)",
            point: "c\($s)", series: "s", axis: "steps", steps: $s, gen_length: 64, cache: "none",
            paradigm: "masked_diffusion", value: (15e6 + 7.5e6 * $s),
            launch_values: [range(5) | {launch: (2 * .), value: ($f[.] * (10e6 + 5e6 * $s))}]}),
        $all + {model: "t", config: "t", point: "t", max_new: 64, paradigm: "autoregressive",
            value: 60e6, launch_values: [range(5) | {launch: (2 * . + 1), value: 60e6}]}' "$@"
}

@test "few step counts predict many, with one line a launch and an interval over launches" {
    sweep 1 2 4 > "$T/in"
    forecast --along-steps --steps 16,128 "$T/in" > "$T/out"
    sound "$T/out"
    jq -s -e 'map(.what) == ["line", "line", "crossover"] and all(.[]; .modelled) and
        (.[0].e2e_ns / (90e6 * (2 | sqrt)) - 1 | fabs) < 1e-9 and .[0].steps == 16 and
        (.[1].e2e_ns / (650e6 * (2 | sqrt)) - 1 | fabs) < 1e-9 and
        .[1].lo < 650e6 * 1.1 and .[1].hi > 1300e6 * 0.9 and .[1].launches == 5 and
        .[1].measured_steps == [1, 2, 4] and .[1].residual_ratio < 1e-9 and .[1].line_holds and
        (.[1].output_tokens_per_s * .[1].e2e_ns / 128e9 - 1 | fabs) < 1e-9' "$T/out"
    # LLaDA takes 60 ms at 10 steps in two launches, at 4 in two others, and at 6.5 in the last
    jq -s -e '.[2] | .llama == "t" and .launches == 5 and .lo < .steps and .hi > .steps and
        (.steps - ((1600 * (60 / (2 | sqrt) - 10) / 5 | log) / 5 | exp) | fabs) < 1e-6' "$T/out"
    # one point is off the line; then one is disturbed; then only one step count is measured
    sweep 1 2 4 | jq -c 'if .steps == 4 then .launch_values[].value *= 1.5 else . end' |
        forecast --along-steps --steps 8 - | tee "$T/off" |
        jq -s -e '.[0].residual_ratio > 0.2 and all(.[]; .line_holds == false)'
    jq -r -f pipelines/experiment/shapes/shapes.jq "$T/off" |
        grep 'DOUBTFUL: a point is [0-9.]* % off the line' > /dev/null
    sweep 1 2 4 | jq -c 'if .steps == 2 then .disturbed = true else . end' |
        forecast --along-steps --steps 8 - |
        jq -s -e '.[0] | .disturbed and .lo == null and .e2e_ns > 0'
    sweep 1 2 4 | jq -c 'if .model == "t" then .disturbed = true else . end' |
        forecast --along-steps --steps 8 - |
        jq -s -e '(.[0].lo > 0) and (.[1] | .disturbed and .lo == null and .steps > 0)'
    sweep 4 > "$T/in"
    refuses 65 "two step counts" forecast --along-steps "$T/in"
}

@test "fewer than five launches of either side give no interval" {
    four='.launch_values |= .[:4]'
    sweep 1 2 4 | jq -c "$four" | forecast --along-steps --steps 16 - > "$T/out"
    sound "$T/out"
    jq -s -e 'all(.[]; .lo == null and .hi == null and .lo_reason == "fewer than 5 launches" and
        .launches == 4) and .[0].e2e_ns > 0 and .[1].steps > 0' "$T/out"
    jq -r -f pipelines/experiment/shapes/shapes.jq "$T/out" |
        grep 'no interval: fewer than 5 launches' > /dev/null
    sweep 1 2 4 | jq -c "if .model == \"t\" then $four else . end" |
        forecast --along-steps --steps 16 - |
        jq -s -e '.[0].lo > 0 and .[1].lo == null and .[1].launches == 4'
}

@test "the spread of the launches is in the interval of the crossover" {
    # width FACTORS: prints the width of the interval if these multiply the times of LLaMA
    width() {
        sweep 1 2 4 | jq -c --argjson v "$1" 'if .model == "t"
            then .launch_values |= [range(5) as $i | .[$i] | .value *= $v[$i]] else . end' |
            forecast --along-steps --steps 8 - | jq -s '.[1] | (.hi / .lo | log) * 1000 | round'
    }
    calm=$(width '[1, 1, 1, 1, 1]')
    [ "$(width '[1.25, 0.8, 1.25, 0.8, 1]')" -gt "$((calm * 12 / 10))" ]
    # if both models are slow together, the common factor adds no doubt about the crossover
    [ "$(width '[0.7071, 1.4142, 0.7071, 1.4142, 1]')" -lt "$((calm / 2))" ]
}

@test "a step count far beyond the measured ones is flagged" {
    sweep 1 2 4 | forecast --along-steps --steps 2,16,17 - > "$T/out"
    sound "$T/out"
    [ "$(jq -c 'select(.what == "line") | [.beyond_ratio, .is_far]' "$T/out" | sed 's/\.0//' |
        paste -sd ' ')" = '[1,false] [4,false] [4.25,true]' ]
    jq -s -e '.[3] | .what == "crossover" and .is_far == false and
        (.beyond_ratio - .steps / 4 | fabs) < 1e-9' "$T/out"
    jq -r -f pipelines/experiment/shapes/shapes.jq "$T/out" > "$T/said"
    [ "$(grep -c 'DOUBTFUL' "$T/said")" -eq 1 ]
    grep -q '17 steps .*DOUBTFUL: 4.3 times beyond the measured steps' "$T/said"
}

@test "tiny shapes measured at 1, 2 and 4 steps are modelled at 16 steps" {
    jq -nc 'range(2) | {id: "p\(.)", prompt_ids: [range(16) | . + 5]}' > "$T/p"
    for launch in 1 2; do
        "$BIN/gen-llada" -q -m synth:tiny-llada --gen-length 16 --steps 1,2,4 --batch 2 \
            --launch $launch "$T/p"
        "$BIN/gen-llama" -q -m synth:tiny-llama --max-new 16 --contract fixed --batch 2 \
            --launch $launch "$T/p"
    done > "$T/g"
    "$BIN/measure" -q "$T/g" > "$T/m"
    forecast --along-steps --steps 16 "$T/m" | jq -c 'select(.kind == "forecast")' > "$T/out"
    sound "$T/out"
    jq -s -e '.[0].what == "line" and .[0].measured_steps == [1, 2, 4] and .[0].launches == 2 and
        .[0].model == "synth:tiny-llada" and .[1].llama == "synth:tiny-llama"' "$T/out"
    jq -r -f pipelines/experiment/shapes/shapes.jq "$T/out" |
        grep 'modelled from steps 1, 2, 4' > /dev/null
}

@test "--along-steps: 1500 sweeps in seconds; an invalid length is left out" {
    awk 'BEGIN { for (i = 0; i < 3000; i++)
        printf "{\"kind\":\"metric\",\"metric\":\"e2e_ns\",\"config\":\"c%d\",\"model\":\"m\"," \
               "\"arch\":\"llada\",\"contract\":\"fixed\",\"cache\":\"none\",\"axis\":\"steps\"," \
               "\"series\":\"s%d\",\"gen_length\":%s,\"steps\":%d,\"batch\":1,\"value\":%d," \
               "\"launch_values\":[{\"launch\":1,\"value\":%d}]}\n", i, i / 2,
               i < 2 ? "1e300" : 8, 4 + i % 2, 5 + i % 2, 5 + i % 2 }' > "$T/many"
    (ulimit -t 15
        run -1 "$BIN/forecast" --no-meta --along-steps --steps 8 -o "$T/out" "$T/many"
        [ "$(grep -c 'gen_length: expected an integer' <<< "$output")" = 2 ])
    [ "$(jq -s 'map(select(.what == "line" and .e2e_ns == 9)) | length' "$T/out")" = 1499 ]
}

@test "a claim is within the roofline, beyond it, or not judged with its missing value named" {
    claim() { jq -cn "{name: \"a\", system: \"s\", source: \"S\", hardware: \"b200\", devices: 1,
        model: \"m\", paradigm: \"autoregressive\", quant: \"fp8\", batch: 1, prompt_tokens: 1,
        new_tokens: 1, metric: \"output_tokens_per_s\", counting: \"all_tokens\", assumed: [],
        active_weights: 8e9} + $1"; }
    { claim '{value: 200}'                 # 8 GB a pass at 8000 GB/s: 1000 passes a second
      claim '{name: "b", value: 1001}'
      claim '{name: "c", value: 5, batch: null}'
      claim '{name: "d", value: 2000, paradigm: "block_diffusion", block_length: 4,
              baseline: "a"}'
      claim '{name: "e", value: 4001, paradigm: "block_diffusion", block_length: 4}'
      claim '{name: "f", value: 3000, paradigm: "block_diffusion", tokens_per_pass: 6}'
      claim '{name: "g", value: 5, hardware: "none", assumed: ["model"]}'
      claim '{name: "h", value: 1500, paradigm: "block_diffusion",
              new_tokens: null}'; } > "$T/claims"
    forecast --claims --published "$T/claims" > "$T/verdicts"
    conforms "$T/verdicts"
    [ "$(jq -r '.verdict' "$T/verdicts" | paste -sd ,)" = \
      "within,beyond,not comparable,within,beyond,within,not comparable,not comparable" ]
    jq -s -e '.[0].roofline_ratio == 0.2 and .[1].roofline_ratio == 1.001 and
        .[3].speedup == 10 and .[3].baseline_bandwidth_ratio == 0.2 and
        .[3].needs_tokens_per_pass == 2 and .[3].missing == ["steps"] and
        .[5].roofline_ratio == 0.5 and (.[6].missing == ["hardware", "model"]) and
        (.[7].verdict_reason | test("length of its blocks"))' "$T/verdicts"
    claim '{value: 5, baseline: "z"}' > "$T/lost"
    refuses 65 "a: baseline: expected the name of a row, got 'z'" \
        forecast --claims --published "$T/lost"
    for none in batch devices; do # it divides by both
        claim "{value: 5, block_length: 32, $none: 0}" > "$T/none"
        refuses 65 "a: expected batch and devices above 0" \
            forecast --claims --published "$T/none"
    done
    "$BIN/plot" -q --type claims "$T/verdicts" -o "$T/claims.svg"
    grep -q '1 of diffusion models, 2 of autoregressive ones. 5 of 8 claims' "$T/claims.txt"
}
