# replicate.jq - do new records (slurped) agree with $stored ones? Counts and bytes within 1 %;
# quality when the intervals overlap; times and shares of the limits within 25 %, on the machine of
# the stored ones only.
def wanted: select(.value != null)
    | select(.kind == "metric" or (.kind == "quality" and .summary == true));
# A label names a point on any machine, its identity on one.
def key: "\(.config)\(if .workload then " on \(.workload)" else "" end) / \(.metric)";
def machine: [.[] | select(.kind == "meta") | .machine.fingerprint? // empty][0];
def is_time: .metric | test("_ns$|_per_s$|_per_token$|m[fb]u_ratio$");
(machine != null and machine == ($stored | machine)) as $here
| ([$stored[] | wanted | {key: key, value: .}] | from_entries) as $old
| .[] | wanted | . as $new
| $old[key] | select(. != null) | . as $was
| select($here or ($new | is_time | not))
| {schema: "crossover/1", kind: "check", run: "local", check: "replicate", config: $new.config,
   metric: $new.metric, stored: $was.value, value: $new.value}
| .pass = (if $new.kind == "quality" and $new.lo != null and $was.lo != null
           then $new.lo <= $was.hi and $was.lo <= $new.hi
           else ([.stored, .value | fabs] | max) as $size
               | (if $new | is_time then 0.25 else 0.01 end) as $share
               | (.value - .stored | fabs) <= $size * $share end)
| .text = "\(if .pass then "agrees" else "DIFFERS" end)  \(key): \(.stored) then, \(.value) now"
