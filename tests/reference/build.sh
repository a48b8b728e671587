# build.sh - sets REFERENCE, MAKE_CHECKPOINT and MAKE_GGUF, and builds these programs if make has
# not. Tests source this file.
reference_at=$(realpath -m "$(dirname "${BIN:-build/bin}")/tests")
if ! [ -x "$reference_at/reference" ] || ! [ -x "$reference_at/make-gguf" ]; then
    reference_at=$BATS_FILE_TMPDIR
    ${CC:-cc} -std=c11 -D_GNU_SOURCE -I. -O2 tests/reference/reference.c \
        tests/reference/families.c tests/reference/rules.c tests/reference/canvas.c \
        tests/reference/model.c \
        -o "$reference_at/reference" -ljansson -lm
    for maker in make-checkpoint make-gguf; do
        ${CC:-cc} -std=c11 -D_GNU_SOURCE -I. -O2 tests/reference/$maker.c \
            -o "$reference_at/$maker" -ljansson -lm
    done
fi
export REFERENCE=$reference_at/reference MAKE_CHECKPOINT=$reference_at/make-checkpoint
export MAKE_GGUF=$reference_at/make-gguf
