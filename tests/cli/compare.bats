#!/usr/bin/env bats
# compare: the cost and effect of one setting, paired by prompt.
load conforms

setup() {
    set -o pipefail
    BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
}

compare() { "$BIN/compare" --no-meta "$@"; }

# quality CONFIG ID METRIC VALUE [TOKENS]: prints a quality record
quality() {
    local quant=none better=lower
    [ "$3" != accuracy ] || better=higher
    [[ $1 != *quant=* ]] || quant=${1##*=}
    printf '{"schema":"crossover/1","kind":"quality","run":"r","config":"%s","model":"m",%s}\n' \
        "$1" "\"arch\":\"llama\",\"quant\":\"$quant\",\"id\":\"$2\",\"metric\":\"$3\",\
\"value\":$4,\"scored_tokens\":${5:-null},\"direction\":\"$better\""
}

# texts N: N prompts of different difficulty; with int8 each costs 0.02 nats more for each token
texts() {
    awk -v n="$1" 'BEGIN {
        for (i = 1; i <= n; i++) {
            nats = sprintf("%.15g", 10 + 7 * sin(i))
            printf "p%d %s %.15g\n", i, nats, nats + 0.2
        } }' | while read -r id nats dearer; do
        quality "m nll" "$id" nll_nats "$nats" 10
        quality "m nll quant=int8" "$id" nll_nats "$dearer" 10
    done
}

# field NAME < comparisons: prints a field of the comparison of the perplexity
field() { jq -r "select(.metric == \"ppl\") | .$1"; }

near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a - b < 1e-9 && b - a < 1e-9) }'; }

@test "a comparison by pairs removes the differences between prompts" {
    texts 40 | compare > "$T/out"
    conforms "$T/out"
    expected=$(awk 'BEGIN { printf "%.15g", exp(0.02) }')
    near "$(field value < "$T/out")" "$expected"
    near "$(field lo < "$T/out")" "$expected" # every draw has the same ratio
    near "$(field hi < "$T/out")" "$expected"
    [ "$(jq -c '[.config, .base_config, .by, .setting, .effect, .n]' "$T/out")" = \
        '["m nll quant=int8","m nll","quant","int8","ratio",40]' ]
}

@test "a planted difference is found; noise is not reported as a difference" {
    for i in $(seq 200); do
        quality "m" "p$i" accuracy $((i % 4 != 0))
        quality "m quant=nf4" "p$i" accuracy $((i % 4 != 0 && i % 5 != 0))
        quality "m quant=int8" "p$i" accuracy $((i % 4 != 0 ? i != 7 : i == 8))
    done | compare > "$T/out"
    jq -es 'any(.setting == "nf4" and .hi < 0 and .value == -0.15)' "$T/out"
    jq -es 'any(.setting == "int8" and .lo < 0 and .hi > 0 and .value == 0)' "$T/out"
}

@test "right and wrong answers are compared by Tango's interval and the exact McNemar test" {
    # 50 prompts, 2 right only with f16, 8 only with int8: numbers of scipy's binomtest, and of the
    # score statistic maximized and solved numerically
    for i in $(seq 50); do
        quality "m" "p$i" accuracy $((i <= 20))
        quality "m quant=int8" "p$i" accuracy $((i > 2 && i <= 28))
    done | compare > "$T/out"
    conforms "$T/out"
    [ "$(jq -r '[.only_base, .only_config, .p_value * 1e6, .lo * 1e6, .hi * 1e6] |
        map(round) | join(" ")' "$T/out")" = "2 8 109375 -4660 254803" ]
}

@test "the interval of a difference between identical answers still has a width" {
    for i in $(seq 20); do
        quality "m" "p$i" accuracy 1
        quality "m quant=int8" "p$i" accuracy 1
    done | compare > "$T/out"
    [ "$(jq -r '[.value, .p_value, .lo * 1e6, .hi * 1e6] | map(round) | join(" ")' "$T/out")" = \
        "0 1 -161125 161125" ]
}

@test "several answers to a prompt count as one prompt" {
    # int8 is right as often as the base, but in all of 4 launches its answers differ
    for i in $(seq 20); do
        quality "m" "p$i" accuracy 1
        for seed in 1 2 3 4; do
            quality "m quant=int8" "p$i" accuracy $((seed % 2)) | sed "s/}/,\"seed\":$seed}/"
        done
    done | compare > "$T/out"
    [ "$(jq -c '[.n, .value, .only_base, .only_config]' "$T/out")" = "[20,-0.5,20,0]" ]
    # Tango's interval for 20 prompts of which only the base gets 10 right, not for 40 or 80
    [ "$(jq -c '[.lo, .hi | . * 1e3 | round]' "$T/out")" = "[-701,-258]" ]
    # an answer that occurs three times counts three times
    { quality m p accuracy 1; quality "m quant=int8" p accuracy 1 | jq -c '.copies = 3 | .seed = 1'
      quality "m quant=int8" p accuracy 0 | jq -c '.seed = 2'; } | compare |
        jq -e '.n == 1 and .value == -0.25 and .config_value == 0.75'
}

# right N BOTH BASE INT8: N prompts; BOTH are right in both, BASE only in the base, INT8 only with
# int8
right() {
    seq "$1" | jq -c --argjson both "$2" --argjson base "$3" --argjson config "$4" '. as $i
        | {schema: "crossover/1", kind: "quality", run: "r", model: "m", arch: "llama",
           id: "p\($i)", metric: "accuracy", direction: "higher"}
        | (. + {config: "m", quant: "none", value: (if $i <= $both + $base then 1 else 0 end)}),
          (. + {config: "m quant=int8", quant: "int8",
                value: (if $i <= $both or ($i > $both + $base and $i <= $both + $base + $config)
                        then 1 else 0 end)})'
}

@test "equal quality must be shown; it is not enough that worse quality is not shown" {
    said() { jq -c '[.noninferior, .noninferior_reason, .margin, .margin_relative]'; }
    # 5 fewer of 32: the interval includes equality, so nothing is shown
    right 32 20 6 1 | compare > "$T/out"
    conforms "$T/out"
    jq -e '.lo < -0.3 and .hi > 0' "$T/out"
    [ "$(said < "$T/out")" = '[null,"undecided",0.05,false]' ]
    jq -e '.p_noninferior > 0.8 and .prompts_to_decide > 32' "$T/out"
    # more prompts with the same shares decide the comparison
    n=$(jq '.prompts_to_decide / 32 | ceil' "$T/out")
    right $((32 * n)) $((20 * n)) $((6 * n)) $((1 * n)) | compare | jq -e '.noninferior == false
        and .prompts_to_decide == null and .prompts_to_decide_reason == "decided"'
    # no answer differs, in few prompts and in more
    right 40 30 0 0 | compare | jq -e '.noninferior == null and .p_noninferior < 0.5 and
        .prompts_to_decide == 110'
    right 109 30 0 0 | compare | jq -e '.noninferior == null'
    right 110 30 0 0 | compare | jq -e '.noninferior == true and .p_noninferior < 0.025'
    right 400 200 4 4 | compare | jq -e '.noninferior == true'
    right 400 200 4 4 | compare --margin 0 | jq -e '.noninferior == null'
    # a loss of perplexity is relative: surely 2 % worse, and less than 5 %
    for i in $(seq 40); do
        quality "m nll" "p$i" nll_nats "$(awk -v i="$i" 'BEGIN { print 10 + sin(i) }')" 10
        quality "m nll quant=int8" "p$i" nll_nats \
            "$(awk -v i="$i" 'BEGIN { print 10.2 + sin(i) + 0.1 * cos(3 * i) }')" 10
    done > "$T/in"
    compare "$T/in" | said | grep -x '\[true,null,0.05,true\]' > /dev/null
    compare --margin 1% "$T/in" | said | grep -x '\[false,null,0.01,true\]' > /dev/null
    run compare --margin x "$T/in"
    [ "$status" -eq 64 ]
}

@test "only prompts that both systems answered count" {
    { texts 10
      quality "m nll" only-base nll_nats 500 10
      quality "m nll quant=int8" only-int8 nll_nats 900 10; } | compare > "$T/out"
    [ "$(jq -c '[.n, .left_out]' "$T/out")" = '[10,2]' ]
    near "$(field value < "$T/out")" "$(awk 'BEGIN { printf "%.15g", exp(0.02) }')"
}

@test "memory is compared, also between two values of a setting" {
    for c in "m:bf16:1:4000" "m f32:f32:1:8000" "m f32 2:f32:2:8100" "m 2:bf16:2:4100"; do
        IFS=: read -r config dtype batch bytes <<< "$c"
        jq -cn --arg c "$config" --arg d "$dtype" --argjson b "$batch" --argjson v "$bytes" '{
            schema: "crossover/1", kind: "metric", run: "r", config: $c, model: "m", arch: "llama",
            dtype: $d, batch: $b, value: $v, lo: null,
            hi: null, metric: "memory_weights_bytes", n: 1, launches: 1, unit: "bytes",
            direction: "lower"}'
    done | compare --by dtype --base bf16 > "$T/out"
    [ "$(jq -c '[.setting, .base_config, (.config_value, .base_value | floor)]' "$T/out" | sort |
        paste -sd ' ')" = '["f32","m 2",8100,4100] ["f32","m",8000,4000]' ]
}

@test "three thousand points find their bases in seconds" {
    awk 'BEGIN { for (i = 0; i < 3000; i++)
        printf "{\"kind\":\"metric\",\"metric\":\"e2e_ns\",\"config\":\"c%d\",\"model\":\"m%d\"," \
               "\"dtype\":\"%s\",\"direction\":\"lower\",\"value\":%d}\n", i, i / 2,
               i % 2 ? "bf16" : "f32", 5 + i % 2 }' > "$T/many"
    (ulimit -t 15; compare --by dtype --base f32 --cost e2e_ns "$T/many" > "$T/out")
    [ "$(jq -s 'map(select(.base_config != null)) | length' "$T/out")" = 1500 ]
    jq -se 'all(.value == null and .value_reason == "no launches in common")' "$T/out" # no times
}

@test "records without a pair to compare are an error" {
    run compare < <(quality "m nll" p nll_nats 5 10)
    echo "$output"
    [ "$status" -eq 65 ]
    [[ "$output" == *"two points that differ in 'quant' alone"* ]]
    run compare < <(quality "m nll quant=int8" p nll_nats 5 10)
    [ "$status" -eq 65 ]
    [[ "$output" == *"has no base"* ]]
}

@test "settings, not labels, decide which records are one point" {
    # labels that a parser would split wrongly
    for q in none int8; do
        for i in 1 2 3; do
            quality "the same label" "p$i" nll_nats $((10 + i)) 10 |
                jq -c --arg q $q '.quant = $q | .point = "p-" + $q'
        done
    done | compare > "$T/out"
    [ "$(jq -c '[.setting, .base_point, .point, .n]' "$T/out")" = '["int8","p-none","p-int8",3]' ]
}

@test "formats that follow from the setting do not separate a point from its base" {
    { quality m p1 nll_nats 10 10 | jq -c '.kv_dtype = "f32"'
      quality "m quant=int8" p1 nll_nats 11 10 | jq -c '.kv_dtype = "bf16"'; } > "$T/in"
    [ "$(compare "$T/in" | jq -c '[.setting, .also]')" = '["int8",["kv_dtype"]]' ]
    # a base of the same formats is preferred
    { cat "$T/in"; quality "m other" p1 nll_nats 12 10 | jq -c '.kv_dtype = "bf16" | .point = "b"'
    } | compare > "$T/out"
    [ "$(jq -c '[.base_point, .also]' "$T/out")" = '["b",[]]' ]
    # but another machine or method is no base
    run compare < <(sed '1s/"quant"/"device":"cuda","quant"/' "$T/in")
    [ "$status" -eq 65 ]
}

# metric CONFIG PARADIGM BATCH VALUES...: launches of e2e_ns, and the values as times of one prompt;
# the launches of the two paradigms take turns
metric() {
    local config=$1 paradigm=$2 batch=$3
    shift 3
    jq -cn --arg c "$config" --arg p "$paradigm" --argjson b "$batch" --args '
        ($ARGS.positional | map(tonumber)) as $v | ($p == "autoregressive") as $ar
        | {schema: "crossover/1", kind: "metric", run: "r", config: $c, point: $c, model: $p,
           paradigm: $p, arch: (if $ar then "llama" else "llada" end), device: "cpu", dtype: "f32",
           quant: "none", contract: "fixed", batch: $b, metric: "e2e_ns", unit: "ns",
           direction: "lower", value: $v[0], lo: null, hi: null, n: 9, launches: ($v | length),
           launch_values: [$v | to_entries[]
               | {launch: (2 * .key + if (.key % 2 == 0) == $ar then 0 else 1 end), value}]}
        | if $ar then .max_new = 64 else .gen_length = 64 | .steps = 8 end
        | ., (.kind = "times" | .ids = ["p"] | .tasks = [null] | .disturbed_cells = 0
              | .e2e_ns = [.launch_values[] | [.value]] | .launches = [.launch_values[].launch]
              | .cpu_ns = [.launch_values[] | [null]]
              | del(.metric, .value, .lo, .hi, .n, .launch_values, .unit, .direction))' "$@"
}

@test "a ratio over launches says same, slower, undecided or too few launches" {
    { metric ar autoregressive 1 100 101 99 100 102 98
      metric same masked_diffusion 1 100.5 101 99.2 100.1 101.8 98.2
      metric ar4 autoregressive 4 100 101 99 100 102 98
      metric slow masked_diffusion 4 110 111 109 110 112 108
      metric ar8 autoregressive 8 100 101 99 100 102 98
      metric wild masked_diffusion 8 50 210 80 140 70 130
      metric ar16 autoregressive 16 100 101 99 100
      metric few masked_diffusion 16 150 151 149 152; } > "$T/in"
    compare --by paradigm --cost e2e_ns --precision 0.01 --stopped budget "$T/in" > "$T/out"
    conforms "$T/out"
    [ "$(jq -c '[.config, .base_config, .verdict, .stop_reason]' "$T/out" | paste -sd ' ')" = \
        '["same","ar","SAME","precision"] ["slow","ar4","SLOWER","precision"] '\
'["wild","ar8","UNDECIDED","budget"] ["few","ar16","UNDECIDED","budget"]' ]
    jq -se 'map({key: .config, value: .}) | from_entries
        | .same.lo > 0.98 and .same.hi < 1.02 and .same.launches_more == 0
        and .slow.lo > 1 and .slow.p < 1e-4 and (.slow.p_holm / .slow.p - 3 | fabs) < 1e-9
        and .wild.lo > 0 and .wild.launches_to_decide > 100 and .wild.launches_more == 6
        and .few.lo == null and .few.lo_reason == "fewer than 5 launches" and .few.p == null
        and .few.value == null and .few.launches_more == 1' "$T/out"
    sort -r "$T/in" | compare --by paradigm --cost e2e_ns --precision 0.01 --stopped budget |
        cmp - "$T/out"
}

@test "a pair with one disturbed side does not count by the wall clock" {
    times() { # MODEL WALL CPU: six launches of three prompts; null where WALL says so
        metric "$1" autoregressive 1 100 100 100 100 100 100 | jq -c --argjson wall "$2" \
            --argjson cpu "$3" '.model = .config | if .kind != "times" then . else
                .ids = ["a", "b", "c"] | .tasks = [null, null, null] | .e2e_ns = $wall
                | .cpu_ns = $cpu end'
    }
    rows() { jq -cn --argjson v "$1" '[range(6)] | map([1, 2, 3] | map(. * $v))'; }
    ratios() { # WALL-OF-OTHER
        { times base "$(rows 100)" "$(rows 10)"; times other "$1" "$(rows 20)"; } |
            compare --by model --base base --cost e2e_ns |
            jq -c '[.metric, .value, .value_reason]' | paste -sd ' '
    }
    [ "$(ratios "$(rows 300)")" = '["e2e_ns",3,null] ["cpu_ns",2,null]' ]
    # a lost cell is lost on both sides, so three prompts are left
    [ "$(ratios "$(rows 300 | jq -c '.[0][2] = null')")" = '["e2e_ns",3,null] ["cpu_ns",2,null]' ]
    # the slow prompt is lost in all launches, so the remaining prompts are a selection
    [ "$(ratios "$(rows 300 | jq -c 'map(.[2] = null)')")" = \
        '["e2e_ns",null,"disturbed"] ["cpu_ns",2,null]' ]
    # two launches lost, four are left: they are too few
    [ "$(ratios "$(rows 300 | jq -c '.[0] |= map(null) | .[3] |= map(null)')")" = \
        '["e2e_ns",null,"disturbed"] ["cpu_ns",2,null]' ]
    # all launches agree but the prompts do not, so no number of launches decides
    { times base "$(rows 100)" "$(rows 10)"
      times other "$(jq -cn '[range(6)] | map([90, 200, 340])')" "$(rows 20)"; } |
        compare --by model --base base --cost e2e_ns > "$T/apart"
    jq -se '.[0] | .metric == "e2e_ns" and .verdict == "UNDECIDED" and .launches_to_decide == null
        and (.launches_to_decide_reason | contains("prompts differ"))' "$T/apart"
}

@test "the rival of another paradigm is the plain point in any order of records" {
    metric zz autoregressive 1 100 101 99 100 102 98 |
        jq -c '.lookup = 0 | .cache = "on"' > "$T/plain"
    metric aa autoregressive 1 50 51 49 50 52 48 |
        jq -c '.lookup = 4 | .lookup_ngram = 3' > "$T/guess"
    metric bb autoregressive 1 60 61 59 60 62 58 | jq -c '.admit = "continuous"' > "$T/joins"
    metric d masked_diffusion 1 110 111 109 110 112 108 > "$T/denoised"
    rival() { # RECORDS...: the base, and what BY is there
        compare --by paradigm --cost e2e_ns "${@/#/$T/}" |
            jq -r '"\(.base_config) \(.base_setting)"'
    }
    [ "$(rival plain guess joins denoised)" = "zz autoregressive" ]
    jq -c '.dtype = "bf16"' "$T/plain" > "$T/other" # of another number format, and plain
    [ "$(rival other guess denoised)" = "zz autoregressive" ]
    jq -c '.point = .point + "b" | .config = .config + "b"' "$T/plain" > "$T/same"
    [ "$(rival other same denoised)" = "zzb autoregressive" ]
    [ "$(rival guess denoised)" = "aa autoregressive" ] # the only one
}

@test "with two tokenizers bytes of text a second stand beside the cost" {
    { metric ar autoregressive 1 100 101 99 100 102 98
      metric slow masked_diffusion 1 110 111 109 110 112 108; } > "$T/time"
    jq -c 'select(.kind == "metric") | .metric = "output_bytes_per_s" | .unit = "per_s"
        | .direction = "higher"
        | .launch_values[].value |= 10000 / .' "$T/time" > "$T/text"
    words=(compare --by paradigm --cost e2e_ns)
    [ "$("${words[@]}" "$T/time" "$T/text" | jq -r .metric)" = e2e_ns ] # not said: nothing to add
    jq -c '.tokenizer = "0123456789ab"' "$T/time" "$T/text" > "$T/one"
    [ "$("${words[@]}" "$T/one" | jq -r .metric)" = e2e_ns ]
    jq -c 'if .config == "ar" then .tokenizer = "ba9876543210" else . end' "$T/one" > "$T/two"
    "${words[@]}" "$T/two" > "$T/out"
    conforms "$T/out"
    [ "$(jq -c '[.metric, .verdict, .launches_more == 0]' "$T/out" | paste -sd ' ')" = \
        '["e2e_ns","SLOWER",true] ["output_bytes_per_s","SLOWER",true]' ]
    jq -se '.[0].value * .[1].value | . > 0.9999 and . < 1.0001' "$T/out"
    "${words[@]}" "$T/one" | cmp - <(head -n 1 "$T/out") # the ratio of times is what it was
}

@test "one model under two names: the verdict is in words and can fail" {
    check() { # LAUNCH-VALUES-OF-THE-TWIN: the check record
        { metric self autoregressive 1 100 101 99 100 102 98 | jq -c '.model = "self"'
          metric twin masked_diffusion 1 "$@" |
              jq -c '.model = "twin" | .paradigm = "autoregressive" | .arch = "llama"
                  | .max_new = 64 | del(.gen_length, .steps)'; } > "$T/two"
        jq -c 'select(.model == "twin") | .model = "slow" | .config = "slow" | .point = "slow"
            | if .kind == "times" then .e2e_ns |= map(map(. * 1.05))
              else .launch_values[].value *= 1.05 end' "$T/two" |
            compare --by model --base self --cost e2e_ns "$T/two" - |
            compare --self-test 1.05
    }
    check 100.5 101 99.2 100.1 101.8 98.2 > "$T/good"
    jq -e '.pass and .verdict == "SAME" and .handicap == "FOUND"' "$T/good"
    check 106 30 195 90 150 80 > "$T/wide"
    jq -e '.pass == false and .verdict == "UNDECIDED" and .handicap == "MISSED" and
        (.text | test("about [0-9]+ launches would decide"))' "$T/wide"
    check 104 105 103 104 106 102 > "$T/other"
    jq -e '.pass == false and .verdict == "SLOWER"' "$T/other"
    check 100 101 99 100 102 98 > "$T/equal"
    jq -e '.pass and (.text | test("is SAME, ratio 1 \\[1, 1\\] over 6 launches"))' "$T/equal"
}

@test "gate: slower is exit 1, equal 0, a wide interval 69, no ratio 65" {
    gate() { # LAUNCH-VALUES-OF-NEW: exit status; the check record in $T/gate
        { metric old autoregressive 1 100 101 99 100 102 98 100 101 | jq -c '.model = "old"'
          metric new masked_diffusion 1 "$@" |
              jq -c '.model = "new" | .paradigm = "autoregressive" | .arch = "llama"
                  | .max_new = 64 | del(.gen_length, .steps)'; } |
            compare --by model --base old --cost e2e_ns > "$T/ratios"
        run "$BIN/compare" -q --gate 0.02 "$T/ratios" -o "$T/gate"
        echo "$status"
    }
    [ "$(gate 102 103.1 101 101.9 104 100.1 102 103)" = 1 ]
    conforms "$T/gate"
    jq -se '.[1] | .verdict == "SLOWER" and .pass == false and .twin.value > 1.019' "$T/gate"
    [ "$(gate 100.1 101 99 100.1 102 98.1 100 101)" = 0 ]
    jq -se '.[1] | .verdict == "NOT SLOWER" and .pass' "$T/gate"
    [ "$(gate 150 140 160 145 155 150 148 152)" = 1 ]  # a wide interval, all of it too slow
    [ "$(gate 104 90 110 97 108 101 95 112)" = 69 ]
    jq -se '.[1] | .verdict == "UNDECIDED" and .pass == null' "$T/gate"
    metric a autoregressive 1 9 9 > "$T/m"
    run "$BIN/compare" --gate 0.02 "$T/m"
    [ "$status" -eq 65 ]
    # a percentage is a share; numbers above 1 and above 100% are refused
    for limit in 0.02 2% 2.0%; do
        compare -q --gate $limit "$T/ratios" > "$T/gate" || [ $? = 69 ]
        jq -se 'all(.factor == 1.02)' "$T/gate"
    done
    for limit in 2 150% 2%% % '2 %' 0 x; do
        run "$BIN/compare" --gate "$limit" "$T/ratios"
        [ "$status" -eq 64 ]
        [[ "$output" == *"from 0.0001 to 1, or a percentage such as 2%, got '$limit'"* ]]
    done
}

@test "the gate of tools/README.md stops a slower command of any project" {
    sed -n '/^### A gate for the CI/,/^## /p' tools/README.md | sed -n '/^```sh/,/^```$/p' |
        grep -v '^```' > "$T/recipe"
    PATH="$(realpath "$BIN"):$PATH"
    printf '#!/bin/sh\nexec awk -v n=$1 "BEGIN { for (i = 0; i < n; i++) x += i }"\n' > "$T/busy"
    chmod +x "$T/busy"
    cd "$T"
    OLD="./busy 300000" NEW="./busy 1500000" run bash recipe
    [ "$status" -eq 1 ]
    [[ "$output" == *"NEW is SLOWER, ratio "*" over 12 launches"* ]]
    OLD="./busy 1500000" NEW="./busy 300000" run bash recipe # a faster build is no error
    [ "$status" -eq 0 ] || [ "$status" -eq 69 ] # 69: a busy machine
}

# answer BATCH ID IDS [FIELDS]: a generation
answer() {
    jq -cn --argjson b "$1" --arg id "$2" --argjson ids "$3" "{schema: \"crossover/1\",
        kind: \"generation\", run: \"r\", config: (\"m batch=\" + (\$b | tostring)), model: \"m\",
        arch: \"llama\", batch: \$b, phase: \"timed\", status: \"ok\", id: \$id,
        point: (\"b\" + (\$b | tostring)), token_ids: \$ids} + ${4:-{\}}"
}

@test "the disagreement of answers and the place where they part are reported" {
    { for i in 1 2 3 4 5 6 7 8; do
        answer 1 "p$i" '[1,2,3,4,5,6]'
      done
      answer 8 p1 '[1,2,3,4,5,6]'
      answer 8 p2 '[9,2,3,4,5,6]'
      answer 8 p3 '[1,2,3,9,5,9]' '{step_ns: [10, 20, 30], emit_ns: [20, 30],
          emit_tokens: [2, 4]}'
      answer 8 p4 '[1,2,3,4]'
      answer 8 p5 '[1,2,3,4,5,6,7,8]'
      answer 8 p6 '[1,2,3,4,5,6]'
      answer 8 p6 '[9,9,9,9,9,9]' '{round: 1}'
      answer 8 p7 '[9]' '{phase: "cold"}'
      answer 8 p8 '[]' '{status: "oom"}'
      answer 8 only '[1]'; } > "$T/in"
    compare --by batch "$T/in" > "$T/out"
    conforms "$T/out"
    # differing ids: 0 1 2 2 2 0, of 6 6 6 6 8 6 ids
    [ "$(jq -r '[.metric, .n, .value * 1e4 | strings // round] | join(" ")' "$T/out" |
        paste -sd ,)" = "differing_answers_ratio 6 6667,differing_ids_ratio 6 1842,\
first_difference_tokens 4 45000,first_difference_steps 1 30000" ]
    [ "$(jq -c 'select(.metric == "differing_answers_ratio") | [.lo, .hi | . * 1e3 | round]' \
        "$T/out")" = "[300,903]" ]
    compare --by batch <(tac "$T/in" | jq -c 'select(.round == null)') | diff - "$T/out"
}

@test "launches with different seeds do not count as more prompts" {
    for i in 1 2 3 4 5 6; do for seed in 5 3 4; do
        answer 1 "p$i" '[1,2]' "{seed: $seed, launch: $seed}"
        answer 8 "p$i" "[$((i < 4 ? 1 : 2)),2]" "{seed: $seed, launch: $seed}"
    done; done > "$T/in"
    compare --by batch "$T/in" > "$T/out"
    [ "$(jq -c 'select(.metric == "differing_answers_ratio") | [.n, .value]' "$T/out")" = \
        "[6,0.5]" ]
    tac "$T/in" | compare --by batch | diff - "$T/out"
    # points that differ only in the seed say nothing about the setting
    [ -z "$(jq -c 'if .batch == 8 then .seed += 9 else . end' "$T/in" | compare --by batch)" ]
}

@test "identical answers, random weights and invalid ids have their own results" {
    { answer 1 p '[1,2]'; answer 8 p '[1,2]'; } | compare --by batch > "$T/out"
    [ "$(jq -c '.value' "$T/out" | paste -sd ' ' | sed 's/\.0//g')" = "0 0 null null" ]
    [ "$(jq -r 'select(.value == null).value_reason' "$T/out" | sort -u)" = \
        "no answer differs, or no passes are told" ]
    jq -se '.[1].hi == null and .[0].hi > 0.6' "$T/out" # one agreement proves next to nothing
    [ -z "$({ answer 1 p '[1,2]' '{weights_random: true}'
              answer 8 p '[3,2]' '{weights_random: true}'; } | compare --by batch)" ]
    run compare --by batch < <(answer 1 p '[1,"2"]')
    [ "$status" -eq 65 ]
    [[ "$output" == *"token_ids: expected integers"* ]]
}

@test "only one mode judges records, its options are named, and a warning has file and line" {
    metric a autoregressive 1 9 9 > "$T/m"
    run "$BIN/compare" --samples --self-test 1.05 "$T/m"
    [ "$status" -eq 64 ]
    [[ $output == *"expected one of them, got 2"* ]]
    echo '{"kind":"option","flags":""}' > "$T/options"
    run "$BIN/compare" --claims "$T/options" "$T/m"
    [ "$status" -eq 65 ]
    [[ $output == *"option record 1 has no option"* ]]
    run "$BIN/compare" --exact "$T/options" "$T/m"
    [ "$status" -eq 65 ]
    [[ $output == *"options: expected records of kind exact_case, found none"* ]]
    echo '{"kind":"samples","option":"o","metric":"m_ratio","values":[1,3]}' > "$T/one"
    { cat "$T/one"; echo '{"kind":'; } > "$T/two"
    run --separate-stderr "$BIN/compare" --no-meta --samples "$T/one" "$T/two"
    [ "$status" -eq 0 ]
    [ "$(jq -s 'map(select(.metric == "m_ratio" and .value == 2)) | length' <<< "$output")" -eq 2 ]
    [[ $stderr == *"W042"*"two:2: "* ]]
}
