# names.sh - the fields that the code writes are the fields that data/record.schema.json describes.
. tests/house/tap.sh

if [ -f data/record.schema.json ]; then
    clean "every field that code writes is in data/record.schema.json" tests/house/fields .
else
    ok 1 "data/record.schema.json is there"
fi

plant data/record.schema.json <<'END'
{"properties":{"kind":{}},"$defs":{"m":{"properties":{"value":{},"n":{}}}}}
END
mkdir -p "$scratch"/{tools,lib,tests/bench}
plant tools/good.c <<'END'
    rec_set_number(r, "value", v, "too few");
    return rec_write(w, "metric", json_pack("{s:s, s:i}", "kind", name,
                                            "n", 3), e);
END
clean "known fields pass" tests/house/fields "$scratch"
plant tools/one.c <<<'    rec_set_int(record, "vallue", 3);'
plant tools/two.c <<'END'
    rec_write(w, "metric", json_pack("{s:i, s:i}", "n", 1,
                                     "number", 2), e);
END
plant tests/bench/three.c <<<'    rec_set_number(r, "valeu", v, NULL);'
caught 'three.c:1: field "valeu"' "planted: a misspelt field of bench" tests/house/fields "$scratch"
caught 'one.c:1: field "vallue"' "planted: a misspelt field" tests/house/fields "$scratch"
caught 'two.c:1: field "number"' "planted: a field in json_pack" tests/house/fields "$scratch"
finish
