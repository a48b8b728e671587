#!/usr/bin/env bats
# Figures: made from records, valid, the same every time, made again from their script alone, and
# safe against any text of a record. One file because all share the same few records.
bats_require_minimum_version 1.5.0

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

# A negated command cannot fail a test in bats; this function can.
lacks() { if grep "$@"; then return 1; fi; }

# draw TYPE OUT FILES...
draw() { "$BIN/plot" --type "$1" -o "$2" "${@:3}"; }

records() { # of a type
    case $1 in
    pareto | steps | throughput) echo "$F"/plot-{metric,quality,front}.ndjson ;;
    memory | ratio) echo "$F/plot-scale.ndjson" ;;
    growth) echo both.ndjson ;;
    load) echo load.ndjson ;;
    trace) echo trace.ndjson ;;
    training) echo training.ndjson ;;
    drift) echo "$F/plot-generation.ndjson" ;;
    roofline) echo "$F/plot-roofline.ndjson" ;;
    esac
}

# Both contracts at batch sizes 1, 4, 16 and two lengths. LLaDA with k tokens a step takes
# (1 + batch) length / k ms, LLaMA 2 + 3 batch / 4 ms a token: equal at batch 4 with 1 a step.
# Points of 2 tokens a step were disturbed.
both() {
    jq -cn '("answer", "fixed") as $c | (32, 64) as $n | (1, 4, 16) as $b | (0, 1, 2) as $k
        | (if $k == 0 then 2 + 3 * $b / 4 else (1 + $b) / $k end) as $t
        | {schema: "crossover/1", kind: "metric", run: "r", contract: $c, batch: $b, level: 0.95,
           n: 60, launches: 5, disturbed: ($k == 2)}
          + (if $k == 0 then {model: "llama-x", paradigm: "autoregressive", arch: "llama",
                              max_new: $n, steps: null, axis: null}
             else {model: "llada-x", paradigm: "masked_diffusion", arch: "llada", gen_length: $n,
                   steps: ($n / $k), axis: "steps", series: "s\($c)\($n)\($b)"} end)
        | .point = "\(.model)\($c)\($n)-\($b)-\($k)" | .config = .point
        | (if $c == "answer" then 1 else 10 end) as $far
        | . + ({metric: "e2e_ns", unit: "ns", value: ($far * 1e6 * $t * $n)},
               {metric: "slot_tokens_per_s", unit: "per_s", value: (1000 * $b / $t / $far)},
               {metric: "output_tokens_per_s", unit: "per_s", value: (900 * $b / $t / $far)},
               {metric: "norm_latency_ns_per_token", unit: "ns", value: ($far * 1e6 * $t / 0.9)},
               {metric: "memory_weights_bytes", unit: "bytes", value: 1e6},
               {metric: "memory_allocated_peak_bytes", unit: "bytes",
                value: (1e6 + $b * (if $k == 0 then 1024 * $n else $n * $n end))})
        | .lo = (if .disturbed then null else .value * 0.98 end)
        | .hi = (if .disturbed then null else .value * 1.02 end)'
    jq -cn '(32, 64) as $n | {schema: "crossover/1", kind: "crossover", run: "r", name: "X_batch",
        llada: "llada-x", llama: "llama-x", contract: "fixed", gen_length: $n, exists: true, at: 4,
        lo: 3.8, hi: 4.2, tokens_per_step: 1, direction: "cheaper_up_to"}'
}


# Train records: a training with all members, one without memory, and a training of a prior.
watched() {
    jq -cn 'range(1; 41) as $i | {schema: "crossover/1", kind: "train", run: "r"}
        + ({model: "a", arch: "llada", paradigm: "masked_diffusion", step: $i, tokens: (100 * $i),
            loss: (4 / $i), grad_norm: (2 / $i), tokens_per_s: (1000 + $i),
            memory: {allocated_peak_bytes: (1e6 * $i), process_peak_bytes: (2e6 * $i)}},
           {model: "b", arch: "llama", paradigm: "autoregressive", step: $i, tokens: (100 * $i),
            loss: (3 / $i), grad_norm: 1, tokens_per_s: null, memory: null})'
}

# An answer of 8 slots in blocks of 4, one a pass from the left; and in 3 passes, in the second of
# which a slot is masked again. Another prompt's before and after.
commits() {
    jq -cn 'def of(c; p; s; sure; again): {schema: "crossover/1", kind: "commit", run: "r",
            id: "a", config: "m \(c) gen=8", point: c, slot_count: 8, block_length: 4, batch_id: 0,
            pass: p, pass_ns: p, slots: s, token_ids: s, confidences: sure, masked_slots: again};
        (range(8) | of("steps=8"; . + 1; [.]; [0.1 * . + 0.15]; [])),
        of("unmask=x"; 1; [0, 1, 2, 3, 4, 5]; [1, 1, 1, 1, 0.5, 0.5]; []),
        of("unmask=x"; 2; [6, 7]; [0.9, null]; [4]), of("unmask=x"; 3; [4]; [0.8]; []),
        (of("steps=8"; 1; [7]; [1]; []) | .id = "b")'
}

# numbers FILE TABLE: prints the rows of a table of a figure
numbers() { sed -n "/^# $2\$/,/^\$/p" "$1" | tail -n +3 | sed '/^$/d'; }

# Prints the positions of marks that are drawn as points.
marks() { grep -o "gpPt[0-9]*' transform='[^']*scale(2[^']*'" "$1" | sort; }

valid_svg() {
    grep -q '</svg>' "$1"
    if command -v xmllint > /dev/null; then xmllint --noout "$1"; fi
}

@test "every type of figure has a script, data, a caption and texts for screen readers" {
    both > both.ndjson
    commits > trace.ndjson
    watched > training.ndjson
    jq -c 'select(.kind == "metric" and .contract == "answer" and .batch == 16)
        | (1, 4) as $rate | .arrival_rate = $rate | .point += "@\($rate)"' both.ndjson > load.ndjson
    for t in pareto steps throughput memory ratio growth load trace training drift \
        roofline; do
        # shellcheck disable=SC2046
        draw "$t" "$t.svg" $(records "$t")
        [ -s "$t.gp" ] && [ -s "$t.tsv" ] && [ -s "$t.txt" ]
        lacks -q "no data" "$t.svg"
        lacks -q "^No data" "$t.txt"
        [ "$(grep -c "<path" "$t.svg")" -gt 5 ]
        for f in "$t" "$t-narrow"; do
            valid_svg "$f.svg"
            grep -q "<title id=\"figure-$f-title\">[A-Z]" "$f.svg"
            grep -q "<desc id=\"figure-$f-desc\">[A-Z]" "$f.svg"
            grep -q 'role="img"' "$f.svg"
            lacks -q 'gnuplot\|onmouse\|<script' "$f.svg"
            [ "$(grep -c '^<\(circle\|rect\) .*><title>.*[0-9].*</title>' "$f.svg")" -gt 1 ]
            lacks "id=[\"'][^f]" "$f.svg" # each is the figure's own, and there once
            [ -z "$(grep -o "id=[\"'][^\"']*" "$f.svg" | sort | uniq -d)" ]
            # no text is smaller than nine pixels on a screen of 400
            grep -o 'font-size="[0-9.]*' "$f.svg" | tr -d 'a-z="-' |
                awk '$1 < 10 { bad = 1 } END { exit bad }'
        done
        grep -q '<svg width="36[0-9]"' "$t-narrow.svg"
    done
    [ -z "$(find . -name ".*tmp*")" ]
    # a point of each curve, a bar of each series at each batch size, a cell of each size
    [ "$(grep -c '^<circle cx' pareto.svg)" -eq "$(numbers pareto.tsv points | wc -l)" ]
    bars=$(numbers throughput.tsv points | wc -l)
    [ "$(grep -c '^<rect .*<title>' throughput.svg)" -eq "$bars" ]
    [ "$(grep -c '^<rect .*<title>' memory.svg)" -eq "$(numbers memory.tsv cells | wc -l)" ]
    grep -q '<title>llada-demo, 8 steps: end-to-end latency [0-9.]* \[[0-9.]*, [0-9.]*\] ms,' \
        pareto.svg
    [ ! -e narrow-narrow.svg ]
    draw pareto one.svg --width 8.4 --title 'Eight steps are enough' $(records pareto)
    [ ! -e one-narrow.svg ]
    grep -q '>Eight steps are enough</title>' one.svg
    grep -q '^Eight steps are enough\. ' one.txt
}

@test "a panel of the lead figure has a title and does not state the answer" {
    draw pareto p.svg $(records pareto)
    grep -q '>batch 1<' p.svg
    grep -q '^array cross_at.*[0-9]' p.gp # where it is as good is drawn, not told
}

@test "the target of a mark lies where gnuplot drew the mark" {
    draw pareto p.svg $(records pareto)
    # each target lies on a point: of LLaDA circles, of LLaMA crosses
    grep '^<circle cx' p.svg | sed 's/.*cx="\([0-9.]*\)" cy="\([0-9.]*\)".*/\1 \2/' | sort > targets
    grep -o "gpPt[16]' transform='translate([0-9.,]*" p.svg | sed 's/.*(//; s/,/ /' |
        sort -u > drawn
    [ -z "$(comm -23 targets drawn)" ]
}

@test "a drawing has colours for dark mode, and no colours that need a browser" {
    draw throughput t.svg $(records throughput)
    grep -q '@media screen and (prefers-color-scheme:dark)' t.svg
    for c in ffffff 202020 d55e00; do
        grep -q "\[fill=\"#$c\"\]{fill:" t.svg
    done
    sed '/^<style>/d' t.svg > bare
    lacks -q 'var(' bare
    lacks -q 'rgb(' bare
}

@test "a method has one look in every figure" {
    looks() { # NAME METHOD NAME METHOD: colour and shape of both
        printf '%s\n' "format = 'svg'; width_cm = 17.5; series_count = 2" \
            "array series_kind[2] = [0, 0]; array series_variant[2] = [1, 2]" \
            "array series_name[2] = ['$1', '$3']" "array series_method[2] = ['$2', '$4']" \
            "load '$CROSSOVER_SHARE/plots/style.gp'" \
            "print look(1), mark(1), look(2), mark(2)" > looks.gp
        gnuplot -d looks.gp 2>&1
    }
    looks 'a wino' wino 'a dual-factor' dual-factor > two
    looks a '' 'b dual-factor, batch 4' dual-factor > other
    [ "$(tail -n 1 two | cut -d ' ' -f 3,4)" = "$(tail -n 1 other | cut -d ' ' -f 3,4)" ]
    [ "$(tail -n 1 two | cut -d ' ' -f 1,2)" != "$(tail -n 1 two | cut -d ' ' -f 3,4)" ]
    # and so have its values, also texts and several; a name alone is no method
    for values in 12 '2 3' on; do
        looks "a wino $values" wino "b dual-factor $values, batch 4" dual-factor > values
        [ "$(tail -n 1 two)" = "$(tail -n 1 values)" ]
    done
    looks 'a wino' '' 'a dual-factor' 'dual factor' > none
    looks a '' b '' > plain
    [ "$(tail -n 1 none)" = "$(tail -n 1 plain)" ]
}

@test "every method of data/methods.ndjson has a look of its own" {
    for m in $(jq -r .method "$F/../../data/methods.ndjson"); do
        sed -n '/^methods(kind)/,/^at_char(/p' "$CROSSOVER_SHARE/plots/style.gp" | grep -qw -e "$m"
    done
    printf '%s\n' "format = 'svg'; width_cm = 17.5; load '$CROSSOVER_SHARE/plots/style.gp'" \
        "do for [n = 1:46] {print hue(0, n), variant(0, n)}" > looks.gp
    gnuplot -d looks.gp 2> looks
    [ "$(grep -c '^#' looks)" -eq 46 ]
    [ -z "$(grep '^#' looks | sort | uniq -d)" ]
}

@test "one step count or one point gives no figure and a reason" {
    for one in 2 8; do
        jq -c --argjson n $one 'select(.arch == "llama" or .steps == $n)' \
            "$F"/plot-{metric,quality,front}.ndjson > one
        run -0 draw steps s.svg one
        [[ $output == *W041* ]]
        grep -q '^No data: .* measured at one step count only' s.txt
        valid_svg s.svg
        draw pareto p.svg one # two points
        lacks -q '^No data' p.txt
    done
    jq -c 'select(.arch == "llada" and .steps == 8 and .batch == 1)' \
        "$F"/plot-{metric,quality}.ndjson > alone
    draw pareto a.svg alone
    grep -q '^No data: .* a panel would have a single point' a.txt
    # a panel of one point beside others is left out
    jq -c 'select((.batch == 1 and .arch) or .arch == "llama")' \
        "$F"/plot-{metric,quality}.ndjson > most
    draw pareto m.svg most
    grep -q '^panel_count = 1$' m.gp
    grep -q 'would have a single point: 1' m.txt
}

@test "points without a step count give a figure of steps that says so" {
    jq -c 'select(.kind != "meta" and .kind != "end") | del(.passes, .rows) | .steps = null' \
        "$F"/plot-{metric,quality,front}.ndjson > none
    run -0 draw steps s.svg none
    [[ $output == *W041* ]]
    grep -q '^No data: .* no point has a step count' s.txt
    valid_svg s.svg
}

@test "a figure whose write failed inside gnuplot is refused" {
    strace -o log true 2> why || skip "no strace here, or it may not trace"
    mkdir fake
    printf '#!/bin/sh\nexec strace -o /dev/null $FAULT "%s" "$@"\n' \
        "$(command -v gnuplot)" > fake/gnuplot
    chmod +x fake/gnuplot
    for s in svg png pdf; do
        draw ratio "whole.$s" $(records ratio)
        refused=0
        for n in 2 3 $([ $s = pdf ] || echo 7); do
            export FAULT="-e inject=write:error=EIO:when=$n"
            # an SVG is drawn twice with one write more, so writes to other files count too
            [ $s = svg ] || FAULT+=" -P /memfd:figure"
            PATH=$T/fake:$PATH run --separate-stderr draw ratio "gap.$s" --sandbox off \
                $(records ratio) # strace may not trace in the sandbox
            # a failed write may belong to another file: then the figure is whole
            [ "$status" -ne 0 ] || { LC_ALL=C sed 's/gap/whole/g' "gap.$s" |
                cmp - "whole.$s" && rm "gap.$s" && continue; }
            echo "$s, write $n: status $status: $stderr"
            [ "$status" -eq 74 ]
            [[ $stderr == *"gap"*".$s: expected a whole $s from gnuplot"* ]]
            [ ! -e "gap.$s" ]
            refused=$((refused + 1))
        done
        [ "$refused" -gt 0 ]
    done
}

@test "a gnuplot that is killed is reported with signal and figure" {
    mkdir fake
    printf '#!/bin/sh\necho "x line 1: warning: Skipping data" >&2\nkill -SEGV $$\n' > fake/gnuplot
    chmod +x fake/gnuplot
    PATH=$T/fake:$PATH run draw training x.svg "$F/plot-train.ndjson"
    [ "$status" -eq 70 ]
    [[ $output == *"gnuplot died of signal 11 (Segmentation fault) on a figure of type training"* ]]
    [[ $output != *warning* ]]
    printf '#!/bin/sh\nsh -c "kill -KILL \\$\\$"\nexit $?\n' > fake/gnuplot
    PATH=$T/fake:$PATH run draw training x.svg "$F/plot-train.ndjson"
    [[ $output == *"gnuplot died of signal 9 (Killed) on a figure of type training"* ]]
}

@test "the training figure has means of the records, one panel for each quantity" {
    watched > training.ndjson
    draw training t.svg training.ndjson
    awk -F '\t' '$1 == 400' t.tsv > at
    [ "$(cut -f 1-6 at | head -n 1)" = "400	1	0.5	1004	8	4" ]
    [ "$(awk -F '\t' '$1 == 4000 && $3 == 1' t.tsv | cut -f 1-3)" = "4000	0.075	1" ]
    grep -q 'panel_count = 4' t.gp
    jq -c 'del(.memory, .tokens_per_s, .tokens)' training.ndjson > bare.ndjson
    draw training bare.svg bare.ndjson
    grep -q 'panel_count = 2' bare.gp
    grep -q 'optimiser steps' bare.gp
}

@test "an SVG file is valid XML" {
    command -v xmllint > /dev/null || skip "no xmllint: what is drawn is not checked as XML"
}

@test "a disk that is full leaves no part of a figure under its name" {
    mkdir fake
    printf '#!/bin/sh\nulimit -f 12\nexec "%s" "$@"\n' "$(command -v gnuplot)" > fake/gnuplot
    chmod +x fake/gnuplot
    for s in svg png pdf; do # gnuplot is silent about a file that it could not write whole
        PATH=$T/fake:$PATH run -74 --separate-stderr draw ratio "full.$s" $(records ratio)
        [ "${#stderr_lines[@]}" -eq 1 ] && [[ $stderr == *"full"*".$s: expected a whole $s"* ]]
        [ ! -e "full.$s" ]
        draw ratio "full.$s" $(records ratio) # one that is there stays
        cp "full.$s" before
        PATH=$T/fake:$PATH run -74 draw ratio "full.$s" $(records ratio)
        cmp "full.$s" before
    done
    [ -z "$(find . -name '.*tmp*')" ]
}

@test "a figure that cannot be written gives the reason" {
    [ "$(nm -D "$BIN/plot" | grep -c __asan)" -eq 0 ] || skip "LeakSanitizer cannot be traced"
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
    # the same marks, and the values of them
    [ "$(marks a/pareto.svg)" = "$(marks b/pareto.svg)" ]
    [ "$(grep -c 'showHypertext' b/pareto.svg)" -eq "$(grep -c '^<circle cx' a/pareto.svg)" ]
    draw pareto a/pareto.png $(records pareto)
    (cd b && gnuplot -d -e "format = 'png'; out = 'pareto.png'" pareto.gp)
    cmp a/pareto.png b/pareto.png
}

# twice FORMAT: draws the figure in two different seconds
twice() {
    mkdir -p a b
    draw throughput "a/f.$1" $(records throughput)
    sleep 1.1
    draw throughput "b/f.$1" $(records throughput)
}

@test "SVG and PNG are the same bytes every time" {
    for s in svg png; do
        twice $s
        cmp "a/f.$s" "b/f.$s"
    done
}

@test "PDF files are the same bytes every time, if cairo writes its date uncompressed" {
    twice pdf
    grep -aq '/CreationDate (D:' a/f.pdf || skip "cairo 1.18 packs the date of a PDF away"
    cmp a/f.pdf b/f.pdf
}

@test "a file name may hold quotes, spaces and shell characters" {
    for n in "'a; b" "c''d" "it's \`c\`" '-d "e"$(f)' 'g\\h'; do
        (cd "$T" && draw training "./$n.svg" "$F/plot-train.ndjson")
        valid_svg "./$n.svg"
        mkdir again
        cp "./$n.gp" again/x.gp
        (cd again && gnuplot -d x.gp && [ "$(marks "./$n.svg")" = "$(marks "../$n.svg")" ])
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

@test "the front is drawn from the front records and extends to the right" {
    draw pareto p.svg $(records pareto)
    got=$(sed -n '/^# front/,/^$/p' p.tsv | grep -c '^[0-9]')
    want=$(grep -c '"kind":"front".*"class":"on"' "$F/plot-front.ndjson")
    [ "$got" -eq $((want + 2)) ] # two panels, each with a last level
    # a member that is worse than a cheaper one by the values drawn is left out (lower is better)
    jq -c 'select(.kind != "meta" and .kind != "end") |
        if .metric == "judge_ppl" then .direction = "higher" else . end' \
        "$F"/plot-{metric,quality,front}.ndjson | sed 's/"judge_ppl"/"fluency"/g' > turned
    draw pareto t.svg turned
    sed -n '/^# front/,/^# /p' t.tsv | awk '/^[0-9]/ { if ($1 < cost) last = 0
        fell = fell || $2 < last; cost = $1; last = $2; n++ } END { exit fell || n < 4 }'
}

@test "the front of a foreign metric has the direction that its front records name" {
    jq -c 'select(.kind == "front") | .quality_metric = "errors" | .quality_direction = "lower"' \
        "$F/plot-front.ndjson" > fronts
    "$BIN/plot" --type pareto --quality errors -o e.svg fronts
    jq -c '.quality_metric = "judge_ppl"' fronts > known
    draw pareto k.svg known
    sed -n '/^# front/,/^# labels/p' k.tsv > want
    sed -n '/^# front/,/^# labels/p' e.tsv | diff - want
    [ "$(grep -c '^[0-9]' want)" -gt 4 ]
}

@test "zero steps stand left of the fewest steps, and the key names every series" {
    jq -c 'if .arch == "llada" then .arch = "ltm" | .paradigm = "latent" | .axis = "vi_steps"
               | .vi_steps = (if .steps == 2 then 0 else .steps end) | .steps = null else . end
           | select(.kind != "meta" and .kind != "end" and .kind != "crossover")' \
        "$F"/plot-{metric,quality,front}.ndjson > t.ndjson
    draw steps s.svg t.ndjson
    ticks=$(grep -o '>[0-9.]\+<' s.svg | tr -d '<>\n')
    [[ $ticks = *048163264*048163264 ]]
    [ "$(grep -c '>llama-demo<' s.svg)" -eq 1 ]
}

@test "along another axis points stand at the measured passes and are named by their values" {
    jq -c 'if .arch == "llada" then .passes = .steps | .threshold = (1 - 1 / .steps)
               | .axis = "threshold" | .unmask = "threshold" | .steps = null
           else . end | select(.kind != "meta" and .kind != "end")' \
        "$F"/plot-{metric,quality,front}.ndjson > t.ndjson
    draw steps s.svg t.ndjson
    grep -q 'denoising passes' s.svg
    lacks -q 'denoising steps' s.svg
    grep -q '>0.96875\|0.96875' s.svg
    grep -q 'Labels beside the points: threshold' s.txt
    draw pareto p.svg t.ndjson
    grep -q '0.96875' p.svg
    grep -q 'Labels beside the points: threshold' p.txt
    draw throughput t.svg t.ndjson
    grep -q 'threshold 0.5' t.svg
    draw ratio r.svg t.ndjson
    grep -q 'threshold' r.svg
}

@test "a value is drawn once, even if measured on several sets of prompts" {
    jq -c 'select(.kind == "metric") | .prompts = 3 | .workload = "few" | .value = 1 | .lo = null |
        .hi = null' "$F/plot-metric.ndjson" > few
    jq -c 'select(.kind == "metric") | .prompts = 30 | .workload = "many"' "$F/plot-metric.ndjson" \
        > many
    draw throughput a.svg many
    draw throughput b.svg few many
    cmp a.tsv b.tsv
    grep -q '14 configurations were measured on several sets of prompts; the figure shows' b.txt
    lacks -q 'several sets' a.txt
}

@test "a name of a series holds only what distinguishes it" {
    for c in none dual; do
        jq -c --arg c $c 'select(.kind == "metric") | if .arch == "llada" then .cache = $c
            | .point += $c | .series += $c else select($c == "none") end' "$F/plot-metric.ndjson"
    done > m.ndjson
    draw throughput t.svg m.ndjson
    grep -q 'llada-demo cache=dual, 16 steps' t.svg
    grep -q '>llada-demo, 16 steps' t.svg
    grep -q '>llama-demo<' t.svg
}

@test "memory that ran out is a hatched cell" {
    draw memory m.svg "$F/plot-scale.ndjson"
    grep -q '>OOM<\|OOM' m.svg
    grep -q 'NaN.*OOM' m.tsv
}

@test "a caption has n, launches, machine, date, commit and the meaning of the bars" {
    draw steps s.svg $(records steps)
    for what in '95 % intervals' 'Launches: 5' 'Example CPU' '2026-11-20' '0123456789ab' \
        '24 to 120'; do
        grep -q "$what" s.txt
    done
}

@test "a caption names the machine of the launches, and the kind of its processor" {
    jq -c 'if .kind == "meta" then .kind = "parent" | ., (.tool = "gen-llada" |
        .machine += {cpu: "Q", microarchitecture: "Zen 5", cores: 7}) elif .kind == "end" then empty
        else . end' "$F/plot-metric.ndjson" |
        draw steps s.svg - "$F/plot-quality.ndjson" "$F/plot-front.ndjson"
    grep -q 'Machine: Q (Zen 5), 7 cores\.' s.txt
    run ! grep -q 'Example CPU' s.txt
}

@test "without data the figure prints that" {
    run draw training empty.svg "$F/plot-metric.ndjson"
    [ "$status" -eq 0 ]
    [[ $output == *W041*"no data"* ]]
    grep -q 'training: no data' empty.svg
    valid_svg empty.svg
    printf '' | draw pareto none.png - 2> /dev/null
    [ -s none.png ]
}

@test "text of records cannot become a command or damage the picture" {
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
        draw training evil.svg in.ndjson
        valid_svg evil.svg
        lacks -qi '<script' evil.svg
        printf '%s' "$e" | jq -Rsc '. as $e
            | ([1, 2, 4][] | {arch: "llada", steps: .}), {arch: "llama"}
            | .config = "\($e) steps=\(.steps)" | .model = $e | .batch = 1
            | ({kind: "metric", metric: "e2e_ns", value: (1e6 * (.steps // 3))},
               {kind: "quality", summary: true, metric: $e, value: (5 - (.steps // 3)),
                direction: "lower"}) + . | {schema: "crossover/1", run: "r"} + .' > in.ndjson
        run draw pareto evil.svg in.ndjson
        want=1 # the name of the metric is no field name
        [ "$e" != "$huge" ] || want=0
        [ "$status" -eq $want ]
        valid_svg evil.svg
        jq -c 'if .metric then .metric |= if . == "e2e_ns" then . else "q" end else . end' \
            in.ndjson > named
        draw pareto evil.svg named
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
    run draw pareto p.svg m.ndjson "$F/plot-quality.ndjson"
    [ "$status" -eq 1 ]
    [ "$(grep -c 'm.ndjson:[0-9]*: value: expected a number from' <<< "$output")" -eq 4 ]
    valid_svg p.svg
    grep -q 'Values left out, .* outside the axis: 2' p.txt # two batch sizes
}

@test "a second, different value of a point is refused" {
    jq -c 'select(.metric == "e2e_ns") | .value *= 2 | .lo = null | .hi = null' \
        "$F/plot-metric.ndjson" > second
    run draw pareto p.svg "$F/plot-metric.ndjson" second "$F/plot-quality.ndjson"
    [ "$status" -eq 65 ]
    [[ $output == *"second:1: a second, different 'e2e_ns' record"* ]]
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
    grep -q 'one answer in 26' d.txt
}

@test "a broken line is reported and does not stop the others" {
    { cat "$F/plot-train.ndjson"; echo '{"broken'; } > t.ndjson
    run draw training t.svg t.ndjson
    [ "$status" -eq 1 ]
    [[ $output == *W040* ]]
    valid_svg t.svg
    lacks -q 'no data' t.svg
}

# judged METRICS: an accuracy for each of their points
judged() {
    jq -c 'select(.metric == "e2e_ns") | .kind = "quality" | .summary = true | .metric = "accuracy"
        | .value = 0.5 | .direction = "higher" | del(.disturbed, .lo, .hi)' "$1"
}

@test "points with different contracts share no curve, panel or bar" {
    both > m.ndjson
    judged m.ndjson > q.ndjson
    draw pareto p.svg m.ndjson q.ndjson
    for t in 'batch 1, to the end of the text, at most 64 tokens' 'batch 1, exactly 64 tokens' \
        'batch 16, exactly 64 tokens'; do
        grep -q "$t" p.svg
    done
    grep -q '^panel_count = 6$' p.gp
    grep -q '^array series_panel.*= \[1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6\]' p.gp
    grep -q 'they have another length: 18' p.txt
    draw pareto p.svg --contract fixed --batch 4 --length 32 m.ndjson q.ndjson
    grep -q '^panel_count = 1$' p.gp
    draw steps s.svg m.ndjson q.ndjson
    [ "$(numbers s.tsv points | cut -f 2 | paste -sd ' ')" = '32 64 88' ]
    draw steps s.svg --contract fixed m.ndjson q.ndjson
    [ "$(numbers s.tsv points | cut -f 2 | paste -sd ' ')" = '320 640 880' ]
    draw throughput t.svg m.ndjson
    [ "$(numbers t.tsv points | cut -f 2 | sort -n | tail -n 1)" = 188.2352941 ] # 2 a step
    draw throughput t.svg --contract answer m.ndjson
    [ "$(numbers t.tsv points | cut -f 2 | sort -n | tail -n 1)" = 1694.117647 ]
    draw memory m.svg m.ndjson
    [ "$(numbers m.tsv cells | wc -l)" -eq 12 ] # 2 models, 2 lengths, 3 batch sizes
    grep -q 'Contract: fixed' m.txt
}

@test "a ratio whose interval includes 1, or is missing, is marked" {
    for k in 1 1.3; do # LLaDA takes k times as long as LLaMA, in launches that spread by 2 %
        jq -cn --argjson k $k '("llada", "llama") as $m | {schema: "crossover/1", kind: "metric",
            run: "r", config: $m, point: $m, model: $m, arch: $m, metric: "e2e_ns", batch: 1,
            steps: 8, gen_length: 64, max_new: 64, direction: "lower", lo: null, hi: null,
            axis: (if $m == "llada" then "steps" else null end), level: 0.95,
            value: (if $m == "llada" then 1e6 * $k else 1e6 end)}
            | .value as $v | .launch_values = [range(6) | {launch: ., value:
                ($v * (1 + 0.02 * (($m | length) * 7 + . * 3 | sin)))}]' > "m$k"
        draw ratio "r$k.svg" "m$k"
        jq -c '.launch_values |= .[:2]' "m$k" > few
        draw ratio "f$k.svg" few
    done
    grep -q '	~[01][.0-9]*×$' r1.tsv
    grep -q '	1[.0-9]*×$' r1.3.tsv
    grep -q '	1[.0-9]*×?$' f1.3.tsv
}

@test "a disturbed point is hollow, and the caption says so" {
    both > m.ndjson
    judged m.ndjson > q.ndjson
    draw steps s.svg m.ndjson q.ndjson
    [ "$(numbers s.tsv points | cut -f 8 | paste -sd ' ')" = '1 0 0' ]
    grep -q 'Hollow points have no interval, because other work ran' s.txt
    jq -c '.disturbed = false' m.ndjson > quiet
    draw steps q.svg quiet q.ndjson
    lacks -q Hollow q.txt
    run cmp s.svg q.svg
    [ "$status" -eq 1 ]
}

@test "two sweeps of a model share no colour, and a sweep keeps its colour in all panels" {
    { both; both | jq -c 'select(.arch == "llada") | .cache = "dual" | .point += "d"
        | .series += "d"'; } | jq -c 'select(.arch == "llama") // (.cache //= "none")' > m.ndjson
    judged m.ndjson > q.ndjson
    draw pareto p.svg m.ndjson q.ndjson
    grep -q '^array series_variant.*= \[1, 2, 1, 1, 2, 1,' p.gp
    lacks '^array series_variant.*, 3' p.gp
    for c in '#0072B2' '#009E73'; do
        rgb=$(printf 'rgb(%3d, %3d, %3d)' "0x${c:1:2}" "0x${c:3:2}" "0x${c:5:2}")
        grep -qi "$rgb\|$c" p.svg
    done
}

@test "the figure of memory against length states exponents and bytes a token" {
    both > m.ndjson
    { cat m.ndjson; jq -c 'select(.batch == 1 and .contract == "fixed") | .point += "-long"
          | if .max_new then .max_new = 128 else .gen_length = 128 end
          | if .metric == "memory_allocated_peak_bytes"
            then .value = (1e6 + (if .max_new then 131072 else 16384 end)) else . end' m.ndjson
    } > long.ndjson
    draw growth g.svg long.ndjson
    grep -q 'llada-x, batch 1: exponent 2 \[2, 2\]' g.txt
    grep -q 'llama-x, batch 1: exponent 1 \[1, 1\], 1 \[1, 1\] KiB a token' g.txt
    grep -q 'llama-x, batch 4: 4 KiB a token' g.txt # two lengths give no exponent
    grep -q '>llama-x, batch 4: 4 KiB/token<' g.svg
    jq -c 'select((.max_new // .gen_length) == 32)' m.ndjson > one
    draw growth o.svg one
    grep -q 'at one length only' o.txt
}

@test "a trace shows commit time and confidence of each slot, and slots masked again" {
    commits > t
    draw trace t.svg --width 8.4 t
    valid_svg t.svg
    # slot, first and last pass of its being final, confidence and its tenths
    [ "$(numbers t.tsv spans | sed -n '9,10p;14,17p' | tr '\t' ' ' | paste -sd ,)" = \
        "4 1 1 0.5 5,0 1 3 1 9,4 3 3 0.8 8,5 1 3 0.5 5,6 2 3 0.9 9,7 2 3 NaN ?" ]
    numbers t.tsv spans | sed -n 3p | grep '^2	3	8	0.35	3$' > /dev/null
    [ "$(numbers t.tsv again | tr '\t' ' ')" = "4 2" ]
    grep -q '^panel_title\[1\] = .steps=8.$' t.gp # what the panels share is left out
    grep -q 'steps=8: 8 tokens in 8 passes, median confidence 0.50' t.txt
    grep -q 'unmask=x: 9 tokens in 3 passes, .*1 masked again\. All panels: m gen=8\. Crosses' t.txt
    lacks -q 'Left out' t.txt
    draw trace b.svg --id b t
    [ "$(numbers b.tsv spans | tr '\t' ' ')" = "7 1 1 1 9" ]
    lacks -q Crosses b.txt
    draw trace none.svg --id c t
    grep -q 'no commit record has the id of --id' none.txt
    "$BIN/plot" --type trace --term t > out
    grep -q '1 +| *9 *9 *9 *9 *5 *5 *$' out # confidences in tenths
    grep -q '| *x *9 *? *$' out
    lacks -q 'at the commit' out # the scale of colours
}

@test "an invalid trace gives no figure and no crash" {
    commits | jq -c '.slot_count = 1e12' > huge
    draw trace h.svg huge
    grep -q 'trace: no data' h.svg
    commits | jq -c '.slots |= map(. + 100, -1, 2.5, "x")' > far
    draw trace f.svg far
    grep -q 'Values left out' f.txt
    { commits; commits; } > twice # two runs in a file: the first is drawn
    draw trace w.svg twice
    commits > t
    draw trace t.svg t
    cmp t.tsv w.tsv
    commits | jq -c 'del(.slots), (.confidences = 3), (.id = 7), (.point = null), (.pass = -1)' \
        > odd
    draw trace o.svg odd
    valid_svg o.svg
}

@test "--term writes no colours into a file unless --color always asks for them" {
    "$BIN/plot" --type pareto --term $(records pareto) > plain
    lacks -q $'\033' plain
    "$BIN/plot" --type pareto --term --color always $(records pareto) > coloured
    grep -q $'\033\\[38;5;' coloured
}

@test "--term prints the figure and writes nothing" {
    "$BIN/plot" --type pareto --term $(records pareto) > out
    grep -q 'end-to-end latency' out
    grep -q 'against latency' out
    [ "$(ls)" = out ]
}

@test "bad usage, missing input and a place that cannot be written have their exit codes" {
    run "$BIN/plot" -o x.svg "$F/plot-train.ndjson"
    [ "$status" -eq 64 ]
    run draw training x.gif "$F/plot-train.ndjson"
    [ "$status" -eq 64 ]
    run draw training x.svg absent.ndjson
    [ "$status" -eq 66 ]
    run draw training absent/x.svg "$F/plot-train.ndjson"
    [ "$status" -eq 73 ]
    mkdir -p empty/plots bin
    cp "$BIN/plot" bin/
    CROSSOVER_SHARE=$T/empty run bin/plot --type training -o x.svg "$F/plot-train.ndjson"
    [ "$status" -eq 66 ]
    [[ $output == *CROSSOVER_SHARE* ]]
    [ ! -e x.svg ]
}

@test "when gnuplot fails, its message is shown and the old figure stays" {
    mkdir fake
    printf '#!/bin/sh\necho "line 7: something is wrong" >&2\nexit 1\n' > fake/gnuplot
    chmod +x fake/gnuplot
    echo old > x.svg
    PATH=$T/fake:$PATH run draw training x.svg "$F/plot-train.ndjson"
    [ "$status" -eq 70 ]
    [[ $output == *"something is wrong"* ]]
    [ "$(cat x.svg)" = old ]
    printf '#!/bin/sh\nexit 0\n' > fake/gnuplot
    PATH=$T/fake:$PATH run draw training x.svg "$F/plot-train.ndjson"
    [ "$status" -eq 70 ]
    [ "$(cat x.svg)" = old ]
    [ -z "$(find . -name '.*tmp*')" ]
}

@test "the roofline of a run has its configurations under its ceilings" {
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

@test "many points and many losses take little time and memory" {
    [ "$(nm -D "$BIN/plot" | grep -c __asan)" -eq 0 ] || skip "sanitizers take memory"
    # 3000 points in 1500 sweeps of one model: one pass finds their names
    jq -cn 'range(3000) | {schema: "crossover/1", kind: "generation", run: "r", id: "p", seq: .,
        point: "p\(.)", series: "s\(. / 2 | floor)", axis: "steps", config: "c\(.)", model: "m",
        arch: "llada", paradigm: "masked_diffusion", batch: 1, gen_length: 8, block_length: 8,
        steps: (1 + . % 2), threshold: (. / 2 | floor / 2000), cache: "none", remasking: "random",
        device: "cpu", dtype: "f32", quant: "none", e2e_ns: 1000000, status: "ok"}' > points
    (ulimit -t 6; draw drift many.svg points)
    # a record takes 48 bytes, not the 1.7 kB of its text
    awk 'BEGIN { for (i = 0; i < 150000; i++) printf "{\"schema\":\"crossover/1\",\"kind\":" \
        "\"train\",\"run\":\"r\",\"model\":\"m\",\"arch\":\"llada\",\"step\":%d,\"tokens\":%d," \
        "\"loss\":%.3f,\"rate\":0.1,\"grad_norm\":1.5,\"tokens_per_s\":9}\n", i, 64 * i,
        1 + 1 / (1 + i) }' > train
    "$BIN/plot" --help > /dev/null
    (ulimit -v 150000; "$BIN/plot" --type training --term train > loss.txt || exit 1)
    grep -q 'averaged over 300' loss.txt
}

@test "a frontier of two qualities needs no metric record" {
    jq -nc '("judge_ppl", "entropy_nats") as $m | (0, 0.5, 1) as $t | {schema: "crossover/1",
        kind: "quality", run: "r", config: "llama-demo temp=\($t)", point: "00000000000\($t * 2)",
        model: "llama-demo", arch: "llama", batch: 1, max_new: 32, contract: "answer",
        temperature: $t, metric: $m, summary: true, level: 0.95, n: 30, method: "pooled",
        direction: (if $m == "judge_ppl" then "lower" else "higher" end),
        value: (if $m == "judge_ppl" then 10 + 8 * $t else 2 + $t end), lo: 1, hi: 40}' > q.ndjson
    "$BIN/plot" --type pareto --cost judge_ppl --quality entropy_nats -o f.svg q.ndjson
    grep -q 'Quality (token entropy (nats)) against judge perplexity; up' f.txt
    [ "$(grep -c '^1[048].*llama-demo temp=' f.tsv)" -eq 3 ]
    lacks -q 'latency' f.txt
}

# runs MODEL VALUE LO HI...: the claims of a run each, with its time at equal quality (null: none)
runs() {
    while [ $# -ge 4 ]; do
        jq -cn --arg m "$1" --argjson v "$2" --argjson lo "$3" --argjson hi "$4" \
            '{schema: "crossover/1", kind: "claim", run: "r", primary: true, decided: true} + (
             {name: "question", text: "?", diffusion: $m, autoregressive: "ar-\($m)",
              hardware: "here"},
             {name: "card", key: "time_at_equal_quality", value: $v, lo: $lo, hi: $hi},
             {name: "card", key: "vanilla", value: 8, lo: 7, hi: 9})'
        shift 4
    done
}

@test "the figure of pairs has a row for each run, in order, with the known values" {
    runs a 2 1.5 3 b null null null > two.ndjson
    runs c 0.5 0.4 0.7 > one.ndjson
    draw pairs p.svg two.ndjson one.ndjson
    [ "$(sed -n '3,5p' p.tsv | cut -f1-4 | tr '\t' ' ' | tr '\n' ';')" = \
        '3 2 1.5 3;2 NaN NaN NaN;1 0.5 0.4 0.7;' ]
    grep -q '2 of 3 pairs' p.txt
    grep -q 'a, ar-a' p.gp && grep -q 'c, ar-c' p.svg
    lacks -q '; here' p.gp
    sed 's/here/there/' one.ndjson > far.ndjson
    draw pairs q.svg two.ndjson far.ndjson # several machines: each row names its own
    grep -q 'c, ar-c; there' q.gp && grep -q 'a, ar-a; here' q.gp
    # the same models twice: each row names its run, and the time that it is of
    runs c 2 1.5 3 | jq -c '.run = "demo" | if .key then .clock = "cpu" else . end' > again.ndjson
    draw pairs r.svg one.ndjson again.ndjson two.ndjson
    grep -q 'c, ar-c; r[^;]' r.gp && grep -q 'c, ar-c; demo; processor time' r.gp
    grep -q 'a, ar-a[^;]' r.gp
}
