#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Faults that need no tracer: wrong options, missing files, full devices, signals, damaged
# checkpoints and records, failed allocations. faults-machine.bats has limits, locales
# and clocks; faults-io.bats injects errors into system calls.

load faults

setup()
{
    cd "$BATS_FILE_TMPDIR" || exit 1
    T=$BATS_TEST_TMPDIR
    train=("$BIN/train-lm" -q --width 16 --layers 1 --heads 2 --kv-heads 2 --ffn 16 --vocab 300
           --context 256 --rows 64 --min-len 16 --max-len 32 --threads 1 --dtype F32)
    llama=("$BIN/gen-llama" -m llama --max-new 4 --threads 1)
    llada=("$BIN/gen-llada" -m llada --gen-length 8 --steps 4 --threads 1)
}

# The tools that read records, each with a valid input, one tool a line.
tools()
{
    cat << 'END'
prep-prompts prompts
gen-llama -m llama --max-new 2 --threads 1 prompts
gen-llada -m llada --gen-length 8 --steps 2 --threads 1 prompts
score-ppl -m llama --threads 1 generations
score-exact generations
score-text generations
measure generations
END
}

fails() { # CODE WORDS COMMAND...: exit status, one line on standard error, and the words in it
    local code=$1 words=$2 status=0
    shift 2
    "$@" > "$T/stdout" 2> "$T/stderr" < /dev/null || status=$?
    [ "$status" -eq "$code" ] && [ "$(wc -l < "$T/stderr")" -eq 1 ] &&
        grep -qF -- "$words" "$T/stderr" && return
    echo "expected $code with '$words', got $status: $*"
    cat "$T/stderr"
    return 1
}

ends() { # CODE PID: how a process that runs beside ends
    local status=0
    wait "$2" 2> "$T/wait" || status=$?
    [ "$status" -eq "$1" ]
}

@test "A1: an unknown option and a missing or invalid value are bad usage" {
    for tool in prep-prompts gen-llama gen-llada score-ppl score-exact score-text score-bert \
        measure pareto plot report train-lm write-corpus; do
        fails 64 "'--bogus'" "$BIN/$tool" --bogus
        fails 64 "'--seed' needs a value" "$BIN/$tool" --seed
        for value in 1e9x -1 99999999999999999999 ' 1' ''; do
            fails 64 "--seed: expected an integer from 0 to" "$BIN/$tool" --seed "$value"
        done
    done
}

@test "A2, A3, A4: an unreadable input and an impossible output are refused" {
    ln -sf nowhere "$T/dangling"
    cp generations "$T/both"
    while read -r tool args; do
        set -- $args
        input=${!#}
        set -- "$BIN/$tool" "${@:1:$#-1}"
        fails 66 "absent: No such file" "$@" absent
        fails 66 "dangling: No such file" "$@" "$T/dangling"
        fails 66 "llama" "$@" llama
        fails 64 "both input and output" "$@" "$T/both" -o "$T/both"
        fails 73 "no/such/x: cannot create: No such file" "$@" "$input" -o "$T/no/such/x"
        fails 73 "cannot create: File name too long" "$@" "$input" -o "$(printf '%0300d' 0)"
        fails 73 "cannot create: is a folder" "$@" "$input" -o llama
    done < <(tools)
    cmp generations "$T/both"
    fails 66 "absent" "$BIN/measure" generations absent    # F10: before any output
    [ ! -s "$T/stdout" ]
}

@test "A5, A15: a full device and closed standard output or input give exit code 74" {
    while read -r tool args; do
        fails 74 "standard output" bash -c '"$@" > /dev/full' - "$BIN/$tool" $args
        fails 74 "standard output" bash -c '"$@" >&-' - "$BIN/$tool" $args
    done < <(tools; echo write-corpus --count 9)
    while read -r place; do              # gnuplot itself does not tell
        CROSSOVER_SHARE=$ROOT fails 74 "standard output" bash -c "\"\$@\" $place" - "$BIN/plot" \
            -q --type pareto --term generations
    done <<< $'> /dev/full\n>&-'
    fails 74 "Bad file descriptor" bash -c '"$0" --no-meta <&-' "$BIN/score-exact"
}

@test "A16: a tool whose reader goes away ends with 0 or 141" {
    while read -r tool args; do
        status=0
        "$BIN/$tool" $args 2> "$T/err" | true || status=${PIPESTATUS[0]}
        # a tool that ended before the reader left may report skipped records
        [ "$status" -eq 0 ] || { [ "$status" -eq 141 ] && [ ! -s "$T/err" ]; }
    done < <(tools)
    run -141 --separate-stderr bash -c 'set -o pipefail; "$0" --count 100000 | head -n 1' \
        "$BIN/write-corpus"
}

@test "A18: a second writer of one output is refused; the message names the first" {
    "${llama[@]}" --repeat 1000000 -o "$T/out" prompts 2> "$T/err" &
    first=$!
    for _ in $(seq 500); do [ -s "$T/.out.tmp" ] && break; sleep 0.02; done
    fails 75 "already being written by process $first" "${llama[@]}" -o "$T/out" prompts
    kill -KILL "$first"
    ends 137 "$first"
    [ ! -e "$T/out" ]
    echo torn > "$T/.out.tmp"            # what a killed run left is written over
    "${llama[@]}" -o "$T/out" prompts
    [ ! -e "$T/.out.tmp" ]
    [ "$(jq -s length "$T/out")" -eq 5 ]
}

@test "A13: a generator killed at any time leaves nothing under the final name" {
    for command in llama llada; do
        declare -n words=$command
        for delay in 0.01 0.03 0.06 0.1; do
            "${words[@]}" --repeat 100000 -o "$T/out" prompts &
            sleep $delay
            kill -KILL $!
            ends 137 $!
            [ ! -e "$T/out" ]
        done
    done
    "$BIN/score-ppl" -m llama --threads 1 -o "$T/out" <(cat generations; sleep 5) &
    sleep 0.1
    kill -KILL $!
    ends 137 $!
    [ ! -e "$T/out" ]
}

@test "A13: a training that was killed ends with the same bytes" {
    train+=(--steps 1200 --save 20)
    "${train[@]}" --out "$T/whole" corpus > "$T/loss"
    mkfifo "$T/pipe"
    for try in 1 2 3; do
        exec 4<> "$T/pipe"    # nobody reads: full after some 250 records, and the training waits
        "${train[@]}" --out "$T/parts" --report 1 corpus > "$T/pipe" &
        sleep 0.$((RANDOM % 2))$((RANDOM % 10))
        while [ "$try" -eq 3 ] && [ ! -e "$T/parts/train.state" ]; do sleep 0.05; done
        kill -KILL $!
        ends 137 $!
        exec 4>&-
        [ ! -e "$T/parts/config.json" ]
    done
    "${train[@]}" --out "$T/parts" corpus > "$T/loss"
    cmp "$T/whole/model.safetensors" "$T/parts/model.safetensors"
}

@test "A14: signals end a stream after the last whole record" {
    for pair in TERM:143 INT:130 HUP:129; do
        env --default-signal=INT "${llama[@]}" --repeat 1000000 prompts > "$T/out" 2> "$T/err" &
        pid=$!
        for _ in $(seq 200); do [ "$(wc -l < "$T/out")" -gt 3 ] && break; sleep 0.02; done
        kill -"${pair%:*}" "$pid"
        ends "${pair#*:}" "$pid"
        [ -z "$(tail -c 1 "$T/out")" ] # $(...) drops a newline, nothing else
        jq -n -e '[inputs] | last | .kind == "end" and .status == "interrupted"' "$T/out"
    done
}

@test "A14: a signal before the first answer leaves the earlier output" {
    echo old > "$T/out"
    words=("$BIN/gen-llada" -m llada --gen-length 128 --contract fixed --threads 1 prompts
           -o "$T/out")
    for timed in '' '--warmup 100000'; do
        rm -f "$T"/.out.tmp*
        "${words[@]}" $timed 2> "$T/err" &
        for _ in $(seq 500); do [ -s "$T/.out.tmp" ] && break; sleep 0.002; done
        sleep 0.01
        kill -TERM $!
        ends 143 $!
        [ "$(<"$T/out")" = old ]
    done
}

@test "A20: a checkpoint that is cut while it is mapped ends the run with an error" {
    cp -r llama "$T/cut"
    mkfifo "$T/prompts"
    status=0
    "$BIN/gen-llama" -m "$T/cut" --threads 1 --max-new 2 -o "$T/out" "$T/prompts" 2> "$T/err" &
    exec 7> "$T/prompts"                 # the checkpoint is open: prompts are read after it
    truncate -s 4096 "$T/cut/model.safetensors"
    cat prompts >&7
    exec 7>&-
    wait $! || status=$?
    [ "$status" -eq 74 ]
    grep -q "cut short while it was read" "$T/err"
    [ ! -e "$T/out" ]
}

# edit FOLDER FILE JQ: makes a copy of the llama checkpoint with one file changed
edit()
{
    rm -rf "$T/$1"
    cp -r llama "$T/$1"
    jq -c "$3" "llama/$2" > "$T/$1/$2"
}

@test "B2, B7: a cut or grown checkpoint is refused" {
    size=$(stat -c %s llama/model.safetensors)
    cp -r llama "$T/cut"
    for n in $((size + 1)) $((size - 1)) $((size / 2)) 1191 1000 9 8 7 0; do
        cp llama/model.safetensors "$T/cut/model.safetensors"
        truncate -s "$n" "$T/cut/model.safetensors"
        fails 65 "model.safetensors" "$BIN/gen-llama" -m "$T/cut" prompts
        fails 65 "model.safetensors" "$BIN/score-ppl" -m "$T/cut" generations
    done
}

# weight NAME VALUE: sets the bytes of the first value of a tensor in $T/odd
weight()
{
    local at file=$T/odd/model.safetensors
    n=$(od -An -tu8 -N8 "$file" | tr -d ' ')
    at=$(tail -c +9 "$file" | head -c "$n" | jq ".\"$1\".data_offsets[0]")
    printf "$2" | dd of="$file" bs=1 seek=$((8 + n + at)) conv=notrunc status=none
}

@test "B10: NaN and infinity in the weights are found" {
    for value in '\0\0\xc0\x7f' '\0\0\x80\x7f'; do
        rm -rf "$T/odd"
        cp -r llama "$T/odd"
        weight model.norm.weight "$value"
        fails 65 "model.norm.weight: value 0 expected finite" "$BIN/gen-llama" -m "$T/odd" \
            --check-finite prompts
        fails 65 "model.norm.weight: value 0 expected finite" "$BIN/score-ppl" -m "$T/odd" \
            --mode nll --check-finite prompts
        # also without --verify, in gains and in matrices
        for name in model.norm.weight model.layers.0.mlp.up_proj.weight \
            model.embed_tokens.weight; do
            rm -rf "$T/odd"
            cp -r llama "$T/odd"
            weight "$name" "$value"
            fails 65 "$name: value 0 expected finite" "$BIN/gen-llama" -m "$T/odd" prompts
            fails 65 "$name: value 0 expected finite" "$BIN/score-ppl" -m "$T/odd" \
                --mode nll prompts
        done
    done
    # finite weights may still overflow in a pass
    rm -rf "$T/odd"
    cp -r llama "$T/odd"
    weight model.layers.0.post_attention_layernorm.weight '\xff\xff\x7f\x7f'
    weight model.norm.weight '\xff\xff\x7f\x7f'
    run -70 --separate-stderr "$BIN/gen-llama" -m "$T/odd" --max-new 2 --limit 1 prompts
    [[ $stderr == *"NaN or an infinity"* ]]
    "${llama[@]}" --check-finite prompts > "$T/out"
}

@test "C: an invalid configuration is refused with key, range and value" {
    while IFS='|' read -r words change; do
        edit odd config.json "$change"
        fails 65 "$words" "$BIN/gen-llama" -m "$T/odd" prompts
    done << 'END'
hidden_size: expected integer from 1|.hidden_size=0
got "4096"|.hidden_size="4096"
the key is missing|del(.hidden_size)
num_hidden_layers: expected integer|.num_hidden_layers=100000
num_key_value_heads: expected a divisor|.num_key_value_heads=4
rope_theta: expected number|.rope_theta=0
rms_norm_eps: expected number|.rms_norm_eps=-1
not supported|.model_type="foo"
rope_scaling|.rope_scaling={"type":"yarn","factor":2}
quantization_config|.quantization_config={"bits":4}
shape expected [301, 16] by config.json, got [300, 16]|.vocab_size=301
eos_token_id: expected ids|.eos_token_id=300
bos_token_id: expected integer|.bos_token_id=[1,2]
END
    for text in 'not json' '[]' '' $'\xef\xbb\xbf{}' '{"hidden_size":1,"hidden_size":1}'; do
        printf '%s' "$text" > "$T/odd/config.json"
        fails 65 "config.json" "$BIN/gen-llama" -m "$T/odd" prompts
    done
}

@test "C: an unknown key is ignored if --ignore-config names it, and the record says so" {
    edit odd config.json '.clip_qkv=8 | .unsloth_fixed=true | .x=null |
        .layer_types=["full_attention"]'
    words="clip_qkv = 8: unknown key, not supported: if it does not change the network, remove it \
or pass --ignore-config clip_qkv"
    score=("$BIN/score-ppl" -m "$T/odd" --threads 1 --mode nll prompts)
    pack=("$BIN/pack-model" -m "$T/odd" --quant int8 --threads 1 --out "$T/int8")
    init=("${train[@]}" --arch llama --steps 1 --init "$T/odd" --out "$T/new" corpus)
    fits=("$BIN/prep-prompts" --fits "$T/odd" --room 4 prompts)
    gen=("$BIN/gen-llama" -m "$T/odd" --max-new 6 --threads 1 prompts)
    for tool in score pack init fits gen; do
        local -n line=$tool
        fails 65 "$words" "${line[@]}"
        "${line[@]}" --ignore-config clip_qkv,none > "$T/$tool" 2> "$T/$tool.err"
    done
    for tool in score pack gen; do
        jq -e -n 'input | .kind == "meta" and .checkpoint.config_ignored == "clip_qkv"' "$T/$tool"
        [ "$(grep -c 'config.json: ignored as asked: clip_qkv$' "$T/$tool.err")" -eq 1 ]
    done
    jq -e -n 'input | .kind == "meta" and (.checkpoint | has("config_ignored") | not)' generations
    diff <(jq -c 'select(.kind == "generation").token_ids' generations) \
        <(jq -c 'select(.kind == "generation").token_ids' "$T/gen")
    "${gen[@]}" --ignore-config clip_qkv -v > "$T/gen" 2> "$T/gen.err"
    grep -q 'config.json: these keys change no result: .*unsloth_fixed' "$T/gen.err"
    ! grep 'change no result' "$T/score.err" || false
    for key in hidden_size layer_types; do
        fails 64 "does not know, got $key, which it reads" "${gen[@]}" --ignore-config $key
    done
    fails 65 "clip_qkv" "${gen[@]}" --ignore-config clip
}

@test "C: without a stop token answers end by length and warn; diffusion needs the token" {
    rm -rf "$T/mute"
    cp -r llama "$T/mute"
    jq 'del(.eos_token_id)' llama/config.json > "$T/mute/config.json"
    [ ! -e llama/generation_config.json ]
    "$BIN/gen-llama" -m "$T/mute" --max-new 30 --threads 1 --no-meta prompts > "$T/out" 2> "$T/err"
    jq -s -e 'length == 3 and all(.stop == "length" and .new_tokens == 30)' "$T/out"
    [ "$(grep -c 'W107: .*no eos_token_id' "$T/err")" -eq 1 ]
    ! grep W107 <("${llama[@]}" prompts 2>&1) || false
    "$BIN/pack-model" -q -m "$T/mute" --quant int8 --threads 1 --out "$T/packed" > "$T/out"
    jq -e 'has("eos_token_id") | not' "$T/packed/config.json"
    cp -r llada "$T/still"
    jq 'del(.eos_token_id)' llada/config.json > "$T/still/config.json"
    fails 65 "eos_token_id: expected an id, here or in generation_config.json" \
        "$BIN/gen-llada" -m "$T/still" --gen-length 8 --steps 2 --threads 1 prompts
}

@test "D: an invalid tokenizer is refused with a reason" {
    while IFS='|' read -r words change; do
        edit odd tokenizer.json "$change"
        fails 65 "$words" "$BIN/gen-llama" -m "$T/odd" prompts
        fails 65 "$words" "$BIN/score-ppl" -m "$T/odd" generations
    done << 'END'
twice|.model.vocab.b=3
no piece has id|.model.vocab.b=5000
got -1|.model.vocab.b=-1
is not in the vocab|.model.merges+=["zz qq"]
not two pieces|.model.merges+=["a b c"]
normalizer: not supported|.normalizer={"type":"Lowercase"}
expected type BPE|.model.type="Unigram"
not text of 1 to 4096|.added_tokens+=[{"id":300,"content":"","special":true}]
ids up to 300: expected below 300|.added_tokens+=[.added_tokens[0]+{"id":300,"content":"<|more|>"}]
END
    head -c 3000 llama/tokenizer.json > "$T/odd/tokenizer.json"
    fails 65 "tokenizer.json: line" "$BIN/gen-llama" -m "$T/odd" prompts
}

@test "C1, D1: a NUL byte after a number of config.json or tokenizer.json is refused" {
    for place in config.json:hidden_size tokenizer.json:id; do
        file=${place%:*}
        edit odd "$file" .
        sed "0,/\"${place#*:}\": *[0-9]/s/\"${place#*:}\": *[0-9]*/&\x00/" "$T/odd/$file" > "$T/nul"
        [ "$(tr -dc '\0' < "$T/nul" | wc -c)" -eq 1 ]
        tr -d '\0' < "$T/nul" | cmp - "$T/odd/$file"
        mv "$T/nul" "$T/odd/$file"
        for tool in gen-llama score-ppl; do
            fails 65 "$file: line" "$BIN/$tool" -m "$T/odd" --threads 1 generations
            grep -qF 'a NUL byte' "$T/stderr"
        done
    done
}

@test "F: a line that is not a record is refused" {
    for tool in "score-exact" "measure" "score-ppl -m llama" "gen-llama -m llama" prep-prompts; do
        for text in '' '\n\n'; do
            printf "$text" > "$T/in"
            fails 65 "no " "$BIN/"$tool "$T/in"
        done
        for text in '{"kind":"gen' '[1]' '{"a":1}\0' '{"a":1,"a":2}' '\xef\xbb\xbf{}' \
            '{"schema":"other/9","id":"a"}' '{"a":"\xff"}' '{"a":NaN}'; do
            printf "$text\n" > "$T/in.ndjson"
            run -65 --separate-stderr "$BIN/"$tool "$T/in.ndjson"
        done
    done
    head -n 2 prompts | tr -d '\n' | head -c -1 > "$T/torn"
    run -65 --separate-stderr "${llama[@]}" --no-meta "$T/torn"
    head -c -1 prompts > "$T/no-end"                        # the last line has no line end
    "${llama[@]}" --no-meta "$T/no-end" | jq -c .token_ids |
        cmp - <("${llama[@]}" --no-meta prompts | jq -c .token_ids)
    head -n -1 generations > "$T/cut"                       # a stream without its end record
    for tool in "score-exact" "measure" "score-ppl -m llama"; do
        run -65 --separate-stderr "$BIN/"$tool "$T/cut"
    done
}

@test "F4, F5, F7: ids and tokens of a wrong type are errors, unknown fields are not" {
    head -n 2 generations | tail -n 1 > "$T/good"
    "$BIN/measure" --no-meta "$T/good" | jq -c '[.metric, .value]' > "$T/want"
    while IFS='|' read -r words change; do
        jq -c "$change" "$T/good" > "$T/odd"
        run -65 --separate-stderr "$BIN/measure" --no-meta "$T/odd"
        [[ $stderr == *"$words"* ]]
    done << 'END'
id: expected a text, got none|del(.id)
token_ids: expected an array|.token_ids="abc"
token_ids[0]: expected a whole number|.token_ids[0]=-1
token_ids[1]: expected a whole number|.token_ids[1]=1.5
new_tokens: expected the length of token_ids|.token_ids=[range(100000)]
e2e_ns: expected a number from 1|.e2e_ns=0
END
    jq -c '[range(10000) | {("f\(.)"): .}] as $more | . + ($more | add)' "$T/good" > "$T/many"
    "$BIN/measure" --no-meta "$T/many" | jq -c '[.metric, .value]' | cmp - "$T/want"
}

@test "F6: impossible times give no infinity and no NaN" {
    for value in -1 '"1,5"' 1e308; do
        head -n 2 generations | tail -n 1 | jq -c ".e2e_ns = $value" > "$T/odd"
        "$BIN/measure" --no-meta "$T/odd" > "$T/out" 2> "$T/err" || [ $? -eq 65 ]
        run ! grep -iE ':-?(inf|nan)' "$T/out"
    done
}

@test "G1: the name of a special token in a text is text" {
    echo '{"id":"a","text":"<|endoftext|>"}' > "$T/in"
    run -0 --separate-stderr "${llama[@]}" --no-meta "$T/in"
    [ "$(jq .prompt_tokens <<< "$output")" -gt 5 ]
    run -0 --separate-stderr "${llama[@]}" --no-meta --parse-special "$T/in"
    [ "$(jq .prompt_tokens <<< "$output")" -eq 2 ]
    printf '{"id":"a","text":"%0300d"}\n{"id":"b","text":""}\n' 0 > "$T/in"
    run -1 --separate-stderr "${llama[@]}" --no-meta "$T/in"
    [ "$(jq -r '[.id, .code // "good"] | join(" ")' <<< "$output" | sort | paste -sd' ')" = \
        "a bad_data b good" ]
}

@test "G2: long runs of one character take little time" {
    for n in 26000 1000000; do
        for c in A _ '\\n' Z; do
            printf '{"id":"a","text":"%s"}\n' \
                "$(head -c "$n" /dev/zero | sed "s/\\x0/$c/g")" > "$T/in"
            status=0
            timeout 10 "${llama[@]}" "$T/in" > "$T/out" 2> "$T/err" || status=$?
            [ "$status" -eq 1 ]                             # longer than the context
        done
    done
}

@test "G3, G4: impossible settings are bad usage" {
    for odd in "--gen-length 0" "--steps 0" "--gen-length 8 --block-length 3" "--cfg-scale -1" \
        "--gen-length 8 --block-length 16" "--temperature -1" "--temperature nan" \
        "--cfg-scale nan" "--gen-length 8 --block-length 4 --steps 3"; do
        fails 64 "gen-llada: " "$BIN/gen-llada" -m llada $odd prompts
    done
    "${llama[@]}" --no-meta prompts | jq -c .token_ids > "$T/greedy"
    "${llama[@]}" --no-meta --temperature 1e-30 prompts | jq -c .token_ids | cmp - "$T/greedy"
}

@test "G16: a text of no token or of one token is an error record" {
    printf '%s\n' '{"id":"a","prompt_ids":[]}' '{"id":"b","prompt_ids":[5]}' \
        '{"id":"c","prompt_ids":[5,6]}' > "$T/in"
    run -1 --separate-stderr "$BIN/score-ppl" --mode nll -m llama --no-meta "$T/in"
    [ "$(jq -r 'select(.kind == "error").id' <<< "$output" | xargs)" = "a b" ]
    [ "$(jq -r 'select(.id == "c" and .metric == "nll_nats").scored_tokens' <<< "$output")" = 1 ]
    run ! grep -iE ':-?(inf|nan)' <<< "$output"
}

@test "G17: a damaged state of training is refused" {
    "${train[@]}" --out "$T/m" --steps 400 --save 20 corpus > "$T/loss" &
    for _ in $(seq 200); do [ -s "$T/m/train.state" ] && break; sleep 0.01; done
    kill -KILL $!
    ends 137 $!
    [ -s "$T/m/train.state" ]
    head -c 3000 "$T/m/train.state" > "$T/m/half"
    mv "$T/m/half" "$T/m/train.state"
    run -65 --separate-stderr "${train[@]}" --out "$T/m" --steps 400 --save 20 corpus
    [[ $stderr == *train.state* ]]
    [ ! -e "$T/m/config.json" ]
    run -65 --separate-stderr "${train[@]}" --out "$T/none" /dev/null
}

@test "A10: an allocation that fails ends with 70 and a line, or changes nothing" {
    [ -z "${SAN-}" ] && ! nm -D "$BIN/gen-llama" | grep -q __asan || skip "sanitizers own malloc"
    command -v ${CC:-cc} > "$T/cc" || skip "no compiler"
    ${CC:-cc} -shared -fPIC -o "$T/fail.so" "$ROOT/tests/fixtures/preload/fail-malloc.c" ||
        skip "no shared objects here"
    while read -r tool args; do
        FAIL_REPORT=$T/n LD_PRELOAD=$T/fail.so "$BIN/$tool" --no-meta $args > "$T/out" \
            2> "$T/err"
        count=$(cat "$T/n")
        [ "$count" -gt 50 ]
        "$BIN/$tool" --no-meta $args 2> "$T/err" | jq -c '[.id, .token_ids, .value]' > "$T/want"
        for part in 1 7 23 51 64 77 89 96 99; do
            status=0
            FAIL_AT=$((count * part / 100 + 1)) LD_PRELOAD=$T/fail.so "$BIN/$tool" --no-meta \
                $args > "$T/out" 2> "$T/err" || status=$?
            if [ "$status" -eq 0 ]; then
                jq -c '[.id, .token_ids, .value]' "$T/out" | cmp - "$T/want"
            elif [ "$status" -eq 1 ]; then # memory of the model: an answer, not an error
                jq -n -e '[inputs.status] | length > 0 and all(. == "oom")' "$T/out"
            else
                [ "$status" -eq 70 ] || { echo "$tool $part $status"; cat "$T/err"; false; }
                grep -q memory "$T/err"
            fi
        done
    done < <(tools)
}
