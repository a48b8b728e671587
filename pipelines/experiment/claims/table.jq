# table.jq - prints the verdicts of forecast --claims as a table in Markdown, then counts them. Run
# with -sr.
def three: if . == null then "" elif . >= 100 then round else . * 1000 | round / 1000 end;
def row: "| \(map(tostring) | join(" | ")) |";
map(select(.kind == "claim_verdict"))
| (["claim", "tokens/s", "verdict", "share of the roofline", "tokens a pass it needs", "speedup",
    "bandwidth share of its baseline", "missing"] | row, (map("---") | row)),
  (sort_by(.verdict, .name)[]
   | [.name, (if .metric == "output_tokens_per_s" then .value | three else "" end),
      .verdict + (if .verdict_reason then ": \(.verdict_reason)" else "" end),
      (.roofline_ratio | three), (.needs_tokens_per_pass | three), (.speedup | three),
      (.baseline_bandwidth_ratio | three), (.missing | join(", "))] | row),
  "", (group_by(.verdict) | map("\(.[0].verdict): \(length)") | join(", "))
