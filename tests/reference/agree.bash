# agree.bash - compares the float64 reference and the tools, for a checkpoint $T/model and the
# prompts $T/prompts. Tests load this file. shellcheck shell=bash

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    . tests/reference/build.sh
}

setup() {
    set -o pipefail
    BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
    make_prompts
}

CLEAR=0.002 # a clear lead of the best logit; single precision errs by a hundredth of it

# make_prompts: writes four prompts of unequal length, with ids below 256
make_prompts() {
    cat > "$T/prompts" << 'END'
{"id":"p1","prompt_ids":[72]}
{"id":"p2","prompt_ids":[84,104,101,32,102,111,120]}
{"id":"p3","prompt_ids":[255,0,17,34,51,68,85,102,119,136,153,170,187,204]}
{"id":"p4","prompt_ids":[9,8,7,6,5,4,3,2,1,250,240,230,220,210,200,190,180,170,160,150,140]}
END
}

# ask OP FIELDS: prints the id and the reference's answer for each prompt, one a line. The answer is
# kept for all tests of a file that ask the same of a model made with the same options.
ask() {
    local said
    said=$BATS_FILE_TMPDIR/$({ echo "$*"; cat "$T/made" "$T/prompts"; } | sha256sum | head -c 64)
    if ! [ -e "$said" ]; then
        jq -c --arg op "$1" --arg m "$T/model" --argjson more "$2" \
            '$more + {op: $op, model: $m, id, ids: .prompt_ids}' "$T/prompts" |
            "$REFERENCE" > "$T/said" || return 1
        mv "$T/said" "$said"
    fi
    cat "$said"
}

# make_model [option...]: makes the checkpoint $T/model
make_model() {
    rm -rf "$T/model"
    "$MAKE_CHECKPOINT" "$@" "$T/model"
    echo "$*" > "$T/made"
}

# greedy [option...]: tests that gen-llama's ids are the reference's up to its first unclear step
greedy() {
    ask generate '{"max_new":20}' > "$T/expected"
    "$BIN/gen-llama" -m "$T/model" --max-new 20 --ignore-eos --no-meta "$@" \
        "$T/prompts" > "$T/got"
    jq -n -e --slurpfile e "$T/expected" --slurpfile g "$T/got" --argjson clear "$CLEAR" '
        [$g[] | {(.id): .token_ids}] | add as $got |
        [$e[] | ([.gaps[] < $clear] | index(true) // length) as $n |
                {n: $n, same: (.ids[:$n] == $got[.id][:$n] and ($got[.id] | length) == 20)}] |
        all(.same) and (map(.n) | add) > 40'
}

# diffusion GEN BLOCK STEPS CFG [option...]: tests that gen-llada's ids are the reference's if all
# steps are clear
diffusion() {
    local gen=$1 block=$2 steps=$3 cfg=$4 ends=false unsure=false
    shift 4
    [[ " $* " != *" --logits-eos-inf "* ]] || ends=true
    [[ " $* " != *" --confidence-eos-eot-inf "* ]] || unsure=true
    ask diffuse "{\"gen_length\": $gen, \"block_length\": $block, \"steps\": $steps, $(:
        )\"cfg_scale\": $cfg, \"mask\": 258, \"eot\": 259, \"logits_eos_inf\": $ends, $(:
        )\"confidence_eos_eot_inf\": $unsure}" > "$T/expected"
    "$BIN/gen-llada" -m "$T/model" --gen-length "$gen" --block-length "$block" --steps "$steps" \
        --cfg-scale "$cfg" --no-meta "$@" "$T/prompts" > "$T/got"
    jq -n -e --slurpfile e "$T/expected" --slurpfile g "$T/got" --argjson clear "$CLEAR" '
        [$g[] | {(.id): .token_ids}] | add as $got |
        [$e[] | select(.min_logit_gap > $clear and
                       (.min_confidence_gap == null or .min_confidence_gap > 2e-5)) |
                .ids == $got[.id]] | all and length >= 2'
}

# likelihood TOLERANCE [option...]: tests that score-ppl --mode nll differs from the reference by at
# most this share
likelihood() {
    local tolerance=$1
    shift
    jq -c 'select(.prompt_ids | length > 1)' "$T/prompts" > "$T/texts"
    mv "$T/texts" "$T/prompts"
    ask score '{}' > "$T/expected"
    "$BIN/score-ppl" -m "$T/model" --mode nll --no-meta "$@" "$T/prompts" > "$T/got"
    jq -n -e --slurpfile e "$T/expected" --slurpfile g "$T/got" --argjson t "$tolerance" '
        [$g[] | select(.metric == "nll_nats" and .id) | {(.id): .}] | add as $got |
        [$e[] | $got[.id] as $q | $q.scored_tokens == .scored_tokens and
                ($q.value - .nll | fabs) < $t * .nll] | all and length == 3'
}

# on_cuda COMMAND...: runs COMMAND with --device cuda on the emulated device
on_cuda() {
    CROSSOVER_CUDA="${TESTBIN:-build/tests}/libcrossover-cuda.so" "$@" --device cuda
}

# on_levels TOOL COMMAND...: runs COMMAND with --isa, for each level that this processor has
on_levels() {
    local isa ran=0 tool=$1
    shift
    for isa in amx avx512bf16 avx512 avxvnni avx2 i8mm dotprod neon portable; do
        "$BIN/$tool" -m "$T/model" --isa $isa --limit 1 --no-meta "$T/prompts" \
            > "$T/probe" 2> "$T/err" || [ $? -eq 69 ] || return 1
        [ -s "$T/probe" ] || continue # this processor does not have the level
        "$@" --isa $isa
        ran=$((ran + 1))
    done
    [ $ran -gt 0 ]
}

# sampled SAMPLER FIELDS [option...]: tests that gen-llada's ids are those of a family's published
# sampler in the reference, with these fields, if all steps are clear. A mask id that the network
# itself writes competes again in gen-llada, as in LLaDA's code; in the code of other families it
# stays or ends the run.
sampled() {
    ask sample "{\"sampler\": \"$1\", \"mask\": 258, ${2#\{}" > "$T/expected"
    shift 2
    "$BIN/gen-llada" -q -m "$T/model" --no-meta "$@" "$T/prompts" > "$T/got"
    jq -n -e --slurpfile e "$T/expected" --slurpfile g "$T/got" --argjson clear "$CLEAR" '
        [$g[] | {(.id): .token_ids}] | add as $got |
        [$e[] | select(.min_logit_gap > $clear and (.ids | index(258)) == null and
                       (.min_confidence_gap == null or .min_confidence_gap > 2e-5) and
                       (.min_router_gap == null or .min_router_gap > 2e-5)) |
                .ids == $got[.id]] | all and length >= 2'
}

# refuses WORDS FILTER: tests that config.json, changed by the jq filter, is refused with these
# words
refuses() {
    cp "$T/model/config.json" "$T/config"
    jq "$2" "$T/config" > "$T/model/config.json"
    run "$BIN/gen-llada" -m "$T/model" --no-meta "$T/prompts"
    cp "$T/config" "$T/model/config.json"
    [ "$status" -eq 65 ] && [[ $output == *"$1"* ]]
}
