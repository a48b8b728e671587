#!/usr/bin/env bats
# The report: the pages load nothing, have a Markdown twin, and no text of a record can run in them.
load conforms
load report

@test "the HTML pages load nothing and have a Markdown twin" {
    report "${ALL[@]}" 2> err
    [ "$(tail -n 1 err)" = "report: report.html" ]
    lacks -Eiq '<link|<script src|@import|https?://' report.html tables.html
    [ "$(grep -c '<script' tables.html)" -eq 1 ] # the script that sorts tables
    for h in 'Machine and models' Latency Throughput Memory Quality 'How to read these tables' \
        'Limits of these numbers' Failures 'Records and commands'; do
        grep -q "<h2 [^>]*>$h</h2>" tables.html
        grep -q "^## $h\$" report.md
    done
    grep -q '^# All tables of this run$' report.md
}

@test "the machine is that of the launches; the analysing machine has an item of its own" {
    jq -c 'if .kind == "meta" then .kind = "parent" | ., (.tool = "gen-llada" |
        .machine += {cpu: "Q", cpu_family: 26, cpu_model: 2, microarchitecture: "Zen 5",
            fingerprint: "aaaaaaaaaaaa"}) elif .kind == "end" then empty else . end' \
        "$F/plot-metric.ndjson" > metrics
    report metrics "$F"/plot-{quality,front}.ndjson
    says 'Machine aaaaaaaaaaaa: Q (Zen 5), '
    says 'Analysed on machine [0-9a-f]*: Example CPU 2.0 GHz, '
    lacks -q 'latencies of different machines' tables.html
}

@test "ratios of the two systems are a table, with verdict and adjusted p" {
    jq -cn '{schema: "crossover/1", kind: "comparison", run: "r", config: "llada 4", model: "m",
        base_config: "llama", by: "paradigm", setting: "masked_diffusion", metric: "e2e_ns",
        effect: "ratio", value: 1.25, lo: 1.125, hi: 1.5, p: 0.001, p_holm: 0.004,
        verdict: "SLOWER", launches: 5, base_value: 1, config_value: 1.25}' > ratio
    report "${ALL[@]}" ratio
    says 'llada 4 *llama *1.25 \[1.12, 1.50\] *SLOWER *0.004 *5'
    # no verdict without an interval, and none if a claim about time is null
    jq -c '.lo = null | .hi = null' ratio > few
    report "${ALL[@]}" few
    lacks -q 'SLOWER' tables.html
    says '1 further pairs of points have no ratio of times'
    jq -c 'select(.name == "card" and .clock) | .value = null | .value_reason = "disturbed"
        | .note = "disturbed"' \
        "$F/claims.ndjson" > disturbed
    report "${ALL[@]}" ratio disturbed
    lacks -q 'SLOWER' tables.html
    says 'not known.*disturbed' report.html
    lacks -q 'Bytes of text a second' tables.html
    jq -c '.metric = "output_bytes_per_s" | .value = 0.75 | .lo = 0.625 | .hi = 0.875' ratio > text
    report "${ALL[@]}" ratio text
    grep -q 'Bytes of text a second' tables.html
    says 'llada 4 *llama *0.750 \[0.625, 0.875\] *SLOWER'
    lacks -q 'Quantization: costs' tables.html
}

@test "bytes of text a second stand on the page where the tokenizers differ, and only there" {
    same='.tokenizer = "0123456789ab" | .'
    other='.tokenizer = (.arch + "0123456789")[0:12] | .'
    records='select(.kind != "meta" and .kind != "end")'
    for who in same other; do
        jq -c "$records | ${!who}"' | ., (select(.metric == "output_tokens_per_s")
            | .metric = "output_bytes_per_s" | .value *= 3 | .lo = null | .hi = null)' \
            "$F/plot-metric.ndjson" > metrics
        report metrics "$F"/plot-{quality,front}.ndjson
        cp tables.html "$who.html"
    done
    lacks -q 'bytes of text per second' same.html
    grep -q 'bytes of text per second' other.html
    grep -q 'only bytes a second can be compared' other.html
}

@test "only the sweep itself is reported as beyond the measured range" {
    # a sweep that went to 1024 steps in the same run
    jq -c 'select(.metric == "e2e_ns" and .steps == 64 and .batch == 1) | .steps = 1024
        | .point = "0000000000ff" | .series = "0000000000fe" | .config = "other steps=1024"' \
        "$F/plot-metric.ndjson" > other
    report "${ALL[@]}" other
    says ' 24.5 \[17.2, &gt;64\] steps'
    # older crossover records do not name their points: the series tells them
    jq -c 'select(.kind == "crossover") | del(.points)' "$F/plot-front.ndjson" > older
    report "$F/plot-metric.ndjson" "$F/plot-quality.ndjson" older other
    says ' 24.5 \[17.2, &gt;64\] steps'
}

@test "no column is dropped, and every metric has a name in words" {
    q='schema: "crossover/1", kind: "quality", run: "r", config: "c", model: "m", summary: true,
       lo: null, hi: null, n: 3, direction: "lower"'
    for m in $(seq 14); do jq -cn "{$q, metric: \"made_$m\", value: $m}"; done > many
    for m in nll elbo kstep; do jq -cn "{$q, metric: \"${m}_ppl\", value: 8}"; done >> many
    report many
    for m in $(seq 14); do grep -q "| made.\?_$m |" report.md; done
    grep -q 'perplexity, exact' report.md
    lacks -E 'nll.?_ppl|elbo.?_ppl|kstep.?_ppl' report.md
    [ "$(grep -c '^| c |' report.md)" -eq 3 ]
    [ "$(grep -c '<summary>Further columns: ' tables.html)" -eq 2 ]
}

@test "for a point on two sets of prompts the larger set is shown, with a note" {
    jq -c 'select(.metric == "e2e_ns" and .batch == 1) | .prompts = 3 | .workload = "few" |
        .value = 1e6 | .lo = null | .hi = null' "$F/plot-metric.ndjson" > few
    jq -c 'if .kind == "metric" then .prompts = 30 | .workload = "many" else . end
        | select(.kind != "end" and .kind != "meta")' "$F/plot-metric.ndjson" > many
    for order in "few many" "many few"; do
        # shellcheck disable=SC2086
        report $order
        says ' 7 measurements of points on fewer prompts are not shown'
        lacks -q '| 1 ms |' report.md
    done
}

@test "the judge is named; a judge that is a contestant gives a warning" {
    for j in other llada-demo; do
        count=0
        [ $j = other ] || count=1
        jq -c --arg j $j 'select(.kind == "quality") | .judge = $j
            | .judge_sha256 = ("0123456789abcdef" * 4)' "$F/plot-quality.ndjson" > judged
        report judged
        says "one language model, $j (SHA-256 0123456789ab...)"
        [ "$(grep -c '^- The judge, .* is also a contestant' report.md)" -eq $count ]
    done
}

@test "identical records count once" {
    report "${ALL[@]}" "${ALL[@]}"
    says 'These numbers are from 180 answers. 2 answers ran out of memory'
    says ' [1-9][0-9]* records occur twice and count once'
}

@test "a crossover that does not exist gives its reason" {
    jq -c 'select(.kind == "crossover" and .batch == 1) | .steps = null | .lo = null | .hi = null
        | .exists = false | .reason = "as good as LLaMA at no step count measured"' \
        "$F/plot-front.ndjson" > none.ndjson
    report none.ndjson
    says 'X_par: as good as LLaMA at no step count measured ([0-9]*)'
    lacks -q '^| X' report.md
}

@test "tables hold the values of the records with unit and interval" {
    report "${ALL[@]}"
    want=$(jq -rs '.[] | select(.metric == "e2e_ns" and .steps == 64 and .batch == 1)
        | .value / 1e6 | round' "$F/plot-metric.ndjson")
    grep -q "llada-demo steps=64 gen=64 block=32 batch=1 | $want .* ms |" report.md
}

@test "the cost of a quantization is one row" {
    c='schema: "crossover/1", kind: "comparison", run: "r", config: "m quant=nf4", base_config: "m",
       model: "m-demo", arch: "llama", by: "quant", setting: "nf4"'
    jq -cn "{$c, metric: \"memory_weights_bytes\", effect: \"ratio\", value: 0.25,
             base_value: 4194304, config_value: 1048576},
            {$c, metric: \"norm_latency_ns_per_token\", effect: \"ratio\", value: 0.5,
             base_value: 4e6, config_value: 2e6},
            {$c, metric: \"ppl\", effect: \"ratio\", value: 1.0625, lo: 1.03125, hi: 1.09375,
             level: 0.95, base_value: 8, config_value: 8.5, n: 32},
            {$c, metric: \"accuracy\", effect: \"difference\", value: -0.125, lo: -0.25, hi: 0,
             level: 0.95, base_value: 0.75, config_value: 0.625, n: 16}" > compared
    conforms compared
    report "${ALL[@]}" compared
    grep -q '^## Quantization: costs and savings$' report.md
    # not wider than other tables: the base of the changes is folded
    [ "$(grep '^| m-demo | nf4' report.md | tr -d '\\')" = "| m-demo | nf4 |\
 4 MiB → 1 MiB | 4 ms → 2 ms | +6.25 [+3.12, +9.38] % | -12.5 [-25, 0] points | 32 / 16 |
| m-demo | nf4 | 8 → 8.50 | 75 % → 62.5 % |" ]
    report "${ALL[@]}"
    lacks 'Quantization: costs' report.md
}

@test "failures are counted" {
    report "${ALL[@]}"
    says 'These numbers are from 180 answers. 2 answers ran out of memory'
    says '1 error records'
    says 'prompt has no text'
}

@test "files, hashes and commands are named" {
    report "${ALL[@]}"
    for f in "${ALL[@]}"; do grep -q "$(sha256sum < "$f" | cut -c1-64)" tables.html; done
    says 'gen-llada -m data/models/llada-demo --steps 16'
}

@test "text of records stays text in HTML and Markdown" {
    evil='<img src=x onerror=alert(1)>&"'\''</script><!-- | `a` *b* [c](javascript:d) ![e](f)'
    printf '%s' "$evil" | jq -Rsc '. as $e
        | ({kind: "metric", metric: "e2e_ns", config: $e, model: $e, arch: $e, device: $e,
            value: 1, lo: 1, hi: 1, n: 1, launches: 1},
        {kind: "crossover", name: "X_par", exists: false, reason: $e, quality_metric: $e,
         series: $e, batch: 1},
        {kind: "meta", tool: $e, argv: [$e], version: $e, start: $e,
         machine: {fingerprint: $e, cpu: $e, kernel: $e}},
        {kind: "error", code: $e, message: $e, where: $e},
        {kind: "check", check: $e, text: $e}, {kind: "suggest", steps: [1], reason: $e},
        {kind: "generation", config: $e, model: $e, arch: $e, device: $e, prompt: $e, text: $e,
            status: "ok"})
        | {schema: "crossover/1", run: "r"} + .' > in.ndjson
    report --title "$evil" in.ndjson || [ $? -eq 1 ] # the stream has no end record
    lacks -q '<img' report.html tables.html
    [ "$(cat report.html tables.html | grep -o '</script>' | wc -l)" -eq 1 ] # the one that sorts
    lacks -q '<!-- ' report.html tables.html
    # In Markdown all of it is escaped, but for the indented commands.
    grep -v '^    ' report.md > open.md
    lacks '[^\\]<img\|[^\\]`a\|[^\\]\[c\|[^\\]\*b' open.md
    # LaTeX is escaped, too, and no cell of the CSV begins a formula
    evil='=\input{x} $a$ %b_c^d~e#f&g\\'
    printf '%s' "$evil" | jq -Rsc '{schema: "crossover/1", kind: "metric", run: "r", config: .,
        metric: "e2e_ns", value: 1, direction: "lower"}' > in.ndjson
    report in.ndjson
    grep -q 'href="data:text/csv;charset=utf-8,Configuration,e2e_ns%0D%0A%27%3D%5Cinput' tables.html
    "$BIN/report" -q --format latex in.ndjson > t.tex
    grep -qF '=\textbackslash{}input\{x\} \$a\$ \%b\_c\textasciicircum{}d' t.tex
    grep -qF '\textasciitilde{}e\#f\&g\textbackslash{}\textbackslash{} & 1 ns \\' t.tex
}

@test "empty input gives exit code 65 and no page" {
    run report < /dev/null
    [ "$status" -eq 65 ] && [ "$output" = "report: no records in the input" ]
    echo nonsense > nonsense
    run report nonsense
    [ "$status" -eq 65 ] && [[ $output == *"no records in the input: "*"not a JSON object"* ]]
    [ ! -e report.html ] && [ ! -e report.md ]
    "$BIN/report" --format markdown "$F/plot-metric.ndjson" > page 2> err    # one that has some
    grep -q 'Undecided: these records have no claims' page
}

@test "one form can be written alone, and each error has its exit code" {
    "$BIN/report" --format markdown -o only.md "${ALL[@]}"
    [ "$(ls)" = only.md ]
    "$BIN/report" --format html -q "${ALL[@]}" > page 2> err
    grep -q '</html>' page
    [ ! -s err ]
    run report absent.ndjson
    [ "$status" -eq 66 ]
    run report --figures absent "${ALL[@]}"
    [ "$status" -eq 66 ]
    [ ! -e report.html ]
    run "$BIN/report" -o absent/report.html "${ALL[@]}"
    [ "$status" -eq 73 ]
}

@test "the same records give the same page" {
    report "${ALL[@]}"
    cat report.html tables.html > before
    report "${ALL[@]}"
    cat report.html tables.html | cmp before
}

@test "shares of the machine's limits stand in a table, with the ceilings" {
    share() {
        jq -cn "{schema: \"crossover/1\", kind: \"metric\", run: \"r\", config: \"llama-demo\",
            model: \"llama-demo\", arch: \"llama\", batch: 1, metric: \"mbu_ratio\", value: 0.614,
            lo: 0.6, hi: 0.63, n: 4, launches: 2, unit: \"ratio\", direction: \"higher\"} + $1"
    }
    { share '{}'
      share '{metric: "model_bytes_per_s", unit: "per_s", value: 2.5e10, lo: null,
             hi: null}'
      share '{metric: "mfu_ratio", value: null, value_reason: "no ceilings in the input"}'
      share '{config: "other", metric: "mfu_ratio", value: 0.125, lo: null, hi: null}'
      cat "$F/plot-roofline.ndjson"; } > run
    report run
    grep -q "^## Share of the machine's limits\$" report.md
    grep -qF '| llama-demo | 61.4 \[60, 63\] % | no ceilings in the input | 25 GB/s |' report.md
    grep -qE '^\| other \|.* 12\.5 % \|' report.md
    grep -qF '| peak | 90 | 18 | – |' report.md
    says 'Ceilings of the machine'
    # points are not listed as ceilings, and without ceilings there is no such table
    lacks -qF '| LLaMA decode |' report.md
    # for a GPU the table names the library of the products
    jq -c '.device_name = "a GPU" | .isa = "sm_90"' <(sed -n 2p "$F/plot-roofline.ndjson") > gpu
    report run gpu
    grep -qF '90, without the vendor library: too low |' report.md
    jq -c '.library = "theirs 13"' gpu > with
    report run with
    grep -qF '90, theirs 13 |' report.md
    share '{}' > run
    report run
    lacks -q 'Ceilings of the machine' report.md
}

@test "the limits of embedded models are stated with --embedded, not by the name of a model" {
    jq -nc '{schema: "crossover/1", kind: "metric", run: "r", config: "llama-demo", batch: 1,
        model: "llama-demo", arch: "llama", metric: "e2e_ns", value: 1, direction: "lower"}' > one
    "$BIN/report" -q --format markdown --no-meta one -o plain.md
    ! grep -q "embedded demonstration models" plain.md || false
    "$BIN/report" -q --format markdown --no-meta --embedded one -o named.md
    grep -q "embedded demonstration models" named.md
}

@test "data set and judge are named; a warning about toys is shown" {
    w='{"schema":"crossover/1","run":"r","kind":"workload"'
    w="$w,\"text\":\"Prompts: 9 of my.json. Judge: J.\""
    echo "$w,\"warning\":null}" > w
    report "${ALL[@]}" w
    says 'Prompts: 9 of my.json. Judge: J.'
    lacks -q 'Toys' tables.html
    echo "$w,\"warning\":\"Toys: the judge is small.\"}" > w
    report "${ALL[@]}" w
    says 'Toys: the judge is small'
    grep -q 'Toys: the judge is small' report.md
}

@test "broken values, and a second value of a point, are named and left out" {
    while IFS='|' read -r code words bad; do
        jq -c "select(.metric == \"e2e_ns\") | $bad" "$F/plot-metric.ndjson" > bad
        run report "${ALL[@]}" bad
        echo "$bad: $status $output"
        [ "$status" -eq "$code" ]
        [[ $output == *"report: bad:1: $words"* ]]
        grep -q "Left out: bad:1: ${words%%,*}" report.md
    done << 'END'
1|value: expected a number from 1e-60 to 1e+60 or null, got "NaN"|.workload = "w" | .value = "NaN"
1|value: expected a number from 1e-60 to 1e+60 or null, got|.workload = "w" | .value = -0.0
1|metric: expected a name|.metric = "e2\u0435_ns"
65|a second, different|.value *= 2 | .lo = null | .hi = null
END
}
