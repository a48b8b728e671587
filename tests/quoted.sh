# quoted.sh - the numbers that the documents quote are those of the records.
. tests/house/tap.sh

clean "the documents say what the records hold" tests/house/quoted .

pages=(README.md kernels/README.md lib/train/README.md data/measured/README.md)
cp --parents -r "${pages[@]}" data/measured data/demo "$scratch"

# drift WORDS OTHERS PATTERN TEXT: all pages say something else, and one of them is found
drift()
{
    for page in "${pages[@]}"; do sed -i "s#$1#$2#" "$scratch/$page"; done
    caught "$3" "planted: $4" tests/house/quoted "$scratch"
    cp --parents "${pages[@]}" "$scratch"
}
drift '7\.02 ms' '7.12 ms' '^kernels/README.md: .*takes 7.02 ms' "another time of a pass"
drift '1\.18 tokens' '1.19 tokens' '^data/measured/README.md: .*1.18 tokens' \
    "another share of a token"
drift '17\.6 on' '20 on' '^kernels/README.md: .*17.6 on the Zen 5' "other operations a byte"
drift '| 89 steps' '| 90 steps' '^README.md: .*| 89 steps' "another step count at equal time"
drift '0\.71, 0\.82' '0.72, 0.82' '^lib/train/README.md: .*trains at 0.77' "another interval"
drift '^> At how many' '> At which' '^README.md: the records say: ' "another question"

sed -i 's/"took_ns":7021903.5/"took_ns":7521903.5/' "$scratch/data/measured/gpu-bench-h100.ndjson"
caught '^kernels/README.md: .*takes 7.52 ms, 1.26 tokens' "planted: another record" \
    tests/house/quoted "$scratch"
finish
