#!/usr/bin/env bats
# Compares families of diffusion models with the float64 reference of tests/reference, on random
# checkpoints in the layout of each family: the same ids if the decision is clear.

load ../reference/agree

@test "illada: ids agree in each dtype, sharded, grouped, tied, at odd shapes, on every level" {
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

@test "illada: the mask is the token <[MASK]>, and unconfirmed settings are refused" {
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
    jq 'del(.mask_token_id) | .rope_parameters = {rope_type: "default", rope_theta} |
        del(.rope_theta)' "$T/model/config.json" > "$T/new" # as transformers 5 writes it
    mv "$T/new" "$T/model/config.json"
    diffusion 16 16 4 0
    jq 'del(.added_tokens[2])' "$T/model/tokenizer.json" > "$T/new"
    mv "$T/new" "$T/model/tokenizer.json"
    run "$BIN/gen-llada" -m "$T/model" --no-meta "$T/prompts"
    [ "$status" -eq 65 ] && [[ $output == *"no mask token: expected the added token <[MASK]>"* ]]
}

@test "illada: ids agree on the emulated CUDA device" {
    [ -e "${TESTBIN:-build/tests}/libcrossover-cuda.so" ] ||
        skip "no C++ compiler, so no emulated device"
    make_model --arch illada --kv-heads 2
    on_cuda diffusion 24 8 9 1 --dtype f32 --batch 4
}

@test "a2d: mdlm samples as dllm does, for the block of each model family" {
    for family in a2d-qwen3 a2d-qwen2 a2d-llama; do
        make_model --arch $family --dtype BF16 --kv-heads 2 --seed 3
        sampled mdlm '{"gen_length":32,"block_length":32,"steps":9}' --gen-length 32 --steps 9
        sampled mdlm '{"gen_length":24,"block_length":8,"steps":24}' --gen-length 24 \
            --block-length 8 --device ref
    done
    make_model --arch a2d-qwen3 --shards 3 --tied --head-dim 20 --kv-heads 1
    sampled mdlm '{"gen_length":28,"block_length":14,"steps":10}' --gen-length 28 \
        --block-length 14 --steps 10 --batch 3
    on_levels gen-llada sampled mdlm '{"gen_length":16,"block_length":16,"steps":5}' \
        --gen-length 16 --block-length 16 --steps 5
}

@test "a2d: bd3lm fills blocks from the end of the prompt, by its name or by --mask-block" {
    make_model --arch a2d-qwen3 --dtype F16 --head-dim 12 --kv-heads 2
    sampled bd3lm '{"gen_length":32,"block_length":8,"steps":12}' --mask-block 8 --gen-length 32 \
        --steps 12
    jq -e '.paradigm == "block_diffusion" and .block_length == 8 and .cache == "exact"' "$T/got"
    sampled bd3lm '{"gen_length":24,"block_length":8,"steps":24}' --mask-block 8 --gen-length 24 \
        --cache none --device ref --batch 4
    on_levels gen-llada sampled bd3lm '{"gen_length":16,"block_length":4,"steps":8}' \
        --mask-block 4 --gen-length 16 --steps 8
    masks() {
        "$BIN/gen-llada" -q -m "$T/model" --mask-block "$1" --gen-length 8 --block-length 8 \
            --cache none --limit 1 "$T/prompts" | jq -r 'select(.kind == "generation").point'
    }
    [ "$(masks 4)" = "$(masks 4)" ] && [ "$(masks 4)" != "$(masks 8)" ]
    mv "$T/model" "$T/qwen3-bd3lm"
    ln -s "$T/qwen3-bd3lm" "$T/model"
    sampled bd3lm '{"gen_length":64,"block_length":32,"steps":18}' --gen-length 64 --steps 18
    sampled bd3lm '{"gen_length":24,"block_length":12,"steps":10}' --gen-length 24 --steps 10 \
        --block-length 12 # the mask has the blocks that are filled
    rm "$T/model"
    for family in a2d-qwen2 a2d-llama; do
        make_model --arch $family --tied --gain 2.5
        sampled bd3lm '{"gen_length":24,"block_length":8,"steps":9}' --mask-block 8 \
            --gen-length 24 --steps 9
    done
}

@test "sdar: ids agree with blocks of 4 from the first id, a strict threshold, whole last blocks" {
    make_model --arch sdar --dtype BF16 --kv-heads 2 --gain 2.5
    sampled sdar '{"gen_length":24,"threshold":0.5}' --temperature 0 --threshold 0.5 --gen-length 24
    jq -se 'map(.commit_tokens[]) | max > 1' "$T/got"
    jq -e '.unmask == "dynamic" and .block_length == 4 and .cache == "exact"' "$T/got"
    sampled sdar '{"gen_length":24,"threshold":0.5}' --temperature 0 --threshold 0.5 \
        --gen-length 24 --cache none --device ref
    sampled sdar '{"gen_length":20,"steps":2,"threshold":0.9}' --temperature 0 --threshold 0.9 \
        --gen-length 20 --steps 10 --batch 4
    make_model --arch sdar --shards 2 --tied --head-dim 20 --kv-heads 1 --layers 3
    sampled sdar '{"gen_length":32,"block_length":16,"steps":3,"threshold":1}' --temperature 0 \
        --threshold 1 --mask-block 16 --gen-length 32 --steps 6
    on_levels gen-llada sampled sdar '{"gen_length":12,"threshold":0.3}' --temperature 0 \
        --threshold 0.3 --gen-length 12
    mv "$T/model" "$T/SDAR-tiny-Chat-b8"
    ln -s "$T/SDAR-tiny-Chat-b8" "$T/model"
    sampled sdar '{"gen_length":16,"block_length":8,"steps":8,"threshold":0.85}' --temperature 0 \
        --gen-length 16
    sampled sdar '{"gen_length":24,"block_length":6,"steps":6,"threshold":0.5}' --temperature 0 \
        --gen-length 24 --block-length 6 --threshold 0.5 # the mask has the blocks that are filled
    mv "$T/SDAR-tiny-Chat-b8" "$T/SDAR-tiny-Chat"
    rm "$T/model"
    ln -s "$T/SDAR-tiny-Chat" "$T/model"
    jq '.block_size = 8' "$T/model/config.json" > "$T/new" # as where training begins
    mv "$T/new" "$T/model/config.json"
    sampled sdar '{"gen_length":16,"block_length":8,"steps":8,"threshold":0.85}' --temperature 0 \
        --gen-length 16
    jq -e '.block_length == 8' "$T/got"
    mv "$T/SDAR-tiny-Chat" "$T/SDAR-tiny-Chat-b4"
    rm "$T/model"
    ln -s "$T/SDAR-tiny-Chat-b4" "$T/model"
    sampled sdar '{"gen_length":16,"threshold":0.85}' --temperature 0 --gen-length 16
}

@test "sdar: without options it samples as its authors do" {
    make_model --arch sdar
    "$BIN/gen-llada" -q -m "$T/model" --gen-length 8 --no-meta "$T/prompts" > "$T/got"
    jq -e '.temperature == 1 and .threshold == 0.85 and .unmask == "dynamic"' "$T/got"
    run "$BIN/gen-llada" -m synth:tiny-llada-moe --mask-block 4 --no-meta "$T/prompts"
    [ "$status" -eq 64 ] && [[ $output == *"--mask-block: expected a model whose files"* ]]
}

@test "a2d, sdar: unconfirmed settings are refused by name" {
    make_model --arch a2d-qwen3
    refuses "attention_bias: expected false" '.attention_bias = true'
    refuses "use_sliding_window: expected false" '.use_sliding_window = true'
    refuses "model_type: expected \"a2d-qwen3\"" '.model_type = "qwen3"'
    make_model --arch sdar
    refuses "block_size: expected integer from 1" '.block_size = 0'
}

@test "a2d, sdar: ids agree on the emulated CUDA device" {
    [ -e "${TESTBIN:-build/tests}/libcrossover-cuda.so" ] ||
        skip "no C++ compiler, so no emulated device"
    make_model --arch a2d-qwen3 --kv-heads 2 --head-dim 12
    on_cuda sampled mdlm '{"gen_length":16,"block_length":16,"steps":5}' --gen-length 16 \
        --block-length 16 --steps 5 --dtype f32
    on_cuda sampled bd3lm '{"gen_length":16,"block_length":8,"steps":6}' --mask-block 8 \
        --gen-length 16 --steps 6 --dtype f32 --batch 4
    make_model --arch sdar --kv-heads 2 --gain 2.5
    on_cuda sampled sdar '{"gen_length":16,"threshold":0.5}' --temperature 0 --threshold 0.5 \
        --gen-length 16 --dtype f32 --batch 2
}

@test "dream: ids agree with shifted answers, Dream's steps and its three measures" {
    make_model --arch dream --dtype BF16 --kv-heads 2 --gain 2.5
    sampled dream '{"gen_length":24,"steps":24}' --gen-length 24 --unmask schedule --pace timesteps
    sampled dream '{"gen_length":24,"steps":7,"order":"margin"}' --gen-length 24 --steps 7 \
        --unmask schedule --pace timesteps --order margin --device ref
    sampled dream '{"gen_length":24,"steps":12,"order":"entropy"}' --gen-length 24 --steps 12 \
        --unmask schedule --pace timesteps --order entropy --batch 4
    make_model --arch dream --gain 2.5 --shards 3 --tied --kv-heads 1 --width 36 --heads 3 \
        --ffn 37 --layers 3
    sampled dream '{"gen_length":20,"steps":5}' --gen-length 20 --steps 5 --unmask schedule \
        --pace timesteps
    on_levels gen-llada sampled dream '{"gen_length":12,"steps":6}' --gen-length 12 --steps 6 \
        --unmask schedule --pace timesteps
}

@test "dream: origin commits a random share of slots in each step, all in the last step" {
    make_model --arch dream
    "$BIN/gen-llada" -q -m "$T/model" --gen-length 64 --steps 4,1 --no-meta "$T/prompts" > "$T/got"
    jq -se '[.[] | select(.steps == 1)] | all(.denoise_steps == 1 and .unmask == "origin")' "$T/got"
    # each step fills a quarter of 4 x 64 slots; 5 standard deviations of the binomial are 35
    jq -se '[.[] | select(.steps == 4)] | [range(4) as $i | [.[].commit_tokens[$i]] | add] |
        add == 256 and all(. > 29 and . < 99)' "$T/got"
}

@test "dream: slots are drawn with an order temperature, and bounds are shifted" {
    make_model --arch dream --gain 2.5
    run() { "$BIN/gen-llada" -q -m "$T/model" --gen-length 24 --steps 12 --unmask schedule \
        --no-meta --order-temperature "$@" "$T/prompts" | jq -c .token_ids; }
    [ "$(run 0)" = "$(run 1e-6)" ]
    [ "$(run 0)" != "$(run 1)" ]
    nll=$("$REFERENCE" <<< "{\"op\":\"logits\",\"model\":\"$T/model\",\"ids\":[97,98,258]}" |
        jq '.logits[1] as $l | ([$l[] | exp] | add | log) - $l[99]')
    "$BIN/score-ppl" -q -m "$T/model" --target reference --mode elbo --samples 1 --no-meta \
        <<< '{"id":"p","text":"ab","reference":"c"}' |
        jq -se --argjson x "$nll" 'map(select(.metric == "elbo_nats" and .id == "p").value) |
            length == 1 and (.[0] - $x | fabs) < 1e-4 * $x'
}

@test "fast-dllm: ids agree for parts of a block that the block before seeds" {
    make_model --arch fast-dllm --dtype BF16 --kv-heads 2 --gain 2.5
    sampled fast '{"gen_length":24,"block_length":8,"part":4,"threshold":0.5}' --gen-length 24 \
        --block-length 4 --threshold 0.5
    jq -e '.unmask == "dynamic" and .cache == "exact"' "$T/got"
    sampled fast '{"gen_length":24,"block_length":8,"part":8,"threshold":0.9}' --gen-length 24 \
        --cache none --device ref
    sampled fast '{"gen_length":16,"block_length":8,"part":2,"threshold":1}' --gen-length 16 \
        --block-length 2 --threshold 1 --batch 4
    on_levels gen-llada sampled fast '{"gen_length":16,"block_length":8,"part":4,"threshold":0.3}' \
        --gen-length 16 --block-length 4 --threshold 0.3
    jq '.bd_size = 14 | .conplemenrary_mask = true | .layer_types = ["full_attention"]' \
        "$T/model/config.json" > "$T/new" # p3 ends with a block, and p2 is half of one
    mv "$T/new" "$T/model/config.json"
    echo bd_size 14 >> "$T/made"
    sampled fast '{"gen_length":28,"block_length":14,"part":7,"threshold":0.4}' --gen-length 28 \
        --block-length 7 --threshold 0.4
    refuses "bd_size: expected integer from 1" '.bd_size = 0'
}

@test "dream, fast-dllm: ids agree on the emulated CUDA device" {
    [ -e "${TESTBIN:-build/tests}/libcrossover-cuda.so" ] ||
        skip "no C++ compiler, so no emulated device"
    make_model --arch dream --kv-heads 2 --gain 2.5
    on_cuda sampled dream '{"gen_length":12,"steps":6}' --gen-length 12 --steps 6 \
        --unmask schedule --pace timesteps --dtype f32 --batch 4
    make_model --arch fast-dllm --kv-heads 2 --gain 2.5
    on_cuda sampled fast '{"gen_length":16,"block_length":8,"part":4,"threshold":0.5}' \
        --gen-length 16 --block-length 4 --threshold 0.5 --dtype f32 --batch 4
    on_cuda sampled fast '{"gen_length":16,"block_length":8,"part":8,"threshold":0.9}' \
        --gen-length 16 --cache none --dtype f32
}

@test "llada-moe: ids agree in each dtype, sharded, tied, at odd shapes, on every level" {
    make_model --arch llada-moe --dtype F16 --kv-heads 2 --experts 7 --used 3 --ffn 19
    diffusion 24 8 9 0 --device cpu
    on_levels gen-llada diffusion 16 16 5 0
    make_model --arch llada-moe --dtype BF16 --shards 4 --seed 7 --experts 5 --used 5
    diffusion 24 8 9 1 --device ref
    make_model --arch llada-moe --tied --kv-heads 1 --seed 8 --experts 9 --used 1 --shared 61
    diffusion 24 8 12 0 --batch 3
    diffusion 24 8 12 0 --ffn unfused --row-tile 5
    make_model --arch llada-moe --width 30 --heads 3 --ffn 37 --vocab 271 --layers 3
    diffusion 20 10 6 0 --threads 2
    diffusion 20 10 6 0 --row-tile 3
}

@test "llada-moe: keys that its authors' code ignores change nothing, all others are refused" {
    make_model --arch llada-moe
    jq '.model_type = "lladamoe" | .norm_topk_prob = null | .router_topk_group = 4 |
        .rope_parameters = {rope_type: "default", rope_theta} | del(.rope_theta)' \
        "$T/model/config.json" > "$T/new"
    mv "$T/new" "$T/model/config.json"
    diffusion 16 16 4 0
    refuses "moe_layer_freq: expected a list with 1 for every layer" '.moe_layer_freq[1] = 0'
    refuses "moe_layer_freq: expected a list with 1 for every layer" '.moe_layer_freq += [1]'
    refuses "moe_router_enable_expert_bias: expected false" '.moe_router_enable_expert_bias = true'
    refuses "moe_router_score_function: expected \"softmax\"" \
        '.moe_router_score_function = "sigmoid"'
    refuses "clip_qkv: expected null" '.clip_qkv = 8'
    refuses "partial_rotary_factor: expected 1.0" '.partial_rotary_factor = 0.5'
    refuses "num_experts_per_tok: expected at most num_experts" '.num_experts_per_tok = 7'
    refuses "intermediate_size = 8: unknown key" '.intermediate_size = 8'
    jq '.qk_layernorm = false' "$T/model/config.json" > "$T/new"
    mv "$T/new" "$T/model/config.json"
    run "$BIN/gen-llada" -m "$T/model" --no-meta "$T/prompts"
    [ "$status" -eq 65 ] && [[ $output == *"q_norm.weight\" has no place in a llada-moe"* ]]
}

@test "llada-moe: experts are quantized, packed, offloaded and counted as other matrices" {
    make_model --arch llada-moe --width 64 --ffn 64 --heads 2 --shared 64
    for quant in int8 nf4; do
        "$BIN/gen-llada" -q -m "$T/model" --gen-length 16 --quant $quant --no-meta "$T/prompts" \
            > "$T/got"
        "$BIN/pack-model" -q -m "$T/model" --quant $quant --out "$T/$quant" > "$T/packed"
        jq -se 'map(select(.role == "gate" and .tensors == 12 and .parameters == 12 * 64 * 64)) |
            length == 1' "$T/packed"
        "$BIN/gen-llada" -q -m "$T/$quant" --gen-length 16 --no-meta "$T/prompts" > "$T/again"
        [ "$(jq -c .token_ids "$T/got")" = "$(jq -c .token_ids "$T/again")" ]
    done
    "$BIN/gen-llada" -q -m "$T/model" --gen-length 16 --no-meta "$T/prompts" > "$T/got"
    "$BIN/gen-llada" -q -m "$T/model" --gen-length 16 --device-map 1 --no-meta "$T/prompts" \
        > "$T/again"
    [ "$(jq -c .token_ids "$T/got")" = "$(jq -c .token_ids "$T/again")" ]
    run "$BIN/pack-model" -m "$T/model" --prune-ffn 0.5 --prune-score l2 --out "$T/small"
    [ "$status" -eq 65 ] && [[ $output == *"mixture of experts cannot be removed"* ]]
    run "$BIN/train-lm" --from "$T/model" --steps 1 --out "$T/after" "$T/prompts"
    [ "$status" -eq 64 ]
}

@test "llada-moe: ids agree on the emulated CUDA device" {
    [ -e "${TESTBIN:-build/tests}/libcrossover-cuda.so" ] ||
        skip "no C++ compiler, so no emulated device"
    make_model --arch llada-moe --kv-heads 2 --experts 7 --used 3 --ffn 19 --shared 23
    on_cuda diffusion 16 8 4 1 --dtype f32 --batch 4
}

# own_guesses [option...]: tests that the model writes the same ids with and without its own guesses
own_guesses() {
    "$BIN/gen-llama" -q -m "$T/model" --ignore-eos --no-meta "$@" "$T/prompts" > "$T/alone"
    for guesses in 1 7,31; do
        "$BIN/gen-llama" -q -m "$T/model" --ignore-eos --no-meta --self-draft $guesses "$@" \
            "$T/prompts" > "$T/guessed"
        jq -se --slurpfile a "$T/alone" '($a | map({(.id): .token_ids}) | add) as $ids |
            all(.token_ids == $ids[.id] and .new_tokens == .accepted_tokens + .passes) and
            (map(.drafted_tokens) | add) > (map(.accepted_tokens) | add)' "$T/guessed"
    done
}

@test "nemotron: ids agree for blocks after the prompt, each seeded by the block before" {
    make_model --arch nemotron --dtype BF16 --kv-heads 2 --gain 2.5
    # the model commits the mask id, so a block takes a step for each slot after its first token
    echo '{"id":"p5","prompt_ids":[172,203,18,93,66,120,111,214,197,136,39,118,71,165,85,206,36,45,
        88,61,71,123,202,147,38,220,243,161,202,123,107,119]}' | jq -c . > "$T/prompts"
    echo '{"id":"p6","prompt_ids":[112,76,101,168,211,167,156,22,236,210,216,190,136,58,54,214,143,
        242,78,44,146,111,219,249,28]}' | jq -c . >> "$T/prompts"
    sampled nemotron '{"gen_length":24,"block_length":8,"threshold":0.6}' --gen-length 24 \
        --threshold 0.6
    make_prompts
    sampled nemotron '{"gen_length":24,"block_length":8,"threshold":0.5}' --gen-length 24 \
        --threshold 0.5
    jq -e '.unmask == "threshold" and .block_length == 8 and .cache == "exact" and
           .paradigm == "block_diffusion"' "$T/got"
    sampled nemotron '{"gen_length":24,"block_length":8,"threshold":0.9}' --gen-length 24 \
        --device ref
    sampled nemotron '{"gen_length":24,"block_length":8,"threshold":1}' --gen-length 24 \
        --threshold 1 --batch 4
    sampled nemotron '{"gen_length":24,"block_length":8,"threshold":0.2}' --gen-length 24 \
        --threshold 0.2 --batch 3 --admit continuous
    sampled nemotron '{"gen_length":24,"block_length":8,"threshold":0.5}' --gen-length 24 \
        --threshold 0.5 --batch 3 --cache none
    sampled nemotron '{"gen_length":32,"block_length":16,"threshold":0.5}' --gen-length 32 \
        --threshold 0.5 --block-length 16
    sampled nemotron '{"gen_length":24,"block_length":4,"threshold":0.5}' --gen-length 24 \
        --threshold 0.5 --block-length 4 --batch 4
    on_levels gen-llada sampled nemotron '{"gen_length":16,"block_length":8,"threshold":0.3}' \
        --gen-length 16 --threshold 0.3
    make_model --arch nemotron --shards 3 --tied --head-dim 20 --kv-heads 1 --layers 3 --ffn 37
    sampled nemotron '{"gen_length":16,"block_length":8,"threshold":0.4}' --gen-length 16 \
        --threshold 0.4
    jq '.block_size = 14' "$T/model/config.json" > "$T/new"
    mv "$T/new" "$T/model/config.json"
    echo block_size 14 >> "$T/made"
    sampled nemotron '{"gen_length":28,"block_length":14,"threshold":0.4}' --gen-length 28 \
        --threshold 0.4 --dtype f32 --batch 2
}

@test "nemotron: ids agree left to right, with or without own guesses, and as a judge" {
    make_model --arch nemotron --dtype F16 --kv-heads 2 --head-dim 12 --theta 500
    greedy
    jq -e '.paradigm == "autoregressive"' "$T/got"
    own_guesses --max-new 60
    own_guesses --max-new 40 --device ref --batch 4
    own_guesses --max-new 40 --temperature 0.7 --seed 5 --batch 3 --admit continuous
    own_guesses --max-new 30 --temperature 0.9 --top-k 9 --top-p 0.8
    on_levels gen-llama own_guesses --max-new 20
    likelihood 1e-5 --device ref
}

@test "nemotron: unconfirmed settings are refused by name" {
    make_model --arch nemotron
    refuses 'dlm_paradigm: expected "bidirectional"' '.dlm_paradigm = "block_diff"'
    refuses "mask_token_id" 'del(.mask_token_id)'
    run "$BIN/gen-llada" -m "$T/model" --no-meta <(echo '{"id":"e","prompt_ids":[]}')
    [ "$status" -eq 0 ] # the first token follows the token that begins a text
    refuses "sliding_window: expected null" '.sliding_window = 64'
    refuses 'rope_parameters: expected an object with rope_type "yarn"' 'del(.rope_parameters)'
    refuses 'rope_parameters: expected an object with rope_type "yarn"' \
        '.rope_parameters = {rope_type: "default", rope_theta: 100}'
    refuses "factor: expected max_position_embeddings /" '.rope_parameters.factor = 3'
    refuses "max_position_embeddings: expected the one of config.json" \
        '.rope_parameters.max_position_embeddings = 7'
    refuses "expected one type, not two" \
        '.rope_scaling = {rope_type: "llama3", factor: 2,
        low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 64}'
    refuses "attention_factor: expected 0.001 or more" '.rope_parameters.attention_factor = 0.0009'
    refuses "truncate: expected true" '.rope_parameters.truncate = false'
    refuses "short_factor: expected no such key" '.rope_parameters.short_factor = [1]'
    run "$BIN/gen-llama" -m "$T/model" --no-meta --max-new 300 "$T/prompts" # 256 positions
    [ "$status" -ne 0 ]
    make_model --arch llama
    run "$BIN/gen-llama" -m "$T/model" --no-meta --self-draft 3 "$T/prompts"
    [ "$status" -eq 64 ] && [[ $output == *"expected a model that also fills masks"* ]]
}

@test "nemotron: ids agree on the emulated CUDA device" {
    [ -e "${TESTBIN:-build/tests}/libcrossover-cuda.so" ] ||
        skip "no C++ compiler, so no emulated device"
    make_model --arch nemotron --kv-heads 2 --gain 2.5
    on_cuda sampled nemotron '{"gen_length":16,"block_length":8,"threshold":0.5}' \
        --gen-length 16 --threshold 0.5 --dtype f32 --batch 4
    on_cuda sampled nemotron '{"gen_length":16,"block_length":8,"threshold":0.5}' \
        --gen-length 16 --threshold 0.5 --dtype f32 --cache none
    on_cuda greedy --dtype f32 --batch 4
    on_cuda own_guesses --max-new 12 --dtype f32
}

@test "ministral3: ids agree with YaRN, in each dtype, sharded, tied, at odd shapes" {
    make_model --arch ministral3 --dtype F16 --kv-heads 2 --head-dim 12 --theta 500
    greedy
    likelihood 1e-5 --device ref
    make_prompts
    on_levels gen-llama greedy
    make_model --arch ministral3 --dtype BF16 --tied --shards 3 --kv-heads 1 --layers 3 --ffn 37
    greedy --batch 4
    run "$BIN/gen-llama" -m "$T/model" --no-meta --self-draft 3 "$T/prompts"
    [ "$status" -eq 64 ] && [[ $output == *"expected a model that also fills masks"* ]]
    jq '.rope_parameters.factor = 1.5' "$T/model/config.json" > "$T/new"
    mv "$T/new" "$T/model/config.json"
    run "$BIN/gen-llama" -m "$T/model" --no-meta "$T/prompts"
    [ "$status" -eq 65 ] && [[ $output == *"factor: expected max_position_embeddings /"* ]]
}

# turns JQ [option...]: runs greedy with a config.json that the filter JQ changes
turns() {
    jq "$1" "$T/model/config.json" > "$T/new"
    mv "$T/new" "$T/model/config.json"
    echo "$1" >> "$T/made"
    greedy "${@:2}"
}

@test "rotations: ids agree for YaRN with an attention factor and for linear scaling" {
    yarn='.rope_scaling = {rope_type: "yarn", factor: 4,
        original_max_position_embeddings: (.max_position_embeddings / 4)}'
    make_model --arch qwen3 --kv-heads 2 --theta 500
    turns "$yarn"
    likelihood 1e-5 --device ref
    make_prompts
    on_levels gen-llama greedy
    turns "$yarn | .rope_scaling.attention_factor = 0.6"
    turns "$yarn | .rope_scaling += {mscale: 2, mscale_all_dim: 0.5}" --batch 4
    turns '.rope_scaling = {rope_type: "linear", factor: 3}'
    likelihood 1e-5
    if [ -e "${TESTBIN:-build/tests}/libcrossover-cuda.so" ]; then
        turns "$yarn"
        on_cuda greedy --dtype f32 --batch 4
    fi
}

@test "ministral3: ids agree on the emulated CUDA device" {
    [ -e "${TESTBIN:-build/tests}/libcrossover-cuda.so" ] ||
        skip "no C++ compiler, so no emulated device"
    make_model --arch ministral3 --kv-heads 2
    on_cuda greedy --dtype f32 --batch 4
}

# draws FILTERS [option...]: all slots of 400 canvases at once, with these options as an object; the
# tokens of each slot are those that the float64 logits leave, as often as expected (5 deviations).
draws() {
    jq -cn '[84,104,101,32] as $p | range(400) | {id: "\(.)", prompt_ids: $p}' > "$T/prompts"
    # shellcheck disable=SC2046
    "$BIN/gen-llada" -q -m "$T/model" --gen-length 6 --steps 1 --no-meta --batch 50 $(jq -r \
        'to_entries[] | "--\(.key | gsub("_"; "-"))", .value' <<< "$1") "${@:2}" \
        "$T/prompts" > "$T/got"
    "$REFERENCE" <<< "{\"op\":\"logits\",\"model\":\"$T/model\",\"ids\":[84,104,101,32,$(:
        )258,258,258,258,258,258]}" > "$T/logits"
    jq -n -e --argjson how "$1" --slurpfile l "$T/logits" --slurpfile g "$T/got" '
        def share(p): (map(.e) | add) as $sum | reduce .[] as $x ({mass: 0, kept: []};
            if .mass < p * $sum then .mass += $x.e | .kept += [$x] else . end) | .kept;
        ($g | length) as $n | [range(6) as $slot |
            ($l[0].logits[4 + $slot] | to_entries | sort_by(-.value)) as $sorted |
            [$sorted[] | select($how.top_k == 0 or .value >= $sorted[$how.top_k - 1].value) |
                .e = ((.value - $sorted[0].value) / $how.temperature | exp)] |
            share($how.top_p) | (map(.e) | add) as $sum |
            (map({key: "\(.key)", value: ($n * .e / $sum)}) | from_entries) as $want |
            ([$g[].token_ids[$slot]] | group_by(.) |
                map({key: "\(.[0])", value: length}) | from_entries) as $have |
            ($have | keys - ($want | keys) == []) and
            ($want | to_entries | all((($have[.key] // 0) - .value | fabs) <
                5 * (.value | sqrt) + 2))] | all and length == 6'
}

@test "top-k and top-p keep the tokens of the float64 logits, as often, on every back end" {
    make_model --arch illada --gain 2.5
    draws '{"temperature":0.7,"top_k":0,"top_p":0.8}'
    draws '{"temperature":1.3,"top_k":9,"top_p":1}' --device ref
    on_levels gen-llada draws '{"temperature":1,"top_k":12,"top_p":0.6}'
    run draws '{"temperature":1,"top_k":12,"top_p":0.6}' --top-k 3
    [ "$status" -ne 0 ] # another filter is seen
    if [ -e "${TESTBIN:-build/tests}/libcrossover-cuda.so" ]; then
        on_cuda draws '{"temperature":1,"top_k":12,"top_p":0.6}' --dtype f32
    fi
}

@test "dream: top-p comes before top-k, so two ids stay; other families keep one id" {
    for arch in dream sdar; do
        make_model --arch $arch # flat logits: each of two ids has more than 0.3 of both
        write() { "$BIN/gen-llada" -q -m "$T/model" --gen-length 8 --unmask schedule --steps 8 \
            --remasking random --no-meta "$@" "$T/prompts" | jq -c .token_ids; }
        write --temperature 0 > "$T/best"
        write --temperature 1 --top-k 2 --top-p 0.3 > "$T/drawn"
        if [ $arch = dream ]; then ! cmp -s "$T/best" "$T/drawn"; else cmp "$T/best" "$T/drawn"; fi
    done
}

@test "a token that alone can be drawn has confidence 1, so no threshold holds it back" {
    make_model --arch sdar --gain 2.5
    for filter in '--top-k 1' '--top-p 0.000001'; do
        # shellcheck disable=SC2086
        "$BIN/gen-llada" -q -m "$T/model" --gen-length 16 --no-meta $filter "$T/prompts" > "$T/got"
        jq -se 'all(.confidence_of == "drawn" and .temperature == 1 and
            (.commit_tokens | length <= 5))' "$T/got"
        # shellcheck disable=SC2086
        "$BIN/gen-llada" -q -m "$T/model" --gen-length 16 --no-meta $filter --confidence-of model \
            "$T/prompts" > "$T/got"
        jq -se 'any(.commit_tokens | length > 8)' "$T/got"
    done
    run "$BIN/gen-llada" -m "$T/model" --top-k 2.5 --no-meta "$T/prompts"
    [ "$status" -eq 64 ]
}
