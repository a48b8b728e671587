# same.jq - the verdict of the self-test in words, from comparisons of each model under three names:
# a twin and a slow twin, both against itself. One record for each model and clock. The twin has to
# be the SAME, and the slow one found SLOWER: one of its passes in twenty ran twice.
def round3: if . == null then "none" else . * 1000 | round / 1000 end;
def side: {value, lo, hi, p, lo_reason, launches, method};
map(select(.kind == "comparison" and .effect == "ratio" and
           (.setting == "twin" or .setting == "slow")))
| group_by([.metric == "e2e_ns", .arch])[]
| (map(select(.setting == "twin"))[0]) as $twin | (map(select(.setting == "slow"))[0]) as $slow
| select($twin)
| {schema: "crossover/1", kind: "check", run: "local", check: "same", metric: $twin.metric,
   model: ($twin.config | split(" ")[0]), arch: $twin.arch,
   factor: ($factor | tonumber), launches: $twin.launches, twin: ($twin | side),
   slowed: ($slow | side), verdict: $twin.verdict, zone: $twin.zone,
   launches_to_decide: $twin.launches_to_decide, stop_reason: $twin.stop_reason,
   handicap: (if $slow.verdict == "SLOWER" then "FOUND" else "MISSED" end)}
| .pass = (.verdict == "SAME" and .handicap == "FOUND")
| .text = "self-test by \(if .metric == "cpu_ns" then "processor" else "wall" end) time: \(.model) "
    + "against itself is \(.verdict), ratio \(.twin.value | round3) "
    + (if .twin.lo then "[\(.twin.lo | round3), \(.twin.hi | round3)]"
       else "without interval (\(.twin.lo_reason))" end)
    + " over \(.launches) launches"
    + (if .launches_to_decide then "; about \(.launches_to_decide) would decide" else "" end)
    + "; the handicap of \((.factor - 1) * 100 | round) % was \(.handicap)"
