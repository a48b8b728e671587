# same.jq - the A/A verdict from metric records of one model under three names: itself, a twin (the
# same model in other launches), and the twin made slower by $factor. The ratio of launch means must
# be compatible with 1 for the twin, and must not be for the slowed one.
def of($suffix): map(select(.kind == "metric" and .metric == "e2e_ns"
    and ((.model | test("-(twin|slow)$") | not) == ($suffix == ""))
    and (.model | endswith($suffix))))[0];
def values: [.launch_values[].value];
def mean: add / length;
def relative_variance:
    mean as $m | (map((. - $m) * (. - $m)) | add) / ([length - 1, 1] | max) / length / ($m * $m);
# The ratio of the means and its 95 % interval (delta method, Student's t).
def ratio($a; $b):
    ([$a, $b | length] | min) as $n
    | ([12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26][$n - 2] // 2.2) as $t
    | (($b | mean) / ($a | mean)) as $r
    | ($t * (($a | relative_variance) + ($b | relative_variance) | sqrt)) as $half
    | {value: $r, lo: ($r * (1 - $half)), hi: ($r * (1 + $half))};
def round3: . * 1000 | round / 1000;
(of("") | values) as $a
| ratio($a; of("-twin") | values) as $twin
| ratio($a; of("-slow") | values) as $slow
| {schema: "crossover/1", kind: "check", run: "local", check: "same", metric: "e2e_ns",
   factor: ($factor | tonumber), launches: ($a | length), twin: $twin, slowed: $slow,
   verdict: (if $twin.lo <= 1.01 and $twin.hi >= 0.99 then "SAME" else "DIFFERENT" end),
   handicap: (if $slow.lo > 1 then "FOUND" else "MISSED" end)}
| .pass = (.verdict == "SAME" and .handicap == "FOUND")
| .text = "A/A: \(.verdict), ratio \($twin.value | round3) [\($twin.lo | round3), \($twin.hi
    | round3)]; a handicap of \($factor) was \(.handicap)"
