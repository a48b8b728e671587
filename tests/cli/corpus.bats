#!/usr/bin/env bats
# Tests the corpus: it is a function of its seed, its sums are right, and its parts share nothing.

setup() {
    set -o pipefail
    BIN=${BIN:-build/bin}
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    T=$BATS_TEST_TMPDIR
}

# field FILE TASK NAME: prints this field of the records of a task
field() { jq -r --arg t "$2" --arg f "$3" 'select(.task == $t) | .[$f]' "$1"; }

# Reads "reference <TAB> answer" of sums, works every step out again, prints the operands of each
# sum (the first two of an addition in order), and prints errors.
recompute() {
    jq -r 'select(.task == "sum") | .reference + "\t" + .answer' "$1" | awk -F'\t' '
    { n = split($1, w, " "); tuple = ""; last = ""
      for (i = 1; i + 4 <= n; i++) {
          if (w[i + 1] !~ /^[-+]$/ || w[i + 3] != "=") continue
          r = w[i + 4]; sub(/\.$/, "", r)
          if (r != (w[i + 1] == "+" ? w[i] + w[i + 2] : w[i] - w[i + 2])) print "WRONG STEP " $0
          if (tuple == "")
              tuple = w[i + 1] == "+" && w[i + 2] + 0 > w[i] + 0 ? w[i + 2] " + " w[i] \
                                                         : w[i] " " w[i + 1] " " w[i + 2]
          else {
              tuple = tuple " " w[i + 1] " " w[i + 2]
              if (w[i] != last) print "BROKEN CHAIN " $0
          }
          last = r }
      if (last == "" || last != $2) print "WRONG ANSWER " $0
      print tuple }'
}

@test "the same seed writes the same bytes, and a longer corpus begins with the shorter" {
    "$BIN/write-corpus" --count 200 --seed 7 > "$T/a"
    "$BIN/write-corpus" --count 300 --seed 7 > "$T/b"
    "$BIN/write-corpus" --count 200 --seed 8 > "$T/c"
    [ "$(wc -l < "$T/a")" -eq 200 ]
    cmp "$T/a" <(head -n 200 "$T/b")
    [ "$(head -n 5 "$T/a")" != "$(head -n 5 "$T/c")" ]
}

@test "every record is plain ASCII with an id of its own and a reference that begins with a space" {
    "$BIN/write-corpus" --count 1000 --seed 3 > "$T/a"
    [ "$(jq -r .id "$T/a" | sort -u | wc -l)" -eq 1000 ]
    [ "$(jq -c 'select((.reference | test("^ [^ ]")) and (.text | test("[.?!\"]$")))' "$T/a" |
         wc -l)" -eq 1000 ]
    [ -z "$(jq -r '.text + .reference' "$T/a" | grep -E '[^ -~]|  |[][{}|~]')" ]
}

@test "--mix is the share of sums" {
    "$BIN/write-corpus" --count 50 --mix 0 | jq -r .task | sort -u > "$T/a"
    "$BIN/write-corpus" --count 50 --mix 1 | jq -r .task | sort -u > "$T/b"
    [ "$(cat "$T/a")" = story ] && [ "$(cat "$T/b")" = sum ]
}

@test "the sums are right when they are worked out again" {
    "$BIN/write-corpus" --count 3000 --mix 1 --seed 5 > "$T/a"
    recompute "$T/a" > "$T/tuples"
    [ "$(wc -l < "$T/tuples")" -eq 3000 ]
    [ -z "$(grep -E 'WRONG|BROKEN' "$T/tuples")" ]
}

# words LIST: prints this list of the stories as alternatives of a pattern
words() {
    sed -n "/char \*const $1\[\]/,/;/p" lib/train/corpus-story.c | grep -o '"[^"]*"' | tr -d '"' |
        paste -sd '|'
}

# triples FILE: prints (name, object, place) of the stories whose prompts say all three; the name is
# that of the first person ("Anna's blue mirror was broken" is not the story of Anna)
triples() {
    jq -r --arg who "$(words girls)|$(words boys)" --arg what "$(words things)" \
        --arg where "$(words places)" 'select(.task == "story") |
        [.text | select(test("was broken") | not) | sub("wooden box"; "") |
         match("\\b(\($who))\\b", " (\($what))\\b", "\\b(\($where))\\b").captures[0].string] |
        select(length == 3) | join(" ")' "$1"
}

# shared FILE FILE: prints common operands of sums, lists, (name, object, place) and prompts
shared() {
    for f in "$1" "$2"; do
        {
            recompute "$f"
            triples "$f"
            jq -r 'select(.task != "sum") | .text' "$f"
            jq -r 'select(.task != "sum" and .task != "story") | .text | sub("^.*: "; "")' "$f"
        } | sort -u > "$f.keys"
    done
    comm -12 "$1.keys" "$2.keys"
}

@test "no operands, list, (name, object, place) or prompt is in two parts" {
    for part in train valid test; do
        count=2000
        [ $part = train ] && count=8000
        "$BIN/write-corpus" --part $part --count $count --mix 0.5 --seed 11 > "$T/$part"
        "$BIN/write-corpus" --part $part --lists --count 1500 --seed 11 --apart 1500 >> "$T/$part"
    done
    [ -z "$(shared "$T/train" "$T/valid")" ]
    [ -z "$(shared "$T/train" "$T/test")" ]
    [ -z "$(shared "$T/valid" "$T/test")" ]
    # the check sees sums, stories and lists that two parts share
    "$BIN/write-corpus" --part test --count 1500 --mix 0.5 --seed 11 --apart 0 > "$T/near"
    shared "$T/valid" "$T/near" > "$T/both"
    [ "$(grep -c '^[0-9]' "$T/both")" -gt 10 ]
    [ "$(grep -c '^[A-Z]' "$T/both")" -gt 0 ]
    head -n 3 "$T/valid" >> "$T/train"
    tail -n 3 "$T/valid" >> "$T/train"
    [ "$(shared "$T/train" "$T/valid" | wc -l)" -gt 5 ]
}

@test "in the test part no operands and no prompt come twice" {
    "$BIN/write-corpus" --part test --count 800 --seed 11 > "$T/a"
    [ -z "$(recompute "$T/a" | sort | uniq -d)" ]
    [ -z "$(jq -r .text "$T/a" | sort | uniq -d)" ]
}

@test "the committed parts of the corpus share no operands, lists or prompts" {
    for part in train valid test; do
        gzip -dc data/corpus/$part.ndjson.gz data/corpus/$part-lists.ndjson.gz > "$T/$part"
    done
    [ -z "$(shared "$T/train" "$T/valid")" ]
    [ -z "$(shared "$T/train" "$T/test")" ]
    [ -z "$(shared "$T/valid" "$T/test")" ]
    # 300 prompts of every task can be asked for
    [ "$(jq -r .task "$T/test" | sort | uniq -c | awk '$1 >= 300 { n++ } END { print n }')" = 6 ]
}

# recited: reads records of lists, does each task again, and prints errors. An answer in
# braces holds the words of the reference in any order.
recited() {
    jq -r '(.text | sub("^.*: "; "") | sub("[.]$"; "") | split(", ")) as $l |
        (.reference | ltrimstr(" ") | split(", ")) as $said |
        (.text | capture("^(Put (?<a>.+) for (?<b>.+):|Replace (?<c>.+) by (?<d>.+):)") // {} |
         {in: (.a // .d), out: (.b // .c)}) as $w |
        {copy: $l, reverse: ($l | reverse), shuffle: ($said | if sort == ($l | sort) then . else 0
         end), replace: ($l | map(if . == $w.out then $w.in else . end))}[.task] as $right |
        (if .task == "shuffle" then "{" + ($l | join(", ")) + "}" else $said | join(", ") end)
            as $answer |
        (if .task == "replace" then ($l | index($w.out)) != null and ($l | index($w.in)) == null
         else ($l | unique | length) == ($l | length) end)
            as $sound |
        select($said != $right or .answer != $answer or ($sound | not) or
               ($l | length) < 3 or ($l | length) > 8)' "$1"
}

@test "the lists are right when each task is done again, and come in all lengths" {
    "$BIN/write-corpus" --lists --count 2000 --seed 5 > "$T/a"
    [ "$(jq -r .task "$T/a" | sort | uniq -c | awk '$1 > 400 { n++ } END { print n }')" = 4 ]
    [ "$(jq -r '.reference | split(", ") | length' "$T/a" | sort -u | xargs)" = "3 4 5 6 7 8" ]
    [ -z "$(recited "$T/a")" ]
    # the check sees a word too many, a wrong order and a wrong word
    jq -c '.reference += ", cup" | .answer += ", cup"' <(head -n 8 "$T/a") > "$T/b"
    [ "$(recited "$T/b" | jq -s length)" -eq 8 ]
    grep -m 8 '"reverse"' "$T/a" | jq -c '.task = "copy"' > "$T/b"
    [ "$(recited "$T/b" | jq -s length)" -eq 8 ]
    # a shuffled list rarely keeps its order
    jq -se 'map(select(.task == "shuffle")) |
        map(.reference as $r | .text | endswith(":" + $r + ".")) |
        length > 300 and (map(select(.)) | length) < 30' "$T/a"
}

@test "every word of a list is a word of the stories" {
    "$BIN/write-corpus" --lists --count 3000 --seed 11 |
        jq -r '.text | sub("^.*: "; "")' > "$T/lists"
    "$BIN/write-corpus" --mix 0 --count 8000 | jq -r '.text + .reference' | grep -o '[a-z]*' |
        sort -u > "$T/words"
    [ -z "$(grep -o '[a-z]*' "$T/lists" | sort -u | comm -23 - "$T/words")" ]
}

@test "the committed corpus is large enough and comes from the generator" {
    [ "$(gzip -dc data/corpus/train.ndjson.gz | jq -j '.text + .reference' | wc -c)" -gt 3000000 ]
    seed=$(sed -n 's/^CORPUS_SEED *:= *//p' pipelines/experiment/models/corpus.mk)
    for part in train valid test; do
        cmp <(gzip -dc data/corpus/$part.ndjson.gz | head -n 100) \
            <("$BIN/write-corpus" --part $part --count 100 --mix 0.4 --seed "$seed")
        cmp <(gzip -dc data/corpus/$part-lists.ndjson.gz | head -n 100) \
            <("$BIN/write-corpus" --part $part --lists --count 100 --seed "$seed" --apart 800)
    done
}

@test "all embedded models together take less than 30 MB" {
    [ "$(cat data/models/*/* | wc -c)" -lt 30000000 ]
}

@test "both embedded models start from the same weights, and README states their rows" {
    cmp <(head -n 1 data/models/llama-demo/training.ndjson) \
        <(head -n 1 data/models/llada-demo/training.ndjson)
    for m in llama llada; do
        rows=$(jq .rows data/models/$m-demo/training.ndjson | awk '{ n += $1 } END {
            printf "%.1f", n / 1e6 }')
        tr '\n' ' ' < README.md | grep -q "$rows million rows"
    done
}

@test "no training reads the test part" {
    for f in data/models/*/loss*.ndjson; do
        jq -se 'all(.argv // [] | any(test("corpus/test")) | not)' "$f"
    done
    ! grep -n 'corpus/test' pipelines/experiment/models/models.mk || false
}

@test "bad usage exits 64" {
    run "$BIN/write-corpus" --part middle
    [ "$status" -eq 64 ]
    run "$BIN/write-corpus" --count 0
    [ "$status" -eq 64 ]
    run "$BIN/write-corpus" file
    [ "$status" -eq 64 ]
}
