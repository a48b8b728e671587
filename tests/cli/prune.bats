#!/usr/bin/env bats
# pack-model --prune-...: a smaller network of the same family in a new folder, with a proof of its
# source; it can be trained further.
load conforms

setup() {
    bats_require_minimum_version 1.5.0
    set -o pipefail
    BIN=$(realpath "${BIN:-build/bin}")
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
    LLAMA=data/models/llama-demo
    LLADA=data/models/llada-demo
    TEXTS=data/corpus/train.ndjson.gz
}

pack() { "$BIN/pack-model" --no-meta "$@"; }

# refused CODE WORDS COMMAND...
refused() {
    local code=$1 words=$2
    shift 2
    run "$@"
    echo "$output"
    [ "$status" -eq "$code" ] && [[ "$output" == *"$words"* ]]
}

hashes() { (cd "$1" && find . -type f | sort | xargs sha256sum); }

@test "every tool reads a pruned model of both families, and its record says which parts remain" {
    for m in $LLAMA $LLADA; do
        hashes $m > "$T/before"
        "$BIN/pack-model" -q --prune-heads 0.3 --prune-ffn 0.2 --calibrate $TEXTS --limit 8 \
            -m $m --out "$T/small-${m##*/}" -o "$T/record"
        conforms "$T/record"
        jq -c 'select(.kind == "prune") | [.model, .source_model, .score, .heads, .source_heads,
            .kv_heads, .source_kv_heads, .ffn, .source_ffn, .parameters, .source_parameters]' \
            "$T/record" > "$T/says"
        left=$((3737856 - 4 * (2 * 64 * 256 + 3 * 128 * 256)))
        jq -e --arg m "${m##*/}" --argjson left $left \
            '. == ["small-\($m)", $m, "activation", 6, 8, 2, 2, 704, 832, $left, 3737856]' "$T/says"
        [ "$(jq -c 'select(.kind == "prune").source_files[].sha256' "$T/record" | wc -l)" -ge 3 ]
        hashes $m | cmp - "$T/before"
    done
    echo '{"id":"p","text":"Ann had","reference":" a dog."}' > "$T/p"
    "$BIN/gen-llama" -q -m "$T/small-llama-demo" --max-new 4 "$T/p" > "$T/llama"
    "$BIN/gen-llada" -q -m "$T/small-llada-demo" --gen-length 8 --steps 4 "$T/p" \
        > "$T/llada"
    "$BIN/score-ppl" -q --mode nll -m "$T/small-llama-demo" "$T/p" > "$T/nll"
    [ "$(jq -r 'select(.kind == "generation").status' "$T/llama" "$T/llada" | xargs)" = "ok ok" ]
    jq -e '.head_dim == 32 and .n_heads == 6 and .mlp_hidden_size == 704' \
        "$T/small-llada-demo/config.json"
}

@test "a pruning by the weights writes the golden record" {
    pack -q --prune-ffn 0.5 --prune-score gate -m $LLAMA --out "$T/half" > "$T/record"
    cat > "$T/want" << 'END'
{"kind": "prune", "model": "half", "source_model": "llama-demo", "arch": "llama", "score": "gate",
 "quant": "none", "heads_share": 0, "ffn_share": 0.5, "heads": 8, "source_heads": 8, "kv_heads": 2,
 "source_kv_heads": 2, "ffn": 448, "source_ffn": 832, "parameters": 2558208,
 "source_parameters": 3737856, "removed_ratio": 0.315594822272447, "source_bytes": 7475712,
 "packed_bytes": 5116416}
END
    jq -S 'select(.kind == "prune") | del(.source_files, .run, .schema) | .heads_share += 0' \
        "$T/record" | diff - <(jq -S . "$T/want")
    run -0 jq -c 'select(.role == "gate" or .role == "q") | [.quant, .dtype, .tensors, .parameters,
        .source_bytes, .packed_bytes, .error_rms_ratio]' "$T/record"
    [ "${lines[0]}" = '["none","bf16",4,262144,524288,524288,null]' ]
    [ "${lines[1]}" = '["none","bf16",4,458752,1703936,917504,null]' ]
}

@test "share 0 removes nothing; weights and config are the same" {
    pack -q --prune-heads 0 --prune-ffn 0 --prune-score l2 -m $LLADA --out "$T/whole" > "$T/record"
    jq -se 'map(select(.kind == "prune").removed_ratio) == [0]' "$T/record"
    jq -cS . "$T/whole/config.json" | cmp - <(jq -cS . $LLADA/config.json)
    tail -c 7000000 $LLADA/model.safetensors | cmp - <(tail -c 7000000 "$T/whole/model.safetensors")
}

@test "impossible shares, and options that exclude each other, are refused" {
    for share in 1 1.5 -0.1 nan inf 0.99999999999; do
        refused 64 "prune-heads" pack --prune-heads $share --prune-score l2 -m $LLAMA --out "$T/new"
    done
    refused 64 "prune-ffn" pack --prune-ffn 1 --prune-score l2 -m $LLAMA --out "$T/new"
    refused 64 "needs --calibrate" pack --prune-ffn 0.1 -m $LLAMA --out "$T/new"
    refused 64 "--calibrate needs" pack --prune-ffn 0.1 --prune-score l2 \
        --calibrate $TEXTS -m $LLAMA --out "$T/new"
    refused 64 "prune-score" pack --prune-ffn 0.1 --prune-score taylor -m $LLAMA --out "$T/new"
    refused 64 "needed" pack --prune-ffn 0.1 --prune-score l2 -m $LLAMA
    refused 66 "no-such-file" pack --prune-ffn 0.1 --calibrate no-such-file -m $LLAMA \
        --out "$T/new"
    echo '{"id":1}' > "$T/bad"
    refused 65 "bad:1: expected" pack --prune-ffn 0.1 --calibrate "$T/bad" -m $LLAMA \
        --out "$T/new"
    refused 65 "drawn" pack --prune-ffn 0.1 --prune-score l2 -m synth:tiny-llama --out "$T/new"
    pack -q --quant int8 -m $LLAMA --out "$T/int8" > "$T/record"
    refused 65 "packed already (int8)" pack --prune-ffn 0.1 --prune-score l2 -m "$T/int8" \
        --out "$T/new"
    refused 73 "one with files" pack --prune-ffn 0.1 --prune-score l2 -m $LLAMA --out "$T/int8"
    [ ! -e "$T/new" ] && [ ! -e "$T/.new.tmp" ]
}

@test "a share below one head or unit gives a warning" {
    run -0 --separate-stderr pack --prune-heads 0.1 --prune-ffn 0.001 --prune-score l2 -m $LLAMA \
        --out "$T/new"
    [[ $stderr == *"W115"*"of 8 heads in 2 groups 8 stay, of 832 hidden units 832"* ]]
}

@test "one call prunes and quantizes, with the same bytes on any number of threads" {
    for n in 1 3; do
        pack -q --prune-heads 0.5 --prune-ffn 0.3 --calibrate $TEXTS --limit 4 --quant nf4 \
            --threads $n -m $LLAMA --out "$T/$n" > "$T/$n.ndjson"
    done
    cmp "$T/1/model.safetensors" "$T/3/model.safetensors"
    cmp "$T/1/origin.json" "$T/3/origin.json"
    echo '{"id":"p","text":"Ann had"}' |
        "$BIN/gen-llama" -q --no-meta -m "$T/1" --max-new 4 | jq -e '.quant == "nf4"'
    [ "$(jq -r 'select(.kind == "prune").quant' "$T/1.ndjson")" = nf4 ]
}

# verified CODE WORDS: tests the verification of $T/small against $T/source
verified() {
    refused "$1" "$2" "$BIN/pack-model" --verify-source "$T/source" -m "$T/small" -o "$T/v"
}

@test "--verify-source: the source is unchanged and gives the same bytes again" {
    cp -r $LLAMA "$T/source"
    pack -q --prune-heads 0.3 --prune-ffn 0.2 --calibrate $TEXTS --limit 4 -m "$T/source" \
        --out "$T/small" > "$T/record"
    verified 0 "packing it again gives the same bytes"
    conforms "$T/v"
    [ "$(find "$T" -name '.*.tmp')" = "" ]
    # a different source
    cp "$T/source/config.json" "$T/config"
    sed -i 's/embeddings": 512/embeddings": 511/' "$T/source/config.json"
    verified 65 "config.json: SHA-256 expected"
    cp "$T/config" "$T/source/config.json"
    echo '{}' > "$T/source/generation_config.json"
    verified 65 "generation_config.json: SHA-256 expected no such file"
    rm "$T/source/generation_config.json"
    # a different packed model
    size=$(stat -c %s "$T/small/model.safetensors")
    cp "$T/small/model.safetensors" "$T/weights"
    printf '\001' | dd of="$T/small/model.safetensors" bs=1 seek=$((size - 7)) conv=notrunc \
        status=none
    verified 65 "is not what its source gives"
    cp "$T/weights" "$T/small/model.safetensors"
    # a record of removed parts that does not match the model
    jq -c '.pruning.removed[0].unit[0] = 0' "$T/small/origin.json" > "$T/o"
    cp "$T/o" "$T/small/origin.json"
    verified 65 ""
    echo '{"files":3}' > "$T/small/origin.json"
    verified 65 "files: expected a list"
    rm "$T/small/origin.json"
    verified 66 "no such file"
    refused 64 "packs nothing" pack --verify-source "$T/source" -m "$T/small" --quant int8
    [ "$(find "$T" -name '.*.tmp')" = "" ]
}

@test "--verify-source works for a model that was only quantized" {
    cp -r $LLADA "$T/source"
    pack -q --quant int8 -m "$T/source" --out "$T/small" > "$T/record"
    verified 0 "packing it again gives the same bytes"
}

@test "an interrupted pruning leaves no folder; files of a killed process are overwritten" {
    (ulimit -f 64 && trap '' XFSZ && pack --prune-ffn 0.2 --prune-score l2 -m $LLAMA \
        --out "$T/new" 2> "$T/err") && false
    grep -q 'cannot write' "$T/err"
    [ ! -e "$T/new" ] && [ ! -e "$T/.new.tmp" ]
    # the program itself without a shell, and without the descriptors that bats waits for
    "$BIN/pack-model" -q --prune-ffn 0.2 --calibrate $TEXTS -m $LLAMA --out "$T/new" \
        > "$T/record" 3>&- &
    sleep 0.3
    kill -KILL $!
    wait $! || true
    [ ! -e "$T/new" ]
    mkdir -p "$T/.new.tmp"
    echo cut > "$T/.new.tmp/.origin.json.tmp"
    pack -q --prune-ffn 0.2 --prune-score l2 -m $LLAMA --out "$T/new" > "$T/record"
    [ "$(ls -A "$T/new" | paste -sd ' ')" = "config.json model.safetensors origin.json \
tokenizer.json training.ndjson" ]
    [ ! -e "$T/.new.tmp" ]
}

@test "train-lm --from trains a pruned model of either family in its shape" {
    "$BIN/write-corpus" --count 60 --seed 1 -o "$T/corpus"
    for m in $LLAMA $LLADA; do
        pack -q --prune-heads 0.5 --prune-ffn 0.5 --prune-score gate -m $m --out "$T/small" \
            > "$T/record"
        "$BIN/train-lm" -q --no-meta --from "$T/small" --steps 4 --rate 0.0005 --warmup 1 \
            --rows 256 --min-len 16 --max-len 64 --report 1 --out "$T/after" "$T/corpus" > "$T/loss"
        [ "$(jq -r .arch "$T/loss" | uniq)" = "$(jq -r .model_type $m/config.json)" ]
        # trained weights, not random ones: a uniform guess costs ln 1024 = 6.9 nats
        jq -se 'length == 4 and .[0].loss < 5' "$T/loss"
        jq -cS . "$T/after/config.json" | cmp - <(jq -cS . "$T/small/config.json")
        cmp -s "$T/after/model.safetensors" "$T/small/model.safetensors" && false
        tail -n 1 "$T/after/training.ndjson" | jq -e '.model == "after" and .steps == 4'
        [ "$(wc -l < "$T/after/training.ndjson")" -eq \
            $(($(wc -l < $m/training.ndjson) + 1)) ]
        [ ! -e "$T/after/origin.json" ]
        rm -r "$T/small" "$T/after"
    done
    refused 64 "--init and --from" "$BIN/train-lm" --from $LLAMA --init $LLAMA --out "$T/x" \
        "$T/corpus"
}

# Two models, one of two scores and trained on.
pruned_records() {
    jq -cn 'def pruned(m; s; n; r): {schema: "crossover/1", kind: "prune", run: "r", model: m,
            source_model: s, arch: "llama", score: n, removed_ratio: r};
        def effect(m; e; w; v): {schema: "crossover/1", kind: "comparison", run: "r", config: m,
            base_config: "b", point: m, base_point: "b", model: m, by: "model", setting: m,
            effect: e, metric: w, value: v, lo: (v - 0.1), hi: (v + 0.1), base_value: 1,
            config_value: 2, n: 9};
        pruned("x-l2-5"; "x"; "l2"; 0.4), pruned("x-l2-1"; "x"; "l2"; 0.1),
        pruned("x-a"; "x"; "activation"; 0.4), pruned("y-l2"; "y"; "l2"; 0.2),
        pruned("nobody"; "y"; "l2"; 0.3),
        (pruned("x-a-more"; "x"; "activation"; 0.4) | .recovery_steps = 20),
        effect("x-l2-5"; "ratio"; "ppl"; 3), effect("x-l2-1"; "ratio"; "ppl"; 1.5),
        effect("x-a"; "ratio"; "ppl"; 2), effect("y-l2"; "ratio"; "elbo_ppl"; 1.25),
        effect("x-a-more"; "ratio"; "ppl"; 1.2),
        effect("x-l2-5"; "difference"; "accuracy"; -0.5),
        effect("x-a"; "ratio"; "output_tokens_per_s"; 7)'
}

@test "the table of pruned models has bytes, likelihood and accuracy against the whole model" {
    pruned_records > "$T/records"
    jq -c '. + {heads: 1, kv_heads: 1, source_heads: 2, source_kv_heads: 2, ffn: 3, source_ffn: 4,
        packed_bytes: 1e6, source_bytes: 2e6}' "$T/records" > "$T/whole"
    run -0 jq -sr -f pipelines/experiment/pruning/pruning.jq "$T/whole"
    [[ $output == *"x-l2-5: 40 % of the parameters gone (1/1 of 2/2 heads, 3 of 4 units), "* ]]
    [[ $output == *"units), 1 of 2 MB; ppl x 3 [2.9, 3.1]; accuracy -50 [-60, -40] points"* ]]
}
