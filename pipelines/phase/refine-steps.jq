# refine-steps.jq - prints the step counts that pareto suggests for sweeps whose crossover is not
# known within half an octave, except the counts of $steps. Run with -nr.
def vague: .est_lo == null or .est_hi == null or .est_hi > .est_lo * pow(2; 0.5);
($steps | split(",") | map(select(. != "") | tonumber)) as $known
| [inputs] | (map(select(.kind == "crossover" and (.name == "X_lat" or .name == "X_q")))) as $places
| [.[] | select(.kind == "suggest" and .axis == "steps") | . as $s
   | select(any($places[]; .series == $s.series and .llama_point == $s.llama_point and vague and
                (.name == "X_lat" or .quality_metric == $s.quality_metric)))
   | .steps[]?] | unique - $known | map(tostring) | join(",")
