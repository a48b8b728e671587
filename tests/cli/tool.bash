# tool.bash - makes the folder of a test of one tool, and has questions about the tool's output.
# shellcheck shell=bash

# Sets ROOT and BIN, and goes to the folder of the test.
enter()
{
    ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    BIN=${BIN:-$ROOT/build/bin}
    BIN=$(cd "$ROOT" && cd "$BIN" && pwd)
    cd "$BATS_TEST_TMPDIR"
}

fails() { # CODE WORDS COMMAND...: exit status, and one line on standard error that has the words
    local code=$1 words=$2 status=0
    shift 2
    "$@" > out 2> err || status=$?
    cat err
    [ "$status" -eq "$code" ] && [ "$(wc -l < err)" -eq 1 ] && grep -qF -- "$words" err
}
