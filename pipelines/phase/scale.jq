# scale.jq - prints as text at which batch size and length (phase 5) and at which rate of requests
# (make load) the faster model changes, one line for each crossover. A line about rates also says
# whether its step count is as good as LLaMA; a line about the fastest LLaMA names it at each size.
# Inputs: the records of pareto; run with -sr.
def tenth: (if . < 1 then 1000 else 10 end) as $by | . * $by | round / $by;
def end_of($side): .[$side] | if . == null then null else tenth end;
.[] | select(.kind == "crossover" and (.name | . == "X_batch" or . == "X_length" or . == "X_rate"))
| (if .name == "X_batch" then "batch size, \(.gen_length) tokens"
   elif .name == "X_rate" then "requests/s, \(.gen_length) tokens, \(.batch) at once"
   else "length, batch \(.batch)" end) as $what
| ((if .tokens_per_step then "\(.tokens_per_step | tenth) a step"
    else "unmask \(.unmask // "schedule"), cache \(.cache // "none")" end)
   + (if .arrival_rate > 0 then ", \(.arrival_rate | tenth) requests/s" else "" end)) as $how
| (if .rival == "fastest" then ", against the fastest LLaMA" else "" end) as $against
| "\(.name) (\($what), \($how)\($against)): "
  + if .exists
    then (.direction | gsub("_"; " "))
        + " \(.at | tenth) [\(end_of("lo") // "below"), \(end_of("hi") // "beyond")]"
    else "none, \(.reason)" end
  + "; ratios " + ([.cells[] | "\(.at): \(if .ratio then .ratio * 100 | round / 100
                             else .ratio_reason // "none" end)"
        + (if $against == "" then "" else " (\(.llama_config))" end)] | join(", "))
  + if .name != "X_rate" or .steps == null then ""
    else "; \(.steps) steps " + (if .as_good then "are as good as LLaMA by \(.as_good_by)"
        elif .as_good == false then "are worse than LLaMA by \(.as_good_by)"
        else "are not shown to be as good as LLaMA (\(.as_good_reason))" end) end
