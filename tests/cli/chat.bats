#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Tests which chat template a generator applies: the checkpoint's own, in every layout in which
# templates are published. tests/model/test-chat.c and tests/unit/test-jinja.c test the texts.
load conforms

setup() {
    set -o pipefail
    BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
    M=$T/model
    mkdir "$M"
    cp data/models/llama-demo/{config.json,model.safetensors} "$M"
    tokens '<|begin_of_text|>' '<|start_header_id|>' '<|end_header_id|>' '<|eot_id|>'
    echo '{"id":"p","text":"Hi"}' > "$T/prompt"
}

tokens() { # special tokens behind the 256 bytes; the first is put in front of a text
    jq --args '.model.vocab |= with_entries(select(.value < 256)) | .model.merges = []
        | .added_tokens = [.added_tokens[0] as $one | $ARGS.positional | to_entries[]
                           | $one + {id: (256 + .key), content: .value}]
        | .post_processor = {type: "TemplateProcessing",
              single: [{SpecialToken: {id: "x", type_id: 0}}, {Sequence: {id: "A", type_id: 0}}],
              special_tokens: {x: {id: "x", ids: [256], tokens: ["x"]}}}' \
        "$@" < data/models/llama-demo/tokenizer.json > "$M/tokenizer.json"
}
config() { # JQ [VALUE]: tokenizer_config.json
    jq -n --arg it "${2-}" '{bos_token: {content: "<|begin_of_text|>"}, eos_token: "<|eot_id|>"}
        | '"$1" > "$M/tokenizer_config.json"
}
gen() { # FLAGS...: the template and the prompt's tokens; what was said is in $T/said
    "$BIN/gen-llama" -m "$M" --max-new 1 --device cpu --no-meta "$@" "$T/prompt" \
        2> "$T/said" | jq -r '"\(.chat) \(.prompt_tokens)"'
}

LLAMA="{{ bos_token }}{% for m in messages %}{{ '<|start_header_id|>' + m.role +
    '<|end_header_id|>\\n\\n' + m.content | trim + '<|eot_id|>' }}{% endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"
IM="{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
{%- endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

@test "a base model gets the prompt without a template, an instruct model its template" {
    [ "$(gen)" = 'none 3' ]
    grep -q 'no chat template: the checkpoint has none .*--chat llama3 applies one' "$T/said"
    config .
    [ "$(gen)" = 'none 3' ]
    config '.chat_template = $it' "$LLAMA"
    [ "$(gen)" = 'own 25' ] # a byte a token: 1 + 8 + 2 + 1 + 13
    grep -qx "gen-llama: $M/tokenizer_config.json: chat template of the checkpoint" "$T/said"
    [ "$(wc -l < "$T/said")" -eq 1 ]
    [ "$(gen --chat none)" = 'none 3' ]
    [ ! -s "$T/said" ]
    [ "$(gen --chat llama3.1)" = 'llama3.1 99' ]
    grep -qx "gen-llama: model: chat template llama3.1 (--chat)" "$T/said"
    gen -q > /dev/null
    [ ! -s "$T/said" ]
    "$BIN/gen-llama" -m "$M" --max-new 1 -q "$T/prompt" | tee "$T/out" |
        jq -se '.[0].chat == "own" and .[1].chat == "own"'
    conforms "$T/out"
    echo '{"id":"p","prompt_ids":[7]}' > "$T/prompt"
    [ "$(gen)" = 'null 1' ]
}

@test "a fine-tuned model gets the template of its training, not that of its family" {
    tokens '<|begin_of_text|>' '<|start_header_id|>' '<|end_header_id|>' '<|eot_id|>' \
        '<|im_start|>' '<|im_end|>'
    config '.chat_template = $it' "$IM"
    [ "$(gen)" = 'own 21' ]
    config '.chat_template = $it' "{{ bos_token }}$IM"
    [ "$(gen)" = 'own 22' ]
    tokens '<|begin_of_text|>' '<|start_header_id|>' '<|end_header_id|>' '<|eot_id|>'
    [ "$(gen)" = 'none 3' ]
    grep -q 'one is there, but tokenizer.json has no special token <|im_start|>' "$T/said"
}

@test "a template that cannot run gives a warning with its line, and no template is used" {
    config '.chat_template = $it' "{{ 'Be kind. ' }}
$LLAMA{{ messages | groupby('role') }}"
    [ "$(gen)" = 'none 3' ]
    grep -q "warning W109: $M/tokenizer_config.json: .* line 5: the filter groupby: not supp" \
        "$T/said"
    [ "$(gen --chat llama3)" = 'llama3 25' ]
    run -1 grep W109 "$T/said"
    for text in '3' '{}' '[]' '[{"name":"tool_use","template":"x"}]' '[{"name":"default"}]' '[[]]'
    do
        config ".chat_template = $text"
        [ "$(gen)" = 'none 3' ]
        grep -q 'warning W109: .*tokenizer_config.json: .*chat_template is ' "$T/said"
    done
    config '.chat_template = "x" * 1048576'
    [ "$(gen)" = 'none 3' ]
    grep -q 'expected at most 262144 bytes, got 1048576' "$T/said"
    config '.chat_template = "{% if x %}" * 10000'
    [ "$(gen)" = 'none 3' ]
    grep -q 'nested too deep' "$T/said"
    config '.chat_template = "\u001b[2J\n"'
    [ "$(gen)" = 'none 3' ]
    [ "$(LC_ALL=C tr -d '\n -~' < "$T/said" | wc -c)" -eq 0 ]
}

@test "a template is found in each place where it is published" {
    config '.chat_template = [{name: "tool", template: "x"}, {name: "default", template: $it}]' \
        "$LLAMA"
    [ "$(gen)" = 'own 25' ]
    config '.chat_template = "other"'
    printf '%s\n' "${LLAMA//\\\\n/\\n}" > "$M/chat_template.jinja" # goes before the member
    [ "$(gen)" = 'own 25' ]
    grep -q 'chat_template.jinja: chat template of the checkpoint' "$T/said"
    rm "$M/chat_template.jinja"
    jq -n --arg it "$LLAMA" '{chat_template: $it}' > "$M/chat_template.json"
    [ "$(gen)" = 'none 3' ]
    config .
    [ "$(gen)" = 'own 25' ]
    grep -q 'chat_template.json: chat template of the checkpoint' "$T/said"
    "$BIN/pack-model" -m "$M" --quant int8 --out "$T/packed" -q > /dev/null
    cmp "$M/chat_template.json" "$T/packed/chat_template.json"
    for name in tokenizer_config.json chat_template.json; do
        head -c 20 "$M/$name" > "$T/cut" && cp "$T/cut" "$M/$name"
        run -65 "$BIN/gen-llama" -m "$M" "$T/prompt"
        [[ $output = *"$name: line"* ]]
        rm "$M/$name"
    done
    mkfifo "$M/chat_template.jinja"
    run -66 timeout 10 "$BIN/gen-llama" -m "$M" "$T/prompt"
    [[ $output = *chat_template.jinja* ]]
    [ "$(gen --chat llama3)" = 'llama3 25' ]
}

@test "messages that a template refuses become error records; all other messages run" {
    config '.chat_template = $it' "{% if messages[0].role == 'system' %}{{
        raise_exception('no system role') }}{% endif %}$LLAMA"
    jq -nc '{id: "a", messages: [{role: "system", content: "x"}, {role: "user", content: "Hi"}]},
            {id: "b", text: "Hi"}' > "$T/prompt"
    run -1 --separate-stderr "$BIN/gen-llama" -m "$M" --max-new 1 --no-meta -q "$T/prompt"
    jq -se 'map(select(.kind == "error"))[0] | .id == "a"
        and (.message | contains("the template says: no system role"))' <<< "$output"
    jq -se 'map(select(.kind == "generation")) | length == 1 and .[0].id == "b"' <<< "$output"
}

@test "the length of a prompt is counted with the template of the generator" {
    config '.chat_template = $it' "$LLAMA"
    printf '{"id":"p","text":"%0480d"}\n' 0 > "$T/prompt" # 481 tokens, 503 with the template
    fits() { "$BIN/prep-prompts" --fits "$M" --room "$1" --no-meta -q "$T/prompt" | wc -l; }
    [ "$(fits 9) $(fits 10)" = '1 0' ]
    config .
    [ "$(fits 31) $(fits 32)" = '1 0' ]
}

@test "--chat LIST: each point has the prompts that its template writes, in one process" {
    config '.chat_template = $it' "$LLAMA"
    echo '{"id":"q","text":"Ho there"}' >> "$T/prompt"
    fields='select(.kind == "generation") | [.id, .chat, .conditions, .prompt_tokens, .token_ids]'
    all() { "$BIN/gen-llama" -m "$M" --max-new 6 -q --device cpu "$@" "$T/prompt"; }
    for chat in auto none llama3.1; do all --chat $chat | jq -c "$fields"; done > "$T/alone"
    all --chat auto,none,llama3.1 --batch 2 | tee "$T/out" | jq -c "$fields" > "$T/together"
    cmp "$T/alone" "$T/together"
    [ "$(sort -u "$T/together" | wc -l)" -eq 6 ]
    jq -se '.[0].chat == "own,none,llama3.1" and (map(.point // empty) | unique | length == 3)
        and map(.config // empty | scan("chat=[^ ]*")) == [range(2) | "chat=none"] +
            [range(2) | "chat=llama3.1"]' "$T/out"
    conforms "$T/out"
    jq -nc '{kind: "launch", launch: 0, rounds: 1, points:
        [{chat_template: "none", max_new: 6}, {chat_template: "llama3.1", max_new: 6}]}' > "$T/plan"
    all --schedule "$T/plan" --no-meta | jq -c "$fields" | cmp - <(sed 1,2d "$T/alone")
    jq -nc '("x", "y") | {id: ., text: ., task: "sum", answer: .}' > "$T/prompt"
    all --chat auto,none --max-new 2,3 | "$BIN/score-exact" | "$BIN/compare" --ranking |
        jq -se 'map(select(.kind == "ranking"))[0]
            | .systems | length == 2 and all(contains("chat=") | not)'
    printf '{"id":"p","text":"Hi"}\n{"id":"q","text":"Ho there"}\n' > "$T/prompt"
    [ "$(all --chat auto,none --explain --no-meta 2>&1 | jq -c .prompt_tokens | xargs)" = "31 9" ]
    config .
    run -64 --separate-stderr all --chat auto,none
    [[ $stderr = *"two of its words name the template none for this model"* ]]
}

@test "--chat LIST: a prompt that one template refuses runs under all other templates" {
    config '.chat_template = $it' "{% if messages[0].role == 'system' %}{{
        raise_exception('no') }}{% endif %}$LLAMA"
    jq -nc '{id: "a", messages: [{role: "system", content: "x"}, {role: "user", content: "Hi"}]},
            {id: "b", text: "Hi"}' > "$T/prompt"
    run -1 --separate-stderr "$BIN/gen-llama" -m "$M" --max-new 1 --no-meta -q --chat auto,none \
        "$T/prompt"
    jq -se 'map(select(.kind == "error"))
        | length == 1 and (.[0].message | contains("chat template own: ")
            and contains("the template says: no"))' <<< "$output"
    jq -se 'map(select(.kind == "generation") | [.id, .chat, .prompts])
        == [["b", "own", 1], ["a", "none", 2], ["b", "none", 2]]' <<< "$output"
}

@test "two templates: each LLaDA meets LLaMA under its own template, and a page names both" {
    jq -nc '(["llada", "masked_diffusion", 64, 1e7], ["llama", "autoregressive", null, 2e7]) as
        [$model, $paradigm, $length, $own] | ("chat=own", null) as $chat | (1, 2) as $batch
        | (if $model == "llama" and $chat == null then 5e6 else $own end) as $ns
        | {schema: "crossover/1", kind: "metric", run: "r", metric: "e2e_ns", direction: "lower",
           paradigm: $paradigm, contract: "fixed", model: $model, batch: $batch, value: $ns,
           series: "\($model) \($chat) \($batch)", point: "\($model) \($chat) \($batch)",
           config: "\($model) batch=\($batch) \($chat // "chat=none")", lo: null, hi: null,
           launch_values: [range(6) | {launch: ., value: ($ns * (1 + . % 3 / 100))}]}
          + (if $length then {gen_length: 64, steps: 16, axis: "steps"}
             else {max_new: 64, steps: null, axis: null} end)
          + (if $chat then {conditions: $chat} else {} end)' > "$T/metrics"
    "$BIN/pareto" -q "$T/metrics" > "$T/pareto"
    jq -se 'map(select(.name == "X_lat") | [.series, .llama_point, .reason | strings])
        | length == 4 and all(if .[0] | contains("own") then (.[1] | contains("own")) and
            (.[2] | startswith("cheaper")) else (.[1] | contains("null")) and
            (.[2] | startswith("costs more")) end)' "$T/pareto"
    jq -se 'map(select(.name == "X_batch").reason)
        | length == 2 and any(startswith("cheaper")) and any(startswith("costs more"))' "$T/pareto"
    config '.chat_template = $it' "$LLAMA"
    "$BIN/gen-llama" -m "$M" --max-new 3 --ignore-eos -q --device cpu --chat auto,none "$T/prompt" |
        "$BIN/measure" -q > "$T/measured"
    "$BIN/report" -q --format markdown "$T/measured" > "$T/page"
    grep -q 'model conditions=chat=own |' "$T/page"
    grep -q "| model |" "$T/page"
}
