# conforms.bash - checks records against the schema.
# shellcheck shell=bash

conforms() { # FILE...: every record fits data/record.schema.json
    local root=$BATS_TEST_DIRNAME/../..
    "${TESTBIN:-$root/build/tests}/fixtures/conforms" "$root/data/record.schema.json" "$@"
}
