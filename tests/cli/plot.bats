#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Figures: made from records, valid, the same every time, makeable again from their script alone,
# and safe against what stands in a record.

setup() {
    set -o pipefail
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    BIN=$(realpath "${BIN:-build/bin}")
    export CROSSOVER_SHARE=$PWD
    F=$PWD/tests/fixtures
    T=$BATS_TEST_TMPDIR
    cd "$T" || exit 1
    command -v gnuplot > /dev/null || skip "no gnuplot here"
}

# A negated command cannot fail a test: this can.
lacks() { if grep "$@"; then return 1; fi; }

# draw TYPE OUT FILES...
draw() { "$BIN/plot" --type "$1" -o "$2" "${@:3}"; }

records() { # of a type
    case $1 in
    pareto | steps | throughput) echo "$F"/plot-{metric,quality,front}.ndjson ;;
    memory | ratio) echo "$F/plot-scale.ndjson" ;;
    loss) echo "$F/plot-train.ndjson" ;;
    drift) echo "$F/plot-generation.ndjson" ;;
    roofline) echo "$F/plot-roofline.ndjson" ;;
    esac
}

valid_svg() {
    grep -q '</svg>' "$1"
    if command -v xmllint > /dev/null; then xmllint --noout "$1"; fi
}

@test "every type is drawn, with script, data and caption beside it" {
    for t in pareto steps throughput memory ratio loss drift roofline; do
        # shellcheck disable=SC2046
        draw "$t" "$t.svg" $(records "$t")
        valid_svg "$t.svg"
        [ -s "$t.gp" ] && [ -s "$t.tsv" ] && [ -s "$t.txt" ]
        lacks -q 'no data' "$t.svg"
        lacks -q '^No data' "$t.txt"
        [ "$(grep -c '<path' "$t.svg")" -gt 5 ]
    done
    [ -z "$(find . -name '.*tmp*')" ]
}

@test "and is checked as XML" {
    command -v xmllint > /dev/null || skip "no xmllint: what is drawn is not checked as XML"
}

@test "a disk that is full leaves no part of a figure under its name" {
    for s in svg png pdf; do # gnuplot is silent about a file that it could not write whole
        run -74 --separate-stderr bash -c 'ulimit -f 12; exec "$@"' - \
            "$BIN/plot" --type pareto -o "full.$s" $(records pareto)
        [ "${#stderr_lines[@]}" -eq 1 ] && [[ $stderr == *"full.$s: expected a whole $s"* ]]
        [ ! -e "full.$s" ]
        draw pareto "full.$s" $(records pareto) # one that is there stays
        cp "full.$s" before
        run -74 bash -c 'ulimit -f 12; exec "$@"' - \
            "$BIN/plot" --type pareto -o "full.$s" $(records pareto)
        cmp "full.$s" before
    done
    [ -z "$(find . -name '.*tmp*')" ]
}

@test "why a figure cannot be written is said" {
    strace -o log true 2> why || skip "no strace here, or it may not trace"
    run -74 --separate-stderr strace -o log -P "$T/.full.svg.tmp" -e inject=write:error=ENOSPC \
        "$BIN/plot" --type pareto -o full.svg $(records pareto)
    [[ $stderr == *"full.svg: cannot write: No space left on device"* ]]
    [ ! -e full.svg ] && [ -z "$(find . -name '.*tmp*')" ]
}

@test "a figure is made again from its script alone" {
    draw pareto a/pareto.svg $(records pareto) && false # a folder that is not there
    mkdir a b
    draw pareto a/pareto.svg $(records pareto)
    cp a/pareto.gp b/
    (cd b && gnuplot -d pareto.gp)
    cmp a/pareto.svg b/pareto.svg
}

# twice FORMAT: the figure, drawn in two different seconds
twice() {
    draw throughput "a.$1" $(records throughput)
    sleep 1.1
    draw throughput "b.$1" $(records throughput)
}

@test "SVG and PNG are the same bytes every time" {
    for s in svg png; do
        twice $s
        cmp "a.$s" "b.$s"
    done
}

@test "and PDF, where cairo writes its date in clear" {
    twice pdf
    grep -aq '/CreationDate (D:' a.pdf || skip "cairo 1.18 packs the date of a PDF away"
    cmp a.pdf b.pdf
}

@test "a file name may hold quotes, spaces and more" {
    for n in "'a; b" "c''d" "it's \`c\`" '-d "e"$(f)' 'g\\h'; do
        (cd "$T" && draw loss "./$n.svg" $(records loss))
        valid_svg "./$n.svg"
        mkdir again
        cp "./$n.gp" again/x.gp
        (cd again && gnuplot -d x.gp && cmp "./$n.svg" "../$n.svg")
        rm -r again
    done
}

@test "the script does not depend on the format" {
    draw memory a.svg $(records memory)
    cp a.gp first.gp
    draw memory a.png $(records memory)
    cmp a.gp first.gp
}

@test "the numbers in the figure are those of the records" {
    draw ratio r.svg "$F/plot-metric.ndjson"
    want=$(jq -rs '[.[] | select(.metric == "e2e_ns" and .batch == 1)]
        | (map(select(.steps == 64))[0].value / map(select(.arch == "llama"))[0].value)
        | . * 100 | round / 100' "$F/plot-metric.ndjson")
    grep -q "	$want×\$" r.tsv
    grep -q "$want×" r.svg
}

@test "the front is what the front records say, and runs out to the right" {
    draw pareto p.svg $(records pareto)
    got=$(sed -n '/^# front/,/^$/p' p.tsv | grep -c '^[0-9]')
    want=$(grep -c '"kind":"front".*"class":"on"' "$F/plot-front.ndjson")
    [ "$got" -eq $((want + 2)) ] # two panels, each with a last level
}

@test "along another axis points stand at the passes that were measured, named by their values" {
    jq -c 'if .arch == "llada" then .passes = .steps | .threshold = (1 - 1 / .steps)
               | .axis = "threshold" | .unmask = "threshold" | .steps = null
           else . end | select(.kind != "meta" and .kind != "end")' \
        "$F"/plot-{metric,quality,front}.ndjson > t.ndjson
    draw steps s.svg t.ndjson
    grep -q 'denoising passes' s.svg
    lacks -q 'denoising steps' s.svg
    grep -q '>0.96875\|0.96875' s.svg
    grep -q 'Beside the points: threshold' s.txt
    draw pareto p.svg t.ndjson
    grep -q '0.96875' p.svg
    grep -q 'beside the points: threshold' p.txt
    draw throughput t.svg t.ndjson
    grep -q 'threshold 0.5' t.svg
    draw ratio r.svg t.ndjson
    grep -q 'threshold' r.svg
}

@test "a value is drawn once, whatever it was measured on" {
    jq -c 'select(.kind == "metric") | .prompts = 3 | .workload = "few" | .value = 1 | .lo = null |
        .hi = null' "$F/plot-metric.ndjson" > few
    jq -c 'select(.kind == "metric") | .prompts = 30 | .workload = "many"' "$F/plot-metric.ndjson" \
        > many
    draw throughput a.svg many
    draw throughput b.svg few many
    cmp a.tsv b.tsv
    grep -q 'measured on several sets of prompts: 14; shown is the one of most prompts' b.txt
    lacks -q 'several sets' a.txt
}

@test "a name says what tells series apart, and no more" {
    for c in none dual; do
        jq -c --arg c $c 'select(.kind == "metric") | if .arch == "llada" then .cache = $c
            | .point += $c | .series += $c else select($c == "none") end' "$F/plot-metric.ndjson"
    done > m.ndjson
    draw throughput t.svg m.ndjson
    grep -q 'llada-demo cache=dual, 16 steps' t.svg
    grep -q 'llada-demo cache=none, 16 steps' t.svg
    grep -q '>llama-demo<' t.svg
}

@test "memory that ran out is a hatched cell" {
    draw memory m.svg "$F/plot-scale.ndjson"
    grep -q '>OOM<\|OOM' m.svg
    grep -q 'NaN.*OOM' m.tsv
}

@test "a caption tells n, launches, machine, date, commit and what the bars are" {
    draw steps s.svg $(records steps)
    for what in '95 % intervals' 'Launches: 5' 'Example CPU' '2026-11-20' '0123456789ab' \
        '24 to 120'; do
        grep -q "$what" s.txt
    done
}

@test "without data the figure says so" {
    run draw loss empty.svg "$F/plot-metric.ndjson"
    [ "$status" -eq 0 ]
    [[ $output == *W041*"no data"* ]]
    grep -q 'loss: no data' empty.svg
    valid_svg empty.svg
    printf '' | draw pareto none.png - 2> /dev/null
    [ -s none.png ]
}

@test "text of records cannot run, cannot break out, and cannot spoil the picture" {
    huge=$(head -c 1000000 /dev/zero | tr '\0' 'x')
    evil=(
        "\`touch $T/pwned\`" "\$(touch $T/pwned)" "'; system('touch $T/pwned'); '"
        '"."' '<script>alert(1)</script>&amp;]]>' $'line\nEOD\nbreak' $'\t\x01\x7f' 'EOD' '#' ''
        $'\u202eright to left' '😀 日本語' '@macro %s %d {/Bold x}_^'
    )
    for e in "${evil[@]}" "$huge"; do
        printf '%s' "$e" | jq -Rsc '. as $e
            | ({step: 1, tokens: 10, loss: 2.5}, {step: 2, tokens: 20, loss: 2}) + {model: $e}
            | {schema: "crossover/1", kind: "train", run: "r"} + .' > in.ndjson
        draw loss evil.svg in.ndjson
        valid_svg evil.svg
        lacks -qi '<script' evil.svg
        printf '%s' "$e" | jq -Rsc '. as $e
            | ([1, 2, 4][] | {arch: "llada", steps: .}), {arch: "llama"}
            | .config = "\($e) steps=\(.steps)" | .model = $e | .batch = 1
            | ({kind: "metric", metric: "e2e_ns", value: (1e6 * (.steps // 3))},
               {kind: "quality", summary: true, metric: $e, value: (5 - (.steps // 3)),
                direction: "lower"}) + . | {schema: "crossover/1", run: "r"} + .' > in.ndjson
        draw pareto evil.svg in.ndjson
        valid_svg evil.svg
        lacks -qi '<script' evil.svg
        [ "$(stat -c %s evil.svg)" -lt 200000 ]
        [ ! -e pwned ]
    done
}

@test "values that cannot stand on an axis are left out and counted" {
    jq -c 'if .metric == "e2e_ns" and .steps == 2 then .value = 1e308
           elif .metric == "e2e_ns" and .steps == 4 then .value = -1
           elif .metric == "e2e_ns" and .steps == 8 then .value = null
           else . end | select(.kind != "meta" and .kind != "end")' "$F/plot-metric.ndjson" \
        > m.ndjson
    draw pareto p.svg m.ndjson "$F/plot-quality.ndjson"
    valid_svg p.svg
    grep -q 'Left out: 6 value(s)' p.txt # two batch sizes
}

@test "a hundred thousand points make a small figure" {
    awk 'BEGIN { for (i = 0; i < 100000; i++) printf "{\"schema\":\"crossover/1\",\"kind\":" \
        "\"generation\",\"run\":\"r\",\"config\":\"c%d\",\"arch\":\"llada\",\"phase\":\"timed\"," \
        "\"status\":\"ok\",\"seq\":%d,\"start_ns\":%d,\"e2e_ns\":%d}\n", i % 7, i, i * 1e6, \
        5e6 + i % 1000 }' > g
    draw drift d.svg g
    valid_svg d.svg
    [ "$(stat -c %s d.svg)" -lt 2000000 ]
    grep -q '100000 answers' d.txt
    grep -q 'One answer in 26' d.txt
}

@test "a broken line costs that line, and is told" {
    { cat "$F/plot-train.ndjson"; echo '{"broken'; } > t.ndjson
    run draw loss t.svg t.ndjson
    [ "$status" -eq 1 ]
    [[ $output == *W040* ]]
    valid_svg t.svg
    lacks -q 'no data' t.svg
}

@test "--terminal prints the figure and writes nothing" {
    "$BIN/plot" --type pareto --terminal $(records pareto) > out
    grep -q 'end-to-end latency' out
    grep -q 'Quality against latency' out
    [ "$(ls)" = out ]
}

@test "bad usage, missing input and a place that cannot be written have their exit codes" {
    run "$BIN/plot" -o x.svg "$F/plot-train.ndjson"
    [ "$status" -eq 64 ]
    run draw loss x.gif "$F/plot-train.ndjson"
    [ "$status" -eq 64 ]
    run draw loss x.svg absent.ndjson
    [ "$status" -eq 66 ]
    run draw loss absent/x.svg "$F/plot-train.ndjson"
    [ "$status" -eq 73 ]
    mkdir -p empty/plots bin
    cp "$BIN/plot" bin/
    CROSSOVER_SHARE=$T/empty run bin/plot --type loss -o x.svg "$F/plot-train.ndjson"
    [ "$status" -eq 66 ]
    [[ $output == *CROSSOVER_SHARE* ]]
    [ ! -e x.svg ]
}

@test "when gnuplot fails, its message is shown and the old figure stays" {
    mkdir fake
    printf '#!/bin/sh\necho "line 7: something is wrong" >&2\nexit 1\n' > fake/gnuplot
    chmod +x fake/gnuplot
    echo old > x.svg
    PATH=$T/fake:$PATH run draw loss x.svg "$F/plot-train.ndjson"
    [ "$status" -eq 70 ]
    [[ $output == *"something is wrong"* ]]
    [ "$(cat x.svg)" = old ]
    printf '#!/bin/sh\nexit 0\n' > fake/gnuplot
    PATH=$T/fake:$PATH run draw loss x.svg "$F/plot-train.ndjson"
    [ "$status" -eq 70 ]
    [ "$(cat x.svg)" = old ]
    [ -z "$(find . -name '.*tmp*')" ]
}

@test "a roofline of a run: its configurations under its ceilings" {
    metric() { # CONFIG METRIC VALUE FIELDS
        jq -cn --arg c "$1" --arg m "$2" "{schema: \"crossover/1\", kind: \"metric\", run: \"r\",
            config: \$c, model: (\$c | split(\" \")[0]), metric: \$m, value: $3, lo: null, hi: null,
            n: 4, launches: 2, unit: \"per_s\", direction: \"higher\"} + $4"
    }
    { sed -n 2p "$F/plot-roofline.ndjson"
      for k in 16 32; do
          metric "llada-demo steps=$k batch=1" model_flops_per_s 5e10 '{arch: "llada", batch: 1}'
          metric "llada-demo steps=$k batch=1" model_bytes_per_s 1e9 '{arch: "llada", batch: 1}'
      done
      metric "llama-demo batch=4" model_flops_per_s 6e9 '{arch: "llama", batch: 4}'
      metric "llama-demo batch=4" model_bytes_per_s 3e9 '{arch: "llama", batch: 4}'
      metric "llama-demo batch=8" model_flops_per_s null '{arch: "llama", batch: 8}'; } > run
    draw roofline roof.svg run
    # flops a byte, GFLOP/s, kind, and a name for the first of each batch
    [ "$(sed -n '3,5p' roof.tsv | tr '\t ' :-)" = "50:50:0:batch-1
50:50:0:-
2:6:1:batch-4" ]
    [ "$(grep -c . roof.tsv)" -eq 5 ]
}
