#!/usr/bin/env bats
# measure: generation records in, metric records out. The golden stream has two launches of two
# LLaDA step counts and one LLaMA, with cold, warm-up, tainted and out-of-memory records in it.
# One file because its tests share what makes a record.
bats_require_minimum_version 1.5.0
load conforms

setup() {
    set -o pipefail
    BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
    F=tests/fixtures
}

load measure

# The last digits depend on the machine.
digits() { sed -E 's/(\.[0-9]{4})[0-9]+/\1/g' "$@"; }

@test "the golden stream of generations gives the stored metrics" {
    measure --verify $F/measure-generation.ndjson > "$T/out"
    diff <(digits "$T/out") <(digits $F/measure-metric.ndjson)
}

@test "times: a prompt in a launch is a cell, null if disturbed, and repeats are one" {
    { one '{id: "b", launch: 7, e2e_ns: 100, batch_ns: 100, cpu_ns: 20, task: "sum"}'
      one '{id: "b", launch: 7, e2e_ns: 400, batch_ns: 400, cpu_ns: 80, task: "sum",
            round: 1}'
      one '{id: "a", launch: 7, e2e_ns: 900, batch_ns: 900, cpu_ns: 30, tainted: ["load"]}'
      one '{id: "a", launch: 8, e2e_ns: 500, batch_ns: 500, cpu_ns: null}'; } |
        measure | jq -c 'select(.kind == "times")' > "$T/m"
    [ "$(jq -c '[.ids, .tasks, .launches, .e2e_ns, .cpu_ns, .disturbed_cells]' "$T/m")" = \
        '[["a","b"],[null,"sum"],[7,8],[[null,200],[500,null]],[[30,40],[null,null]],1]' ]
    conforms "$T/m"
}

@test "the order of the records does not change the metrics" {
    sort $F/measure-generation.ndjson > "$T/a"
    sort -r $F/measure-generation.ndjson > "$T/b"
    measure "$T/a" > "$T/x"
    measure - < "$T/b" > "$T/y"
    cmp "$T/x" "$T/y"
}

@test "bytes of text a second count up to the stop id, once a batch; without text none" {
    two='batch_id: 7, batch_ns: 2000, tokenizer: "0123456789ab"'
    { one "{text: \"né, later more\", text_to_eos: \"né\", $two}"
      one "{text: \"four\", $two}" # nothing behind its end: the text is all
      one '{text_to_eos: "", batch_id: 8, batch_ns: 3000}'; } | measure > "$T/m"
    [ "$(value output_bytes_per_s value < "$T/m")" = 1400000 ]
    [ "$(value output_bytes_per_s tokenizer < "$T/m")" = 0123456789ab ]
    one '{text: "and more", tokens_to_eos: 3}' | measure > "$T/m"
    [ "$(value output_bytes_per_s value_reason < "$T/m")" = "no text" ]
}

@test "latency per word counts words as wc does, up to the stop id; without a word none" {
    { one '{text: " né  two\nthree. ", e2e_ns: 900}'
      one '{text: "of four now five", text_to_eos: "of four", tokens_to_eos: 3, e2e_ns: 800}'
      one '{text: "7", e2e_ns: 500}'; } | measure > "$T/m"
    [ "$(value norm_latency_ns_per_word value < "$T/m")" = 400 ]
    [ "$(value norm_latency_ns_per_word min < "$T/m")" = 300 ]
    [ "$(value norm_latency_ns_per_word max < "$T/m")" = 500 ]
    { one '{text: " \n"}' '{text: "and more", tokens_to_eos: 3}'; } | measure > "$T/m"
    [ "$(value norm_latency_ns_per_word value_reason < "$T/m")" = "no words" ]
}

@test "a burst of tokens: gaps are weighted by tokens, and padding is no output" {
    one '{tokens_to_eos: 6, new_tokens: 8, emit_ns: [10, 30, 60, 90], emit_tokens: [1, 4, 1, 2]}' |
        measure > "$T/m"
    [ "$(value itl_ns value < "$T/m")" = 5 ]
    [ "$(value itl_ns max < "$T/m")" = 30 ]
    [ "$(value tpot_ns value < "$T/m")" = 10 ]
    [ "$(value output_tokens_per_s value < "$T/m")" = 6000000 ]
    [ "$(value slot_tokens_per_s value < "$T/m")" = 8000000 ]
}

@test "visible progress is the gap between changes; an empty answer has no first token" {
    { one '{tokens_to_eos: 6, new_tokens: 8, emit_ns: [10, 30, 60, 90], emit_tokens: [1, 4, 1, 2]}'
      one '{tokens_to_eos: 0, new_tokens: 8, emit_ns: [7], emit_tokens: [8], ttft_ns: 7}'
      one '{tokens_to_eos: 6, new_tokens: 6, emit_ns: [10, 50], emit_tokens: [3, 3], ttft_ns: 10,
            tokenize_ns: 5, prepare_ns: 6}'; } | measure > "$T/m"
    [ "$(value visible_gap_ns value < "$T/m")" = 30 ]
    [ "$(value visible_gap_ns max < "$T/m")" = 40 ]
    [ "$(value longest_gap_ns value < "$T/m")" = 35 ]
    [ "$(value ttft_ns value < "$T/m")" = 10 ]
    [ "$(value tokenize_ns value < "$T/m") $(value prepare_ns value < "$T/m")" = "5 6" ]
}

@test "tainted records count only if there are no others, and give no interval" {
    tainted='tainted: ["other_load"], e2e_ns: 5000'
    { for l in 1 2 3 4 5 6; do one "{launch: $l, $tainted}"; done; } > "$T/in"
    measure "$T/in" > "$T/m" 2> "$T/log"
    grep -q 'W025.*disturbed' "$T/log"
    [ "$(value e2e_ns value < "$T/m") $(value e2e_ns lo < "$T/m")" = "5000 null" ]
    [ "$(value e2e_ns lo_reason < "$T/m")" = "the machine was disturbed" ]
    [ "$(value e2e_ns disturbed < "$T/m") $(value e2e_ns tainted < "$T/m")" = "true 6" ]
    { cat "$T/in"; for l in 1 2 3 4 5 6; do one "{launch: $l}"; done; } | measure > "$T/m"
    [ "$(value e2e_ns value < "$T/m") $(value e2e_ns disturbed < "$T/m")" = "1000 false" ]
    [ "$(value e2e_ns n < "$T/m") $(value e2e_ns tainted < "$T/m")" = "6 6" ]
    one '{warmup_steady: false}' | measure 2>&1 > "$T/m" | grep -q W024
    [ "$(value e2e_ns warmup_steady < "$T/m")" = false ]
}

@test "a warning about many points names three and counts the others" {
    for c in a b c d e; do one "{config: \"$c\", warmup_steady: false}"; done > "$T/in"
    measure "$T/in" 2> "$T/log" > "$T/m"
    [ "$(grep -c W024 "$T/log")" -eq 4 ]
    grep -q 'W024: warm-ups of 2 further points ended before' "$T/log"
    ! grep -q W021 "$T/log" || false
    for n in $(seq 12); do one "{seq: $n, e2e_ns: (1000 + 50 * $n)}"; done > "$T/drift"
    for c in a b c d e; do sed "s/\"config\":\"[^\"]*\"/\"config\":\"$c\"/" "$T/drift"; done |
        measure 2> "$T/log" > "$T/m"
    [ "$(grep -c W021 "$T/log")" -eq 4 ]
    grep -q 'W021: latency drifts at 2 further points' "$T/log"
}

@test "an answer that appears at once has null gaps, not zero" {
    one '{emit_ns: [900], emit_tokens: [4]}' | measure > "$T/m"
    [ "$(value tpot_ns value < "$T/m")" = null ]
    [[ "$(value tpot_ns value_reason < "$T/m")" == "all tokens at once"* ]]
    [ "$(value itl_ns value < "$T/m")" = null ]
}

@test "the duration of a batch counts once" {
    for id in a b c d; do
        one "{id: \"$id\", batch: 4, batch_id: 7, batch_ns: 2000, e2e_ns: 1500}"
    done | measure > "$T/m"
    [ "$(value output_tokens_per_s value < "$T/m")" = 8000000 ]
    [ "$(value e2e_ns value < "$T/m")" = 1500 ]
}

@test "too few launches for an interval give null with the reason" {
    for n in 1 2 3 4 5; do one "{seq: $n}"; done | measure > "$T/m"
    [ "$(value e2e_ns lo < "$T/m")" = null ]
    [ "$(value e2e_ns lo_reason < "$T/m")" = "fewer than 5 launches" ]
    [ "$(value e2e_ns p99_reason < "$T/m")" = "n<299" ]
    # many answers of one process say nothing about the next
    for n in $(seq 40); do one "{seq: $n, e2e_ns: (1000 + $n)}"; done | measure -q > "$T/m"
    [ "$(value e2e_ns hi_reason < "$T/m")" = "fewer than 5 launches" ]
}

@test "the interval of five launches is positive" {
    for n in 1 2 3 4 5; do
        one "{launch: $n, e2e_ns: (1000 + $n), ttft_ns: (if $n == 5 then 990 else 100 end)}"
    done | measure --stopped budget > "$T/m"
    jq -se 'map(select(.metric == "ttft_ns"))[0] | .lo > 0 and .lo < .value and .value < .hi and
        .launches == 5 and .stop_reason == "budget"' "$T/m"
}

@test "out of memory is a result" {
    one '{status: "oom", e2e_ns: null, new_tokens: 0}' | measure > "$T/m"
    [ "$(value e2e_ns value_reason < "$T/m")" = oom ]
    [ "$(value e2e_ns status < "$T/m")" = oom ]
}

@test "cold, warm-up and tainted records are counted and left out" {
    { one '{phase: "cold", e2e_ns: 9e9}' '{phase: "warmup", e2e_ns: 9e9}'
      one '{tainted: ["thermal"], e2e_ns: 9e9}' '{}'; } | measure > "$T/m"
    [ "$(value e2e_ns max < "$T/m")" = 1000 ]
    [ "$(jq -c 'select(.metric == "e2e_ns") | [.cold, .warmup, .tainted, .timed]' "$T/m")" = \
      "[1,1,1,1]" ]
}

@test "malformed numbers are error records; exit 1 if other records are good" {
    for bad in '{e2e_ns: 0}' '{e2e_ns: -1}' '{e2e_ns: 1e308}' '{e2e_ns: "1,5"}' '{e2e_ns: null}' \
               '{id: null}' '{config: null}' '{new_tokens: -3}' '{phase: "hot"}' \
               '{emit_ns: [5, 4], emit_tokens: [1, 1]}' '{emit_ns: [5], emit_tokens: []}'; do
        run measure < <(one "$bad" '{}')
        echo "$bad: $status"
        [ "$status" -eq 1 ]
        [[ "$output" == *'"kind":"error"'* ]]
        [[ "$output" != *[iI]nf* ]]
        run measure < <(one "$bad")
        [ "$status" -eq 65 ] # nothing was good
    done
    { one '{e2e_ns: 0}' '{}'; } | measure -q --max-failed=1 > "$T/m"
    [ "$(value e2e_ns value < "$T/m")" = 1000 ]
}

@test "a record that contradicts itself is bad, and its field is named" {
    while IFS='|' read -r words bad; do
        run --separate-stderr measure < <(one "$bad" '{}')
        echo "$bad: $status $stderr"
        [ "$status" -eq 1 ]
        [[ $stderr == *": $words"* ]]
        [ "$(value e2e_ns n <<< "$output" | sort -n | tail -n 1)" = 1 ]
        [ "$(jq -r 'select(.kind == "error").id' <<< "$output")" = p ]
    done << 'END'
ttft_ns: expected at most e2e_ns, 1000, got 1001|{ttft_ns: 1001}
ttft_commit_ns: expected at most e2e_ns|{ttft_commit_ns: 2000}
ttf_block_ns: expected at most e2e_ns|{ttf_block_ns: 2000}
emit_ns: expected at most e2e_ns|{emit_ns: [5, 1001], emit_tokens: [1, 1]}
e2e_ns: expected at most batch_ns, 900, got 1000|{batch_ns: 900}
prefill_ns: expected at most batch_ns|{prefill_ns: 1001}
emit_ns[1]: expected times that do not fall, got 4 after 5|{emit_ns: [5, 4], emit_tokens: [1, 1]}
step_ns[2]: expected times that do not fall, got 6 after 7|{step_ns: [5, 7, 6]}
step_ns: expected an array, got a number|{step_ns: 5}
emit_ns: expected an array, got a text|{emit_ns: "abc"}
emit_tokens[0]: expected a whole number|{emit_ns: [5], emit_tokens: [-1]}
token_ids: expected an array, got a text|{token_ids: "abc"}
token_ids[1]: expected a whole number|{token_ids: [1, "x", 3, 4]}
new_tokens: expected the length of token_ids, 2, got 4|{token_ids: [1, 2]}
tokens_to_eos: expected at most new_tokens, 4, got 5|{tokens_to_eos: 5}
tokens_to_eos: expected a whole number, got 0.5|{tokens_to_eos: 0.5}
rows: expected a whole number, got 1.5|{rows: 1.5}
stop_tokens: expected at most new_tokens, 4, got 5|{stop_tokens: 5}
prefill_flops: expected at most model_flops, 5, got 6|{model_flops: 5, prefill_flops: 6}
prefill_bytes: expected at most model_bytes, 5, got 6|{model_bytes: 5, prefill_bytes: 6}
gpu.energy_end_j: expected at least 7, got 6|{gpu: {energy_begin_j: 7, energy_end_j: 6}}
gpu.power_capped_samples: expected at most samples, 3|{gpu: {samples: 3, power_capped_samples: 4}}
emit_tokens: expected at most new_tokens|{emit_ns: [1, 2], emit_tokens: [3, 3]}
batch: expected an integer from 1 to 1048576 prompts, got 0|{config: "d", batch: 0}
batch_filled: expected at most batch, 2, got 3|{config: "d", batch: 2, batch_filled: 3}
launch: expected a whole number from 0, got a text|{launch: "one"}
tainted: expected true, false, an array or a whole number from 0, got "gpu|{tainted: "gpu busy"}
tainted: expected true, false, an array or a whole number from 0, got {"a":1}|{tainted: {a: 1}}
status: expected a text, got ["oom"]|{status: ["oom"]}
phase: expected a text, got {"cold":1}|{phase: {cold: 1}}
batch_halved: expected true or false, got "true"|{batch_halved: "true"}
steps: expected an integer from 1 to 1048576 steps, got -2|{config: "d", steps: -2}
steps: expected an integer from 1 to 1048576 steps, got "2"|{config: "d", steps: "2"}
e2e_ns: expected a number from 1 to 9007199254740992, got a text|{e2e_ns: "1,5"}
END
}

@test "failed records give exit code 1, unless they are allowed" {
    { one '{status: "timeout"}' '{}'; } > "$T/in"
    run measure "$T/in"
    [ "$status" -eq 1 ]
    measure --max-failed=1 "$T/in" > "$T/m"
    [ "$(value e2e_ns failed < "$T/m")" = 1 ]
}

@test "a repeated record counts once; a different record with its key is refused" {
    { for n in 1 2 3 4 5 6; do one "{e2e_ns: (1000 + $n)}"; done; } > "$T/a"
    cat "$T/a" "$T/a" > "$T/twice"
    measure "$T/a" > "$T/x"
    "$BIN/measure" "$T/twice" > "$T/y" 2> "$T/err"
    diff "$T/x" <(grep -E '"kind":"(metric|times)"' "$T/y")
    [ "$(tail -n 1 "$T/y" | jq .repeats)" = 6 ]
    grep -q '6 identical records' "$T/err"
    run measure "$T/a" <(jq -c '.e2e_ns += 1' "$T/a")
    [ "$status" -eq 65 ]
    [[ "$output" == *"another answer in the same place"*"--launch"* ]]
    # another launch is another place
    [ "$(measure "$T/a" <(jq -c '.e2e_ns += 1 | .launch = 2' "$T/a") | value e2e_ns launches)" = 2 ]
}

@test "an answer that appears again in its batch is refused" {
    full='batch_filled: 1, batch_id: 1'
    one "{$full}" > "$T/in"
    for again in '.seq += 1' 'del(.phase)'; do
        run measure "$T/in" <(jq -c "$again" "$T/in")
        echo "$again: $output"
        [ "$status" -eq 65 ]
    done
    run measure "$T/in" <(jq -c '.seq += 1' "$T/in")
    [[ "$output" == *"batch_filled of batch 1 in launch 1, round 0: expected"*"2, got 1"* ]]
    # prompts that go on one by one: batch_filled is how many run at once
    measure -q <(jq -c '.admit = "continuous"' "$T/in") \
        <(jq -c '.admit = "continuous" | .seq += 1' "$T/in") > "$T/m"
    [ "$(value e2e_ns timed < "$T/m")" = 2 ]
}

@test "answers of a batch that is not full are counted separately" {
    # five prompts in batches of four: four together, and a single fast one
    { for id in a b c d; do
          one "{id: \"$id\", batch: 4, batch_filled: 4, batch_id: 1, batch_ns: 2000, e2e_ns: 2000,
                memory: {weights_bytes: 7, activations_bytes: 40}}"
      done
      one '{id: "e", batch: 4, batch_filled: 1, batch_id: 2, batch_ns: 100, e2e_ns: 100,
            memory: {weights_bytes: 7, activations_bytes: 90}}'; } > "$T/in"
    "$BIN/measure" --no-meta "$T/in" > "$T/m" 2> "$T/err"
    [ "$(value e2e_ns min < "$T/m")" = 2000 ]
    [ "$(value output_tokens_per_s value < "$T/m")" = 8000000 ]
    [ "$(jq -c 'select(.metric == "e2e_ns") | [.n, .timed, .partial]' "$T/m")" = "[4,4,1]" ]
    [ "$(value memory_activations_bytes value < "$T/m")" = 40 ]
    grep -q "1 answers of batches that were not full" "$T/err"
    # no batch is full: no time of a batch counts, but the weights do
    tail -n 1 "$T/in" | measure -q > "$T/m"
    [ "$(value e2e_ns value_reason < "$T/m")" = "no full batch" ]
    [ "$(value memory_weights_bytes value < "$T/m")" = 7 ]
}

@test "one point on two sets of prompts is two measurements" {
    { for w in aaaaaaaaaaaa bbbbbbbbbbbb; do
          one "{point: \"000000000001\", workload: \"$w\", prompts: 9,
                e2e_ns: (if \"$w\" < \"b\" then 1000 else 3000 end)}"
      done; } | measure > "$T/m"
    [ "$(jq -c 'select(.metric == "e2e_ns") | [.workload, .value, .n, .prompts]' "$T/m" |
        sed 's/\.0//' | paste -sd ' ')" = \
        '["aaaaaaaaaaaa",1000,1,9] ["bbbbbbbbbbbb",3000,1,9]' ]
}

@test "a metric record carries all settings of its point and the measured work" {
    one '{point: "000000000001", series: "000000000002", axis: "threshold",
          workload: "00000000000a", prompts: 1, paradigm: "masked_diffusion", arch: "llada",
          steps: null, threshold: 0.9,
          factor: null, unmask: "threshold", contract: "answer", logits_eos_inf: false,
          confidence_eos_eot_inf: true, denoise_steps: 9, rows: 360, canvas_positions: 360}' |
        measure > "$T/m"
    jq -se 'all(.threshold == 0.9 and .factor == null and has("factor") and
        .contract == "answer" and .logits_eos_inf == false and .confidence_eos_eot_inf and
        .unmask == "threshold" and
        .axis == "threshold" and .series == "000000000002" and .paradigm == "masked_diffusion" and
        (.kind == "times" or (.passes == 9 and .rows == 360)))' "$T/m"
    [ "$(value passes value < "$T/m")" = 9 ]
    conforms "$T/m"
}

@test "a memory figure that is null has a reason" {
    one '{memory: {weights_bytes: 7, process_peak_bytes: null,
          process_peak_bytes_reason: "of a larger batch before"}}' | measure > "$T/m"
    [ "$(value memory_process_peak_bytes value_reason < "$T/m")" = "of a larger batch before" ]
    [ "$(value memory_weights_bytes value < "$T/m")" = 7 ]
}

# stream FINGERPRINT FIELDS: a whole stream of that machine with one record
stream() {
    { jq -cn "{schema: \"crossover/1\", kind: \"meta\", run: \"r\", tool: \"gen-llama\",
               machine: {fingerprint: \"$1\"}}"
      one "$2"; } > "$T/lines"
    cat "$T/lines"
    jq -cn --arg sum "$(sha256sum < "$T/lines" | cut -c 1-64)" '{schema: "crossover/1", kind: "end",
        run: "r", records: 1, failed: 0, sha256: $sum, status: "ok"}'
}

@test "records of two machines are never merged" {
    stream aaaaaaaaaaaa '{}' > "$T/a"
    stream bbbbbbbbbbbb '{launch: 2}' > "$T/b"
    stream aaaaaaaaaaaa '{launch: 3}' > "$T/c"
    run measure "$T/a" "$T/b"
    echo "$output"
    [ "$status" -eq 65 ]
    [[ "$output" == *"two machines, aaaaaaaaaaaa and bbbbbbbbbbbb"* ]]
    [ "$(measure "$T/a" "$T/c" | value e2e_ns launches)" = 2 ]
}

@test "metrics name the machine of the generation, not that of measure" {
    stream aaaaaaaaaaaa '{}' > "$T/a"
    stream aaaaaaaaaaaa '{launch: 3}' > "$T/b"
    "$BIN/measure" -q "$T/a" "$T/b" > "$T/m"
    jq -se '.[0].kind == "meta" and .[0].tool == "measure" and
        (map(select(.kind == "parent")) | length == 1 and .[0].tool == "gen-llama" and
            .[0].machine.fingerprint == "aaaaaaaaaaaa")' "$T/m"
    jq -sc -f pipelines/experiment/shapes/measured.jq "$T/m" > "$T/kept"
    jq -se --slurpfile m "$T/m" 'all(.[0, 1]; .kind == "parent") and .[1].tool == "measure" and
        .[1].machine.fingerprint == "aaaaaaaaaaaa" and
        .[1].analysis_machine == $m[0].machine and
        (map(select(.metric == "e2e_ns")) | length == 1 and (.[0].launch_values | length == 2))' \
        "$T/kept"
    # measured on the machine where the records were made: one machine
    jq -c --slurpfile m "$T/m" 'if .kind == "parent" then .machine = $m[0].machine else . end' \
        "$T/m" | jq -sc -f pipelines/experiment/shapes/measured.jq |
        jq -se 'any(.tool == "measure" and
            .machine != null) and all(has("analysis_machine") | not)'
}

@test "one configuration cannot have two devices" {
    run measure < <(one '{device: "cpu"}' '{device: "cuda"}')
    [ "$status" -eq 65 ]
    [[ "$output" == *"device: config 'c' has two values"* ]]
}

@test "--verify finds contradictions" {
    for bad in '{memory: {requested_peak_bytes: 9, allocated_peak_bytes: 8}}' \
               '{memory: {layers_hold: false}}' \
               '{contract: "fixed", max_new: 9}' \
               '{contract: "answer", max_new: 9, stop: "length"}' \
               '{stop: "length", stop_tokens: 1}' '{stop: "length", tokens_to_eos: 3}'; do
        one "$bad" | measure > "$T/m"
        run measure --verify < <(one "$bad")
        echo "$bad: $status"
        [ "$status" -eq 65 ]
    done
    { one '{token_ids: [1, 2, 3, 4]}' '{token_ids: [1, 2, 3, 4], round: 1}'; } |
        measure --verify > "$T/m"
    [ "$(value e2e_ns deterministic < "$T/m")" = true ]
    { one '{token_ids: [1, 2, 3, 4]}' '{token_ids: [1, 2, 3, 5], round: 1}'; } |
        measure --verify -q > "$T/m"
    [ "$(value e2e_ns deterministic < "$T/m")" = false ]
    # other seeds of launches do not explain different tokens
    { one '{token_ids: [1, 2, 3, 4], seed: 1}' '{token_ids: [1, 2, 3, 5], seed: 2, launch: 2}'
    } > "$T/in"
    measure --verify "$T/in" 2>&1 > "$T/m" | grep W022 > /dev/null
    [ "$(value e2e_ns deterministic < "$T/m")" = false ]
    # if answers are drawn, different tokens are expected
    jq -c '.temperature = 0.7' "$T/in" | measure --verify 2> "$T/err" > "$T/m"
    [ "$(value e2e_ns deterministic < "$T/m")" = false ]
    [ ! -s "$T/err" ] || ! grep -q W022 "$T/err"
    for good in '{contract: "fixed", max_new: 4, stop: "eos", stop_tokens: 1, tokens_to_eos: 3}' \
                '{contract: "answer", max_new: 9, stop: "eos"}'; do
        one "$good" | measure --verify > "$T/m"
    done
}

@test "--verify reports identical answers and cached results" {
    for n in 1 2 3 4; do one "{id: \"q$n\", token_ids: [1, 2, 3, 4]}"; done > "$T/in"
    measure --verify "$T/in" 2>&1 > "$T/m" | grep 'W026.*all 4 prompts' > /dev/null
    [ "$(value e2e_ns distinct_ratio < "$T/m")" = 0.25 ]
    { cat "$T/in"; for n in 1 2 3 4; do one "{id: \"q$n\", round: 1, e2e_ns: 500}"; done; } |
        jq -c '.token_ids = [(.id[1:] | tonumber), 2, 3, 4]' > "$T/rounds"
    measure --verify "$T/rounds" 2>&1 > "$T/m" | grep 'W027.*0\.50 of the time' > /dev/null
    [ "$(value e2e_ns repeat_ratio < "$T/m") $(value e2e_ns distinct_ratio < "$T/m")" = "0.5 1" ]
    # another process has no common cache with the first, so a faster repeat says nothing
    jq -c 'if .round == 1 then .round = 0 | .launch = 2 else . end' "$T/rounds" > "$T/launches"
    measure --verify "$T/launches" > "$T/m" 2> "$T/err"
    run ! grep W027 "$T/err"
    [ "$(value e2e_ns repeat_ratio < "$T/m")" = null ]
}

@test "--verify: answers without ids and text are no repeats of each other" {
    { one '{}'; one '{round: 1}'; } | measure --verify > "$T/m"
    [ "$(value e2e_ns deterministic < "$T/m")" = null ]
    { one '{text: "a"}'; one '{text: "a", round: 1}'; } | measure --verify > "$T/m"
    [ "$(value e2e_ns deterministic < "$T/m")" = true ]
}

@test "goodput is null if a time that decides is not known" {
    goodput() { one "{batch_id: 1, batch_ns: 1000}" "{batch_id: 1, batch_ns: 1000} + $1" |
        measure --ttft-limit-ms 1 "${@:2}" > "$T/m"; value goodput_per_s value < "$T/m"; }
    usual+=' + {ttft_ns: 10}'
    [ "$(goodput '{}')" = 2000000 ]
    [ "$(goodput '{ttft_ns: null}')" = null ]
    goodput '{ttft_ns: null}'
    [ "$(value goodput_per_s value_reason < "$T/m")" = "times of tokens are not known" ]
    [ "$(goodput '{}' --itl-limit-ms 1)" = null ] # no emissions
    usual+=' + {emit_ns: [10, 20], emit_tokens: [2, 2]}'
    [ "$(goodput '{}' --itl-limit-ms 1)" = 2000000 ]
    [ "$(goodput '{emit_ns: [10], emit_tokens: [4]}' --itl-limit-ms 1)" = 2000000 ] # all at once
    [ "$(goodput '{ttft_ns: 2e6, e2e_ns: 3e6, batch_ns: 3e6, emit_ns: null, emit_tokens: null}' \
        --itl-limit-ms 1)" != null ] # too late already
}

@test "drift inside a launch is reported" {
    for n in $(seq 12); do one "{seq: $n, e2e_ns: (1000 + 50 * $n)}"; done | measure -q > "$T/m"
    [ "$(value e2e_ns steady < "$T/m")" = false ]
}

@test "no records and missing files are errors; unknown kinds are not" {
    run measure < /dev/null
    [ "$status" -eq 65 ]
    run measure "$T/none"
    [ "$status" -eq 66 ]
    one '{kind: "a_kind_to_come", own: 1}' > "$T/in"
    one '{}' >> "$T/in"
    [ "$(measure "$T/in" | jq -c 'select(.kind == "a_kind_to_come").own')" = 1 ]
}

# ceiling FIELDS: a ceiling of two threads of the host with these members over the usual ones
ceiling() {
    jq -cn "{schema: \"crossover/1\", kind: \"roofline\", run: \"r\", name: \"c\", ceiling: true,
             unit: \"f32\", device: \"cpu\", device_name: null, isa: \"AVX2\", threads: 2,
             flops_per_s: 8e9, bytes_per_s: 4e9} + $1"
}
WORK='flops_unit: "f32", threads: 2, model_flops: 4000, model_bytes: 3000, prefill_flops: 1600,
      prefill_bytes: 600, prefill_ns: 400'

@test "a share of the machine's limits is a batch's work over its time and the ceilings" {
    # a batch of two, whose work is that of the batch in both records, and one of its own
    { for id in a b; do
          one "{id: \"$id\", batch: 2, batch_id: 1, batch_ns: 2000, $WORK, batch: 2}"
      done
      one "{id: \"c\", batch: 2, batch_id: 2, batch_ns: 1000, $WORK}"
      ceiling '{}'
      ceiling '{unit: "bf16", flops_per_s: 99e9}'
      ceiling '{threads: 1, flops_per_s: 1e9, bytes_per_s: 9e9}'
      ceiling '{device_name: "a GPU", flops_per_s: 1e12, bytes_per_s: 9e12}'; } > "$T/in"
    measure "$T/in" > "$T/m"
    near() {
        jq -se --arg m "$1" "map(select(.metric == \$m))[0].value / $2 - 1 | fabs < 1e-12" \
            "$T/m"
    }
    near model_flops_per_s '(8000 / 3e-6)'
    near model_bytes_per_s '(6000 / 3e-6)'
    near mfu_ratio '(8000 / 3e-6 / 8e9)'
    near mbu_ratio '(6000 / 3e-6 / 4e9)'
    near prefill_mfu_ratio '(3200 / 0.8e-6 / 8e9)'
    near decode_mbu_ratio '(4800 / 2.2e-6 / 4e9)'
    [ "$(value mbu_ratio direction < "$T/m")" = higher ]
    [ "$(value mbu_ratio unit < "$T/m")" = ratio ]
    [ "$(value mbu_ratio lo_reason < "$T/m")" = "fewer than 5 launches" ]
    # the order of records does not matter, wherever the ceilings are
    sort -r "$T/in" | measure > "$T/x"
    sort "$T/in" | measure | cmp - "$T/x"
    cmp "$T/m" "$T/x"
}

@test "without ceilings a share is null with a reason; rates are computed" {
    one "{$WORK}" > "$T/in"
    measure "$T/in" > "$T/m"
    [ "$(value mbu_ratio value < "$T/m")" = null ]
    [ "$(value mfu_ratio value_reason < "$T/m")" = "no ceilings in the input" ]
    [ "$(value model_bytes_per_s value < "$T/m")" = 3000000000 ]
    ceiling '{threads: 1}' | measure "$T/in" - > "$T/m"
    [ "$(value mbu_ratio value_reason < "$T/m")" = \
        "no ceilings of this device and number of threads" ]
    ceiling '{}' | measure <(one '{threads: 2}') - > "$T/m"
    [ "$(value mbu_ratio value_reason < "$T/m")" = "the work was not counted" ]
    [ "$(value model_flops_per_s value_reason < "$T/m")" = "not recorded" ]
    # a point below a ceiling is not a ceiling
    ceiling '{ceiling: false}' | measure "$T/in" - > "$T/m"
    [ "$(value mbu_ratio value < "$T/m")" = null ]
}

@test "a format without its own ceiling uses that of f32; a GPU is found by its name" {
    { one "{$WORK} + {flops_unit: \"int8\"}"; ceiling '{}'; } | measure > "$T/m"
    [ "$(value mfu_ratio value < "$T/m")" = 0.5 ]
    # 4-bit codes use the ceiling of int8, if there is one
    { one "{$WORK} + {flops_unit: \"int4\"}"; ceiling '{}'
      ceiling '{unit: "int8", flops_per_s: 16e9}'; } | measure > "$T/m"
    [ "$(value mfu_ratio value < "$T/m")" = 0.25 ]
    { one "{$WORK} + {device_name: \"a GPU\", threads: 9}"; ceiling '{}'
      ceiling '{device_name: "a GPU", flops_per_s: 4e9, bytes_per_s: 3e9}'; } | measure > "$T/m"
    [ "$(value mfu_ratio value < "$T/m")" = 1 ]
    [ "$(value mbu_ratio value < "$T/m")" = 1 ]
    # LLaDA's passes all hold the prompt
    { one "{$WORK} + {prefill_flops: null, prefill_bytes: null, prefill_ns: null}"
      ceiling '{}'; } | measure > "$T/m"
    [ "$(value mfu_ratio value < "$T/m")" = 0.5 ]
    [ "$(value prefill_mfu_ratio value_reason < "$T/m")" = "no pass of the prompts alone" ]
    [ "$(value decode_mbu_ratio value < "$T/m")" = null ]
}

@test "the first five bad records are reported, also with -q; the others are counted" {
    { for i in 1 2 3 4 5 6 7 8; do echo "{broken $i"; done; } > "$BATS_TEST_TMPDIR/bad"
    run -65 --separate-stderr "$BIN/measure" -q --no-meta "$BATS_TEST_TMPDIR/bad"
    [ "$(grep -c 'bad:[0-9]' <<< "$stderr")" -eq 5 ]
    [[ $stderr == *"and 3 more bad records"* ]]
    [ "$(jq -r .kind <<< "$output" | grep -c error)" -eq 8 ]
}

@test "a small packed input of broken records makes no large output" {
    for tool in measure score-exact "gen-llama -m synth:tiny-llama" \
        "score-ppl --mode nll -m synth:tiny-llama"; do
        { head -c 100000 /dev/zero | tr '\0' '\n' | sed 's/^/{/'; echo '{"id":"a","text":"b"}'
          one '{answer: "1", text: "1"}'; } | bzip2 > "$T/bad.bz2"
        run --separate-stderr "$BIN/"$tool --no-meta "$T/bad.bz2" # several words on purpose
        echo "$tool: $status"
        [ "$status" -eq 1 ]
        [ "$(grep -c '"kind":"error"' <<< "$output")" -eq 101 ]
        [ "$(jq 'select(.more).more' <<< "$output")" -eq 99900 ]
        [ "${#stderr_lines[@]}" -le 8 ]
        [[ $stderr == *"and 99995 more"* ]]
    done
    # another reader counts the records that were only counted
    { printf '%s\n' "$output"; one '{}'; } > "$T/in"
    run --separate-stderr measure "$T/in"
    [[ $stderr == *"100000 failed records"* ]]
}

@test "gaps with fractions of a nanosecond, or above 18 minutes, count as all others" {
    one '{new_tokens: 6, tokens_to_eos: 6, e2e_ns: 3e12, emit_tokens: [1, 3, 2],
          emit_ns: [0.5, 1.75, 2000000000001.75]}' | measure > "$T/out"
    [ "$(value longest_gap_ns value < "$T/out")" = 2000000000000 ]
    [ "$(value visible_gap_ns value < "$T/out")" = 1000000000000.62 ]
    [ "$(value itl_ns min < "$T/out")" = 0.416666666666667 ]
    [ "$(value itl_ns value < "$T/out")" = 0.416666666666667 ]
}

# many POINTS ANSWERS GAPS: timed records of one launch
many() {
    awk -v points="$1" -v answers="$2" -v gaps="$3" 'BEGIN {
        for (k = 0; k <= gaps; k++) {
            at = at (k ? "," : "") 1000000 * k + k * k % 7919
            one = one (k ? ",1" : "1")
        }
        for (i = 0; i < points * answers; i++)
            printf "{\"kind\":\"generation\",\"id\":\"p\",\"config\":\"c%d\",\"batch\":1," \
                "\"launch\":1,\"round\":0,\"seq\":%d,\"phase\":\"timed\",\"status\":\"ok\"," \
                "\"e2e_ns\":%d,\"new_tokens\":%d,\"tokens_to_eos\":%d,\"emit_ns\":[%s]," \
                "\"emit_tokens\":[%s]}\n", i % points, i, 1000000 * gaps + 7919, gaps + 1,
                gaps + 1, at, one
    }'
}

@test "measure takes 16 bytes of memory for each gap" {
    [ "$(nm -D "$BIN/measure" | grep -c __asan)" -eq 0 ] || skip "sanitizers take memory"
    many 20 400 250 > "$T/many" # two million gaps
    bash -c "ulimit -v 110000; '$BIN/measure' --no-meta '$T/many'" > "$T/out"
    jq -es 'map(select(.metric == "itl_ns")) | length == 20 and all(.n == 100000)' "$T/out"
}
