#!/usr/bin/env bats
# make replicate: a run agrees with itself and with its like on other machines; whatever number of
# a stored run is altered, it no longer does.

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    S=$BATS_TEST_TMPDIR/stored.ndjson N=$BATS_TEST_TMPDIR/now.ndjson
    # a small run, as the records of the phases have it
    jq -nc '{kind: "meta", tool: "gen-llada", checkpoint: {model: "d", files: [{sha256: "aa"}]}},
        {kind: "meta", tool: "gen-llama", checkpoint: {model: "a", files: [{sha256: "bb"}]}},
        {kind: "meta", tool: "measure", version: "1", commit: "c", start: "s",
         machine: {cpu: "P", cores: 2}},
        ({d: 4000, a: 1000} | to_entries[] | .value as $ns
         | {config: "\(.key) c", workload: "w", model: .key, device: "cpu", isa: "i", batch: 1,
            dtype: "f32", quant: "none", threads: 2, contract: "answer",
            arch: {d: "llada", a: "llama"}[.key]} + {d: {gen_length: 8}, a: {max_new: 8}}[.key]
         | . + {kind: "metric", metric: "e2e_ns", value: $ns, disturbed: false,
                launch_values: [0.99, 1, 1.01, 0.995, 1.005 | {value: (. * $ns)}]},
           . + {kind: "quality", summary: true, metric: "judge_ppl", value: 2.5, lo: 2, hi: 3},
           . + {kind: "generation", id: "p1", token_ids: [5, 6, 7], memory: {layers_hold: true,
                weights_bytes: 7000000, activations_bytes: 300000, reserved_peak_bytes: 8000000,
                process_peak_bytes: 20000000, load_peak_bytes: 19000000, huge_page_bytes: 0}},
           . + {kind: "generation", id: "p2", token_ids: [7, 6, 5],
                memory: {activations_bytes: 200000}}),
        {kind: "crossover", name: "X_lat", llada: "d", llama_config: "a c", exists: true, at: 3,
         lo: 2, hi: 4, contract: "answer"},
        {kind: "crossover", name: "X_q", quality_metric: "judge_ppl", llada: "d",
         llama_config: "a c", exists: true, at: 9, lo: 8, hi: null, contract: "answer"}' |
        jq -nc -f pipelines/stored.jq > "$S"
    cp "$S" "$N"
}

now() { jq -c "$1" "$S" > "$N"; } # the new run, another than the stored one by this

compared() { jq -sc -f pipelines/replicate.jq --slurpfile stored "$S" "$N"; }

agrees() { compared | tee /dev/stderr | jq -se 'map(.pass) | any and all(. != false)'; }

differs() { # METRIC, alone
    compared | tee /dev/stderr | jq -se --arg m "$1" \
        'map(select(.pass == false) | .metric) | unique == [$m]'
}

point='select(.what == "point") |='
llada='select(.what == "point" and .arch == "llada") |='

@test "a run agrees with itself in ids, quality, memory, ratio and crossovers" {
    agrees
    compared | jq -se 'map(select(.pass)) | length == 2 * 5 + 1 + 2'
    jq -se '.[1].ids | .p1 != .p2 and (.p1 | test("^[0-9]+-[0-9]+$"))' "$S"
}

@test "altered numbers differ, each" {
    now "($llada (.ids.p1 = \"1-1\"))"; differs token_ids
    now "($llada del(.ids.p2))"; differs token_ids
    now "($llada (.ids.p3 = \"1-1\"))"; differs token_ids
    now "($llada (.quality.judge_ppl.value = 2.5001))"; differs judge_ppl
    now "($llada del(.quality.judge_ppl))"; differs judge_ppl
    now "($point (.memory.weights_bytes += 64))"; differs memory_weights_bytes
    now "($point (.memory.activations_bytes += 64))"
    differs memory_activations_bytes
    now "($point (.memory.reserved_peak_bytes *= 1.03))"
    differs memory_reserved_peak_bytes
    now "($llada (.metrics.e2e_ns.launches |= map(. * 1.2)))"
    differs "time as a multiple of the LLaMA-type"
    now "($llada (.checkpoint = \"cc\"))"; differs checkpoint
    now '(select(.name == "X_q") |= (.exists = false))'
    differs "X_q by judge_ppl, contract answer"
    now '(select(.name == "X_lat") |= (.lo = 5 | .hi = 6))'; differs "X_lat, contract answer"
}

@test "absolute times, pages and what is resident are not compared" {
    now "($point (.metrics.e2e_ns.launches |= map(. * 7) | .metrics.e2e_ns.value *= 7
        | .memory.reserved_peak_bytes *= 1.01
        | .memory.process_peak_bytes *= 2 | .memory.load_peak_bytes *= 2
        | .memory.huge_page_bytes = 2097152))"
    agrees
    now "($point (.threads = 8 | .memory.activations_bytes *= 4))"
    agrees
}

@test "on another machine ids may part; quality agrees by intervals and ratios by a factor" {
    other='(select(.what == "run") |= (.machine.cpu = "Q"))'
    isa="($point (.isa = \"j\"))"
    now "$other | $isa | ($llada (.ids.p1 = \"1-1\" | .quality.judge_ppl = {value: 3.1, lo: 2.9,
        hi: 3.4} | .memory.activations_bytes += 1
        | .metrics.e2e_ns.launches |= map(. * 1.5)))"
    agrees
    compared | jq -se 'map(select(.metric == "token_ids")) | length == 2 and
        all(.pass == null) and any(.value == "1 identical")'
    now "$other | $isa | ($llada (.quality.judge_ppl = {value: 3.3, lo: 3.1, hi: 3.4}))"
    differs judge_ppl
    now "$other | $isa | ($llada (.metrics.e2e_ns.launches |= map(. * 2.5)))"
    differs "time as a multiple of the LLaMA-type"
    now "$other | ($llada (.ids.p1 = \"1-1\"))" # the same kind, another processor
    differs token_ids
}

@test "two processors that share a name are two: time is held by the wider factor" {
    known='(select(.what == "run") |=
        (.machine += {cpu_vendor: "V", cpu_family: 25, cpu_model: 1}))'
    slower="($llada (.metrics.e2e_ns.launches |= map(. * 1.5)))"
    jq -c "$known" "$S" > "$S.known"
    mv "$S.known" "$S"
    now "$slower"
    differs "time as a multiple of the LLaMA-type"
    now "$slower | (select(.what == \"run\") |= (.machine.cpu_family = 26))"
    agrees
    # stored before records said more than the name
    cp "$S" "$N"
    jq -c 'del(.machine.cpu_vendor, .machine.cpu_family, .machine.cpu_model)' "$N" > "$S"
    jq -c "$slower" "$N" > "$N.slower"
    mv "$N.slower" "$N"
    agrees
}

@test "fewer than five launches give no ratio to compare" {
    now "($llada (.metrics.e2e_ns.launches |= (.[:4] | map(. * 9))))"
    agrees
    compared | jq -se 'map(select(.metric == "time as a multiple of the LLaMA-type"))
        | length == 1 and .[0].pass == null'
}

@test "what was disturbed is not compared, and a run with nothing in common does not pass" {
    now "($llada (.metrics.e2e_ns |= (.disturbed = true | .launches |= map(. * 9))))
        | (select(.name == \"X_lat\") |= (.lo = 5 | .hi = 6))"
    agrees
    now "($point (.workload = \"other\")) | select(.what != \"crossover\")"
    run agrees
    [ "$status" -ne 0 ]
    compared | jq -se 'all(.pass == null) and map(select(.value == "not in this run")) != []'
}

@test "a point that the stored run has not is said and not compared; it is nobody's rival" {
    jq -c 'select(.arch == "llama") | .arch = "ltm" | .model = "z" | .config = "z c" |
        .metrics.e2e_ns.launches |= map(. * 50)' "$S" > "$N.more"
    { head -n 1 "$S"; cat "$N.more"; tail -n +2 "$S"; } > "$N"
    agrees
    compared | jq -se 'map(select(.config == "z c")) | length == 1 and .[0].pass == null and
        (.[0].text | test("not compared  z c / point: not in the stored run then, measured now"))'
    compared | jq -se 'map(select(.metric == "time as a multiple of the LLaMA-type").pass) ==
        [true]'
    # such points alone are a run with nothing in common
    { head -n 1 "$S"; cat "$N.more"; } > "$N"
    run agrees
    [ "$status" -ne 0 ]
}
