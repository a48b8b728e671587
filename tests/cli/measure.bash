# measure.bash - the tool and its input records, for the tests of measure and of energy.
# shellcheck shell=bash

measure() { "$BIN/measure" --no-meta "$@"; }

# value METRIC FIELD < metrics: prints a field of a metric
value() {
    jq -r --arg m "$1" --arg f "$2" \
        'select(.metric == $m) | .[$f] | if type == "number" then . + 0 else . end'
}

# one FIELDS...: makes timed records; each has its own seq and the members of one argument.
one() {
    local fields all=
    for fields; do
        place=$((place + 1))
        all+="${all:+, }($usual + {seq: $place} + $fields)"
    done
    jq -cn "$all"
}
usual='{schema: "crossover/1", kind: "generation", run: "r", id: "p", config: "c", model: "m",
        arch: "llama", batch: 1, launch: 1, round: 0, seq: 0, phase: "timed", status: "ok",
        e2e_ns: 1000, new_tokens: 4, tokens_to_eos: 4}'
