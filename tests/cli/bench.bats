#!/usr/bin/env bats
# bench and write-gguf on the tiny shapes: what they write, and what the peer column rests on.

setup() {
    set -o pipefail
    ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    BENCH=${TESTBIN:-$ROOT/build/tests}/bench
    cd "$BATS_TEST_TMPDIR" || exit 1
}

conforms() { # every record of a file to the schema
    jq -n --slurpfile schema "$ROOT/data/record.schema.json" -f "$ROOT/tests/schema.jq" "$1"
}

@test "ceilings, kernels, models and growth are records under this machine's roofs" {
    "$BENCH/bench" --shapes tiny --dtypes bf16 --repeat 1 --threads 2 -o bench.ndjson
    conforms bench.ndjson
    # f32 at one and at two threads is there on every processor
    jq -se 'map(select(.ceiling and .unit == "f32") | .threads) == [1, 2]' bench.ndjson
    [ "$(jq -s 'map(.kernel // empty) | unique | join(" ")' bench.ndjson)" = \
        '"attention gated head matmul"' ]
    [ "$(jq -s 'map(select(.arch) | .arch) | unique | join(" ")' bench.ndjson)" = '"llada llama"' ]
    # the curve of growth goes through its points as nearly as it says
    jq -se 'map(select(.kind == "growth")) | map(.by) == ["rows", "length", "batch"] and all(
        . as $g | ([range(.x | length) as $i | ($g.fixed_ns + $g.each_ns * $g.x[$i] +
        $g.square_ns * $g.x[$i] * $g.x[$i]) / $g.took_ns[$i] - 1 | fabs] | max) as $worst |
        $g.took_ns[-1] > $g.took_ns[0] and ($worst - $g.deviation_ratio | fabs) < 1e-6)' \
        bench.ndjson
    # what a point says agrees with itself
    jq -se 'map(select(.kind == "roofline" and .took_ns)) | length > 20 and all(
        (.flops_per_s / .bytes_per_s / .flops_per_byte - 1 | fabs) < 1e-9 and
        .took_ns > 0 and .ceiling_fraction > 0)' bench.ndjson
    # operations counted by hand: 64 x 64 with 8 rows
    jq -se 'map(select(.kernel == "matmul" and .rows == 8))[0] |
        (.flops_per_s * .took_ns / 1e9 - 2 * 64 * 64 * 8 | fabs) < 1e-6' bench.ndjson
}

@test "a wrong list is refused with the words that are known" {
    run "$BENCH/bench" --dtypes bf16,int9
    [ "$status" -eq 64 ]
    [[ $output == *'--dtypes: expected a list of f32,bf16,int8,nf4, got "int9"'* ]]
}

@test "the peer's figures are read from what its tools print" {
    mkdir bin peer
    cat > bin/llama-bench <<'EOF'
#!/bin/sh
echo "$*" >> calls
echo '[ { "n_prompt": 128, "avg_ts": 12.5, "samples_ts": [ 12.5 ] } ]'
EOF
    cat > bin/llama-batched-bench <<'EOF'
#!/bin/sh
echo 'a line that is no record'
echo '{"pp": 16, "tg": 64, "pl": 8, "speed_pp": 3.0, "speed_tg": 25.0}'
EOF
    cat > bin/llama-diffusion-cli <<'EOF'
#!/bin/sh
echo 'total time: 2000.00ms, time per step: 62.50ms, sampling time per step: 1.00ms'
EOF
    chmod +x bin/*
    touch peer/tiny-llama.bf16.gguf peer/tiny-llada.bf16.gguf
    PATH=$PWD/bin:$PATH "$BENCH/bench" --only models --shapes tiny --dtypes bf16 --repeat 1 \
        --threads 1 --peer peer -o bench.ndjson
    conforms bench.ndjson
    rate_is() {
        jq -se --arg w "$1" "map(select(.work == \$w))[0].peer_tokens_per_s == $2" bench.ndjson
    }
    rate_is 'decode 128' 12.5
    rate_is 'batch 8' 25
    rate_is 'diffuse 128 in 32 steps' 64
    jq -se 'map(select(.peer)) | length > 3 and
        all((.tokens_per_s / .peer_tokens_per_s / .peer_ratio - 1 | fabs) < 1e-9)' bench.ndjson
    grep -q -- '-t 1 -p 0 -n 128 -r 1 -o json' calls
    # without the files there are no figures, and that is no error
    "$BENCH/bench" --only models --shapes tiny --dtypes bf16 --repeat 1 --threads 1 --peer nowhere \
        -o alone.ndjson
    jq -se 'map(select(.peer)) | length == 0' alone.ndjson
}

@test "write-gguf: the header says what the file holds" {
    for t in f32 bf16 q8_0; do
        "$BENCH/write-gguf" --shape tiny-llama --type $t $t.gguf
        [ "$(head -c 4 $t.gguf)" = GGUF ]
        [ "$(od -An -tu4 -j4 -N4 $t.gguf | tr -d ' ')" = 3 ]
        # 9 tensors a layer, embedding, norm, head
        [ "$(od -An -tu8 -j8 -N8 $t.gguf | tr -d ' ')" = 21 ]
        grep -qa 'blk.1.ffn_down.weight' $t.gguf
    done
    # the weights alone: 2 layers, the embedding and a head of their own
    values=$((2 * (64*64*2 + 64*32*2 + 64*160*3) + 2*512*64)) norms=$((5 * 64))
    size() { stat -c %s "$1.gguf"; }
    [ $(($(size f32) - $(size bf16))) = $((2 * values)) ]
    [ $(((32 * ($(size f32) - $(size q8_0))))) = $((values * (4 * 32 - 34))) ]
    [ "$(size bf16)" -gt $((2 * values + 4 * norms)) ]
    "$BENCH/write-gguf" --shape tiny-llama --type bf16 again.gguf
    cmp bf16.gguf again.gguf
}

@test "write-gguf: a type that the rows do not fit is refused, and no file is left" {
    run "$BENCH/write-gguf" --shape tiny-llama --type q4_0 x.gguf
    [ "$status" -eq 64 ]
    [[ $output == *'rows of 64 values, expected a multiple of 256'* ]]
    [ -z "$(ls)" ]
}
