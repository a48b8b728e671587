#!/usr/bin/env bats
# prep-prompts: the prompts of each format, their choice, and refusals.
bats_require_minimum_version 1.5.0
load conforms
load tool

setup()
{
    enter
    DATA=$ROOT/tests/fixtures
}

prep() { "$BIN/prep-prompts" "$@"; }

ids() { jq -r 'select(.kind == "prompt").id' "$@" | paste -sd ' '; }

@test "ShareGPT: turns and speakers are read, and one broken record fails only itself" {
    run -1 --separate-stderr prep --no-meta "$DATA/sharegpt.json"
    echo "$output" > got
    [ "$(ids got)" = "talk_1 talk_4 talk_6" ]
    [ "$(jq -r 'select(.id == "talk_1") | .text, .reference' got)" = \
      "$(printf 'What is the colour of a clear sky?\nBlue.\nBy day, that is.')" ]
    [ "$(jq -r 'select(.kind == "error") | .code, .where' got)" = \
      "$(printf 'bad_data\n%s:13' "$DATA/sharegpt.json")" ]
    [ "$(jq -r 'select(.id == "talk_6").source' got)" = sharegpt.json ]
    conforms got
    prep --no-meta --skip-broken "$DATA/sharegpt.json" > kept
    [ "$(wc -l < kept)" -eq 3 ]
    [ "$(prep --no-meta --skip-broken --min-turns 1 "$DATA/sharegpt.json" | ids)" = \
      "talk_1 talk_2 talk_4 talk_6" ]
}

@test "WikiText: a line is a paragraph, headings are dropped, its second half is the reference" {
    prep --no-meta "$DATA/wiki.test.raw" > got
    [ "$(ids got)" = "wiki.test-1 wiki.test-2 wiki.test-3" ]
    [ "$(jq -r '.text' got | head -1)" = "A kettle stood on the" ]
    [ "$(jq -r '.reference' got | head -1)" = " stove and sang ." ]
    [ "$(prep --no-meta --split 3 "$DATA/wiki.test.raw" | jq -r .text | tail -1)" = \
      "Water @-@ cold" ]
    [ "$(prep --no-meta --split none "$DATA/wiki.test.raw" | jq -r '.reference // "none"' |
         sort -u)" = none ]
}

@test "JSON lines: usual and named fields are read, and the answer of GSM8K" {
    printf '{"question":"Two and two?","answer":"2+2=4 so\\n#### 4 "}\n' > gsm.jsonl
    prep --no-meta gsm.jsonl > got
    [ "$(jq -c '[.id, .text, .reference, .answer]' got)" = \
      '["gsm-1","Two and two?","2+2=4 so\n#### 4 ","4"]' ]
    printf '{"n":7,"q":"a","r":"b","a":12,"k":"sum"}\n{"q":"c"}\n{"other":1}\n' > x.jsonl
    run -1 --separate-stderr prep --no-meta --field q --reference-field r --answer-field a \
        --id-field n --task-field k x.jsonl
    [ "$(echo "$output" | sed -n 1p | jq -c '[.id, .text, .reference, .answer, .task]')" = \
      '["7","a","b","12","sum"]' ]
    [ "$(echo "$output" | sed -n 2p | jq -r .id)" = x-2 ]
    echo "$output" | sed -n 3p | grep -q '"kind":"error".*field \\"q\\"'
}

@test "plain text: a prompt is a paragraph, byte for byte" {
    printf '\xef\xbb\xbfOne \r\n  two\t.\r\n\r\n\n\nThree \xe2\x80\xa8 four' > p.txt
    prep --no-meta p.txt > got
    printf '["p-1","One \\n  two\\t."]\n["p-2","Three \xe2\x80\xa8 four"]\n' > want
    jq -c '[.id, .text]' got | cmp want -
    # the first byte of the first character is that of a byte order mark
    printf '\xef\xbc\xa1 b\n' > wide.txt
    [ "$(prep --no-meta wide.txt | jq -r .text)" = "$(printf '\xef\xbc\xa1 b')" ]
    printf '\n \n \t One\n two\n' > indented.txt
    [ "$(prep --no-meta indented.txt | jq -c .text)" = '" \t One\n two"' ]
    printf '   \xff\n\ntwo\n' > broken.txt
    [ "$(prep --no-meta broken.txt | jq -r '.where // .text')" = "$(printf 'broken.txt:1\ntwo')" ]
    printf 'good\n\nb\xffd\n\nn\0l\n\nfine\n' > b.txt
    run -1 --separate-stderr prep --no-meta b.txt
    [ "$(echo "$output" | jq -r '.id // .where')" = "$(printf 'b-1\nb.txt:3\nb.txt:5\nb-4')" ]
}

@test "an instruction with input is one prompt in Alpaca's form; without input it is unchanged" {
    printf '%s\n' \
        '{"instruction":"Add.","input":"1 and 2","output":"3","text":"all of it: 3"}' \
        '{"instruction":"Greet.","input":"","output":"Hi"}' \
        '{"id":"own","instruction":"Name it.","input":"red","output":"colour"}' \
        '{"id":"odd","instruction":"x","input":7,"output":"y"}' > a.jsonl
    run -1 --separate-stderr prep --no-meta a.jsonl
    echo "$output" > got
    [ "$(jq -r '.text // empty' got | head -n 9)" = "$(printf '%s' 'Below is an instruction that ' \
        'describes a task, paired with an input that provides further context. Write a response ' \
        'that appropriately completes the request.'
        printf '\n\n### Instruction:\nAdd.\n\n### Input:\n1 and 2\n\n### Response:')" ]
    [ "$(jq -r '.reference // empty' got | xargs)" = "3 Hi colour" ]
    [ "$(jq -r '.source // empty' got | xargs)" = \
      "a.jsonl:alpaca-input a.jsonl a.jsonl:alpaca-input" ]
    [ "$(jq -r 'select(.source == "a.jsonl").text' got)" = Greet. ]
    [ "$(jq -r 'select(.kind == "error") | .id, .message' got)" = \
      "$(printf 'odd\na.jsonl:4: field "input": expected a text, got a number')" ]
    conforms got
    [ "$(prep --no-meta --limit 1 --field text a.jsonl | jq -r .text)" = "all of it: 3" ]
}

@test "messages: the last answer is the reference, not the prompt; no id is needed" {
    printf '%s\n' \
        '{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}' \
        '{"messages":[{"role":"user","content":"c"}],"reference":"d"}' \
        '{"messages":[{"role":"assistant","content":"e"}]}' > m.jsonl
    run -1 --separate-stderr prep --no-meta m.jsonl
    [ "$(jq -c 'select(.kind == "prompt") | [.id, .reference, .messages]' <<< "$output")" = \
      "$(printf '%s\n' '["m-1","b",[{"role":"user","content":"a"}]]' \
          '["m-2","d",[{"role":"user","content":"c"}]]')" ]
    [[ $output == *"m.jsonl:3: messages: expected a turn before the assistant's answer"* ]]
    prep --no-meta --limit 1 m.jsonl > once
    prep --no-meta once | cmp once -
}

@test "a worked answer is always split into answer and reference; a completion is reference" {
    printf '%s\n' '{"id":"g","text":"q","answer":"1+1 is 2\n#### 2"}' > g.jsonl
    [ "$(prep --no-meta g.jsonl | jq -c '[.id, .reference, .answer]')" = \
      '["g","1+1 is 2\n#### 2","2"]' ]
    printf '%s\n' '{"prompt":"q","completion":"c"}' > c.jsonl
    [ "$(prep --no-meta c.jsonl | jq -c '[.text, .reference]')" = '["q","c"]' ]
}

@test "a table, UTF-16 or Arrow file is refused with the command that converts it" {
    printf 'id,text\n1,"one, and two"\n' > t.csv
    gzip -k t.csv
    cp t.csv t.tsv
    for f in t.csv t.csv.gz; do
        fails 65 "mlr --icsv --ojsonl cat '$f'" prep "$f"
    done
    fails 65 "mlr --itsv --ojsonl cat 't.tsv'" prep t.tsv
    [ "$(prep --no-meta --format text t.csv | jq -r .text | head -n 1)" = "id,text" ]
    printf '{"id":"a","text":"b"}\n' > json.csv                 # nor is this
    [ "$(prep --no-meta json.csv | ids)" = a ]
    for bytes in '\xff\xfe{\0' '\xfe\xff\0{'; do
        printf "$bytes" > wide.json
        fails 65 "iconv -f UTF-16" prep wide.json
    done
    for bytes in 'ARROW1\0\0' '\xff\xff\xff\xff\x10\0\0\0'; do
        printf "$bytes" > x.arrow
        fails 65 "read_arrow('x.arrow')" prep x.arrow
    done
}

@test "skipped rows are counted and reported" {
    printf '%s\n' '{"prompt":"a"}' '{"prompt":""}' '{"prompt":" "}' > s.jsonl
    run -0 --separate-stderr prep --no-meta s.jsonl
    [[ $stderr == "prep-prompts: 2 rows skipped: no text"* ]]
    prep s.jsonl 2> /dev/null > records                        # meta and end are no rows
    run -0 --separate-stderr prep --no-meta records
    [ -z "$stderr" ]
}

@test "many broken rows: the first are error records, and one record counts the others" {
    { head -c 200000 /dev/zero | tr '\0' '\n' | sed 's/^/{"id":1}/'; echo '{"text":"good"}'; } |
        bzip2 > many.jsonl.bz2
    [ "$(stat -c %s many.jsonl.bz2)" -lt 2000 ]
    run -1 --separate-stderr prep --no-meta --format jsonl many.jsonl.bz2
    [ "$(jq -r .kind <<< "$output" | sort | uniq -c | xargs)" = "101 error 1 prompt" ]
    [ "$(tail -n 1 <<< "$output" | jq -c '[.more, .where]')" = '[199900,""]' ]
    jq -se 'map(select(.kind == "error" and (.more | not))) | all(.id == 1)' <<< "$output"
    [[ $stderr == *"200000 broken records"* ]]
    conforms <(printf '%s\n' "$output")
    prep many.jsonl.bz2 --format jsonl 2> /dev/null | tail -n 1 |
        jq -e '.records == 102 and .failed == 200000'
}

@test "a NUL byte after a number ends no record, and a refusal has a reason" {
    printf '{"text":"x","id":123\0}\n' > nul.jsonl
    printf '{"text":"x"}\0\n{"text":"y"}\n' > after.jsonl
    fails 65 "1 broken; the first: nul.jsonl:1: expected a JSON object: a NUL byte" \
        prep -o never nul.jsonl
    run -1 prep -o got after.jsonl
    [ "$(jq -r 'select(.kind == "prompt").text' got | xargs)" = "x y" ]
    [ ! -e never ]
}

@test "a small file of many broken lines ends soon" {
    yes '{' | head -n 2000000 | bzip2 > many.bz2
    [ "$(stat -c %s many.bz2)" -lt 10000 ]
    fails 65 "1000001 broken records and 0 others; the first: many.bz2:1: " prep -o never many.bz2
    run -65 "$BIN/measure" -q many.bz2 -o never
    [[ $output == *"1000001 failed records"* ]]
    head -c 269000000 /dev/zero | tr '\0' '\n' | bzip2 > blank.bz2
    fails 65 "unpack to more than 2000 times as many" prep -o never blank.bz2
}

@test "a million prompts of which few are chosen take little memory" {
    ! grep -q __asan_init "$BIN/prep-prompts" || skip "AddressSanitizer needs more"
    yes '{"text":"some text"}' | head -n 1000000 | gzip > million.jsonl.gz
    bash -c "ulimit -v 100000; '$BIN/prep-prompts' --no-meta --count 10 million.jsonl.gz" > got
    [ "$(wc -l < got)" -eq 10 ]
}

@test "prompt records pass with all their fields" {
    printf '%s\n' '{"id":"a","text":"x","own":[1,{"y":null}],"task":"sum"}' \
        '{"id":5,"prompt_ids":[1,2]}' | prep > got
    [ "$(ids got)" = "a 5" ]
    [ "$(jq 'select(.id == "a") | .own == [1, {"y": null}]' got)" = true ]
    conforms got
    prep --no-meta got > again
    cmp <(grep '"kind":"prompt"' got) again
    printf '{"id":"a","prompt_ids":[1,-1]}\n' > bad
    run -65 --separate-stderr prep --no-meta bad
    printf '{"schema":"crossover/1","kind":"metric","id":"a","text":"x"}\n' > bad
    run -65 --separate-stderr prep --no-meta bad
}

@test "packed data give the same prompts" {
    prep --no-meta "$DATA/wiki.test.raw" | jq -c '[.id, .text, .reference]' > want
    gzip -c "$DATA/wiki.test.raw" > wiki.test.raw.gz
    mkdir raw && cp "$DATA/wiki.test.raw" raw/ && echo other > raw/readme.txt
    tar czf wiki.tgz raw
    prep --no-meta wiki.test.raw.gz | jq -c '[.id, .text, .reference]' | cmp want -
    prep --no-meta -e '*.raw' wiki.tgz | jq -c '[.id, .text, .reference]' | cmp want -
    [ "$(prep --no-meta -e '*.raw' wiki.tgz | jq -r .source | sort -u)" = \
      wiki.tgz:raw/wiki.test.raw ]
    fails 65 "choose one with --member, such as prep-prompts --member 'raw/wiki.test.raw'" \
        prep wiki.tgz
    mkdir three && touch three/LICENSE three/README.md three/a.txt three/data.jsonl
    tar cf three.tar three/LICENSE three/README.md three/a.txt three/data.jsonl
    fails 65 "'three/LICENSE', 'three/README.md'; choose one" prep three.tar
    grep -qF "prep-prompts --member 'three/data.jsonl'" err
    head -c 100 wiki.test.raw.gz > cut.gz
    fails 65 "gzip data are cut" prep --no-meta cut.gz
    head -c 700 "$DATA/sharegpt.json" > cut.json
    fails 65 "the data end inside" prep --no-meta cut.json
    printf 'PAR1\x15\0' > x.parquet
    fails 65 "duckdb -c" prep x.parquet
}

numbers() { seq 1 "$1" | jq -c '{id: "n\(.)", text: "text \(.)", task: ["a", "b"][. % 2]}'; }

@test "the choice depends on seed and ids, not on the order" {
    numbers 500 > all
    prep --no-meta --count 20 --seed 1 all > got
    [ "$(wc -l < got)" -eq 20 ]
    sort -R --random-source=<(yes) all | prep --no-meta --count 20 --seed 1 |
        jq -r .id | sort > shuffled
    jq -r .id got | sort | cmp - shuffled
    jq -r .id got | sort -c -V                         # written in input order
    prep --no-meta --count 20 --seed 2 all | jq -r .id | sort > other
    run -1 cmp -s shuffled other
    numbers 520 | prep --no-meta --count 20 --seed 1 | jq -r .id | sort > more
    [ "$(comm -12 shuffled more | wc -l)" -ge 15 ]      # 20 more records replace few
    prep --no-meta --per-task 7 all | jq -r .task | sort | uniq -c | awk '{print $1, $2}' > tasks
    [ "$(cat tasks)" = "$(printf '7 a\n7 b')" ]
    prep --no-meta --per-task b=9,a=2 all | jq -r .task | sort | uniq -c |
        awk '{print $1, $2}' > tasks
    [ "$(cat tasks)" = "$(printf '2 a\n9 b')" ]
    prep --no-meta --per-task a=7 all > some
    prep --no-meta --per-task 7 all | jq -c 'select(.task == "a")' | cmp - some
    fails 65 "asked for 3 prompts of task c, found none" prep --no-meta --per-task a=1,c=3 all
    fails 65 "asked for 3 prompts of task c, found none" prep --no-meta --per-task c=3 all
    for bad in 0 x a= a=0 a=1, a=1,a=2 =3 a=1x a=9999999999; do
        fails 64 "expected TASK=N" prep --no-meta --per-task "$bad" all
    done
}

@test "more prompts than exist are an error, unless fewer are allowed" {
    numbers 10 > all
    fails 65 "asked for 1000 prompts, found 10 that fit (--allow-fewer, or make PROMPTS=10, takes" \
        prep --no-meta --count 1000 all
    [ ! -s out ]
    fails 65 "of task b, found 5 that fit (--allow-fewer, or make PROMPT_CHOICE=\"--per-task 5\"" \
        prep --no-meta --per-task 6 all
    fails 65 "found 5 that fit (--allow-fewer, or make PROMPT_CHOICE=\"--per-task b=5\"" \
        prep --no-meta --per-task a=1,b=6 all
    [ "$(prep --no-meta --count 1000 --allow-fewer all | wc -l)" -eq 10 ]
    [ "$(prep --no-meta --limit 3 all | ids)" = "n1 n2 n3" ]
    fails 65 "no prompts" prep --no-meta /dev/null
    fails 65 "no prompts" prep --no-meta --allow-fewer --count 3 /dev/null
}

@test "ids must be unique" {
    printf '{"id":"a","text":"x"}\n{"id":"\\u0061","text":"y"}\n' > twice
    fails 65 "id 'a' is there twice" prep --no-meta twice
    [ "$(prep --no-meta --renumber twice | ids)" = "twice-1 twice-2" ]
    printf '{"text":"a"}\n{"text":"b"}\n' > set.jsonl # generated: set-1, set-2
    printf '{"id":"set-2","text":"c"}\n' > other.jsonl
    fails 65 "id 'set-2' is there twice" prep --no-meta set.jsonl other.jsonl
    fails 65 "id 'set-2' is there twice" prep --no-meta other.jsonl set.jsonl
    printf '{"id":"set-3","text":"c"}\n{"id":"set-01","text":"d"}\n' > other.jsonl
    [ "$(prep --no-meta set.jsonl other.jsonl | ids)" = "set-1 set-2 set-3 set-01" ]
    mkdir more
    cp set.jsonl more
    fails 65 "id 'set-1' is there twice" prep --no-meta set.jsonl more/set.jsonl
    printf 'same\n\nsame\n' > same.txt
    [ "$(prep --no-meta same.txt | ids)" = "same-1 same-2" ]
}

@test "--tokens chooses prompts by their length under a tokenizer" {
    model=$ROOT/data/models/judge-demo
    [ -f "$model/tokenizer.json" ] || skip "no embedded tokenizer"
    printf '{"id":"short","text":"a"}\n{"id":"long","text":"%s"}\n' \
        "$(printf 'a b %.0s' {1..100})" > all
    [ "$(prep --no-meta --tokens 1:5 -m "$model" all | ids)" = short ]
    [ "$(prep --no-meta --tokens 50:1000 -m "$model" all | ids)" = long ]
    fails 66 nowhere prep --tokens 1:5 -m nowhere/nothing all
}

@test "--max-line and --max-bytes limit what is read" {
    printf '{"id":"a","text":"%01000d"}\n{"id":"b","text":"x"}\n' 0 > long
    run -1 --separate-stderr prep --no-meta --max-line 500 long
    [ "$(echo "$output" | ids)" = b ]
    fails 65 "limit of 100 bytes" prep --no-meta --max-bytes 100 long
}

@test "a wrong command line is refused with the option" {
    fails 64 "need each other" prep --tokens 1:2 x
    fails 64 "LO:HI" prep --tokens 3:2 -m x x
    fails 64 "exclude each other" prep --count 1 --per-task 1 x
    fails 64 "--split" prep --split third x
    fails 64 "--count" prep --count 0 x
    fails 64 "unknown option" prep --bogus
    fails 66 "No such file" prep no-such-file
    fails 66 "no-such-file" prep "$DATA/wiki.test.raw" no-such-file
    [ ! -s out ]
    echo '{"id":"a","text":"x"}' > same
    fails 64 "both input and output" prep same -o same
    fails 73 "cannot create" prep same -o no/such/folder/x
    [ "$(cat same)" = '{"id":"a","text":"x"}' ]
}

@test "a full device is an error, and an output file appears only when it is whole" {
    fails 74 "standard output" sh -c "'$BIN/prep-prompts' '$DATA/wiki.test.raw' > /dev/full"
    prep -o got "$DATA/wiki.test.raw"
    conforms got
    [ "$(tail -1 got | jq -r '.kind, .records, .status' | paste -sd ' ')" = "end 3 ok" ]
    [ "$(tail -1 got | jq -r .sha256)" = "$(head -n -1 got | sha256sum | cut -d' ' -f1)" ]
    printf 'x\n\xff\n' > bad.txt
    fails 65 "no prompts" prep -o never bad.txt
    [ ! -e never ]
    [ -z "$(ls -A | grep tmp)" ]
}

@test "a hundred thousand records take bounded memory" {
    ! grep -q __asan_init "$BIN/prep-prompts" || skip "AddressSanitizer needs more"
    awk 'BEGIN { for (i = 0; i < 100000; i++)
        printf "{\"id\":\"p%d\",\"text\":\"some text %d\"}\n", i, i }' > many
    bash -c "ulimit -v 262144; '$BIN/prep-prompts' --no-meta --count 100 many" > got
    [ "$(wc -l < got)" -eq 100 ]
}

@test "prompts too long for the model with its answer are left out and counted" {
    { jq -nc '{id: "long", text: ("word " * 500)}'; echo '{"id":"short","text":"one two"}'; } > in
    "$BIN/prep-prompts" --fits synth:tiny-llada,synth:tiny-llama --room 64 --no-meta in \
        > got 2> said
    [ "$(jq -r .id got)" = short ]
    grep -q "1 prompts left out: with 64 tokens for the answer they do not fit " said
    "$BIN/prep-prompts" --fits synth:tiny-llama --room 3 --no-meta in > got
    [ "$(jq -r .id got | xargs)" = "long short" ]
    fails 64 "--room needs --fits" prep --room 3 in
}

@test "the project's own prompts have kinds, references and answers that fit" {
    H=$BATS_TEST_DIRNAME/../../data/prompts/human.ndjson
    "$BIN/prep-prompts" -q "$H" -o human
    jq -se 'map(select(.kind == "prompt")) | length == 40 and (map(.id) | unique | length) == 40
        and all(.reference | startswith(" ")) and ([.[].task] | unique | length) == 5' human
    # the last number of the reference is the answer, as score-exact reads it
    jq 'select(.answer) | .reference | [scan("[0-9]+")][-1]' "$H" > last
    jq 'select(.answer) | .answer' "$H" | cmp - last
    [ "$(wc -l < last)" -ge 5 ] && [ "$(wc -c < "$H")" -lt 60000 ]
}

@test "system-text writes each paragraph of manual pages and licences once, without troff" {
    mkdir -p man/man1 man/man3 licences fortunes
    words='one two three four five six seven eight nine ten eleven twelve thirteen'
    { printf '.TH X 1\n.SH NAME\nx \\- short\n.SH TEXT\n.B bold\n'
      printf 'is \\fIalso\\fR here \\(lqquoted\\(rq:\n'
      printf '%s\n' "$words" "$words" "$words"
      printf '.nf\n%s\n.fi\n.TP\n\\-x\nan option\n' "$words $words $words $words"; } |
        gzip > man/man1/x.1.gz
    cp man/man1/x.1.gz man/man1/y.1.gz
    cp man/man1/x.1.gz man/man3/z.3.gz
    echo "$words $words $words $words licence" > licences/L
    ln -s L licences/M
    printf 'short\n%%\n%s\n%%\n' "$words $words $words $words fortune" > fortunes/f
    MAN=man LICENCES=licences FORTUNES=fortunes \
        "$BATS_TEST_DIRNAME/../../pipelines/bin/system-text" > text
    cat text
    [ "$(grep -c '^= ' text)" -eq 4 ] && [ "$(grep -vc '^= ' text)" -eq 3 ]
    grep -q '^bold is also here "quoted": one two .* thirteen$' text
    "$BIN/prep-prompts" -q text -o prompts
    jq -se 'map(select(.kind == "prompt")) | length == 3 and all(.reference != null)' prompts
}
