# scale.jq - phase 5 as text: the batch size and the length at which the faster model changes, one
# line for each X_batch and X_length. Inputs: the records of pareto; run with -sr.
def tenth: . * 10 | round / 10;
def end_of($side): .[$side] | if . == null then null else tenth end;
.[] | select(.kind == "crossover" and (.name == "X_batch" or .name == "X_length"))
| (if .name == "X_batch" then "batch size, \(.gen_length) tokens"
   else "length, batch \(.batch)" end) as $what
| (if .tokens_per_step then "\(.tokens_per_step | tenth) a step"
   else "unmask \(.unmask // "schedule"), cache \(.cache // "none")" end) as $how
| "\(.name) (\($what), \($how)): "
  + if .exists
    then (.direction | gsub("_"; " "))
        + " \(.at | tenth) [\(end_of("lo") // "below"), \(end_of("hi") // "beyond")]"
    else "none, \(.reason)" end
  + "; ratios " + ([.cells[] | "\(.at): \(if .ratio then .ratio * 100 | round / 100
                             else .ratio_reason // "none" end)"] | join(", "))
