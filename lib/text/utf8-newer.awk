# utf8-newer.awk - makes the rows of utf8-newer.c from two files of the Unicode character database:
#     awk -f utf8-newer.awk DerivedAge.txt UnicodeData.txt
# A character assigned after version OLD and up to version NEW gets a stand-in: the nearest
# character of the same category and length in UTF-8 that is not newer than OLD. The stand-in of
# punctuation must also be newer than Unicode 8 (AFTER), because the pre-tokenizer Punctuation
# counts only punctuation of Unicode 8.
BEGIN { FS = ";"; OLD = 14; NEW = 16; AFTER = 8 }
function number(hex,   i, n) {
    for (i = 1; i <= length(hex); i++)
        n = 16 * n + index("0123456789ABCDEF", substr(hex, i, 1)) - 1
    return n
}
function utf8(c) { return c < 128 ? 1 : c < 2048 ? 2 : c < 65536 ? 3 : 4 }
function is_known(c, kind) {
    return (c in category) && category[c] == kind && age[c] <= OLD &&
           (kind !~ /^P/ || age[c] > AFTER)
}
function nearest(c,   d) {
    for (d = 1; d < 1114112; d++) {
        if (is_known(c - d, category[c]) && utf8(c - d) == utf8(c))
            return c - d
        if (is_known(c + d, category[c]) && utf8(c + d) == utf8(c))
            return c + d
    }
}
FILENAME == ARGV[1] && $1 ~ /^[0-9A-F]/ {
    split($1, range, /[. ]+/)
    first = number(range[1])
    last = range[2] == "" ? first : number(range[2])
    for (c = first; c <= last; c++)
        age[c] = $2 + 0
}
FILENAME == ARGV[2] {
    last = number($1)
    for (c = $2 ~ /Last>$/ ? first : last; c <= last; c++)
        category[c] = $3
    first = last
}
END {
    for (c = 0; c <= 1114111; c++) {
        if (!(c in category) || age[c] <= OLD || age[c] > NEW)
            continue
        for (last = c; category[last + 1] == category[c] && age[last + 1] > OLD &&
                       age[last + 1] <= NEW; last++)
            continue
        printf "    {0x%04X, 0x%04X, 0x%04X}, /* %s */\n", c, last, nearest(c), category[c]
        c = last
    }
}
