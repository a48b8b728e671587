# found.jq - what make ablation found of each claim: row, tab, words. Inputs: records of kind
# ablation (run with -nr).
def percent(none): (. - none) * 1000 | round / 10
    | if . > 0 then "+\(.)" else "\(.)" end;
inputs | select(.kind == "ablation") | . as $r | .claims[]
| (if .metric == "accuracy" or (.metric | endswith("_answers_ratio") or endswith("_distance"))
   then 0 else 1 end) as $none
| (if $none == 0 then "points" else "%" end) as $unit
| "\(.row)\t\(.outcome), \($r.arch) \($r.option): \(.text)"
  + (if .value == null then "" else
       "; \(.metric) \(.value | percent($none)) \($unit)"
       + (if .lo == null then "" else " [\(.lo | percent($none)), \(.hi | percent($none))]" end)
     end)
