#!/usr/bin/env bats
# Tests the parts of bench without times: solvers by evaluations, bytes of a training step.
load conforms

setup() {
    set -o pipefail
    ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    BENCH=${TESTBIN:-$ROOT/build/tests}/bench
    cd "$BATS_TEST_TMPDIR" || exit 1
}

@test "solvers: the error falls with the number of evaluations; the seed gives the noise" {
    "$BENCH/bench" --only solvers -o a.ndjson 2> said
    "$BENCH/bench" --only solvers --seed 2 -q -o b.ndjson
    conforms a.ndjson
    [ "$(grep -c 'evaluations .*width' said)" -eq 17 ]
    jq -se 'def at($s): map(select(.solver == $s)); map(select(.kind == "solver"))
        | (at("ddim") | map(.evaluations)) == [10, 20, 50, 1000]
          and (at("edm") | map(.evaluations)) == [9, 19, 49, 999] and (at("adaptive") | length) == 1
          and (("ddim", "dpmpp2m", "edm") as $s | at($s) | map(.flow_distance)
               | . == (sort | reverse) and .[3] < 0.1 * .[0])
          and (at("fresh") | all(.flow_distance == null) and .[3].width_ratio < 0.9)' a.ndjson |
        jq -se 'all'
    # another noise gives results within the errors
    jq -se --slurpfile b b.ndjson 'def of: map(select(.solver == "ddim" and .evaluations == 20))[0];
        of as $a | ($b | of) as $b | $a.flow_distance != $b.flow_distance and
        ($a.flow_distance - $b.flow_distance | fabs) <
            5 * ($a.flow_distance_error + $b.flow_distance_error)' a.ndjson
}

@test "activations: the bytes of a training step are stated for a small language model" {
    "$BENCH/bench" --only activations -q -o bench.ndjson
    conforms bench.ndjson
    # everything kept: of 4096 rows and 12 layers at least 12 x (11 x 768 + 3 x 2048) values
    jq -se 'map(select(.work == "train")) | length == 8 and all(.rows == 4096 and .pass_ns == null)
        and .[0].memory_ratio == 1 and .[0].activations_bytes > 4 * 4096 * 12 * (9 * 768 + 3 * 2048)
        and (map(select(.loss_form == "whole"))[1].memory_ratio | . > 1.3 and . < 2.5)
        and (map(select(.loss_form == "fused" and .checkpoint_every == 1))[0].memory_ratio > 3)' \
        bench.ndjson
}
