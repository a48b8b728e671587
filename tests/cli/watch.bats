#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Watching a generation: commits of each pass as records (--trace), the text as it grows (--stream),
# progress within a batch. The numbers are checked in
# tests/model/test-observe.c; cutting texts in tests/unit/test-stream.c.
load conforms

setup() {
    set -o pipefail
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    BIN=$(realpath "${BIN:-build/bin}")
    T=$BATS_TEST_TMPDIR
    cat > "$T/prompts" << 'END'
{"id":"p1","text":"one two three"}
{"id":"p2","prompt_ids":[5,6,7,8,9,10,11]}
{"id":"p3","text":"four"}
END
    LLADA=("$BIN/gen-llada" -q --no-meta -m data/models/llada-demo)
    LLAMA=("$BIN/gen-llama" -q --no-meta -m data/models/llama-demo)
    TINY=("$BIN/gen-llada" -q --no-meta -m synth:tiny-llada --gen-length 16 --block-length 8)
    TINY_AR=("$BIN/gen-llama" -q --no-meta -m synth:tiny-llama --max-new 8 --ignore-eos)
}

ids() { jq -c '[.point, .id, .token_ids]' "$1"; }

# whole TRACE GENERATIONS: tests that the changes of all passes together are the answers, as many as
# the generation says, and that a slot which is not masked again becomes final once
whole() {
    jq -n -e --slurpfile t "$1" --slurpfile g "$2" '
        all($g[]; . as $g | [$t[] | select(.id == $g.id and .point == $g.point)] as $t
            | (reduce $t[] as $c ({}; reduce $c.masked_slots[] as $s (.; del(.["\($s)"]))
                | reduce ([$c.slots, $c.token_ids] | transpose)[] as [$s, $i] (.; .["\($s)"] = $i))
                | to_entries | sort_by(.key | tonumber) | map(.value)) == $g.token_ids
            and ($t | map(.slots[]) | length - (unique | length)) == ($g.remasked_tokens // 0)
            and ($t | map(.masked_slots | length) | add) == ($g.remasked_tokens // 0)
            and ($g.commit_tokens == null
                 or ([$g.commit_tokens[] | select(. > 0)] ==
                     [$t[].slots | length | select(. > 0)]))
            and ($t | map(.pass) | . == sort)
            and all($t[].confidences[]; . > 0 and . <= 1))'
}

# looked_at COMMAND...: tests that the ids are the same with --trace, and that the trace fits the
# answers
looked_at() {
    "$@" "$T/prompts" > "$T/plain"
    "$@" --trace "$T/trace" "$T/prompts" > "$T/seen"
    cmp <(ids "$T/plain") <(ids "$T/seen")
    whole "$T/trace" "$T/seen"
    jq -se 'all(.tainted | index("watched"))' "$T/seen"
    jq -se 'all((.tainted // []) == [])' "$T/plain"
}

methods() { # COMMAND...: ways whose answers must not depend on being looked at
    looked_at "$@" --unmask schedule,threshold,factor --threshold 0.003 --batch 1,3
    looked_at "$@" --cache prefix,dual --temperature 0,0.8 --steps 6 --batch 2
    looked_at "$@" --cfg-scale 1 --remasking random --steps 4
    looked_at "$@" --unmask wino --wino-draft 0.003 --wino-verify 0.004 --batch 2
    jq -se 'map(.masked_slots | length) | add > 0' "$T/trace"
}

@test "on cpu and ref a trace holds each commit once, and watching changes no id" {
    methods "${TINY[@]}" --device cpu
    looked_at "${TINY[@]}" --device ref --steps 4,8 --batch 2
    looked_at "${TINY[@]}" --stop-at-eos --unmask threshold --threshold 0.003
    for d in cpu ref; do
        looked_at "${TINY_AR[@]}" --device $d --temperature 0,1 --batch 2
    done
    looked_at "${TINY_AR[@]}" --temperature 1 --top-k 5 --cache on,off
    looked_at "${TINY_AR[@]}" --max-new 40 --lookup 3 --admit continuous --batch 2
    jq -se 'map(.slots | length) | max > 1' "$T/trace"
}

@test "on the emulated CUDA device a trace holds each commit, and watching changes no id" {
    export CROSSOVER_CUDA="${TESTBIN:-build/tests}/libcrossover-cuda.so"
    [ -e "$CROSSOVER_CUDA" ] || skip "no C++ compiler, so no emulated device"
    looked_at "${TINY[@]}" --device cuda --steps 4 --cache dual --batch 3
    looked_at "${TINY_AR[@]}" --max-new 4 --device cuda --limit 1
}

@test "a trace is a separate stream with valid records of the same point" {
    "${LLADA[@]/--no-meta/-q}" --gen-length 16 --block-length 8 --unmask factor --limit 1 \
        --trace "$T/trace" -o "$T/out" "$T/prompts"
    conforms "$T/trace" "$T/out"
    [ "$(jq -r .kind "$T/trace" | uniq | xargs)" = "meta commit end" ]
    "$BIN/measure" -q "$T/trace" "$T/out" > "$T/m" # reads to `end`, which has the hash
    jq -se --slurpfile g "$T/out" '($g | map(select(.kind == "generation"))[0]) as $g
        | map(select(.kind == "commit")) | all(.config == $g.config and .point == $g.point
            and .id == "p1" and .slot_count == 16 and .block_length == 8 and .batch_id == 0
            and .masked_slots == [] and .pass_ns > 0)' "$T/trace"
}

@test "times of a watched run do not count" {
    "${TINY[@]}" --trace "$T/trace" "$T/prompts" > "$T/out"
    "$BIN/measure" --no-meta "$T/out" > "$T/m"
    jq -se 'map(select(.metric == "e2e_ns"))[0] | .tainted == 3 and .disturbed
        and .lo == null' "$T/m"
}

no() { # CODE WORDS COMMAND...
    run --separate-stderr "${@:3}"
    echo "$stderr"
    [ "$status" = "$1" ] && [[ $stderr == *"$2"* ]]
}

@test "a run that cannot be watched is refused in one line with advice" {
    "$BIN/schedule" --systems llada --launches 1 --gen-length 32 --no-meta \
        > "$T/schedule"
    SHORT=("$BIN/gen-llada" -m synth:tiny-llada)
    for flag in "--trace $T/t" --stream; do
        for timed in "--repeat 2" "--warmup 1" "--warmup-most 3" "--schedule $T/schedule"; do
            # shellcheck disable=SC2086
            no 64 "expected no --schedule, --warmup or --repeat" "${SHORT[@]}" $flag $timed \
                "$T/prompts"
        done
    done
    no 64 "--stream: expected --batch 1, got 2" "${TINY_AR[@]}" --stream --batch 2 "$T/prompts"
    no 64 "expected --admit static" "${TINY_AR[@]}" --stream --admit continuous "$T/prompts"
    no 64 "a file other than -o" "${TINY[@]}" --trace - "$T/prompts"
    no 64 "a file other than -o" "${TINY[@]}" --trace "$T/o" -o "$T/o" "$T/prompts"
    no 64 "is both input and --trace" "${TINY[@]}" --trace "$T/prompts" "$T/prompts"
    no 65 "--stream: expected a model with a tokenizer" "${TINY[@]}" --stream "$T/prompts"
    [ -z "$output" ]
    no 73 "absent" "${TINY[@]}" --trace "$T/absent/t" "$T/prompts"
    no 74 "cannot write" "${TINY[@]}" --trace /dev/full "$T/prompts"
}

@test "--stream prints the whole text as it becomes readable" {
    for gen in "LLADA --gen-length 32 --block-length 8 --unmask factor" "LLAMA --max-new 24"; do
        declare -n base=${gen%% *}
        # shellcheck disable=SC2086
        "${base[@]}" ${gen#* } --limit 1 --stream "$T/prompts" > "$T/out" 2> "$T/text"
        [ "$(cat "$T/text")" = "$(jq -r .text_to_eos "$T/out")" ]
        [ -n "$(cat "$T/text")" ]
    done
    # several answers have headings; the text comes in several pieces
    "${LLADA[@]}" --gen-length 16 --steps 8,16 --stream --limit 2 "$T/prompts" > "$T/out" \
        2> "$T/text"
    [ "$(grep -c '^== p[12]: llada-demo steps=' "$T/text")" = 4 ]
    strace -o "$T/calls" true 2> /dev/null || skip "no strace here: that it grows is not checked"
    [ "$(nm -D "$BIN/gen-llama" | grep -c __asan)" -eq 0 ] || skip "LeakSanitizer cannot be traced"
    strace -f -e trace=write -o "$T/calls" "${LLAMA[@]}" --max-new 12 --limit 1 --stream \
        "$T/prompts" > "$T/out" 2> /dev/null
    [ "$(grep -c 'write(2,' "$T/calls")" -gt 5 ]
}

# in_terminal FILE COMMAND...: prints what the command writes to a terminal of COLUMNS x LINES
in_terminal() {
    command -v script > /dev/null || skip "no script(1) here: nothing acts as a terminal"
    printf '%q ' "${@:2}" > "$T/command"
    TERM=xterm script -qec "bash $T/command" /dev/null < /dev/null > "$1"
}

@test "progress moves within a batch and shows the remaining time" {
    in_terminal "$T/seen" "${LLADA[@]/-q/--progress=auto}" --gen-length 256 --steps 64 --limit 1 \
        -o "$T/out" "$T/prompts"
    tr '\r' '\n' < "$T/seen" > "$T/lines"
    grep -q '0/1 generations, .* s left, timed, pass [0-9]*, [0-9]*/256 tokens' "$T/lines"
    [ "$(grep -o 'pass [0-9]*' "$T/lines" | sort -u | wc -l)" -ge 2 ]
}
