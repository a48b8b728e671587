#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Interrupted work continues: the final file equals that of an uninterrupted run, except for times.
load conforms

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    . tests/reference/build.sh
    F=$BATS_FILE_TMPDIR
    for arch in llama llada; do
        "$MAKE_CHECKPOINT" --arch $arch --dtype BF16 --width 64 --heads 2 --ffn 128 "$F/$arch"
    done
    for i in $(seq 12); do
        echo "{\"id\":\"p$i\",\"prompt_ids\":[72,$i,5,$((9 * i))]}"
    done > "$F/prompts"
}

setup() {
    set -o pipefail
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    BIN=$(cd "${BIN:-build/bin}" && pwd)
    SUMS=$(cd "${TESTBIN:-build/tests}" && pwd)/fixtures/sums
    export CROSSOVER_CUDA
    CROSSOVER_CUDA=$PWD/${TESTBIN:-build/tests}/libcrossover-cuda.so
    [[ ${TESTBIN:-} != /* ]] || CROSSOVER_CUDA=$TESTBIN/libcrossover-cuda.so
    F=$BATS_FILE_TMPDIR
    cd "$BATS_TEST_TMPDIR" || exit 1
    LLAMA_GEN=("$BIN/gen-llama" -m "$F/llama" --device cpu --threads 1 --max-new 5 --ignore-eos
               --temperature 1 --batch 2,3 -o out)
    LLADA_GEN=("$BIN/gen-llada" -m "$F/llada" --device cpu --threads 1 --gen-length 8 --steps 4
               --batch 5 -o out)
}

# Prints a stream without members that differ between runs: times, peak memory, and hashes of these.
plain() {
    sed -E 's/"[a-z0-9_]*_ns":(\[[^]]*\]|[^],}]*),?//g; s/,\}/}/g' "$1" |
        jq -c 'del(.start, .argv, .memory, .sha256, .resumed, .host, .tainted, .warmup_steady) |
            select(.kind != "fitness")'
}

ends() { # CODE PID: a process that was started with & ends with the code
    local status=0
    wait "$2" 2>> ended || status=$?
    [ "$status" -eq "$1" ]
}

sound() { # FILE: the end record fits what is before it
    "$BIN/measure" "$1" > sound.out
}

# from N BYTES: makes what a process leaves that was killed after N records and BYTES of the next
# one
from() {
    [ whole.sums -nt whole ] || "$SUMS" whole > whole.sums
    head -n $(($1 + 1)) whole > .out.tmp
    head -n $(($1 + 2)) whole.sums > .out.tmp.sha256
    sed -n $(($1 + 2))p whole > next
    head -c "$2" next >> .out.tmp
}

same_as_whole() {
    [ whole.plain -nt whole ] || plain whole > whole.plain
    cmp <(plain out) whole.plain
    [ ! -e .out.tmp ] && [ ! -e .out.tmp.sha256 ]
}

@test "A13: a generator that is killed after any record or partial line continues" {
    for gen in LLAMA_GEN LLADA_GEN; do
        local -n words=$gen
        "${words[@]}" "$F/prompts" 2> err
        [ ! -s err ]
        mv out whole
        records=$(($(wc -l < whole) - 2))
        for n in $(seq 0 "$records"); do
            from "$n" $((n * 7 % 50))
            run -0 --separate-stderr "${words[@]}" "$F/prompts"
            same_as_whole
            sound out
            [ "$n" -eq 0 ] && [ -z "$stderr" ] && continue
            [ "${#stderr_lines[@]}" -eq 1 ]
            [[ $stderr == *"out: goes on after $n records of an earlier process"* ]]
            [ $((n * 7 % 50)) -eq 0 ] || [[ $stderr == *"an incomplete line of "* ]]
            [ "$n" -lt 5 ] || tail -n 1 out | jq -e .resumed
        done
        # kept records were not made again: their times are unchanged
        from 6 0
        "${words[@]}" -q "$F/prompts"
        cmp <(sed -n 2,6p out) <(sed -n 2,6p whole)
    done
}

@test "A13: repeated kill -9 still gives a complete run and leaves no lock" {
    # enough records that a process still works when it is killed
    for i in $(seq 6); do jq -c --arg i "$i" '.id += "-" + $i' "$F/prompts"; done > many
    words=("$BIN/gen-llama" -m "$F/llama" --device cpu --threads 1 --max-new 400 --ignore-eos
           -o out many)
    "${words[@]}"
    mv out whole
    for n in 2 5 9; do
        "${words[@]}" &
        for _ in $(seq 3000); do
            [ ! -e .out.tmp ] || [ "$(wc -l < .out.tmp)" -le $n ] || break
            sleep 0.001
        done
        kill -KILL $!
        ends 137 $!
        [ ! -e out ]
        [ "$(wc -l < .out.tmp)" -gt $n ]
        lines=$(wc -l < .out.tmp)
        cmp <("$SUMS" .out.tmp) <(head -n "$lines" .out.tmp.sha256)
        for i in 1 2 "$lines"; do
            is=$(sed -n "${i}p" .out.tmp.sha256)
            [ "$is  -" = "$(head -n "$i" .out.tmp | sha256sum)" ]
        done
    done
    "${words[@]}" 2> err
    same_as_whole
    grep -q "goes on after [0-9]* records" err
}

@test "a killed run with a complete stream, or with zeros at the end, is continued" {
    "${LLAMA_GEN[@]}" "$F/prompts"
    mv out whole
    cp whole .out.tmp # its end is there, its name is not
    "$SUMS" whole > .out.tmp.sha256
    "${LLAMA_GEN[@]}" -q "$F/prompts"
    same_as_whole
    cmp <(head -n -1 out) <(head -n -1 whole)
    from 3 0
    head -c 4096 /dev/zero >> .out.tmp
    run -0 --separate-stderr "${LLAMA_GEN[@]}" "$F/prompts"
    [[ $stderr == *"after 3 records"*"incomplete line of 4096 bytes"* ]]
    same_as_whole
}

@test "different work starts again, and a message names the difference" {
    "${LLAMA_GEN[@]}" "$F/prompts"
    mv out whole
    anew() { # WHY COMMAND...
        from 5 0
        run -0 --separate-stderr "${@:2}"
        [ "${#stderr_lines[@]}" -eq 1 ]
        [[ $stderr == *"out: starts anew, the work file of an earlier process is not used: $1" ]]
        tail -n 1 out | jq -e 'has("resumed") | not'
    }
    anew "it is of other work (argv, seed)" "${LLAMA_GEN[@]}" --seed 3 "$F/prompts"
    anew "it is of other work (argv)" "${LLAMA_GEN[@]}" --top-k 3 "$F/prompts"
    anew "--fresh" "${LLAMA_GEN[@]}" --fresh "$F/prompts"
    same_as_whole
    cp "$F/prompts" prompts
    "${LLAMA_GEN[@]}" prompts
    mv out whole
    sed -i 's/72,1,/72,2,/' prompts
    anew "it is of other work (prompts_sha256)" "${LLAMA_GEN[@]}" prompts
    head -n 3 prompts > fewer && mv fewer prompts
    anew "it is of other work (prompts_sha256, prompts)" "${LLAMA_GEN[@]}" prompts
    cp whole .out.tmp
    sed -i 1d .out.tmp
    run -0 --separate-stderr "${LLAMA_GEN[@]}" prompts
    [[ $stderr == *"it does not begin with a meta record" ]]
    from 5 0
    run -0 --separate-stderr "${LLAMA_GEN[@]}" --no-meta prompts
    [[ $stderr == *"--no-meta" ]]
    # another verbosity does not make other work
    "${LLAMA_GEN[@]}" prompts
    mv out whole
    from 5 0
    run -0 --separate-stderr "${LLAMA_GEN[@]}" -v prompts
    [[ $stderr != *"starts anew"* ]]
}

@test "a different checkpoint with the same name is different work" {
    cp -r "$F/llama" model
    words=("$BIN/gen-llama" -m model --device cpu --max-new 5 --ignore-eos -o out "$F/prompts")
    "${words[@]}"
    mv out whole
    from 5 0
    "$MAKE_CHECKPOINT" --seed 9 --dtype BF16 --width 64 --heads 2 --ffn 128 other ||
        { cp -r model other; printf '\1' | dd of=other/model.safetensors bs=1 conv=notrunc \
            seek=$(($(stat -c %s other/model.safetensors) - 9)) status=none; }
    rm -r model
    mv other model
    run -0 --separate-stderr "${words[@]}"
    [[ $stderr == *"it is of other work (checkpoint)" ]]
}

@test "timed work starts again, because it must be one process" {
    for flags in "--warmup 1" "--repeat 2"; do
        "${LLAMA_GEN[@]}" $flags "$F/prompts"
        mv out whole
        from 8 0
        run -0 --separate-stderr "${LLAMA_GEN[@]}" $flags "$F/prompts"
        [[ $stderr == *"starts anew"*"a launch that is timed is one process"* ]]
        same_as_whole
        jq -se '[.[] | select(.kind == "generation").start_ns] | . == sort' out
    done
}

@test "F3: a damaged line before the last is refused with its number; the file stays" {
    "${LLAMA_GEN[@]}" "$F/prompts"
    mv out whole
    from 6 0
    sed -i '4s/"id"/"id/' .out.tmp
    cp .out.tmp before
    run -65 --separate-stderr "${LLAMA_GEN[@]}" "$F/prompts"
    [ "${#stderr_lines[@]}" -eq 1 ]
    [[ $stderr == *"out: line 4 of its work file is damaged"*"--fresh"* ]]
    cmp before .out.tmp
    [ ! -e out ]
    # whole lines that this run did not write: a line twice, or a missing line
    for edit in 4p 4d; do
        from 6 0
        sed -i "$edit" .out.tmp
        cp .out.tmp before
        run -65 --separate-stderr "${LLAMA_GEN[@]}" "$F/prompts"
        [[ $stderr == *"out: line "[45]" of its work file was changed"*"--fresh"* ]]
        cmp before .out.tmp
        "$SUMS" .out.tmp > .out.tmp.sha256 # sums or not
        run -65 --separate-stderr "${LLAMA_GEN[@]}" "$F/prompts"
        [[ $stderr == *"has another record at the place of prompt 'p"*"--fresh"* ]]
    done
    "${LLAMA_GEN[@]}" -q --fresh "$F/prompts"
    same_as_whole
}

@test "a record whose text was altered in the work file is refused, even the last record" {
    for gen in LLAMA_GEN LLADA_GEN; do
        local -n words=$gen
        "${words[@]}" "$F/prompts"
        mv out whole
        for line in 2 4 7; do
            from 6 0
            sed -i "${line}s/\"text\":\"/&forged /" .out.tmp
            grep -q forged .out.tmp
            cp .out.tmp before
            run -65 --separate-stderr "${words[@]}" "$F/prompts"
            [ "${#stderr_lines[@]}" -eq 1 ]
            [[ $stderr == *"out: line $line of its work file was changed: the SHA-256"*"--fresh"* ]]
            cmp before .out.tmp
            [ ! -e out ]
        done
    done
}

@test "a work file without sums is not trusted; records without a sum are made again" {
    "${LLAMA_GEN[@]}" "$F/prompts"
    mv out whole
    from 6 0
    rm .out.tmp.sha256
    run -0 --separate-stderr "${LLAMA_GEN[@]}" "$F/prompts"
    [[ $stderr == *"starts anew"*".out.tmp.sha256 has no matching sum" ]]
    same_as_whole
    for cut in "head -n 5" "head -c 360" "head -c 6500"; do
        from 6 0
        $cut whole.sums > .out.tmp.sha256
        kept=$(($(wc -l < .out.tmp.sha256) - 1))
        [ $kept -le 6 ] || kept=6
        { cat .out.tmp.sha256; head -c 130 /dev/zero; } > zeros # as after a power failure
        mv zeros .out.tmp.sha256
        run -0 --separate-stderr "${LLAMA_GEN[@]}" "$F/prompts"
        [[ $stderr == *"goes on after $kept records"* ]]
        same_as_whole
    done
    from 6 0
    sed -i "3s/.*/$(printf %064d 0)/" .out.tmp.sha256 # a sum that was changed
    run -65 --separate-stderr "${LLAMA_GEN[@]}" "$F/prompts"
    [[ $stderr == *"out: line 3 of its work file was changed: the SHA-256"*"--fresh"* ]]
    # changed options in the settings file are different work
    echo '{"temperature": 0.5}' > settings
    from 6 0
    run -0 --separate-stderr "${LLAMA_GEN[@]}" --settings settings "$F/prompts"
    [[ $stderr == *"starts anew"* ]]
    mv out whole
    rm whole.sums
    from 6 0
    run -0 --separate-stderr "${LLAMA_GEN[@]}" --settings settings "$F/prompts"
    [[ $stderr == *"goes on after 6 records"* ]]
    from 6 0
    echo '{"temperature": 0.75}' > settings
    run -0 --separate-stderr "${LLAMA_GEN[@]}" --settings settings "$F/prompts"
    [[ $stderr == *"starts anew"*options* ]]
    "${LLAMA_GEN[@]}" "$F/prompts"
    mv out whole
    # a timed run is one process and needs no work file; old ones are removed
    from 6 0
    run -0 --separate-stderr "${LLAMA_GEN[@]}" --warmup 1 "$F/prompts"
    [[ $stderr == *"starts anew"* ]]
    [ "$(find . -name '.out*' | wc -l)" -eq 0 ]
}

@test "error and oom records are kept like all records, and so is the exit code" {
    { head -n 4 "$F/prompts"
      echo '{"id":"long","prompt_ids":['"$(seq -s , 0 251)"']}'
      echo '{"id":"p1","text":"twice"}'
      sed -n 5,8p "$F/prompts"; } > prompts
    for cap in 0 "$("${LLAMA_GEN[@]}" -o - --batch 1 "$F/prompts" |
        jq -s 'map(.memory.reserved_peak_bytes // 0) | max')"; do
        status=0
        "${LLAMA_GEN[@]}" --mem-cap "$cap" prompts 2> err || status=$?
        want=$status
        [ "$want" -ne 0 ]
        mv out whole
        [ "$cap" = 0 ] || grep -q '"status":"oom"' whole
        for n in 1 2 4 7 12 15; do
            from $n 9
            run -"$want" --separate-stderr "${LLAMA_GEN[@]}" --mem-cap "$cap" prompts
            same_as_whole
        done
    done
}

@test "A14: SIGTERM leaves the work file and exit code 143; the same command ends the work" {
    words=("$BIN/gen-llada" -m "$F/llada" --device cpu --threads 1 --gen-length 64 -o out
           "$F/prompts")
    "${words[@]}"
    mv out whole
    "${words[@]}" 2> err &
    for _ in $(seq 3000); do
        [ ! -e .out.tmp ] || [ "$(wc -l < .out.tmp)" -le 3 ] || break
        sleep 0.001
    done
    kill -TERM $!
    ends 143 $!
    [ ! -e out ]
    grep -q "stopped; the same command continues after [0-9]* records" err
    [ -z "$(tail -c 1 .out.tmp)" ]
    run -0 --separate-stderr "${words[@]}"
    [[ $stderr == *"goes on after "* ]]
    same_as_whole
}

@test "score-ppl goes on after any record, in every mode, with the same bytes" {
    "${LLAMA_GEN[@]}" -o gen --batch 1,4 "$F/prompts"
    { head -n 5 "$F/prompts"; echo '{"id":"none","prompt_ids":[]}'; echo '{"kind":"own","x":1}'
      sed -n 6,9p "$F/prompts"; } > texts
    while read -r mode by model input flags; do
        words=("$BIN/score-ppl" --mode "$mode" -m "$F/$model" --device cpu --threads 1 $flags
               -o out "$input")
        status=0
        "${words[@]}" 2> err || status=$?
        want=$status
        mv out whole
        records=$(($(wc -l < whole) - 2))
        [ "$records" -ge 11 ]
        for n in $(seq 0 "$by" "$records"); do
            from "$n" 20
            run -"$want" "${words[@]}"
            same_as_whole
            [ "$n" -eq 0 ] || cmp <(sed 's/,"resumed":true//' out) whole # all of it: no times
        done
    done << 'EOF'
nll 1 llama texts
elbo 3 llada texts --samples 3
kstep 4 llada texts --steps 2,4 --orders 2
EOF
}

@test "score-ppl: scored texts are not scored again; another input starts again" {
    cp "$F/prompts" texts
    words=("$BIN/score-ppl" --mode nll -m "$F/llama" --device cpu -o out)
    "${words[@]}" texts
    mv out whole
    from 7 0
    sed -i '3s/"value":[0-9.]*/"value":77.5/' .out.tmp
    run -65 "${words[@]}" texts
    [[ $output == *"line 3 of its work file was changed"* ]]
    "$SUMS" .out.tmp > .out.tmp.sha256
    run -65 "${words[@]}" texts # its ppl does not fit: it was not computed anew, and is no proof
    [[ $output == *"line 3 of its work file is not the record that belongs there"* ]]
    from 7 0
    sed -i 's/72,1,/72,2,/' texts
    run -0 --separate-stderr "${words[@]}" texts
    [[ $stderr == *"starts anew"*"it is of other work (inputs)" ]]
    "${words[@]}" < texts
    mv out whole
    from 7 0
    run -0 --separate-stderr "${words[@]}" < texts
    [[ $stderr == *"starts anew"*"an input is no regular file" ]]
}

@test "G9, G13: a lost device leaves an error record, and the next start ends the work" {
    [ -e "$CROSSOVER_CUDA" ] || skip "no C++ compiler, so no emulated device"
    fell=0 lost=0
    while read -r tool model flags; do
        words=("$BIN/$tool" -m "$F/$model" --device cuda $flags -o out "$F/prompts")
        "${words[@]}"
        mv out whole
        for call in 100 300 500 700 900; do
            rm -f out
            run --separate-stderr env EMULATE_FAIL=$call:700 "${words[@]}"
            [ "$status" -eq 0 ] && same_as_whole && continue # it was through before
            [ "$status" -eq 70 ]
            if [ -e out ]; then same_as_whole; fi # the device was lost after the last record
            [ -e .out.tmp ] || continue           # or before the first
            lost=$((lost + 1))
            tail -n 1 .out.tmp | jq -e '.kind == "error" and .code == "internal" and .fatal and
                (.where | test("kernels/cuda/[a-z_/]+[.](cu|h):[0-9]+$")) and
                (.message | contains("(700)") and contains("the device is lost"))'
            conforms .out.tmp
            records=$(jq -c 'select(.kind != "meta" and (.fatal | not))' .out.tmp | wc -l)
            run -0 --separate-stderr "${words[@]}"
            same_as_whole
            [ "$records" -eq 0 ] && continue
            [[ $stderr == *"after $records records"*", which ended with: "*"(700)"* ]]
            fell=$((fell + 1))
        done
    done << 'EOF'
gen-llama llama --max-new 4 --ignore-eos --batch 3
gen-llada llada --gen-length 4 --steps 2
score-ppl llama --mode nll
EOF
    [ "$lost" -ge 9 ] && [ "$fell" -ge 6 ]
}

@test "a self-check that finds no fault changes nothing" {
    "${LLAMA_GEN[@]}" --no-meta -o - "$F/prompts" > whole
    for every in 0 1 3 1000; do
        "${LLAMA_GEN[@]}" --no-meta -o out --self-check $every "$F/prompts"
        cmp <(plain out) <(plain whole)
    done
}
