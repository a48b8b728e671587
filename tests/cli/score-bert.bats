#!/usr/bin/env bats
# Tests score-bert: BERTScore with a tiny encoder, compared with bert_score 0.3.13 and transformers
# 4.46 on the same weights.
bats_require_minimum_version 1.5.0
load conforms

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    export BIN="${BIN:-build/bin}" D="$BATS_FILE_TMPDIR"
    mkdir "$D/bert" "$D/roberta"
    for kind in bert roberta; do
        "${TESTBIN:-build/tests}/fixtures/make-encoder" $kind "$D/$kind"
    done
    { response p0 'A small boat sailed over the sea!' '"The boat sailed over the sea."'
      response p1 'the boat' '"the boat"'
      response p2 '' '"the boat"'
      response p3 'naive cafe' '"unable boats, sailing"'; } > "$D/in"
}

setup() {
    set -o pipefail
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
}

# response ID TEXT REFERENCE, the reference as JSON
response() {
    jq -cn --arg id "$1" --argjson r "$3" --arg t "$2" '{schema: "crossover/1", kind: "generation",
        run: "r", id: $id, config: "c", model: "m", phase: "timed", status: "ok", reference: $r,
        text: $t}'
}

score() { "$BIN/score-bert" -q --no-meta --threads 1 "$@"; }

# Prints precision, recall and F1 of each response, in millionths.
figures() {
    jq -rs 'map(select(.id)) | group_by(.id)[] | [.[1, 2, 0].value * 1e6 | round] | join(" ")' |
        paste -sd ,
}

# near A B: tests that the figures are equal within a millionth
near() {
    awk -v a="$1" -v b="$2" 'BEGIN { n = split(a, x, /[ ,]/); m = split(b, y, /[ ,]/)
        for (i = 1; i <= n; i++) if (x[i] - y[i] > 2 || y[i] - x[i] > 2) exit 1
        exit n != m || n != 12 }' || { echo "got $1, expected $2"; return 1; }
}

@test "scores equal the reference implementation's, for both encoders and every layer" {
    same=1000000\ 1000000\ 1000000,0\ 0\ 0
    near "$(score -m "$D/bert" --layer 1 "$D/in" | figures)" \
        "868668 835958 851999,$same,908710 742709 817366"
    near "$(score -m "$D/bert" "$D/in" | figures)" \
        "887729 905102 896331,$same,912125 823669 865643"
    near "$(score -m "$D/roberta" --layer 1 --device ref "$D/in" | figures)" \
        "873953 853785 863751,$same,933522 868661 899924"
    near "$(score -m "$D/roberta" "$D/in" | figures)" \
        "962122 892027 925750,$same,966319 945977 956039"
}

@test "records name the encoder and the layer; summaries are means" {
    score -m "$D/bert" "$D/in" > "$T/q"
    conforms "$T/q"
    jq -se 'all(.judge == "bert" and .judge_layer == 2 and (.judge_sha256 | length == 64))' "$T/q"
    [ "$(jq -r 'select(.summary) | [.metric, .n, .value * 1e6 | strings // round] | join(" ")' \
        "$T/q" | paste -sd ,)" = \
"bertscore_f1 4 690494,bertscore_precision 4 699964,bertscore_recall 4 682193" ]
}

@test "the best of several references counts, and long texts are cut and counted" {
    response p0 'A small boat sailed over the sea!' '["x", "The boat sailed over the sea."]' \
        > "$T/in"
    response p0 'A small boat sailed over the sea!' '"x"' | jq -c '.config = "d"' >> "$T/in"
    response p1 'A small boat sailed over the sea!' '"The boat sailed over the sea."' >> "$T/in"
    score -m "$D/bert" "$T/in" | jq -se 'map(select(.id and .metric == "bertscore_f1").value * 1e6
        | round) | .[0] >= 896330 and .[0] <= 896332 and .[1] < .[0] and .[2] == .[0]'
    response p "$(printf 'boat %.0s' {1..30})" '"the boat"' > "$T/in"
    "$BIN/score-bert" --no-meta -m "$D/bert" "$T/in" > "$T/q" 2> "$T/err"
    grep -q "1 texts were cut to the 24 tokens that the encoder takes" "$T/err"
}

@test "an invalid checkpoint, and a checkpoint that differs from its config, are refused" {
    run -64 score "$D/in"
    run -64 score -m "$D/bert" --layer 3 "$D/in"
    [[ "$output" == *"--layer: expected at most 2"* ]]
    run -66 score -m "$T/nowhere" "$D/in"
    cp -r "$D/bert" "$T/odd"
    for fault in '.model_type = "gpt2"' '.hidden_act = "relu"' '.num_attention_heads = 5' \
        '.hidden_size = 64' '.num_hidden_layers = 3' '.vocab_size = 34' '.intermediate_size = "x"' \
        '.max_position_embeddings = 2'; do
        jq "$fault" "$D/bert/config.json" > "$T/odd/config.json"
        run -65 score -m "$T/odd" "$D/in"
        [ "${#lines[@]}" -eq 1 ]
    done
    cp "$D/bert/config.json" "$T/odd"
    for line in 's/\[CLS\]/CLS/' '1i piece one too many' 's/boat/\xff/'; do
        sed "$line" "$D/bert/vocab.txt" > "$T/odd/vocab.txt"
        run -65 score -m "$T/odd" "$D/in"
    done
    rm "$T/odd/vocab.txt"
    run -66 score -m "$T/odd" "$D/in"
}

@test "tokenizer.json of a WordPiece model is the same as vocab.txt" {
    cp -r "$D/bert" "$T/json"
    jq -R . "$D/bert/vocab.txt" | jq -s '{model: {type: "WordPiece", unk_token: "[UNK]",
        continuing_subword_prefix: "##", max_input_chars_per_word: 100,
        vocab: (to_entries | map({(.value): .key}) | add)},
        normalizer: {type: "BertNormalizer", clean_text: true, handle_chinese_chars: true,
        strip_accents: null, lowercase: true}, pre_tokenizer: {type: "BertPreTokenizer"}}' \
        > "$T/json/tokenizer.json"
    rm "$T/json/vocab.txt"
    [ "$(score -m "$T/json" "$D/in" | jq .value)" = "$(score -m "$D/bert" "$D/in" | jq .value)" ]
    jq 'del(.model.type)' "$T/json/tokenizer.json" > "$T/old" # as files of 2020 are
    mv "$T/old" "$T/json/tokenizer.json"
    score -m "$T/json" "$D/in" > /dev/null
    sed -i 's/"clean_text": true/"clean_text": false/' "$T/json/tokenizer.json"
    run -65 score -m "$T/json" "$D/in"
}
