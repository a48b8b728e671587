#!/usr/bin/env bats
# Compares LLaDA2 and Ling with the float64 reference of tests/reference, as families.bats does for
# the other families: the same ids if the decision is clear.

load ../reference/agree

@test "llada2: ids agree with a grouped router, dense layers and a partial rotation" {
    make_model --arch llada2 --dtype BF16 --kv-heads 2 --gain 2.5 --experts 12 --used 3 --groups 4 \
        --shared 1
    sampled sdar '{"gen_length":24,"block_length":8,"steps":8,"threshold":0.5}' --mask-block 8 \
        --threshold 0.5 --gen-length 24
    jq -e '.unmask == "dynamic" and .block_length == 8 and .cache == "exact"' "$T/got"
    on_levels gen-llada sampled sdar \
        '{"gen_length":16,"block_length":8,"steps":8,"threshold":0.4}' --mask-block 8 \
        --threshold 0.4 --gen-length 16
    make_model --arch llada2 --dtype F16 --shards 4 --head-dim 20 --rotated 6 --kv-heads 1 \
        --heads 3 --width 30 --ffn 37 --vocab 271 --layers 4 --dense 2 --shared 2 --seed 5
    sampled sdar '{"gen_length":32,"block_length":16,"steps":4,"threshold":0.95}' --mask-block 16 \
        --gen-length 32 --steps 8 --cache none --device ref
    sampled sdar '{"gen_length":32,"block_length":16,"steps":4,"threshold":0.95}' --mask-block 16 \
        --gen-length 32 --steps 8 --batch 3 --ffn unfused --row-tile 5
    make_model --arch llada2 --tied --dense 0 --used 1 --experts 8 --groups 2 --groups-used 1 \
        --seed 7
    sampled sdar '{"gen_length":24,"block_length":8,"steps":8,"threshold":0.9}' --mask-block 8 \
        --threshold 0.9 --gen-length 24 --batch 4
    make_model --arch llada2 --rotated 8 --groups 1 --groups-used 1 --experts 5 --used 5 --seed 8
    sampled sdar '{"gen_length":64,"block_length":32,"steps":32,"threshold":0.95}' --gen-length 64
}

@test "llada2: tokens are edited by two thresholds, as LLaDA2.1 writes" {
    for seed in 1 3; do
        make_model --arch llada2 --kv-heads 2 --gain 2.5 --seed $seed
        for how in '0.5 0.3 16' '0.9 0.2 3' '0.6 1 16'; do
            read -r commit edit most <<< "$how"
            fields="{\"gen_length\":24,\"block_length\":8,\"threshold\":$commit,$(:
                )\"edit_threshold\":$edit,\"edit_passes\":$most}"
            edits=(--mask-block 8 --gen-length 24 --unmask joint --threshold "$commit" \
                --edit-threshold "$edit" --edit-passes "$most")
            sampled joint "$fields" "${edits[@]}" --device ref --cache none
            sampled joint "$fields" "${edits[@]}" --batch 4
            sampled joint "$fields" "${edits[@]}" --batch 3 --cache none
        done
    done
    "$BIN/gen-llada" -q -m "$T/model" --no-meta --mask-block 8 --gen-length 24 --unmask joint \
        --threshold 0.5 --edit-threshold 0.3 "$T/prompts" > "$T/got"
    jq -se 'all(.committed_tokens >= 24 and .denoise_steps > 24 / 8) and
        (map(.edited_tokens) | add) > 50' "$T/got"
    run "$BIN/gen-llada" -m "$T/model" --unmask joint --draft-steps 2 --no-meta "$T/prompts"
    [ "$status" -eq 64 ]
    [[ $output == *"draft-steps 2: expected 0"* ]]
    run "$BIN/gen-llada" -m "$T/model" --unmask joint --edit-passes 2.5 --no-meta "$T/prompts"
    [ "$status" -eq 64 ] && [[ $output == *"edit-passes: expected an integer"* ]]
    mv "$T/model" "$T/LLaDA2.1-tiny"
    "$BIN/gen-llada" -q -m "$T/LLaDA2.1-tiny" --gen-length 32 --no-meta "$T/prompts" > "$T/got"
    jq -se 'all(.arch == "llada2.1" and .unmask == "joint" and .threshold == 0.95 and
        .edit_threshold == 0.9 and .edit_passes == 16 and .block_length == 32)' "$T/got"
}

@test "llada2: unconfirmed settings are refused by name, and the mask may be in no file" {
    make_model --arch llada2
    refuses "use_bias: expected false" '.use_bias = true'
    refuses "use_qkv_bias: expected false" '.use_qkv_bias = true'
    refuses "score_function: expected \"sigmoid\"" '.score_function = "softmax"'
    refuses "norm_topk_prob: expected true" '.norm_topk_prob = false'
    refuses "first_k_dense_replace: expected less than num_hidden_layers" \
        '.first_k_dense_replace = 2'
    refuses "n_group: expected a divisor of num_experts" '.n_group = 4'
    refuses "topk_group: expected at most n_group" '.topk_group = 4'
    refuses "num_experts_per_tok: expected at most the experts" '.num_experts_per_tok = 5'
    refuses "partial_rotary_factor: expected an even number" '.partial_rotary_factor = 0.4'
    refuses "rotary_dim: expected head_dim x partial_rotary_factor" '.rotary_dim = 6'
    refuses "num_nextn_predict_layers: expected 0" '.num_nextn_predict_layers = 1'
    refuses "rope_scaling: expected no such key" '.rope_scaling = {"rope_type": "yarn"}'
    refuses "moe_shared_expert_intermediate_size" '.moe_shared_expert_intermediate_size = 8'
    refuses "expert_capacity: expected no such key: LLaDA2.2" ".expert_capacity = 48"
    refuses "split_token_id: expected no such key: LLaDA2.2" ".split_token_id = 5"
    mv "$T/model" "$T/LLaDA2.2-tiny"
    run "$BIN/gen-llada" -m "$T/LLaDA2.2-tiny" --no-meta "$T/prompts"
    [ "$status" -eq 65 ] && [[ $output == *"is LLaDA2.2-tiny: LLaDA2.2, which chooses experts"* ]]
    make_model --arch llada2 --vocab 156896 --width 8 --heads 1 --layers 2
    jq 'del(.added_tokens[2])' "$T/model/tokenizer.json" > "$T/new"
    mv "$T/new" "$T/model/tokenizer.json"
    rm "$T/model/generation_config.json"
    cp "$T/model/config.json" "$T/config"
    with() {
        jq "$1" "$T/config" > "$T/model/config.json"
        "$BIN/gen-llada" -q -m "$T/model" --gen-length 32 --limit 1 --no-meta "$T/prompts" |
            jq -c .token_ids
    }
    ids=$(with 'del(.eos_token_id, .use_bias) | .model_type = "llada2_moe_veomni"')
    [ "$ids" = "$(with '.eos_token_id = 156892 | .mask_token_id = 156895')" ]
    [ "$ids" != "$(with '.mask_token_id = 7')" ]
    # as transformers 5 writes it
    [ "$ids" = "$(with '.rope_parameters = {rope_type: "default", rope_theta,
        partial_rotary_factor} | del(.rope_theta, .partial_rotary_factor, .rotary_dim)')" ]
    with '.model_type = "llada21_moe"' # as dllm writes LLaDA2.1
    "$BIN/gen-llada" -q -m "$T/model" --gen-length 32 --limit 1 --no-meta "$T/prompts" |
        jq -e '.unmask == "joint" and .edit_threshold == 0.9'
    make_model --arch llada2
    cp "$T/model/config.json" "$T/config"
    rm "$T/model/generation_config.json"
    with 'del(.eos_token_id) | .pad_token_id = 257' # 156892 is no id of this vocabulary
    run with 'del(.eos_token_id)'
    [[ $output == *"eos_token_id: expected an id"* ]]
}

@test "llada2: models are quantized, packed and offloaded like other families" {
    make_model --arch llada2 --width 64 --ffn 64 --heads 2 --shared 1 --layers 3
    write() { "$BIN/gen-llada" -q --mask-block 8 --gen-length 16 --no-meta "$@" "$T/prompts" |
        jq -c .token_ids; }
    for quant in int8 nf4; do
        "$BIN/pack-model" -q -m "$T/model" --quant $quant --out "$T/$quant" > "$T/packed"
        jq -se 'map(select(.role == "gate" and .tensors == 12) , select(.role == "dense_gate" and
            .tensors == 1)) | length == 2' "$T/packed"
        [ "$(write -m "$T/model" --quant $quant)" = "$(write -m "$T/$quant")" ]
    done
    "$BIN/pack-model" -q -m "$T/model" --budget-share 0.5 --out "$T/mixed" > "$T/packed"
    [ -n "$(write -m "$T/mixed")" ]
    [ "$(write -m "$T/model")" = "$(write -m "$T/model" --device-map 1)" ]
    run "$BIN/train-lm" --no-meta --from "$T/model" --out "$T/new" "$T/prompts"
    [ "$status" -ne 0 ]
    [ ! -e "$T/new/config.json" ]
}

@test "ling: ids agree for LLaDA2's block from left to right" {
    make_model --arch ling --dtype BF16 --kv-heads 2 --experts 12 --used 3 --groups 4 --shared 1
    greedy --device cpu
    on_levels gen-llama greedy
    make_model --arch ling --tied --shards 3 --head-dim 20 --rotated 6 --kv-heads 1 --layers 4 \
        --dense 2 --ffn 37 --width 36
    greedy --device ref
    greedy --batch 4
    likelihood 1e-4
    cp "$T/model/config.json" "$T/config"
    jq 'del(.partial_rotary_factor)' "$T/config" > "$T/model/config.json"
    run "$BIN/gen-llama" -m "$T/model" --no-meta "$T/prompts"
    [ "$status" -eq 65 ] && [[ $output == *"partial_rotary_factor: expected a share"* ]]
}

@test "llada2, ling: ids agree on the emulated CUDA device" {
    [ -e "${TESTBIN:-build/tests}/libcrossover-cuda.so" ] ||
        skip "no C++ compiler, so no emulated device"
    make_model --arch llada2 --kv-heads 2 --gain 2.5 --experts 12 --used 3 --groups 4 --shared 1
    on_cuda sampled sdar '{"gen_length":16,"block_length":8,"steps":8,"threshold":0.5}' \
        --mask-block 8 --threshold 0.5 --gen-length 16 --dtype f32 --batch 4
    on_cuda sampled joint \
        '{"gen_length":16,"block_length":8,"threshold":0.5,"edit_threshold":0.3}' --mask-block 8 \
        --unmask joint --threshold 0.5 --edit-threshold 0.3 --gen-length 16 \
        --dtype f32 --batch 4
    make_model --arch ling --kv-heads 2 --experts 12 --used 3 --groups 4
    on_cuda greedy --dtype f32 --batch 4
}
