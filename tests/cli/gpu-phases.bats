#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# The seven phases on the emulated CUDA device: the real tools under a GPU profile, on shapes
# without checkpoints. The rules run in a separate tree, so that nothing here is built again.

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    local tree=$BATS_FILE_TMPDIR
    tests/house/tree "$tree" "${BIN:-build/bin}"
    mkdir "$tree/smi"
    # nvidia-smi of a driver that knows the old names only, or both
    cat > "$tree/smi/nvidia-smi" << 'END'
#!/bin/sh
case "$*" in
*compute-apps*) printf "$SMI_APPS" ;;
*clocks_event_reasons*)
    [ -n "$SMI_NEW" ] || { echo 'Field "x" is not a valid field to query.'; exit 2; }
    echo "$SMI_STATE" ;;
*clocks_throttle_reasons*) echo "$SMI_STATE" ;;
-L) echo "GPU 0: Some GPU (UUID: GPU-1)" ;;
esac
END
    chmod +x "$tree/smi/nvidia-smi"
}

setup() {
    export CROSSOVER_CUDA=${TESTBIN:-$BATS_TEST_DIRNAME/../../build/tests}/libcrossover-cuda.so
    [ -e "$CROSSOVER_CUDA" ] || skip "no C++ compiler, so no emulated device"
    CROSSOVER_CUDA=$(realpath "$CROSSOVER_CUDA")
    cd "$BATS_FILE_TMPDIR" || exit 1
    R=results/here/h200
}

phases() { # GOAL [NAME=VALUE...]
    env -i PATH="$PATH" CROSSOVER_CUDA="$CROSSOVER_CUDA" make --no-print-directory CUDA=0 \
        CPU_LEVELS= CFLAGS=-O0 HARDEN= FP=here PROFILE=h200 LLADA=synth:tiny-llada \
        LLAMA=synth:tiny-llama PROMPTS=2 STEPS=2,4 GEN_LENGTH=8 BLOCK_LENGTH=8 LAUNCHES=2 METHODS= \
        AA_LAUNCHES=2 AA_ROUNDS=1 WARMUP=1 WARMUP_MOST=1 AGAIN=0 BUDGET_MINUTES=0 SCALE_PER_STEP=2 \
        SCALE_LENGTHS=8 SCALE_BATCH=1,2 SCALE_PROMPTS=2 SCALE_LAUNCHES=1 \
        LIKELIHOOD_PROMPTS=2 LIKELIHOOD_SAMPLES=2 LIKELIHOOD_ORDERS=1 QUANTS=fp8 \
        BASELINE_PROMPTS=2 "$@" > log 2>&1 || { tail -n 20 log; return 1; }
}

@test "phase4 on random weights gives latency and memory; quality is null with a reason" {
    phases phase4
    wanted='tiny-ll.*: [0-9.]* m\?s, peak memory [0-9.]* MB (reserved [0-9.]* MB)'
    [ "$(grep -c "$wanted, judge perplexity none, random weights$" log)" -eq 3 ]
    grep -q '^X_lat: ' log
    grep -q '^X_q by judge_ppl: none, random weights' log
    cat $R/steps/launch/*.ndjson | jq -se 'map(select(.kind == "generation")) | length > 0 and
        all(.device == "cuda" and .dtype == "bf16" and .weights_random)'
    jq -se 'map(select(.metric == "e2e_ns" or .metric == "memory_reserved_peak_bytes")) |
        length == 6 and all(.value > 0)' $R/steps/metrics.ndjson
    cat $R/steps/judge.ndjson $R/likelihood/*.ndjson | jq -se 'map(select(.kind == "quality")) |
        length > 0 and all(.value == null and .value_reason == "random weights")'
}

@test "figures show the existing records and name the GPU" {
    grep -q '^Latency against .*Quality is missing: random weights.*: emulated device (host)' \
        $R/figures/steps.txt
    grep -q '^No data: .*: random weights\.' $R/figures/pareto.txt
    grep -q 'pareto: no data, random weights' $R/figures/pareto.svg
    [ -s $R/figures/steps.png ]
    grep -q '<path' $R/figures/steps.svg
}

@test "in all seven phases devices agree, formats are compared and the page names the GPU" {
    phases all
    [ "$(tail -n 1 log)" = "$PWD/$R/report.html" ]
    grep -q '^llada: 2 of 2 generations identical on cpu and cuda (synth:tiny-llada, bf16-f32' log
    grep -q '^llama: 2 of 2 generations identical on cpu and cuda (synth:tiny-llama, bf16-f32' log
    grep -qE '^synth:tiny-llada: [0-9.e-]+ % of memory bandwidth, [0-9.e-]+ % of peak bf16$' log
    grep -qE '^synth:tiny-llama: .*; prompts [0-9.e-]+ % of peak, then [0-9.e-]+ % of' log
    grep -q "^## Share of the machine's limits$" $R/report.md
    jq -se '[.[] | select(.kind == "comparison") | .setting] | unique == ["fp8"]' \
        $R/quant/comparison.ndjson
    grep -q 'device cuda, dtype bf16, .* on emulated device (host), random weights' $R/report.md
    grep -q 'The weights are random: times and memory' $R/report.md
    run ! grep -q 'embedded demonstration models' $R/report.md
    grep -lq 'Machine: emulated device (host)\.' \
        $R/figures/{throughput,memory,ratio,roofline,drift}.txt
    build/bin/bundle -q --verify $R/crossover-h200.tar.gz > /dev/null
    phases all
    run ! grep -q '^  gen-' log
}

fit() { # NAME=VALUE...: phase1's word on a machine with that nvidia-smi
    rm -f $R/fitness.ndjson
    env -i PATH="$PWD/smi:$PATH" "$@" make --no-print-directory CUDA=0 CPU_LEVELS= CFLAGS=-O0 \
        HARDEN= FP=here \
        PROFILE=h200 LLADA=synth:tiny-llada LLAMA=synth:tiny-llama $R/fitness.ndjson > log
    cat $R/fitness.ndjson
}

@test "the fitness check finds processes, used memory and lowered clocks of the GPU" {
    cool='NVIDIA H200, 580.82, 31, 3, 143771, 345, 1980, 0x0000000000000001'
    for new in 1 ''; do
        fit SMI_NEW=$new SMI_STATE="$cool" | jq -e '.gpu.name == "NVIDIA H200" and
            .gpu.sm_max_mhz == 1980 and .gpu.lowered == [] and (.reasons | any(test("GPU")) | not)'
    done
    grep -q 'NVIDIA H200 at 31' log
    fit SMI_STATE="$cool" SMI_APPS='71\n72\n' |
        jq -e '.fit == false and (.reasons | any(. == "other processes on the GPU: 71 72"))'
    fit SMI_STATE="${cool%0x*}0x00000000000000ec" | jq -e '.gpu.lowered ==
        ["hw_slowdown", "sw_thermal", "hw_thermal", "power_brake"] and (.reasons |
        any(. == "clocks of the GPU are lowered: hw_slowdown sw_thermal hw_thermal power_brake"))'
    fit SMI_STATE="${cool%0x*}0x0000000000000004" | jq -e '.gpu.lowered == []'
    fit SMI_STATE="${cool/ 3,/ 2048,}" |
        jq -e '.reasons | any(. == "2048 MiB of the GPU are in use")'
    fit SMI_STATE="Old GPU, 470.1, [N/A], [N/A], [N/A], [N/A], [N/A], [N/A]" |
        jq -e '.gpu.temperature_c == null and .gpu.lowered == null'
}

value() { # PROFILE VARIABLE [NAME=VALUE...]
    env -i PATH="$PATH" make -s CUDA=0 HARDEN= FP=here PROFILE="$1" "print-$2" "${@:3}"
}

@test "profiles have the settings common to all cards, and the limits of each card" {
    for p in h200 h100 a100 rtx4090; do
        [[ "$(value $p GEN_FLAGS)" = "--device cuda --dtype bf16" ]]
        [ "$(value $p WARMUP)" -ge 2 ]
        [ "$(value $p BASELINE_DEVICES)" = "cpu cuda" ]
        [ "$(value $p BASELINE_LLADA LLADA=synth:llada-8b)" = synth:llada-1b ]
        [ "$(value $p BASELINE_LLAMA LLAMA=org/name)" = org/name ]
        [ "$(value $p STEPS STEPS=3)" = 3 ]
    done
    [ "$(value h200 QUANTS)" = "int8 nf4 fp8" ]
    [ "$(value a100 QUANTS)" = "int8 nf4" ]
    [[ ",$(value rtx4090 SCALE_LENGTHS)," != *,2048,* ]]
}
