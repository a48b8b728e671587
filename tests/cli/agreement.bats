#!/usr/bin/env bats
# Compares the engine with the float64 reference of tests/reference, on random checkpoints in every
# layout: the same ids if the decision is clear, the same likelihood.

load ../reference/agree

@test "llama: greedy ids agree with the reference in each dtype" {
    for dtype in F32 F16 BF16; do
        make_model --dtype $dtype
        greedy --device cpu
    done
}

@test "llama: greedy ids agree on the ref back end, in batches, and without a cache" {
    make_model --dtype BF16 --kv-heads 2
    greedy --device ref
    greedy --device cpu --batch 4
    greedy --device cpu --batch 3 --cache off
}

@test "llama: greedy ids agree for sharded, grouped, tied and scaled checkpoints" {
    make_model --dtype BF16 --shards 4 --kv-heads 1
    greedy
    make_model --dtype F16 --tied --kv-heads 2 --seed 3
    greedy
    make_model --rope-llama3 8,1,4,32 --kv-heads 2 --shards 2
    greedy
    make_model --rope-llama3 32,1,4,16 --rope-parameters --tied --dtype BF16
    greedy
    make_model --rope-parameters --theta 500000
    greedy
}

@test "a total_size that is wrong or missing gives one warning" {
    make_model --shards 2
    greedy 2> "$T/err"
    ! grep W106 "$T/err" || false
    for change in '.metadata.total_size += 2' 'del(.metadata)'; do
        jq "$change" "$T/model/model.safetensors.index.json" > "$T/new"
        mv "$T/new" "$T/model/model.safetensors.index.json"
        greedy 2> "$T/err"
        [ "$(grep -c 'W106.*total_size is .*only a hint' "$T/err")" -eq 1 ]
    done
    likelihood 1e-4 2> "$T/err"
    grep -q W106 "$T/err"
}

@test "llama: greedy ids agree for odd shapes" {
    make_model --width 30 --heads 3 --kv-heads 3 --ffn 37 --vocab 271 --layers 3
    greedy --threads 2
    make_model --width 8 --heads 4 --kv-heads 2 --ffn 5 --layers 1 --dtype BF16
    greedy
}

@test "llama: generation ends before the stop id of the config" {
    make_model --kv-heads 2
    ask generate '{"max_new":20}' > "$T/plain"
    stop=$(jq -s '.[1].ids[4]' "$T/plain")
    for file in config.json generation_config.json; do
        jq --argjson s "$stop" '.eos_token_id = [257, $s]' "$T/model/$file" > "$T/new"
        mv "$T/new" "$T/model/$file"
    done
    ask generate "{\"max_new\":20,\"stop\":[$stop]}" > "$T/expected"
    "$BIN/gen-llama" -m "$T/model" --max-new 20 --no-meta "$T/prompts" > "$T/got"
    jq -n -e --slurpfile e "$T/expected" --slurpfile g "$T/got" '
        [$g[] | {(.id): .}] | add as $got |
        $got.p2.stop == "eos" and $got.p2.token_ids == $e[1].ids and
        $got.p2.tokens_to_eos == ($e[1].ids | length)'
}

@test "llama: the likelihood agrees in each dtype and layout" {
    for dtype in F32 F16 BF16; do
        make_model --dtype $dtype --kv-heads 2
        likelihood 1e-4
    done
    make_model --dtype BF16 --shards 3 --tied --rope-llama3 8,1,4,32
    likelihood 1e-4 --device cpu
    likelihood 1e-4 --device ref
}

@test "llama: activations rounded to bf16 move the likelihood a little" {
    make_model --dtype BF16 --kv-heads 2
    likelihood 0.01 --dtype bf16
    ! likelihood 1e-6 --dtype bf16 || false
}

# another_block FAMILY: tests the parts that LLaMA's block lacks, in every dtype, layout and back
# end
another_block() {
    local dtype=F32
    for dtype in F32 F16 BF16; do
        make_model --arch "$1" --dtype $dtype --kv-heads 2
        greedy --device cpu
        likelihood 1e-4
    done
    on_levels gen-llama greedy
    make_model --arch "$1" --dtype BF16 --shards 3 --head-dim 20 --kv-heads 1 --theta 1000000
    greedy --device ref
    greedy --batch 4
    greedy --batch 3 --cache off
    likelihood 1e-4 --device ref
    make_model --arch "$1" --tied --rope-parameters --seed 3 --layers 3
    greedy
}

# coarse FAMILY: rounded and quantized weights give nearly the same likelihood
coarse() {
    make_model --arch "$1" --dtype BF16 --width 64 --ffn 128 --kv-heads 2 --gain 1
    likelihood 0.01 --dtype bf16
    likelihood 0.02 --quant int8
    likelihood 0.1 --quant nf4
    ! likelihood 1e-6 --quant nf4 || false
}

@test "qwen2: ids agree with biases on q, k and v" {
    another_block qwen2
}

@test "qwen3: ids agree with norms of q and k in each head, at any width of a head" {
    another_block qwen3
}

@test "mistral: ids agree with a window of attention, with its default, and without one" {
    another_block mistral
    make_model --arch mistral --kv-heads 2
    with() {
        jq "$1" "$T/model/config.json" > "$T/new"
        mv "$T/new" "$T/model/config.json"
        "$BIN/gen-llama" -q -m "$T/model" --max-new 20 --ignore-eos --no-meta "$T/prompts" |
            jq -c .token_ids
    }
    six=$(with .)
    default=$(with 'del(.sliding_window)')
    [ "$six" != "$default" ]
    [ "$default" = "$(with '.sliding_window = 4096')" ]
    [ "$default" = "$(with '.sliding_window = null')" ]
    [ "$default" != "$(with '.sliding_window = 20')" ]
}

@test "smollm3: layers without rotation are named by an interval or by a list" {
    another_block smollm3
    make_model --arch smollm3 --layers 5 --kv-heads 2 --head-dim 12
    for edit in 'del(.no_rope_layer_interval)' '.no_rope_layers = [1, 0, 0, 1, 1]' \
        '.no_rope_layers = [1, 1, 1, 1, 1]'; do
        jq "$edit" "$T/model/config.json" > "$T/new"
        mv "$T/new" "$T/model/config.json"
        echo "$edit" >> "$T/made"
        greedy
        greedy --device ref --batch 4
    done
    jq '.no_rope_layers = [1, 0]' "$T/model/config.json" > "$T/new"
    mv "$T/new" "$T/model/config.json"
    run "$BIN/gen-llama" -m "$T/model" --no-meta "$T/prompts"
    [ "$status" -eq 65 ]
    [[ $output == *"no_rope_layers: expected 0 or 1 for every layer, got [1,0]"* ]]
}

@test "llama: config.json of TinyLlama, Llama 2 and SmolLM2 is read; Ministral 3 is refused" {
    make_model --kv-heads 2 --theta 100000 --tied
    jq '. + {rope_interleaved: false, is_llama_config: true, pretraining_tp: 1, pad_token_id: 2,
        "transformers.js_config": {kv_cache_dtype: {q4f16: "float16"}}, attention_dropout: 0,
        _name_or_path: "x"}' "$T/model/config.json" > "$T/new"
    mv "$T/new" "$T/model/config.json"
    greedy
    jq '.architectures = ["Mistral3ForConditionalGeneration"]' "$T/model/config.json" > "$T/new"
    mv "$T/new" "$T/model/config.json"
    run "$BIN/gen-llama" -m "$T/model" --no-meta "$T/prompts"
    [ "$status" -eq 65 ] && [[ $output == *"architectures: expected one of "* ]]
}

@test "mistral, smollm3: ids agree in bf16, int8 and nf4" {
    coarse mistral
    coarse smollm3
}

@test "qwen2, qwen3: ids agree in bf16, int8 and nf4" {
    coarse qwen2
    coarse qwen3
}

@test "qwen2, qwen3, mistral, smollm3: ids agree on the emulated CUDA device" {
    [ -e "${TESTBIN:-build/tests}/libcrossover-cuda.so" ] ||
        skip "no C++ compiler, so no emulated device"
    for family in qwen2 qwen3 mistral smollm3; do
        make_model --arch $family --kv-heads 2 --head-dim 12
        on_cuda greedy --dtype f32 --batch 4
        make_model --arch $family --dtype BF16 --width 64 --ffn 128 --kv-heads 2 --gain 1
        on_cuda likelihood 1e-4 --dtype f32
        for format in "--dtype bf16" "--quant int8" "--quant fp8" "--quant nf4"; do
            # shellcheck disable=SC2086
            on_cuda likelihood 0.1 $format
        done
    done
}

@test "llada: ids agree over blocks and steps, with remainders" {
    make_model --arch llada
    diffusion 16 16 16 0 --device cpu
    diffusion 24 8 9 0
    diffusion 32 32 5 0
    diffusion 24 24 7 0 --batch 4
    diffusion 12 4 6 0 --device ref
    diffusion 8 8 1 0
}

@test "llada: ids agree if there are more steps than masks" {
    make_model --arch llada --seed 5
    diffusion 16 8 40 0
    diffusion 6 2 9 0 --batch 2
}

@test "llada: ids agree with guidance" {
    make_model --arch llada --seed 6
    diffusion 24 8 9 1.5
    # With these weights the network writes the mask id itself; such slots compete again.
    grep -qw 258 "$T/expected"
    diffusion 16 16 5 0.5 --batch 3
    diffusion 16 8 16 2 --device ref
}

@test "llada: ids agree in each dtype, sharded, grouped, tied, and under LLaMA's tensor names" {
    make_model --arch llada --dtype F16 --kv-heads 2
    diffusion 24 8 9 0
    make_model --arch llada --dtype BF16 --shards 4 --seed 7
    diffusion 24 8 9 1
    make_model --arch llada --tied --kv-heads 1 --seed 8
    diffusion 24 8 12 0
    make_model --arch llada --hf-names --dtype BF16 --seed 9
    diffusion 24 12 8 0
    make_model --arch llada --width 30 --heads 3 --ffn 37 --vocab 271 --layers 3
    diffusion 20 10 6 0 --threads 2
}

@test "llada: ids agree with the EOS options, in networks that write end tokens unasked" {
    for seed in 19 22; do
        make_model --arch llada --seed $seed
        diffusion 24 24 12 0
        cp "$T/expected" "$T/plain"
        grep -qwE '257|259' "$T/plain"
        diffusion 24 24 12 0 --logits-eos-inf
        ! grep -qw 257 "$T/expected" || false
        diffusion 24 24 12 0 --confidence-eos-eot-inf
        [ "$(jq -c .ids "$T/plain")" != "$(jq -c .ids "$T/expected")" ]
    done
}

# masked IDS POSITIONS: prints the reference's nll of the ids at POSITIONS, which are masked
masked() {
    "$REFERENCE" <<< "{\"op\":\"masked\",\"model\":\"$T/model\",\"ids\":$1,\"masked\":$2}" | jq .nll
}

# bound METRIC REFERENCE option...: prints the bound of REFERENCE given the text "ab"
bound() {
    local metric=$1 reference=$2
    shift 2
    "$BIN/score-ppl" -m "$T/model" --target reference --no-meta "$@" \
        <<< "{\"id\":\"p\",\"text\":\"ab\",\"reference\":\"$reference\"}" |
        jq --arg m "$metric" 'select(.metric == $m and .id == "p") | .value'
}

# near A B TOLERANCE: tests |A - B| < TOLERANCE * |B|
near() {
    jq -n -e --argjson a "$1" --argjson b "$2" --argjson t "$3" \
        '($a - $b | fabs) < $t * ($b | fabs)'
}

@test "llada: bounds that do not depend on random choices are exact" {
    make_model --arch llada --dtype BF16 --seed 3
    near "$(bound elbo_nats c --mode elbo --samples 1)" "$(masked '[97,98,99]' '[2]')" 1e-4
    near "$(bound kstep_nats c --mode kstep --steps 1)" "$(masked '[97,98,99]' '[2]')" 1e-4
    near "$(bound kstep_nats cdefg --mode kstep --steps 1 --orders 1)" \
        "$(masked '[97,98,99,100,101,102,103]' '[2,3,4,5,6]')" 1e-4
}

# There are two tokens. Half of the time one of them is masked (weight 2), else both (weight 1).
@test "llada: the ELBO comes near its expectation" {
    make_model --arch llada --kv-heads 2 --seed 3
    expected=$(jq -n "($(masked '[97,98,99,100]' '[2]') + $(masked '[97,98,99,100]' '[3]') +
                       $(masked '[97,98,99,100]' '[2,3]')) / 2")
    near "$(bound elbo_nats cd --mode elbo --samples 4096)" "$expected" 0.01
}

# in_gguf FORMAT [option...]: makes $T/model with matrices of FORMAT, also as GGUF
in_gguf() {
    local format=$1
    shift
    make_model --width 256 --ffn 256 --heads 4 --kv-heads 2 --layers 1 "$@"
    "$MAKE_GGUF" "$format" "$T/model"
    mv "$T/model/model.gguf" "$T/model.gguf"
    echo "$format" >> "$T/made"
}

@test "GGUF: each format gives the ids of the values that it stands for" {
    for format in F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q4_K Q6_K; do
        in_gguf $format
        greedy -m "$T/model.gguf"
        likelihood 1e-4 -m "$T/model.gguf" --device ref
        make_prompts
    done
    on_levels gen-llama greedy -m "$T/model.gguf"
}

@test "GGUF: tied and untied families, and LLaDA with its mask, give the reference's ids" {
    for family in qwen3 smollm3; do
        in_gguf Q8_0 --arch $family --tied --layers 4
        jq 'del(.no_rope_layer_interval)' "$T/model/config.json" > "$T/new" # 4: GGUF has no key
        mv "$T/new" "$T/model/config.json"
        greedy -m "$T/model.gguf" --batch 4
    done
    in_gguf Q4_K --arch llada --hf-names
    diffusion 16 16 5 0 -m "$T/model.gguf"
    in_gguf Q6_K
    local bin=$(realpath "$BIN")
    cd "$T"
    for model in model ./model.gguf model.gguf; do
        echo '{"id":"p","text":"a < b\u00e9"}' | "$bin/gen-llama" -q -m $model --max-new 8 \
            --dtype f32 --no-meta | jq -c '[.prompt_tokens, .token_ids, .text]'
    done | uniq > "$T/said"
    [ "$(wc -l < "$T/said")" -eq 1 ]
}

# The first divisors are 1, the last are 8, those between are blends. A reader that ignores the
# divisors gives other ids.
@test "GGUF: rope_freqs.weight rescales the rotation; wrong divisors and training are refused" {
    in_gguf F32 --rope-llama3 8,1,4,32
    greedy -m "$T/model.gguf"
    likelihood 1e-4 -m "$T/model.gguf" --device ref
    at=$(($(stat -c %s "$T/model.gguf") - 4 * 32)) # 32 values, the end of the file
    refused() { # refused WORDS: the file bad.gguf is refused
        run "$BIN/gen-llama" -m "$T/bad.gguf" --no-meta "$T/prompts"
        [ "$status" -eq 65 ] && [[ $output == *"tensor rope_freqs.weight: $1"* ]]
    }
    for bytes in '\0\0\0\0' '\0\0\300\177' '\0\0\200\177' '\0\0\200\277'; do # 0, NaN, infinity, -1
        cp "$T/model.gguf" "$T/bad.gguf"
        # shellcheck disable=SC2059  # the bytes are a format
        printf "$bytes" | dd of="$T/bad.gguf" bs=1 seek=$at conv=notrunc status=none
        refused "value 0 expected from 1e-6 to 1e6, got"
    done
    sed 's/\(rope_freqs.weight\x01\x00\x00\x00\)\x20/\1\x1f/' "$T/model.gguf" > "$T/bad.gguf"
    refused "shape expected [32] by config.json, got [31]"
    sed 's/\(rope_freqs.weight\x01\x00\x00\x00\x20\(\x00\)\{7\}\)\x00/\1\x01/' "$T/model.gguf" \
        > "$T/bad.gguf"
    refused "expected at most 256 values in F32, got 32 in F16"
    run "$BIN/train-lm" -q --from "$T/model.gguf" --steps 1 --out "$T/trained" "$T/prompts"
    [ "$status" -eq 64 ]
    [[ $output == *"a llama model with a rotation that config.json cannot state (rope_freqs"* ]]
    jq '.added_tokens += [{id: 260, content: "<|start_header_id|>"},
                          {id: 261, content: "<|end_header_id|>"}]' \
        "$T/model/tokenizer.json" > "$T/new"
    mv "$T/new" "$T/model/tokenizer.json"
    "$MAKE_GGUF" F32 "$T/model"
    echo '{"id":"a","text":"b"}' | "$BIN/gen-llama" -m "$T/model/model.gguf" --max-new 1 \
        > "$T/got" 2> "$T/err"
    grep -q -e '--chat llama3.1 applies one' "$T/err"
}

@test "GGUF: an architecture, key or tokenizer that is not supported is refused by name" {
    in_gguf Q8_0
    spoilt() { # spoilt WORDS OLD NEW: with these bytes replaced, the file is refused
        sed "s/$2/$3/" "$T/model.gguf" > "$T/bad.gguf"
        run "$BIN/gen-llama" -m "$T/bad.gguf" --no-meta "$T/prompts"
        [ "$status" -eq 65 ] && [[ $output == *"$1"* ]]
    }
    spoilt "general.architecture: expected llama, smollm3" llama gemma
    spoilt "llama.extra_count = 1: this key is not supported" llama.block_count llama.extra_count
    spoilt "tokenizer.ggml.pre: expected gpt-2, smollm" gpt-2 gpt-4
    spoilt "begins with GGUF" GGUF GGML
    spoilt "llama.attention.causal: expected true, got false" 'causal\x07\x00\x00\x00\x01' \
        'causal\x07\x00\x00\x00\x00'
    spoilt "tensor blk.0.attn_q.weight is missing" blk.0.attn_q blk.0.attn_x
    head -c 3000 "$T/model.gguf" > "$T/cut.gguf"
    run "$BIN/gen-llama" -m "$T/cut.gguf" --no-meta "$T/prompts"
    [ "$status" -eq 65 ] && [[ $output == *"more bytes of the header"* ]]
    run "$BIN/pack-model" --quant int8 -m "$T/model.gguf" --out "$T/packed"
    [ "$status" -eq 65 ] && [[ $output == *"expected a folder with config.json, got a GGUF"* ]]
}
