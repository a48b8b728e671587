#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Tests level amx from end to end: the tools run its own code. On a processor without AMX the
# instructions trap (tests/emulate/amx_traps.c). Embedded models give the ids of ref in each format,
# and training gives the losses of the vector code.

setup() {
    set -o pipefail
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
    AMX=${TESTBIN:-build/tests}/amx
    [ -x "$AMX/gen-llama" ] || skip "level amx is not built: make CPU_LEVELS=all"
    grep -qw avx512_bf16 /proc/cpuinfo || skip "the level below amx does not run here"
    # prompts like those of the training, so that answers are clear
    zcat data/corpus/valid.ndjson.gz | jq -c -n \
        '[inputs | select(.task == "sum")][0] | {id, text}' > "$T/prompts"
}

# ids FILE: prints the generated ids, by prompt
ids() {
    jq -c 'select(.kind == "generation") | [.id, .token_ids]' "$1"
}

# same TOOL MODEL FORMAT... -- OPTION...: tests that amx gives the ids of ref in every FORMAT
same() {
    local tool=$1 model=$2 format formats=()
    shift 2
    while [ "$1" != -- ]; do formats+=("$1"); shift; done
    shift
    for format in "${formats[@]}"; do
        for where in "--device ref" "--device cpu --isa amx"; do
            # shellcheck disable=SC2086 # options
            "$AMX/$tool" -m "$model" $format $where --warmup 0 --no-meta "$@" "$T/prompts" \
                > "$T/${where##* }"
        done
        jq -se 'all(.isa == "amx" and .status == "ok") and length == 1' "$T/amx"
        diff <(ids "$T/ref") <(ids "$T/amx")
    done
}

FORMATS=("--dtype bf16" "--dtype auto" "--quant int8" "--quant nf4")

@test "gen-llama gives the same ids on amx as on ref" {
    same gen-llama data/models/llama-demo "${FORMATS[@]}" -- --max-new 6
}

@test "gen-llada gives the same ids on amx as on ref" {
    same gen-llada data/models/llada-demo "${FORMATS[@]}" -- --gen-length 8 --block-length 8 \
        --steps 4
}

@test "train-lm gives the same losses on amx as on vectors" {
    zcat data/corpus/train.ndjson.gz | awk 'NR <= 200' > "$T/corpus"
    for isa in amx avx512bf16; do
        "$AMX/train-lm" --arch llada --layers 2 --width 64 --heads 2 --kv-heads 1 --ffn 96 \
            --vocab 300 --steps 4 --rows 256 --report 1 --precision bf16 --isa $isa --no-meta \
            --out "$T/$isa" "$T/corpus" > "$T/$isa.ndjson"
    done
    jq -ne --slurpfile a "$T/amx.ndjson" --slurpfile b "$T/avx512bf16.ndjson" '
        ($a | map(.loss)) as $a | ($b | map(.loss)) as $b |
        ($a | length) >= 4 and ($a | length) == ($b | length) and
        ([$a, $b] | transpose | all((.[0] - .[1] | fabs) < 1e-3 * .[1])) and $a != $b'
}
