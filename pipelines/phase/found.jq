# found.jq - prints the outcome of each claim of make ablation, and of all cases of make exact, as
# lines: number of the requirement, tab, words. Inputs: records of kind ablation and exactness; run
# with -nr.
def percent(none): (. - none) * 1000 | round / 10
    | if . > 0 then "+\(.)" else "\(.)" end;
def exact: map(select(.claimed and .answers)) | select(. != [])
    | (map(select(.outcome != "held")) | length) as $bad
    | "0-51\t\(if $bad == 0 then "held" else "not held" end), make exact: of \(length) cases on "
      + "\(map(.answers) | add) answers and \(map(.tokens) | add) ids \($bad) change any";
[inputs] | (map(select(.kind == "exactness")) | exact),
(.[] | select(.kind == "ablation") | . as $r | .claims[]
| (if .effect == "difference" then 0 else 1 end) as $none
| (if $none == 0 then "points" else "%" end) as $unit
| "\(.row)\t\(.outcome), \($r.arch) \($r.option): \(.text)"
  + (if .value == null then "" else
       "; \(.metric) \(.value | percent($none)) \($unit)"
       + (if .lo == null then "" else " [\(.lo | percent($none)), \(.hi | percent($none))]" end)
     end))
