#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# The identity of a point: records of two origins are never joined.

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    . tests/reference/build.sh
    F=$BATS_FILE_TMPDIR
    BIN=${BIN:-build/bin}
    mkdir "$F/one" "$F/two"
    "$MAKE_CHECKPOINT" --arch llama --dtype F32 --seed 1 "$F/one/m"
    "$MAKE_CHECKPOINT" --arch llama --dtype F32 --seed 2 "$F/two/m"
    echo '{"id":"p1","prompt_ids":[5,6,7,8],"answer":"1"}' > "$F/prompts"
    for at in one two; do
        for launch in 0 1; do
            "$BIN/gen-llama" -q -m "$F/$at/m" --device ref --max-new 4 --ignore-eos \
                --launch $launch "$F/prompts" -o "$F/$at-$launch"
        done
    done
}

setup() {
    set -o pipefail
    BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    F=$BATS_FILE_TMPDIR T=$BATS_TEST_TMPDIR
}

point() { jq -r 'select(.kind == "generation") | .point' "$1" | sort -u; }

# lie PROGRAM FILE: prints the records that the program leaves, without the hash that would show it
lie() { jq -c "$1" "$2" | jq -c 'select(.kind != "end" and .kind != "meta")'; }

# sealed PROGRAM FILE: makes a complete stream of these records, with a fitting end record
sealed() {
    local text n
    text=$(jq -c "$1" "$2" | jq -c 'select(.kind != "end")')
    n=$(grep -vc '"kind":"meta"' <<< "$text")
    printf '%s\n' "$text"
    jq -c --arg sum "$(sha256sum <<< "$text" | cut -d ' ' -f 1)" --argjson n "$n" \
        'select(.kind == "end") | .records = $n | .sha256 = $sum' "$2"
}

# The text that refuses() expects in the message of a tool
says="expected one checkpoint"

refuses() { # TOOL...: tests that the tool exits with 65 and prints $says
    run -65 "$@"
    echo "$output"
    [[ "$output" == *"$says"* ]]
}

tools() { # FILE FILE: every tool that reduces records, over both
    refuses "$BIN/measure" "$@" -o "$T/out"
    refuses "$BIN/score-exact" "$@" -o "$T/out"
    refuses "$BIN/score-text" "$@" -o "$T/out"
    refuses "$BIN/pareto" "$@" -o "$T/out"
    refuses "$BIN/compare" "$@" -o "$T/out"
    refuses "$BIN/forecast" "$@" -o "$T/out"
    refuses "$BIN/conclude" "$@" -o "$T/out"
    refuses "$BIN/plot" --type pareto "$@" -o "$T/out.svg"
    refuses "$BIN/report" "$@" -o "$T/out.html"
    [ ! -e "$T/out" ] && [ ! -e "$T/out.svg" ] && [ ! -e "$T/out.html" ]
}

@test "checkpoints in two folders of one name are two points" {
    [ "$(point "$F/one-0")" = "$(point "$F/one-1")" ]
    [ "$(point "$F/one-0")" != "$(point "$F/two-0")" ]
    "$BIN/measure" -q "$F/one-0" "$F/two-1" > "$T/both"
    jq -se 'map(select(.metric == "e2e_ns")) | length == 2 and all(.launches == 1)' "$T/both"
    "$BIN/score-exact" -q "$F/one-0" "$F/two-1" > "$T/quality"
    jq -se 'map(select(.summary and .metric == "accuracy")) | length == 2' "$T/quality"
}

@test "the same checkpoint under another path is the same point" {
    mkdir "$T/other"
    cp -r "$F/one/m" "$T/other/m"
    "$BIN/gen-llama" -q -m "$T/other/m" --device ref --max-new 4 --ignore-eos "$F/prompts" \
        -o "$T/out"
    [ "$(point "$T/out")" = "$(point "$F/one-0")" ]
}

@test "config, chat template, random weights and environment are a part of the point" {
    gen() { "$BIN/gen-llama" -q --device ref --max-new 4 --ignore-eos "$@" "$F/prompts" | point -; }
    cp -r "$F/one/m" "$T/m"
    jq '.rms_norm_eps = 0.001' "$F/one/m/config.json" > "$T/m/config.json"
    [ "$(gen -m "$T/m")" != "$(point "$F/one-0")" ]
    [ "$(gen -m synth:tiny-llama)" = "$(gen -m synth:tiny-llama)" ]
    [ "$(gen -m synth:tiny-llama)" != "$(gen -m synth:tiny-llama --seed 2)" ]
    [ "$(gen -m synth:tiny-llama)" != "$(gen -m synth:tiny-llama --trim off)" ]
    [ "$(gen -m synth:tiny-llama)" != "$(gen -m synth:tiny-llama --handicap 2)" ]
    [ "$(gen -m synth:tiny-llama)" != \
      "$(NVIDIA_TF32_OVERRIDE=1 gen -m synth:tiny-llama)" ]
}

@test "a point with two checkpoints is refused by every tool" {
    own=$(point "$F/one-0")
    sealed "if .point then .point = \"$own\" else . end" "$F/two-1" > "$T/lie"
    tools "$F/one-0" "$T/lie"
    a=$(jq -r '.checkpoint.files[]? | select(.name == "model.safetensors").sha256' "$F/one-0")
    b=$(jq -r '.checkpoint.files[]? | select(.name == "model.safetensors").sha256' "$F/two-1")
    [[ "$output" == *"$a"* && "$output" == *"$b"* ]]
    [[ "$output" == *"$F/one-0:"* && "$output" == *"$T/lie:"* ]]
}

@test "a point with two checkpoints is refused if only meta records name the weights" {
    own=$(point "$F/one-0")
    sealed 'del(.weights)' "$F/one-0" > "$T/a"
    sealed "del(.weights) | if .point then .point = \"$own\" else . end" "$F/two-1" > "$T/b"
    tools "$T/a" "$T/b"
}

@test "a point with two checkpoints is refused if only records without meta name the weights" {
    own=$(point "$F/one-0")
    lie . "$F/one-0" > "$T/a"
    lie "if .point then .point = \"$own\" else . end" "$F/two-1" > "$T/b"
    tools "$T/a" "$T/b"
}

@test "a record that contradicts the meta record of its stream is refused" {
    w=$(jq -r '.weights // empty' "$F/two-1" | head -n 1)
    sealed "if .point then .weights = \"$w\" else . end" "$F/one-0" > "$T/lie"
    tools "$T/lie"
    sealed '(.checkpoint.files[]? | select(.name == "config.json").sha256) |= "f" * 64' \
        "$F/one-0" > "$T/lie"
    tools "$T/lie"
}

@test "derived records of one point with other weights are refused" {
    "$BIN/measure" -q "$F/one-0" -o "$T/one"
    "$BIN/measure" -q "$F/two-0" -o "$T/two"
    own=$(point "$F/one-0")
    sealed "if .point then .point = \"$own\" else . end" "$T/two" > "$T/lie"
    refuses "$BIN/pareto" "$T/one" "$T/lie" -o "$T/out"
    refuses "$BIN/report" "$T/one" "$T/lie" -o "$T/out.html"
    "$BIN/measure" -q "$F/one-0" "$F/two-0" -o "$T/both"
    "$BIN/pareto" -q "$T/both" > "$T/front"
}

@test "the draft model is a part of the point, and draft models that differ are refused" {
    for at in one two; do
        "$BIN/gen-llama" -q -m "$F/one/m" --draft "$F/$at/m" --draft-tokens 2 --device ref \
            --max-new 4 --ignore-eos "$F/prompts" -o "$T/$at"
    done
    [ "$(point "$T/one")" != "$(point "$T/two")" ]
    sealed "if .point then .point = \"$(point "$T/one")\" else . end" "$T/two" > "$T/lie"
    run -65 "$BIN/measure" "$T/one" "$T/lie"
    [[ "$output" == *"draft_weights of"* ]]
}

@test "folders whose names differ give models whose names differ" {
    name() {
        cp -r "$F/one/m" "$T/$1"
        "$BIN/gen-llama" -q -m "$T/$1" --device ref --max-new 1 "$F/prompts" |
            jq -r 'select(.kind == "generation").model'
    }
    [ "$(name 'a b')" = a%20b ]
    [ "$(name a_b)" = a_b ]
    long=$(printf 'x%.0s' {1..70})
    [ "$(name "${long}1")" != "$(name "${long}2")" ]
}

# of_one PROGRAM FILE: sealed() of the jq program and the file; all points become that of one-0
of_one() { sealed "if .point then .point = \"$(point "$F/one-0")\" else . end | $1" "$2"; }

@test "records that name no weights are not joined with records that do" {
    says="none named here"
    of_one 'del(.weights, .checkpoint.files)' "$F/two-1" > "$T/lie"
    tools "$F/one-0" "$T/lie"
    of_one '.weights = null | .checkpoint.files[]?.sha256 = null' "$F/two-1" > "$T/lie"
    tools "$F/one-0" "$T/lie"
    says="none named in $T/lie"
    tools "$T/lie" "$F/one-0"
    "$BIN/measure" -q "$F/one-0" > "$T/times"
    "$BIN/score-exact" -q "$F/two-0" > "$T/q"
    of_one 'del(.weights)' "$T/q" > "$T/quality"
    says="none named here"
    refuses "$BIN/pareto" "$T/times" "$T/quality" -o "$T/out"
    refuses "$BIN/report" "$T/times" "$T/quality" -o "$T/out.html"
    refuses "$BIN/conclude" "$T/times" "$T/quality" -o "$T/out"
}

@test "records of several files that all name no weights give a warning" {
    sealed 'del(.weights, .checkpoint)' "$F/one-0" > "$T/a"
    sealed 'del(.weights, .checkpoint)' "$F/one-1" > "$T/b"
    for tool in measure score-exact compare conclude plot report; do
        case $tool in
            plot) set -- --type pareto -o "$T/out.svg" ;;
            report) set -- -o "$T/out.html" ;;
            *) set -- -o "$T/out" ;;
        esac
        "$BIN/$tool" "$T/a" "$T/b" "$@" 2> "$T/err" || true
        cat "$T/err"
        grep -q 'W043: 1 points have records of several files that name no weights' "$T/err"
    done
    "$BIN/measure" "$T/a" 2> "$T/err" > "$T/out"
    run ! grep W043 "$T/err"
}

@test "records of one point with two values of a setting are refused by every tool" {
    says="has two values of this setting"
    for lie in '.dtype = "bf16" | .batch = 8' '.arch = "llada"' '.series = "ffffffffffff"' \
               '.tokenizer = "ffffffffffff"' '.weights_random = true'; do
        lie "if .point then $lie else . end" "$F/one-1" > "$T/lie"
        refuses "$BIN/measure" "$F/one-0" "$T/lie" -o "$T/out"
    done
    lie 'if .point then .batch = 8 else . end' "$F/one-1" > "$T/lie"
    tools "$F/one-0" "$T/lie"
    [[ "$output" == *"batch: "*"8 here, 1 in $F/one-0:2"* ]]
    "$BIN/measure" -q "$F/one-0" > "$T/times"
    "$BIN/score-exact" -q "$F/one-0" > "$T/q"
    sealed 'if .point then .dtype = "bf16" else . end' "$T/q" > "$T/quality"
    refuses "$BIN/pareto" "$T/times" "$T/quality" -o "$T/out"
    refuses "$BIN/report" "$T/times" "$T/quality" -o "$T/out.html"
}

@test "numbers of settings are equal by value: 0 and 0.0 are one setting" {
    grep -q '"temperature":0.0,' "$F/one-1"
    grep '"kind":"generation"' "$F/one-1" | sed 's/"temperature":0.0,/"temperature":0,/' > "$T/b"
    "$BIN/measure" -q "$F/one-0" "$T/b" | jq -se 'any(.metric == "e2e_ns" and .launches == 2)'
}

@test "a generation that contradicts the meta record of its stream is refused" {
    says="in the meta record of its stream"
    for lie in '.launch = 5' '.tokenizer = "ffffffffffff"' '.workload = "ffffffffffff"' \
               '.model = "other"' '.arch = "llada"' '.weights_random = true'; do
        sealed "if .point then $lie else . end" "$F/one-0" > "$T/lie"
        refuses "$BIN/measure" "$T/lie" -o "$T/out"
    done
    sealed 'if .kind == "meta" then .prompts_sha256 = "0" * 64 else . end' "$F/one-0" > "$T/lie"
    tools "$T/lie"
    [[ "$output" == *"workload of"*"prompts_sha256"* ]]
}

@test "two prompts under one id of one file of prompts are refused" {
    says="expected one prompt for an id"
    for lie in '.prompt = "other"' '.answer = "99"' '.prompt_tokens = 400'; do
        sealed "if .point then $lie else . end" "$F/one-1" > "$T/lie"
        refuses "$BIN/measure" "$F/one-0" "$T/lie" -o "$T/out"
    done
    tools "$F/one-0" "$T/lie"
}

@test "generations of two builds in one point are refused" {
    says="expected one build behind a point"
    sealed 'if .kind == "meta" then .commit = "000000000000" else . end' "$F/one-1" > "$T/lie"
    tools "$F/one-0" "$T/lie"
    [[ "$output" == *"000000000000 ("*" here, "*"in $F/one-0:2"* ]]
}

@test "two streams that did the same work with other choices of the library are refused" {
    says="the library ran other algorithms"
    put() { sealed "if .point then .library_choices = \"$1\" else . end" "$2"; }
    put aaaaaaaaaaaa "$F/one-0" > "$T/a"
    put bbbbbbbbbbbb "$F/one-1" > "$T/b"
    tools "$T/a" "$T/b"
    [[ "$output" == *"bbbbbbbbbbbb, but aaaaaaaaaaaa of the same work"* ]]
    put aaaaaaaaaaaa "$F/one-1" > "$T/b"
    "$BIN/measure" -q "$T/a" "$T/b" > "$T/out"
    # a stream with additional work may have other choices
    { grep -v '"end"' "$F/one-1"; grep '"generation"' "$F/one-1" | jq -c '.round = 1'; \
      grep '"end"' "$F/one-1"; } > "$T/more"
    put bbbbbbbbbbbb "$T/more" > "$T/b"
    "$BIN/measure" -q "$T/a" "$T/b" > "$T/out"
}

@test "a copy of a launch under another number is refused" {
    says="repeats the start and the times of launch 0"
    sealed 'if .kind == "meta" or .point then .launch = 1 else . end' "$F/one-0" > "$T/lie"
    tools "$F/one-0" "$T/lie"
}

@test "a unit or direction that contradicts its metric is refused by every tool" {
    "$BIN/measure" -q "$F/one-0" > "$T/times"
    "$BIN/score-exact" -q "$F/one-0" > "$T/quality"
    says='unit of the metric e2e_ns: expected "ns", got "ms"'
    sealed 'if .metric == "e2e_ns" then .unit = "ms" else . end' "$T/times" > "$T/lie"
    tools "$T/lie" "$T/quality"
    [[ "$output" == *"$T/lie:"[0-9]*": unit of"* ]]
    for mode in --gate=2% --self-test=1.5 --ranking "--claims data/ablation.ndjson"; do
        # shellcheck disable=SC2086 # an option and its file
        refuses "$BIN/compare" $mode "$T/lie" -o "$T/out"
    done
    says='direction of the metric accuracy: expected "higher", got "lower"'
    sealed 'if .kind == "quality" then .direction = "lower" else . end' "$T/quality" > "$T/lie"
    tools "$T/times" "$T/lie"
    says='direction of the metric accuracy_sums: expected "higher", got "lower"'
    jq -c 'if .kind == "quality" then .direction = "lower" | .metric = "accuracy_sums" else . end
        | select(.kind != "end" and .kind != "meta")' "$T/quality" > "$T/lie"
    refuses "$BIN/pareto" "$T/times" "$T/lie" -o "$T/out"
    says='direction of the metric nll_ppl: expected "lower", got null'
    jq -c 'select(.kind == "quality") | .metric = "nll_ppl" | .direction = null' "$T/quality" \
        > "$T/lie"
    refuses "$BIN/pareto" "$T/times" "$T/lie" -o "$T/out"
    refuses "$BIN/compare" --ranking "$T/lie" -o "$T/out"
    # a metric of another program has the unit and the direction that the program gives
    says=
    jq -c 'select(.metric == "e2e_ns") | .metric = "wait" | .unit = "ms" | .direction = "higher"' \
        "$T/times" > "$T/other"
    "$BIN/pareto" -q "$T/times" "$T/quality" "$T/other" > "$T/front"
}

# foreign CHANGE: prints a quality and a cost that no tool writes, in all records of two points; the
# last record of each is changed
foreign() {
    { jq -c 'select(.kind == "quality") | .metric = "errors" | .value = 0 | .direction = "lower"
          | .unit = "ratio"' "$T/quality"
      jq -c 'select(.metric == "e2e_ns") | .metric = "wait" | .unit = "ms"' "$T/times"; } |
        jq -cs "group_by(.kind)[] | (.[:-1][], (.[-1] | $1))"
}

@test "a foreign metric with two units or directions is refused by every tool" {
    "$BIN/measure" -q "$F/one-0" "$F/two-0" > "$T/times"
    "$BIN/score-exact" -q "$F/one-0" "$F/two-0" > "$T/quality"
    foreign . > "$T/same"
    "$BIN/pareto" -q --cost wait --quality errors "$T/same" > "$T/front"
    jq -se 'map(select(.kind == "front")) | map([.cost_direction, .quality_direction]) ==
        [["lower", "lower"], ["lower", "lower"]]' "$T/front"
    for kind in errors wait; do
        change() { foreign "if .metric == \"$kind\" then $1 else . end" > "$T/lie"; }
        says="direction of the metric $kind: expected \"lower\" as in $T/lie:"
        change '.direction = "higher"'
        tools "$T/lie"
        [[ "$output" == *"$T/lie:"[0-9]*": direction"*', got "higher"; give all records'* ]]
        refuses "$BIN/compare" --ranking "$T/lie" -o "$T/out"
        change 'del(.direction)'
        refuses "$BIN/pareto" "$T/lie" -o "$T/out"
        tac "$T/lie" > "$T/tac"
        says="direction of the metric $kind: expected nothing"
        refuses "$BIN/pareto" "$T/tac" -o "$T/out"
        says="unit of the metric $kind: expected "
        change '.unit = "percent"'
        tools "$T/lie"
        refuses "$BIN/compare" --ranking "$T/lie" -o "$T/out"
    done
    # null is the same as a missing member
    foreign . | jq -cs 'map(del(.unit)) | .[0].unit = null | .[-1].unit = null | .[]' |
        "$BIN/pareto" -q --cost wait --quality errors > "$T/front"
}

@test "a setting of a wrong type or out of its range makes a bad record in every tool" {
    "$BIN/measure" -q "$F/one-0" -o "$T/m"
    for bad in '.batch = -2' '.batch = "2"' '.temperature = "0"' '.contract = "none"'; do
        lie "$bad" "$T/m" > "$T/lie"
        for tool in pareto compare conclude forecast; do
            run "$BIN/$tool" "$T/lie" -o "$T/out"
            echo "$tool $bad: $status $output"
            [ "$status" -ne 0 ]
            [[ "$output" == *": expected "*", got "* ]]
            rm -f "$T/out"
        done
    done
}

@test "a generation with another seed, chat or launch than its meta record is refused" {
    for bad in '.seed = 9' '.chat = "own"' '.launch = null'; do
        sealed "if .kind == \"generation\" then $bad else . end" "$F/one-0" > "$T/lie"
        run -65 "$BIN/measure" "$T/lie"
        [[ "$output" == *"in "*" record of its stream"* ]]
    done
}

@test "workload and tokenizer of a generation need 12 characters of their hashes" {
    for bad in '.workload = .workload[:11]' '.workload = ""' '.tokenizer = ""'; do
        sealed "if .kind == \"generation\" then .tokenizer //= \"0\" | $bad else . end |
                .tokenizer_sha256? //= null |
                if .kind == \"meta\" then .tokenizer_sha256 //= \"0\" * 64 else . end" \
            "$F/one-0" > "$T/lie"
        run -65 "$BIN/measure" "$T/lie"
        [[ "$output" == *"in the meta record of its stream"* ]]
    done
}

@test "a second value of one prompt is refused, however its record is written" {
    "$BIN/score-exact" -q "$F/one-0" -o "$T/q"
    "$BIN/measure" -q "$F/one-0" -o "$T/m"
    "$BIN/pareto" -q "$T/m" "$T/q" > "$T/front"
    for other in '.summary = false' '.seed = "0"' '.workload = null' '.summary = "no"'; do
        lie 'select(.kind == "quality" and .id) | .value = 1 - .value | '"$other" "$T/q" > "$T/lie"
        run "$BIN/pareto" --quality accuracy "$T/m" "$T/q" "$T/lie" -o "$T/out"
        echo "$other: $status $output"
        [ "$status" -eq 65 ]
    done
}
