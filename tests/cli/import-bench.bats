#!/usr/bin/env bats
# Tests import-bench: results of AIPerf, vLLM bench and llama-bench become generation records.
bats_require_minimum_version 1.5.0
load conforms
load tool

setup() { enter; }

import() { "$BIN/import-bench" -q --no-meta "$@" > out; }
show() { jq -c "select(.kind == \"generation\") | $1" out; }
measured() { "$BIN/measure" -q --no-meta out | jq "select(.metric == \"$1\") | .value"; }

vllm() { # CHANGES: a result of two requests, the second one failed
    jq -nc "{date: \"20260901\", backend: \"vllm\", model_id: \"org/Tiny-8B\", num_prompts: 2,
        request_rate: \"inf\", max_concurrency: 4, duration: 2.5, completed: 1,
        total_output_tokens: 4, input_lens: [7, 9], output_lens: [4, 0], ttfts: [0.5, 0],
        itls: [[0.25, 0.25, 0.5], []], generated_texts: [\"a b c d\", \"\"],
        errors: [\"\", \"Connection reset\"]} + $1"
}

@test "vLLM: a request is a record, gaps give the emissions, and the load is settings" {
    vllm '{}' > r.json
    run -1 "$BIN/import-bench" -q --no-meta r.json
    grep -q "request 1 failed: Connection reset" <<< "$output"
    import r.json || :
    conforms out
    [ "$(show '[.model, .stack, .arch, .loop, .batch, .id, .text]')" = \
        '["Tiny-8B","vllm, by vllm bench","endpoint","closed",4,"request-0","a b c d"]' ]
    [ "$(show '[.ttft_ns, .e2e_ns, .batch_ns, .emit_tokens, .prompt_tokens]')" = \
        '[500000000,1500000000,2500000000,[1,1,1,1],7]' ]
    [ "$(show .emit_ns)" = '[500000000,750000000,1000000000,1500000000]' ]
    vllm '{request_rate: 3.5}' > r.json
    import --stack "vllm 0.10.1" --launch 4 r.json || :
    [ "$(show '[.loop, .arrival_rate, .batch, .stack, .launch]')" = \
        '["open",3.5,null,"vllm 0.10.1",4]' ]
    [ "$(show '[.conditions, .admit_ns, .admit_ns_reason]')" = \
        '["max_concurrency=4",null,"not recorded"]' ]
    vllm '{request_rate: 3.5, burstiness: 0.5}' > r.json
    import r.json || :
    [ "$(show .conditions)" = '"max_concurrency=4 burstiness=0.5"' ]
    vllm '{itls: [[0.25, null, 0.5], []]}' > r.json # a gap that is not known is not 0
    import r.json || :
    [ "$(show .id)" = "" ]
    vllm '{ttfts: null}' > r.json
    fails 65 "run vllm bench serve with --save-result --save-detailed" "$BIN/import-bench" r.json
}

@test "emissions are null if their sizes are unknown; the token that ends a text needs none" {
    vllm '{output_lens: [9, 0]}' > r.json
    import r.json || :
    [ "$(show '[.new_tokens, .emit_ns, .emit_ns_reason]')" = \
        '[9,null,"tokens of emissions are not known"]' ]
    vllm '{output_lens: [5, 0]}' > r.json # the fifth one ended the text
    import r.json || :
    [ "$(show '[.new_tokens, (.emit_tokens | add)]')" = '[5,4]' ]
    run -1 "$BIN/measure" -q --no-meta out # the request that failed
    [ "$(grep -c "\"kind\":\"times\"" <<< "$output")" -eq 1 ]
}

line() { # NUMBER CHANGES: a line of AIPerf
    jq -nc "{metadata: {session_num: $1, conversation_id: \"c$1\", x_request_id: \"x\",
        benchmark_phase: \"profiling\", request_start_ns: (1e18 + $1 * 1e8),
        request_end_ns: (1e18 + $1 * 1e8 + 4e8), was_cancelled: false},
        metrics: {input_sequence_length: {value: 550, unit: \"tokens\"},
        time_to_first_token: {value: 250, unit: \"ms\"},
        request_latency: {value: 400, unit: \"ms\"},
        inter_chunk_latency: {value: [50, 100], unit: \"ms\"},
        output_sequence_length: {value: 3, unit: \"tokens\"}}, error: null} * $2"
}

@test "AIPerf: a line is a record with its clock, its warm-up and its failures" {
    { line 0 '{}'
      line 1 '{metadata: {benchmark_phase: "warmup"}}'
      line 2 '{metrics: {time_to_first_token: {value: 0.25, unit: "sec"}}}'
      line 3 '{error: {code: 499, type: "E", message: "cancelled"}}'
      echo '{"metadata": '
      line 4 '{metrics: {request_latency: {value: 100, unit: "ms"}}}'
    } > profile_export.jsonl
    run -1 "$BIN/import-bench" -q --no-meta profile_export.jsonl
    grep -q '"message":"the request failed: cancelled".*"id":"c3"' <<< "$output"
    grep -q 'profile_export.jsonl:5: line 1' <<< "$output"
    grep -q 'expected times and tokens of at least 0, and the first token' <<< "$output"
    import --model org/m --concurrency 16 profile_export.jsonl || :
    conforms out
    [ "$(show '[.id, .phase, .ttft_ns, .e2e_ns]')" = \
'["c0","timed",250000000,400000000]
["c1","warmup",250000000,400000000]
["c2","timed",250000000,400000000]' ]
    [ "$(show 'select(.id == "c2") | [.admit_ns, .batch_ns, .model, .batch, .stack]')" = \
        '[200000000,800000000,"m",16,"unknown, by AIPerf"]' ]
    [ "$(show 'select(.id == "c0") | [.emit_ns, .emit_tokens, .prompt_tokens]')" = \
        '[[250000000,300000000,400000000],[1,1,1],550]' ]
}

@test "times that contradict each other are refused; rounded times are not" {
    { line 0 '{metrics: {inter_chunk_latency: {value: [50, 100.0005], unit: "ms"}}}'
      line 1 '{metrics: {inter_chunk_latency: {value: [50, 110], unit: "ms"}}}'
      line 2 '{metrics: {inter_chunk_latency: {value: [50, null], unit: "ms"}}}'; } > p.jsonl
    run -1 "$BIN/import-bench" -q --no-meta p.jsonl
    grep -q "the end after 400000000 ns, the last token after 410000000 ns" <<< "$output"
    import p.jsonl || :
    [ "$(show '[.id, .e2e_ns]')" = '["c0",400000500]' ]
    vllm '{duration: 1.2}' > r.json
    run -1 "$BIN/import-bench" -q --no-meta r.json
    grep -q "got 1.2e+09 ns for the run, 1.5e+09 ns for this request" <<< "$output"
}

@test "llama-bench: each repetition of a test that generates is a record" {
    jq -nc '{build_commit: "8cf427ff", build_number: 5163, model_filename: "models/a.gguf",
        n_batch: 2048, n_threads: 8, type_k: "f16", n_depth: 0, backends: "CPU"} |
        [. + {n_prompt: 512, n_gen: 0, samples_ns: [1e8]},
         . + {n_prompt: 0, n_gen: 128, samples_ns: [1e9, 2e9]},
         . + {n_prompt: 0, n_gen: 64, samples_ns: []}]' > t.json
    run -1 "$BIN/import-bench" --no-meta t.json
    grep -q "left out: 1 tests that only process a prompt" <<< "$output"
    grep -q "t.json: test 3: expected n_gen" <<< "$output"
    import t.json || :
    conforms out
    [ "$(show '[.model, .stack, .new_tokens, .max_new, .e2e_ns, .round, .threads, .emit_ns]')" = \
'["a.gguf","llama.cpp b5163-8cf427ff",128,128,1000000000,0,8,null]
["a.gguf","llama.cpp b5163-8cf427ff",128,128,2000000000,1,8,null]' ]
    [ "$(show '[.ttft_ns, .ttft_ns_reason]' | sort -u)" = '[null,"not recorded"]' ]
    [ "$(show .conditions | sort -u)" = \
        '"n_prompt=0 n_depth=0 n_batch=2048 type_k=f16 backends=CPU"' ]
    jq -c '.[]' t.json > t.jsonl
    cp out whole
    import t.jsonl || :
    diff <(show 'del(.id)') <(cp whole out && show 'del(.id)')
    awk -v v="$(measured output_tokens_per_s)" 'BEGIN { exit !(v > 85.3 && v < 85.4) }' # 256 / 3 s
}

@test "files of other formats are refused by name" {
    echo '{"a": 1}' > o.json
    fails 65 "o.json: expected records of AIPerf" "$BIN/import-bench" o.json
    : > empty.json
    fails 65 "empty.json: expected records of AIPerf" "$BIN/import-bench" empty.json
    fails 66 "none.json" "$BIN/import-bench" none.json
    fails 64 "expected files" "$BIN/import-bench"
}
