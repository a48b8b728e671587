#!/usr/bin/env bats
# Tests that the embedded models are worth measuring. Both contestants answer sums that they never
# saw. The LLaDA-type answers and writes better with more steps, by a judge that is neither
# contestant. Some points of the stored run of the demo are run again by the rules of make, and
# everything except times must be the same.

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.."
    export BIN="${BIN:-build/bin}" D="$BATS_FILE_TMPDIR/tree/results/here/demo"
    tests/house/tree "$BATS_FILE_TMPDIR/tree" "$BIN"
    replica results/here/demo/claims.ndjson || { tail -n 20 "$BATS_FILE_TMPDIR/log"; return 1; }
}

setup() { cd "$BATS_TEST_DIRNAME/../.."; }

replica() { # GOAL: of the points that are run again
    env -i PATH="$PATH" make -C "$BATS_FILE_TMPDIR/tree" --no-print-directory CUDA=0 CPU_LEVELS= \
        CFLAGS=-O0 HARDEN= FP=here PROFILE=demo STEPS=2,4,16 METHODS= LTM= \
        PROMPT_FITS="--fits $(echo data/models/{llada,llama,ltm}-demo | tr ' ' ,) --room 64" \
        LAUNCHES=1 WARMUP=0 WARMUP_MOST=0 AGAIN=0 AA_LAUNCHES=1 AA_ROUNDS=1 SCALE_LAUNCHES=1 \
        SCALE_PROMPTS=1 "$1" > "$BATS_FILE_TMPDIR/log" 2>&1
}

@test "a new run of the demo gives the answers of the stored run id by id, and its quality" {
    # few launches and few points: neither times nor claims about more points are compared
    jq -c 'select(.name == "answers" or .name == "quality")' data/demo/stored.ndjson > "$D/points"
    run "$BIN/compare" --no-meta --stored "$D/points" "$D/claims.ndjson" -o "$D/replicate.ndjson"
    echo "$output"
    [ "$status" -eq 69 ]
    jq -se 'map(select(.pass == false)) == []' "$D/replicate.ndjson"
    # on the same kind of machine every id is compared, on another kind quality by its intervals
    jq -se 'map(select(.pass)) | length >= 3' "$D/replicate.ndjson"
}

# summary SCORES METRIC ARCH STEPS FIELD
summary() {
    jq -r "select(.summary and .metric == \"$2\" and .arch == \"$3\" and (.steps // 0) == $4)
           | .$5" "$D/steps/$1.ndjson"
}

# above A B: tests A > B as numbers
above() {
    echo "$1 > $2"
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > b) }'
}

@test "both models solve the lists, one token at a time" {
    "$BIN/prep-prompts" -q --per-task 15 --seed 1 data/corpus/test-lists.ndjson.gz -o "$D/lists"
    { "$BIN/gen-llama" -q -m data/models/llama-demo --max-new 32 --batch 15 "$D/lists"
      "$BIN/gen-llada" -q -m data/models/llada-demo --gen-length 32 --steps 32 --batch 15 \
          "$D/lists"; } | "$BIN/score-exact" -q > "$D/listed"
    for arch in llama llada; do
        for task in copy reverse replace; do
            jq -se "map(select(.summary and .arch == \"$arch\" and
                .metric == \"accuracy_$task\").value) | length == 1 and .[0] >= 0.8" "$D/listed"
        done
    done
}

@test "the LLaMA-type model answers most held-out sums" {
    above "$(summary exact accuracy llama 0 lo)" 0.7
}

@test "the LLaDA-type model answers most held-out sums; a guess is right once in a hundred" {
    above "$(summary exact accuracy llada 16 lo)" 0.5
}

@test "the accuracy of the LLaDA-type model rises with steps, beyond the intervals" {
    above "$(summary exact accuracy llada 16 lo)" "$(summary exact accuracy llada 2 hi)"
    above "$(summary exact accuracy llada 16 lo)" "$(summary exact accuracy llada 4 hi)"
}

@test "the judge's perplexity of the LLaDA-type model falls with steps, beyond the intervals" {
    above "$(summary judge judge_ppl llada 2 lo)" "$(summary judge judge_ppl llada 4 hi)"
    above "$(summary judge judge_ppl llada 4 lo)" "$(summary judge judge_ppl llada 16 hi)"
}

@test "the lower perplexity does not come from repetition" {
    above "$(summary judge entropy_nats llada 16 value)" \
        "$(awk -v h="$(summary judge entropy_nats llama 0 value)" 'BEGIN { print 0.9 * h }')"
}

# rows MODEL: prints the rows of all trainings of its weights
rows() { jq -s 'map(.rows) | add' "data/models/$1/training.ndjson"; }

@test "README and the loss records agree on the training rows" {
    [ "$(rows llama-demo)" = "$(rows llada-demo)" ]
    million=$(awk -v n="$(rows llama-demo)" 'BEGIN { printf "%.1f million", n / 1e6 }')
    tr '\n' ' ' < README.md | grep -F "Both were trained on $million rows of the same text"
    for m in llama llada judge; do
        own=$(jq -s "map(select(.model == \"$m-demo\").rows) | add" \
            "data/models/$m-demo/training.ndjson")
        for f in "data/models/$m-demo"/loss*.ndjson; do
            jq -s 'map(select(.kind == "train").tokens) | max' "$f"
        done | jq -s -e --argjson own "$own" 'add == $own'
    done
}

@test "the latent model answers most held-out sums; its bound is near that of the LLaMA-type" {
    jq -c 'select(.answer)' "$D/prompts.ndjson" | sed -n 1,30p > "$D/sums"
    "$BIN/gen-ltm" -q -m data/models/ltm-demo --max-new 64 --vi-steps 0,2 --batch 15 "$D/sums" |
        "$BIN/score-exact" -q > "$D/latent"
    jq -se 'map(select(.summary and .metric == "accuracy").value) | length == 2 and min > 0.8' \
        "$D/latent"
    jq -c 'select(.task == "story") | {id, text: (.text + .reference)}' "$D/prompts.ndjson" |
        sed -n 1,20p > "$D/texts"
    { "$BIN/score-ppl" -q --mode nll -m data/models/llama-demo "$D/texts"
      "$BIN/score-ppl" -q --mode elbo -m data/models/ltm-demo --vi-steps 0 --samples 8 "$D/texts"
    } | jq -se 'map(select(.summary and (.metric | endswith("bits_per_byte"))).value) |
        length == 2 and .[1] > 0.8 * .[0] and .[1] < 1.2 * .[0]' # LLaMA has read its text longer
    # a row of the latent model's training passed through the model five times
    jq -se 'map(select(.kind == "train").tokens) | max == 420 * 1024' \
        data/models/ltm-demo/loss.ndjson
    jq -se 'map(select(.arch == "ltm").rows) == [420 * 1024 * 5]' \
        data/models/ltm-demo/training.ndjson
}

@test "the models stay under 30 MB together, the latent model under 9 MB" {
    bytes=$(cat data/models/*/* | wc -c)
    echo "$bytes bytes"
    [ "$bytes" -lt 30000000 ]
    [ "$(cat data/models/ltm-demo/* | wc -c)" -lt 9000000 ]
}
