#!/usr/bin/env bats
# Tests training of a checkpoint of any family, in its own way and as a denoiser (train-lm --from,
# --arch a2d; make twin). The twins write what the reference writes, like published checkpoints.
bats_require_minimum_version 1.5.0

load ../reference/agree

# train OUT [option...]: trains three steps from $T/model
train() {
    local out=$1
    shift
    [ -e "$T/corpus" ] || "$BIN/write-corpus" --count 40 --seed 1 -o "$T/corpus"
    "$BIN/train-lm" -q --no-meta --from "$T/model" --steps 3 --rows 128 --min-len 16 --max-len 32 \
        --rate 0.003 --report 1 --threads 1 --dtype F32 --out "$T/$out" "$@" "$T/corpus" \
        > "$T/$out.loss"
}

# twins [option...]: makes a model and both of its twins; $mask is the mask of the denoiser
twins() {
    make_model "$@"
    train ar
    train tiny-mdlm --arch a2d
    mask=$(jq .mask_token_id "$T/tiny-mdlm/config.json")
    jq -se 'length == 6 and all(.loss > 0) and (map(.paradigm) | unique) ==
        ["autoregressive", "masked_diffusion"]' "$T/ar.loss" "$T/tiny-mdlm.loss"
}

# as NAME: makes NAME the model that the reference is asked about
as() {
    rm -rf "$T/model"
    cp -r "$T/$1" "$T/model"
    sha256sum < "$T/model/model.safetensors" > "$T/made"
}

@test "each block trains in both ways, and the reference writes what the twins write" {
    while read -r class options; do
        # shellcheck disable=SC2086  # options
        twins $options --gain 2.5
        [ "$(jq -r '.architectures[0]' "$T/tiny-mdlm/config.json")" = "$class" ]
        cmp -s "$T/ar/model.safetensors" "$T/tiny-mdlm/model.safetensors" && false
        as tiny-mdlm
        sampled mdlm "{\"gen_length\":24,\"block_length\":8,\"steps\":12,\"mask\":$mask}" \
            --gen-length 24 --block-length 8 --steps 12
        as ar
        greedy
    done << 'END'
A2DQwen3LMHeadModel --arch qwen3 --kv-heads 2 --head-dim 20
A2DQwen3LMHeadModel --arch qwen3 --tied --kv-heads 1 --vocab 260
A2DQwen2LMHeadModel --arch qwen2 --kv-heads 2 --vocab 260 --dtype BF16
A2DQwen2LMHeadModel --arch qwen2 --tied
A2DLlamaLMHeadModel --arch llama --kv-heads 2
A2DLlamaLMHeadModel --arch llama --tied --rope-llama3 2,1,4,64
A2DLlamaLMHeadModel --arch mistral --kv-heads 2 --shards 2
END
}

@test "bd3lm: the name of the folder sets blocks of 32" {
    make_model --arch qwen3 --kv-heads 2 --gain 2.5
    train tiny-bd3lm --arch a2d --min-len 48 --max-len 96 --rows 200
    jq -se 'all(.paradigm == "block_diffusion" and .arch == "a2d-qwen3")' "$T/tiny-bd3lm.loss"
    rm -r "$T/model"
    ln -s "$T/tiny-bd3lm" "$T/model"
    sha256sum < "$T/model/model.safetensors" > "$T/made"
    sampled bd3lm '{"gen_length":64,"block_length":32,"steps":18,"mask":260}' --gen-length 64 \
        --steps 18
    # such a model is trained on only under such a name
    train again-bd3lm
    jq -se 'all(.paradigm == "block_diffusion")' "$T/again-bd3lm.loss"
    run -64 train again
    [[ $output == *": a a2d-qwen3 model of this name has blocks of 0, "*" has blocks of 32 "* ]]
}

@test "the mask token is a named, unused or new token, and other ids keep their meaning" {
    added() { jq -r '.added_tokens[] | "\(.id) \(.content) \(.special)"' "$T/$1/tokenizer.json"; }
    vocab() { jq '.vocab_size' "$T/$1/config.json"; }
    twins --arch qwen3 # rows 260 to 263 have no token
    [ "$mask" -eq 260 ] && [ "$(vocab tiny-mdlm)" -eq 264 ]
    [ "$(added tiny-mdlm)" = "$(added model; echo "260 <|mask|> true")" ]
    cmp <(jq -S 'del(.added_tokens)' "$T/model/tokenizer.json") \
        <(jq -S 'del(.added_tokens)' "$T/tiny-mdlm/tokenizer.json")
    [ "$(added ar)" = "$(added model)" ] && [ "$(vocab ar)" -eq 264 ]
    twins --arch qwen2 --vocab 260 # a new row
    [ "$mask" -eq 260 ] && [ "$(vocab tiny-mdlm)" -eq 261 ] && [ "$(vocab ar)" -eq 260 ]
    twins --arch llama # has <|reserved|>
    [ "$mask" -eq 258 ] && [ "$(vocab tiny-mdlm)" -eq 264 ]
    [ "$(added tiny-mdlm)" = "$(added model)" ]
    cp "$T/model/generation_config.json" "$T/old"
    for field in bos_token_id eos_token_id pad_token_id; do # a token with that name in use
        jq ".$field = 258" "$T/old" > "$T/model/generation_config.json"
        train tiny-mdlm --arch a2d
        [ "$(jq .mask_token_id "$T/tiny-mdlm/config.json")" -eq 260 ]
    done
    cp "$T/old" "$T/model/generation_config.json"
    sed -i 's/<|im_start|>/<|mask|>/; s/<|reserved|>/<|mask|>/' "$T/model/tokenizer.json"
    train tiny-mdlm --arch a2d
    [ "$(jq .mask_token_id "$T/tiny-mdlm/config.json")" -eq 258 ]
    sed -i 's/<|mask|>/<|mdm_mask|>/' "$T/model/tokenizer.json" # that of our own models
    train tiny-mdlm --arch a2d
    [ "$(jq .mask_token_id "$T/tiny-mdlm/config.json")" -eq 258 ]
    [ "$(added tiny-mdlm)" = "$(added model)" ]
    jq 'del(.eos_token_id)' "$T/model/config.json" > "$T/new" # an end is added, too
    mv "$T/new" "$T/model/config.json"
    rm -f "$T/model/generation_config.json"
    sed -i 's/<|mdm_mask|>/<|other|>/' "$T/model/tokenizer.json"
    train tiny-mdlm --arch a2d
    [ "$(added tiny-mdlm | tail -n 2)" = $'260 <|endoftext|> true\n261 <|mask|> true' ]
    jq -e '.eos_token_id == 260 and .mask_token_id == 261' "$T/tiny-mdlm/config.json"
    # --init of a foreign vocabulary: tokens of our own families are added
    make_model --arch llama --width 32 --heads 4 --kv-heads 4 --ffn 48 --layers 2 --vocab 260
    "$BIN/train-lm" -q --arch llada --width 32 --heads 4 --kv-heads 4 --ffn 48 --layers 2 \
        --steps 1 --rows 128 --min-len 16 --max-len 32 --init "$T/model" --out "$T/llada" \
        "$T/corpus" > "$T/loss"
    jq -e '.mask_token_id == 258 and .vocab_size == 260 and .architectures == ["LLaDAModelLM"]' \
        "$T/llada/config.json"
}

@test "a text begins as the model's tokenizer begins it, for both twins" {
    make_model --arch llama
    jq '.post_processor = {type: "TemplateProcessing", pair: [], special_tokens: {
            "<|begin_of_text|>": {id: "<|begin_of_text|>", ids: [256],
                                  tokens: ["<|begin_of_text|>"]}},
        single: [{SpecialToken: {id: "<|begin_of_text|>", type_id: 0}},
                 {Sequence: {id: "A", type_id: 0}}]}' "$T/model/tokenizer.json" > "$T/new"
    mv "$T/new" "$T/model/tokenizer.json"
    for side in "ar" "tiny-mdlm --arch a2d"; do
        # shellcheck disable=SC2086  # a side and its option
        train $side
        jq -e '.post_processor.type == "TemplateProcessing"' "$T/${side%% *}/tokenizer.json"
    done
    rm "$T/corpus"
    echo '{"text":"","reference":"a"}' > "$T/corpus"
    "$BIN/train-lm" --from "$T/model" --steps 1 --rows 16 --max-len 16 --min-len 16 --out "$T/one" \
        "$T/corpus" 2> "$T/said" > "$T/loss"
    grep -q ' 3 tokens, ' "$T/said" # begin, a, end
    jq '.post_processor.single |= .[:1] + .' "$T/model/tokenizer.json" > "$T/new"
    mv "$T/new" "$T/model/tokenizer.json"
    run -65 train two
    [[ $output == *"model: its tokenizer puts 2 tokens before a text: expected at most one" ]]
    [ ! -e "$T/two/tokenizer.json" ]
}

@test "a training from a GGUF file gives the same weights as one from its folder" {
    make_model --arch llama --kv-heads 2 --gain 2.5
    "$MAKE_GGUF" F32 "$T/model"
    mv "$T/model/model.gguf" "$T/tiny.gguf"
    train plain --arch a2d
    "$BIN/train-lm" -q --no-meta --from "$T/tiny.gguf" --arch a2d --steps 3 --rows 128 \
        --min-len 16 --max-len 32 --rate 0.003 --report 1 --threads 1 --dtype F32 \
        --out "$T/tiny-mdlm" "$T/corpus" > "$T/loss"
    cmp "$T/plain/model.safetensors" "$T/tiny-mdlm/model.safetensors"
    [ "$(jq -r .model "$T/tiny-mdlm/training.ndjson" | xargs)" = "$T/tiny.gguf tiny-mdlm" ]
}

@test "an interrupted training gives the same bits, also on the emulated CUDA device" {
    make_model --arch qwen3 --kv-heads 2
    for device in cpu cuda; do
        if [ $device = cuda ]; then
            export CROSSOVER_CUDA="${TESTBIN:-build/tests}/libcrossover-cuda.so"
            [ -e "$CROSSOVER_CUDA" ] || skip "no C++ compiler, so no emulated device"
        fi
        for how in "ar" "tiny-bd3lm --arch a2d --min-len 48 --max-len 64"; do
            read -r name options <<< "$how"
            # shellcheck disable=SC2086  # options
            train $device-$name --device $device $options
            run -74 "$BIN/train-lm" -q --no-meta --from "$T/model" --steps 3 --rows 128 \
                --min-len 16 --max-len 32 --rate 0.003 --report 3 --save 2 --threads 1 --dtype F32 \
                --device $device --out "$T/$device-cut-$name" $options -o /dev/full "$T/corpus"
            [ -e "$T/$device-cut-$name/train.state" ]
            # shellcheck disable=SC2086  # options
            train $device-cut-$name --device $device $options
            [ "$(jq -s 'length' "$T/$device-cut-$name.loss")" -eq 1 ]
            cmp "$T/$device-$name/model.safetensors" "$T/$device-cut-$name/model.safetensors"
        done
    done
    jq -se 'group_by(.step) | all((.[0].loss - .[1].loss | fabs) < 1e-4)' "$T/cpu-ar.loss" \
        "$T/cuda-ar.loss"
    jq -se 'group_by(.step) | all((.[0].loss - .[1].loss | fabs) < 1e-3)' \
        "$T/cpu-tiny-bd3lm.loss" "$T/cuda-tiny-bd3lm.loss"
}

@test "some families train as they are; all others are refused by name, with the reason" {
    for family in smollm3 ministral3 dream sdar fast-dllm stable-diffcoder illada; do
        make_model --arch $family --kv-heads 2
        train $family
        as $family
        train $family-again
        jq -se 'length == 3 and all(.loss > 0)' "$T/$family-again.loss"
    done
    make_model --arch smollm3
    run -64 train m --arch a2d
    [[ $output == *"model: no family of denoisers has the layout of smollm3: expected a llama, "* ]]
    make_model --arch llada
    run -64 train m --arch a2d
    [[ $output == *"model: expected a model that writes left to right, got llada" ]]
    while read -r family words; do
        make_model --arch "$family"
        run -64 train m
        [[ $output == *"m: a "*" model with $words cannot be trained"* ]]
    done << 'END'
llada-moe experts
llada2 experts
ling experts
nemotron two ways to write, which its authors train by two losses,
END
    make_model --arch sdar
    mv "$T/model" "$T/tiny-I-DLM"
    ln -s "$T/tiny-I-DLM" "$T/model"
    run -64 train m
    [[ $output == *"m: a sdar model with two ways to write, "*" cannot be trained"* ]]
    run -64 "$BIN/train-lm" --arch a2d --out "$T/m" "$T/corpus"
    [[ $output == *"--arch a2d: expected --from MODEL, a model that writes left to right"* ]]
}

@test "make twin trains both sides on as many rows, continues, and measures the pair" {
    makes() {
        make --no-print-directory BIN="$(realpath "$BIN")" BUILD="$(dirname "$(realpath "$BIN")")" \
            CUDA=0 RESULTS="$T/results" TWIN_DIR="$T/twins" FROM="$T/model" TWIN_STEPS=4 \
            TWIN_ROWS=128 TWIN_TEXT="$T/corpus" TWIN_VALID="$T/corpus" \
            TWIN_FLAGS="--max-len 32 --min-len 16 --threads 1" "$@"
    }
    unset MAKEFLAGS MAKELEVEL
    make_model --arch qwen2 --kv-heads 2
    "$BIN/write-corpus" --count 40 --seed 1 -o "$T/corpus"
    makes twin > "$T/said"
    grep -q "model-ar (qwen2): 512 rows, " "$T/said"
    grep -q "model-mdlm (a2d-qwen2): 512 rows, " "$T/said"
    grep -q "make all LLADA=$T/twins/model-mdlm LLAMA=$T/twins/model-ar" "$T/said"
    touch "$T/now"
    makes twin TWIN_MASK=bd3lm > "$T/said"
    [ "$T/now" -nt "$T/twins/model-ar/config.json" ] # the same side is not trained again
    grep -q "model-bd3lm (a2d-qwen2)" "$T/said"
    jq -se '[.[] | select(.kind == "train") | .paradigm] | unique == ["block_diffusion"]' \
        "$T/twins/model-bd3lm/loss.ndjson"
    makes twin TWIN_STEPS=5 > "$T/said"
    grep -q "model-ar (qwen2): 640 rows, " "$T/said"
    run makes twin FROM=
    [ "$status" -ne 0 ] && [[ $output == *"make twin (64): expected FROM=MODEL"* ]]
    run makes twin TWIN_MASK=half
    [ "$status" -ne 0 ] && [[ $output == *"TWIN_MASK=half (64): expected mdlm or bd3lm"* ]]
}
