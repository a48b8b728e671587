#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# make gpu-bench and gpu-check in parts: which parts run again, the files of an interrupted or
# failed part, and messages. The rules run in a separate tree, mostly with stand-ins for the
# programs.

setup() {
    set -o pipefail
    ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    BIN=${BIN:-$ROOT/build/bin} TESTBIN=${TESTBIN:-$ROOT/build/tests}
    T=$BATS_TEST_TMPDIR
    OUT=results/here
    mkdir -p "$T/tree/tests" "$T/tree/data" "$T/bin"
    cd "$T/tree" || exit 1
    cp -r "$ROOT"/{Makefile,config.mk,pipelines} .
    cp -r "$ROOT/tests/gpu" tests
    cp "$ROOT/data/gpu-goals.json" data
    for f in corpus models; do ln -s "$ROOT/data/$f" data; done
    ln -s "$ROOT/plots" .
    echo 1 > "$T/engine"
    # stands for a generator: it has a device unless $T/absent exists, and always gives the same
    # answers
    cat > "$T/bin/gen-llama" << 'END'
#!/bin/bash
for prompts; do :; done
[ "$prompts" != --version ] || exec echo tool
[ ! -e "${0%/*}/../absent" ] || { echo 'gen-llama: --device cuda: none here' >&2; exit 69; }
[ -f "$prompts" ] || prompts=/dev/stdin
times=$(sed -n 's/.*--repeat \([0-9]*\).*/\1/p' <<<"$*")
for _ in $(seq "${times:-1}"); do
    jq -c '{id, token_ids: [1, 2, 3], device_name: "none"}' "$prompts"
done
END
    # stands for bench: notes its flags; fails, hangs or is slow if $T/fail or $T/hang names them
    cat > "$T/bench" << 'END'
#!/bin/bash
here=${0%/*}
for out; do :; done
echo "$*" | sed 's/ --device.*//' >> "$here/calls"
put() { echo '{"kind":"roofline","name":"x","flops_per_s":1,"note":"'"$1"'"}' > "$out"; }
trap 'sleep 0.5; put cut; exit 143' TERM INT
[ ! -e "$here/hang" ] || ! grep -qf "$here/hang" <<<"$*" || while :; do sleep 0.1; done
[ ! -e "$here/fail" ] || ! grep -qf "$here/fail" <<<"$*" || { put failed; exit 70; }
put whole
END
    printf '#!/bin/bash\ncat > /dev/null\necho plot >> %s/calls\n' "$T" > "$T/bin/plot"
    chmod +x "$T/bench" "$T"/bin/*
    for t in gen-llada gen-ltm score-ppl; do ln -s gen-llama "$T/bin/$t"; done
}

m() { # ARGUMENTS... of make; the calls of bench are left in $calls, by part
    rm -f "$T/calls"
    touch "$T/calls"
    local status=0
    env -u MAKEFLAGS -u MAKELEVEL -u MAKEOVERRIDES -u BUILD make --no-print-directory CUDA=0 \
        FP=here BUILD=build BIN="$T/bin" BENCH_PROG="$T/bench" ENGINE_OBJ="$T/engine" \
        CROSSOVER_CUDA="$T/engine" "$@" || status=$?
    calls=$(sed -n 's/--\(only\|shapes\|dtypes\|jobs\) //gp' "$T/calls" | paste -sd ';')
    return $status
}
SMALL=(GPU_SHAPES=8b,1b GPU_DTYPES=bf16,int8,f32 GPU_JOBS=after,full)

@test "each part is a file, made in order; existing parts are not measured again" {
    m "${SMALL[@]}" gpu-bench > said 2>&1
    [ "$calls" = "ceilings;models 8b bf16 after,full;models 8b int8 after;models 8b int8 full;$(:
        )models 1b bf16 after,full;models 1b int8 after,full;models 8b f32 after,full;$(:
        )models 1b f32 after,full;kernels 8b bf16,int8,f32;kernels 1b bf16,int8,f32" ]
    [ "$(ls $OUT/gpu-bench/*.ndjson | xargs -n 1 basename -s .ndjson | sort | paste -sd ' ')" = \
        "1b-bf16 1b-f32 1b-int8 8b-bf16 8b-f32 8b-int8 8b-int8-more ceilings $(:
        )kernels-1b kernels-8b" ]
    # goals before the picture
    grep -n 'not measured  LLaMA 3 8B bf16 decode' said
    [ "$(tail -n 1 "$T/calls")" = plot ]
    m "${SMALL[@]}" gpu-bench > said 2>&1
    [ -z "$calls" ]
    # one more part, other settings, other code
    m "${SMALL[@]}" GPU_DTYPES=bf16,int8,nf4,f32 GPU_PARTS=models gpu-bench
    [ "$calls" = "models 8b nf4 after;models 8b nf4 full;models 1b nf4 after,full" ]
    m "${SMALL[@]}" GPU_REPEAT=5 GPU_PARTS=ceilings gpu-bench
    [ "$calls" = ceilings ]
    echo 2 > "$T/engine"
    m "${SMALL[@]}" GPU_REPEAT=5 GPU_PARTS=ceilings gpu-bench
    [ "$calls" = ceilings ]
    touch "$T/engine" # its date alone is no reason
    m "${SMALL[@]}" GPU_REPEAT=5 GPU_PARTS=ceilings gpu-bench
    [ -z "$calls" ]
    m gpu-goals > said
    grep -qx 'OF OTHER CODE: 8b-bf16.ndjson' said && ! grep -q 'CODE: ceilings' said
}

@test "a failed part stops no other, is named, and is the only one that runs again" {
    echo 'dtypes int8 --jobs after' > "$T/fail"
    run --separate-stderr m "${SMALL[@]}" GPU_SHAPES=8b gpu-bench
    [ "$status" -ne 0 ]
    [[ $stderr == *"8b-int8: ended with 70"*"Not done:"*"  8b-int8: ended with 70"* ]]
    [[ $output == *"not measured  LLaMA 3 8B bf16"* ]]
    [ "$(grep -c only "$T/calls")" -eq 6 ]
    cd $OUT/gpu-bench
    [ ! -e 8b-int8.ndjson ] && [ -e kernels-8b.ndjson ]
    [ "$(jq -r .note 8b-int8.open.ndjson)" = failed ]
    cd "$T/tree"
    rm "$T/fail"
    m "${SMALL[@]}" GPU_SHAPES=8b gpu-bench > said 2>&1
    [ "$calls" = "models 8b int8 after" ]
    ! grep -q 'Not done' said || false
    [ ! -e $OUT/gpu-bench/8b-int8.open.ndjson ]
    [ "$(jq -r .note $OUT/gpu-bench/8b-int8.ndjson)" = whole ]
}

@test "an interrupted part is not complete; the next call continues it" {
    echo 'dtypes bf16 --jobs' > "$T/hang"
    status=0
    timeout 4 env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory CUDA=0 FP=here BUILD=build \
        BIN="$T/bin" BENCH_PROG="$T/bench" ENGINE_OBJ="$T/engine" CROSSOVER_CUDA="$T/engine" \
        "${SMALL[@]}" GPU_SHAPES=8b gpu-bench > said 2>&1 || status=$?
    [ "$status" -ne 0 ]
    # make has waited for the command, and has printed the finished parts
    grep -q 'not measured  LLaMA 3 8B' said
    [ "$(jq -r .note $OUT/gpu-bench/8b-bf16.open.ndjson)" = cut ]
    [ "$(ls $OUT/gpu-bench/*.ndjson | wc -l)" -eq 2 ]
    # one part takes longer than its budget; the other parts are done
    run --separate-stderr m "${SMALL[@]}" GPU_SHAPES=8b GPU_LIMIT=1 gpu-bench
    [ "$status" -ne 0 ]
    [[ $stderr == *"Not done:"*"8b-bf16: out of time (GPU_LIMIT=1)"* ]]
    [ "$(ls $OUT/gpu-bench/*.ndjson | wc -l)" -eq 6 ]
    rm "$T/hang"
    m "${SMALL[@]}" GPU_SHAPES=8b gpu-bench
    [ "$calls" = "models 8b bf16 after,full" ]
}

@test "without a device or jq gpu-bench ends with one line; without gnuplot goals are printed" {
    touch "$T/absent"
    run --separate-stderr m gpu-bench
    [[ ${stderr_lines[0]} == *'--device cuda: none here' && ${stderr_lines[1]} == *'Error 69' ]]
    [ ! -s "$T/calls" ]
    rm "$T/absent"
    mkdir path
    ln -s /bin/* path 2> /dev/null || true
    ln -sf /usr/bin/* /usr/local/bin/* path
    rm -f path/gnuplot path/gnuplot-*
    PATH=$PWD/path m GPU_PARTS=ceilings gpu-bench > said
    grep -q 'No picture: gnuplot is not here' said && grep -q 'not measured  LLaMA 3' said
    rm -f path/jq
    PATH=$PWD/path run --separate-stderr m gpu-bench
    [[ ${stderr_lines[0]} == 'jq is needed and not here'* && ${stderr_lines[1]} == *'Error 69' ]]
    PATH=$PWD/path run --separate-stderr tests/gpu/check
    [ "$status" -eq 69 ] && [ "${#stderr_lines[@]}" -eq 1 ] && [ -z "$output" ]
}

@test "the peer is a part: it runs once and is joined with the existing records" {
    export TESTBIN # the peer's command is run by the true bench
    cat > "$T/bench" << 'END'
#!/bin/bash
[[ $* != *'--only peer'* ]] || exec "$TESTBIN/bench/bench" "$@"
for out; do :; done
echo '{"kind":"roofline","name":"x","flops_per_s":1,"model":"llama3-8b","dtype":"bf16",
  "work":"decode 128 after 128, batch 1","tokens_per_s":250,"ceiling_fraction":0.5}' > "$out"
END
    m "${SMALL[@]}" GPU_SHAPES=8b GPU_PARTS=models gpu-bench
    line='{"work":"decode 128 after 128, batch 1","tokens_per_s":50,"dtype":"bf16"}'
    m "${SMALL[@]}" GPU_SHAPES=8b GPU_PARTS=models GPU_PEER="echo 'x' >> $T/peers; echo '$line'" \
        gpu-bench > said
    grep -qE '^met           LLaMA 3 8B bf16 decode, .*against the peer +>= 4 +5 x$' said
    m "${SMALL[@]}" GPU_SHAPES=8b GPU_PARTS=models GPU_PEER="echo 'x' >> $T/peers; echo '$line'" \
        gpu-bench > said
    [ "$(cat "$T/peers")" = x ]
    # a peer that fails or prints nothing useful is named
    run --separate-stderr m "${SMALL[@]}" GPU_SHAPES=8b GPU_PARTS=models GPU_PEER='echo {}' \
        gpu-bench
    [[ "$status" -ne 0 && $stderr == *'Not done:'*'peer: ended with 1'* ]]
}

@test "gpu-check: parts add up over calls, and a part that fails runs again" {
    printf '#!/bin/sh\necho "ok 1 - a"\necho "1..1"\n' | tee "$T/test-a" > "$T/test-b"
    cat > "$T/bin/compute-sanitizer" << 'END'
#!/bin/bash
here=${0%/*}/..
echo "${@: -1}" >> "$here/calls"
[ ! -e "$here/fail" ] || [[ $2${@: -1} != $(cat "$here/fail") ]]
END
    chmod +x "$T"/test-? "$T/bin/compute-sanitizer"
    c() {
        PATH=$T/bin:$PATH m GPU_TEST_PROG="$T/test-a $T/test-b" \
            GPU_CHECK_TOOLS="$T/bin/gen-llama $T/bin/gen-llada $T/bin/score-ppl" QUICK=1 "$@" \
            gpu-check
    }
    echo "memcheck*test-b" > "$T/fail"
    run --separate-stderr c GPU_CHECK=tests,sanitize-memcheck
    [ "$status" -ne 0 ]
    [[ $output == *$'\n3 passed, 1 failed, 0 not run\n'* ]]
    [[ $stderr == *"Not done:"*"  sanitize-memcheck-test-b: ended with 1"* ]]
    jq -e '.pass == false and .machine_fingerprint == "here"' \
        $OUT/gpu-check/sanitize-memcheck-test-b.open.ndjson
    rm "$T/fail"
    c GPU_CHECK=tests,sanitize,repeat > said
    # of memcheck one, of synccheck both
    [ "$(xargs -n 1 basename < "$T/calls" | paste -sd ' ')" = "test-b test-a test-b" ]
    grep -qx '10 passed, 0 failed, 0 not run' said
    [ "$(ls $OUT/gpu-check/*.ndjson | wc -l)" -eq 6 ]
    c GPU_CHECK=tests,sanitize,repeat > said
    [ ! -s "$T/calls" ]
    grep -qx '10 passed, 0 failed, 0 not run' said
    # if there is nothing to run, a line says so, and this is no failure
    m GPU_SANITIZER= GPU_TEST_PROG= GPU_CHECK=sanitize QUICK=1 GPU_CHECK_TOOLS= gpu-check > said
    grep -qx 'sanitize: not run here' said
    grep -qx '0 passed, 0 failed, 1 not run' said
}

@test "on the emulated device a part and its goals are made, and a second call does nothing" {
    [ -e "$TESTBIN/libcrossover-cuda.so" ] || skip "no C++ compiler, no emulated device"
    e() {
        m GPU_SHAPES=tiny GPU_DTYPES=bf16 GPU_JOBS=gap GPU_PARTS=models GPU_REPEAT=1 \
            GPU_BENCH_FLAGS='--point 0.003' BIN="$BIN" BENCH_PROG="$TESTBIN/bench/bench" \
            CROSSOVER_CUDA="$TESTBIN/libcrossover-cuda.so" gpu-bench
    }
    e > said
    grep -q '^not measured  launch gaps: ' said
    jq -se 'map(.work // empty) == ["decode step and its pass"] and .[-1].status == "ok"' \
        $OUT/gpu-bench/tiny-bf16.ndjson
    [ -s $OUT/gpu-bench/goals.txt ]
    before=$(stat -c %y $OUT/gpu-bench/tiny-bf16.ndjson)
    e
    [ "$before" = "$(stat -c %y $OUT/gpu-bench/tiny-bf16.ndjson)" ]
}
