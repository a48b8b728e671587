#!/usr/bin/env bats
# Compares rules that are no family's default, and Stable-DiffCoder, with float64 runs of their
# authors' samplers in tests/reference: the same ids in 20 settings each, if the decision is clear.

load ../reference/agree

@test "localleap: a sure token relaxes the threshold of its neighbours" {
    make_model --arch illada --gain 3
    for how in '0.9 0.75 4' '0.6 0.3 1' '0.5 0.2 2' '0.7 0 3' '0.4 0.4 4'; do
        read -r threshold relaxed radius <<< "$how"
        for block in 24 8; do
            for more in '--device ref' '--batch 3'; do
                # shellcheck disable=SC2086
                sampled localleap "{\"gen_length\":24,\"block_length\":$block,$(:
                    )\"threshold\":$threshold,\"relaxed_threshold\":$relaxed,$(:
                    )\"radius\":$radius}" --gen-length 24 --block-length $block \
                    --unmask localleap --threshold "$threshold" --relaxed-threshold "$relaxed" \
                    --leap-radius "$radius" $more
            done
        done
    done
    run "$BIN/gen-llada" -m "$T/model" --unmask localleap --leap-radius 1.5 --no-meta "$T/prompts"
    [ "$status" -eq 64 ]
}

# opened FIELDS [option...]: runs `sampled d2f` with several thresholds, shares and places of blocks
opened() {
    for how in '0.9 0.1 0.95' '0.5 0.5 0.5' '0.3 0 1' '0.4 1 1' '0.6 0.25 0.25'; do
        read -r threshold open ready <<< "$how"
        sampled d2f "{\"threshold\":$threshold,\"open_share\":$open,$(:
            )\"ready_share\":$ready,${1#\{}" \
            --unmask d2f --threshold "$threshold" --open-share "$open" --ready-share "$ready" \
            "${@:2}"
    done
}

@test "d2f: ids agree where blocks open before the previous block is full, also without a cache" {
    make_model --arch a2d-qwen3 --gain 2.5
    opened '{"gen_length":32,"block_length":8,"from_end":1}' --mask-block 8 --gen-length 32 \
        --block-length 8 --batch 3
    opened '{"gen_length":32,"block_length":8,"from_end":1}' --mask-block 8 --gen-length 32 \
        --block-length 8 --cache none --device ref
    jq -se 'all(.cache == "none" and .unmask == "d2f")' "$T/got"
    make_model --arch sdar --kv-heads 2 --gain 2.5
    opened '{"gen_length":24,"block_length":4}' --gen-length 24 --temperature 0 --batch 4
    jq -se 'all(.cache == "exact") and any(.denoise_steps < 24)' "$T/got"
    opened '{"gen_length":24,"block_length":4}' --gen-length 24 --temperature 0 --batch 4 \
        --admit continuous --threads 2
}

@test "d2f: ids agree for LLaDA under the mask of D2F, where the prompt is one block" {
    make_model --arch llada --gain 2.5
    opened '{"gen_length":32,"block_length":8,"from_end":1,"joined":1}' --mask-block 8 \
        --gen-length 32 --batch 3
    jq -se 'all(.cache == "exact" and .block_length == 8)' "$T/got"
    opened '{"gen_length":32,"block_length":8,"from_end":1,"joined":1}' --mask-block 8 \
        --gen-length 32 --cache none --device ref
    run opened '{"gen_length":32,"block_length":8,"from_end":1}' --mask-block 8 --gen-length 32
    [ "$status" -ne 0 ] # blocks in the prompt give other ids
    mv "$T/model" "$T/D2F_LLaDA"
    "$BIN/gen-llada" -q -m "$T/D2F_LLaDA" --gen-length 32 --unmask d2f --no-meta "$T/prompts" |
        jq -se 'all(.block_length == 32 and .cache == "exact")'
    if [ -e "${TESTBIN:-build/tests}/libcrossover-cuda.so" ]; then
        mv "$T/D2F_LLaDA" "$T/model"
        on_cuda sampled d2f '{"gen_length":16,"block_length":4,"threshold":0.4,"from_end":1,'"$(:
            )"'"open_share":0.25,"ready_share":0.5,"joined":1}' --mask-block 4 --gen-length 16 \
            --unmask d2f --threshold 0.4 --open-share 0.25 --ready-share 0.5 --dtype f32 --batch 4
    fi
}

@test "d2f: it needs fewer passes than block by block, and is refused if no block can open" {
    make_model --arch a2d-qwen3 --gain 2.5
    passes() {
        "$BIN/gen-llada" -q -m "$T/model" --mask-block 4 --block-length 4 --gen-length 64 \
            --threshold 0.7 --no-meta "$@" "$T/prompts" | jq -s 'map(.denoise_steps) | add'
    }
    [ "$(passes --unmask d2f)" -lt "$(passes --unmask threshold)" ]
    [ "$(passes --unmask d2f --open-share 1)" -le "$(passes --unmask threshold)" ]
    run "$BIN/gen-llada" -m synth:tiny-llada --unmask d2f --no-meta "$T/prompts"
    [ "$status" -eq 64 ] && [[ $output == *"expected a model with a block-causal mask"* ]]
    run "$BIN/gen-llada" -m "$T/model" --mask-block 4 --unmask d2f --draft-steps 2 --no-meta \
        "$T/prompts"
    [ "$status" -eq 64 ] && [[ $output == *"opens blocks"* ]]
}

@test "dream: at temperature 0 confidences count only the ids that top-p and top-k keep" {
    kept() { # kept FILTERS OPTION...: ids of the reference in each order, others than with model
        local order filters=$1
        shift
        rm -f "$T/all" "$T/other"
        for order in confidence margin entropy; do
            sampled dream "{\"gen_length\":16,\"steps\":16,\"order\":\"$order\",$filters}" \
                --gen-length 16 --steps 16 --unmask schedule --pace timesteps --order $order "$@"
            jq -se 'all(.confidence_of == "kept" and .temperature == 0 and .top_k != null)' "$T/got"
            jq -c .token_ids "$T/got" >> "$T/all"
            "$BIN/gen-llada" -q -m "$T/model" --no-meta --gen-length 16 --steps 16 --order $order \
                --unmask schedule --pace timesteps "$@" --confidence-of model "$T/prompts" |
                jq -c .token_ids >> "$T/other"
        done
        ! cmp -s "$T/all" "$T/other"
    }
    make_model --arch dream --kv-heads 2 --gain 2
    kept '"top_k":3' --top-k 3
    kept '"top_p":0.6' --top-p 0.6 --device ref
    kept '"top_p":0.8,"top_k":4' --top-p 0.8 --top-k 4 --batch 3 --dtype f32
    on_levels gen-llada kept '"top_p":0.8,"top_k":4' --top-p 0.8 --top-k 4
    [ ! -e "${TESTBIN:-build/tests}/libcrossover-cuda.so" ] ||
        CROSSOVER_CUDA="${TESTBIN:-build/tests}/libcrossover-cuda.so" \
            kept '"top_p":0.8,"top_k":4' --top-p 0.8 --top-k 4 --dtype f32 --device cuda
}

@test "sched: it commits all tokens if the best ones stay and their lead passes a falling bound" {
    make_model --arch dream --gain 3
    for how in '7.5 2.5 0' '0.5 0.1 0' '0.6 0.2 4' '1 0 2' '0.3 0 0'; do
        read -r high low rate <<< "$how"
        for steps in 17 24; do # 24: nothing in the first step
            sampled sched "{\"gen_length\":24,\"block_length\":24,\"steps\":$steps,$(:
                )\"timesteps\":1,\"lag\":1,\"order\":\"entropy\",$(:
                )\"high\":$high,\"low\":$low,\"rate\":$rate}" --gen-length 24 \
                --unmask sched --pace timesteps --order entropy --steps $steps --batch 3 \
                --sched-high "$high" --sched-low "$low" --sched-rate "$rate"
        done
    done
    jq -se 'all(.denoise_steps < 4)' "$T/got"
    make_model --arch illada --gain 3
    for how in '7.5 2.5 0' '0.5 0.1 0' '0.6 0.2 4' '1 0 2' '0.3 0 0'; do
        read -r high low rate <<< "$how"
        for steps in 9 12; do # of each block
            sampled sched "{\"gen_length\":24,\"block_length\":12,\"steps\":$steps,$(:
                )\"high\":$high,\"low\":$low,\"rate\":$rate}" --gen-length 24 \
                --block-length 12 --unmask sched --steps $((2 * steps)) --device ref \
                --sched-high "$high" --sched-low "$low" --sched-rate "$rate"
        done
    done
    jq -se 'any(.denoise_steps < 20)' "$T/got"
    run "$BIN/gen-llada" -m "$T/model" --unmask sched --temperature 1 --no-meta "$T/prompts"
    [ "$status" -eq 64 ] && [[ $output == *"temperature 0 only"* ]]
}

@test "less: it commits tokens that are sure, persistent and still, or the step's budget" {
    make_model --arch illada --gain 3
    for how in '0.75 0.04 2' '0.3 0.2 1' '0.2 0.02 1' '0.4 1 3' '0 0.1 2'; do
        read -r sure drift history <<< "$how"
        for block in 24 8; do
            for more in '--device ref' '--batch 3'; do
                # shellcheck disable=SC2086
                sampled less "{\"gen_length\":24,\"block_length\":$block,\"sure\":$sure,$(:
                    )\"drift\":$drift,\"history\":$history}" --gen-length 24 \
                    --block-length $block --unmask less --less-sure "$sure" \
                    --less-drift "$drift" --less-history "$history" $more
            done
        done
    done
    jq -se 'any(.denoise_steps < 24)' "$T/got"
    sampled less '{"gen_length":24,"block_length":24,"steps":7,"sure":0.3,"drift":0.2,'"$(:
        )"'"history":1}' \
        --gen-length 24 --unmask less --steps 7 --less-sure 0.3 --less-drift 0.2 --less-history 1
    on_levels gen-llada sampled less \
        '{"gen_length":12,"block_length":12,"sure":0.2,"drift":0.1,"history":1}' --gen-length 12 \
        --unmask less --less-sure 0.2 --less-drift 0.1 --less-history 1
}

# checked SPAN FIELDS [option...]: runs `sampled s2d2`, which checks runs of SPAN masks or more
checked() {
    local span=$1 fields=${2#\{}
    shift 2
    sampled s2d2 "{\"span\":$span,\"gen_length\":24,$fields" --gen-length 24 --temperature 0 \
        --unmask s2d2 --check-span "$span" "$@"
}

@test "s2d2: a draft stays while blocks of one token give the same ids" {
    make_model --arch sdar --kv-heads 2 --gain 2.5
    for span in 1 2 3 5; do # a block has 4 slots: 5 checks nothing
        checked $span '{"block_length":4,"threshold":0.4}' --threshold 0.4 --batch 3
        jq -se 'all(.cache == "exact")' "$T/got"
        checked $span '{"block_length":4,"threshold":0.4}' --threshold 0.4 --cache none --device ref
        checked $span '{"block_length":8,"threshold":0.6}' --threshold 0.6 --mask-block 8
        checked $span '{"block_length":8,"threshold":0.6}' --threshold 0.6 --mask-block 8 \
            --batch 2 --admit continuous --threads 2
        checked $span '{"block_length":6,"threshold":0.5}' --threshold 0.5 --mask-block 6 --batch 4
    done
    on_levels gen-llada checked 1 '{"block_length":4}'
    if [ -e "${TESTBIN:-build/tests}/libcrossover-cuda.so" ]; then
        on_cuda checked 1 '{"block_length":4}' --dtype f32 --batch 4
        on_cuda checked 3 '{"block_length":4,"threshold":0.4}' --threshold 0.4 --dtype f32
    fi
    # a cut last block has fewer rows that check: here one, and three in the first one
    make_model --arch stable-diffcoder --kv-heads 2 --gain 2.5
    for span in 1 3; do
        checked $span '{"block_length":4,"threshold":0.4,"cut":1}' --threshold 0.4 --batch 3
        checked $span '{"block_length":4,"threshold":0.4,"cut":1}' --threshold 0.4 --cache none \
            --device ref
    done
}

@test "s2d2: in 200 of 200 texts the ids are those of blocks of one token" {
    make_model --arch sdar --dtype BF16 --kv-heads 2 --gain 4
    jq -cn 'range(220) | . as $n | {id: "\($n)", prompt_ids:
        [range(1 + $n % 23) | ($n * 37 + . * 91) % 256]}' > "$T/prompts"
    write() {
        "$BIN/gen-llada" -q -m "$T/model" --temperature 0 --gen-length 48 --batch 50 --no-meta \
            "$@" "$T/prompts" | jq -c 'select(.kind == "generation")'
    }
    # without texts in which the network writes its mask id, because such a slot is filled again
    write --mask-block 1 --unmask threshold |
        jq -sc 'map(select(.token_ids | index(258) | not)) | .[:200][]' > "$T/alone"
    ids() { jq -c '[.id, .token_ids]' "$1" | sort; }
    for block in 4 16; do
        write --mask-block $block --unmask s2d2 > "$T/checked"
        [ "$(comm -12 <(ids "$T/alone") <(ids "$T/checked") | wc -l)" -eq 200 ]
    done
    # a draft and its check are two passes, and give more than one token
    jq -se '(map(.denoise_steps) | add) < 2 * 48 * length and any(.edited_tokens > 0)' "$T/checked"
}

@test "s2d2: it is refused if blocks are not those of the mask, or if ids are drawn" {
    make_model --arch sdar
    refuses_to() {
        run "$BIN/gen-llada" -m "$T/model" --unmask s2d2 --no-meta "${@:2}" "$T/prompts"
        [ "$status" -eq 64 ] && [[ $output == *"$1"* ]]
    }
    refuses_to "temperature 0 only"
    refuses_to "expected block-length 4" --temperature 0 --gen-length 8 --block-length 8 \
        --mask-block 4
    refuses_to "cache none or exact" --temperature 0 --gen-length 8 --cache prefix
    make_model --arch dream
    refuses_to "expected a model with a block-causal mask" --temperature 0 --gen-length 8
}

# dawned 'THRESHOLD SINK EDGE INDUCE LOW' FIELDS [option...]: runs `sampled dawn` with these values
dawned() {
    local threshold sink edge induce low fields=${2#\{}
    read -r threshold sink edge induce low <<< "$1"
    shift 2
    sampled dawn "{\"threshold\":$threshold,\"sink\":$sink,\"edge\":$edge,$(:
        )\"induce\":$induce,\"low\":$low,$fields" --unmask dawn --threshold "$threshold" \
        --dawn-sink "$sink" --dawn-edge "$edge" --dawn-induce "$induce" --dawn-low "$low" "$@"
}

@test "dawn: it commits sure answers, answers that depend on them, and independent answers" {
    make_model --arch illada --gain 3
    for how in '0.9 0.01 0.07 0.7 0.7' '0.5 0.1 0.04 0.2 0.1' '0.6 0.05 0.05 0.3 0.1' \
        '0.3 0.05 0.035 0.1 0.05' '0.7 1 0.06 0.05 0.2'; do
        dawned "$how" '{"gen_length":24,"block_length":24}' --gen-length 24 --device ref
        dawned "$how" '{"gen_length":24,"block_length":24}' --gen-length 24 --batch 3
        dawned "$how" '{"gen_length":24,"block_length":8}' --gen-length 24 --block-length 8
        dawned "$how" '{"gen_length":24,"block_length":8}' --gen-length 24 --block-length 8 \
            --batch 2 --admit continuous --threads 2
    done
    make_model --arch llada --gain 3 --layers 6 --heads 4 --kv-heads 2 # the last four of six
    on_levels gen-llada dawned '0.5 0.1 0.04 0.2 0.1' '{"gen_length":12,"block_length":12}' \
        --gen-length 12
    if [ -e "${TESTBIN:-build/tests}/libcrossover-cuda.so" ]; then
        on_cuda dawned '0.5 0.1 0.04 0.2 0.1' '{"gen_length":16,"block_length":16}' \
            --gen-length 16 --dtype f32 --batch 4
        on_cuda dawned '0.6 0.05 0.05 0.3 0.1' '{"gen_length":16,"block_length":8}' \
            --gen-length 16 --block-length 8 --dtype f32
    fi
    run "$BIN/gen-llada" -m "$T/model" --unmask dawn --cache dual --no-meta "$T/prompts"
    [ "$status" -eq 64 ] && [[ $output == *"expected cache none"* ]]
    make_model --arch sdar
    run "$BIN/gen-llada" -m "$T/model" --unmask dawn --cache none --no-meta "$T/prompts"
    [ "$status" -eq 64 ] && [[ $output == *"sees all others"* ]]
}

@test "sched, less: ids agree on the emulated CUDA device" {
    [ -e "${TESTBIN:-build/tests}/libcrossover-cuda.so" ] ||
        skip "no C++ compiler, so no emulated device"
    make_model --arch illada --gain 3
    on_cuda sampled sched '{"gen_length":16,"block_length":16,"high":0.5,"low":0.1,"rate":0}' \
        --gen-length 16 --unmask sched --sched-high 0.5 --sched-low 0.1 --sched-rate 0 --dtype f32
    on_cuda sampled less '{"gen_length":16,"block_length":16,"sure":0.3,"drift":0.2,"history":1}' \
        --gen-length 16 --unmask less --less-sure 0.3 --less-drift 0.2 --less-history 1 \
        --dtype f32 --batch 4
}

@test "localleap, d2f: ids agree on the emulated CUDA device" {
    [ -e "${TESTBIN:-build/tests}/libcrossover-cuda.so" ] ||
        skip "no C++ compiler, so no emulated device"
    make_model --arch illada --gain 3
    on_cuda sampled localleap '{"gen_length":16,"block_length":16,"threshold":0.5,'"$(:
        )"'"relaxed_threshold":0.2,"radius":2}' --gen-length 16 --unmask localleap --threshold 0.5 \
        --relaxed-threshold 0.2 --leap-radius 2 --dtype f32
    make_model --arch a2d-qwen3 --gain 2.5
    on_cuda sampled d2f '{"gen_length":16,"block_length":4,"threshold":0.4,"open_share":0.25,'"$(:
        )"'"ready_share":0.5,"from_end":1}' --mask-block 4 --gen-length 16 --block-length 4 \
        --unmask d2f --threshold 0.4 --open-share 0.25 --ready-share 0.5 --dtype f32 --batch 4
}

@test "stable-diffcoder: ids agree with blocks of 4, the last one cut, on every level" {
    make_model --arch stable-diffcoder --dtype BF16 --kv-heads 2 --gain 2.5
    for threshold in 0.95 0.5 0.2; do
        sampled stable "{\"gen_length\":24,\"threshold\":$threshold}" --threshold $threshold \
            --gen-length 24 --batch 3
        sampled stable "{\"gen_length\":24,\"threshold\":$threshold}" --threshold $threshold \
            --gen-length 24 --cache none --device ref
    done
    jq -se 'all(.arch == "stable-diffcoder" and .unmask == "threshold" and .block_length == 4)' \
        "$T/got"
    on_levels gen-llada sampled stable '{"gen_length":12,"threshold":0.4}' --threshold 0.4 \
        --gen-length 12
    make_model --arch stable-diffcoder --tied --shards 3 --kv-heads 1 --layers 3 --ffn 37 \
        --width 36 --heads 3
    sampled stable '{"gen_length":16,"block_length":8,"threshold":0.95}' --gen-length 16 \
        --mask-block 8
    "$BIN/gen-llada" -q -m "$T/model" --gen-length 8 --no-meta "$T/prompts" > "$T/got"
    jq -e '.threshold == 0.95 and .cache == "exact" and .temperature == 0' "$T/got"
    refuses "attention_bias: expected false" '.attention_bias = true'
    for it in gen-llada:stable-diffcoder-8b:--gen-length gen-llama:seed-coder-8b:--max-new; do
        IFS=: read -r tool shape length <<< "$it" # the two sides of the pair have one network
        "$BIN/$tool" -q --no-meta -m "synth:$shape" --device cpu --explain "$length" 8 --limit 1 \
            "$T/prompts"
    done | jq -se 'map(.planned_bytes) | length == 2 and .[0] < 1.01 * .[1] and
        .[1] < 1.01 * .[0]'
    if [ -e "${TESTBIN:-build/tests}/libcrossover-cuda.so" ]; then
        on_cuda sampled stable '{"gen_length":12,"threshold":0.4}' --threshold 0.4 --gen-length 12 \
            --dtype f32 --batch 4
    fi
}

@test "self-speculation of Nemotron writes the ids of its autoregressive mode in 200 of 200 texts" {
    make_model --arch nemotron --dtype BF16 --kv-heads 2 --gain 2.5
    jq -cn 'range(200) | . as $n | {id: "\($n)", prompt_ids:
        [range(1 + $n % 23) | ($n * 37 + . * 91) % 256]}' > "$T/prompts"
    write() {
        "$BIN/gen-llama" -q -m "$T/model" --ignore-eos --max-new 40 --batch 50 --no-meta "$@" \
            "$T/prompts" | jq -c 'select(.kind == "generation") | [.id, .token_ids]' | sort
    }
    for how in '' '--temperature 0.8 --top-k 20 --top-p 0.9'; do
        # shellcheck disable=SC2086
        write $how > "$T/alone"
        # shellcheck disable=SC2086
        write --self-draft 31 $how > "$T/guessed"
        [ "$(comm -12 "$T/alone" "$T/guessed" | wc -l)" -eq 200 ]
    done
}

# strided MOST [option...]: tests that gen-llama with --self-draft MOST has the ids and the passes
# of I-DLM's decoding, if all decisions are clear
strided() {
    local most=$1
    shift
    ask sample "{\"sampler\":\"idlm\",\"most\":$most,\"gen_length\":24,\"mask\":258}" \
        > "$T/expected"
    "$BIN/gen-llama" -q -m "$T/model/I-DLM" --max-new 24 --ignore-eos --no-meta \
        --self-draft "$most" "$@" "$T/prompts" > "$T/got"
    jq -n -e --slurpfile e "$T/expected" --slurpfile g "$T/got" --argjson clear "$CLEAR" '
        [$g[] | {(.id): [.token_ids, (.step_ns | length)]}] | add as $got |
        [$e[] | select(.min_logit_gap > $clear) | [.ids, .passes] == $got[.id]] |
        all and length >= 2'
}

@test "i-dlm: one pass checks guesses and makes the next guesses, and changes no id" {
    make_model --arch sdar --kv-heads 2 --gain 6
    mkdir "$T/I-DLM" && mv "$T/model/"* "$T/I-DLM" && mv "$T/I-DLM" "$T/model"
    cp "$T/model/I-DLM/"* "$T/model" # for the reference; the name says the mask
    jq '.block_size = 3 | .mask_token_id = 258' "$T/model/config.json" \
        > "$T/model/I-DLM/config.json"
    for most in 1 2 3 7 15; do
        strided $most --batch 1
        strided $most --batch 1 --device ref
        strided $most --batch 1 --threads 2 --dtype f32
    done
    for isa in amx avx512bf16 avx512 avxvnni avx2 i8mm dotprod neon portable; do
        "$BIN/gen-llama" -q -m "$T/model/I-DLM" --isa $isa --limit 1 --no-meta "$T/prompts" \
            > "$T/probe" 2> "$T/err" || [ $? -eq 69 ]
        if [ -s "$T/probe" ]; then strided 3 --batch 1 --isa $isa; fi
    done
    if [ -e "${TESTBIN:-build/tests}/libcrossover-cuda.so" ]; then
        on_cuda strided 3 --batch 1 --dtype f32
    fi
    jq -se 'any(.accepted_tokens > 0) and all(.arch == "sdar" and .paradigm == "autoregressive")' \
        "$T/got"
    run "$BIN/gen-llada" -m "$T/model/I-DLM" --no-meta "$T/prompts"
    [ "$status" -eq 65 ] && [[ $output == *"this attention mask is not supported"* ]]
}

@test "i-dlm: in 200 of 200 texts the ids are those without guesses, also if they are drawn" {
    make_model --arch sdar --dtype BF16 --kv-heads 2 --gain 6
    mv "$T/model" "$T/I-DLM"
    jq -cn 'range(200) | . as $n | {id: "\($n)", prompt_ids:
        [range(1 + $n % 23) | ($n * 37 + . * 91) % 256]}' > "$T/prompts"
    write() {
        "$BIN/gen-llama" -q -m "$T/I-DLM" --ignore-eos --max-new 40 --batch 50 --no-meta "$@" \
            "$T/prompts" | jq -c 'select(.kind == "generation") | [.id, .token_ids]' | sort
    }
    for how in '' '--temperature 0.8 --top-k 20 --top-p 0.9' '--admit continuous --batch 7'; do
        # shellcheck disable=SC2086
        write $how > "$T/alone"
        # shellcheck disable=SC2086
        write --self-draft 3 $how > "$T/guessed"
        [ "$(comm -12 "$T/alone" "$T/guessed" | wc -l)" -eq 200 ]
    done
}
