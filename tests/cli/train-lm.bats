#!/usr/bin/env bats
# train-lm: the same bits at any number of threads, the first N documents, one training per folder,
# and a saved state that only its own command may resume.

setup_file()
{
    bats_require_minimum_version 1.5.0
    BIN=$(cd "$BIN" && pwd)
    cd "$BATS_FILE_TMPDIR" || exit 1
    "$BIN/write-corpus" --count 60 --seed 1 -o corpus
}

setup()
{
    cd "$BATS_FILE_TMPDIR" || exit 1
    T=$BATS_TEST_TMPDIR
    train=("$BIN/train-lm" -q --no-meta --width 32 --layers 1 --heads 2 --kv-heads 2 --ffn 48
           --vocab 300 --context 256 --steps 6 --rows 128 --min-len 16 --max-len 32 --threads 1
           --dtype F32)
}

# Layers wide enough that every product is cut into parts.
@test "training gives the same bits at 1, 2 and 3 threads, for both losses and precisions" {
    for how in llada-f32 llama-f32 llada-bf16 llama-bf16; do
        for threads in 1 2 3; do
            "${train[@]}" --arch ${how%-*} --precision ${how#*-} --width 192 --heads 4 \
                --kv-heads 2 --ffn 320 --rows 256 --steps 4 --report 1 --threads $threads \
                --out "$T/$how-$threads" corpus > "$T/records"
            jq -c '[.step, .loss, .grad_norm]' "$T/records" > "$T/$how-$threads.loss"
            [ "$(jq -r .precision "$T/records" | uniq)" = ${how#*-} ]
        done
        for threads in 2 3; do
            cmp "$T/$how-1/model.safetensors" "$T/$how-$threads/model.safetensors"
            cmp "$T/$how-1.loss" "$T/$how-$threads.loss"
        done
        [ "$(wc -l < "$T/$how-1.loss")" -eq 4 ]
    done
    for pair in "llada-f32 llama-f32" "llada-f32 llada-bf16" "llama-f32 llama-bf16"; do
        ! cmp -s "$T/${pair% *}-1/model.safetensors" "$T/${pair#* }-1/model.safetensors" || false
    done
}

# Layers are computed again, and other threads make the batches: the same model in fewer bytes. A
# training may resume with other values of both options.
@test "--checkpoint-every and --loaders change no bit; records hold what was planned and taken" {
    shape=(--layers 3 --report 2 --rows 192)
    for arch in llada llama ltm; do
        for how in "0 0" "0 3" "1 1" "2 0" "3 2"; do
            read -r every loaders <<< "$how"
            "${train[@]}" "${shape[@]}" --arch $arch --checkpoint-every "$every" \
                --loaders "$loaders" --vi-steps 2 --out "$T/$arch$every$loaders" corpus > "$T/r"
            cmp "$T/${arch}00/model.safetensors" "$T/$arch$every$loaders/model.safetensors"
            jq -se --argjson every "$every" --argjson loaders "$loaders" 'length == 3 and
                all(.[]; .checkpoint_every == $every and .loaders == $loaders and
                    .load_wait_ratio >= 0 and .load_wait_ratio <= 1 and .tokens_per_s > 0 and
                    .memory.planned_bytes == .memory.allocated_peak_bytes and
                    .memory.process_peak_bytes > .memory.allocated_bytes / 2)' "$T/r"
            jq -s 'last.memory.activations_bytes' "$T/r" >> "$T/$arch"
        done
        # --checkpoint-every 0, 0, 1, 2, 3 of three layers
        jq -se '.[0] == .[1] and .[2] < .[3] and .[3] < .[0] and .[4] == .[0]' "$T/$arch"
    done
    "${train[@]}" "${shape[@]}" --out "$T/whole" corpus > "$T/loss"
    stopped "${shape[@]}" --report 4 --checkpoint-every 2 --loaders 2
    # the aliases of the options give the same
    "${train[@]}" "${shape[@]}" --gradient-checkpointing --num-workers 1 --out "$T/m" corpus \
        > "$T/loss"
    cmp "$T/whole/model.safetensors" "$T/m/model.safetensors"
    jq -se 'last | .checkpoint_every == 1 and .loaders == 1' "$T/loss"
}

@test "--loss whole holds the logits of all rows at once; --qat rounds weights to a format" {
    shape=(--width 64 --ffn 128 --rows 1024 --max-len 64 --steps 2 --report 1 --vocab 400)
    for loss in fused whole; do
        "${train[@]}" "${shape[@]}" --loss $loss --out "$T/$loss" corpus > "$T/$loss.records"
        jq -se --arg loss $loss 'all(.[]; .loss_form == $loss and .qat == "none")' \
            "$T/$loss.records"
    done
    jq -se '(.[2].memory.activations_bytes - .[0].memory.activations_bytes) >= 512 * 400 * 4 and
        (.[2].loss - .[0].loss | fabs) < 1e-9' "$T/fused.records" "$T/whole.records"
    "${train[@]}" "${shape[@]}" --parts 4 --out "$T/parts" corpus > "$T/parts.records"
    jq -se '.[2].memory.activations_bytes * 2 < .[0].memory.activations_bytes and
        (.[2] | .parts == 4 and .ranks == 1 and
            .memory.planned_bytes == .memory.allocated_peak_bytes) and
        (.[2].loss - .[0].loss | fabs) < 1e-6' "$T/fused.records" "$T/parts.records"
    for format in int8 nf4; do
        "${train[@]}" "${shape[@]}" --qat $format --out "$T/$format" corpus > "$T/r"
        jq -se --arg format $format --slurpfile plain "$T/fused.records" 'all(.[];
            .qat == $format and .memory.weights_bytes > $plain[0].memory.weights_bytes and
            .memory.planned_bytes == .memory.allocated_peak_bytes) and
            .[0].loss != $plain[0].loss' "$T/r"
        jq -e '.quantization == null' "$T/$format/config.json" # what is packed is packed later
        "$BIN/pack-model" -q --quant $format -m "$T/$format" --out "$T/$format-packed" > "$T/p"
    done
    run -65 --separate-stderr "${train[@]}" --qat nf4 --out "$T/odd" corpus
    [[ $stderr == *"nf4"* ]]
}

@test "--ranks N: N processes give the bits of one process with --parts N" {
    run -64 --separate-stderr "${train[@]}" --ranks 2 --out "$T/alone" corpus
    [[ $stderr == *"--ranks 2: "* ]]
    run -64 "${train[@]}" --ranks 2 --parts 3 --out "$T/alone" corpus
    run -64 --separate-stderr "${train[@]}" --ranks 2 --out "$T/alone" corpus
    [[ $stderr != *"built without MPI"* ]] || skip "built without MPI"
    command -v mpirun > /dev/null || skip "no mpirun"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    ranks() { mpirun -n "$n" --oversubscribe "$@" --ranks "$n"; }
    for arch in llada llama ltm; do
        n=$([ $arch = llama ] && echo 3 || echo 2)
        more=(--arch $arch --vi-steps 2 --report 2 --valid corpus)
        "${train[@]}" "${more[@]}" --parts "$n" --out "$T/$arch" corpus > "$T/one"
        ranks "${train[@]}" "${more[@]}" --out "$T/$arch-2" corpus > "$T/two"
        cmp "$T/$arch/model.safetensors" "$T/$arch-2/model.safetensors"
        cmp <(jq -c '[.step, .loss, .valid_loss, .grad_norm]' "$T/one") \
            <(jq -c '[.step, .loss, .valid_loss, .grad_norm]' "$T/two")
    done
    # a state of several processes resumes with one process, and a state of one with several
    n=2
    run -74 ranks "${train[@]}" --out "$T/m" --save 2 --report 4 -o /dev/full corpus
    "${train[@]}" --parts 2 --out "$T/whole" corpus > "$T/loss"
    "${train[@]}" --parts 2 --out "$T/m" corpus > "$T/loss"
    cmp "$T/whole/model.safetensors" "$T/m/model.safetensors"
    stopped --parts 2
    ranks "${train[@]}" --out "$T/m" corpus > "$T/loss"
    cmp "$T/whole/model.safetensors" "$T/m/model.safetensors"
}

@test "--limit N trains on the first N documents" {
    "${train[@]}" --limit 20 --out "$T/limit" corpus > "$T/loss"
    "${train[@]}" --out "$T/head" <(head -n 20 corpus) > "$T/loss"
    cmp "$T/limit/tokenizer.json" "$T/head/tokenizer.json"
    cmp "$T/limit/model.safetensors" "$T/head/model.safetensors"
    "${train[@]}" --out "$T/all" corpus > "$T/loss"
    run -1 cmp -s "$T/limit/model.safetensors" "$T/all/model.safetensors"
}

@test "a second training into one folder is refused with 75 and touches nothing" {
    mkdir "$T/m"
    run -75 --separate-stderr flock "$T/m" "${train[@]}" --out "$T/m" corpus
    [ "$stderr" = "train-lm: $T/m: another process works in this folder" ]
    [ -z "$(ls -A "$T/m")" ]
    "${train[@]}" --out "$T/m" corpus > "$T/loss"
}

# stopped ARGS...: a training of six steps that ends after the fourth, because its records cannot be
# written; it leaves the state of its second step.
stopped()
{
    rm -rf "$T/m"
    run -74 --separate-stderr "${train[@]}" --out "$T/m" --save 2 --report 4 -o /dev/full "$@" \
        corpus
    [ -e "$T/m/train.state" ]
}

@test "a saved state resumes with the same settings, and with harmless changes" {
    "${train[@]}" --out "$T/whole" --whole 0.3 corpus > "$T/loss"
    stopped --whole 0.3
    run -0 --separate-stderr "${train[@]}" --out "$T/m" --whole 0.3 --threads 2 --report 1 \
        --save 3 corpus
    [ "$(jq -c .step <<< "$output" | head -n 1)" = 3 ]
    cmp "$T/whole/model.safetensors" "$T/m/model.safetensors"
}

@test "--init keeps the tokenizer of the first model, so ids keep their meaning" {
    "${train[@]}" --arch llama --out "$T/first" corpus > "$T/loss"
    "$BIN/write-corpus" --lists --count 60 --seed 1 -o "$T/lists"
    "${train[@]}" --arch llama --out "$T/alone" "$T/lists" > "$T/loss"
    ids() { jq -S '[.model, .added_tokens]' "$1/tokenizer.json"; }
    [ "$(ids "$T/first")" != "$(ids "$T/alone")" ]
    for arch in llama llada; do
        "${train[@]}" --arch $arch --init "$T/first" --out "$T/$arch" "$T/lists" > "$T/loss"
        [ "$(ids "$T/first")" = "$(ids "$T/$arch")" ]
        # the token before a text is that of the family, as when both are trained on one corpus
        "${train[@]}" --arch $arch --out "$T/own" corpus > "$T/loss"
        cmp "$T/own/tokenizer.json" "$T/$arch/tokenizer.json"
    done
    rm "$T/first/tokenizer.json"
    run -66 --separate-stderr "${train[@]}" --init "$T/first" --out "$T/m" "$T/lists"
}

@test "several corpora give the same training as one corpus" {
    "${train[@]}" --out "$T/two" <(head -n 30 corpus) <(tail -n 30 corpus) > "$T/loss"
    "${train[@]}" --out "$T/one" corpus > "$T/loss"
    cmp "$T/two/model.safetensors" "$T/one/model.safetensors"
}

@test "training.ndjson lists the rows of a training and of its initial models" {
    rows() { jq -r '"\(.model) \(.rows)"' "$1/training.ndjson" | xargs; }
    "${train[@]}" --arch llama --out "$T/a" corpus > "$T/loss"
    [ "$(rows "$T/a")" = "a 768" ]
    "${train[@]}" --init "$T/a" --steps 2 --out "$T/b" corpus > "$T/loss"
    "${train[@]}" --init "$T/b" --steps 3 --out "$T/b" corpus > "$T/loss"
    [ "$(rows "$T/b")" = "a 768 b 256 b 384" ]
    "${train[@]}" --steps 1 --out "$T/b" corpus > "$T/loss"
    [ "$(rows "$T/b")" = "b 128" ]
    rm "$T/a/training.ndjson"
    "${train[@]}" --init "$T/a" --out "$T/b" corpus > "$T/loss"
    [ "$(rows "$T/b")" = "$T/a null b 768" ]
    printf '{"rows":' > "$T/a/training.ndjson"
    run -65 --separate-stderr "${train[@]}" --init "$T/a" --out "$T/b" corpus
    [[ $stderr == *"training.ndjson: expected whole lines"* ]]
}

@test "a state is refused by a command with another setting, which is named" {
    "${train[@]}" --arch llama --out "$T/init" corpus > "$T/loss"
    stopped
    cp "$T/m/train.state" "$T/state"
    while read -r name value; do
        run -65 --separate-stderr "${train[@]}" --out "$T/m" "--$name" "$value" corpus
        echo "$name: $stderr"
    [[ $stderr == *"train.state: belongs to a training with other settings: --$name expected "* ]]
        [[ $stderr == *", got \"$value\": "* || $stderr == *", got $value"* ]]
        cmp "$T/m/train.state" "$T/state"
        [ ! -e "$T/m/config.json" ]
    done << 'END'
seed 5
steps 7
rows 160
rate 0.5
warmup 7
decay 0.25
clip 2.5
whole 0.25
cut 0.5
oversample sum
times 7
min-len 24
max-len 40
context 128
precision bf16
loss whole
qat int8
parts 2
END
    run -65 --separate-stderr "${train[@]}" --out "$T/m" --init "$T/init" corpus
    [[ $stderr == *"first weights expected "* ]]
    run -65 --separate-stderr "${train[@]}" --out "$T/m" --limit 50 corpus
    [[ $stderr == *"corpus expected "* ]]
    sed -i 's/"step":[0-9]/"step":6/' "$T/m/train.state"    # the last: nothing would be trained
    run -65 --separate-stderr "${train[@]}" --out "$T/m" corpus
    [[ $stderr == *"train.state: step expected below --steps 6, got 6: "* ]]
    cp "$T/state" "$T/m/train.state"
    "${train[@]}" --out "$T/m" corpus > "$T/loss"
    [ ! -e "$T/m/train.state" ]
}
