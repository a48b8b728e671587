#!/usr/bin/env bats
# Families of diffusion models against the float64 reference of tests/reference, on random
# checkpoints in the layout of each: the same ids wherever the decision is clear.

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    . tests/reference/build.sh
}

setup() {
    set -o pipefail
    BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
    . tests/reference/agree.sh
    make_prompts
}

# refuses WORDS FILTER: config.json changed by the jq filter is refused with these words
refuses() {
    cp "$T/model/config.json" "$T/config"
    jq "$2" "$T/config" > "$T/model/config.json"
    run "$BIN/gen-llada" -m "$T/model" --no-meta "$T/prompts"
    cp "$T/config" "$T/model/config.json"
    [ "$status" -eq 65 ] && [[ $output == *"$1"* ]]
}

@test "illada: in each dtype, sharded, grouped, tied, of odd shapes, on every level" {
    make_model --arch illada --dtype F16 --kv-heads 2
    diffusion 24 8 9 0 --device cpu
    on_levels gen-llada diffusion 16 16 5 0
    make_model --arch illada --dtype BF16 --shards 4 --seed 7
    diffusion 24 8 9 1 --device ref
    make_model --arch illada --tied --kv-heads 1 --seed 8
    diffusion 24 8 12 0 --batch 3
    make_model --arch illada --width 30 --heads 3 --ffn 37 --vocab 271 --layers 3
    diffusion 20 10 6 0 --threads 2
}

@test "illada: the mask is the token <[MASK]>, and what was not confirmed is refused" {
    make_model --arch illada
    refuses "layer_norm_eps: expected null" '.layer_norm_eps = 1e-5'
    refuses "attention_bias: expected false" '.attention_bias = true'
    refuses "rope_theta" 'del(.rope_theta)'
    refuses "tie_word_embeddings" 'del(.tie_word_embeddings)'
    diffusion 16 16 4 0
    cp "$T/got" "$T/own"
    jq '.mask_token_id = 7' "$T/model/config.json" > "$T/new"
    mv "$T/new" "$T/model/config.json"
    run diffusion 16 16 4 0
    [ "$status" -ne 0 ] # with another id as the mask it writes something else
    jq 'del(.mask_token_id)' "$T/model/config.json" > "$T/new"
    mv "$T/new" "$T/model/config.json"
    jq 'del(.added_tokens[2])' "$T/model/tokenizer.json" > "$T/new"
    mv "$T/new" "$T/model/tokenizer.json"
    run "$BIN/gen-llada" -m "$T/model" --no-meta "$T/prompts"
    [ "$status" -eq 65 ] && [[ $output == *"no mask token: expected the added token <[MASK]>"* ]]
}

@test "illada: on the emulated CUDA device" {
    [ -e "${TESTBIN:-build/tests}/libcrossover-cuda.so" ] ||
        skip "no C++ compiler, so no emulated device"
    make_model --arch illada --kv-heads 2
    on_cuda diffusion 24 8 9 1 --dtype f32 --batch 4
}
