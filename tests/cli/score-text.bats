#!/usr/bin/env bats
# score-text: generation records with references in, chrF, ROUGE-L and token F1 out.
bats_require_minimum_version 1.5.0
load conforms

setup() {
    set -o pipefail
    BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
}

score() { "$BIN/score-text" -q --no-meta "$@"; }

# response ID REFERENCE TEXT, the reference as JSON
response() {
    jq -cn --arg id "$1" --argjson r "$2" --arg t "$3" '{schema: "crossover/1", kind: "generation",
        run: "r", id: $id, config: "c", model: "m", phase: "timed", status: "ok", reference: $r,
        text: $t}'
}

# overlap REFERENCE TEXT: prints the three values, to ten digits
overlap() {
    response p "$(jq -n --arg r "$1" '$r')" "$2" | score |
        jq -r 'select(.id).value * 1e10 | round' | paste -sd ' '
}

@test "scores equal those of sacrebleu 2.6, rouge_score 0.1.2 and SQuAD 1.1" {
    [ "$(overlap 'the cat sat on the mat' 'The cat sat.')" = \
        "4102020535 6666666667 6666666667" ]
    [ "$(overlap 'Once there was a small boat, upon the sea.' \
        'Once upon a time there was a boat.')" = "4255897650 5882352941 7692307692" ]
    [ "$(overlap 'naive cafe' 'naïve café')" = "3941137566 0 0" ]
    [ "$(overlap ab ab)" = "10000000000 10000000000 10000000000" ]
    [ "$(overlap 'the cat' '')" = "0 0 0" ]
    [ "$(overlap '' '')" = "0 0 0" ]
}

@test "articles are removed only as whole words, case is folded in every script" {
    [ "$(overlap 'an ant, the ÉTÉ' 'The été; ant' | cut -d ' ' -f 3)" = 10000000000 ]
    [ "$(overlap 'a–b' '–b' | cut -d ' ' -f 3)" = 10000000000 ]
    [ "$(overlap 'theatre' 'atre' | cut -d ' ' -f 3)" = 0 ]
}

@test "summaries are means over texts, or n-grams summed over all texts" {
    { response a '"the cat sat on the mat"' 'The cat sat.'
      response b '"Once there was a small boat, upon the sea."' 'Once upon a time there was a boat.'
      response c '"naive cafe"' 'naïve café'; } | score > "$T/q"
    conforms "$T/q"
    [ "$(jq -r 'select(.summary) | [.metric, .n, (.value * 1e6 | round), .lo < .value and
        .value < .hi] | join(" ")' "$T/q" | paste -sd ,)" = \
"chrf 3 409969 true,rouge_l 3 418301 true,token_f1 3 478632 true,chrf_corpus 3 417582 true" ]
}

@test "the best of several references counts" {
    [ "$(response p '["no", "ab", "abc"]' ab | score | jq -r 'select(.id).value' |
        sed 's/\.0//' | paste -sd ' ')" = "1 1 1" ]
    run -65 score < <(response p '["ab", 7]' ab)
    [[ "$output" == *"reference: expected a text or a list of texts"* ]]
}

@test "a prompt is scored once, up to the stop token; random weights have no quality" {
    { response p '"ab"' 'ab and more' | jq -c '.text_to_eos = "ab"'
      response p '"ab"' 'another round' | jq -c '.round = 1'
      response q null 'no reference'
      response q '"ab"' ab | jq -c '.phase = "cold"'
    } | "$BIN/score-text" --no-meta > "$T/q" 2> "$T/err"
    [ "$(jq -r 'select(.id) | .value' "$T/q" | sed 's/\.0//' | paste -sd ' ')" = "1 1 1" ]
    grep -q 'skipped: 1 without a reference, 1 further rounds, 1 not timed or not ok' "$T/err"
    response p '"ab"' ab | jq -c '.weights_random = true' | score > "$T/q"
    [ "$(jq -c '[.value, .value_reason]' "$T/q" | sort -u)" = '[null,"random weights"]' ]
}

@test "a text that is too long to compare is an error, and so is no record" {
    long=$(printf 'word %.0s' {1..32769})
    response p '"word"' x | jq -c --rawfile t <(printf %s "$long") '.text = $t' > "$T/in"
    run -65 score "$T/in"
    [[ "$output" == *"expected at most 32768 words"* ]]
    run -65 score /dev/null
}
