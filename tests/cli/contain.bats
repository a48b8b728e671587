#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Tools drop rights before they read foreign bytes. tests/fixtures/preload/planted.c stands for a
# reader that an attacker has taken over: it acts as soon as a tool has read PLANTED, and reports
# what worked.

setup_file()
{
    export BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    BIN=$(cd "$BIN" && pwd)
    ENCODER=$(realpath "${TESTBIN:-build/tests}/fixtures/make-encoder")
    export ENCODER ROOT=$PWD HOME=$BATS_FILE_TMPDIR/home
    unset XDG_CACHE_HOME TMPDIR CROSSOVER_CUDA
    cd "$BATS_FILE_TMPDIR" || exit 1
    mkdir -p work home
    if "$BIN/measure" --version -v | grep -q 'sandbox: .*no limit'; then
        "$BIN/measure" --version -v | grep sandbox > cannot
        return
    fi
    ${CC:-cc} -w -D_GNU_SOURCE -shared -fPIC -o planted.so "$ROOT/tests/fixtures/preload/planted.c"
    cd work || exit 1
    settings
    "$BIN/write-corpus" --count 40 --seed 1 -o corpus
    "${train[@]}" --arch llama --out llama corpus > loss
    "${train[@]}" --arch llada --out llada corpus > loss
    "${train[@]}" --arch ltm --out ltm "${latent[@]}" corpus > loss
    { echo '{"text":"PLANTED boat","reference":"a boat"}'; cat corpus; } > texts
    head -n 2 corpus | jq -c '.prompt = "PLANTED " + .prompt' > prompts
    "$BIN/gen-llama" -q -m llama --max-new 4 --threads 1 --run PLANTED prompts > llama.gen
    "$BIN/gen-llada" -q -m llada --gen-length 4 --steps 2 --threads 1 --run PLANTED prompts \
        > llada.gen
    "$BIN/measure" -q --run PLANTED llama.gen llada.gen > metrics
    "$BIN/score-exact" -q --run PLANTED llama.gen llada.gen > quality
}

# sets the arrays train and latent: the command of a short training, and options of --arch ltm
settings()
{
    train=("$BIN/train-lm" -q --width 16 --layers 1 --heads 2 --kv-heads 2 --ffn 16 --vocab 300
           --context 256 --steps 2 --rows 64 --min-len 16 --max-len 32 --threads 1)
    latent=(--latents 3 --window 24 --vi-steps 2)
}

setup()
{
    settings
    cd "$BATS_FILE_TMPDIR" || exit 1
    [ ! -e cannot ] || skip "$(cat cannot)"
    cd work || exit 1
    export SECRET=$BATS_TEST_TMPDIR/secret FOLDER=$BATS_TEST_TMPDIR/other
    sleep 600 3>&- &
    export VICTIM=$!
}

teardown()
{
    [ -z "${VICTIM:-}" ] || kill "$VICTIM" 2> /dev/null || true
}

# attack TOOL ARGUMENT...: runs the tool with the planted fault; $won lists what worked, one a line
attack()
{
    mkdir -p "$FOLDER"
    echo secret > "$SECRET"
    status=0
    LD_PRELOAD=$BATS_FILE_TMPDIR/planted.so "$BIN/$1" "${@:2}" 9> "$BATS_TEST_TMPDIR/won" \
        > "$BATS_TEST_TMPDIR/stdout" 2> "$BATS_TEST_TMPDIR/stderr" || status=$?
    cat "$BATS_TEST_TMPDIR/stderr"
    grep -q attacked "$BATS_TEST_TMPDIR/won" || { echo "$1: the fault was not reached"; return 1; }
    won=$(grep -v attacked "$BATS_TEST_TMPDIR/won" || true)
    # Landlock sees signals from version 6 on
    [ "$("$BIN/measure" --version -v | sed -n 's/.*Landlock \([0-9]*\).*/\1/p')" -ge 6 ] ||
        [ "${off:-}" ] || won=$(grep -v 'by a signal$' <<< "$won" || true)
}

# held TOOL ARGUMENT...: tests that nothing works for the fault, and that the tool ends as without
# it
held()
{
    attack "$@" || return 1
    [ -z "$won" ] || { echo "$1: $won"; return 1; }
    [ "$status" = "${code:-0}" ] || { echo "$1: exit $status"; return 1; }
    [ "$(cat "$SECRET")" = secret ] && [ -z "$(ls "$FOLDER")" ]
}

@test "without the sandbox the planted fault does all its harm, and a line says it is off" {
    off=1 attack measure --sandbox off llama.gen
    grep -q 'sandbox off: the tool keeps all rights' "$BATS_TEST_TMPDIR/stderr"
    # tracing needs a right that some systems refuse to all
    [ "$(grep -cv ' of another process$\|^traced' <<< "$won")" = 12 ] || { echo "$won"; false; }
    [ ! -e "$SECRET" ]
}

@test "in readers of prompts, checkpoints and records the planted fault does no harm" {
    held prep-prompts -q -o prepared prompts
    held gen-llama -q -m llama --max-new 4 --threads 2 -o generated prompts
    held gen-llada -q -m llada --gen-length 4 --steps 2 --threads 2 -o generated prompts
    held score-ppl -q -m llama --threads 2 -o scored llama.gen
    held score-text -q -o scored llama.gen
    held measure -q -o measured llama.gen llada.gen
    code=65 held compare -q --by steps -o compared metrics
    held pareto -q -o front metrics quality
    held report -q -o page.html metrics quality
    held bundle -q -o sealed.tar.gz llama.gen
}

@test "the planted fault does no harm in trainers and in tools that read other models and records" {
    held "${train[0]##*/}" "${train[@]:1}" --arch llada --out trained texts
    held gen-ltm -q -m ltm --max-new 4 --threads 2 -o generated prompts
    held train-prior -q -m ltm --count 20 --vi-steps 2 --rows 64 --max-len 32 --width 16 \
        --layers 1 --heads 2 --steps 2 --out prior texts
    cp -r llama planted
    jq '._name_or_path = "PLANTED"' llama/config.json > planted/config.json
    held pack-model -q -m planted --quant int8 --out packed
    held pack-model -q -m llama --budget-share 0.9 --calibrate texts --limit 4 --out calibrated
    mkdir bert
    "$ENCODER" bert bert
    jq -c 'select(.kind == "generation") | .reference = "a boat"' llama.gen > referred
    held score-bert -q -m bert --threads 2 -o scored referred
    held forecast -q -o forecast metrics
    held conclude -q -o claims metrics quality
    "$BIN/schedule" --steps 2 --launches 1 --run PLANTED -o planned
    held schedule --steps 2 --launches 2 --previous planned -o extended
    jq -n '{date: "20260901", backend: "vllm", model_id: "PLANTED", num_prompts: 1, duration: 2.5,
        request_rate: "inf", max_concurrency: 1, completed: 1, total_output_tokens: 3,
        input_lens: [7], output_lens: [3], ttfts: [0.5], itls: [[0.25, 0.25]],
        generated_texts: ["a b c"], errors: [""]}' > bench.json
    held import-bench -q -o requests bench.json
}

@test "with standard input and an output that is a pipe the planted fault does no harm" {
    cat prompts | held gen-llama -q -m llama --max-new 4 --threads 1
    held prep-prompts -q -o >(cat > through) prompts
}

@test "plot may start gnuplot, and nothing that it starts has a network or another folder" {
    attack plot -q --type memory -o figure.svg metrics
    [ "$status" = 0 ] || { echo "exit $status"; false; }
    [ "$(grep -vx 'started a program' <<< "$won")" = "" ] || { echo "$won"; false; }
}

@test "links in a named folder or in a cache on another disk, and new output folders, work" {
    disk=$BATS_TEST_TMPDIR/disk
    mkdir -p "$disk" copy
    cp prompts "$disk/prompts"
    ln -sf "$disk/prompts" link
    run -0 "$BIN/prep-prompts" -q link
    cp llama/* copy
    mv copy/config.json "$disk/config.json"
    ln -s "$disk/config.json" copy/config.json
    run -0 "$BIN/gen-llama" -q -m copy --max-new 2 --threads 1 prompts
    rm -r copy
    hub="$disk/my disk/hub/models--org--m"
    mkdir -p "$hub/snapshots/abc" "$HOME/.cache"
    cp llama/* "$hub/snapshots/abc"
    HF_HOME="$disk/my disk" run -0 "$BIN/gen-llama" -q -m org/m@abc --max-new 2 --threads 1 prompts
    ln -sfn "$disk/my disk" "$HOME/.cache/huggingface"
    run -0 "$BIN/gen-llama" -q -m org/m@abc --max-new 2 --threads 1 prompts
    rm "$HOME/.cache/huggingface"
    mkdir "$HOME/.cache/huggingface"
    ln -s "$disk/my disk/hub" "$HOME/.cache/huggingface/hub"
    run -0 "$BIN/gen-llama" -q -m org/m@abc --max-new 2 --threads 1 prompts
    mkdir -p run/sub
    ln -sf "$disk/prompts" run/sub/prompts
    run -0 "$BIN/bundle" -q -o sealed.tar.gz run
    run -0 "$BIN/bundle" -q sealed.tar.gz --extract new/deep/run
    run -0 "$BIN/pack-model" -q -m llama --quant int8 --out packed/deep/m
}
