#!/usr/bin/env bats
# Tests that the pipeline of README.md prints the answer that README.md quotes below the pipeline.

setup() {
    cd "$BATS_TEST_DIRNAME/../.."
    T="$BATS_TEST_TMPDIR"
}

# block HEADING: prints the first block of code below HEADING
block() {
    awk -v heading="## $1" '$0 == heading { below = 1 } !below { next }
        /^```/ { if (inside) exit; inside = 1; next } inside' README.md
}

@test "the pipeline of README prints the quoted answer" {
    block "The tools" > "$T/pipeline"
    grep -q '^PATH=\$PWD/build/bin:\$PATH M=data/models$' "$T/pipeline"
    # the tools of this build, only the sums, which are scored, and files in a folder of the test
    sed -e "s#\$PWD/build/bin#$(realpath "${BIN:-build/bin}")#" \
        -e 's/--per-task 40/--per-task sum=40/' -e "s#data/#$PWD/data/#g" -i "$T/pipeline"
    quoted=$(sed -n '/^## The tools/,/^|/s/^> //p' README.md | paste -sd ' ')
    cd "$T"
    run bash -euo pipefail pipeline
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$output" = "$quoted" ]
}
