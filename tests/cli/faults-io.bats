#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Injects errors into system calls by strace. Whatever fails, there is an exit code and one line
# that says so, the final name is untouched, and no temporary file is left.

setup_file()
{
    export BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    BIN=$(cd "$BIN" && pwd)
    cd "$BATS_FILE_TMPDIR" || exit 1
    "$BIN/write-corpus" --count 40 --seed 1 -o corpus
    "$BIN/train-lm" -q --arch llama --out llama --width 16 --layers 1 --heads 2 --kv-heads 2 \
        --ffn 16 --vocab 300 --context 256 --steps 2 --rows 64 --min-len 16 --max-len 32 \
        --threads 1 corpus > loss
    head -n 2 corpus > prompts
    "$BIN/gen-llama" -m llama --max-new 4 --threads 1 prompts > generations
    if ! command -v strace > where; then
        echo "no strace" > cannot
    elif ! strace -o log -e inject=getpid:error=EIO true 2> why; then
        echo "strace may not trace here" > cannot
    elif nm -D "$BIN/measure" | grep -q __asan; then
        echo "LeakSanitizer cannot be traced" > cannot
    fi
}

setup()
{
    cd "$BATS_FILE_TMPDIR" || exit 1
    T=$BATS_TEST_TMPDIR
    [ ! -e cannot ] || skip "$(cat cannot)"
}

# The commands to try, one a line; -o FILE is appended.
commands()
{
    cat << 'END'
prep-prompts prompts
gen-llama -m llama --max-new 2 --threads 1 prompts
score-ppl -q -m llama --threads 1 generations
measure generations
write-corpus --count 3
END
}

# inject WHAT FILE COMMAND...: runs with an injection, checks that it happened, sets $status.
inject()
{
    local what=$1 file=$2
    shift 2
    echo old > "$file"
    status=0
    strace -f -o "$T/log" -e trace="${what%%:*}" -e inject="$what" "$@" -o "$file" \
        > "$T/stdout" 2> "$T/stderr" < /dev/null || status=$?
    struck=$(grep -c INJECTED "$T/log") || true
}

# fault CODE WHAT COMMAND...: tests that the injection ends the run with CODE and changes nothing;
# $kept work files are left.
fault()
{
    local code=$1 what=$2
    shift 2
    inject "$what" "$T/out" "$@"
    [ "$struck" -gt 0 ] && [ "$status" -eq "$code" ] && [ "$(cat "$T/out")" = old ] &&
        [ "$(wc -l < "$T/stderr")" -eq 1 ] &&
        [ "$(find "$T" -name '.*.tmp' | wc -l)" -eq "${kept:-0}" ] && return
    echo "$what: struck $struck, expected $code, got $status: $*"
    cat "$T/stderr" "$T/log"
    return 1
}

@test "A6: a full disk at the first, second or third write ends a tool with 74" {
    while read -r tool args; do
        for n in 1 2 3; do
            [ "$tool" = write-corpus ] && [ $n -gt 1 ] && continue
            # after a whole record, a tool that can resume leaves its work file
            kept=0
            if [ $n -eq 3 ]; then case $tool in gen-*|score-ppl) kept=1 ;; esac; fi
            fault 74 "write:error=ENOSPC:when=$n" "$BIN/$tool" $args
            grep -q "out: cannot write: No space left" "$T/stderr"
            [ $kept -eq 0 ] || {
                "$BIN/$tool" -q $args -o "$T/out"
                tail -n 1 "$T/out" | jq -e .resumed
            }
        done
    done < <(commands)
}

@test "A6: records before a write error are whole" {
    for n in 2 3; do
        strace -o "$T/log" -e inject=write:error=ENOSPC:when=$n "$BIN/measure" --no-meta \
            generations > "$T/some" 2> "$T/stderr" || status=$?
        [ "$status" -eq 74 ]
        [ "$(jq -c . "$T/some" | wc -l)" -eq $((n - 1)) ]
    done
}

@test "A12: a failed fsync, rename, ftruncate or close ends a tool with 74" {
    while read -r tool args; do
        for call in fsync rename ftruncate; do
            fault 74 "$call:error=EIO:when=1" "$BIN/$tool" $args
        done
    done < <(commands)
    # close: the call for the output follows its fsync; calls of the loader come before.
    strace -o "$T/log" "$BIN/write-corpus" --count 3 -o "$T/out"
    n=$(sed -n '1,/fsync/p' "$T/log" | grep -c '^close')
    fault 74 "close:error=EIO:when=$((n + 1))" "$BIN/write-corpus" --count 3
}

# of FILE CALL COMMAND...: prints the numbers of the calls that name the file (strace -y shows the
# name)
of()
{
    local file=$1 call=$2
    shift 2
    strace -f -y -o "$T/log" -e trace="$call" "$@" > "$T/stdout" 2> "$T/stderr" < /dev/null
    grep -E "^[0-9]+ +$call" "$T/log" | grep -n "$file" | cut -d: -f1
}

@test "A7: a read error is reported with its place" {
    while read -r tool args; do
        input=${args##* }
        for n in $(of "/$input>" read "$BIN/$tool" $args | head -n 2); do
            fault 74 "read:error=EIO:when=$n" "$BIN/$tool" $args
            grep -qE "$input: (at|read error)( at)?( byte [0-9]+)?" "$T/stderr"
        done
        [ -n "$n" ]
    done < <(commands | grep -v write-corpus)
    n=$(of "/llama/config.json>" read "$BIN/gen-llama" -m llama prompts | head -n 1)
    fault 74 "read:error=EIO:when=$n" "$BIN/gen-llama" -m llama prompts
    calls=$(of "/llama/model.safetensors>" pread64 "$BIN/gen-llama" -m llama prompts)
    [ "$(wc -w <<< "$calls")" -ge 2 ] # the length of the header, the header
    for n in $calls; do
        fault 74 "pread64:error=EIO:when=$n" "$BIN/gen-llama" -m llama prompts
        grep -q "model.safetensors: read error" "$T/stderr"
    done
}

# Counts only the calls of the thread that reads and writes the store. Earlier calls, of a
# measurement, come from other threads.
@test "a store of layers or of keys and values that fails within a pass is an error" {
    mkdir "$T/spool"
    words=("$BIN/gen-llama" -q -m llama --max-new 30 --ignore-eos --threads 1 --device-map 0
           --offload-dir "$T/spool" prompts)
    kept=1
    fault 74 "pread64:error=EIO:when=20" "${words[@]}"
    grep -q "a layer cannot be read back from $T/spool: Input/output error" "$T/stderr"
    rm "$T"/.out.tmp*
    fault 74 "pwrite64:error=ENOSPC:when=20" "${words[@]}"
    grep -q "rows of a layer cannot be written to $T/spool: No space left on device" "$T/stderr"
    "${words[@]}" -o "$T/out"
}

@test "a seek that fails in a work file is an error with its reason" {
    words=("$BIN/gen-llama" -m llama --max-new 2 --threads 1 prompts)
    inject write:error=ENOSPC:when=3 "$T/out" "${words[@]}" # leaves a record
    cp "$T/.out.tmp" "$T/work"
    cp "$T/.out.tmp.sha256" "$T/sums"
    seeks=$(of '/.out.tmp>' lseek "${words[@]}" -o "$T/out")
    [ -n "$seeks" ]
    for n in $seeks; do
        cp "$T/work" "$T/.out.tmp"
        cp "$T/sums" "$T/.out.tmp.sha256"
        kept=1
        fault 74 "lseek:error=EIO:when=$n" "${words[@]}"
        grep -q "out: cannot read its work file: Input/output error" "$T/stderr"
    done
}

@test "G18: a full disk at a checkpoint of a training keeps the state before it" {
    words=("$BIN/train-lm" -q --arch llama --out "$T/m" --width 16 --layers 1 --heads 2
           --kv-heads 2 --ffn 16 --vocab 300 --context 256 --steps 6 --save 2 --rows 64
           --min-len 16 --max-len 32 --threads 1 corpus)
    writes=$(of 'train.state' write "${words[@]}")
    [ "$(wc -w <<< "$writes")" -gt 1 ]
    cp "$T/m/model.safetensors" "$T/whole"
    left=
    for n in $(sed -n '1p;$p' <<< "$writes"); do         # of the first state, of the last
        rm -rf "$T/m"
        status=0
        strace -f -o "$T/log" -e inject=write:error=ENOSPC:when="$n" "${words[@]}" \
            > "$T/stdout" 2> "$T/stderr" || status=$?
        [ "$status" -eq 74 ]
        grep -q "train.state: cannot write: No space left" "$T/stderr"
        [ "$(cd "$T/m" && ls -A | grep -v tokenizer.json)" = "$left" ]
        left=train.state
        "${words[@]}" > "$T/stdout"
        cmp "$T/m/model.safetensors" "$T/whole"
    done
}

@test "A8: interrupted calls and a pipe of single bytes change nothing" {
    "$BIN/score-exact" --no-meta generations > "$T/want"
    n=$(of "/generations>" read "$BIN/score-exact" --no-meta generations | head -n 1)
    for what in "read:error=EINTR:when=$n+2" "write:error=EINTR:when=1+2"; do
        strace -o "$T/log" -e inject="$what" "$BIN/score-exact" --no-meta generations > "$T/got" \
            2> "$T/stderr"
        grep -q INJECTED "$T/log"
        cmp "$T/want" "$T/got"
    done
    dd if=generations bs=1 status=none | "$BIN/score-exact" --no-meta | cmp - "$T/want"
}

@test "A9: a lack of descriptors is 66 for an input, 73 for an output" {
    n=$(of '"prompts"' openat "$BIN/gen-llama" -m llama prompts | head -n 1)
    fault 66 "openat:error=EMFILE:when=$n" "$BIN/gen-llama" -m llama prompts
    n=$(of 'model.safetensors' openat "$BIN/gen-llama" -m llama prompts | head -n 1)
    fault 66 "openat:error=EMFILE:when=$n" "$BIN/gen-llama" -m llama prompts
    n=$(of '[.]x[.]tmp' openat "$BIN/write-corpus" --count 3 -o "$T/x" | head -n 1)
    fault 73 "openat:error=ENFILE:when=$n" "$BIN/write-corpus" --count 3
}

@test "A20: an input that grows while it is read is refused" {
    cp generations "$T/in"
    n=$(of '/in>' read "$BIN/score-exact" "$T/in" | tail -n 1)
    strace -o "$T/log" -e inject=read:delay_enter=700000:when="$n" "$BIN/score-exact" "$T/in" \
        -o "$T/new" 2> "$T/stderr" &
    sleep 0.4
    tail -n 1 generations >> "$T/in"
    status=0
    wait $! || status=$?
    [ "$status" -eq 74 ] || [ "$status" -eq 65 ]
    grep -qE "changed while|end record" "$T/stderr"
    [ ! -e "$T/new" ]
}
