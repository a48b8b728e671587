# quoted.sh - the numbers that README.md and data/measured/README.md quote are those of the records.
. tests/house/tap.sh

clean "README.md says what the records hold" tests/house/quoted .

cp --parents -r README.md data/measured data/demo "$scratch"
pages=("$scratch"/{README,data/measured/README}.md)

# drift WORDS OTHERS PATTERN TEXT: both pages say something else, and one is found
drift()
{
    for page in "${pages[@]}"; do sed -i "s#$1#$2#" "$page"; done
    caught "$3" "planted: $4" tests/house/quoted "$scratch"
    cp README.md "$scratch"
    cp data/measured/README.md "$scratch/data/measured"
}
drift '7\.02 ms' '7.12 ms' '^README.md: .*takes 7.02 ms' "another time of a pass"
drift '1\.18 tokens' '1.19 tokens' '^data/measured/README.md: .*1.18 tokens' \
    "another share of a token"
drift '17\.6 on' '20 on' '^README.md: .*17.6 on the Zen 5' "other operations a byte"
drift '| 89 steps' '| 90 steps' '^README.md: .*| 89 steps' "another step count at equal time"
drift '0\.71, 0\.82' '0.72, 0.82' '^README.md: .*trains at 0.77' "another interval"

sed -i 's/"took_ns":7021903.5/"took_ns":7521903.5/' "$scratch/data/measured/gpu-bench-h100.ndjson"
caught '^README.md: .*takes 7.52 ms, 1.26 tokens' "planted: another record" \
    tests/house/quoted "$scratch"
finish
