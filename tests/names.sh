# names.sh - tests that the code writes and reads the fields of data/record.schema.json; that files,
# functions and options which the documents name exist; and that the version is the same everywhere.
. tests/house/tap.sh

clean "every field of the code is in data/record.schema.json" tests/house/fields .

mkdir -p "$scratch"/{tools,lib/{base,record,checkpoint,text,report,analysis},tests/bench}
plant data/record.schema.json <<'END'
{"properties":{"kind":{}},"$defs":{"m":{"properties":{"value":{},"n":{},"name":{}}}}}
END
plant lib/record/rec.h <<'END'
void rec_set_number(json_t *record, const char *key, double value,
                    const char *reason);
const char *rec_text(const json_t *record, const char *key);
END
plant tools/good.c <<'END'
static void set_text(json_t *r, const char *key, const char *text)
{
    json_object_set_new(r, key, json_string(text));
}
int good(void)
{
    static const char *const copied[] = {"value",
                                         "n"};
    rec_set_number(r, "value", v, "too few");
    set_text(r, "name", "no field at all");
    rec_text(r, "value_reason");
    json_object_set(r, copied[i], v);
    return rec_write(w, "metric", json_pack("{s:s, s:{s:s?}, s:[s, i], s:o*}", "kind", "no_field",
                                            "value", "name", "other_text", "n", "also_text", 3,
                                            "name", f("(", odd)), e);
}
END
plant tools/other.c <<'END'
static void set_text(struct page *p, const char *text)
{
}
int other(void)
{
    set_text(p, "no_field_in_this_file");
END
plant lib/checkpoint/config-save.c <<<'    json_object_set_new(o, "hidden_size", v);'
plant lib/text/dataset/dataset.c <<<'    json_object_get(o, "conversations");'
plant lib/report/page.c <<<'    json_object_set_new(o, "crossovers", v);'
plant lib/analysis/records/runset.c <<<'    json_object_set_new(about, "length", v);'
clean "known fields, and objects that are no records, pass" tests/house/fields "$scratch"

faulty() # FIELD TEXT: the planted file, standard input, has the unknown field in its last line
{
    plant tools/faulty.c
    caught "^tools/faulty.c:$(wc -l <"$scratch/tools/faulty.c"): field \"$1\" is not in" \
        "planted: $2" tests/house/fields "$scratch"
}
faulty vallue "a misspelt field" <<<'    rec_set_number(record, "vallue", 3, NULL);'
faulty vaule "a misspelt field that is read" <<<'    return rec_text(record, "vaule");'
faulty number "a field in json_pack" <<'END'
    rec_write(w, "metric", json_pack("{s:i, s:i}", "n", 1,
                                     "kind", 2), e);
    json_pack("{s:i, s:i}", "n", 1, "number", 2);
END
faulty deep "a field of an object within json_pack" \
    <<<'    return json_pack("{s:s, s:{s:[i], s:b}}", "kind", "x", "value", "n", 1, "deep", 0);'
faulty own "a field of a helper of the file itself" <<'END'
static void set_size(json_t *r, const char *key, size_t n)
{
    json_object_set_new(r, key, json_integer((json_int_t)n));
}
static void use(json_t *r) {
    set_size(r, "own", 3);
END
faulty later "the second of two names" \
    <<<'    rec_set_number(r, up ? "value" : "later", v, NULL);'
faulty direct "json_object_set_new" <<<'    must(json_object_set_new(r, "direct", json_true()));'
faulty asked "json_object_get" <<<'    json_is_true(json_object_get(r, "asked"));'
faulty raw "a text of JSON" <<<'    put(&w, ",\"raw\":");'
plant tools/faulty.c <<'END'
    static const char *const names[] = {"value", "listed"};
    for (i = 0; i < 2; i++) json_object_set(r, names[i], v);
END
caught '^tools/faulty.c:1: field "listed"' "planted: an array of names" \
    tests/house/fields "$scratch"

clean "the documents name what is there" tests/house/map . "$(realpath "${BIN:-build/bin}")"
rm -rf "$scratch"/*
mkdir -p "$scratch"/{lib/stat,lib/run,lib/train,kernels,tools,pipelines,tests,data,bin}
touch "$scratch"/{lib/run,lib/train,kernels,tools,pipelines,tests}/README.md \
    "$scratch"/{Makefile,data/CHANGES.md}
plant README.md <<'END'
## One heading (a)
In `lib/stat/`, `lib/stat/NAME.c`, `make test X=1`, `good()`, `stat.h`, `cut --real 1`,
[map](lib/README.md), [one](#one-heading-a), [elsewhere](https://example.org/x).
END
echo '`lib/stat/front.h`, `static_one()`, [back](../README.md#one-heading-a)' | plant lib/README.md
plant Makefile <<<'test: ## tests'
plant bin/cut <<<'echo "compgen -W --real"'
chmod +x "$scratch/bin/cut"
plant lib/stat/front.h <<<'int good(int x);'
plant lib/stat/front.c <<<'static int static_one(int x)'
plant tools/cut.c <<<'int main(void)'
echo '## cut' | plant tools/README.md
clean "documents that are true pass" tests/house/map "$scratch" "$scratch/bin"
# faulty FAULT TEXT: README.md is this text, and the fault is found
faulty()
{
    echo "$2" | plant README.md
    caught "^README.md: $1" "planted: $1" tests/house/map "$scratch" "$scratch/bin"
}
faulty 'no file lib/stat/gone.h' 'see `lib/stat/gone.h`'
faulty 'no function bad()' 'see `bad()`'
faulty 'no target of the link lib/gone.md' 'see [gone](lib/gone.md)'
faulty 'no heading of the link #two' 'see [two](#two)'
faulty 'no target of make: all' 'see `make -j all X=1` and `make all`'
faulty 'no tool has --false' 'see `cut --false 1`'
echo | plant tools/README.md
caught '^tools/README.md: no word of cut' "planted: a tool that has no section" \
    tests/house/map "$scratch"
rm "$scratch/lib/README.md"
caught '^lib/README.md: is not there' "planted: no map" tests/house/map "$scratch"

clean "version, changelog and tag agree" tests/house/changes . \
    "$(realpath "${BIN:-build/bin}")/measure"
rm -rf "${scratch:?}"/*
echo '## 1.2.3' | plant data/CHANGES.md
plant lib/base/version.c <<<'const char version_text[] = "1.2.3";'
(cd "$scratch" && git init -q && git -c user.name=x -c user.email=x commit -q --allow-empty -m x &&
    git tag v1.2.3)
clean "a tag of this version passes" tests/house/changes "$scratch"
plant lib/base/version.c <<<'const char version_text[] = "1.2.2";'
caught "^data/CHANGES.md: the newest section is '1.2.3'" "planted: another version" \
    tests/house/changes "$scratch"
caught '^git tag v1.2.3: expected v1.2.2' "planted: another tag" tests/house/changes "$scratch"
caught '^git tag v1.2.3: later than v1.2.2' "planted: a later tag" tests/house/changes "$scratch"
rm -rf "${scratch:?}"/.git

clean "every fault of data/faults.tsv has its test, or what is missing" tests/house/faults .
sed 's/::A6: a/::A6: np/; /^B3/d; s/^\(L7.*\t\).*/\1/; s/^L9/L9a/' data/faults.tsv |
    plant data/faults.tsv
mkdir "$scratch/tests"
for file in tests/{cli,unit,model,cuda,kernels,fuzz}; do ln -s "$PWD/$file" "$scratch/$file"; done
for found in "A6: no test 'A6: np" "expected the row B3" "L7: no test: expected what is missing" \
    "not expected here: the row L9a"; do
    caught "$found" "planted: $found" tests/house/faults "$scratch"
done

clean "files and tests of data/requirements.tsv are there" tests/house/requirements .
rm -rf "${scratch:?}"/*
mkdir -p "$scratch"/data "$scratch"/tests
echo '@test "a test"' | plant tests/a.bats
rows() { seq -f '0-%02g' 1 52; seq -f '1-%02g' 1 26; seq -f '2-%02g' 1 31; seq -f '3-%02g' 1 66; }
# COLUMNS OF ROW 2-03...: verdicts that are good but for that row; 0-51 is measured, and 1-04
verdict()
{
    echo '{"option":"o","claims":[{"row":"1-04"}]}' | plant data/ablation.ndjson
    for i in $(rows); do
        case $i in
        0-51 | 1-04) printf '%s\tmeasured\t\n' "$i" ;;
        2-03) [ -z "$1" ] || printf '%s\n' "$1" ;;
        *) printf '%s\tby test\t\n' "$i" ;;
        esac
    done | plant data/verdicts.tsv
}
row() # COLUMNS OF ROW 4-07...: a table that is good but for that row
{
    for i in $(rows) $(seq -f '4-%02g' 1 38); do
        [ "$i" = 4-07 ] && printf '%s\n' "$1" ||
            printf '%s\twhat\tdata\ttests/a.bats::a test\tdone\t\n' "$i"
    done | plant data/requirements.tsv
}
t=$'\t'
start="4-07${t}what${t}data${t}tests/"
good="${start}a.bats::a test"
verdict "2-03${t}not held${t}by a record"
row "$good${t}open${t}this"
clean "a table that is true passes" tests/house/requirements "$scratch"
bad() { row "$2" && caught "4-07: $3" "planted: $1" tests/house/requirements "$scratch"; }
bad "a file that is gone" "4-07${t}what${t}gone.c${t}tests/a.bats::a test${t}done${t}" \
    "no file gone.c"
bad "a test that is gone" "$good ; tests/a.bats::gone${t}done${t}" "no test 'gone'"
bad "a test file that is gone" "${start}b.bats::a test${t}done${t}" "no test file"
bad "done, and yet something is missing" "$good${t}done${t}this" "state 'done'"
bad "open, and nothing is missing" "$good${t}open${t}" "state 'open'"
bad "another state" "$good${t}partial${t}this" "state 'partial'"
row "4-08${t}what${t}data${t}tests/a.bats::a test${t}done${t}"
caught "expected the row 4-07" "planted: a row twice, and one is not there" \
    tests/house/requirements "$scratch"
row "$good${t}open${t}this"
wrong() { verdict "$2" && caught "2-03$3" "planted: $1" tests/house/requirements "$scratch"; }
wrong "a row without a verdict" "" ""
wrong "measured, and nothing claims it" "2-03${t}measured${t}" ": verdict 'measured'"
wrong "not held, and nothing tells it" "2-03${t}not held${t}" ": verdict 'not held'"
wrong "another verdict" "2-03${t}perhaps${t}words" ": verdict 'perhaps'"
verdict "2-03${t}by test${t}"
echo '{"claims":[{"row":"2-03"},{"row":"1-04"}]}' | plant data/ablation.ndjson
caught "2-03: verdict 'by test'" "planted: claimed, and not measured" \
    tests/house/requirements "$scratch"
finish
