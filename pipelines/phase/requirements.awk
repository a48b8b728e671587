# requirements.awk - prints make requirements as text. Reads outcomes (two columns), verdicts
# (three) and the requirements themselves (six), in this order. A requirement with the verdict
# "measured" gets its outcome.
BEGIN { FS = "\t"; n = split("held,not held,undecided,not applicable", outcome, ",") }
/^#/ { next }
NF == 2 {
    found[$1] = found[$1] "        found  " $2 "\n"
    sub(/,.*/, "", $2)
    times[$1, $2]++
    next
}
NF == 3 { verdict[$1] = $2; words[$1] = $3; next }
{
    states[$5]++
    printf "%s  %-17s  %s\n        in  %s\n", $1, $5, $2, $3
    tests = split($4, test, " ; ")
    for (i = 1; i <= tests; i++) {
        sub(/::/, ": ", test[i])
        print "        test  " test[i]
    }
    if ($6)
        print "        lacks  " $6
    if ($1 in verdict)
        tell($1, verdict[$1])
    printf "%s", found[$1]
}
function tell(row, v, i, text) {
    if (v == "measured") {
        for (i = 1; i <= n; i++)
            if (times[row, outcome[i]])
                text = text (text ? ", " : "") times[row, outcome[i]] " " outcome[i]
        if (!text)
            v = text = "not measured yet (make ablation, make exact)"
    } else
        text = v (words[row] ? ": " words[row] : "")
    print "        verdict  " text
    verdicts[v]++
}
END {
    for (s in states)
        total = total states[s] " " s "  "
    print total
    for (v in verdicts)
        judged = judged verdicts[v] " " v "  "
    print "verdicts: " judged
}
