#!/usr/bin/env bats
# Compares drafters that read the model for which they draft (gen-llama --draft) with the float64
# reference: the text of plain decoding, and the same guesses.

load ../reference/agree

# head_of ROWS ID: prints values of a head of ROWS rows, in which only rows for few ids differ from
# 0. The jq filter ID computes the id of a row
head_of() {
    jq -nc "[range($1) as \$r | (\$r | $2) as \$v | range(32) as \$i | if \$v % 33 == 5 then
        (\$v * 12.9898 + \$i * 78.233 | sin * 43758.5453 | . - floor - 0.5) else 0 end]
        | {\"lm_head.weight\": .}"
}

# pair [option...]: makes a model of 4 layers, whose answers are among few ids, and a drafter
# $T/drafter
pair() {
    head_of 264 . > "$T/values"
    make_model --layers 4 --values "$T/values" "$@"
    rm -rf "$T/drafter"
    "$MAKE_CHECKPOINT" --arch dflash --layers 2 --taps 0,2 --seed 5 "$T/drafter"
    rm "$T/drafter/tokenizer.json"
}

# chain [option...]: makes a model of 9 layers, and a drafter that guesses one id after another. The
# drafter's head has rows for 165 ids, spread as make-checkpoint spreads them
chain() {
    head_of 264 . > "$T/values"
    make_model --layers 9 --values "$T/values" "$@"
    head_of 165 '. + (99 * . * . / (165 * 165) | floor)' > "$T/values"
    rm -rf "$T/drafter"
    "$MAKE_CHECKPOINT" --arch eagle3 --answers 165 --values "$T/values" --seed 5 \
        --kv-heads 2 "$T/drafter"
    rm "$T/drafter/tokenizer.json"
}

# drafts GUESSES [option...]: tests that gen-llama writes the reference's text in as many passes,
# with as many right guesses, if all decisions are clear
drafts() {
    local guesses=$1
    shift
    ask draft "{\"max_new\": 30, \"guesses\": $guesses, \"drafter\": \"$T/drafter\"}" \
        > "$T/expected"
    "$BIN/gen-llama" -q -m "$T/model" --draft "$T/drafter" --draft-tokens "$guesses" --max-new 30 \
        --ignore-eos --no-meta "$@" "$T/prompts" > "$T/got"
    jq -n -e --slurpfile e "$T/expected" --slurpfile g "$T/got" --argjson clear "$CLEAR" '
        [$g[] | {(.id): [.token_ids, .drafted_tokens, .accepted_tokens, (.step_ns | length)]}]
        | add as $got | [$e[] | select(.min_gap > $clear / 4)
            | [.accepted, $got[.id] == [.ids, .drafted, .accepted, .passes]]]
        | all(.[1]) and length >= 2 and (map(.[0]) | add) >= 3'
}

# drafts_everywhere MAKE: tests the drafter of pair or chain in all settings of a run
drafts_everywhere()
{
    "$1" --arch llama
    drafts 4 --device cpu
    drafts 7 --device ref --batch 3
    on_levels gen-llama drafts 3
    "$1" --arch qwen3 --kv-heads 2 --seed 3
    drafts 5 --batch 4
    drafts 5 --batch 2 --admit continuous
    drafts 2 --cache off
}

@test "dflash: guesses are those of the reference, for two families, in batches, on every level" {
    drafts_everywhere pair
}

@test "dflash: a drafter with YaRN guesses as the reference" {
    pair --arch llama
    jq '.rope_scaling = {rope_type: "yarn", factor: 4,
        original_max_position_embeddings: (.max_position_embeddings / 4)}' \
        "$T/drafter/config.json" > "$T/config"
    mv "$T/config" "$T/drafter/config.json"
    echo "a drafter with YaRN" >> "$T/made"
    drafts 7 --device cpu
    drafts 4 --batch 3
}

@test "dflash: a drafter alone is not trained, calibrated or forecast; it can be quantized" {
    "$MAKE_CHECKPOINT" --arch dflash --taps 0,2 --vocab 2000 "$T/drafter"
    "$BIN/write-corpus" --count 20 --seed 1 -o "$T/corpus"
    # says STATUS WORDS command...
    says() {
        run "${@:3}"
        [ "$status" -eq "$1" ] && [[ $output == *"$2"* ]] || { echo "$output"; return 1; }
    }
    says 64 "a dflash model with no embedding of its own cannot be trained" "$BIN/train-lm" -q \
        --from "$T/drafter" --out "$T/trained" "$T/corpus"
    pack=("$BIN/pack-model" -q --no-meta -m "$T/drafter" --out "$T/packed")
    says 65 "has no embedding of its own" "${pack[@]}" --budget-share 0.5 --calibrate "$T/prompts"
    says 65 "has no embedding of its own" "${pack[@]}" --prune-ffn 0.5 --calibrate "$T/prompts"
    says 0 '"kind":"pack"' "${pack[@]}" --quant int8
    says 65 "it only drafts for another model" "$BIN/forecast" --fit 8 --model synth:tiny-dflash
}

@test "dflash: guesses are those of the reference on the emulated CUDA device" {
    [ -e "${TESTBIN:-build/tests}/libcrossover-cuda.so" ] ||
        skip "no C++ compiler, so no emulated device"
    pair --arch llama
    on_cuda drafts 4 --dtype f32 --batch 2
}

@test "dflash: a drafter that does not fit the model, or was not confirmed, is refused by name" {
    pair --arch llama
    # says STATUS WORDS [option...]
    says() {
        run "$BIN/gen-llama" -q -m "$T/model" --draft "$T/drafter" --no-meta "${@:3}" "$T/prompts"
        [ "$status" -eq "$1" ] && [[ $output == *"$2"* ]] || { echo "$output"; return 1; }
    }
    # changed WORDS FILTER: config.json of the drafter changed by the jq filter is refused
    changed() {
        cp "$T/drafter/config.json" "$T/config"
        jq "$2" "$T/config" > "$T/drafter/config.json"
        says 65 "$1"
        cp "$T/config" "$T/drafter/config.json"
    }
    says 64 "--draft-tokens 8: expected at most 7, the guesses in a block of" --draft-tokens 8
    changed "final_logit_softcapping: expected none: this part of DFlash is not supported" \
        '.dflash_config.final_logit_softcapping = 20'
    changed "target_layer_ids: expected 1 to 16 numbers of layers, ascending" \
        '.dflash_config.target_layer_ids = [2, 0]'
    changed "target_layer_ids: expected 1 to 16 numbers of layers, ascending, got [0" \
        '.dflash_config.target_layer_ids = [range(17)]'
    changed "config.json: dflash_config: mask_token_id: expected" \
        '.dflash_config.mask_token_id = 264'
    changed "layer_types: expected a list with \"full_attention\"" \
        '.layer_types = ["sliding_attention", "sliding_attention"]'
    changed 'architectures: expected one of' '.architectures = ["DFlash2DraftModel"]'
    changed "it reads layer 3, counted from 0: expected one before the last of the 4 layers of" \
        '.dflash_config.target_layer_ids = [0, 3]'
    run "$BIN/gen-llama" -m "$T/drafter" --no-meta "$T/prompts"
    [ "$status" -eq 65 ] && [[ $output == *"it only drafts for another model"* ]]
    "$MAKE_CHECKPOINT" --arch dflash --layers 1 --width 48 "$T/wide"
    run "$BIN/gen-llama" -m "$T/model" --draft "$T/wide" --no-meta "$T/prompts"
    [ "$status" -eq 65 ] && [[ $output == *"it has width 48 and 264 ids"* ]] &&
        [[ $output == *"expected width 32 and 264 ids"* ]]
}

@test "a record names the drafter, its tokens, and its guesses" {
    pair --arch llama
    "$BIN/gen-llama" -q -m "$T/model" --draft "$T/drafter" --max-new 8 "$T/prompts" > "$T/got"
    jq -se 'map(select(.kind == "meta"))[0].draft_model.arch == "dflash" and
        (map(select(.kind == "generation")) | length == 4 and all(.draft_model == "drafter" and
            .draft_tokens == 7 and .drafted_tokens > 0 and (.draft_weights | length) > 0))' "$T/got"
    local weights=$T/drafter/model.safetensors header
    header=$(head -c 8 "$weights" | od -An -t u8)
    head -c $((8 + header)) "$weights" | tail -c "$header" > "$T/header"
    jq -se --slurpfile h "$T/header" '.[0].draft_model.parameters == ($h[0] |
        [to_entries[] | .value.shape // empty | reduce .[] as $n (1; . * $n)] | add)' "$T/got"
}

@test "dflash: without --draft-tokens a drafter guesses its whole block, also a short block" {
    pair --arch llama
    jq '.block_size = 3' "$T/drafter/config.json" > "$T/config"
    mv "$T/config" "$T/drafter/config.json"
    "$BIN/gen-llama" -q -m "$T/model" --draft "$T/drafter" --max-new 8 --no-meta "$T/prompts" |
        jq -se 'length == 4 and all(.draft_tokens == 2)'
}

@test "eagle3: guesses are those of the reference, for two families, in batches, on every level" {
    drafts_everywhere chain
}

@test "eagle3: vLLM's names, the authors' class, an own embedding and a full head are read" {
    chain --arch llama
    LC_ALL=C sed -i 's/"midlayer\./"layers.0./g' "$T/drafter/model.safetensors"
    drafts 4
    jq '.architectures = ["LlamaForCausalLM"] | del(.rope_theta)' "$T/drafter/config.json" \
        > "$T/config"
    mv "$T/config" "$T/drafter/config.json"
    drafts 5 --batch 2
    head_of 264 . > "$T/values"
    "$MAKE_CHECKPOINT" --arch eagle3 --answers 264 --values "$T/values" --seed 8 --embeds \
        --rope-llama3 8,1,4,16 "$T/drafter"
    rm "$T/drafter/tokenizer.json"
    echo "a drafter with an embedding" >> "$T/made"
    drafts 4 --batch 3
}

@test "eagle3: guesses are those of the reference on the emulated CUDA device" {
    [ -e "${TESTBIN:-build/tests}/libcrossover-cuda.so" ] ||
        skip "no C++ compiler, so no emulated device"
    chain --arch llama
    on_cuda drafts 4 --dtype f32 --batch 2
}

@test "eagle3: texts at a temperature are those without guesses" {
    chain --arch llama
    hot=(--temperature 1 --seed 7 --max-new 40 --ignore-eos --no-meta --device cpu)
    "$BIN/gen-llama" -q -m "$T/model" "${hot[@]}" "$T/prompts" | jq -c '[.id, .token_ids]' \
        > "$T/plain"
    "$BIN/gen-llama" -q -m "$T/model" --draft "$T/drafter" --batch 2 "${hot[@]}" "$T/prompts" \
        > "$T/got"
    jq -c '[.id, .token_ids]' "$T/got" | cmp - "$T/plain"
    jq -se 'map(.accepted_tokens) | add > 3' "$T/got"
}

@test "eagle3: a packed drafter keeps its ids, and a record counts its parameters" {
    chain --arch llama
    "$BIN/gen-llama" -q -m "$T/model" --draft "$T/drafter" --quant int8 --max-new 20 "$T/prompts" \
        > "$T/quantized"
    "$BIN/pack-model" -q --no-meta -m "$T/drafter" --out "$T/packed" --quant int8
    "$BIN/gen-llama" -q -m "$T/model" --draft "$T/packed" --quant int8 --max-new 20 --no-meta \
        "$T/prompts" > "$T/got"
    jq -ne --slurpfile q "$T/quantized" --slurpfile g "$T/got" '[$g[] |
        [.id, .token_ids, .drafted_tokens, .accepted_tokens]] == [$q[] |
        select(.kind == "generation") | [.id, .token_ids, .drafted_tokens, .accepted_tokens]]'
    local weights=$T/drafter/model.safetensors header
    header=$(head -c 8 "$weights" | od -An -t u8)
    head -c $((8 + header)) "$weights" | tail -c "$header" > "$T/header"
    jq -se --slurpfile h "$T/header" '.[0].draft_model.arch == "eagle3" and
        .[0].draft_model.parameters == ($h[0] | del(.d2t, .t2d) |
        [to_entries[] | .value.shape // empty | reduce .[] as $n (1; . * $n)] | add)' \
        "$T/quantized"
}

@test "eagle3: a drafter that does not fit the model, or was not confirmed, is refused by name" {
    chain --arch llama
    # says STATUS WORDS [option...]
    says() {
        run "$BIN/gen-llama" -q -m "$T/model" --draft "$T/drafter" --no-meta "${@:3}" "$T/prompts"
        [ "$status" -eq "$1" ] && [[ $output == *"$2"* ]] || { echo "$output"; return 1; }
    }
    # changed WORDS FILTER: config.json of the drafter changed by the jq filter is refused
    changed() {
        cp "$T/drafter/config.json" "$T/config"
        jq "$2" "$T/config" > "$T/drafter/config.json"
        says 65 "$1"
        cp "$T/config" "$T/drafter/config.json"
    }
    # planted WORDS FROM TO: the tensor file with bytes replaced by as many is refused
    planted() {
        cp "$T/drafter/model.safetensors" "$T/file"
        LC_ALL=C sed -i "s/$2/$3/" "$T/drafter/model.safetensors"
        says 65 "$1"
        cp "$T/file" "$T/drafter/model.safetensors"
    }
    changed "eagle_aux_hidden_state_layer_ids: expected none: engines count these layers" \
        '.eagle_aux_hidden_state_layer_ids = [1, 3, 5]'
    changed "eagle_config: expected no key but use_aux_hidden_state" \
        '.eagle_config = {use_aux_hidden_state: true, eagle_aux_hidden_state_layer_ids: [1, 3, 5]}'
    changed "norm_before_residual: expected false" '.norm_before_residual = true'
    changed "num_hidden_layers: expected" '.num_hidden_layers = 2'
    changed "bias: expected false" '.bias = true'
    changed "target_hidden_size: expected" '.target_hidden_size = 48'
    changed "tie_word_embeddings: expected false" '.tie_word_embeddings = true'
    changed "draft_vocab_size: expected at most vocab_size" '.draft_vocab_size = 300'
    changed "draft_vocab_size: expected" 'del(.draft_vocab_size)'
    changed "unknown key" '.parallel_drafting = true'
    changed 'architectures: expected one of' '.architectures = ["Eagle3Speculator"]'
    planted "tensor d2t is missing: the head has rows for 165 of 264 ids" '"d2t"' '"d3t"'
    planted "tensor d2t: dtype expected I64, got U64" '"I64"' '"U64"'
    "$MAKE_CHECKPOINT" --layers 6 "$T/short"
    run "$BIN/gen-llama" -m "$T/short" --draft "$T/drafter" --no-meta "$T/prompts"
    [ "$status" -eq 65 ] && [[ $output == *"expected one of 7 layers or more, short has 6"* ]]
    run "$BIN/gen-llama" -m "$T/drafter" --no-meta "$T/prompts"
    [ "$status" -eq 65 ] && [[ $output == *"it only drafts for another model"* ]]
}

@test "eagle3: ids that do not ascend, or lie beyond the vocabulary, are refused" {
    chain --arch llama
    local weights=$T/drafter/model.safetensors header end
    header=$(head -c 8 "$weights" | od -An -t u8)
    end=$((8 + header + $(head -c $((8 + header)) "$weights" | tail -c "$header" |
        jq '.d2t.data_offsets[1]')))
    # says BYTES WORDS: tests the refusal with WORDS if the last value of d2t has these bytes
    says() {
        printf "%b" "$1" | dd of="$weights" bs=1 seek=$((end - 8)) conv=notrunc status=none
        run "$BIN/gen-llama" -m "$T/model" --draft "$T/drafter" --no-meta "$T/prompts"
        [ "$status" -eq 65 ] && [[ $output == *"$2"* ]] || { echo "$output"; return 1; }
    }
    says '\x64\0\0\0\0\0\0\0' "value 164 expected 96 to 99: ids that ascend, below 264; got 100"
    says '\x5f\0\0\0\0\0\0\0' "got 95"
    says '\xff\xff\xff\xff\xff\xff\xff\xff' "got -1"
}

@test "eagle3: two tensors of ids that disagree are refused" {
    chain --arch llama
    local weights=$T/drafter/model.safetensors header begin
    header=$(head -c 8 "$weights" | od -An -t u8)
    begin=$((8 + header + $(head -c $((8 + header)) "$weights" | tail -c "$header" |
        jq '.t2d.data_offsets[0]')))
    cp "$weights" "$T/file"
    # says ID BYTE WORDS: tests the refusal with WORDS if t2d has this byte for the id
    says() {
        printf "%b" "$2" | dd of="$weights" bs=1 seek=$((begin + $1)) conv=notrunc status=none
        run "$BIN/gen-llama" -m "$T/model" --draft "$T/drafter" --no-meta "$T/prompts"
        [ "$status" -eq 65 ] && [[ $output == *"tensor t2d: value $1 expected $3"* ]] ||
            { echo "$output"; return 1; }
        cp "$T/file" "$weights"
    }
    says 0 '\0' "1: by d2t this id has a row; got 0"
    says 262 '\1' "0: by d2t this id has no row; got 1"
    says 0 '\2' "1: by d2t this id has a row; got 2"
    # a head for all ids may come without d2t
    "$MAKE_CHECKPOINT" --arch eagle3 --answers 264 --seed 8 "$T/drafter"
    rm "$T/drafter/tokenizer.json"
    LC_ALL=C sed -i 's/"d2t"/"d3t"/' "$weights"
    header=$(head -c 8 "$weights" | od -An -t u8)
    begin=$((8 + header + $(head -c $((8 + header)) "$weights" | tail -c "$header" |
        jq '.t2d.data_offsets[0]')))
    cp "$weights" "$T/file"
    says 263 '\0' "1: by d2t this id has a row; got 0"
}

@test "eagle3: the plan counts the bytes of the ids, also for a head over all ids" {
    chain --arch llama
    for answers in 165 264; do
        "$MAKE_CHECKPOINT" --arch eagle3 --answers $answers --seed 8 "$T/drafter"
        rm "$T/drafter/tokenizer.json"
        gen=("$BIN/gen-llama" -q --no-meta -m "$T/model" --draft "$T/drafter" --max-new 4)
        "${gen[@]}" --explain "$T/prompts" | jq .weights_bytes > "$T/planned"
        "${gen[@]}" "$T/prompts" | jq .memory.weights_bytes | sort -u | cmp - "$T/planned"
    done
}
