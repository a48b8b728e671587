#!/usr/bin/env bats
# Pairs of models as data (pipelines/pairs), on tiny checkpoints in a made cache.

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    . tests/reference/build.sh
    export HF_HOME=$BATS_FILE_TMPDIR/cache
}

setup() {
    set -o pipefail
    BIN=$(realpath "${BIN:-build/bin}")
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
    unset MAKEFLAGS MAKELEVEL HF_HUB_CACHE HUGGINGFACE_HUB_CACHE
}

# made NAME [option...]: makes a checkpoint with this name in the cache
made() {
    local home=$HF_HOME/hub/models--${1/\//--} commit=0123456789abcdef0123456789abcdef01234567
    shift
    mkdir -p "$home/refs" "$home/snapshots"
    printf %s $commit > "$home/refs/main"
    "$MAKE_CHECKPOINT" "$@" "$home/snapshots/$commit"
}

# makes TARGET...: runs make without compiling anything
makes() {
    make --no-print-directory BIN="$BIN" BUILD="$(dirname "$BIN")" CUDA=0 RESULTS="$T/results" "$@"
}

@test "make pairs lists sides, sizes, state of the cache and commands, and fetches nothing" {
    made JetLM/SDAR-4B-Chat --arch sdar
    made Qwen/Qwen3-4B --arch qwen3
    ln -s gone "$(echo "$HF_HOME"/hub/models--Qwen--Qwen3-4B/snapshots/*)/x"
    makes pairs > "$T/list"
    grep -qE '^ +JetLM/SDAR-4B-Chat +[0-9.]+ GB  here$' "$T/list"
    grep -qE 'Qwen/Qwen3-4B +[0-9.]+ GB  broken: hf download Qwen/Qwen3-4B$' "$T/list"
    grep -qE 'mistralai/Mistral-7B-v0.3 .* missing: hf download mistralai/Mistral-7B-v0.3$' \
        "$T/list"
    grep -q 'make all PAIR=sdar-4b (profile gpu)' "$T/list"
    [ "$(grep -c 'make all PAIR=' "$T/list")" -eq "$(ls pipelines/pairs/*.mk | wc -l)" ]
    rm "$HF_HOME"/hub/models--Qwen--Qwen3-4B/snapshots/*/x
}

@test "an unknown pair is error 64, a pair that is not in the cache is error 66" {
    run makes all PAIR=no-such
    [ "$status" -ne 0 ]
    [[ $output == *"PAIR=no-such (64): expected one of "*"qwen3-0.6b"*"make pairs"* ]]
    run makes all PAIR=dream-7b
    [ "$status" -ne 0 ] && [[ $output == *"PAIR=dream-7b (66): "*"hf download Dream-org/"* ]]
    [ ! -e "$T/results" ]
}

@test "every pair names families that load, and its settings replace those of the profile" {
    for file in pipelines/pairs/*.mk; do
        pair=$(basename "$file" .mk)
        makes -s print-LLADA print-LLAMA print-JUDGE print-GB print-MEMORY print-METHODS \
            print-BLOCK_LENGTH print-R PROFILE=cpu PAIR="$pair" > "$T/said"
        [ "$(grep -c / "$T/said")" -eq 4 ] && [ "$(wc -l < "$T/said")" -eq 8 ]
        grep -q "/$pair-cpu$" "$T/said"
        for method in $(sed -n 6p "$T/said"); do
            jq -se --arg m "$method" 'any(.method == $m)' data/methods.ndjson > "$T/known"
        done
    done
    [ "$(makes -s print-QUANT_CHOICE PAIR=sdar-4b)" = '--count 128' ] # not of 0 likelihoods
    [ "$(makes -s print-PROMPT_FILE PAIR=sdar-4b)" = data/prompts/human.ndjson ]
    [ "$(makes -s print-BLOCK_LENGTH PAIR=sdar-4b)" -eq 4 ]
    [ "$(makes -s print-BLOCK_LENGTH PAIR=sdar-4b BLOCK_LENGTH=16)" -eq 16 ]
}

@test "tools/README.md lists every architecture that is read, and every pair" {
    mkdir "$T/x"
    echo '{"architectures":["X"],"model_type":"x"}' > "$T/x/config.json"
    run "$BIN/gen-llada" -m "$T/x" /dev/null
    [ "$status" -eq 65 ] && [[ $output == *': others are not supported, got ["X"]' ]]
    grep -oE '"[A-Za-z0-9_]+[a-z]+[A-Z][A-Za-z0-9_]*"' <<< "$output" | tr -d '"' > "$T/names"
    [ "$(wc -l < "$T/names")" -ge 21 ]
    sed -n '/^### Families/,/^## /p' tools/README.md > "$T/table"
    while read -r name; do grep -q "^|.*\`$name\`" "$T/table"; done < "$T/names"
    for file in pipelines/pairs/*.mk; do
        grep -q "^|.*\`$(basename "$file" .mk)\`" "$T/table"
    done
}

# uneven FILE: prints commands of a dry run whose blocks do not divide the length or the steps
uneven() {
    sed -e ':a' -e '/\\$/{' -e N -e 's/\\\n//' -e ta -e '}' "$1" | awk '
        function of(name) {
            if (!match($0, "(^|[ \t])" name "[ =][0-9,]+"))
                return ""
            name = substr($0, RSTART + 1, RLENGTH - 1)
            sub(/.*[ =]/, "", name)
            return name
        }
        function check(length_, block, steps, n, i, step) {
            n = split(steps, step, ",")
            for (i = 1; i <= n; i++)
                if (length_ % block || step[i] % (length_ / block))
                    print length_, block, steps
            checked++
        }
        /EXACT_BLOCK=/ { check(of("EXACT_LENGTH"), of("EXACT_BLOCK"), of("EXACT_STEPS")) }
        /--block-length / { check(of("--gen-length"), of("--block-length"), of("--steps")) }
        END { if (!checked) print "no command" }'
}

# Other blocks make another mask, so the ids of such a run would be those of another model.
@test "for a block mask every phase and experiment fills the blocks of the pair" {
    local file pair block
    for file in $(grep -lE '^MASK_BLOCKS +:= 1' pipelines/pairs/*.mk) \
        pipelines/pairs/llada2.1-mini.mk; do
        pair=$(basename "$file" .mk)
        block=$(makes -s print-BLOCK_LENGTH PAIR="$pair" PROFILE=quick)
        for model in $(makes -s print-LLADA print-LLAMA print-JUDGE PAIR="$pair"); do
            [ -e "$HF_HOME/hub/models--${model/\//--}" ] || made "$model" --arch sdar
        done
        for profile in quick demo; do
            local of=$T/results/$pair-$profile at=(PAIR="$pair" PROFILE="$profile")
            makes -s "$of/ablation/options.mk" "${at[@]}"
            makes -n phase2 phase3 phase5 exact caps pruning ablation "${at[@]}" > "$T/dry"
            makes -n shapes "${at[@]}" > "$T/shapes"
            grep -q 'gen-llada prune-ffn' "$T/dry"
            [ "$(grep -c 'gen-llada block-8' "$T/dry")" -eq 0 ]
            grep -ohE '(--block-length |EXACT_BLOCK=)[0-9]+' "$T/dry" "$T/shapes" | sort |
                uniq -c > "$T/blocks"
            [ "$(sed -E 's/.*[ =]//' "$T/blocks" | sort -u)" = "$block" ]
            [ "$(awk '{ n += $1 } END { print n }' "$T/blocks")" -ge 60 ]
            [ "$(uneven "$T/dry")$(uneven "$T/shapes")" = "" ]
        done
        # these settings go on to gen-llada, which refuses the same
        makes -s "$of"/{aa,shape-none-1,length-32}/schedule.ndjson "${at[@]}" > "$T/log" 2>&1
    done
    makes -s "$T/results/demo/ablation/options.mk" PROFILE=demo
    makes -n ablation PROFILE=demo > "$T/dry"
    grep -q 'gen-llada block-8' "$T/dry"
    makes -s print-exact_LENGTH print-exact_STEPS PAIR=sdar-4b EXACT_LENGTH=42 > "$T/said"
    [ "$(paste -sd' ' "$T/said")" = '44 11' ]
    run makes -s print-exact_LENGTH MASK_BLOCKS=0
    [ "$status" -ne 0 ]
    [[ $output == *'MASK_BLOCKS=0 (64): expected 1 or nothing'* ]]
    [ "$(grep -lE '^MASK_BLOCKS' pipelines/pairs/*.mk | wc -l)" -eq 5 ]
    makes "$T/results/sdar-4b-quick/baseline/llada-ref.ndjson" PAIR=sdar-4b PROFILE=quick \
        > "$T/log" 2>&1
    jq -se '[.[] | select(.kind == "generation")] | length > 0 and
        all(.status == "ok" and .block_length == 4 and .gen_length == 16)' \
        "$T/results/sdar-4b-quick/baseline/llada-ref.ndjson"
    [ "$(makes -s print-baseline_LENGTH PAIR=nemotron-3b PROFILE=quick)" -eq 32 ] # whole blocks
    [ "$(makes -s print-baseline_BLOCK PAIR=llada-8b PROFILE=quick)" -eq 16 ] # no such mask
}

@test "the experiments shapes and ablation run for a mask with blocks" {
    made JetLM/SDAR-4B-Chat --arch sdar --vocab 512
    made Qwen/Qwen3-4B --arch qwen3 --vocab 512
    made mistralai/Mistral-7B-v0.3 --arch mistral --layers 3
    local of=$T/results/sdar-4b-quick at=(PAIR=sdar-4b PROFILE=quick LAUNCHES=1)
    makes measured "${at[@]}" SHAPE_FORMATS=none SHAPE_BATCH=1 SHAPE_PROMPT=16 \
        SHAPE_LENGTH=128,64 MEASURED="$T/measured" > "$T/log" 2>&1
    jq -se 'map(select(.what == "line") | [.new_tokens, .measured_steps]) | unique ==
        [[64, [16, 32, 64]], [128, [32, 64, 128]]]' "$of/shapes.ndjson"
    jq -se 'map(select(.metric == "memory_allocated_peak_bytes" and .value > 0)) | length == 8 and
        (map(.gen_length // .max_new) | unique) == [64, 128]' "$T/measured"
    jq -se 'any(.metric == "memory_reserved_peak_bytes" and .value > 0)' "$T/measured"
    jq -c 'select(.option | IN("base", "prefix", "block-8"))' data/ablation.ndjson > "$T/options"
    makes ablation "${at[@]}" OPTIONS_FILE="$T/options" ABLATION_LENGTH=16 ABLATION_STEPS=16 \
        ABLATION_PROMPTS=10 ABLATION_BATCH=10 > "$T/log" 2>&1
    jq -se 'map(select(.kind == "generation" and .arch == "sdar")) |
        (map(.option) | unique) == ["base", "prefix"] and all(.block_length == 4)' \
        "$of/ablation/answers.ndjson"
    grep -q 'left out: no record in .*references' "$T/log" # no likelihood bound
}

@test "make over-pairs names runs of the same models by their folders" {
    local run
    for run in demo quick; do # streams with an end record, as conclude writes them
        mkdir -p "$T/results/$run"
        jq -nc --argjson o "{}" -f tests/fixtures/claims-run.jq |
            "$BIN/conclude" -q --quality sum:accuracy:0.05,story:judge_ppl:0.1 - \
                > "$T/results/$run/claims.ndjson"
        jq -se 'last.kind == "end"' "$T/results/$run/claims.ndjson"
    done
    makes over-pairs > "$T/log" 2>&1
    grep -q 'llada-demo, llama-demo; demo' "$T/results/pairs.gp"
    grep -q 'llada-demo, llama-demo; quick' "$T/results/pairs.gp"
}

@test "make phase4 PAIR=NAME measures diffusion in blocks against its AR model" {
    made JetLM/SDAR-4B-Chat --arch sdar
    made Qwen/Qwen3-4B --arch qwen3
    made mistralai/Mistral-7B-v0.3 --arch mistral --layers 3
    makes phase4 PAIR=sdar-4b PROFILE=quick PROMPT_CHOICE='--count 3' GEN_LENGTH=16 STEPS=16 \
        LAUNCHES=1 > "$T/log" 2>&1
    jq -se '[.[] | select(.arch == "sdar" and .unmask == "dynamic")] |
        length > 0 and all(.block_length == 4 and .cache == "exact") and
        (map(.threshold) | unique) == [0.6, 0.75, 0.85, 0.95]' \
        "$T/results/sdar-4b-quick/steps/generations.ndjson"
    jq -se 'any(.arch == "qwen3" and .kind == "generation")' \
        "$T/results/sdar-4b-quick/steps/generations.ndjson"
}

@test "a checkpoint paired with itself runs in blocks, left to right and by own guesses" {
    made nvidia/Nemotron-Labs-Diffusion-3B --arch nemotron
    made mistralai/Mistral-7B-v0.3 --arch mistral --layers 3
    makes phase4 PAIR=nemotron-3b PROFILE=quick PROMPT_CHOICE='--count 3' GEN_LENGTH=16 \
        BLOCK_LENGTH=8 STEPS=16 LAUNCHES=1 > "$T/log" 2>&1
    jq -se '[.[] | select(.kind == "generation")] | group_by(.paradigm) |
        map({(.[0].paradigm): (map(.threshold // .self_draft) | unique)}) | add ==
        {autoregressive: [0, 7, 15, 31], block_diffusion: [null, 0.6, 0.75, 0.9, 0.99]}' \
        "$T/results/nemotron-3b-quick/steps/generations.ndjson"
    jq -se 'map(select(.kind == "generation" and .paradigm == "autoregressive")) |
        group_by(.id) | all((map(.token_ids) | unique | length) == 1)' \
        "$T/results/nemotron-3b-quick/steps/generations.ndjson"
}

@test "DRAFT=NAME: an EAGLE-3 drafter is a method of phase 4, and may be the rival" {
    made JetLM/SDAR-4B-Chat --arch sdar
    made Qwen/Qwen3-4B --arch qwen3 --layers 8
    made mistralai/Mistral-7B-v0.3 --arch mistral --layers 3
    made AngelSlim/Qwen3-4B_eagle3 --arch eagle3
    eagle=(PAIR=sdar-4b PROFILE=quick PROMPT_CHOICE='--count 3' GEN_LENGTH=16 STEPS=16 LAUNCHES=1
        METHODS='lookup eagle3' PARETO_FLAGS='--rival fastest')
    run makes phase4 "${eagle[@]}"
    [ "$status" -ne 0 ] && [[ $output == *"METHODS: eagle3, dflash need DRAFT=MODEL"* ]]
    run makes phase4 "${eagle[@]}" DRAFT=no/such
    [ "$status" -ne 0 ] && [[ $output == *"hf download no/such"* ]]
    # a drafter that no method uses, or one of another family than that of the method
    for names in '' lookup; do
        run makes phase4 "${eagle[@]}" METHODS="$names" DRAFT=AngelSlim/Qwen3-4B_eagle3
        [ "$status" -ne 0 ]
        [[ $output == *"(64): no method uses it: expected METHODS= with one of eagle3 dflash"* ]]
    done
    for goal in phase4 decoding phase5; do
        run makes "$goal" "${eagle[@]}" METHODS='lookup dflash' DRAFT=AngelSlim/Qwen3-4B_eagle3
        [ "$status" -ne 0 ] && [[ $output == *"dflash needs a drafter of family dflash: "* ]] &&
            [[ $output == *"DRAFT=AngelSlim/Qwen3-4B_eagle3 has family eagle3"* ]] ||
            { echo "$goal: $output"; return 1; }
        [ -z "$(find "$T/results" -name '*.plan')" ]
    done
    makes phase4 "${eagle[@]}" DRAFT=AngelSlim/Qwen3-4B_eagle3 > "$T/log" 2>&1
    jq -se 'map(select(.kind == "generation" and .paradigm == "autoregressive")) |
        (group_by(.id) | all((map(.token_ids) | unique | length) == 1)) and
        (map([.draft_tokens, .draft_model, .draft_arch]) | unique) ==
            [[0, null, null], ([2, 4, 6, 8][] | [., "Qwen3-4B_eagle3", "eagle3"])]' \
        "$T/results/sdar-4b-quick/steps/generations.ndjson"
    for f in steps/by-method methods; do
        makes -s "$T/results/sdar-4b-quick/$f.ndjson" "${eagle[@]}" \
            DRAFT=AngelSlim/Qwen3-4B_eagle3 > "$T/log" 2>&1
    done
    local of=$T/results/sdar-4b-quick
    jq -se 'any(.by == "method" and .setting == "eagle3 6")' "$of/steps/by-method.ndjson"
    jq -se 'map(.method) | index("eagle3") and index("lookup") and (index("dflash") | not)' \
        "$of/methods.ndjson"
    # as many guesses of a drafter of another family are not that method
    jq -c 'select(.kind == "metric" or .kind == "times") | if .draft_arch then
        .draft_arch = "dflash" else . end' "$of/steps/metrics.ndjson" |
        "$BIN/compare" -q --methods "$of/methods.ndjson" --cost e2e_ns - |
        jq -se 'any(.setting == "lookup 5") and
            all(.setting // "" | test("eagle3") | not)'
}
