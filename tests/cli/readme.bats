#!/usr/bin/env bats
# The pipeline of README.md prints an answer exactly as it stands there.

setup() {
    cd "$BATS_TEST_DIRNAME/../.."
    T="$BATS_TEST_TMPDIR"
}

# block HEADING: the first block of code below it
block() {
    awk -v heading="## $1" '$0 == heading { below = 1 } !below { next }
        /^```/ { if (inside) exit; inside = 1; next } inside' README.md
}

@test "the pipeline of README ends with a sentence about both models" {
    block "The tools" > "$T/pipeline"
    grep -q '^PATH=\$PWD/build/bin:\$PATH M=data/models$' "$T/pipeline"
    # the tools of this build, as few sums as are tested, and its files in a folder of the test
    sed -e "s#\$PWD/build/bin#$(realpath "${BIN:-build/bin}")#" \
        -e 's/--per-task 40/--per-task sum=30/' -e "s#data/#$PWD/data/#g" -i "$T/pipeline"
    cd "$T"
    run bash -euo pipefail pipeline
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *LLaDA*LLaMA* ]]
    [ "$(echo "$output" | wc -l)" -eq 1 ]
}
