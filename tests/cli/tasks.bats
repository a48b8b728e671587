#!/usr/bin/env bats
# Known tasks (data/tasks.ndjson): their prompts, their rules, and programs in a sandbox.
bats_require_minimum_version 1.5.0
load conforms
load tool

setup()
{
    enter
    export XDG_CACHE_HOME=$PWD/cache
    TASKS=$PWD/cache/crossover/tasks
    mkdir -p "$TASKS"
}

# verdicts [OPTION...] < lines "TASK@ANSWER@TEXT": prints the verdict of score-exact on each
# line. In a line, \n stands for a line feed.
verdicts()
{
    jq -cR 'split("@") | map(gsub("\\\\n"; "\n")) | {kind: "generation", run: "r",
        id: "p\(input_line_number)", config: "c", model: "m", arch: "llama", batch: 1,
        phase: "timed", status: "ok", task: .[0], answer: .[1], text: .[2]}' |
        "$BIN/score-exact" -q --no-meta "$@" 3>&2 > got
    conforms got
    jq -r 'select(.id) | .value // .value_reason // .message' got | paste -sd ' '
}

@test "each row of the tasks has a valid schema, templates, rules and a command that fetches" {
    conforms "$ROOT/data/tasks.ndjson"
    jq -e '.fetch and .licence and .source and (.fields | length > 0)' "$ROOT/data/tasks.ndjson"
    for task in $(jq -r .name "$ROOT/data/tasks.ndjson"); do
        run "$BIN/prep-prompts" --task "$task:anatomy" --shots 0
        [ "$status" -eq 66 ]
        [[ "$output" == *"nothing is fetched"*"mkdir -p"* ]]
        jq -cn --arg t "$task" '{kind: "generation", run: "r", id: $t, config: "c", model: "m",
            phase: "timed", status: "ok", task: $t, answer: "[1] <<response>>", text: "x"}'
    done > all
    run "$BIN/score-exact" -q all
    [[ "$output" == *"use score-ppl --mode choice"* ]]
    [ "$(grep -c '"kind":"error"' <<< "$output")" -eq \
      "$(jq -s 'map(select(.rule.type | test("choice|^list-|latin|ifeval"))) | length' \
          "$ROOT/data/tasks.ndjson")" ]
}

@test "items become prompts with examples, header and choices; ids differ between tasks" {
    mkdir "$TASKS/mmlu" "$TASKS/hellaswag" "$TASKS/gsm8k"
    printf '{"question":"%s?","choices":["p","q","r","s"],"answer":%d}\n' One 1 Two 2 \
        > "$TASKS/mmlu/mmlu-high_jumps-dev.jsonl"
    printf '{"question":" Three? ","choices":["p","q","r","s"],"answer":3}\n{"question":"x"}\n' \
        > "$TASKS/mmlu/mmlu-high_jumps-test.jsonl"
    run -1 --separate-stderr "$BIN/prep-prompts" --no-meta --task mmlu:high_jumps --shots 2
    echo "$output" > got
    conforms got
    jq -se 'map(select(.text).shots) == [2]' got
    [ "$(jq -r 'select(.text).text' got)" = "The following are multiple choice questions (with \
answers) about high jumps.

One?
A. p
B. q
C. r
D. s
Answer: B

Two?
A. p
B. q
C. r
D. s
Answer: C

Three?
A. p
B. q
C. r
D. s
Answer:" ]
    [ "$(jq -c 'select(.text) | [.right_choice, .choices]' got)" = '[3,["A","B","C","D"]]' ]
    [[ "$(jq -r 'select(.kind == "error").message' got)" == *'field "choices.3"'* ]]
    run -65 "$BIN/prep-prompts" --task mmlu:high_jumps --shots 3
    [[ "$output" == *"expected 3 examples, got 2"* ]]
    printf '%s\n' '{"ind":4,"activity_label":"Tea","ctx_a":"A cup [title] is [x] full.",
        "ctx_b":"the Guest","endings":["a  b","[y]c"],"label":"1"}' > items
    "$BIN/prep-prompts" --no-meta --task hellaswag --shots 0 items > got
    [ "$(jq -c '[.id, .text, .choices, .right_choice]' got)" = \
      '["hellaswag-4","Tea: A cup. is full. The guest",["a b","c"],1]' ]
    printf '%s\n' '{"input":{"context":"[\"a\", \"b\"]","icl_examples":[{"input":{"context":"[]"},
        "answer":{"example":"none"}}]},"answer":{"input":["a","b"]}}' > items
    "$BIN/prep-prompts" --no-meta --task parallelbench-shuffle items > got
    [ "$(jq -c '[(.messages | map(.role)), .messages[1].content, .answer]' got)" = \
      '[["user","assistant","user"],"none","{\"input\": [\"a\", \"b\"]}"]' ]
    run -64 "$BIN/prep-prompts" --task chess
    [[ "$output" == *"no task 'chess'; known: gsm8k"* ]]
    run -64 "$BIN/prep-prompts" --task hellaswag --field ctx items
}

@test "--field takes a path into an object or a list" {
    echo '{"input":{"context":"Hello","all":["no","yes"]},"a.b":"own"}' > x.jsonl
    [ "$("$BIN/prep-prompts" --no-meta --field input.context --answer-field input.all.1 x.jsonl |
        jq -r '.text + .answer')" = Helloyes ]
    [ "$("$BIN/prep-prompts" --no-meta --field a.b x.jsonl | jq -r .text)" = own ]
    run -65 "$BIN/prep-prompts" --no-meta --field input.nothing x.jsonl
    run -65 "$BIN/prep-prompts" --no-meta --field input.all.first x.jsonl
}

@test "GSM8K: the answer is the last number or the number after ####, before a stop" {
    local lines='gsm8k@1,050@so it is $1050.
gsm8k@1050@#### 1,050.
gsm8k@5@5 Question: 7
gsm8k@5@#### 5 of 6
gsm8k@5@five'
    [ "$(verdicts <<< "$lines")" = "1 1 1 0 0" ]
    [ "$(verdicts --find strict <<< "$lines")" = "0 1 0 1 0" ]
    [ "$(verdicts --match exact <<< "$lines")" = "0 0 0 0 0" ]
    run "$BIN/score-exact" --find no < <(echo '{"kind":"generation","run":"r","id":"p",
        "config":"c","task":"gsm8k","answer":"5","text":"5"}' | jq -c .)
    [[ "$output" == *"--find: task gsm8k has no way 'no'"* ]]
}

@test "MATH: answers are compared in a normal form of LaTeX" {
    local lines='math-500@\boxed{\frac12}@It is $\frac{1}{2}$
math-500@\boxed{\frac{1}{2}}@0.5
math-500@\boxed{2/3}@$\dfrac{2}{3}$
math-500@\boxed{2/3}@$a/3$
math-500@\boxed{5}@x=5
math-500@\boxed{3}, so \boxed{\sqrt7}@$\sqrt{7}$
math-500@\boxed{5}@$\boxed{5}$
math-500@\boxed{10}@10 \text{ cm}
math-500@\boxed{7}@7\nProblem: $8$'
    [ "$(verdicts <<< "$lines")" = "1 1 1 0 1 1 0 1 1" ]
    [ "$(verdicts --find boxed <<< "$lines")" = "0 0 0 0 0 0 1 0 0" ]
}

@test "ParallelBench: tasks with several right lists, Latin squares and sudokus are scored" {
    [ "$(verdicts << 'END'
parallelbench-copy@["a", "b"]@The list: ["a","b"].
parallelbench-copy@["a", "b"]@["b", "a"]
parallelbench-shuffle@{"input":["a","b","b"]}@[b, a, b]
parallelbench-shuffle@{"input":["a","b","b"]}@[a, b, b]
parallelbench-shuffle@{"input":["a","b","b"]}@[a, b, a]
parallelbench-insert-random@{"input":["a","b"],"word":"c"}@[a, c, b]
parallelbench-insert-random@{"input":["a","b"],"word":"c"}@[b, c, a]
parallelbench-remove-random@{"input":["a","b","c"]}@[a, c]
parallelbench-remove-random@{"input":["a","b","c"]}@[c, a]
parallelbench-replace-random@{"input":["a","b"],"word":"c"}@[a, c]
parallelbench-replace-random@{"input":["a","b"],"word":"c"}@[c, c]
parallelbench-replace-random@{"input":["a","b"]}@[c, c]
parallelbench-latin-square@{"symbols":["x","y"]}@Here:\nx,y\n y, x
parallelbench-latin-square@{"symbols":["x","y"]}@x,y\nx,y
parallelbench-sudoku@1234\n3412\n2143\n4321@1 2 3 4\n3,4,1,2\n2143\n4321
parallelbench-sudoku@1234\n3412\n2143\n4321@1234\n3412\n2143\n4312
END
    )" = '1 0 1 0 0 1 0 1 0 1 0 answer: expected {"input", "word"} for rule list-replace, '\
'at most 1000 items 1 0 1 0' ]
}

# follows [OPTION...] < lines "INSTRUCTION@ARGUMENTS@TEXT", "capitals N RELATION@TEXT" or
# "first PARAGRAPHS NTH WORD@TEXT": prints the verdict of score-exact on each
follows()
{
    local capitals='change_case:capital_word_frequency@{"capital_frequency":'
    local first='length_constraints:nth_paragraph_first_word@{"num_paragraphs":'
    sed -E -e "s/^capitals (.*) (.* .*)@/$capitals\1,\"capital_relation\":\"\2\"}@/" \
        -e "s/^first (.) (.) (.*)@/$first\1,\"nth_paragraph\":\2,\"first_word\":\"\3\"}@/" |
        jq -Rr 'split("@") | "ifeval@" + ({instruction_id_list: [.[0]],
            kwargs: [.[1] | fromjson? // .]} | tojson) + "@" + .[2]' | verdicts "$@"
}

@test "IFEval: each instruction is tested with a text that follows it and one that does not" {
    [ "$(follows << 'END'
keywords:existence@{"keywords":["rock","ISLAND"]}@A Rocky İsland
keywords:existence@{"keywords":["rock","sea"]}@Rock
keywords:existence@{"keywords":["P.S"]}@PxS
keywords:forbidden_words@{"forbidden_words":["rock"]}@rocks, sea_rock
keywords:forbidden_words@{"forbidden_words":["rock"]}@the ROCK.
keywords:frequency@{"keyword":" war ","frequency":2,"relation":"at least"}@War, warm
keywords:frequency@{"keyword":"What?","frequency":2,"relation":"less than"}@wha what
keywords:letter_frequency@{"letter":"K","let_frequency":3,"let_relation":"at least"}@kKK
keywords:letter_frequency@{"letter":"o","let_frequency":1,"let_relation":"less than"}@No
length_constraints:number_words@{"num_words":3,"relation":"less than"}@don't go
length_constraints:number_words@{"num_words":3,"relation":"at least"}@हि one two-
length_constraints:number_paragraphs@{"num_paragraphs":2}@***\na\n***\nb\n***
length_constraints:number_paragraphs@{"num_paragraphs":2}@a\n***\n \n***\nb
first 2 2 Yes@No\n\n'"YES, no
first 2 1 no@No\n\n\n\n
detectable_content:number_placeholders@{"num_placeholders":2}@[a] [[b]
detectable_content:number_placeholders@{"num_placeholders":1}@[a\n]
detectable_content:postscript@{"postscript_marker":"P.P.S"}@Bye. p. P.s
detectable_content:postscript@{"postscript_marker":"P.S."}@Bye. PS.
detectable_format:number_bullet_lists@{"num_bullets":3}@* a\n ** b\n*\nc\n\n -d
detectable_format:number_bullet_lists@{"num_bullets":1}@a * b
detectable_format:constrained_response@{}@So: My answer is maybe. Yes.
detectable_format:constrained_response@{}@my answer is no.
detectable_format:number_highlighted_sections@{"num_highlights":2}@*a* **b** * *
detectable_format:number_highlighted_sections@{"num_highlights":1}@*a\nb* **
detectable_format:multiple_sections@{"section_spliter":"Day","num_sections":2}@Day 1 a\nDay2
detectable_format:multiple_sections@{"section_spliter":"Day","num_sections":2}@Day 1 DAY 2
detectable_format:json_format@{}@```JSON\n{"a": [NaN, -1.5e3, "\ud800"], "a": null}\n```
detectable_format:json_format@{}@{"a": [1,]}
detectable_format:title@{}@a <<b> c>>
detectable_format:title@{}@<<>>>
combination:two_responses@{}@a ****** b ******
combination:two_responses@{}@a ****** ****** b
combination:two_responses@{}@a******a
combination:repeat_prompt@{"prompt_to_repeat":"Say X. "}@ say x. Then
combination:repeat_prompt@{"prompt_to_repeat":"Say X."}@OK: say X.
startend:end_checker@{"end_phrase":"The end."}@It was THE END."
startend:end_checker@{"end_phrase":"The end."}@The end. Bye
startend:quotation@{}@ "a" "b"
startend:quotation@{}@"
capitals 4 less than@A-B cannot U.S.A. Be A1
capitals 4 at least@CANNOT. I'M 1 x
capitals 3 less than@IT'S, OK
punctuation:no_comma@{}@a， b; c
punctuation:no_comma@{}@a, b
punctuation:no_comma@{}@
END
    )" = "1 0 1 1 0 1 0 1 0 0 1 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 0 1 0 1 0 1 0 "\
"1 1 0 1 0 0" ] ||
        { jq -r '.value // .message' got | paste -sd ' '; false; }
}

@test "IFEval: all instructions must be followed; loose removes lines and stars first" {
    local two='["punctuation:no_comma","startend:quotation"],"kwargs":[{},{}]}'
    two='{"instruction_id_list":'$two
    local lines='ifeval@'$two'@"a b"
ifeval@'$two'@"a, b"
ifeval@'$two'@Sure:\n"a b"
ifeval@'$two'@*"a b"*'
    [ "$(verdicts <<< "$lines")" = "1 0 0 0" ]
    [ "$(verdicts --find loose <<< "$lines")" = "1 0 1 1" ]
}

@test "IFEval: no verdict if the count of capital words depends on where nltk ends a sentence" {
    follows << 'END' > said
capitals 2 at least@IT'S. so
capitals 1 at least@IT'S. so
capitals 3 at least@IT'S. so
END
    [ "$(< said)" = "the number of words in capitals depends on where nltk ends a sentence 1 0" ]
}

@test "IFEval: unfit arguments, and patterns that take too many steps, are refused" {
    local long start=$SECONDS
    long=$(head -c 16000 /dev/zero | tr '\0' a)
    follows << END || true
keywords:existence@{"keywords":[]}@a
keywords:existence@{"keywords":"a"}@a
keywords:existence@{"keywords":[1]}@a
keywords:existence@{"keywords":["[a-z]"]}@a
keywords:existence@{"keywords":["(?=a)"]}@a
keywords:existence@{"keywords":["a++"]}@a
keywords:existence@{"keywords":["(a"]}@a
keywords:existence@{"keywords":["\\\\Qa"]}@a
keywords:frequency@{"keyword":"a","frequency":0,"relation":"at least"}@a
keywords:frequency@{"keyword":"a","frequency":1e999,"relation":"at least"}@a
keywords:frequency@{"keyword":"a","frequency":1e300,"relation":"at least"}@a
keywords:frequency@{"keyword":"a","frequency":"1","relation":"at least"}@a
keywords:frequency@{"keyword":"a","frequency":1,"relation":"at most"}@a
keywords:letter_frequency@{"letter":"#","let_frequency":1,"let_relation":"at least"}@a
first 1 9 a@a
length_constraints:number_sentences@{"num_sentences":1,"relation":"at least"}@a
punctuation:no_comma@x@a
keywords:existence@{"keywords":["a*a*a*x?\$"]}@${long}b
keywords:existence@{"keywords":["a*"]}@$long$long
END
    jq -r '.value // .value_reason // .message' got > said
    [ "$(grep -c 'expected words\|1 to 32 words\|plain words' said)" -eq 7 ]
    [ "$(grep -c 'a number above 0' said)" -eq 2 ]
    [ "$(grep -c 'takes too many steps' said)" -ge 2 ]
    grep 'missing closing parenthesis' said
    grep 'kwargs: expected an object' said
    grep 'less than, or at least' said
    grep 'a letter from a to z' said
    grep 'an integer up to num_paragraphs' said
    grep "length_constraints:number_sentences' is not checked here" said
    [ $((SECONDS - start)) -lt 20 ]
}

@test "a row leaves items out, with a count for each reason" {
    printf '{"key":%d,"prompt":"Say %d.","instruction_id_list":["%s"],"kwargs":[%s]}\n' \
        1 1 punctuation:no_comma '{"letter":null}' 2 2 length_constraints:number_sentences '{}' \
        3 3 length_constraints:number_sentences '{}' 4 4 language:response_language '{}' \
        5 5 keywords:letter_frequency '{"letter":"#"}' > items
    run --separate-stderr -0 "$BIN/prep-prompts" --no-meta --task ifeval items
    [ "$(jq -c '[.id, .text, (.answer | fromjson | .kwargs)]' <<< "$output")" = \
      '["ifeval-1","Say 1.",[{"letter":null}]]' ]
    [[ "$stderr" == *"2 items left out: length_constraints:number_sentences needs"* ]]
    [[ "$stderr" == *"1 items left out: language:response_language needs"* ]]
    [[ "$stderr" == *"1 items left out: keywords:letter_frequency of a sign"* ]]
}

# own_task: makes a task whose programs are shell scripts
own_task()
{
    jq -cn '{schema: "crossover/1", kind: "task", run: "t", name: "sh", rule: {type: "program",
        run: ["sh", "-c", ". ./program; echo \"<<proof>>\""], cpu_seconds: 2, wall_seconds: 4,
        memory_mib: 256}}' > own
}

@test "long runs of numbers, of white space and of brackets take no quadratic time" {
    run_of() { head -c 200000 /dev/zero | tr "\0" "$1"; }
    local start=$SECONDS
    [ "$(verdicts <<< "gsm8k@7@$(run_of x | sed "s/x/7 /g")")" = 1 ]
    { run_of " "; echo b; run_of "["; echo; echo "c[]"; } |
        jq -Rsc '{ind: 4, activity_label: "T", ctx_a: ("a" + .), ctx_b: "", endings: ["a", "b"],
            label: "1"}' > items
    "$BIN/prep-prompts" --no-meta --task hellaswag --shots 0 items > got
    [ "$(jq -r .text got | wc -c)" -gt 200000 ]
    [ $((SECONDS - start)) -lt 20 ]
}

@test "a program that does harm loses only its own answer" {
    own_task
    [ "$(verdicts --tasks own << 'END' | sed 's/no sandbox.*/none/'
sh@<<response>>@true
END
    )" = 1 ] || skip "no sandbox can be made here"
    echo 64 > secret
    start=$SECONDS
    [ "$(verdicts --tasks own << END
sh@x=2; <<response>>; [ "\$x" = 3 ] || exit 1@x=3
sh@<<response>>@b() { b | b & }; b
sh@<<response>>@while :; do :; done
sh@<<response>>@exec sleep 60
sh@<<response>>@exec sleep 60 >&-
sh@<<response>>@echo y >&3 || exit 1
sh@<<response>>@x=\$(cat $PWD/secret) || exit 1
sh@<<response>>@echo x > $PWD/outside || exit 1
sh@<<response>>@echo x > /usr/outside || exit 1
sh@<<response>>@exec 3<> /dev/tcp/127.0.0.1/22
sh@<<response>>@x=y; while :; do x=\$x\$x; done
sh@<<response>>@while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done > big
sh@<<response>>@kill -9 -1
sh@<<response>>@exit 0
sh@<<response>>@echo y > here && read x < here
sh@<<response>>@printf 'a\\000b'
END
    )" = "1 0 0 0 0 0 0 0 0 0 0 0 1 0 1 1" ] || { cat got; false; }
    [ ! -e outside ] && [ ! -e /usr/outside ] && [ $((SECONDS - start)) -lt 60 ]
}

@test "Python programs: processes, sockets and memory are refused, threads and files are not" {
    [ -x /usr/bin/python3 ] || skip "no /usr/bin/python3"
    [[ "$(verdicts <<< 'mbpp@<<response>>\nassert f(2) == 4@def f(x): return 2 * x')" == 1 ]] ||
        skip "no sandbox can be made here"
    [ "$(verdicts << 'END'
humaneval@def f(x):\n    <<response>>\nassert f(2) == 4@return x * x\nprint(f(2))
humaneval@def f(x):\n    <<response>>\nassert f(2) == 4@return x
mbpp@<<response>>\nassert f(2) == 4@f = abs[DONE]
mbpp@<<response>>@import os\nos.fork()
mbpp@<<response>>@import os\nos.setsid()
mbpp@<<response>>@import os\nos.memfd_create("x")
mbpp@<<response>>@import socket\nsocket.socket()
mbpp@<<response>>@x = bytearray(10 << 30)
mbpp@<<response>>@import os\nassert os.listdir('/proc')
mbpp@<<response>>@import sys\nsys.exit(0)
mbpp@<<response>>@import sys\nsys.stdin.read()
mbpp@<<response>>@import threading\nt = threading.Thread(target=print)\nt.start()
mbpp@<<response>>@open('x', 'w').write('y')\nassert open('x').read() == 'y'
mbpp@<<response>>@print('x' * 8150)
mbpp@<<response>>@print('\ud800')
mbpp@<<response>>@import sys\nassert not sys.stdout.encoding and not sys.stderr.encoding
mbpp@<<response>>@import atexit, os\natexit.register(lambda: os._exit(3))
mbpp@<<response>>\nassert f.__code__.co_filename == '<string>'@def f(): pass
mbpp@<<response>>@import os\nos.system('true')
mbpp@<<response>>@import os\nos.environ['x'] = 'y'
mbpp@<<response>>@try:\n    exit()\nexcept SystemExit:\n    pass
mbpp@<<response>>@import resource
mbpp@<<response>>@import tempfile\ntempfile.NamedTemporaryFile().close()
END
    )" = "1 0 0 0 0 0 0 0 0 0 0 1 1 1 1 1 1 1 0 0 0 0 1" ]
}

@test "without an interpreter there is no verdict but a reason" {
    own_task
    sed -i 's/"sh","-c"/"no-such-shell","-c"/' own
    verdicts --tasks own <<< 'sh@<<response>>@true' | grep -E '^(the interpreter is not|no sandbox)'
    [ "$(jq -c 'select(.summary) | [.value, .n]' got)" = '[null,0]' ]
}

@test "choice: texts are cut as in lm-eval, with three accuracies; diffusion gives bounds" {
    cat > q << 'END'
{"id":"a","text":"Now she has ","choices":["5 apples.","é the of"],"right_choice":0}
{"id":"b","text":"Tom went to the","choices":["xq zzk","park."],"right_choice":0}
{"id":"c","text":"no choices"}
END
    m=$ROOT/data/models
    run -1 --separate-stderr "$BIN/score-ppl" -q --no-meta --mode choice -m "$m/llama-demo" q
    echo "$output" > got
    conforms got
    [ "$(jq -r 'select(.metric == "choice_accuracy") | .value' got | paste -sd ' ')" = "1 0 0.5" ]
    [ "$(jq -r 'select(.summary) | .n' got | sort -u)" = 2 ]
    [[ "$(jq -r 'select(.kind == "error").message' got)" == *"expected \`choices\`, two or more"* ]]
    jq -c 'select(.choices) | {id, text: (.text | rtrimstr(" ")),
        reference: (" " + .choices[])} | .id += .reference' q |
        "$BIN/score-ppl" -q --no-meta --mode nll --target reference -m "$m/llama-demo" |
        jq 'select(.id).value' > nll
    jq '.choice_nats[]?' got | diff - nll
    # a question that comes twice counts once
    "$BIN/score-ppl" -q --no-meta --mode choice -m "$m/llama-demo" <(head -1 q) <(head -1 q) > got
    [ "$(jq -c 'select(.summary) | select(.metric == "choice_accuracy") | [.value, .n]' got)" = \
      "[1,1]" ]
    jq -c 'select(.id == "a") | .choices[0] = ""' q > empty # its nats would be 0: the least
    run -65 --separate-stderr "$BIN/score-ppl" -q --no-meta --mode choice -m "$m/llama-demo" empty
    [[ "$output$stderr" == *"expected \`choices\`, a list of strings that are not empty"* ]]
    jq -c 'select(.id == "a") | .id = "d" | .choices[0] = "5 apples.."' q |
        "$BIN/score-ppl" -q --no-meta --mode choice -m "$m/llama-demo" > long
    # The verdicts follow from the nats and the lengths, in characters and in bytes.
    for norm in "accuracy 1 1" "accuracy_norm 10 8" "accuracy_bytes 10 9"; do
        read -r name one two <<< "$norm"
        jq -cn --arg n "choice_$name" --argjson one "$one" --argjson two "$two" '[inputs |
            select(.id == "d")] | (.[0].choice_nats | .[0] / $one <= .[1] / $two) ==
            (map(select(.metric == $n))[0].value == 1)' long | grep -qx true
    done
    "$BIN/score-ppl" -q --no-meta --mode choice --samples 16 -m "$m/llada-demo" <(head -2 q) > got
    conforms got
    [ "$(jq -r 'select(.summary) | .metric + ": " + .method' got | head -1)" = \
      "bound_choice_accuracy: least bound, Wilson interval" ]
}
