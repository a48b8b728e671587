#!/usr/bin/env bats
# Tests pack-model: it writes a quantized checkpoint to a new folder.
load conforms

setup() {
    set -o pipefail
    BIN=$(realpath "${BIN:-build/bin}")
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
    M=data/models/llama-demo
    WHOLE="config.json model.safetensors origin.json tokenizer.json training.ndjson"
}

pack() { "$BIN/pack-model" --no-meta "$@"; }

# ids FLAGS...: prints the ids of four answers
ids() {
    "$BIN/prep-prompts" -q --per-task 2 --seed 1 data/corpus/valid.ndjson.gz |
        "$BIN/gen-llama" -q --no-meta --max-new 24 "$@" | jq -c '[.token_ids, .quant]'
}

# refused CODE WORDS COMMAND...
refused() {
    local code=$1 words=$2
    shift 2
    run "$@"
    echo "$output"
    [ "$status" -eq "$code" ] && [[ "$output" == *"$words"* ]]
}

@test "a packed model answers as its source with --quant" {
    for q in int8 nf4 int8-vector nf4-f32 fp4 q4; do
        pack -q --quant $q -m $M --out "$T/$q" > "$T/$q.ndjson"
        ids -m $M --quant $q > "$T/a"
        ids -m "$T/$q" > "$T/b"
        [ "$(wc -l < "$T/a")" -eq 4 ]
        cmp "$T/a" "$T/b"
    done
    cmp -s <(ids -m $M) "$T/a" && false
    true
}

@test "the packed folder has config, weights and tokenizer, and nothing else" {
    pack -q --quant nf4 -m $M --out "$T/new" > /dev/null
    [ "$(ls -A "$T/new" | paste -sd ' ')" = "$WHOLE" ]
    [ "$(ls -A "$T")" = new ]
    cmp $M/tokenizer.json "$T/new/tokenizer.json"
    jq -e '.quantization.method == "nf4"' "$T/new/config.json"
    [ "$(jq -c 'del(.quantization)' "$T/new/config.json")" = "$(jq -c . $M/config.json)" ]
}

@test "packing gives the same bytes on any number of threads" {
    pack -q --quant nf4 -m $M --threads 1 --out "$T/one" > "$T/one.ndjson"
    pack -q --quant nf4 -m $M --threads 3 --out "$T/three" > "$T/three.ndjson"
    cmp "$T/one/model.safetensors" "$T/three/model.safetensors"
    cmp "$T/one.ndjson" "$T/three.ndjson"
}

@test "records state sizes and errors of each kind of matrix" {
    "$BIN/pack-model" -q --quant nf4 -m $M --out "$T/new" -o "$T/pack"
    conforms "$T/pack"
    packed() { jq -r "select(.kind == \"pack\" and .role == \"$1\") | $2" "$T/pack"; }
    [ "$(packed up .dtype) $(packed head .dtype) $(packed embed .dtype)" = "nf4 int8 bf16" ]
    packed up '.error_rms_ratio' | awk '{ exit !($1 > 0.085 && $1 < 0.1) }'
    packed head '.error_rms_ratio' | awk '{ exit !($1 > 0.003 && $1 < 0.01) }'
    [ "$(packed norm '.error_rms_ratio')" = null ]
    header=$(od -An -t u8 -N 8 "$T/new/model.safetensors" | tr -d ' ')
    bytes=$(stat -c %s "$T/new/model.safetensors")
    [ "$(packed all .packed_bytes)" -eq $((bytes - 8 - header)) ]
    [ "$(packed all .parameters)" = "$(jq -s 'map(select(.kind == "pack" and .role != "all")
        | .parameters) | add' "$T/pack")" ]
}

@test "packing never works in place and never over files" {
    cp -r $M "$T/model"
    refused 73 "that of the model itself" pack --quant int8 -m "$T/model" --out "$T/model"
    mkdir "$T/full" && touch "$T/full/x"
    refused 73 "one with files" pack --quant int8 -m $M --out "$T/full"
    mkdir "$T/empty"
    pack -q --quant int8 -m $M --out "$T/empty/" > /dev/null
    [ -s "$T/empty/model.safetensors" ]
    refused 73 "one with files" pack --quant int8 -m $M --out "$T/empty"
    diff -r $M "$T/model"
}

@test "a model that cannot be packed is refused with a reason" {
    pack -q --quant int8 -m $M --out "$T/int8" > /dev/null
    refused 65 "packed already (int8)" pack --quant nf4 -m "$T/int8" --out "$T/new"
    refused 65 "drawn" pack --quant nf4 -m synth:tiny-llama --out "$T/new"
    refused 64 "needed" pack --quant nf4 -m $M
    refused 64 "--quant" pack --quant fp5 -m $M --out "$T/new"
    [ ! -e "$T/new" ] && [ "$(ls -A "$T")" = int8 ]
}

# texts SEED: worded sums and stories with what follows
texts() { "$BIN/prep-prompts" -q --per-task 12 --seed "$1" data/corpus/valid.ndjson.gz; }

# nats DIR: prints id, nats and tokens of the reference of each text of $T/texts
nats() {
    "$BIN/score-ppl" -q --no-meta --mode nll --target reference -m "$1" "$T/texts" |
        jq -c 'select(.metric == "nll_nats" and .id) | [.id, .value, .scored_tokens]'
}

# apart DIR: prints the mean distance in nats a token from the unquantized model ($T/whole)
apart() {
    nats "$1" | jq -s --slurpfile whole "$T/whole" '($whole | map({key: .[0], value: .[1]}) |
        from_entries) as $of | (map(.[1] - $of[.[0]] | fabs) | add) / (map(.[2]) | add)'
}

# bytes FILE: prints the packed bytes of all tensors
bytes() { jq -r 'select(.kind == "pack" and .role == "all") | .packed_bytes' "$1"; }

less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }

@test "--budget keeps to its bytes, nearer to the model than nf4 and no further than int8" {
    texts 1 > "$T/calibrate"
    texts 2 > "$T/texts"
    for q in int8 nf4; do
        pack -q --quant $q -m $M --out "$T/$q" > "$T/$q.ndjson"
    done
    small=$(bytes "$T/nf4.ndjson") large=$(bytes "$T/int8.ndjson")
    for budget in $(((small + large) / 2)) "$large"; do
        "$BIN/pack-model" -q --budget "$budget" --calibrate "$T/calibrate" -m $M \
            --out "$T/m$budget" -o "$T/mix"
        conforms "$T/mix"
        got=$(bytes "$T/mix")
        header=$(od -An -t u8 -N 8 "$T/m$budget/model.safetensors" | tr -d ' ')
        [ "$got" -eq $(($(stat -c %s "$T/m$budget/model.safetensors") - 8 - header)) ]
        # no quantized part would fit in the next larger format
        jq -es --argjson budget "$budget" --argjson got "$got" '
            map(select(.kind == "sensitivity")) | length == 9 and $got <= $budget and
            all(.dtype == "none" or $budget - $got <
                (if .dtype == "int8" then .source_bytes - .packed_bytes
                 else .parameters * 0.48 end))' "$T/mix"
        jq -es 'map(select(.kind == "sensitivity")) |
            all(.loss_unit == "nats_per_token" and .int8_loss >= 0)' "$T/mix"
    done
    nats $M > "$T/whole"
    nf4=$(apart "$T/nf4") int8=$(apart "$T/int8") mixed=$(apart "$T/m$(((small + large) / 2))")
    of_int8_size=$(apart "$T/m$large")
    echo "nats from the whole model: nf4 $nf4, mixed $mixed, int8 $int8, its size $of_int8_size"
    less "$mixed" "$nf4"
    less "$of_int8_size" "$nf4"
    less "$of_int8_size" "$(awk -v x="$int8" 'BEGIN { print x + 1e-4 }')"
    # bits move from one part to another only if texts that did not choose the move confirm it
    jq -es 'map(select(.kind == "pack" and .role == "all"))[0] | .trade_gain_lo <= 0 and
        .trade_gain < .trade_gain_hi' "$T/mix"
    jq -es 'map(select(.kind == "sensitivity")) | all(.dtype != "nf4")' "$T/mix"
    ids -m "$T/m$large" | jq -e '.[1] == "mixed"' > /dev/null
}

@test "--budget works without texts, as a share, for diffusion, on any number of threads" {
    for t in 1 3; do
        pack -q --budget-share 0.4 -m $M --threads $t --out "$T/b$t" > "$T/b$t.ndjson"
    done
    cmp "$T/b1/model.safetensors" "$T/b3/model.safetensors"
    cmp "$T/b1.ndjson" "$T/b3.ndjson"
    jq -es 'map(select(.kind == "sensitivity")) | all(.loss_unit == "squared_error") and
        (map(.dtype) | unique | length) > 1' "$T/b1.ndjson"
    texts 1 > "$T/calibrate"
    pack -q --budget-share 0.4 --calibrate "$T/calibrate" --limit 4 --samples 2 \
        -m data/models/llada-demo --out "$T/canvas" > "$T/canvas.ndjson"
    jq -es 'any(.kind == "sensitivity" and .nf4_loss > 0)' "$T/canvas.ndjson"
    jq -e '.quantization | .method == "mixed" and (.layers | length) == 4' "$T/canvas/config.json"
    refused 64 "are too few" pack --budget 1M -m $M --out "$T/new"
    refused 64 "only one of --quant, --budget" pack --budget 3M --quant int8 -m $M --out "$T/new"
    refused 64 "needs --budget" pack --quant int8 --calibrate "$T/texts" -m $M --out "$T/new"
    refused 66 "nowhere" pack --budget 3M --calibrate "$T/nowhere" -m $M --out "$T/new"
    refused 65 "packed already (mixed)" pack --budget 3M -m "$T/b1" --out "$T/new"
    echo '{"id":"p","text":"Ann had"}' > "$T/p"
    refused 64 "packed as mixed" "$BIN/gen-llama" -m "$T/b1" --quant nf4 "$T/p"
    [ ! -e "$T/new" ]
}

@test "a packed model refuses --quant with another format" {
    pack -q --quant nf4 -m $M --out "$T/nf4" > /dev/null
    echo '{"id":"p","text":"Ann had"}' > "$T/p"
    "$BIN/gen-llama" -q --no-meta -m "$T/nf4" --quant nf4 --max-new 4 "$T/p" |
        jq -e '.quant == "nf4"'
    refused 64 "packed as nf4" "$BIN/gen-llama" -m "$T/nf4" --quant int8 "$T/p"
}

@test "the embedded models are what their manifests say" {
    for model in data/models/*/; do
        (cd "$model" && sha256sum --quiet --strict -c SHA256SUMS)
    done
}

@test "a disk that is full leaves nothing behind" {
    (ulimit -f 64 && trap '' XFSZ && pack --quant int8 -m $M --out "$T/new" 2> "$T/err") && false
    grep -q 'model.safetensors: cannot write' "$T/err"
    [ ! -e "$T/new" ] && [ ! -e "$T/.new.tmp" ]
}

@test "files of a killed process are overwritten" {
    mkdir "$T/.new.tmp"
    echo cut > "$T/.new.tmp/.model.safetensors.tmp"
    echo cut > "$T/.new.tmp/config.json"
    pack -q --quant int8 -m $M --out "$T/new" > /dev/null
    [ "$(ls -A "$T")" = new ]
    [ "$(ls -A "$T/new" | paste -sd ' ')" = "$WHOLE" ]
}

@test "quantized checkpoints of other programs are refused by name" {
    cp -r $M "$T/model"
    jq '.quantization_config = {"quant_method": "gptq"}' $M/config.json > "$T/model/config.json"
    echo '{"id":"p","text":"Ann had"}' > "$T/p"
    refused 65 "quantization_config" "$BIN/gen-llama" -m "$T/model" "$T/p"
}
