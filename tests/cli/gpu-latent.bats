#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Latent thought models on the emulated CUDA device (tests/emulate): its latents and texts are
# compared with those of the processor.
load conforms

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    export BIN="${BIN:-build/bin}" D="$BATS_FILE_TMPDIR"
    "$BIN/write-corpus" --count 60 --seed 1 -o "$D/corpus"
    for mixer in swa rwkv6 rwkv7; do
        more=(--mixer "$mixer" --rank 8 --kv-heads 2)
        [ "$mixer" != swa ] || more=(--window 6 --kv-heads 1)
        "$BIN/train-lm" -q --no-meta --arch ltm --width 32 --layers 2 --heads 2 "${more[@]}" \
            --ffn 48 --vocab 300 --context 256 --latents 3 --vi-steps 4 --steps 30 --warmup 3 \
            --rate 0.01 --rows 384 --max-len 96 --threads 1 --out "$D/$mixer" "$D/corpus" \
            > "$D/loss"
    done
    cat > "$D/prompts" << 'END'
{"id":"p1","prompt_ids":[5,6,7,8,9,10,11,40,41,42,43]}
{"id":"p2","prompt_ids":[120,33,34]}
{"id":"p3","prompt_ids":[12]}
END
}

setup() {
    set -o pipefail
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR D=$BATS_FILE_TMPDIR
    export CROSSOVER_CUDA="${TESTBIN:-build/tests}/libcrossover-cuda.so"
    [ -e "$CROSSOVER_CUDA" ] || skip "no C++ compiler, so no emulated device"
}

# runs gen-ltm with a mixer on a device
gen() { "$BIN/gen-ltm" -m "$D/$1" --device "$2" --max-new 3 --ignore-eos --no-meta -q --threads 1 \
    --vi-steps 3 "${@:3}" "$D/prompts"; }
ids() { jq -c '[.id, .token_ids]' "$@" | sort; }
# prints ids, every latent and the gain of the fit, which cannot be equal by chance
whole() { jq -c '[.id, .token_ids, .latents, .kl_nats, .elbo_nats]' "$@" | sort; }

# The device makes the same sums in another order: products and softmax in fp32 are off by a
# relative error of 1e-6. The length of a step of AdamW does not depend on the gradient, so a small
# gradient passes its larger relative error on. Latents are about 1.
near() {
    jq -se 'group_by(.id) | all(length == 2 and .[0].token_ids == .[1].token_ids and
        (.[0].latents | length) == 2 * 3 * 32 and
        ([.[0].latents, .[1].latents] | transpose | all(.[0] - .[1] | fabs < 2e-3)) and
        (.[0].kl_nats - .[1].kl_nats | fabs) < 1e-3 * (1 + .[0].kl_nats) and
        ((.[0].elbo_nats // 0) - (.[1].elbo_nats // 0) | fabs) < 1e-3 * (1 + .[0].kl_nats))' "$@"
}

@test "latents fitted on the device are near the processor's and give its ids, for each mixer" {
    for mixer in swa rwkv6 rwkv7; do
        gen $mixer cpu --dtype f32 --keep-latents > "$T/cpu"
        gen $mixer cuda --dtype f32 --keep-latents > "$T/cuda"
        conforms "$T/cuda"
        jq -se 'all(.device == "cuda" and .dtype == "f32" and .vi_ns > 0 and .status == "ok")' \
            "$T/cuda"
        near "$T/cpu" "$T/cuda"
        [ $mixer = swa ] || continue
        gen $mixer cuda --dtype f32 --keep-latents > "$T/again"
        cmp <(whole "$T/cuda") <(whole "$T/again")
        gen $mixer cuda --dtype f32 --keep-latents --graphs off > "$T/again"
        cmp <(whole "$T/cuda") <(whole "$T/again")
    done
}

@test "batches, refits, draws, no cache and dense attention give the processor's ids" {
    for mixer in swa rwkv7; do
        for how in "--batch 3 --refit 2" "--z-draw sample --temperature 1" "--cache off" \
            "--z prior --batch 2" "--z zero --attention dense"; do
            [[ $mixer == swa || $how == *batch* ]] || continue # of the others, what differs
            read -ra more <<< "$how"
            gen $mixer cpu --dtype f32 "${more[@]}" > "$T/cpu"
            gen $mixer cuda --dtype f32 "${more[@]}" > "$T/cuda"
            cmp <(ids "$T/cpu") <(ids "$T/cuda") || { echo "$mixer $how"; false; }
        done
    done
}

@test "weights are bf16 by default or fp16; bf16 activations are refused" {
    gen swa cuda > "$T/auto"
    jq -se 'all(.dtype == "bf16-f32")' "$T/auto"
    for dtype in bf16-f32 f16; do
        gen swa cpu --dtype $dtype > "$T/cpu"
        gen swa cuda --dtype $dtype > "$T/cuda"
        cmp <(ids "$T/cpu") <(ids "$T/cuda")
    done
    for how in "--dtype bf16" "--quant int8"; do
        read -ra more <<< "$how"
        run -64 --separate-stderr gen swa cuda "${more[@]}"
        [[ $stderr == *"latent thoughts are fitted in fp32 on a device: expected --dtype f32"* ]]
    done
    run -69 --separate-stderr gen swa cuda --z dit
    [[ $stderr == *"--z dit: a learned prior runs only on the CPU"* ]]
    cp -r "$D/swa" "$T/with"
    "$BIN/train-prior" -q --no-meta -m "$T/with" --count 20 --vi-steps 1 --width 32 --layers 1 \
        --steps 2 --threads 1 "$D/corpus" > "$T/prior"
    echo '{"id":"t","text":"A boat went out."}' > "$T/text"
    run -69 --separate-stderr "$BIN/score-ppl" -m "$T/with" --mode elbo --prior dit --device cuda \
        "$T/text"
    [[ $stderr == *"a learned prior of latents is computed on the processor"* ]]
}

@test "bounds by score-ppl on the device are the processor's; memory is planned" {
    echo '{"id":"t","text":"A boat went out."}' > "$T/text"
    for device in cpu cuda; do
        "$BIN/score-ppl" -q --no-meta --threads 1 -m "$D/swa" --mode elbo --samples 2 --vi-steps 3 \
            --device $device --dtype f32 "$T/text" > "$T/$device"
    done
    conforms "$T/cuda"
    jq -se 'map(select(.id).value) | length == 2 and (.[0] - .[1] | fabs) < 1e-3 * .[0]' \
        "$T/cpu" "$T/cuda"
    gen swa cuda --batch 3 > "$T/ran"
    jq -se 'all(.memory | (.planned_bytes / .allocated_peak_bytes - 1 | fabs) < 0.05)' "$T/ran"
    gen swa cuda --mem-cap 300K > "$T/oom" || [ "$?" -eq 1 ]
    jq -se 'all(.status == "oom")' "$T/oom"
}
