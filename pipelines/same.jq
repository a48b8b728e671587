# same.jq - the A/A verdict in words, from the comparisons of one model under three names: a twin
# (the same model in other launches) and the twin with its times multiplied by $factor, both against
# itself. The twin has to be the SAME, and the handicap FOUND. The handicap is put into records, not
# into passes: it shows that this many launches of this spread tell a difference of that size, and
# nothing about what the generator's clock would miss; and it shares the twin's luck.
def of($name): map(select(.kind == "comparison" and .setting == $name))[0];
def round3: if . == null then "none" else . * 1000 | round / 1000 end;
of("twin") as $twin | of("slow") as $slow
| def side: {value, lo, hi, p, lo_reason, launches, method};
{schema: "crossover/1", kind: "check", run: "local", check: "same", metric: $twin.metric,
   factor: ($factor | tonumber), launches: $twin.launches, twin: ($twin | side),
   slowed: ($slow | side), verdict: $twin.verdict, zone: $twin.zone,
   launches_to_decide: $twin.launches_to_decide, stop_reason: $twin.stop_reason,
   handicap: (if $slow.verdict == "SLOWER" then "FOUND" else "MISSED" end)}
| .pass = (.verdict == "SAME" and .handicap == "FOUND")
| .text = "one model under two names is \(.verdict), ratio \(.twin.value | round3) "
    + (if .twin.lo then "[\(.twin.lo | round3), \(.twin.hi | round3)]"
       else "without interval (\(.twin.lo_reason))" end)
    + " over \(.launches) launches of each"
    + (if .launches_to_decide then "; about \(.launches_to_decide) would decide" else "" end)
    + "; its recorded times multiplied by \(.factor) were \(.handicap) to be slower, which tests "
    + "the statistics and not the clock"
