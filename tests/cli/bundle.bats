#!/usr/bin/env bats
# bundle: a run is sealed, verified and unpacked; alterations are found, hostile archives refused.

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    export BIN="$PWD/${BIN:-build/bin}"
    BIN="${BIN//$PWD\/\//\/}"
    cd "$BATS_FILE_TMPDIR" || exit 1
    mkdir -p run/steps
    cp "$BATS_TEST_DIRNAME/../fixtures/measure-generation.ndjson" outside.ndjson
    "$BIN/measure" -q outside.ndjson -o run/steps/metrics.ndjson || [ $? -le 1 ]
    "$BIN/pareto" -q run/steps/metrics.ndjson -o run/pareto.ndjson
    echo page > run/report.html
    echo half > run/.report.md.tmp
    "$BIN/bundle" -q --folder run -o good.tar.gz
}

setup() {
    cp -r "$BATS_FILE_TMPDIR"/. "$BATS_TEST_TMPDIR"
    cd "$BATS_TEST_TMPDIR" || exit 1
}

fails() { # STATUS WORDS COMMAND...: it ends so, with one line that holds the words
    local want=$1 words=$2
    shift 2
    run "$@"
    echo "$output"
    [ "$status" -eq "$want" ] && [[ "$output" == *"$words"* ]]
}

# packed NAME...: packs the members in this order into bad.tar.gz
packed() { tar -cf - --owner=0 --group=0 "$@" | gzip -n > bad.tar.gz; }

@test "the same files make the same bytes, whatever their times, modes and order" {
    touch -d 2001-01-01 run/report.html
    chmod 600 run/report.html
    "$BIN/bundle" -q --folder run steps report.html pareto.ndjson report.html -o again.tar.gz
    cmp good.tar.gz again.tar.gz
    SOURCE_DATE_EPOCH=86400 "$BIN/bundle" -q --folder run -o later.tar.gz
    [[ "$(tar --utc -tvzf later.tar.gz MANIFEST.sha256)" == *"0/0"*1970-01-02* ]]
    SOURCE_DATE_EPOCH=soon fails 64 SOURCE_DATE_EPOCH "$BIN/bundle" --folder run -o x
    [ "$(tar -tzf good.tar.gz | paste -sd ' ')" = \
        "MANIFEST.sha256 pareto.ndjson report.html steps/metrics.ndjson" ]
}

@test "a sealed bundle verifies, also by sha256sum, and unpacks to the same files" {
    "$BIN/bundle" -q --verify good.tar.gz > said
    jq -se --arg sha "$(sha256sum good.tar.gz | cut -c 1-64)" '.[1] | .kind == "bundle" and
        .files == 3 and .sha256 == $sha and ([.outside[].path] == ["outside.ndjson"])' said
    "$BIN/bundle" -q --extract back good.tar.gz > /dev/null
    diff -r -x '.*' run back
    mkdir plain
    tar -xzf good.tar.gz -C plain
    (cd plain && sha256sum --quiet --strict -c MANIFEST.sha256)
    fails 73 "new or empty" "$BIN/bundle" --extract back good.tar.gz
}

@test "a file that was altered, left out, added or moved is named" {
    mkdir x
    tar -xzf good.tar.gz -C x
    cd x || exit 1
    members="MANIFEST.sha256 pareto.ndjson report.html steps/metrics.ndjson"
    packed $members
    "$BIN/bundle" -q --verify bad.tar.gz > /dev/null
    echo other > report.html
    packed $members
    fails 65 "member report.html: expected SHA-256" "$BIN/bundle" --verify bad.tar.gz
    [ ! -e out ]
    fails 65 report.html "$BIN/bundle" --extract out bad.tar.gz
    [ ! -e out ]
    echo page > report.html
    packed MANIFEST.sha256 pareto.ndjson report.html
    fails 65 "expected member steps/metrics.ndjson, got the end" "$BIN/bundle" --verify bad.tar.gz
    packed $members report.html
    fails 65 "expected the end, got member report.html" "$BIN/bundle" --verify bad.tar.gz
    packed pareto.ndjson
    fails 65 "expected member MANIFEST.sha256" "$BIN/bundle" --verify bad.tar.gz
}

@test "altered records in the middle of a run are found by the hashes in later records" {
    sed 's/"value":[0-9.]*,/"value":1,/' run/steps/metrics.ndjson > m
    mv m run/steps/metrics.ndjson
    fails 65 "the stream was edited" "$BIN/bundle" --folder run -o altered.tar.gz
    # with a matching `end` the altered file verifies, but pareto's input is then missing
    head -n -1 run/steps/metrics.ndjson > m
    sha=$(sha256sum m | cut -c 1-64)
    tail -n 1 run/steps/metrics.ndjson | jq -c --arg sha "$sha" '.sha256 = $sha' >> m
    mv m run/steps/metrics.ndjson
    "$BIN/bundle" -q --folder run -o altered.tar.gz
    "$BIN/bundle" -q --verify altered.tar.gz > said
    jq -se '.[1].outside | length == 2 and any(.path == "run/steps/metrics.ndjson")' said
    mkdir x
    tar -xzf altered.tar.gz -C x
    cd x || exit 1
    sed -i '/^# outside.*metrics/d' MANIFEST.sha256
    packed MANIFEST.sha256 pareto.ndjson report.html steps/metrics.ndjson
    fails 65 "pareto.ndjson was made from run/steps/metrics.ndjson" \
        "$BIN/bundle" --verify bad.tar.gz
}

@test "a cut stream is not sealed" {
    head -n -1 run/pareto.ndjson > p
    mv p run/pareto.ndjson
    fails 65 "pareto.ndjson: no end record" "$BIN/bundle" --folder run -o x.tar.gz
    [ ! -e x.tar.gz ]
}

# hostile NAME: makes an archive with NAME in the manifest and as a member
hostile() {
    mkdir -p h/in
    echo evil > h/in/evil
    printf '%s  %s\n' "$(sha256sum h/in/evil | cut -c 1-64)" "$1" > h/in/MANIFEST.sha256
    tar -C h/in -P -czf bad.tar.gz --transform "s|^evil\$|$1|" MANIFEST.sha256 evil
}

@test "names that lead out of the folder are refused, and nothing is written" {
    for name in ../evil "$BATS_TEST_TMPDIR/evil" a/../../evil ./evil 'a//b' 'a\\b' a/.; do
        hostile "$name"
        fails 65 "expected the name of a file below" "$BIN/bundle" --extract out bad.tar.gz
        [ ! -e out ] && [ ! -e evil ]
    done
    fails 65 "below the folder" "$BIN/bundle" --folder run ../outside.ndjson -o x
    fails 66 "nothing.here" "$BIN/bundle" --folder run nothing.here -o x
}

@test "links, other archives, cut archives and decompression bombs are refused" {
    mkdir h
    cd h || exit 1
    printf '%064d  a\n' 0 > MANIFEST.sha256
    ln -s /etc/passwd a
    packed MANIFEST.sha256 a
    fails 65 "member a: expected a regular file" "$BIN/bundle" --verify bad.tar.gz
    rm a
    ln MANIFEST.sha256 a
    packed MANIFEST.sha256 a
    fails 65 "member a: expected a regular file" "$BIN/bundle" --verify bad.tar.gz
    printf '%064d  b\n%064d  a\n' 0 0 > MANIFEST.sha256
    packed MANIFEST.sha256
    fails 65 "out of order" "$BIN/bundle" --verify bad.tar.gz
    fails 65 "expected a .tar.gz" "$BIN/bundle" --verify MANIFEST.sha256
    fails 66 "not.there" "$BIN/bundle" --verify not.there
    fails 65 "limit" "$BIN/bundle" --verify --max-bytes 1000 ../good.tar.gz
    for n in 40 400 900; do
        head -c $n ../good.tar.gz > bad.tar.gz
        fails 65 bad.tar.gz "$BIN/bundle" --verify bad.tar.gz
    done
    { cat ../good.tar.gz; echo more; } > bad.tar.gz
    fails 65 "bytes after the end" "$BIN/bundle" --verify bad.tar.gz
    printf '%064d  a\n' 0 > MANIFEST.sha256
    truncate -s 1T a
    tar -S -czf bad.tar.gz MANIFEST.sha256 a
    fails 65 "limit" timeout 20 "$BIN/bundle" --verify --max-bytes 1M bad.tar.gz
}

@test "without memory for a member the archive is not written" {
    [ -z "${SAN-}" ] && ! nm -D "$BIN/bundle" | grep -q __asan || skip "sanitizers own malloc"
    command -v ${CC:-cc} > cc || skip "no compiler"
    echo 'void *archive_entry_new(void) { return 0; }' > none.c
    ${CC:-cc} -shared -fPIC -o none.so none.c || skip "no shared objects here"
    LD_PRELOAD=$PWD/none.so fails 70 "out of host memory" "$BIN/bundle" --folder run -o new.tar.gz
    [ ! -e new.tar.gz ]
}
