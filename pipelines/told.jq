# told.jq - the crossovers in a line each.
def tenth: if type == "number" then . * 10 | round / 10 else . end;
def end_of($side): .[$side] | tenth // (if $side == "lo" then "below" else "beyond" end);
select(.kind == "crossover")
| "\(.name)\(if .quality_metric then " by \(.quality_metric)" else "" end): " +
  if .exists then "\(.steps | tenth) steps [\(end_of("lo")), \(end_of("hi"))]"
  else "none, \(.reason // "no reason given")" end
