# build.sh - sourced by tests: names REFERENCE and MAKE_CHECKPOINT, and builds them if make has not.
reference_at=$(realpath -m "$(dirname "${BIN:-build/bin}")/tests")
if ! [ -x "$reference_at/reference" ] || ! [ -x "$reference_at/make-checkpoint" ]; then
    reference_at=$BATS_FILE_TMPDIR
    ${CC:-cc} -std=c11 -D_GNU_SOURCE -I. -O2 tests/reference/reference.c \
        tests/reference/families.c tests/reference/model.c \
        -o "$reference_at/reference" -ljansson -lm
    ${CC:-cc} -std=c11 -D_GNU_SOURCE -I. -O2 tests/reference/make-checkpoint.c \
        -o "$reference_at/make-checkpoint" -ljansson -lm
fi
export REFERENCE=$reference_at/reference MAKE_CHECKPOINT=$reference_at/make-checkpoint
