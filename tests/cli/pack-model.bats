#!/usr/bin/env bats
# pack-model: a checkpoint in, a quantized one in a new folder out.

setup() {
    set -o pipefail
    BIN=$(realpath "${BIN:-build/bin}")
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
    M=data/models/llama-demo
}

pack() { "$BIN/pack-model" --no-meta "$@"; }

# ids FLAGS...: the ids of four answers
ids() {
    "$BIN/prep-prompts" -q --per-task 2 --seed 1 data/corpus/heldout.ndjson.gz |
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
    for q in int8 nf4; do
        pack -q --quant $q -m $M --out "$T/$q" > "$T/$q.ndjson"
        ids -m $M --quant $q > "$T/a"
        ids -m "$T/$q" > "$T/b"
        [ "$(wc -l < "$T/a")" -eq 4 ]
        cmp "$T/a" "$T/b"
    done
    cmp -s <(ids -m $M) "$T/a" && false
    true
}

@test "its folder is whole: config, weights, tokenizer, and nothing else" {
    pack -q --quant nf4 -m $M --out "$T/new" > /dev/null
    [ "$(ls -A "$T/new" | paste -sd ' ')" = "config.json model.safetensors tokenizer.json" ]
    [ "$(ls -A "$T")" = new ]
    cmp $M/tokenizer.json "$T/new/tokenizer.json"
    jq -e '.quantization.method == "nf4"' "$T/new/config.json"
    [ "$(jq -c 'del(.quantization)' "$T/new/config.json")" = "$(jq -c . $M/config.json)" ]
}

@test "the same bytes on any number of threads" {
    pack -q --quant nf4 -m $M --threads 1 --out "$T/one" > "$T/one.ndjson"
    pack -q --quant nf4 -m $M --threads 3 --out "$T/three" > "$T/three.ndjson"
    cmp "$T/one/model.safetensors" "$T/three/model.safetensors"
    cmp "$T/one.ndjson" "$T/three.ndjson"
}

@test "records: sizes and errors of each kind of matrix" {
    "$BIN/pack-model" -q --quant nf4 -m $M --out "$T/new" -o "$T/pack"
    jq -n --slurpfile schema data/record.schema.json -f tests/schema.jq "$T/pack"
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

@test "never in place, never over files" {
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

@test "what cannot be packed" {
    pack -q --quant int8 -m $M --out "$T/int8" > /dev/null
    refused 65 "packed already (int8)" pack --quant nf4 -m "$T/int8" --out "$T/new"
    refused 65 "drawn" pack --quant nf4 -m synth:tiny-llama --out "$T/new"
    refused 64 "needed" pack --quant nf4 -m $M
    refused 64 "--quant" pack --quant fp4 -m $M --out "$T/new"
    [ ! -e "$T/new" ] && [ "$(ls -A "$T")" = int8 ]
}

@test "a packed model and --quant" {
    pack -q --quant nf4 -m $M --out "$T/nf4" > /dev/null
    echo '{"id":"p","text":"Ann had"}' > "$T/p"
    "$BIN/gen-llama" -q --no-meta -m "$T/nf4" --quant nf4 --max-new 4 "$T/p" |
        jq -e '.quant == "nf4"'
    refused 64 "packed as nf4" "$BIN/gen-llama" -m "$T/nf4" --quant int8 "$T/p"
}

@test "a disk that is full leaves nothing behind" {
    (ulimit -f 64 && trap '' XFSZ && pack --quant int8 -m $M --out "$T/new" 2> "$T/err") && false
    grep -q 'model.safetensors: cannot write' "$T/err"
    [ ! -e "$T/new" ] && [ ! -e "$T/.new.tmp" ]
}

@test "what a killed process left is written over" {
    mkdir "$T/.new.tmp"
    echo cut > "$T/.new.tmp/.model.safetensors.tmp"
    echo cut > "$T/.new.tmp/config.json"
    pack -q --quant int8 -m $M --out "$T/new" > /dev/null
    [ "$(ls -A "$T")" = new ]
    [ "$(ls -A "$T/new" | paste -sd ' ')" = "config.json model.safetensors tokenizer.json" ]
}

@test "others' quantized checkpoints are refused by name" {
    cp -r $M "$T/model"
    jq '.quantization_config = {"quant_method": "gptq"}' $M/config.json > "$T/model/config.json"
    echo '{"id":"p","text":"Ann had"}' > "$T/p"
    refused 65 "quantization_config" "$BIN/gen-llama" -m "$T/model" "$T/p"
}
