#!/usr/bin/env bats
# conclude: times of one machine and of one set of prompts only, the name of this machine, and the
# times behind a ratio.
load conforms
load conclude

# source_of PRINT: a line that says on which machine the next records were measured
source_of()
{
    jq -nc --arg print "$1" '{schema: "crossover/1", kind: "parent", run: "t", tool: "gen-llada",
        machine: {cpu: "Some CPU", cores: 2, fingerprint: $print}}'
}

@test "times of two machines are refused, times of one machine in two streams are accepted" {
    state '{}'
    jq -c 'select(.arch == "llada")' run.ndjson > llada
    jq -c 'select(.arch != "llada")' run.ndjson > llama
    { source_of aaaaaaaaaaaa; cat llada; source_of aaaaaaaaaaaa; cat llama; } > same
    "$BIN/conclude" --no-meta --quality "$GOALS" same > claims.ndjson
    says "LLaDA needs 8 steps to match LLaMA"
    { source_of aaaaaaaaaaaa; cat llada; source_of bbbbbbbbbbbb; cat llama; } > other
    run "$BIN/conclude" --no-meta --quality "$GOALS" other
    [ "$status" -eq 65 ]
    [[ "$output" == *'times of Some CPU, 2 cores (bbbbbbbbbbbb), after times of Some CPU'* ]]
    # scores may come from another machine
    { source_of aaaaaaaaaaaa; jq -c 'select(.kind != "quality")' run.ndjson
      source_of bbbbbbbbbbbb; jq -c 'select(.kind == "quality")' run.ndjson; } > scored
    "$BIN/conclude" --no-meta --quality "$GOALS" scored > claims.ndjson
    says "LLaDA needs 8 steps to match LLaMA"
}

@test "two sets of prompts with the same ids give no answer" {
    state '{}'
    jq -c 'if .arch == "llada" then .workload = "00c0ffee0001" else . end' run.ndjson > two
    "$BIN/conclude" --no-meta --quality "$GOALS" two > claims.ndjson
    answer "Undecided: the prompts of the two models differ, so times are not compared."
    no_ratio
    # also if quality alone has another set
    jq -c 'if .kind == "times" then .workload = "00c0ffee0000" else . end' two > scored
    "$BIN/conclude" --no-meta --quality "$GOALS" scored > claims.ndjson
    says "Undecided: the prompts of the two"
    # points of a further set of prompts change nothing
    { cat run.ndjson; jq -c 'select(.kind == "times") | .workload = "00c0ffee0001"
        | .ids |= .[:2] | .tasks |= .[:2] | (.e2e_ns, .cpu_ns)[] |= .[:2]' run.ndjson; } > more
    "$BIN/conclude" --no-meta --quality "$GOALS" more > claims.ndjson
    diff claims.ndjson "$F/claims.ndjson"
}

@test "prompts that one model lacks are the reason, not a disturbance" {
    state '{}'
    jq -c 'if .kind == "times" and .arch == "llada" then .ids |= .[:20] | .tasks |= .[:20]
        | (.e2e_ns, .cpu_ns)[] |= .[:20] else . end' run.ndjson > lacks
    "$BIN/conclude" --no-meta --quality "$GOALS" lacks > claims.ndjson
    says "Undecided: over a tenth of the prompts have times of one model only"
    no_ratio
}

@test "a ratio of a goal has the times of both models, also without an interval" {
    state '{}'
    claim '.name == "ratio" and .key == "equal quality" and .task == "sum"' \
        '(.llada_ns / .llama_ns / .value - 1 | fabs) < 1e-9 and .llada_lo_ns < .llada_ns
            and .llada_ns < .llada_hi_ns and .llama_lo_ns < .llama_ns'
    state '{"launches": 4}'
    conforms claims.ndjson
    claim '.name == "ratio" and .key == "equal quality" and .task == "sum"' \
        '.value == null and .launches == 4 and .llada_ns > 0 and .llada_lo_ns == null
            and .llada_lo_ns_reason == "fewer than 5 launches"'
}

@test "the question names the card that computed the answers, else the processor" {
    state '{"device": "cuda"}'
    claim '.name == "question"' '.hardware == "AMD EPYC (Zen 3), 2 cores"'
    jq -c 'if .device then .device_name = "NVIDIA X" else . end' run.ndjson > card
    "$BIN/conclude" --no-meta --quality "$GOALS" card > claims.ndjson
    claim '.name == "question"' '.hardware == "NVIDIA X, 2 cores"
        and (.text | test("faster\\? NVIDIA X, 2 cores"))'
    # a card that was not used is not named
    state '{}'
    jq -c 'if .machine then .machine.gpu = "NVIDIA X" else . end' run.ndjson > host
    "$BIN/conclude" --no-meta --quality "$GOALS" host > claims.ndjson
    claim '.name == "question"' '.hardware == "AMD EPYC (Zen 3), 2 cores"'
}

@test "the question does not name a card that only other points used" {
    state '{}'
    jq -c 'if .batch == 8 then .device = "cuda" | .device_name = "NVIDIA X" else . end' \
        run.ndjson > both
    "$BIN/conclude" --no-meta --quality "$GOALS" both > claims.ndjson
    claim '.name == "question"' '.hardware == "AMD EPYC (Zen 3), 2 cores"'
}

@test "after a failed self-test of elapsed time, processor time needs a self-test of its own" {
    state '{}'
    jq -c 'if .kind == "check" and .metric == "e2e_ns" then .verdict = "SLOWER" else . end' \
        run.ndjson > failed
    "$BIN/conclude" --no-meta --quality "$GOALS" failed > claims.ndjson
    says "times the processor time ["
    jq -c 'select(.kind != "check" or .metric != "cpu_ns")' failed > unchecked
    "$BIN/conclude" --no-meta --quality "$GOALS" unchecked > claims.ndjson
    says "Undecided: "
    no_ratio
    jq -se 'map(select(.clock).clock) | unique == ["wall"]' claims.ndjson
}
