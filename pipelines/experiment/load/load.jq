# load.jq - make load as text: a line for each point, and for each series of rates the highest
# measured rate up to which 90 % of the answers keep the limits. Inputs: the records of measure; run
# with -sr.
def digits: if . == null then "-" elif . < 10 then . * 100 | round / 100 else round end;
def ms: if . == null then "-" else . / 1e6 | digits end;
def good: if .requests_per_s.value == null or .goodput_per_s.value == null then null
          else .goodput_per_s.value / .requests_per_s.value end;
map(select(.kind == "metric" and .arrival_rate > 0))
| group_by([.model, .steps, .batch, .arrival_rate])
| map({name: ([.[0].model, (.[0].steps // empty | "steps=\(.)"),
               "batch=\(.[0].batch)"] | join(" ")),
       rate: .[0].arrival_rate, of: INDEX(.metric)} | .good = (.of | good))
| (.[] | "\(.name), \(.rate) requests/s: \(.of.e2e_ns.value | ms) ms an answer, first token after "
         + "\(.of.ttft_ns.value | ms) ms, \(.of.requests_per_s.value | digits) answers/s, "
         + "\(if .good == null then "-" else .good * 100 | round end) % within the limits"),
  (group_by(.name)[] | (map(.good >= 0.9) | index(false) // length) as $n
   | (map(select(.good == null)) | .[0]) as $unknown
   | "\(.[0].name): 90 % within the limits "
     + if $unknown then "unknown at \($unknown.rate) requests/s: "
           + ($unknown.of | .requests_per_s.value_reason // .goodput_per_s.value_reason
              // "not measured")
       elif $n == 0 then "at no rate measured"
       elif $n == length then "at every rate measured, up to \(.[-1].rate) requests/s"
       else "up to \(.[$n - 1].rate) requests/s, not at \(.[$n].rate)" end)
