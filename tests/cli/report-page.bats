#!/usr/bin/env bats
# Tests the main page: the first screen in its order, sections of one sentence, one figure and one
# short table, and no number that a claim calls null.

load report

# rows FILE: prints how many rows the longest table of the page has
rows() { awk '/<tbody>/ { n = 0 } /<tr><th scope="row"/ { n++; if (n > most) most = n }
    END { print most + 0 }' "$1"; }

# A sweep of many steps, its ratios, and a figure of each section.
setup_run() {
    jq -c 'select(.kind == "metric" and .batch == 1)' "$F/plot-metric.ndjson" > metrics
    for n in $(seq 2 30); do
        jq -c "select(.metric == \"e2e_ns\" and .steps == 64) | .steps = $n | .value = $n * 1e6
            | .point = \"0000000000$(printf %02d "$n")\" | .config = \"s$n\"" metrics
    done > more
    jq -c 'select(.metric == "e2e_ns" and .steps) | {schema, run, kind: "comparison", config, point,
        model, arch, by: "paradigm", setting: "masked_diffusion", metric, effect: "ratio",
        base_config: "llama", base_point: "l", value: (.steps / 10), lo: (.steps / 11),
        hi: (.steps / 9), verdict: "SLOWER", p_holm: 0.01, launches: 5}' metrics more > ratios
    mkdir figures
    for f in pareto steps methods throughput memory drift; do
        printf '%s\n' '<?xml version="1.0"?>' \
            '<svg width="600" height="300" viewBox="0 0 600 300" role="img" xmlns="x">' \
            "<g id=\"$f-canvas\" class=\"figure-ink\"><use href=\"#$f-canvas\"/></g></svg>" \
            > "figures/$f.svg"
        echo "Figure $f. More about it." > "figures/$f.txt"
        touch "figures/$f.tsv" "figures/$f.gp"
    done
    sed 's/pareto-canvas/pareto-narrow-canvas/g' figures/pareto.svg > figures/pareto-narrow.svg
    # of the claims, those numbers that the tests ask for
    jq -c 'def is(v; lo; hi): .value = v | .lo = lo | .hi = hi;
        if .name == "card" and .key == "time_at_equal_quality" then is(1.4; 1.31; 1.5)
        elif .name == "card" and .key == "throughput" then is(0.6; 0.55; 0.65)
        elif .name == "crossing" and .key == "X_q" then
            if .task == "sum" then is(8; 4; 8) else is(16; 8; 16) end
        else . end' "$F/claims.ndjson" > claims
    RUN=(metrics more ratios "$F"/plot-{quality,front}.ndjson claims)
}

# told NAME [KEY]: prints the text of this claim, as HTML
told() {
    jq -r --arg key "${2-}" "select(.name == \"$1\" and (.key == \$key or \$key == \"\")) | .text" \
        "$F/claims.ndjson" | head -n 1 | sed "s/&/\&amp;/g; s/'/\&#39;/g"
}

@test "the first screen has the question, answer, certainty, four numbers and one figure" {
    setup_run
    report --figures figures "${RUN[@]}"
    grep -qF "<h1>$(told question)</h1>" report.html
    grep -qF "<p class=\"answer\">$(told answer)</p>" report.html
    grep -qF "$(told sure)" report.html
    [ "$(grep -c '<li tabindex' report.html)" -eq 4 ]
    says '1.40.*× *\[1.31, 1.50\]' report.html
    says '0.60.*× *\[0.55, 0.65\]' report.html
    order='<h1>|class="answer"|class="sure"|class="cards"|figure class="lead"|<nav|<main>|'
    order+='id="quality"|id="decoding"|id="scale"|id="memory"|id="method"'
    grep -oE "$order" report.html > found
    tr '|' '\n' <<< "$order" | diff - found
    # the Markdown twin has the same words
    grep -q '^\*\*LLaDA needs 8 steps to match LLaMA on sums' report.md
}

@test "an undecided answer says so, and a null number gives its reason" {
    setup_run
    jq -c 'if .name == "answer" then .decided = false | .text = "Undecided: it was noisy."
        elif .key == "time_at_equal_quality" then .value = null | .lo = null | .hi = null
            | .value_reason = "disturbed" | .lo_reason = .value_reason | .hi_reason = .value_reason
            | .note = "other work disturbed the launches"
        else . end' claims > undecided
    report --figures figures metrics more ratios undecided
    says 'Undecided: it was noisy.' report.html
    says 'Not decided:' report.html
    says 'not known *other work disturbed the launches' report.html
    # a ratio that is null in a claim is in no table of either page
    lacks -q '>6.40 <\|>3.20 <\|methods.svg' report.html tables.html
    report --figures figures "${RUN[@]}"
    grep -q '>6.40 <' tables.html
    grep -q 'methods.svg' report.html
}

@test "each section has one sentence, one figure and one table of at most twelve rows" {
    setup_run
    report --figures figures "${RUN[@]}"
    for part in quality decoding scale memory method; do
        sed -n "/<section id=\"$part\"/,/<\/section>/p" report.html > part
        [ "$(grep -c '<p class="said">' part)" -eq 1 ]
        [ "$(grep -c '<figure>' part)" -eq 1 ]
        [ "$(grep -c '<table>' part)" -le 1 ]
    done
    grep -q '<table>' report.html
    [ "$(rows report.html)" -le 12 ]
    [ "$(rows report.html)" -gt 5 ]
    [ "$(rows tables.html)" -gt 12 ]
    # "as good" stands only where the claim about equal quality says so
    grep 'llada-demo, 2 steps' report.html | grep -q '>not shown<'
    grep -q '>shown for sum, not shown for story<' report.html
    grep 'llada-demo, 64 steps' report.html | grep -q '>shown<'
    grep -q 'accuracy (exact match) on sum within 5 points' report.html
}

@test "the page is light, loads nothing, and its landmarks and tables have names" {
    setup_run
    report --figures figures "${RUN[@]}"
    [ "$(wc -c < report.html)" -le 1500000 ]
    lacks -Eiq '<link|<script|@import|https?://|url\(' report.html
    for mark in '<html lang="en">' '<header>' '<nav aria-label=' '<main>' prefers-color-scheme \
        '@media print' '<th scope="row"' '<th scope="col"' '<caption>' 'tabindex="0"'; do
        grep -qF -- "$mark" report.html
    done
    # every link within the pages leads somewhere
    grep -oE 'href="(tables.html)?#[a-z]*"' report.html | sort -u > links
    [ "$(wc -l < links)" -gt 10 ]
    while IFS='"#' read -r _ page id _; do
        grep -q "id=\"$id\"" "${page:-report.html}"
    done < links
}

@test "figures are inside the page, with their claim as title and their files as links" {
    setup_run
    report --figures figures "${RUN[@]}"
    for key in lead methods throughput memory; do
        grep -qF "<figcaption>$(told figure $key)</figcaption>" report.html
    done
    says ' Figure steps ' report.html # no claim: the first sentence of the caption
    # six, and the first for a narrow screen too; each takes the width of the screen
    [ "$(grep -c '<svg class="wide" .* role="img"' report.html)" -eq 6 ]
    [ "$(grep -c '<svg class="narrow" .* role="img"' report.html)" -eq 1 ]
    lacks -q '<svg[^>]* width=\|<?xml\|xmlns' report.html
    for end in svg tsv gp; do grep -qF "href=\"figures/pareto.$end\"" report.html; done
    [ -z "$(grep -o ' id="[^"]*"' report.html | sort | uniq -d)" ] # no id twice
    grep -q '(figures/pareto.svg)' report.md
    # the page of tables links all figures, except those that show nothing
    echo 'No data: nothing.' > figures/drift.txt
    report --figures figures "${RUN[@]}"
    [ "$(grep -c '<img loading="lazy"' tables.html)" -eq 5 ]
    lacks -q 'drift' report.html
}

@test "a drawing with scripts or links, or not made by plot, is linked, not inlined" {
    mkdir figures
    for body in '<script>x</script>' '<g onload="x"/>' '<foreignObject/>' \
        '<a href="javascript:x"/>' '<style>@import "x"</style>' '<style>g{fill:url(x)}</style>' \
        ''; do
        class='class="figure-ink"'
        [ -n "$body" ] || class=
        echo "<svg xmlns=\"x\"><g $class>$body</g></svg>" > figures/pareto.svg
        report --figures figures "${ALL[@]}"
        lacks -q '<svg' report.html
        grep -q '<img loading="lazy" src="figures/pareto.svg"' report.html
    done
    echo '<svg xmlns="x"><style>g{fill:red}</style><g class="figure-ink"></g></svg>' \
        > figures/pareto.svg
    report --figures figures "${ALL[@]}"
    grep -q '<svg' report.html
}

@test "every form of the page depends on the same records" {
    # even with -n make writes the lists of launches that it includes
    local made=$PWD/made
    make -C "$CROSSOVER_SHARE" -pnq PROFILE=quick FP=here R="$made" report > database ||
        [ $? -eq 1 ]
    for form in report.html tables.html report.md tables.tex; do
        sed -n "s|^$made/$form: ||p" database > "$form.from"
        grep -q " $made/robust/isa.ndjson" "$form.from"
        grep -q "^$made/claims.ndjson " "$form.from"
        cmp report.html.from "$form.from"
    done
}

@test "without claims the page says that there is no answer" {
    report "$F/plot-metric.ndjson"
    says 'Undecided: these records have no claims' report.html
}

@test "every form of the report lies beside the HTML page" {
    mkdir out
    "$BIN/report" -q -o out/one.html "${ALL[@]}"
    [ "$(ls out | tr '\n' ' ')" = "one.html one.md tables.html tables.tex " ]
    grep -q '<a href="one.html">' out/tables.html
    run "$BIN/report" -q -o out/tables.html "${ALL[@]}"
    [ "$status" -eq 64 ]
}
