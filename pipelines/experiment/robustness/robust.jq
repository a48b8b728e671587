# robust.jq - prints make robustness as text: one line for each comparison. Inputs: comparison
# records; run with -sr.
def percent: if type == "number" then "\(. * 1000 | round / 10) %" else "-" end;
def with_interval: "\(.value | percent) [\(.lo | percent), \(.hi | percent)]";
map(select(.kind == "comparison" and .metric))
| group_by([.by, .config, .base_config])[]
| (map({key: .metric, value: .}) | from_entries) as $m
| select($m.differing_answers_ratio)
| "\(.[0].config), \(.[0].by) \(.[0].setting): \($m.differing_answers_ratio | with_interval)"
  + " of \($m.differing_answers_ratio.n) answers differ, \($m.differing_ids_ratio | with_interval)"
  + " of ids"
  + ($m.first_difference_tokens | if .value then ", from token \(.value) on" else "" end)
  + ($m.accuracy | if .value != null then ", accuracy \(.value | percent) higher"
        + " [\(.lo | percent), \(.hi | percent)]" else "" end)
