#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Tests faults of the machine: limits of memory, files and stack, locales, a clock that is set back.

load faults

setup()
{
    cd "$BATS_FILE_TMPDIR" || exit 1
    T=$BATS_TEST_TMPDIR
    llama=("$BIN/gen-llama" -m llama --max-new 4 --threads 1)
    llada=("$BIN/gen-llada" -m llada --gen-length 8 --steps 4 --threads 1)
}

@test "A11: a limit of file size is an error 74, a small stack changes nothing" {
    run -74 bash -c 'ulimit -f 0; "$@" -o "$0"' "$T/big" "${llama[@]}" prompts
    [[ $output == *"File too large"* ]]
    run -74 bash -c 'ulimit -f 8; "$@" -o "$0"' "$T/big" "$BIN/write-corpus" --count 1000
    [[ $output == *"File too large"* ]]
    [ -z "$(ls -A "$T" | grep big)" ]
    for command in llama llada; do
        declare -n words=$command
        "${words[@]}" --no-meta prompts | jq -c .token_ids > "$T/want"
        bash -c 'ulimit -s 256; "$@"' - "${words[@]}" --no-meta prompts | jq -c .token_ids |
            cmp - "$T/want"
    done
}

@test "A11: a limit of memory or of descriptors is an error or changes nothing" {
    [ -z "${SAN-}" ] && ! nm -D "$BIN/gen-llama" | grep -q __asan || skip "sanitizers take memory"
    head -c 30000000 /dev/zero | tr '\0' x > "$T/long"       # one line: it is read into memory
    bash -c 'ulimit -v 80000; "$@"' - "$BIN/score-exact" -q generations > "$T/out" ||
        skip "the libraries alone take more"
    run -70 --separate-stderr bash -c 'ulimit -v 80000; "$@"' - "$BIN/score-exact" "$T/long"
    [[ $stderr == *"out of host memory"* ]]
    "${llama[@]}" --no-meta prompts > "$T/want"
    for n in 4 5 8; do
        status=0
        bash -c "ulimit -n $n; \"\$@\"" - "${llama[@]}" -o "$T/few" prompts 2> "$T/err" ||
            status=$?
        [ "$status" -eq 0 ] || { [[ $status == 66 || $status == 73 ]] &&
            grep -q "Too many open files" "$T/err" && [ ! -e "$T/few" ]; }
    done
    [ "$status" -eq 0 ]
    diff <(jq -c .token_ids "$T/want") <(jq -c 'select(.kind == "generation").token_ids' "$T/few")
}

@test "A17: locale, time zone and odd environment variables change nothing" {
    want=$("$BIN/score-exact" --no-meta generations | sha256sum)
    [ "$(TZ=Asia/Kathmandu "$BIN/score-exact" --no-meta generations | sha256sum)" = "$want" ]
    status=0
    "$BIN/score-exact" --run $'\xff\xfe' --no-meta generations > "$T/odd" 2> "$T/err" ||
        status=$?
    [ "$status" -eq 64 ] || jq -e .run "$T/odd"
    "$BIN/prep-prompts" prompts -o $'/'"$T"$'/a\xff' && head -n 1 "$T"/a* | jq -e .argv > "$T/words"
}

@test "A17: a decimal comma and a dotless i change no number and no figure" {
    mkdir "$T/locale"
    for pair in de_DE:ISO-8859-1 tr_TR:ISO-8859-9; do
        localedef -i "${pair%:*}" -f "${pair#*:}" "$T/locale/${pair%:*}" || skip "no localedef"
    done
    records=$ROOT/tests/fixtures/plot-metric.ndjson
    made() { # LOCALE
        export LOCPATH=$T/locale LC_ALL=$1 CROSSOVER_SHARE=$ROOT
        "$BIN/measure" --no-meta "$ROOT/tests/fixtures/measure-generation.ndjson"
        "${llama[@]}" --no-meta --temperature 0.5 prompts | jq -c '[.token_ids, .temperature]'
        (cd "$T" && "$BIN/plot" -q --type steps -o figure.svg "$records" && cat figure.*)
    }
    (made C) > "$T/want"
    [ "$(LOCPATH=$T/locale LC_ALL=de_DE bash -c 'printf %.1f 1,5')" = 1,5 ]    # it is in force
    for locale in de_DE tr_TR; do
        (made $locale) | cmp - "$T/want"
    done
}

@test "A19: the clock of the day may be set back during a run, and durations stay positive" {
    [ -z "${SAN-}" ] && ! nm -D "$BIN/gen-llama" | grep -q __asan || skip "sanitizers come first"
    ${CC:-cc} -shared -fPIC -o "$T/jump.so" "$ROOT/tests/fixtures/preload/jump-clock.c" ||
        skip "no shared objects here"
    "${llama[@]}" --no-meta prompts | jq -c .token_ids > "$T/want"
    LD_PRELOAD=$T/jump.so "${llama[@]}" --repeat 3 -o "$T/out" prompts
    jq -e -s '.[0].start != null and (map(select(.kind == "generation")) | length == 9 and all(
        .e2e_ns > 0 and .ttft_ns > 0 and .ttft_ns <= .e2e_ns and (.emit_ns | . == sort)))' "$T/out"
    jq -c 'select(.kind == "generation").token_ids' "$T/out" | head -n 3 | sort |
        cmp - <(sort "$T/want")
    LD_PRELOAD=$T/jump.so "$BIN/measure" --no-meta "$T/out" > "$T/metrics"
    cmp "$T/metrics" <("$BIN/measure" --no-meta "$T/out")
}
