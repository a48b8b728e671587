# conclude.bash - shared parts of the tests of conclude: synthetic runs, and questions to claims.
# shellcheck shell=bash

setup()
{
    ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    BIN=$(cd "$ROOT" && realpath "${BIN:-build/bin}")
    F=$ROOT/tests/fixtures
    cd "$BATS_TEST_TMPDIR"
}

GOALS=sum:accuracy:0.05,story:judge_ppl:0.1

# state CHANGES ARGUMENTS...: makes the claims of a synthetic run
state()
{
    local o=$1 made
    shift
    made=$BATS_FILE_TMPDIR/$(cksum <<< "$o" | tr " " -) # the same run serves many tests
    [ -e "$made" ] || { jq -nc --argjson o "$o" -f "$F/claims-run.jq" > made.tmp &&
        mv made.tmp "$made"; }
    cp "$made" run.ndjson
    "$BIN/conclude" --no-meta --quality "$GOALS" "$@" run.ndjson > claims.ndjson
    jq -se 'map(select(.name == "answer").text | split(" ") | length) | . != [] and max <= 40' \
        claims.ndjson
}

# says TEXT: tests that the answer begins with TEXT
says()
{
    jq -r 'select(.name == "answer").text' claims.ndjson | tee answer
    grep -qF -- "$1" answer
}
answer() { [ "$(jq -r 'select(.name == "answer").text' claims.ndjson | tee /dev/stderr)" = "$1" ]; }
decided()
{
    jq -se --argjson d "$1" 'map(select(.name == "answer").decided) == [$d]' claims.ndjson
}
claim() { jq -se "map(select($1)) | length == 1 and (.[0] | $2)" claims.ndjson; }
# Ratios are unknown, so no sentence or note may have one.
no_ratio()
{
    ! jq -r 'select(.key != "memory") | .text // empty, .note // empty' claims.ndjson |
        grep -E 'takes|times \[|[0-9] times'
}
