# models.sh - runs the tools on the device and on the CPU. check sources this file.
# shellcheck shell=bash disable=SC2154

# Prints the name of the device. Returns 69 with one line if there is none.
name_of_device()
{
    echo '{"id":"p","prompt_ids":[1]}' >"$T/probe"
    "$BIN/gen-llama" -m synth:tiny-llama --device "$device" --max-new 1 --ignore-eos --no-meta -q \
        "$T/probe" | jq -r 'select(.kind == "generation").device_name'
}

# generate TOOL DEVICE DTYPE FLAG...: prints [id, token_ids] of each prompt, a line each. On failure
# it prints nothing, and no comparison accepts an empty list.
generate()
{
    local tool=$1 on=$2 dtype=$3
    shift 3
    local of=(-m "$LLAMA" --max-new "$length")
    [ "$tool" != gen-llada ] || of=(-m "$LLADA" --gen-length "$length")
    [ "$tool" != gen-ltm ] || of=(-m "$LTM" --max-new "$length" --vi-steps 4)
    [[ $tool$* != gen-llada*--unmask* && $tool$* != gen-llada*--steps* && $tool = gen-llada ]] &&
        of+=(--steps "$length")
    "$BIN/$tool" "${of[@]}" --device "$on" --dtype "$dtype" --seed 7 -q --no-meta "$@" \
        "${PROMPTS_OF:-$T/prompts}" | jq -c 'select(.token_ids) | [.id, .token_ids]' || true
}

# Returns 0 unless the device refuses such weights (64). Any other failure of the device is not
# skipped.
has_format()
{
    local status=0
    "$BIN/gen-llama" -m "$LLAMA" --device "$device" --quant "$1" --max-new 1 --limit 1 -q \
        --no-meta "$T/prompts" >"$T/null" 2>"$T/err" || status=$?
    [ "$status" -ne 64 ]
}

find_sanitizer()
{
    local home=${CUDA_HOME:-/usr/local/cuda}
    command -v compute-sanitizer || {
        ls "$home/bin/compute-sanitizer" || ls "$home/compute-sanitizer/compute-sanitizer"
    } 2>/dev/null
}

# Programs that a sanitizer cannot check: the kernels of some fail on purpose; others have no
# kernels, which the sanitizer reports as a failure.
is_planted() { [[ ${1##*/} =~ ^test-(lost|watchdog|choices|attention-plan)$ ]]; }
