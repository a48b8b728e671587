#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# The identity of a point: checkpoints of one name are never taken for each other.

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    . tests/reference/build.sh
    F=$BATS_FILE_TMPDIR
    BIN=${BIN:-build/bin}
    mkdir "$F/one" "$F/two"
    "$MAKE_CHECKPOINT" --arch llama --dtype F32 --seed 1 "$F/one/m"
    "$MAKE_CHECKPOINT" --arch llama --dtype F32 --seed 2 "$F/two/m"
    echo '{"id":"p1","prompt_ids":[5,6,7,8],"answer":"1"}' > "$F/prompts"
    for at in one two; do
        for launch in 0 1; do
            "$BIN/gen-llama" -q -m "$F/$at/m" --device ref --max-new 4 --ignore-eos \
                --launch $launch "$F/prompts" -o "$F/$at-$launch"
        done
    done
}

setup() {
    set -o pipefail
    BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    F=$BATS_FILE_TMPDIR T=$BATS_TEST_TMPDIR
}

point() { jq -r 'select(.kind == "generation") | .point' "$1" | sort -u; }

@test "checkpoints in folders of one name are points of their own" {
    [ "$(point "$F/one-0")" = "$(point "$F/one-1")" ]
    [ "$(point "$F/one-0")" != "$(point "$F/two-0")" ]
    "$BIN/measure" -q "$F/one-0" "$F/two-1" > "$T/both"
    jq -se 'map(select(.metric == "e2e_ns")) | length == 2 and all(.launches == 1)' "$T/both"
    "$BIN/score-exact" -q "$F/one-0" "$F/two-1" > "$T/quality"
    jq -se 'map(select(.summary and .metric == "accuracy")) | length == 2' "$T/quality"
}

@test "the same checkpoint under another path is the same point" {
    mkdir "$T/other"
    cp -r "$F/one/m" "$T/other/m"
    "$BIN/gen-llama" -q -m "$T/other/m" --device ref --max-new 4 --ignore-eos "$F/prompts" \
        -o "$T/out"
    [ "$(point "$T/out")" = "$(point "$F/one-0")" ]
}

@test "config, chat template, random weights and environment are a part of the point" {
    gen() { "$BIN/gen-llama" -q --device ref --max-new 4 --ignore-eos "$@" "$F/prompts" | point -; }
    cp -r "$F/one/m" "$T/m"
    jq '.rms_norm_eps = 0.001' "$F/one/m/config.json" > "$T/m/config.json"
    [ "$(gen -m "$T/m")" != "$(point "$F/one-0")" ]
    [ "$(gen -m synth:tiny-llama)" = "$(gen -m synth:tiny-llama)" ]
    [ "$(gen -m synth:tiny-llama)" != "$(gen -m synth:tiny-llama --seed 2)" ]
    [ "$(gen -m synth:tiny-llama)" != "$(gen -m synth:tiny-llama --trim off)" ]
    [ "$(gen -m synth:tiny-llama)" != "$(gen -m synth:tiny-llama --handicap 2)" ]
    [ "$(gen -m synth:tiny-llama)" != \
      "$(NVIDIA_TF32_OVERRIDE=1 gen -m synth:tiny-llama)" ]
}

@test "the draft model is a part of the point" {
    for at in one two; do
        "$BIN/gen-llama" -q -m "$F/one/m" --draft "$F/$at/m" --draft-tokens 2 --device ref \
            --max-new 4 --ignore-eos "$F/prompts" -o "$T/$at"
    done
    [ "$(point "$T/one")" != "$(point "$T/two")" ]
}

@test "folders whose names differ give models whose names differ" {
    name() {
        cp -r "$F/one/m" "$T/$1"
        "$BIN/gen-llama" -q -m "$T/$1" --device ref --max-new 1 "$F/prompts" |
            jq -r 'select(.kind == "generation").model'
    }
    [ "$(name 'a b')" = a%20b ]
    [ "$(name a_b)" = a_b ]
    long=$(printf 'x%.0s' {1..70})
    [ "$(name "${long}1")" != "$(name "${long}2")" ]
}
