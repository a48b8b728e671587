#!/usr/bin/env bats
# Tests gen-endpoint against the server tests/fixtures/server.c. The prompt says how the server
# behaves.
bats_require_minimum_version 1.5.0
load conforms
load tool

setup()
{
    enter
    [ -x "$BIN/gen-endpoint" ] || skip "built without libcurl"
    SERVER=${TESTBIN:-$ROOT/build/tests}/fixtures/server
    "$SERVER" > port 3>&- &
    PID=$!
    until [ -s port ]; do sleep 0.02; done
    URL=http://127.0.0.1:$(< port)/v1
    M=$ROOT/data/models/llama-demo
}

teardown()
{
    [ -z "${PID-}" ] || kill "$PID"
}

# ask OPTIONS... PROMPT...: makes the records of these prompts; the text of a prompt is its id
ask()
{
    local options=()
    while [[ ${1-} = -* ]]; do
        options+=("$1" "$2")
        shift 2
    done
    printf '%s\n' "$@" | jq -Rc '{id: ., text: .}' |
        "$BIN/gen-endpoint" -q --no-meta --url "$URL" "${options[@]}" > out
}

# The most requests that the server had open at once.
peak()
{
    local port=${URL#http://127.0.0.1:}
    exec 9<> "/dev/tcp/127.0.0.1/${port%/v1}"
    printf 'GET /peak HTTP/1.1\r\n\r\n' >&9
    sed -n '/peak/{s/[^0-9]//gp;q}' <&9
    exec 9>&-
}

# of ID FILTER: prints what the filter makes of the record of prompt ID
of() { jq -c --arg id "$1" "select(.id == \$id) | $2" out; }

@test "an answer has its text, the counts of server and tokenizer, and one token an emission" {
    ask -m "$M" --gen-length 8 good
    [ "$(of good '[.text, .new_tokens, .usage_tokens, .retokenized_tokens, .emit_tokens,
        .stop]')" = '["The cat sat.",4,5,4,[1,1,1,1],"eos"]' ]
    [ "$(of good '[.stack, .model, .arch, .device, .batch]')" = \
        '["scripted 7.1","llama-demo","endpoint","remote",1]' ]
    # the server sleeps 20 ms after the first emission
    [ "$(of good '.emit_ns | (.[1] - .[0] >= 19e6) and .[0] >= 0 and . == sort')" = true ]
    [ "$(of good '.e2e_ns >= .emit_ns[-1] and .batch_ns >= .e2e_ns and
        .ttft_ns == .emit_ns[0]')" = true ]
    conforms out
}

@test "chat: messages are sent as they are, and a text as the message of a user" {
    ask -m "$M" --api chat good
    [ "$(of good '[.text, .api]')" = '["The cat sat.","chat"]' ]
    echo '{"id":"m","messages":[{"role":"user","content":"usage"}]}' > m.ndjson
    run -1 "$BIN/gen-endpoint" -q --no-meta --url "$URL" -m "$M" --api chat m.ndjson
    grep -q "counts 50 tokens" <<< "$output" # so the server has read the message
    run -1 "$BIN/gen-endpoint" -q --no-meta --url "$URL" m.ndjson
    grep -q "messages need --api chat" <<< "$output"
}

@test "chat: reasoning is one text under either of its two names" {
    ask -m "$M" --api chat think
    [ "$(of think '[.text, .new_tokens]')" = '["The cat sat.",4]' ]
}

@test "a request that the server mistreats fails with a message; other requests are answered" {
    local status=0
    ask -m "$M" --timeout 0.4 --gen-length 16 --concurrency 2 good die hang json half usage prompt \
        status error cut last long comments empty "good too" || status=$?
    [ "$status" -eq 1 ]
    conforms out
    [ "$(jq -r 'select(.kind == "generation").id' out | sort | paste -sd ,)" = "good,good too" ]
    told() { [ "$(of "$1" .kind)" = '"error"' ] && of "$1" .message | tee message | grep -q "$2"; }
    told die "the connection failed: "
    told hang "no text within the time of --timeout"
    told comments "no text within the time of --timeout"
    told empty "no text within the time of --timeout" # an empty event is no progress
    told json "event 3: expected JSON"
    told half "event 3: half a UTF-8 character at byte"
    told usage "usage: the server counts 50 tokens, its text has 4"
    told prompt "usage: the server counts 70 tokens in the prompt"
    told status "HTTP status 500: out of paper"
    told error "the server answers: the model is gone"
    told cut "without a finish_reason"
    told last "expected no text after a finish_reason"
    told long "more text than the requested tokens allow"
    [ "$(jq -s 'map(select(.kind == "error" and (.where | test("^standard input:[0-9]+$")))) |
        length' out)" -eq 13 ]
    run -1 ask --gen-length 1 flood
    grep -q "65601 events: more than the requested tokens allow" <(of flood .message)
}

@test "an answer ends at [DONE], even if the connection stays open" {
    ask -m "$M" --timeout 20 open good
    [ "$(of open '[.text, .new_tokens]')" = '["The cat sat.",4]' ]
    [ "$(of open '.batch_ns < 5e9')" = true ]
    local from=$SECONDS
    ask --timeout 20 open
    [ $((SECONDS - from)) -lt 10 ]
}

@test "a list of models that is cut or has no end is not accepted" {
    echo '{"id":"a","text":"good"}' > p.ndjson
    fails 69 "no whole answer: the connection failed" \
        "$BIN/gen-endpoint" -q --url "${URL/v1/cut/v1}" p.ndjson
    fails 69 "no whole answer: an answer of more than 1048576 bytes" \
        "$BIN/gen-endpoint" -q --url "${URL/v1/big/v1}" p.ndjson
}

@test "names are UTF-8: a long server name is cut at a whole character" {
    echo '{"id":"a","text":"good"}' > p.ndjson
    "$BIN/gen-endpoint" -q --url "${URL/v1/name/v1}" p.ndjson > out
    [ "$(jq -r 'select(.kind == "meta") | .endpoint.stack' out)" = \
        "01234567890123456789012345678901234567890123456789012345678 7.1" ]
    [ "$(of a '.stack | length')" -eq 63 ]
    for option in --stack --served; do
        fails 64 "$option: expected UTF-8" \
            "$BIN/gen-endpoint" -q --url "$URL" "$option" $'a\xc3' p.ndjson
    done
}

@test "a server that ends makes later requests fail; without a server the exit code is 69" {
    ask good
    kill "$PID"
    wait "$PID" 2> /dev/null || :
    PID=
    echo '{"id":"a","text":"good"}' > p.ndjson
    fails 69 "no server" "$BIN/gen-endpoint" -q --url "$URL" p.ndjson
    [ ! -s out ]
    "$SERVER" > port2 3>&- &
    PID=$!
    until [ -s port2 ]; do sleep 0.02; done
    printf '%s\n' "wait 300" "wait 301" "wait 302" | jq -Rc '{id: ., text: .}' > p.ndjson
    "$BIN/gen-endpoint" -q --url "http://127.0.0.1:$(< port2)/v1" p.ndjson > out &
    local tool=$!
    sleep 0.45
    kill "$PID" # and with it the processes of its connections
    PID=
    local status=0
    wait $tool || status=$?
    [ "$status" -eq 1 ]
    [ "$(jq -sc 'map(.kind)' out)" = '["meta","generation","error","error","end"]' ]
    [ "$(jq -s 'last | [.failed, .status] == [2, "failed"]' out)" = true ]
    conforms out
}

@test "events are read if cut at any byte, with comments and CR LF; so is a body without events" {
    ask -m "$M" good bytes plain
    [ "$(of bytes '[.text, .new_tokens, .emit_tokens]')" = \
        "$(of good '[.text, .new_tokens, .emit_tokens]')" ]
    [ "$(of plain '[.text, .new_tokens, .emit_tokens, .ttft_ns == .e2e_ns]')" = \
        '["The cat sat.",4,[4],true]' ]
}

@test "several tokens in an emission are counted by their bytes; without -m the number is null" {
    ask -m "$M" euro
    of euro '[.text, .new_tokens, .retokenized_tokens, .emit_tokens]'
    [ "$(of euro '.text == "The c€ sat." and (.emit_tokens | add) == .new_tokens
        and .emit_tokens[1] > 1')" = true ]
    ask euro
    [ "$(of euro '[.new_tokens, .emit_tokens, .retokenized_tokens,
        .retokenized_tokens_reason]')" = '[6,null,null,"no tokenizer (-m)"]' ]
    conforms out
}

@test "without -m one token that the server counts beyond the emissions ended the text" {
    ask good nothing
    [ "$(of good '[.new_tokens, .usage_tokens, .emit_tokens]')" = '[4,5,[1,1,1,1]]' ]
    [ "$(of nothing '[.new_tokens, .ttft_ns, .ttft_ns_reason]')" = '[0,null,"no text"]' ]
    conforms out
}

@test "tokens that the server counts but the text lacks belong to the last emission" {
    ask -m "$M" length
    [ "$(of length '[.stop, .new_tokens, .retokenized_tokens, .emit_tokens]')" = \
        '["length",6,4,[1,1,1,3]]' ]
}

@test "without the server's count the tokenizer counts; without a tokenizer the request fails" {
    ask -m "$M" none
    [ "$(of none '[.new_tokens, .usage_tokens, .usage_tokens_reason]')" = \
        '[4,null,"the server counts none"]' ]
    run -1 ask none
    of none .message | grep -q "name its tokenizer with -m"
}

@test "a prompt that the server had in a cache is reported (W118)" {
    printf '%s\n' cached good | jq -Rc '{id: ., text: .}' > p.ndjson
    "$BIN/gen-endpoint" --no-meta --url "$URL" --warmup 2 p.ndjson > out 2> err
    [ "$(grep -c . err)" -eq 1 ] && grep -q "W118: 1 timed prompts were in the server's cache" err
    [ "$(jq -sc 'map(select(.phase == "timed") | .cached_tokens) | sort' out)" = '[null,2]' ]
}

@test "closed loop: --concurrency sets the number of requests in flight" {
    local words=()
    for i in 1 2 3 4 5 6 7 8 9; do words+=("wait 6$i"); done
    ask --concurrency 3 "${words[@]}"
    [ "$(peak)" -eq 3 ]
    [ "$(jq -s 'map(.batch) | unique == [3]' out)" = true ]
    # one load, one batch: three rounds of 60 ms and more
    [ "$(jq -s '[(map(.batch_id) | unique | length), (map(.batch_ns) | unique | length),
        .[0].batch_ns >= 180e6, (map(.admit_ns) | max) >= 120e6]' out | tr -d ' \n')" = \
        '[1,1,true,true]' ]
}

@test "open loop: requests are due at their times, however long the answers take" {
    ask --loop open --arrival-rate 50 --arrivals even "wait 101" "wait 102" "wait 103" "wait 104"
    [ "$(jq -sc 'map(.admit_ns) | sort' out)" = '[0,20000000,40000000,60000000]' ]
    [ "$(jq -s 'map(.e2e_ns >= 101e6 and .e2e_ns < 170e6) | all' out)" = true ]
    [ "$(jq -sc '[.[0].loop, .[0].arrival_rate, .[0].batch]' out)" = '["open",50,null]' ]
    conforms out
    ask --seed 5 --loop open --arrival-rate 100 1 2 3 4 5 6 7 8
    jq -sc 'map(.admit_ns)' out > first
    ask --seed 5 --loop open --arrival-rate 100 1 2 3 4 5 6 7 8
    jq -sc 'map(.admit_ns)' out | diff - first # the gaps are drawn from the seed
    ask --seed 6 --loop open --arrival-rate 100 1 2 3 4 5 6 7 8
    ! jq -sc 'map(.admit_ns)' out | cmp -s - first
}

@test "points, prompt order and identity of the set are as in all other generators" {
    printf '{"id":"%s","text":"good"}\n' a b c d > p.ndjson
    "$BIN/gen-llama" -q -m "$M" --gen-length 1 --no-meta p.ndjson | jq -r .workload | sort -u > ours
    "$BIN/gen-endpoint" -q --no-meta --url "$URL" -m "$M" --concurrency 1,2 --gen-length 4,8 \
        --repeat 2 --warmup 1 p.ndjson > out
    jq -r .workload out | sort -u | diff - ours
    [ "$(jq -s '[(map(.point) | unique | length), (map(select(.phase == "timed")) | length),
        (map(select(.phase == "warmup")) | length)]' out | tr -d ' \n')" = '[4,32,8]' ]
    [ "$(jq -s 'map(select(.phase == "timed") | [.point, .round, .id]) | length ==
        (unique | length)' out)" = true ]
    schedule() { "$BIN/schedule" -q --no-meta --systems endpoint "$@"; }
    schedule --batch 1,2 --gen-length 4 --launches 2 > s.ndjson
    conforms s.ndjson
    "$BIN/gen-endpoint" -q --no-meta --url "$URL" --schedule s.ndjson --launch 1 p.ndjson > out
    [ "$(jq -sc 'map(.batch) | unique' out)" = '[1,2]' ]
    [ "$(jq -s 'map(.launch) | unique == [1]' out)" = true ]
}

@test "more members of a request are part of the point; an API key is never in a record" {
    echo '{"id":"a","text":"good"}' > p.ndjson
    local plain other
    plain=$("$BIN/gen-endpoint" -q --no-meta --url "$URL" p.ndjson | jq -r .point)
    other=$(MY_KEY=tr0ub4dor "$BIN/gen-endpoint" -q --url "$URL" --key-env MY_KEY \
        --body '{"cache_prompt":false}' p.ndjson | tee out | jq -r '.point // empty')
    [ -n "$other" ] && [ "$plain" != "$other" ]
    [ "$(of a .conditions)" = '"body={\"cache_prompt\":false}"' ]
    ! grep -q tr0ub4dor out
    fails 64 "--body: expected a JSON object" "$BIN/gen-endpoint" -q --url "$URL" --body 3 p.ndjson
    fails 64 "--url: expected http" "$BIN/gen-endpoint" -q --url ftp://x/v1 p.ndjson
    fails 64 "(with a user or password)" "$BIN/gen-endpoint" -q --url http://u:pw@x/v1 p.ndjson
}

@test "a signal ends open requests, and keeps the answers" {
    printf '%s\n' good hang | jq -Rc '{id: ., text: .}' > p.ndjson
    "$BIN/gen-endpoint" -q --url "$URL" -m "$M" --concurrency 2 p.ndjson > out &
    local tool=$! status=0
    sleep 0.5
    kill -INT $tool
    wait $tool || status=$?
    [ "$status" -eq 130 ]
    [ "$(of good .text)" = '"The cat sat."' ]
    [ "$(jq -s 'last.status' out)" = '"interrupted"' ]
    of hang .message | grep -q interrupted
    conforms out
}

@test "a signal before the first answer leaves the earlier output" {
    echo '{"id":"hang","text":"hang"}' > p.ndjson
    echo old > out
    "$BIN/gen-endpoint" -q --url "$URL" --max-new 8 -o out p.ndjson &
    local tool=$! status=0
    until [ "$(peak)" = 1 ]; do sleep 0.05; done
    kill -INT $tool
    wait $tool || status=$?
    [ "$status" -eq 130 ]
    [ "$(< out)" = old ]
    [ ! -e .out.tmp ]
}

@test "a broken prompt gives an error record; the other prompts are answered" {
    printf '%s\n' '{"id":"a","text":"good"}' '{"id":"a","text":"good"}' '{"text":"x"}' '{' \
        '{"id":"b"}' > p.ndjson
    run -1 "$BIN/gen-endpoint" -q --no-meta --url "$URL" p.ndjson
    [ "$(grep -c '"kind":"error"' <<< "$output")" -eq 4 ]
    grep -q "occurs twice" <<< "$output"
    grep -q "expected one of text, messages, prompt_ids" <<< "$output"
    { printf '{\n%.0s' {1..150}
      jq -nc '{id: ("x" * 4097), text: "good"}'; echo '{"id":"a","text":"good"}'; } > p.ndjson
    run -1 "$BIN/gen-endpoint" -q --url "$URL" p.ndjson
    [ "$(grep -c '"kind":"error"' <<< "$output")" -eq 101 ]
    grep -q '"more":51' <<< "$output"
    { jq -nc '{id: ("x" * 4097), text: "good"}'; echo '{"id":"a","text":"good"}'; } > p.ndjson
    run -1 "$BIN/gen-endpoint" -q --url "$URL" p.ndjson
    grep -q "id: expected at most 4096 bytes, got 4097" <<< "$output"
    printf '%s\n' '{"id":"","text":"good"}' '{"id":"a","text":"good"}' > p.ndjson
    run -1 "$BIN/gen-endpoint" -q --url "$URL" p.ndjson
    grep -q "id: expected a text of one character or more" <<< "$output"
    echo '{"kind":"other"}' > p.ndjson
    fails 65 "no prompt records" "$BIN/gen-endpoint" -q --url "$URL" p.ndjson
}

@test "goodput counts the answers a second that meet the limits" {
    ask -m "$M" good "wait 150" "wait 151" "good too"
    measure() { "$BIN/measure" -q --no-meta "$@" out; }
    local s
    s=$(jq -s '.[0].batch_ns / 1e9' out)
    near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > b - 1e-6 && a < b + 1e-6) }'; }
    near "$(measure | jq --argjson s "$s" 'select(.metric == "requests_per_s").value * $s')" 4
    [ "$(measure | jq -r 'select(.metric == "goodput_per_s").value_reason')" = \
        "no limits (--ttft-limit-ms, --itl-limit-ms)" ]
    measure --ttft-limit-ms 100 > m
    near "$(jq --argjson s "$s" 'select(.metric == "goodput_per_s").value * $s' m)" 2
    [ "$(jq -c 'select(.metric == "goodput_per_s") | .ttft_limit_ns == 1e8 and
        .itl_limit_ns == null' m)" = true ]
    measure --itl-limit-ms 1 > m # 20 ms for the second of four tokens
    near "$(jq --argjson s "$s" 'select(.metric == "goodput_per_s").value * $s' m)" 0
    conforms m
}

@test "points of another stack change none of our claims, fronts and comparisons" {
    jq -nc -f "$ROOT/tests/fixtures/claims-run.jq" --argjson o '{}' > run.ndjson
    # the endpoint answers the same prompts in no time, and always rightly
    jq -c 'select((.kind == "times" or .kind == "metric" or .kind == "quality") and
            .point == "00000000000a")
        | .arch = "endpoint" | del(.paradigm) | .stack = "other 1" | .model = "theirs"
        | .point = "0123456789ab" | .config = "theirs stack=other 1"
        | if .kind == "times" then .e2e_ns |= map(map(if . then . / 1000 else . end)) else . end
        | if .metric == "e2e_ns" then .value /= 1000 | .launch_values |= map(.value /= 1000)
          else . end
        | if .kind == "quality" and .direction == "higher" and .value then .value = 1 else . end' \
        run.ndjson > theirs.ndjson
    [ -s theirs.ndjson ]
    "$BIN/conclude" -q --no-meta run.ndjson > alone
    "$BIN/conclude" -q --no-meta run.ndjson theirs.ndjson > both
    diff alone both
    "$BIN/pareto" -q --no-meta run.ndjson > alone
    "$BIN/pareto" -q --no-meta run.ndjson theirs.ndjson > both || :
    jq -c 'select(.stack == null)' both | diff - <(jq -c . alone)
    "$BIN/compare" -q --no-meta --by paradigm --cost e2e_ns run.ndjson > alone
    "$BIN/compare" -q --no-meta --by paradigm --cost e2e_ns run.ndjson theirs.ndjson | diff - alone
}

@test "compare --by stack gives the ratio to our plain LLaMA at equal load and names the stack" {
    printf '{"id":"%s","text":"good"}\n' a b > p.ndjson
    for k in 0 1 2 3 4; do
        "$BIN/gen-llama" -q -m "$M" --lookup 0,2 --gen-length 8 --launch "$k" p.ndjson -o "l$k"
        "$BIN/gen-endpoint" -q --url "$URL" --gen-length 8 --concurrency 1,2 --launch "$k" \
            p.ndjson -o "e$k"
    done
    "$BIN/measure" -q l? -o ours
    "$BIN/measure" -q e? -o theirs
    "$BIN/compare" -q --no-meta --by stack --cost e2e_ns ours theirs > ratios 2> err
    jq -c 'select(.kind == "comparison")' ratios > only
    conforms only
    [ "$(jq -sc 'map(select(.metric == "e2e_ns")) | length == 1 and (.[0] | .by == "stack" and
        .stack == "scripted 7.1" and .model == "tiny" and .value > 0 and .lo > 0 and
        (.also | index("model")) != null and (.base_config | test("lookup") | not))' only)" = true ]
    ! "$BIN/compare" -q --no-meta --by paradigm --cost e2e_ns ours theirs > out 2> err
    grep -q "expected two points that differ in 'paradigm' alone" err # none of ours, none of theirs
}

@test "a page that has another stack says so and shows the stack in one section only" {
    local claims=$ROOT/tests/fixtures/claims.ndjson ours=$ROOT/tests/fixtures/plot-metric.ndjson
    jq -c 'select(.batch == 1 and .metric == "e2e_ns") | .arch = "endpoint" | del(.paradigm)
        | .stack = "other 1" | .point = "0123456789ab" | .config = "theirs stack=other 1"
        | .value = 7e6 | .lo = null | .hi = null' "$ours" | head -n 1 > theirs
    jq -c '{schema, kind: "comparison", run, config, point, model, stack, arch, by: "stack",
        setting: .stack, metric, effect: "ratio", base_config: "llama", base_point: "l",
        base_value: 1, config_value: 2, value: 0.5, lo: 0.4, hi: 0.6, verdict: "FASTER"}' \
        theirs > ratio
    "$BIN/report" -q -o alone.html "$ours" "$claims"
    mv tables.html tables-alone.html
    "$BIN/report" -q -o both.html "$ours" "$claims" theirs ratio
    words() { sed 's/<script.*<\/script>//; s/<[^>]*>/\n/g' "$1" | grep -v '^ *$'; }
    words both.html > front
    grep -q "Other engines were measured, too (other 1). Their software stack differs" front
    # nothing else of the first page has changed
    diff <(words alone.html) front | grep '^<' && return 1
    ! grep -q "theirs" front
    words tables.html > tables
    grep -q "The software stack of these points differs from that of all others" tables
    grep -q "They do not run on the same kernels" tables
    [ "$(sed -n '/id="stacks"/,/<\/section>/p' tables.html | grep -o 'theirs stack=other 1' |
        wc -l)" -eq "$(sed '/<script/,$d' tables.html | grep -o 'theirs stack=other 1' | wc -l)" ]
    grep -q "Verdict on the two programs" tables
    ! grep -q "software stack" <(words alone.html) <(words tables-alone.html)
    conforms theirs ratio
}
