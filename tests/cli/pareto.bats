#!/usr/bin/env bats
# Tests pareto, which reads metric and quality records and prints the front, crossovers and
# suggestions. The synthetic sweep costs 10 + 4 s at s steps, and its rival costs 300. They meet at
# 72.5 steps. The perplexity of the sweep meets that of the rival at 40 steps. One file because all
# tests share that sweep.
load conforms

setup() {
    set -o pipefail
    BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
    F=tests/fixtures
}

pareto() { "$BIN/pareto" -q --no-meta "$@"; }

digits() { sed -E 's/(\.[0-9]{4})[0-9]+/\1/g' "$@"; }

# sweep RIVAL_MS PROMPTS [STEPS...]: makes records of a sweep and its rival, with deterministic
# noise
sweep() {
    jq -cn --argjson rival "$1" --argjson prompts "$2" --args '
        def about($s): {schema: "crossover/1", run: "r", batch: 1} + (
            if $s > 0 then {config: "llada steps=\($s) gen=512 batch=1", model: "llada",
                            arch: "llada", gen_length: 512, steps: $s, point: "s\($s)",
                            axis: "steps", series: "s", paradigm: "masked_diffusion"}
            else {config: "llama max_new=512 batch=1", model: "llama", arch: "llama", max_new: 512,
                  steps: null, point: "a", axis: null, paradigm: "autoregressive"} end);
        ($ARGS.positional | map(tonumber)) + [0] | .[] as $s |
        (if $s > 0 then 10 + 4 * $s else $rival end) as $cost |
        about($s) + {kind: "metric", metric: "e2e_ns", direction: "lower", value: $cost, lo: null,
            hi: null,
            launch_values: [range(1; 6) | {launch: ., value: ($cost * (0.99 +
                ((. * (if $s > 0 then 1 + $s % 3 else 3 end)) % 5) / 250))}]},
        (if $s > 0 then $s else 40 end) as $at | range(1; $prompts + 1) | . as $i |
        (2 + 2 / ($at | sqrt) + 0.3 * ($i | sin) + 0.1 * (7.3 * $i * $at | sin)) as $q |
        about($s) + {kind: "quality", id: "p\($i)", metric: "judge_nll_nats",
            value: (30 * $q), scored_tokens: 30, direction: "lower"}' "${@:3}"
}

# crossover NAME JQ-EXPRESSION < records
crossover() { jq -c --arg n "$1" "select(.name == \$n) | $2"; }

@test "the golden stream of metrics and qualities gives the stored fronts" {
    pareto --suggest $F/measure-metric.ndjson $F/score-exact-quality.ndjson > "$T/out"
    diff <(digits "$T/out") <(digits $F/pareto-front.ndjson)
}

# refuses CODE TEXT TOOL FILE...: tests that the tool exits with CODE and prints TEXT
refuses() {
    local code=$1 text=$2
    shift 2
    run "$BIN/$1" --no-meta -o "$T/refused" "${@:2}"
    [ "$status" -eq "$code" ] && [[ "$output" == *"$text"* ]]
}

# stream FINGERPRINT MODEL: the records of a model in "$T/all" as a stream of that machine
stream() {
    { jq -cn "{schema: \"crossover/1\", kind: \"meta\", run: \"r\", tool: \"measure\",
               machine: {cpu: \"Some CPU\", cores: 2, fingerprint: \"$1\"}}"
      grep "\"model\":\"$2\"" "$T/all"; } > "$T/lines"
    cat "$T/lines"
    jq -cn --arg sum "$(sha256sum < "$T/lines" | cut -c 1-64)" \
        --argjson n "$(($(wc -l < "$T/lines") - 1))" '{schema: "crossover/1", kind: "end",
        run: "r", records: $n, failed: 0, sha256: $sum, status: "ok"}'
}

@test "times of two machines are refused, times of one in two files are not" {
    sweep 300 20 8 16 > "$T/all"
    stream aaaaaaaaaaaa llada > "$T/llada"
    stream aaaaaaaaaaaa llama > "$T/same"
    stream bbbbbbbbbbbb llama > "$T/other"
    pareto "$T/llada" "$T/same" > "$T/p"
    for tool in pareto conclude report "compare --by paradigm --cost e2e_ns" \
        "plot --type pareto -o $T/p.svg"; do
        # shellcheck disable=SC2086 # a tool with its arguments
        set -- $tool "$T/llada" "$T/other"
        refuses 65 'times of Some CPU, 2 cores (bbbbbbbbbbbb), after times of Some CPU, 2 cores' \
            "$@"
    done
    # bytes of memory and qualities of two machines are compared
    sed 's/e2e_ns/memory_weights_bytes/' "$T/all" > "$T/bytes"
    mv "$T/bytes" "$T/all"
    stream aaaaaaaaaaaa llada > "$T/llada"
    stream bbbbbbbbbbbb llama > "$T/other"
    "$BIN/compare" --no-meta --by paradigm "$T/llada" "$T/other" > "$T/c"
    jq -se 'any(.metric == "memory_weights_bytes") and any(.metric == "judge_ppl")' "$T/c"
}

@test "points of two sets of prompts with the same ids are not compared" {
    sweep 300 40 8 16 | jq -c '.workload = (if .model == "llama" then "one" else "two" end)
        | .device = "cpu" | .contract = "fixed"' > "$T/in"
    "$BIN/pareto" --no-meta "$T/in" > "$T/p" 2> "$T/err"
    grep -q 'W034.*LLaMA has prompts of workload one, this one two' "$T/err"
    jq -se 'map(select(.kind == "crossover")) | length == 3 and
        all(.exists == false and .llama == null and (.reason | endswith("contract and prompts")))' \
        "$T/p"
    # compare names both sets
    run "$BIN/compare" --no-meta --by paradigm --cost e2e_ns "$T/in"
    [ "$status" -eq 65 ]
    [[ "$output" == *"its prompts have the workload two, those of 'llama max_new=512 batch=1' have \
one; score and measure both on the same prompts"* ]]
    # the sets of one model alone differ
    jq -c 'select(.model == "llada") | .quant = (if .steps == 8 then "none" else "int8" end)
        | .workload = .quant | .steps = 8 | .point = .quant | .config = .quant' "$T/in" > "$T/q"
    run "$BIN/compare" --no-meta "$T/q"
    [ "$status" -eq 65 ]
    [[ "$output" == *"'int8' has no base: its prompts have the workload int8, those of 'none'"* ]]
    # one unknown set is no other set
    jq -c 'if .model == "llama" then del(.workload) else . end' "$T/in" > "$T/some"
    jq -c 'del(.workload)' "$T/in" | pareto > "$T/a"
    pareto "$T/some" > "$T/b"
    diff <(jq -cS . "$T/a") <(jq -cS 'del(.workload)' "$T/b")
}

@test "values of two judges are refused by every tool that joins them" {
    sweep 300 20 8 16 | jq -c '(if .model == "llama" then "a" else "b" end) as $j
        | if .kind == "quality" then .judge = "same name" | .judge_sha256 = $j * 64 else . end' \
        > "$T/two"
    for tool in pareto compare conclude report; do
        refuses 65 "judge_sha256 is aaaaaaaaaaaa (same name), and bbbbbbbbbbbb (same name) in" \
            $tool "$T/two"
    done
    jq -c 'if .kind == "quality" then .judge_sha256 = "a" * 64
        | .judge_layer = (if .model == "llama" then 2 else 9 end) else . end' "$T/two" > "$T/layers"
    refuses 65 "judge_layer is 2, and 9 in" pareto "$T/layers"
    sed 's/"aaaaa*"/"'"$(printf 'b%.0s' {1..64})"'"/' "$T/two" > "$T/one"
    pareto "$T/one" > "$T/p"
}

@test "known crossings are found and lie within their intervals" {
    sweep 300 200 8 16 32 64 128 256 | pareto --margin 0 > "$T/p"
    [ "$(crossover X_lat '.exists and .lo < 72.5 and 72.5 < .hi and .hi - .lo < 3' < "$T/p")" = \
      true ]
    [ "$(crossover X_lat '.bracket' < "$T/p" | sed 's/\.0//g')" = "[64,128]" ]
    [ "$(crossover X_lat '.method | startswith("least-absolute")' < "$T/p")" = true ]
    [ "$(crossover X_lat '[.at, .lo, .hi] == [.estimate, .est_lo, .est_hi]' < "$T/p")" = true ]
    [ "$(crossover X_q '.exists and .est_lo < 40 and 40 < .est_hi and .est_lo < .estimate
        and .estimate < .est_hi and .task == null' < "$T/p")" = true ]
    [ "$(crossover X_q '[.at, .lo, .hi, (.tests | map(.noninferior))]' < "$T/p" |
        sed 's/\.0//g')" = "[64,64,64,[false,false,false,true,true,true]]" ]
    [ "$(crossover X_q '.bracket' < "$T/p" | sed 's/\.0//g')" = "[32,64]" ]
    [ "$(crossover X_par '.exists and .at == 64 and .steps_end == 64' < "$T/p")" = true ]
    [ "$(crossover X_par '.speedup_lo < 300 / 266 and 300 / 266 < .speedup_hi' < "$T/p")" = true ]
}

@test "a system that stops early has no crossover with one that does not" {
    sweep 300 30 8 32 128 |
        jq -c '.contract = (if .model == "llama" then "answer" else "fixed" end)' > "$T/in"
    pareto "$T/in" > "$T/p"
    [ "$(crossover X_lat '.exists' < "$T/p")" = false ]
    crossover X_lat '.reason' < "$T/p" | grep -q 'no LLaMA configuration'
    jq -c 'if .model == "llama" then ., (.contract = "fixed" | .point = "b" | .value *= 2 |
        .launch_values[]?.value *= 2) else . end' "$T/in" | pareto > "$T/p"
    [ "$(crossover X_lat '.contract' < "$T/p")" = '"fixed"' ]
    [ "$(crossover X_lat '.llama_point' < "$T/p")" = '"b"' ]
    [ "$(jq -s '[.[] | select(.kind == "front") | .contract] | unique | length' "$T/p")" = 2 ]
}

@test "the rival of the crossovers is the plain LLaMA if there is one" {
    sweep 300 30 8 32 128 > "$T/in"
    grep '"llama"' "$T/in" | jq -c '.lookup = 4 | .config = "a llama lookup=4" | .point = "0"
        | .model = "a" | if .kind == "metric" then .value /= 4 | .launch_values[].value /= 4
                         else . end' > "$T/guess"
    pareto "$T/in" "$T/guess" > "$T/p"
    [ "$(jq -r 'select(.kind == "crossover") | .llama_point' "$T/p" | sort -u)" = a ]
    [ "$(jq -r 'select(.kind == "front") | .point' "$T/p" | sort | paste -sd ' ')" = \
        "0 a s128 s32 s8" ]
    # the fastest point is chosen among points with the model and the formats of the plain point
    jq -c '.model = "llama"' "$T/guess" > "$T/way"
    for other in '.model = "a"' '.quant = "nf4"' '.dtype = "bf16"' 'del(.launch_values)'; do
        jq -c "$other" "$T/way" | "$BIN/pareto" --no-meta --rival fastest "$T/in" - \
            > "$T/p" 2> "$T/err"
        [ "$(jq -r 'select(.kind == "crossover") | .llama_point' "$T/p" | sort -u)" = a ]
        grep -q "no other LLaMA point of this model and these formats is paired" "$T/err"
    done
    pareto --rival fastest "$T/in" "$T/way" > "$T/p"
    [ "$(jq -r 'select(.kind == "crossover") | .llama_point' "$T/p" | sort -u)" = 0 ]
    # 10 + 4 s = 300 / 4 at 16.25 steps
    [ "$(crossover X_lat '.at > 14 and .at < 18' < "$T/p")" = true ]
    grep -v '"llama"' "$T/in" | pareto - "$T/guess" > "$T/p"
    [ "$(jq -r 'select(.kind == "crossover") | .llama_point' "$T/p" | sort -u)" = 0 ]
    # along batch sizes the rival is chosen in the same way
    { cat "$T/in" "$T/guess"; cat "$T/in" "$T/guess" | jq -c '.batch = 4 | .point += "x"
        | if .kind == "metric" and .arch == "llada" then .value *= 6 | .launch_values[].value *= 6
          else . end | if .series then .series += "x" else . end'; } > "$T/two"
    pareto "$T/two" | jq -c 'select(.name == "X_batch") | .llama' > "$T/x"
    [ -s "$T/x" ]
    [ "$(sort -u "$T/x")" = '"llama"' ]
    sed 's/"model":"a"/"model":"llama"/; s/"point":"0/"draft_model":"d","point":"0/' "$T/two" |
        pareto --rival fastest - | jq -c 'select(.name == "X_batch") | [.cells[].llama_point]' \
        > "$T/x"
    [ "$(sort -u "$T/x")" = '["0","0x"]' ]
}

# beside N FACTOR: N more points of the model of LLaMA, with lookup 1 to N. The first costs FACTOR
# times what plain LLaMA costs; point k costs k - 1 % more than the first
beside() {
    jq -c --argjson n "$1" --argjson factor "$2" 'select(.arch == "llama") | range(1; $n + 1) as $k
        | .lookup = $k | .config += " lookup=\($k)" | .point += "w\($k)"
        | if .kind == "metric" then ($factor * (1 + ($k - 1) / 100)) as $f
            | .value *= $f | .launch_values[].value *= $f else . end'
}

@test "crossovers are given with the plain LLaMA and with the fastest, and each is named" {
    sweep 300 30 4 16 64 256 | sed 's/ max_new=512 batch=1//' > "$T/in"
    beside 1 0.25 < "$T/in" | pareto "$T/in" - > "$T/one"
    conforms "$T/one"
    names() { crossover "$1" "[.rival, .llama_config, $2]" < "$3" | paste -sd ' '; }
    [ "$(names X_lat .comparisons "$T/one")" = \
        '["plain","llama",null] ["fastest","llama lookup=1",2]' ]
    # 10 + 4 s = 300 at 72.5 steps, and 75 at 16.25
    [ "$(crossover X_lat '(.at | if . > 50 then . > 65 and . < 80 else . > 14 and . < 18 end)' \
        < "$T/one" | sort -u)" = true ]
    [ "$(names X_lat .candidates "$T/one")" = \
        '["plain","llama",null] ["fastest","llama lookup=1",["llama lookup=1","llama"]]' ]
    # chance takes part in a choice among seven, so the interval is wider, about the same place
    beside 6 0.25 < "$T/in" | pareto "$T/in" - > "$T/six"
    [ "$(names X_lat .comparisons "$T/six")" = \
        '["plain","llama",null] ["fastest","llama lookup=1",7]' ]
    width() { crossover X_lat 'select(.rival == "fastest") | .hi - .lo' < "$1"; }
    jq -en "$(width "$T/six") > 1.1 * $(width "$T/one")"
    [ "$(crossover X_lat 'select(.rival == "fastest") | .level' < "$T/six")" = 0.95 ]
    # plain is the fastest of two, no other way was measured, or no plain one
    [ "$(beside 1 2 < "$T/in" | pareto "$T/in" - | crossover X_lat .rival)" = '"both"' ]
    [ "$(pareto "$T/in" | crossover X_lat .rival)" = '"plain"' ]
    [ "$({ grep -v '"arch":"llama"' "$T/in"; beside 1 2 < "$T/in"; } | pareto |
        crossover X_lat .rival)" = '"other"' ]
    # points to add are suggested for the plain one
    [ "$(beside 1 0.25 < "$T/in" | pareto --suggest "$T/in" - | grep '"kind":"suggest"')" = \
        "$(pareto --suggest "$T/in" | grep '"kind":"suggest"')" ]
    for rival in plain fastest; do
        [ "$(beside 1 0.25 < "$T/in" | pareto --rival $rival "$T/in" - |
            crossover X_lat .rival)" = "\"$rival\"" ]
    done
    # plain was chosen among two
    [ "$(beside 1 2 < "$T/in" | pareto --rival fastest "$T/in" - |
        crossover X_lat '[.rival, .llama_config, .comparisons]')" = '["fastest","llama",2]' ]
    [ "$(pareto --rival fastest "$T/in" | crossover X_lat .comparisons)" = null ]
}

@test "along batch sizes each cell names its LLaMA, and each size has its own fastest" {
    sweep 300 30 32 128 | sed 's/ max_new=512 batch=1//' > "$T/in"
    # at batch 4 LLaDA costs six times as much; LLaMA with lookup costs a quarter of plain LLaMA at
    # batch 1, but twice as much as plain LLaMA at batch 4
    batches() {
        jq -c '., (.batch = 4 | .point += "x" | .config += " batch=4"
            | (if .arch == "llada" then 6 elif .lookup then 8 else 1 end) as $f
            | if .kind == "metric" then .value *= $f | .launch_values[].value *= $f else . end
            | if .series then .series += "x" else . end)'
    }
    { cat "$T/in"; beside 1 0.25 < "$T/in"; } | batches > "$T/two"
    pareto "$T/two" > "$T/p"
    conforms "$T/p"
    crossover X_batch 'select(.steps == 32) | [.rival, .comparisons, (.cells[].llama_config)]' \
        < "$T/p" > "$T/names"
    [ "$(head -n 1 "$T/names")" = '["plain",null,"llama","llama batch=4"]' ]
    [ "$(tail -n 1 "$T/names")" = '["fastest",4,"llama lookup=1","llama batch=4"]' ]
    [ "$(crossover X_batch 'select(.steps == 32) | .cells | map(.candidates)' < "$T/p" |
        tail -n 1)" = '[["llama lookup=1","llama"],["llama lookup=1 batch=4","llama batch=4"]]' ]
    # without another LLaMA no point was chosen, so the cells name no candidates
    [ "$(batches < "$T/in" | pareto --rival fastest | crossover X_batch \
        'select(.steps == 32) | [.rival, .comparisons, (.cells[] | has("candidates"))]')" = \
        '["fastest",null,false,false]' ]
    # a second model, number format or chat template is no way of the plain LLaMA
    for other in '.model = "a"' '.quant = "nf4"' '.dtype = "bf16"' '.conditions = "chat=x"'; do
        [ "$(jq -c "if .lookup then $other else . end" "$T/two" | pareto --rival fastest |
            crossover X_batch 'select(.steps == 32) | [.cells[].candidates]')" = '[null,null]' ]
    done
    [ "$(crossover X_batch 'select(.steps == 32) | [.cells[].ratio < 1]' < "$T/p" |
        paste -sd ' ')" = '[true,false] [false,false]' ]
    jq -sr -f pipelines/phase/scale.jq "$T/p" > "$T/text"
    grep -q '^X_batch .* a step): cheaper up to .*; ratios 1: 0\.46, 4: 2\.76$' "$T/text"
    grep -q '^X_batch .*, against the fastest LLaMA): .*1: 1\.84 (llama lookup=1), 4: .*(llama b' \
        "$T/text"
    "$BIN/report" -q --format markdown "$T/two" "$T/p" -o "$T/page"
    # lookup gives the answers of plain LLaMA, so the page shows X_q once; if the answers differ, it
    # shows one X_q with plain LLaMA and one with the fastest
    [ "$(grep -c '^| X..q .* 1 | 512 tokens' "$T/page")" = 1 ]
    jq -c 'if .kind == "quality" and .lookup then .value *= 1.5 else . end' "$T/two" > "$T/other"
    pareto "$T/other" > "$T/o"
    "$BIN/report" -q --format markdown "$T/other" "$T/o" -o "$T/others"
    grep -q '^| X..q .* 1 | 512 tokens | 128 ' "$T/others"
    grep -q '^| X..q .* 1 | 512 tokens; with the fastest LLaMA (lookup=1) | 32 ' "$T/others"
    # if X_q does not exist for one reason with both, the page shows the reason once
    jq -c 'if .kind == "quality" and .arch == "llama" then .value *= 0.5 else . end' "$T/two" \
        > "$T/other"
    pareto "$T/other" > "$T/o"
    "$BIN/report" -q --format markdown "$T/other" "$T/o" | grep '^- X..q' > "$T/others"
    [ "$(grep -c ' with the fastest LLaMA' "$T/others")" = 0 ]
    grep -q '^| X..q .* 4 | 512 tokens; plain LLaMA is the fastest |' "$T/page"
    grep -q '^- X..batch with the fastest LLaMA: costs more than LLaMA at every .* (2)$' "$T/page"
}

@test "latent points compete for the front, and are neither sweep nor rival" {
    sweep 300 60 8 16 32 64 128 > "$T/two"
    pareto "$T/two" | jq -c 'select(.kind != "front")' > "$T/without"
    # two latent points are cheaper and better than all others, and form a series of their own
    jq -c 'select(.model == "llama") | . + {model: "ltm", arch: "ltm", paradigm: "latent",
        axis: "vi_steps", series: "z"} | (4, 16) as $n | .vi_steps = $n | .point = "z\($n)" |
        .config = "ltm \($n)" | .value *= 0.1 | .launch_values[]?.value *= 0.1' "$T/two" > "$T/z"
    pareto "$T/two" "$T/z" > "$T/with"
    diff <(jq -c 'select(.kind != "front")' "$T/with") "$T/without"
    [ "$(jq -s 'map(select(.kind == "crossover")) | length > 2' "$T/without")" = true ]
    [ "$(jq -s 'map(select(.kind == "front" and .model == "ltm")) | length > 1 and
        all(.p_front > 0)' "$T/with")" = true ]
}

@test "order and files do not change the output; the seed does" {
    sweep 300 30 8 32 128 > "$T/in"
    grep metric "$T/in" | sort -r > "$T/m"
    grep quality "$T/in" | sort > "$T/q"
    pareto "$T/in" > "$T/a"
    pareto "$T/q" "$T/m" | cmp - "$T/a"
    ! pareto --seed=2 "$T/in" | cmp -s - "$T/a"
}

@test "a sweep that is as good only at a higher cost has no crossover" {
    sweep 100 200 8 16 32 64 128 256 | pareto > "$T/p"
    [ "$(crossover X_par '[.exists, .steps, .reason]' < "$T/p")" = \
      '[false,null,"as good as LLaMA only at step counts that cost more"]' ]
    [ "$(crossover X_par '.speedup < 1 and .speedup_hi < 1' < "$T/p")" = true ]
}

@test "no crossover is extrapolated" {
    sweep 2000 50 4 8 | pareto > "$T/p"
    [ "$(crossover X_lat '[.exists, .steps, .censored, .bracket]' < "$T/p" | sed 's/\.0//')" = \
      '[false,null,"above",[8,null]]' ]
    [ "$(crossover X_q '[.exists, .censored, .hi, .hi_censored, .reason]' < "$T/p")" = \
      '[false,"above",null,"above",'\
'"worse than LLaMA by more than the margin at every step count measured"]' ]
    sweep 20 50 128 256 | pareto > "$T/p"
    [ "$(crossover X_lat '[.exists, .censored, .bracket]' < "$T/p" | sed 's/\.0//')" = \
      '[false,"below",[null,128]]' ]
    [ "$(crossover X_q '[.exists, .at, .bracket, .est_lo_censored]' < "$T/p" |
        sed 's/\.0//g')" = '[true,128,[null,128],"below"]' ]
}

@test "a margin moves X_q to fewer steps" {
    sweep 300 100 8 16 32 64 128 > "$T/in"
    a=$(pareto --margin=0 "$T/in" | crossover X_q '[.steps, .estimate, .margin]')
    b=$(pareto --margin=15% "$T/in" | crossover X_q '[.steps, .estimate, .margin]')
    c=$(pareto --margin=accuracy=0.1 "$T/in" | crossover X_q '[.steps, .estimate, .margin]')
    jq -en "$b[0] < $a[0] and $b[1] < 0.8 * $a[1] and $c == $a"
    [ "$(pareto "$T/in" | crossover X_q '[.margin, .margin_relative]')" = '[0.05,true]' ]
    run pareto --margin=-1 "$T/in"
    [ "$status" -eq 64 ]
}

@test "the front has classes, and a dominated point is off the front" {
    { sweep 300 100 8 64 256
      sweep 5000 100 8 | grep '"llama"' |
          sed 's/"llama"/"slow"/; s/llama max/slow max/; s/"point":"a"/"point":"b"/'; } |
        pareto > "$T/p"
    [ "$(jq -c 'select(.model == "slow") | [.p_front + 0, .class, .on_front]' "$T/p")" = \
      '[0,"off",false]' ]
    [ "$(jq -c 'select(.kind == "front" and .steps == 8) | [.p_front + 0, .class]' "$T/p")" = \
      '[1,"on"]' ]
    [ "$(jq -s 'map(select(.kind == "front")) | length' "$T/p")" = 5 ]
}

@test "null rows are left out and counted; prompts are paired by id" {
    sweep 300 50 8 64 > "$T/in"
    jq -c 'if .id == "p7" and .steps == 8 then .value = null else . end' "$T/in" > "$T/cut"
    "$BIN/pareto" --no-meta "$T/cut" > "$T/p" 2> "$T/err"
    [ "$(jq -c 'select(.kind == "front") | [.prompts, .excluded_prompts]' "$T/p" | sort -u)" = \
      '[49,1]' ]
    grep -q '1 records without a value left out' "$T/err"
}

@test "out of memory removes a point from the front but keeps its quality" {
    sweep 300 50 8 16 32 128 | jq -c 'if .kind == "metric" and .steps == 128
        then . + {value: null, value_reason: "oom", launch_values: []} else . end' | pareto > "$T/p"
    [ "$(jq -c 'select(.kind == "front").excluded_points' "$T/p" | tr '\n' ' ')" = "1 1 1 1 " ]
    [ "$(crossover X_q .exists < "$T/p")" = true ]
    [ "$(crossover X_lat .censored < "$T/p")" = '"above"' ]
}

@test "random weights have no quality, but a crossover of cost" {
    sweep 300 20 8 64 128 | sed 's/"run":"r"/"run":"r","weights_random":true/' | pareto > "$T/p"
    [ "$(crossover X_lat .exists < "$T/p")" = true ]
    [ "$(crossover X_q '[.exists, .reason]' < "$T/p")" = '[false,"random weights"]' ]
    [ "$(jq -s 'map(select(.kind == "front")) | length' "$T/p")" = 0 ]
}

@test "a sweep without a rival is reported" {
    sweep 300 20 8 64 | sed 's/max_new":512/max_new":64/' | pareto > "$T/p"
    [ "$(crossover X_lat '[.exists, .llama, .reason]' < "$T/p")" = \
      '[false,null,"no LLaMA configuration of this device, batch, length, contract and prompts"]' ]
}

@test "--suggest gives steps inside a wide bracket, and prompts for half an octave" {
    sweep 300 8 8 256 | pareto --suggest > "$T/p"
    [ "$(jq -c 'select(.kind == "suggest").steps' "$T/p")" = '[16,32,64,128]' ]
    sweep 300 20 8 16 32 64 128 256 | pareto --suggest > "$T/p"
    [ "$(jq -c 'select(.kind == "suggest") | [.octaves > 0.1, .prompts >= 20]' "$T/p")" = \
      '[true,true]' ]
}

@test "--octaves sets the width of the bracket that suggestions aim for" {
    sweep 300 20 8 16 32 64 128 256 | pareto --margin 0 --suggest --octaves 0.5 > "$T/p"
    [ "$(jq -c 'select(.kind == "suggest").steps' "$T/p")" = '[45,91]' ]
    sweep 300 200 8 16 32 64 128 256 | pareto --margin 0 --suggest > "$T/p"
    [ "$(jq -c 'select(.kind == "suggest").steps' "$T/p")" = '[]' ]
}

@test "steps are refined where X_q lies between counts an octave apart" {
    sweep 300 200 8 16 32 64 128 256 | pareto --margin 0 --suggest --octaves 0.5 > "$T/p"
    [ "$(jq -nr -f pipelines/phase/refine-steps.jq --arg steps 8,16,32,64,128,256 "$T/p")" = 45,91 ]
}

@test "a cost may be a metric where more is better" {
    sweep 300 30 8 32 128 | sed '/e2e_ns/s/lower/higher/; s/e2e_ns/output_tokens_per_s/' |
        pareto --cost=output_tokens_per_s > "$T/p"
    [ "$(jq -c 'select(.kind == "front" and .steps == 128) | .class' "$T/p")" = '"on"' ]
    [ "$(jq -c 'select(.kind == "front" and .steps == 8) | .class' "$T/p")" = '"off"' ]
}

@test "three thousand points are compared in seconds" {
    awk 'BEGIN { for (i = 0; i < 3000; i++)
        printf "{\"kind\":\"metric\",\"metric\":\"e2e_ns\",\"config\":\"c%d\",\"model\":\"m%d\"," \
               "\"arch\":\"llada\",\"gen_length\":8,\"steps\":4,\"batch\":%d,\"value\":%d," \
               "\"direction\":\"lower\"}\n", i, i / 2, 1 + i % 2, 5 + i % 2 }' > "$T/many"
    (ulimit -t 15; pareto --draws 100 "$T/many" > "$T/out")
    [ "$(wc -l < "$T/out")" -ge 3000 ]
}

@test "bad input is refused with its reason" {
    run pareto < /dev/null
    [ "$status" -eq 65 ]
    run pareto "$T/none"
    [ "$status" -eq 66 ]
    sweep 300 5 8 16 > "$T/in"
    pareto "$T/in" > "$T/once"
    pareto "$T/in" "$T/in" | cmp - "$T/once"
    run pareto "$T/in" <(jq -c 'select(.metric == "e2e_ns") | .value += 1' "$T/in")
    [ "$status" -eq 65 ]
    [[ "$output" == *"a second, different 'e2e_ns' record"* ]]
    while IFS='|' read -r words bad; do # of the first record, a cost; the others are good
        run pareto < <(jq -c "if input_line_number == 1 then $bad else . end" "$T/in")
        echo "$bad: $status $output"
        [ "$status" -eq 1 ]
        [[ "$output" == *"$words"* ]]
    done << 'END'
value: expected a number from 1e-60 to 1e+60 or null, got 0|.value = 0
value: expected a number from|.value = 1e300
value: expected a number from|.value = "5"
lo: expected at most hi, 3, got 4|.lo = 4 | .hi = 3
passes: expected a number from 0|.passes = -1
launch_values[1]: value: expected a number from 0|.launch_values[1].value = -1
END
    while IFS='|' read -r words bad; do
        run pareto < <(jq -c "if .kind == \"quality\" then $bad else . end" "$T/in")
        echo "$bad: $status $output"
        [ "$status" -eq 1 ]
        [[ "$output" == *"$words"* ]]
    done << 'END'
value: expected a number from -0.001 to 1e+60|.value = 1e99
value: expected a number from -0.001 to 1e+60|.value = -1
value: expected a number from 0 to 1 or null|.metric = "chrf" | .direction = "higher" | .value = 9
scored_tokens: expected a number from 0|.scored_tokens = -3
copies: expected a number from 1|.copies = 0
metric: expected a name of a-z, 0-9 and _, got|.metric = "../x"
END
    run pareto --quality=charm "$T/in"
    [ "$status" -eq 0 ]
    [ "$(crossover X_q .reason <<< "$output")" = '"no quality on one side"' ]
}

# along_threshold: changes the axis of a sweep to a threshold. The passes made are the old step
# counts, and no step count is stated.
along_threshold() {
    jq -c 'if .arch == "llada" then .threshold = (1 - 1 / .steps) | .passes = .steps | .rows = 9
               | .steps = null | .unmask = "threshold" | .axis = "threshold"
               | .config = "llada threshold=\(.threshold)" else . end'
}

@test "along another axis the measured passes order the sweep and give its crossover" {
    sweep 300 200 8 16 32 64 128 256 > "$T/in"
    pareto "$T/in" > "$T/s"
    along_threshold < "$T/in" | pareto > "$T/t"
    [ "$(crossover X_lat '[.axis, .over, .steps, .bracket_values]' < "$T/t")" = \
      '["threshold","passes",null,[0.984375,0.9921875]]' ]
    # the numbers are those of the sweep over steps, under other names
    [ "$(crossover X_lat '[.at, .lo, .hi, .bracket, .probability]' < "$T/t")" = \
      "$(crossover X_lat '[.steps, .lo, .hi, .bracket, .probability]' < "$T/s")" ]
    [ "$(crossover X_q '[.at, .lo, .hi, .noninferior_at]' < "$T/t")" = \
      "$(crossover X_q '[.steps, .lo, .hi, .noninferior_steps]' < "$T/s")" ]
    [ "$(crossover X_lat '.points | length' < "$T/t")" = 6 ]
    # 64 steps were allowed at every threshold, but fewer were done
    along_threshold < "$T/in" | jq -c 'if .arch == "llada" then .steps = 64 else . end' |
        pareto | crossover X_lat '[.at, .over]' > "$T/a"
    cmp "$T/a" <(crossover X_lat '[.at, .over]' < "$T/t")
}

@test "points of one amount of work, or of unmeasured work, have no crossover but a reason" {
    sweep 300 20 8 64 | along_threshold > "$T/in"
    jq -c 'if .arch == "llada" then .passes = 9 else . end' "$T/in" | pareto > "$T/p"
    [ "$(crossover X_lat '[.exists, .over]' < "$T/p")" = '[false,null]' ]
    [[ "$(crossover X_q .reason < "$T/p")" == *"the same work"* ]]
    [ "$(jq -s 'map(select(.kind == "front")) | length' "$T/p")" = 3 ]
    jq -c 'del(.passes, .rows)' "$T/in" | pareto > "$T/p"
    [[ "$(crossover X_lat .reason < "$T/p")" == *"were not measured"* ]]
    # the passes are equal, so rows order the points
    jq -c 'if .arch == "llada" then .rows = 100 * .passes | .passes = 9 else . end' "$T/in" |
        pareto > "$T/p"
    [ "$(crossover X_lat '[.over, .bracket]' < "$T/p" | sed 's/\.0//g')" = '["rows",[6400,null]]' ]
}

@test "points of equal work count as one point, their mean" {
    sweep 300 20 8 32 64 128 | along_threshold > "$T/in"
    jq -c 'if .passes == 64 then .passes = 32 else . end' "$T/in" | pareto > "$T/p"
    # the cost is 10 + 4 * (32 + 64) / 2 at 32 passes and 522 at 128, so it is 300 in between
    [ "$(crossover X_lat '[.exists, .bracket, .at > 32 and .at < 128]' < "$T/p" |
        sed 's/\.0//g')" = '[true,[32,128],true]' ]
}

@test "--axis joins points along another setting" {
    { for c in 0 1 2; do
          sweep 300 10 8 64 | jq -c --argjson c $c 'if .arch == "llada" then .cfg_scale = $c
              | .point += "c\($c)" | .series += "c\($c)" | .passes = .steps | .rows = 100 * (1 + $c)
              | .value *= (1 + $c) | .launch_values[]?.value *= (1 + $c) else select($c == 0) end'
      done; } > "$T/in"
    [ "$(pareto "$T/in" | crossover X_lat .axis | sort | uniq -c | tr -s ' ')" = ' 3 "steps"' ]
    pareto --axis cfg_scale "$T/in" > "$T/p"
    [ "$(crossover X_lat '[.axis, .over, [.points[].value]]' < "$T/p" | sort -u)" = \
      '["cfg_scale","rows",[0,1,2]]' ]
    [ "$(crossover X_lat .series < "$T/p" | sort -u | wc -l)" -eq 2 ]
    # along their own axis the series of the records stay
    [ "$(pareto --axis steps "$T/in" | crossover X_lat .series | sort | paste -sd ' ')" = \
      '"sc0" "sc1" "sc2"' ]
    run pareto --axis batch "$T/in"
    [ "$status" -eq 64 ]
    run pareto --axis factor "$T/in"
    [ "$status" -eq 65 ]
}

@test "the larger of two sets of prompts at one point counts" {
    sweep 300 20 8 64 | jq -c '.workload = "large" | .prompts = 20' > "$T/in"
    jq -c 'select(.metric == "e2e_ns") | .workload = "few" | .prompts = 2 | .value *= 9' "$T/in" \
        > "$T/few"
    pareto "$T/in" > "$T/a"
    "$BIN/pareto" --no-meta "$T/few" "$T/in" > "$T/b" 2> "$T/err"
    cmp "$T/a" "$T/b"
    grep -q '3 measurements left out' "$T/err"
}

# load: prints records of batches. LLaDA takes 1 ms a prompt, LLaMA takes 4 ms and a quarter of a ms
# a prompt. They meet at 16 / 3 prompts.
load() {
    jq -cn '[1, 2, 4, 8, 16][] as $b | (["llada", $b], ["llama", 4 + $b / 4])
        | {schema: "crossover/1", kind: "metric", run: "r", metric: "e2e_ns", direction: "lower",
           model: .[0], paradigm: (if .[0] == "llada" then "masked_diffusion"
                                   else "autoregressive" end),
           batch: $b, gen_length: (if .[0] == "llada" then 64 else null end),
           max_new: (if .[0] == "llama" then 64 else null end),
           steps: (if .[0] == "llada" then 16 else null end), axis: "steps", contract: "fixed",
           point: "\(.[0])\($b)", series: "s\($b)", config: "\(.[0]) \($b)",
           value: (.[1] * 1e6), lo: null, hi: null}
        | .value as $v | .model as $m | .launch_values = [range(6) |
            {launch: ., value: ($v * (0.99 + (if $m == "llada" then . else . * 5 % 7 end) / 250))}]'
}

@test "the batch size at which the faster model changes is found" {
    load | pareto > "$T/p"
    [ "$(crossover X_batch '[.exists, .direction, .bracket]' < "$T/p" | sed 's/\.0//g')" = \
      '[true,"cheaper_up_to",[4,8]]' ]
    [ "$(crossover X_batch '.at > 4.5 and .at < 6.2 and .lo < .at and .at < .hi' \
        < "$T/p")" = true ]
    [ "$(crossover X_batch '[.cells[].ratio * 20 | round] == [5, 9, 16, 27, 40]' \
        < "$T/p")" = true ]
    jq -sr -f pipelines/phase/scale.jq "$T/p" | grep -q '^X_batch .*: cheaper up to 5\.[0-9]'
    load | jq -c 'if .model == "llama" then .value /= 9 | .launch_values[].value /= 9 else . end' |
        pareto > "$T/p"
    [ "$(crossover X_batch '[.exists, .reason]' < "$T/p")" = \
      '[false,"costs more than LLaMA at every batch size measured"]' ]
    [ "$(load | grep '"batch":4,' | pareto | crossover X_batch .)" = "" ]
}

# times DISTURBED: makes a `times` record for each point of `sweep 300 ..`, of tasks sum and story.
# LLaDA takes a tenth as long on a sum. LLaMA has no times in the first DISTURBED of six launches.
times() {
    jq -c --argjson disturbed "$1" 'select(.kind == "metric") | .value as $v | .arch as $a |
        {schema, run, batch, config, model, arch, gen_length, max_new, steps, point, axis, series,
         paradigm, kind: "times", ids: [range(10; 22) | "p\(.)"], disturbed_cells: 0,
         tasks: [range(12) | if . % 2 == 0 then "sum" else "story" end], launches: [range(6)],
         e2e_ns: [range(6) as $l | [range(12) as $p |
             if $a == "llama" and $l < $disturbed then null else
             $v * (if $a == "llada" and $p % 2 == 0 then 0.1 else 1 end) *
             (1 + (($l * 5 + $p * 3 + $v) % 7 | floor) / 500) end]],
         cpu_ns: [range(6) | [range(12) | null]]}'
}

@test "times are paired by prompt and launch for each task; a disturbed side gives null" {
    sweep 300 40 8 64 256 | jq -c 'if .kind == "quality" then
        .task = (if (.id[1:] | tonumber) % 2 == 0 then "sum" else "story" end) else . end' \
        > "$T/in"
    { cat "$T/in"; times 0 < "$T/in"; } > "$T/all"
    conforms <(pareto "$T/all")
    pareto --task story "$T/all" > "$T/story"
    [ "$(crossover X_lat '[.exists, .task, .bracket]' < "$T/story" | sed 's/\.0//g')" = \
      '[true,"story",[64,256]]' ]
    [ "$(crossover X_lat '.method | contains("launches and prompts")' < "$T/story")" = true ]
    pareto --task sum "$T/all" > "$T/sum"
    [ "$(crossover X_lat '[.exists, .censored, .reason]' < "$T/sum")" = \
      '[false,"above","cheaper than LLaMA at every step count measured"]' ]
    [ "$(crossover X_q '[.exists, .at, .reason, .prompts]' < "$T/sum")" = \
      '[null,null,"too few prompts",20]' ]
    [ "$(jq -c 'select(.kind == "front" and .steps == 8) | .cost_ratio < 0.02' "$T/sum" |
        sort -u)" = true ]
    { cat "$T/in"; times 2 < "$T/in"; } | pareto > "$T/d"
    [ "$(crossover X_lat '[.exists, .at, .lo, .reason]' < "$T/d")" = \
      '[null,null,null,"disturbed"]' ]
    [ "$(jq -c 'select(.kind == "front" and .steps == 8) | [.p_front, .p_front_reason]' "$T/d")" = \
      '[null,"disturbed"]' ]
    # prompts that one side lacks are another reason
    jq -c 'if .kind == "times" and .arch == "llada" then (.ids, .tasks) |= .[:-9]
        | (.e2e_ns, .cpu_ns)[] |= .[:-9] else . end' "$T/all" | pareto > "$T/l"
    [ "$(crossover X_lat '[.exists, .at, .lo, .reason]' < "$T/l")" = \
      '[null,null,null,"over a tenth of the prompts have times of one side only"]' ]
    # values of launches are not paired at a point where a batch of one side was disturbed
    jq -c 'if .kind == "metric" and .arch == "llama" then .tainted = 1 else . end' "$T/in" |
        pareto > "$T/v"
    [ "$(crossover X_lat '[.exists, .at, .lo, .reason]' < "$T/v")" = \
      '[null,null,null,"disturbed"]' ]
}

@test "one step count gives tests and ratios at this count only" {
    sweep 300 60 64 | pareto --margin 0 > "$T/p"
    [ "$(crossover X_q '[.exists, .at, .bracket]' < "$T/p" | sed 's/\.0//g')" = \
      '[true,64,[null,64]]' ]
    [ "$(crossover X_lat '[.exists, .bracket]' < "$T/p" | sed 's/\.0//g')" = '[false,[64,null]]' ]
    conforms "$T/p"
}

@test "a sweep without a rival prints the reason" {
    sweep 300 30 8 64 | jq -c '.contract = (if .model == "llama" then "answer" else "fixed" end)' \
        > "$T/in"
    "$BIN/pareto" --no-meta "$T/in" 2>&1 > /dev/null |
        grep -q 'W034.*contract answer, this one fixed'
    sed 's/"model":"llama"/"model":"llama","x":1/; /"arch":"llama"/d' "$T/in" |
        "$BIN/pareto" --no-meta 2>&1 > /dev/null | grep -q 'W034.*no LLaMA is in the input'
}

@test "a known metric has its direction though no record names it" {
    sweep 300 20 8 16 |
        jq -c 'if .kind == "quality" then .metric = "chrf" | .value /= 1000 else . end
        | del(.direction)' > "$T/in"
    pareto --quality chrf "$T/in" > "$T/p"
    jq -se 'map(select(.kind == "front") | [.cost_direction, .quality_direction]) | length == 3 and
        all(. == ["lower", "higher"])' "$T/p"
    sed 's/"chrf"/"errors"/' "$T/in" > "$T/foreign"
    refuses 65 "errors: its records have no direction" pareto --quality errors "$T/foreign"
}
