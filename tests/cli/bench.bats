#!/usr/bin/env bats
# bench and write-gguf on the tiny shapes: their records, and the column of the peer.
# One file because all benches share one setup.
load conforms

setup() {
    set -o pipefail
    ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    BENCH=${TESTBIN:-$ROOT/build/tests}/bench
    QUICK=(--shapes tiny --array 1M) # the memory's ceiling is measured again at every point
    cd "$BATS_TEST_TMPDIR" || exit 1
}

# Exit status 1 means that other work slowed a ceiling; a point that was faster then has no share.
run_bench() { "$BENCH/bench" "$@" || [ $? -eq 1 ]; }

@test "ceilings, kernels, models and growth are records under this machine's roofs" {
    run_bench "${QUICK[@]}" --dtypes bf16 --repeat 1 --threads 2 --point 0.02 \
        -o bench.ndjson
    conforms bench.ndjson
    # every processor has f32 at one and at two threads
    jq -se 'map(select(.ceiling and .unit == "f32") | .threads) == [1, 2]' bench.ndjson
    [ "$(jq -s 'map(.kernel // empty) | unique | join(" ")' bench.ndjson)" = \
        '"attention gated head matmul"' ]
    [ "$(jq -s 'map(select(.arch) | .arch) | unique | join(" ")' bench.ndjson)" = '"llada llama"' ]
    # the curve of growth is as close to its points as its record says
    jq -se 'map(select(.kind == "growth")) | map(.by) == ["rows", "length", "batch"] and all(
        . as $g | ([range(.x | length) as $i | ($g.fixed_ns + $g.each_ns * $g.x[$i] +
        $g.square_ns * $g.x[$i] * $g.x[$i]) / $g.took_ns[$i] - 1 | fabs] | max) as $worst |
        $g.took_ns[-1] > $g.took_ns[0] and ($worst - $g.deviation_ratio | fabs) < 1e-6)' \
        bench.ndjson
    # the members of a point agree with each other
    jq -se 'map(select(.kind == "roofline" and .took_ns)) | length > 20 and all(
        (.flops_per_s / .bytes_per_s / .flops_per_byte - 1 | fabs) < 1e-9 and
        .took_ns > 0 and (.ceiling_fraction > 0 or .ceiling_fraction_reason))' bench.ndjson
    # operations counted by hand: 64 x 64 with 8 rows
    jq -se 'map(select(.kernel == "matmul" and .rows == 8))[0] |
        (.flops_per_s * .took_ns / 1e9 - 2 * 64 * 64 * 8 | fabs) < 1e-6' bench.ndjson
}

@test "RWKV: all forms of time mixing do the same work, and ratios follow from their times" {
    run_bench "${QUICK[@]}" --only wkv --threads 2 --point 0.001 -o bench.ndjson
    conforms bench.ndjson
    # six cases of RWKV 6 and of 7, four times each; operations counted by hand
    jq -se 'map(select(.form)) | length == 48 and
        (map(select(.kernel == "wkv7" and .rows == 128 and .form == "chunked"))[0] |
            (.flops_per_s * .took_ns / 1e9 / (128 * 64 * 64 * 9) - 1 | fabs) < 1e-9) and
        (group_by([.kernel, .rows, .sequences]) | length == 12 and all(
            (map(select(.form == "sequential"))[0].took_ns) as $each | all(.form == "back" or
            (.sequential_ratio * .took_ns / $each - 1 | fabs) < 1e-9) and
            (map(select(.form == "recurrent"))[0].took_ns) as $all | all(
            (.form | . == "back" or . == "sequential") == (.recurrent_ratio == null) and
            (.recurrent_ratio == null or
             (.recurrent_ratio * .took_ns / $all - 1 | fabs) < 1e-9))))' bench.ndjson
}

@test "training: bytes and time are measured with recomputed layers and with split logits" {
    run_bench --only training --shapes tiny --threads 2 --point 0.001 -o bench.ndjson
    conforms bench.ndjson
    jq -se 'map(select(.work == "train")) | length == 8 and
        all(.pass_ns > 0 and .time_ratio > 0) and
        (.[0] as $all | all((.memory_ratio * .activations_bytes / $all.activations_bytes - 1 |
            fabs) < 1e-9 and (.time_ratio * $all.pass_ns / .pass_ns - 1 | fabs) < 1e-9)) and
        (map(select(.loss_form == "fused" and .checkpoint_every == 1))[0].memory_ratio > 1.2)' \
        bench.ndjson
}

@test "a wrong list is refused with the words that are known" {
    run "$BENCH/bench" --dtypes bf16,int9
    [ "$status" -eq 64 ]
    [[ $output == *'--dtypes: expected a list of f32,bf16,int8,nf4,q4,fp8, got "int9"'* ]]
    run "$BENCH/bench" --array 1000
    [ "$status" -eq 64 ] && [[ $output == *--array*1000* ]]
}

@test "the peer's figures are read from the output of its tools" {
    mkdir bin peer
    cat > bin/llama-bench <<'EOF'
#!/bin/sh
echo "$*" >> calls
echo '[ { "n_prompt": 128, "avg_ts": 12.5, "samples_ts": [ 12.5 ] } ]'
EOF
    cat > bin/llama-batched-bench <<'EOF'
#!/bin/sh
echo 'a line that is no record'
echo '{"pp": 16, "tg": 64, "pl": 8, "speed_pp": 3.0, "speed_tg": 25.0}'
EOF
    cat > bin/llama-diffusion-cli <<'EOF'
#!/bin/sh
echo 'total time: 2000.00ms, time per step: 62.50ms, sampling time per step: 1.00ms'
EOF
    chmod +x bin/*
    touch peer/tiny-llama.bf16.gguf peer/tiny-llada.bf16.gguf
    PATH=$PWD/bin:$PATH run_bench "${QUICK[@]}" --only models --dtypes bf16 --repeat 1 \
        --threads 1 --peer peer -o bench.ndjson
    conforms bench.ndjson
    rate_is() {
        jq -se --arg w "$1" "map(select(.work == \$w))[0].peer_tokens_per_s == $2" bench.ndjson
    }
    rate_is 'decode 128' 12.5
    rate_is 'batch 8' 25
    rate_is 'diffuse 128 in 32 steps' 64
    jq -se 'map(select(.peer)) | length > 3 and
        all((.tokens_per_s / .peer_tokens_per_s / .peer_ratio - 1 | fabs) < 1e-9)' bench.ndjson
    grep -q -- '-t 1 -p 0 -n 128 -r 1 -o json' calls
    # without the files there are no figures, and one message for each file
    run_bench "${QUICK[@]}" --only models --dtypes bf16 --repeat 1 --threads 1 --peer nowhere \
        -o alone.ndjson 2> said
    jq -se 'map(select(.peer)) | length == 0' alone.ndjson
    [ "$(grep -c 'tiny-llama.bf16.gguf: no such file' said)" -eq 1 ]
}

@test "--clock cpu: times are processor time, in llama.cpp's tools too" {
    [ "$(nm -D "$BENCH/bench" | grep -c __asan)" -eq 0 ] ||
        skip "AddressSanitizer must be loaded before the library that replaces the clock"
    mkdir bin peer
    cat > bin/llama-bench <<'EOF'
#!/bin/sh
# the clock of a process that just began must be near zero
[ "$(date +%s)" -lt 1000 ] && echo '[ { "avg_ts": 12.5 } ]'
EOF
    chmod +x bin/*
    touch peer/tiny-llama.bf16.gguf
    PATH=$PWD/bin:$PATH run_bench "${QUICK[@]}" --only models --jobs decode --dtypes bf16 \
        --repeat 2 --threads 1 --peer peer --clock cpu -o bench.ndjson
    conforms bench.ndjson
    jq -se 'map(select(.work)) | length == 1 and all(.clock == "cpu" and .took_ns > 0 and
        .peer_tokens_per_s == 12.5 and (.turn_ratios | length) == 2)' bench.ndjson
}

@test "a user's peer: its output is joined by work, model and dtype" {
    cat > told <<'EOF'
{"work": "prefill 128", "dtype": "int8", "tokens_per_s": 1}
{"work": "prefill 128", "model": "tiny-llama", "tokens_per_s": 500, "peer": "theirs"}
{"work": "full 1 x 64, head of 32", "tokens_per_s": 250.5}
EOF
    bench() {
        run_bench "${QUICK[@]}" --only models --dtypes bf16 --repeat 1 --threads 1 \
            --point 0.01 --jobs prefill,full --peer-command "$1" -o bench.ndjson
    }
    bench 'cat told'
    conforms bench.ndjson
    jq -se 'map(select(.kind == "roofline" and .peer) | {work, peer, peer_tokens_per_s}) == [
        {work: "prefill 128", peer: "theirs", peer_tokens_per_s: 500},
        {work: "full 1 x 64, head of 32", peer: "peer", peer_tokens_per_s: 250.5}]' bench.ndjson
    jq -se 'map(select(.peer_tokens_per_s)) | length == 2 and
        all((.tokens_per_s / .peer_tokens_per_s / .peer_ratio - 1 | fabs) < 1e-9)' bench.ndjson
    # the lines of the peer are kept; a work that we measured too gets the ratio of the rates
    jq -se 'map(select(.kind == "roofline" and .peer)) as $ours | map(select(.kind == "peer")) |
        map(.tokens_per_s) == [1, 500, 250.5] and .[0].peer_ratio == null and
        (.[0].peer_ratio_reason | contains("no such work")) and
        .[1].peer_ratio == $ours[0].peer_ratio and .[2].model == "tiny-llada"' bench.ndjson
    # variables of the environment tell the peer the device, the shapes, the formats and the jobs
    run_bench --only peer --shapes tiny --dtypes bf16 --repeat 1 --threads 1 \
        --jobs prefill,full -o bench.ndjson --peer-command \
        'set -- $BENCH_DEVICE $BENCH_SHAPES $BENCH_DTYPES $BENCH_JOBS $BENCH_THREADS $BENCH_REPEAT
        echo "{\"work\":\"$*\",\"tokens_per_s\":1}"'
    jq -se 'any(.work == "cpu tiny bf16 prefill,full 1 1")' bench.ndjson
}

@test "a user's peer runs after each of our runs, and the median of its runs counts" {
    # the peer gives its list and three turns, then fails in the fourth turn
    cat > engine <<'EOF'
echo "${BENCH_WORK-all} ${BENCH_MODEL-} ${BENCH_DTYPE-} $BENCH_REPEAT" >> asked
set -- 999 100 300 200
shift $(($(wc -l < asked) - 1)) || exit 3
[ $# -gt 0 ] || exit 3
echo "{\"work\":\"${BENCH_WORK-WORK}\",\"tokens_per_s\":$1,\"turns\":[1],\"met\":0}"
EOF
    bench() { # WORK REPEAT JOBS
        rm -f asked
        sed "s/WORK}/$1}/" engine > engine.sh
        run_bench "${QUICK[@]}" --only models --dtypes bf16 --threads 1 --point 0.01 \
            --repeat "$2" --jobs "$3" --peer-command 'sh engine.sh' -o bench.ndjson 2> said
        conforms bench.ndjson
    }
    bench 'prefill 128' 3 prefill
    [ "$(cat asked)" = 'all   3
prefill 128 tiny-llama bf16 1
prefill 128 tiny-llama bf16 1
prefill 128 tiny-llama bf16 1' ]
    jq -se 'map(select(.kind == "roofline" and .peer)) as $ours | ($ours | length == 1) and
        $ours[0].peer_tokens_per_s == 200 and (map(select(.kind == "peer")) | length == 1 and
        .[0].tokens_per_s == 200 and .[0].peer_ratio == $ours[0].peer_ratio)' bench.ndjson
    bench 'prefill 128' 6 prefill # it is not asked again
    [ "$(wc -l < asked)" -eq 5 ]
    [ "$(grep '^bench: peer' said)" = \
        'bench: peer sh engine.sh: exit code 3; its column stays empty' ]
    jq -se 'map(select(.peer or .kind == "peer")) == [] and (map(select(.kind == "error")) |
        length == 1) and (.[-1] | .failed == 1 and .status == "ok")' bench.ndjson
    bench 'full 1 x 64, head of 32' 2 full # single passes, too
    [ "$(wc -l < asked)" -eq 3 ]
    jq -se 'map(select(.kind == "roofline" and .peer) | .peer_tokens_per_s) == [200]' bench.ndjson
    sed -i 's/${BENCH_WORK-WORK}/prefill 128/' engine # of something else than it is asked for
    bench - 2 prefill,decode
    jq -se 'map(select(.peer_tokens_per_s)) | length == 1' bench.ndjson
    sed -i 's/"turns/"model\\":\\"${BENCH_MODEL+other}${BENCH_MODEL-tiny-llama}\\",\\"turns/' engine
    bench - 2 prefill
    grep -q '^bench: peer sh engine.sh: it printed no line about "prefill 128" when only' said
}

@test "the example in data/peers is valid output of a peer" {
    run_bench --only peer --peer-command "cat '$ROOT/data/peers/example.ndjson'" -o told
    conforms told
    jq -se 'map(select(.kind == "peer") | .work) | length == 3 and .[0] == "prefill 512"' told
}

@test "a peer's command that fails is named once, and its column stays empty" {
    fails() { # COMMAND SAID [FLAGS...]
        local command=$1 said=$2 status=0
        shift 2
        "$BENCH/bench" --only peer "$@" --peer-command "$command" -o told 2> said || status=$?
        [ "$status" -eq 1 ]
        [ "$(grep '^bench: ' said)" = "bench: peer $command: $said; its column stays empty" ]
        conforms told
        jq -se --arg said "$said" '(map(select(.kind == "error") | .message) | length == 1 and
            (.[0] | endswith($said))) and map(select(.peer)) == [] and .[-1].failed == 1' told
    }
    good='{"work":"prefill 128","tokens_per_s":500}'
    fails "echo '$good'; exit 3" 'exit code 3'
    fails "echo '$good'; kill -ABRT \$\$" 'signal 6 (Aborted)'
    fails "sh -c 'kill -SEGV \$\$'; exit \$?" 'signal 11 (Segmentation fault)'
    fails './not-there' 'there is no such program (exit code 127)'
    fails "echo '$good'; sleep 60" 'still running after 0.2 s' --peer-limit 0.2
    fails "echo '$good'; echo no record" \
        'line 2: expected a JSON object with work and tokens_per_s, got no record'
    fails 'echo "{\"work\":0,\"tokens_per_s\":1}"' \
        'line 1: expected a JSON object with work and tokens_per_s, got {"work":0,"tokens_per_s":1}'
    fails true 'it printed nothing'
    # the other works continue
    run_bench "${QUICK[@]}" --only models --dtypes bf16 --repeat 1 --threads 1 --jobs prefill \
        --peer-command "echo '$good'; exit 3" -o bench.ndjson 2> said
    [ "$(grep -c '^bench: peer ' said)" -eq 1 ]
    jq -se 'map(select(.peer)) == [] and (map(select(.took_ns)) | length > 0) and
        (.[-1] | .status == "ok" and .failed == 1)' bench.ndjson
    # a signal to bench ends the peer too; this does not count as a failure of the peer
    "$BENCH/bench" --only peer --peer-command 'sleep 60' -o told 2> said &
    sleep 0.5
    kill -TERM $!
    status=0
    wait $! || status=$?
    [ "$status" -eq 143 ] && [ "$(cat said)" = 'bench: stopped by signal 15' ]
    jq -se 'length == 2 and .[1].status == "interrupted"' told
}

@test "a tool of llama.cpp that fails is named once, not for each run" {
    mkdir bin peer
    touch peer/tiny-{llama,llada}.{f32,bf16}.gguf
    printf '#!/bin/sh\necho "$*" >> calls\nkill -SEGV $$\n' > bin/llama-bench
    printf '#!/bin/sh\nsleep 60\n' > bin/llama-batched-bench
    printf '#!/bin/sh\necho rubbish\n' > bin/llama-diffusion-cli
    chmod +x bin/*
    bench() {
        rm -f calls
        PATH=$PWD/bin:$PATH run_bench "${QUICK[@]}" --only models --repeat 2 --threads 1 \
            --peer peer --peer-limit 0.2 "$@" -o bench.ndjson 2> said
        conforms bench.ndjson
        jq -se 'map(select(.peer)) == [] and .[-1].status == "ok"' bench.ndjson
    }
    bench --dtypes bf16 --jobs prefill,batch,diffuse
    [ "$(wc -l < calls)" -eq 1 ]
    [ "$(grep '^bench: peer ' said)" = "bench: peer llama-bench of peer/tiny-llama.bf16.gguf: $(:
        )signal 11 (Segmentation fault); its column stays empty
bench: peer llama-batched-bench of peer/tiny-llama.bf16.gguf: $(:
        )still running after 0.2 s; its column stays empty
bench: peer llama-diffusion-cli of peer/tiny-llada.bf16.gguf: $(:
        )it printed no rate (run it by hand to see why); its column stays empty" ]
    jq -se '(map(select(.kind == "error")) | length == 3) and .[-1].failed == 3' bench.ndjson
    # a missing tool is missing for all files; a tool that crashes may read another file
    rm bin/llama-batched-bench
    bench --dtypes f32,bf16 --jobs prefill,batch --repeat 1
    [ "$(wc -l < calls)" -eq 2 ]
    [ "$(grep -c 'peer llama-batched-bench: there is no such program' said)" -eq 1 ]
}

@test "tools over streams: rates, shares and memory are measured; a slow tool names its limit" {
    command -v gnuplot > /dev/null || skip "no gnuplot"
    export TMPDIR=$PWD/tmp
    mkdir tmp
    run_bench --only tools --bin "${BIN:-$ROOT/build/bin}" --stream 300K --repeat 1 \
        -o tools.ndjson 2> said
    conforms tools.ndjson
    jq -se 'map(select(.kind == "tool")) | map(.tool) ==
        ["measure", "score-exact", "score-text", "report", "plot", "pareto", "compare"] and all(
        .bytes >= 300 * 1024 and .bytes < 310 * 1024 and .records > 50 and
        (.bytes * 1e9 / .cpu_ns / .bytes_per_cpu_s - 1 | fabs) < 1e-9 and
        (.read_ratio + .hash_ratio + .parse_ratio + .work_ratio - 1 | fabs) < 1e-9 and
        (.limit != null) == (.bytes_per_cpu_s < 40e6))' tools.ndjson
    grep -q '^score-text .* MB/s a core, .* MB resident.*: read .* hash .* parse .* work ' said
    [ -z "$(ls tmp)" ]
    # a tool that fails is an error, and the others are measured
    mkdir bin
    ln -s "${BIN:-$ROOT/build/bin}"/{measure,score-exact,score-text,plot,pareto,compare} bin
    run_bench --only tools --bin bin --stream 30K --repeat 1 -o tools.ndjson
    jq -se '(map(select(.kind == "tool")) | length == 6) and
        (map(select(.kind == "error") | .message)[0] | contains("report over"))' tools.ndjson
    run "$BENCH/bench" --only tools
    [ "$status" -eq 64 ]
}

# Tests the jobs of passes, of memory and of loading, on the host and on a device.
check_jobs() { # FILE
    conforms "$1"
    [ "$(jq -r 'select(.work) | .work' "$1" | sort)" = "block 32 after 62
decode 8 after 8, batch 1
decode 8 after 8, batch 32
decode step and its pass
full 1 x 16, head of 16
full 1 x 16, head of all
full 1 x 22, head of 22
full 1 x 22, head of all
full 1 x 64, head of 32
full 1 x 64, head of all
full 1 x 78, head of 32
full 1 x 78, head of all
full 32 x 16, head of 16
full 32 x 16, head of all
full 8 x 64, head of 32
full 8 x 64, head of all
load
memory of 64 after 64
parts of decode after 12
parts of full 1 x 16" ]
    # if each of the 7 parts took as long as the pass, parts_fraction would be 7
    jq -se 'map(select(.parts_fraction)) | length == 2 and all([.rest_ns, .head_ns, .qkv_ns,
        .attention_ns, .gated_ns, .out_ns, .down_ns] as $part | ($part | all(. > 0)) and
        (($part | add) / .pass_ns / .parts_fraction - 1 | fabs) < 1e-9 and
        .parts_fraction < 3)' "$1"
    # the tokens of a full pass are its rows; their rate follows from the time of the pass
    jq -se 'map(select(.rows and .work)) | length == 13 and
        all((.rows * 1e9 / .took_ns / .tokens_per_s - 1 | fabs) < 1e-9)' "$1"
    jq -se 'map(select(.work == "full 8 x 64, head of all"))[0].rows == 512' "$1"
    # more answers are more work, of the head and of the last layer: 3 x 64 x 160
    jq -se '[.[] | select(.work // "" | startswith("full 8 x 64")) | .flops_per_s * .took_ns / 1e9]
        | (.[1] - .[0] - 2 * 8 * 32 * 64 * (512 + 3 * 160) | fabs) < 1' "$1"
    jq -se 'map(select(.outside_pass_fraction))[0] |
        (1 - .pass_ns / .step_ns - .outside_pass_fraction | fabs) < 1e-9 and
        (1 - .pass_bytes * 1e9 / .ceiling_bytes_per_s / .pass_ns - .beyond_bytes_fraction | fabs)
            < 1e-9' "$1"
    # two layers of 64 x 64 (2), 64 x 32 (2), 64 x 160 (3), head 512 x 64; 13 keys and values of 32
    jq -se 'map(select(.pass_bytes))[0].pass_bytes == 2 * (2 * (64 * 64 * 2 + 64 * 32 * 2 +
        64 * 160 * 3) + 512 * 64) + 2 * 2 * 2 * 32 * 13' "$1"
    jq -se 'map(select(.reserved_peak_bytes))[0] | .requested_peak_bytes <= .allocated_peak_bytes
        and .allocated_peak_bytes <= .reserved_peak_bytes and .requested_peak_bytes > 2e5' "$1"
    jq -se 'map(select(.work == "load"))[0] | .load_bytes_per_s == null and
        (.load_bytes_per_s_reason | contains("--model"))' "$1"
}
JOBS=after,full,block,parts,gap,memory,load

@test "passes, gaps, memory and loading are measured on the host" {
    run_bench "${QUICK[@]}" --only models --jobs $JOBS --dtypes bf16 --repeat 1 --threads 1 \
        --point 0.01 -o bench.ndjson
    check_jobs bench.ndjson
    run_bench "${QUICK[@]}" --only models --jobs load --dtypes f32 --threads 1 \
        --model "$ROOT/data/models/llama-demo" -o load.ndjson
    conforms load.ndjson
    jq -se 'map(select(.work == "load"))[0] | .model == "llama-demo" and .weights_bytes > 1e6 and
        (.weights_bytes / .load_ns * 1e9 / .load_bytes_per_s - 1 | fabs) < 1e-9' load.ndjson
}

@test "a device is measured under its own ceilings" {
    export CROSSOVER_CUDA=$BENCH/../libcrossover-cuda.so
    [ -e "$CROSSOVER_CUDA" ] || skip "no C++ compiler, no emulated device"
    run_bench --device cuda --only ceilings,kernels,models --jobs $JOBS --shapes tiny \
        --dtypes bf16 --repeat 1 --point 0.003 -o bench.ndjson
    check_jobs bench.ndjson
    jq -se 'map(select(.kind == "roofline" or .kind == "bench")) | all(.device == "cuda" and
        .device_name == "emulated device (host)" and .isa == "sm_90" and (has("threads") | not))' \
        bench.ndjson
    jq -se 'map(select(.ceiling)) | map(.unit) == ["f32", "bf16", "int8"] and
        all(.flops_per_s > 0 and .bytes_per_s > 0) and (.[1] | .nominal_flops_per_s == null and
        (.nominal_flops_per_s_reason | contains("driver")) and (has("remark") | not)) and
        (.[2] | .name + .remark | test("^LLM.int8.*outliers"))' bench.ndjson
    [ "$(jq -s 'map(.kernel // empty) | unique | join(" ")' bench.ndjson)" = \
        '"attention gated head matmul qkv"' ]
    # a device has kernels for fp8, too; it measures more rows, and what the other network has
    run_bench --device cuda --only kernels --shapes tiny --dtypes fp8 --point 0.003 \
        -o fp8.ndjson
    jq -se 'map(select(.kernel)) | length == 41 and all(.dtype == "fp8") and
        (map(select(.kernel == "qkv")) | map(.rows) == ([1, 8, 32, 64, 128, 256, 512] | . + .)) and
        ([.[] | select(.kernel == "qkv") | .name] | any(contains("128 x 64")) and
            any(contains("192 x 64")))' fp8.ndjson
    # a model that does not fit is recorded, and the others continue
    EMULATE_MEMORY=6000000 run_bench --device cuda --only kernels,models --jobs block \
        --shapes tiny --dtypes bf16 --point 0.003 -o short.ndjson
    conforms short.ndjson
    jq -se 'map(select(.kind == "error")) | length == 1 and
        (.[0].message | contains("no memory"))' short.ndjson
    jq -se 'map(select(.work)) | length == 1' short.ndjson
}

@test "without a device bench prints one line, exits with 69 and writes no file" {
    CROSSOVER_CUDA=$PWD/none.so run "$BENCH/bench" --device cuda -o bench.ndjson
    [ "$status" -eq 69 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == 'bench: --device cuda: '*none.so* ]]
    [ ! -e bench.ndjson ]
    run "$BENCH/bench" --device tpu
    [ "$status" -eq 64 ]
}

@test "a bf16 ceiling far below the data sheet of the card gets a remark" {
    export CROSSOVER_CUDA=$BENCH/../libcrossover-cuda.so
    [ -e "$CROSSOVER_CUDA" ] || skip "no C++ compiler, no emulated device"
    mkdir driver
    ${CC:-cc} -shared -fPIC -o driver/libcuda.so.1 "$ROOT/tests/fixtures/preload/cuda.c" ||
        skip "no compiler"
    card() { # NAME=VALUE...
        env LD_LIBRARY_PATH=driver "$@" "$BENCH/bench" --device cuda --only ceilings \
            --point 0.003 -o card.ndjson 2> said
        conforms card.ndjson
        jq -s 'map(select(.unit == "bf16"))[0] | del(.name)' card.ndjson > bf16
    }
    card CUDA_SMS=132 CUDA_KHZ=1830000
    jq -e '(.nominal_flops_per_s / 989.43e12 - 1 | fabs) < 1e-5 and
        (.remark | startswith("0 % of 132 multiprocessors x 1830 MHz x 4096 flop"))' bf16
    grep -q '^bench: bf16 ceiling: 0 % of 132' said
    card CUDA_SMS=1 CUDA_KHZ=1
    jq -e '.nominal_flops_per_s == 4096e3 and (has("remark") | not)' bf16
    for lacks in Id Attribute; do
        card CUDA_SMS=132 CUDA_KHZ=1830000 CUDA_LACKS=$lacks
        jq -e '.nominal_flops_per_s == null and (has("remark") | not)' bf16
    done
}

@test "a signal ends bench; it keeps its records and says that it was interrupted" {
    "$BENCH/bench" "${QUICK[@]}" --only kernels,models --dtypes f32 --threads 1 --point 0.2 \
        -o cut.ndjson 2> said &
    until [ "$(grep -c ' of ' said)" -ge 2 ]; do sleep 0.05; done
    kill -TERM $!
    status=0
    wait $! || status=$?
    [ "$status" -eq 143 ]
    [ "$(tail -n 1 said)" = 'bench: stopped by signal 15' ]
    conforms cut.ndjson
    jq -se '.[-1] | .kind == "end" and .status == "interrupted"' cut.ndjson
    jq -se 'map(select(.took_ns)) | length >= 2 and length < 15' cut.ndjson
    [ "$(jq -s '.[-1].records' cut.ndjson)" -eq $(($(wc -l < cut.ndjson) - 2)) ]
    [ -z "$(ls -A | grep tmp)" ]
    # an error after the first point keeps the records; before it there are none
    run "$BENCH/bench" "${QUICK[@]}" --only models --jobs prefill,load \
        --dtypes f32,bf16 --repeat 1 --threads 1 --model nowhere -o failed.ndjson
    [ "$status" -eq 66 ]
    jq -se '.[-1].status == "failed" and (map(select(.took_ns)) | length) > 0' failed.ndjson
    run "$BENCH/bench" "${QUICK[@]}" --only models --jobs load --threads 1 --model nowhere \
        -o no.ndjson
    [ "$status" -eq 66 ] && [ ! -e no.ndjson ]
}

@test "the goals of a GPU stand beside what was measured" {
    goals=$ROOT/data/gpu-goals.json
    cat > bench.ndjson <<'EOF'
{"model":"llama3-8b","dtype":"bf16","work":"decode 128 after 128, batch 1","tokens_per_s":251.26,
"ceiling_fraction":0.87,"peer_ratio":4.2}
{"model":"llama3-8b","dtype":"int8","work":"decode 128 after 128, batch 1","tokens_per_s":390}
{"model":"llama3-8b","dtype":"fp8","work":"decode 128 after 128, batch 1","tokens_per_s":410}
{"model":"llada-8b","dtype":"bf16","work":"block 32 after 1000","took_ns":4600000,"peer_ratio":0.9}
{"dtype":"bf16","work":"load","load_bytes_per_s":null,"load_bytes_per_s_reason":"no checkpoint"}
EOF
    goals()
    {
        jq -nr --slurpfile goals "$goals" "$@" -f "$ROOT/pipelines/experiment/gpu/goals.jq" \
            bench.ndjson
    }
    goals > table
    [ "$(wc -l < table)" -eq "$(jq '.goals | length' "$goals")" ]
    line() { grep -qE "^$1 +$2\$" table; }
    line met 'LLaMA 3 8B bf16 decode, batch 1, prompt 128 +>= 240 +251\.3 tokens/s'
    line missed '  of what copy bandwidth allows +>= 90 +87 %'
    line met 'LLaMA 3 8B int8 or fp8 .* >= 400 +410 tokens/s'
    line missed 'LLaDA 8B step over a 32-row block.* <= 4.5 +4\.6 ms'
    line missed 'bf16, the least ratio to the peer +>= 1 +0\.9 x'
    line 'not measured' 'bf16 weights from page cache .* no checkpoint'
    line 'not measured' 'the same at batch 32 +>= 6000'
    # launch gaps have a goal; the row that bounds them has no goal
    cat >> bench.ndjson <<'EOF'
{"model":"llama3-8b","dtype":"bf16","work":"decode step and its pass",
"outside_pass_fraction":0.021,"beyond_bytes_fraction":0.085}
{"ceiling":true,"unit":"bf16","remark":"4 % of it"}
{"ceiling":true,"unit":"int8","remark":"as a whole"}
{"model":"llada-8b","dtype":"bf16","work":"full 1 x 356, head of 32","tokens_per_s":900}
EOF
    cat > told <<'EOF'
{"work":"full 1 x 356, head of 32","model":"llama3-8b","tokens_per_s":1}
{"work":"full 1 x 356, head of 32","model":"llada-8b","tokens_per_s":600}
EOF
    goals --slurpfile peer told > table
    line met 'launch gaps: decode step outside its pass, .* <= 3 +2\.1 % of a step'
    line - ' and in the pass at most .* 8\.5 % of the pass'
    line met 'LLaDA 8B bf16 step of 356 rows, against the peer +>= 1.3 +1\.5 x'
    [ "$(grep -c '^IN DOUBT' table)" -eq 1 ]
    [ "$(head -n 1 table)" = 'IN DOUBT: bf16 ceiling: 4 % of it' ]
}

@test "write-checkpoint: the files of a drawn model give the same model" {
    echo '{"id":"p","prompt_ids":[72,5,9]}' > prompt
    bin=${BIN:-$ROOT/build/bin}
    for model in tiny-llama tiny-llada; do
        "$BENCH/write-checkpoint" --shape $model made/$model
        flags=(gen-llama --max-new 8 --ignore-eos)
        [ $model = tiny-llama ] || flags=(gen-llada --gen-length 8 --steps 4)
        for from in "synth:$model" "made/$model"; do
            "$bin/${flags[0]}" "${flags[@]:1}" -m "$from" --dtype bf16 --device cpu --no-meta -q \
                prompt | jq -c .token_ids > "ids-${from%%[:/]*}"
        done
        [ -s ids-made ] && cmp ids-made ids-synth
    done
    run "$BENCH/write-checkpoint" --shape tiny made/none
    [ "$status" -ne 0 ] && [ ! -e made/none ]
}

@test "make bench: one file of the peer stands beside nf4 and q4" {
    mkdir bin && ln -s /bin/true bin/llama-bench
    PATH="$PWD/bin:$PATH" make -n -C "$ROOT" bench BUILD="$PWD/build" CUDA=0 BENCH=models \
        BENCH_SHAPES=small BENCH_DTYPES=bf16,int8,nf4,q4 > said
    [ "$(grep -o 'shape small-llama --type [^ ]*' said | cut -d' ' -f4 | tr '\n' ' ')" = \
        "bf16 q4_0 q8_0 " ]
}

@test "write-gguf: the header says what the file holds" {
    for t in f32 bf16 q8_0; do
        "$BENCH/write-gguf" --shape tiny-llama --type $t $t.gguf
        [ "$(head -c 4 $t.gguf)" = GGUF ]
        [ "$(od -An -tu4 -j4 -N4 $t.gguf | tr -d ' ')" = 3 ]
        # 9 tensors a layer, embedding, norm, head
        [ "$(od -An -tu8 -j8 -N8 $t.gguf | tr -d ' ')" = 21 ]
        grep -qa 'blk.1.ffn_down.weight' $t.gguf
    done
    # the weights alone: 2 layers, the embedding and a head of their own
    values=$((2 * (64*64*2 + 64*32*2 + 64*160*3) + 2*512*64)) norms=$((5 * 64))
    size() { stat -c %s "$1.gguf"; }
    [ $(($(size f32) - $(size bf16))) = $((2 * values)) ]
    [ $(((32 * ($(size f32) - $(size q8_0))))) = $((values * (4 * 32 - 34))) ]
    [ "$(size bf16)" -gt $((2 * values + 4 * norms)) ]
    "$BENCH/write-gguf" --shape tiny-llama --type bf16 again.gguf
    cmp bf16.gguf again.gguf
}

@test "write-gguf: gen-llama reads Qwen3 as drawn; the experts of a layer are one tensor" {
    BIN=$(cd "$ROOT" && realpath "${BIN:-build/bin}")
    echo '{"id": "a", "prompt_ids": [5, 6, 7, 8, 9]}' > one
    "$BENCH/write-gguf" --shape tiny-qwen3 --type f32 q.gguf
    for m in q.gguf synth:tiny-qwen3; do
        "$BIN/gen-llama" -q -m $m --no-meta --dtype f32 --max-new 12 --ignore-eos one |
            jq -c '.token_ids // empty'
    done | uniq -c > said
    [ "$(awk '{ print $1 }' said)" = 2 ]
    "$BENCH/write-gguf" --shape tiny-llada-moe m.gguf
    for name in blk.1.ffn_gate_inp blk.1.ffn_up_exps blk.1.attn_q_norm; do
        grep -qa $name.weight m.gguf
    done
    # their header: 3 dimensions, the columns first, the experts last
    for dims in 'up 64 40 7' 'down 40 64 7'; do
        name=blk.1.ffn_${dims%% *}_exps.weight
        at=$(($(grep -abo $name m.gguf | cut -d: -f1) + ${#name}))
        [ "$(od -An -tu4 -j$at -N4 m.gguf | tr -d ' ')" = 3 ]
        [ "$(od -An -tu8 -w24 -j$((at + 4)) -N24 m.gguf | xargs)" = "${dims#* }" ]
    done
}

@test "write-gguf: a type that the rows do not fit is refused, and no file is left" {
    run "$BENCH/write-gguf" --shape tiny-llama --type q4_0 x.gguf
    [ "$status" -eq 64 ]
    [[ $output == *'rows of 64 values, expected a multiple of 256'* ]]
    [ -z "$(ls)" ]
}
