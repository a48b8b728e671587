#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# make exact on a few prompts: options that claim to change no token change none, and a planted
# change is found.
load conforms

setup() {
    set -o pipefail
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    BIN=$(realpath "${BIN:-build/bin}")
    T=$BATS_TEST_TMPDIR
    export BIN LLADA=data/models/llada-demo LLAMA=data/models/llama-demo
    export JUDGE=data/models/judge-demo
    export EXACT_LENGTH=12 EXACT_STEPS=4
    gzip -dc data/corpus/valid.ndjson.gz | sed -n '1p;700p;1500p;1999p' > "$T/prompts"
    mkdir "$T/spool"
    export TMPDIR=$T/spool
}

@test "no option marked as exact changes a token, on either model" {
    conforms data/exact.ndjson
    pipelines/bin/exact data/exact.ndjson "$T/prompts" "$T/run" > "$T/records"
    conforms "$T/records"
    jq -nr -f pipelines/experiment/exact/exactness.jq "$T/records" > "$T/said" ||
        { cat "$T/said"; false; }
    jq -se '(map(select(.answers != null)) | length) >= 50 and
        all(.[]; .answers == null or (.answers == 4 and .tokens > 20)) and
        all(.[]; .answers != null or .outcome_reason != null)' "$T/records"
    grep -q '^[0-9]* cases that may change no id, on [0-9]* answers: 0 do$' "$T/said"
    # every option that make ablation marks as exact is included
    jq -r 'select(.from == null and .device == null and .flags != "")
        | .option as $o | .flags as $f | .exact[] | select(. != "ltm") | "\(.) \($f)"' \
        data/ablation.ndjson | sort > "$T/claimed"
    [ "$(wc -l < "$T/claimed")" -ge 10 ]
    jq -r '.flags as $f | .systems // ["llada", "llama"] | .[] | "\(.) \($f)"' data/exact.ndjson |
        sort > "$T/proven"
    [ -z "$(comm -23 "$T/claimed" "$T/proven")" ]
}

@test "graphs, memory blocks and offloaded layers change no token on a device" {
    export CROSSOVER_CUDA="${TESTBIN:-build/tests}/libcrossover-cuda.so"
    [ -e "$CROSSOVER_CUDA" ] || skip "no C++ compiler, so no emulated device"
    export EXACT_LENGTH=4 EXACT_STEPS=2 LLADA=synth:tiny-llada LLAMA=synth:tiny-llama
    echo '{"id":"p","prompt_ids":[11,42,300,7,99]}' > "$T/prompts"
    jq -c 'select(.flags | startswith("--device cuda"))' data/exact.ndjson > "$T/cases"
    pipelines/bin/exact "$T/cases" "$T/prompts" "$T/run" > "$T/records"
    jq -nr -f pipelines/experiment/exact/exactness.jq "$T/records"
    jq -se 'length == 7 and all(.answers == 1 and .device == "cuda")' "$T/records"
}

@test "one different token, a failed answer, and flags without effect are found" {
    jq -c 'select(.case | IN("row-tile", "attention-dense", "threads"))' data/exact.ndjson \
        > "$T/cases"
    mkdir "$T/bin"
    cp -s "$BIN/gen-llama" "$BIN/compare" "$T/bin"
    # the last id of one prompt is another one where rows are tiled; an answer is missing where
    # there is one thread
    cat > "$T/bin/gen-llada" << END
#!/bin/bash
"$BIN/gen-llada" "\$@" | case " \$* " in
*" --row-tile "*) jq -c 'if .id == "valid-000700" then .token_ids[-1] += 1 else . end' ;;
*" --threads 1 "*) jq -c 'if .id == "valid-000700" then .status = "oom" else . end' ;;
*" --attention dense "*) jq -c '.token_ids[0] += 1' ;;
*) cat ;;
esac
END
    chmod +x "$T/bin/gen-llada"
    BIN=$T/bin pipelines/bin/exact "$T/cases" "$T/prompts" "$T/run" > "$T/records"
    run jq -nr -f pipelines/experiment/exact/exactness.jq "$T/records"
    [ "$status" -eq 5 ]
    [[ $output == *"llada row-tile (--row-tile 16): 1 of 4 answers differ, in 1 of "* ]]
    [[ $output == *"error: ids changed where none may: llada row-tile, llada threads"* ]]
    jq -se 'map(select(.arch == "llama")) | length == 3 and all(.outcome == "held")' "$T/records"
    jq -se 'map(select(.case == "attention-dense" and .arch == "llada"))
        | .[0].differing_answers == 4 and .[0].claimed == false' "$T/records"
    echo '{"kind":"exact_case","case":"x","flags":"--trim off","shows":{"row_tile":true}}' \
        > "$T/cases"
    run pipelines/bin/exact "$T/cases" "$T/prompts" "$T/run"
    [ "$status" -eq 65 ]
    [[ $output == *'x: its records do not show {"row_tile":true}'* ]]
    # no answers are no proof; only a case that names what it needs may have none
    jq -nc '{kind: "exact_case", systems: ["llada"]}
        | (.case = "unrun"), (.case = "card" | .needs = "a GPU")' > "$T/cases"
    "$BIN/compare" -q --no-meta --exact "$T/cases" "$T/run/answers.ndjson" > "$T/none"
    jq -se 'map([.case, .outcome, .outcome_reason]) ==
        [["unrun", "not held", null], ["card", "not applicable", "needs a GPU"]]' "$T/none"
    # a counter that must show has to be above 0
    echo '{"kind":"exact_case","case":"z","systems":["llada"],"shows":{"hits":true}}' > "$T/cases"
    for hits in 0 1; do
        jq -nc --argjson n $hits '{kind: "generation", run: "r", case: "z", system: "llada",
            id: "p", token_ids: [1], status: "ok", hits: $n, role: ("base", "run")}' > "$T/$hits"
    done
    "$BIN/compare" -q --no-meta --exact "$T/cases" "$T/1" | jq -e '.outcome == "held"'
    run "$BIN/compare" -q --no-meta --exact "$T/cases" "$T/0"
    [ "$status" -eq 65 ]
    run jq -nr -f pipelines/experiment/exact/exactness.jq /dev/null
    [ "$status" -eq 5 ]
}

@test "--same-ids: answers of all files must have the ids of the first file" {
    g() # ID IDS POINT DEVICE [MORE]
    {
        jq -cn "{schema: \"crossover/1\", kind: \"generation\", run: \"r\", id: \"$1\",
            token_ids: $2, config: \"c$3\", device: \"$4\", model: \"m\", arch: \"llama\",
            dtype: \"f32\", phase: \"timed\", status: \"ok\"} + ${5:-{\}}"
    }
    compare() { "$BIN/compare" -q --no-meta "$@"; }
    { g a '[1,2]' 1 cpu; g a '[3]' 2 cpu; g b '[4,5]' 1 cpu; g b '[6]' 2 cpu; } > "$T/base"
    { g a '[1,2]' 1 cpu; g a '[1,2]' 1 cpu '{launch: 1}'; g b '[6]' 2 cpu
      g b '[7]' 2 cpu '{status: "oom"}'; g b '[7]' 2 cpu '{phase: "warmup"}'; } > "$T/run"
    compare --same-ids 1 "$T/base" "$T/run" > "$T/out"
    conforms "$T/out"
    [ "$(jq -r .text "$T/out")" = "llama: 3 of 3 generations identical (m, f32, 5 ids)" ]
    g a '[9]' 2 cpu >> "$T/run"
    run compare --same-ids 0.76 "$T/base" "$T/run"
    [ "$status" -eq 1 ] && jq -e '.pass == false and .identical == 3' <<< "$output"
    compare --same-ids 0.75 "$T/base" "$T/run" | jq -e .pass
    # one point each: found by prompt alone
    { g a '[1,2]' 1 cpu; g b '[4,5]' 1 cpu; } > "$T/base"
    { g a '[1,2]' 3 cuda; g b '[4,6]' 3 cuda; } > "$T/run"
    compare --same-ids 0.5 "$T/base" "$T/run" |
        jq -e '.text == "llama: 1 of 2 generations identical on cuda and cpu (m, f32, 4 ids)"'
    # answers and models that the base lacks are not identical
    { g a '[1,2]' 1 ref; g b '[4,6]' 1 ref; g a '[8]' 1 ref '{model: "n"}'; } > "$T/all"
    run compare --same-ids 0.75 "$T/run" "$T/all"
    [ "$status" -eq 1 ] && jq -se 'map([.records, .identical, .pass]) == [[2,2,true],[1,0,false]]' \
        <<< "$output"
    run compare --same-ids 0.75 <(tail -1 "$T/run") "$T/all"
    [ "$status" -eq 1 ] && jq -se '.[0] | .records == 2 and .identical == 1' <<< "$output"
    g a '[1,2]' 3 cuda '{status: "oom"}' > "$T/run"
    run compare --same-ids 0.5 "$T/base" "$T/run"
    [ "$status" -eq 1 ] && [ -z "$output" ]
    refuses() { run "$BIN/compare" "$@"; [ "$status" -eq 64 ]; }
    refuses --same-ids 1 "$T/base"
    refuses --same-ids 1 --samples "$T/base" "$T/run"
}
