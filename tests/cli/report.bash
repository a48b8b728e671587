# report.bash - shared parts of the tests of the report: a separate folder, questions to the page.
# shellcheck shell=bash

setup() {
    set -o pipefail
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    BIN=$(realpath "${BIN:-build/bin}")
    export CROSSOVER_SHARE=$PWD
    F=$PWD/tests/fixtures
    T=$BATS_TEST_TMPDIR
    cd "$T" || exit 1
    ALL=("$F"/plot-{metric,quality,front,generation,scale}.ndjson)
}

report() { "$BIN/report" -o report.html "$@"; }
# A negated command cannot fail a test in bats; this function can.
lacks() { if grep "$@"; then return 1; fi; }
# says PATTERN [PAGE]: in the text of the page of all tables, without what is not read.
says() {
    sed 's/<script.*<\/script>//; s/<[^>]*>/ /g' "${2-tables.html}" | tr -s ' ' > words
    grep -q "$1" words
}
