# quoted.sh - tests that the numbers which the documents quote are the numbers of the records.
. tests/house/tap.sh

clean "the documents say what the records hold" tests/house/quoted .

pages=(README.md kernels/README.md lib/train/README.md data/measured/README.md)
cp --parents -r "${pages[@]}" data/measured data/demo "$scratch"

# drift WORDS OTHERS PATTERN TEXT: changes WORDS to OTHERS in all pages, and expects the check to
# name PATTERN. One run of the check covers all calls of drift.
patterns=() texts=()
drift()
{
    for page in "${pages[@]}"; do sed -i "s#$1#$2#" "$scratch/$page"; done
    patterns+=("$3") texts+=("$4")
}
drift '5\.47 ms' '5.57 ms' '^kernels/README.md: .*takes 5.47 ms' "another time of a pass"
drift '1\.17 tokens' '1.18 tokens' '^data/measured/README.md: .*1.17 tokens' \
    "another share of a token"
drift '17\.6 on' '20 on' '^kernels/README.md: .*17.6 on the Zen 5' "other operations a byte"
drift '| 76 steps' '| 77 steps' '^README.md: .*| 76 steps' "another step count at equal time"
drift '0\.71, 0\.82' '0.72, 0.82' '^lib/train/README.md: .*trains at 0.77' "another interval"
drift '8\.11 to' '8.21 to' '^lib/train/README.md: .*falls from 8.11 to 2.09; with blocks' \
    "another loss of a twin"
drift 'commit afc0c0db\.' 'commit a48ffcb7.' '^README.md: .*since commit afc0c0db' \
    "another commit that ran on a card"
drift '^> At how many' '> At which' '^README.md: the records say: ' "another question"
tests/house/quoted "$scratch" >"$scratch/said" 2>&1
for i in "${!patterns[@]}"; do
    caught "${patterns[i]}" "planted: ${texts[i]}" cat "$scratch/said"
done
cp --parents "${pages[@]}" "$scratch"

sed -i 's/"took_ns":5474271.5/"took_ns":5974271.5/' "$scratch/data/measured/gpu-bench-h200.ndjson"
caught '^kernels/README.md: .*takes 5.97 ms, 1.28 tokens' "planted: another record" \
    tests/house/quoted "$scratch"
finish
