#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# train-lm on the emulated CUDA device (tests/emulate): losses near those of the processor, the same
# bits twice and when resumed; refusals. tests/cuda/test-training.cu has the forms of a step.
load conforms

setup_file() {
    "${BIN:-build/bin}/write-corpus" --count 40 --seed 1 -o "$BATS_FILE_TMPDIR/corpus"
}

setup() {
    set -o pipefail
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
    export CROSSOVER_CUDA="${TESTBIN:-build/tests}/libcrossover-cuda.so"
    [ -e "$CROSSOVER_CUDA" ] || skip "no C++ compiler, so no emulated device"
    train=("${BIN:-build/bin}/train-lm" -q --no-meta --width 32 --layers 2 --heads 2 --kv-heads 1
           --ffn 48 --vocab 300 --context 256 --steps 4 --rows 128 --min-len 16 --max-len 32
           --warmup 2 --threads 1 --report 1 --dtype F32 --valid "$BATS_FILE_TMPDIR/corpus")
    corpus=$BATS_FILE_TMPDIR/corpus
}

# Products in another order are off by a relative error of 1e-6; a step of AdamW passes this error
# on.
near() {
    jq -se 'group_by(.step) | length == 4 and all(length == 2 and
        (.[0].loss - .[1].loss | fabs) < 1e-4 * .[0].loss and
        (.[0].grad_norm - .[1].grad_norm | fabs) < 1e-3 * .[0].grad_norm)' "$@"
}

@test "losses are near the processor's; repeated and resumed trainings have the same bits" {
    for arch in llama llada; do
        for device in cpu cuda; do
            "${train[@]}" --arch $arch --device $device --out "$T/$device-$arch" "$corpus" \
                > "$T/$device"
        done
        conforms "$T/cuda"
        near "$T/cpu" "$T/cuda"
        jq -se 'all(.device == "cuda" and .memory.planned_bytes == .memory.allocated_peak_bytes) and
            (last | .valid_loss > 0)' "$T/cuda"
        "${train[@]}" --arch $arch --device cuda --out "$T/again" "$corpus" > "$T/r"
        cmp "$T/cuda-$arch/model.safetensors" "$T/again/model.safetensors"
        # interrupted after its second step
        run -74 "${train[@]}" --arch $arch --device cuda --report 4 --save 2 --out "$T/m-$arch" \
            -o /dev/full "$corpus"
        "${train[@]}" --arch $arch --device cuda --out "$T/m-$arch" "$corpus" > "$T/r"
        [ "$(jq -s 'length' "$T/r")" -eq 2 ]
        cmp "$T/cuda-$arch/model.safetensors" "$T/m-$arch/model.safetensors"
        rm -r "$T/again"
    done
    # from a checkpoint, in bf16, with fewer activations: still near
    more=(--from "$T/cpu-llama" --precision bf16 --parts 2 --checkpoint-every 1 --loss whole)
    for device in cpu cuda; do
        "${train[@]}" "${more[@]}" --device $device --out "$T/$device-more" "$corpus" > "$T/$device"
    done
    jq -se 'group_by(.step) | length == 4 and
        all(length == 2 and (.[0].loss - .[1].loss | fabs) < 1e-3 * .[0].loss)' "$T/cpu" "$T/cuda"
}

@test "a model that a GPU cannot train is refused; a state belongs to its device" {
    run -64 --separate-stderr "${train[@]}" --device cuda --arch ltm --out "$T/m" "$corpus"
    [[ $stderr == *"m: a GPU cannot train with latent thoughts: use --device cpu"* ]]
    run -64 --separate-stderr "${train[@]}" --device cuda --qat int8 --out "$T/m" "$corpus"
    [[ $stderr == *"m: a GPU cannot train with rounded weights (--qat): use --device cpu"* ]]
    run -64 --separate-stderr "${train[@]}" --device gpu --out "$T/m" "$corpus"
    [[ $stderr == *"--device: expected auto, ref, cpu or cuda[:N], got 'gpu'"* ]]
    run -74 "${train[@]}" --report 4 --save 2 --out "$T/m" -o /dev/full "$corpus"
    run -65 --separate-stderr "${train[@]}" --device cuda --out "$T/m" "$corpus"
    [[ $stderr == *'back end expected "cpu", got "cuda"'* ]]
}
