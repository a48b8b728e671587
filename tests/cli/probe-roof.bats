#!/usr/bin/env bats
# probe-roof: ceilings as records, to compare with the work of generators.
load conforms

setup() {
    set -o pipefail
    ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    BIN=${BIN:-$ROOT/build/bin}
    T=$BATS_TEST_TMPDIR
    cd "$T" || exit 1
}

# shares DEVICE: runs both generators on the device and compares them with its ceilings
shares() {
    printf '{"id":"a","prompt_ids":[1,2,3,4,5]}\n{"id":"b","prompt_ids":[7,8,9]}\n' > p.ndjson
    "$BIN/probe-roof" "$@" -o ceilings.ndjson
    conforms ceilings.ndjson
    "$BIN/gen-llama" -m synth:tiny-llama "$@" --max-new 4 --ignore-eos p.ndjson -o llama.ndjson
    "$BIN/gen-llada" -m synth:tiny-llada "$@" --gen-length 8 --block-length 4 --steps 4 --batch 2 \
        p.ndjson -o llada.ndjson
    conforms llama.ndjson
    conforms llada.ndjson
    "$BIN/measure" llama.ndjson llada.ndjson ceilings.ndjson -o metrics.ndjson
    conforms metrics.ndjson
    # each share is its rate / the ceiling, for LLaMA with a part for the prompts
    jq -se '(map(select(.ceiling))[0]) as $roof
        | map(select(.kind == "metric")) | map(select(.metric == "mbu_ratio")) as $mbu
        | map(select(.metric == "model_bytes_per_s")) as $rate
        | ($mbu | length) == 2 and ([range(2)] | all(. as $i
            | ($mbu[$i].value * $roof.bytes_per_s / $rate[$i].value - 1 | fabs) < 1e-9))' \
        ceilings.ndjson metrics.ndjson
    jq -se 'map(select(.metric == "decode_mbu_ratio") | {(.arch): (.value != null)}) | add
        == {llada: false, llama: true}' metrics.ndjson
    jq -sr -f "$ROOT/pipelines/phase/roof.jq" metrics.ndjson > lines
    [ "$(wc -l < lines)" -eq 2 ]
    number='[0-9.e-]+ %'
    grep -qE "^synth:tiny-llada: $number of memory bandwidth, $number of peak [a-z0-9]+\$" lines
    grep -qE "^synth:tiny-llama: .* prompts $number of peak, then $number of bandwidth\$" lines
}

@test "each unit of the host's processor is measured at the requested thread count" {
    shares --device cpu --threads 1
    jq -se 'map(select(.ceiling)) | length >= 1 and .[0].unit == "f32" and all(.threads == 1 and
        .device_name == null and .flops_per_s > 1e8 and .bytes_per_s > 1e8 and
        (has("effective_cores") | not))' ceilings.ndjson
    "$BIN/probe-roof" --threads 2 > two 2> said
    jq -se 'map(select(.ceiling).effective_cores) | length >= 1 and all(. > 0.05 and . < 8)' two
    low=$(jq -s 'map(select(.ceiling))[0].effective_cores < 1.2' two)
    warned=$(grep -c "W114: 2 threads compute .* ceilings are too low" said || true)
    [ "$low $warned" = "true 1" ] || [ "$low $warned" = "false 0" ]
    # medians with their spread; no ceiling is below that of fp32; a shared ceiling says so
    jq -se 'map(select(.ceiling)) | .[0].flops_per_s as $f32 | all(.flops_spread_ratio >= 0 and
        .bytes_spread_ratio >= 0 and .flops_per_s >= $f32 and
        (has("remark") | not) == (.unit == "f32" or .flops_per_s > $f32))' ceilings.ndjson
    jq -se '[.[] | select(.kind == "generation") | .threads] | unique == [1]' llama.ndjson
}

@test "a device is measured by its own copies and products" {
    export CROSSOVER_CUDA=${TESTBIN:-$BIN/../tests}/libcrossover-cuda.so
    [ -e "$CROSSOVER_CUDA" ] || skip "no C++ compiler, no emulated device"
    shares --device cuda
    jq -se 'map(select(.ceiling)) | map(.unit) == ["f32", "bf16", "int8"] and
        all(.device == "cuda" and .device_name == "emulated device (host)" and .isa == "sm_90" and
            (has("threads") | not) and .flops_per_s > 0 and .bytes_per_s > 0 and
            .flops_spread_ratio == null and (.flops_spread_ratio_reason | length) > 0)' \
        ceilings.ndjson
    # the record names the library of the products, as the generators do
    [ "$(jq -s 'map(select(.ceiling or .kind == "generation") | .library) | unique | length' \
        ceilings.ndjson llama.ndjson)" -eq 1 ]
}

@test "without a device one line and exit code 69 and no file; operands are refused" {
    CROSSOVER_CUDA=$PWD/none.so run "$BIN/probe-roof" --device cuda -o x.ndjson
    [ "$status" -eq 69 ]
    [ "${#lines[@]}" -eq 1 ]
    [ ! -e x.ndjson ]
    run "$BIN/probe-roof" x.ndjson
    [ "$status" -eq 64 ]
}

# The measured peak depends on the machine code of its loop: with one more move in each round, of a
# register or to memory, the peak is too low.
@test "the loops of peaks multiply and add, and do nothing else" {
    object=${TESTBIN:-$ROOT/build/tests}/../obj/kernels/peak-x86.o
    command -v objdump > /dev/null || skip "no objdump"
    [ -e "$object" ] || skip "another processor"
    [ "$(objdump -t "$object" | grep -c '__[atu]b\?san')" -eq 0 ] || skip "with a sanitizer"
    objdump -d --no-show-raw-insn "$object" > code
    # for each function that ends with a jump back: the instructions between target and jump
    awk '/^[0-9a-f]+ <.*>:$/ { name = $2; n = 0; delete at; next }
        /^ +[0-9a-f]+:/ { sub(":", "", $1); at[$1] = ++n; word[n] = $2 }
        $2 ~ /^j/ && ($3 in at) && name ~ /_(avx|vnni)/ {
            products = moves = 0
            for (i = at[$3]; i < n; i++) {
                products += word[i] ~ /^(vfmadd|vdpbf16|vpdpbusd|vpmadd|\{vex\})/
                moves += word[i] ~ /mov/
            }
            if (products) print name, products, moves }' code | sort > loops
    cat loops
    [ "$(wc -l < loops)" -ge 6 ]
    [ "$(awk '$3 > 0 || $2 < 12' loops)" = "" ]
}
