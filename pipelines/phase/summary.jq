# summary.jq - prints phase 4 as text: one line for each point (latency, passes if they differ from
# the step count, peak memory, quality or the reason why there is none), then the crossovers.
# Inputs: the records of metrics, quality and pareto; run with -sr.
def tenth: if type == "number" then . * 10 | round / 10 else . end;
def end_of($side): .[$side] | tenth // (if $side == "lo" then "below" else "beyond" end);
def three: if . == 0 then . else (fabs | log10 | floor) as $e
    | if $e >= 2 then round else . * pow(10; 2 - $e) | round / pow(10; 2 - $e) end end;
def seconds: if . >= 1e9 then "\(. / 1e9 | three) s" else "\(. / 1e6 | three) ms" end;
def bytes: if . >= 1e9 then "\(. / 1e9 | three) GB" else "\(. / 1e6 | three) MB" end;
def value(f):
    if .value != null then .value | f else "none, \(.value_reason // "no reason given")" end;
def of($kind; $metric): map(select(.kind == $kind and .metric == $metric))[0];

(map(select(.kind == "metric" or (.kind == "quality" and .summary)))
 | group_by(.point // .config)
 | map(select(of("metric"; "e2e_ns")))
 | sort_by(of("metric"; "e2e_ns") | [.model, .axis, .steps // .passes // 0, .config])[]
 | of("metric"; "e2e_ns") as $time | of("metric"; "memory_allocated_peak_bytes") as $memory
 | of("metric"; "memory_reserved_peak_bytes") as $reserved
 | of("quality"; "judge_ppl") as $quality
 | "\($time.config): \($time | value(seconds))"
   + (if $time.axis != null and $time.axis != "steps" and $time.passes != null
      then ", \($time.passes | tenth) passes" else "" end)
   + (if $memory then ", peak memory \($memory | value(bytes))" else "" end)
   + (if $reserved then " (reserved \($reserved | value(bytes)))" else "" end)
   + (if $quality then ", judge perplexity \($quality | value(three))" else "" end)),
(.[] | select(.kind == "crossover")
 | "\(.name)\(if .quality_metric then " by \(.quality_metric)" else "" end)"
   + (if .rival == "fastest" then " against the fastest LLaMA (\(.llama_config))" else "" end)
   + ": " +
   if .exists then "\(.at // .steps | tenth) \(.over // "steps") [\(end_of("lo")), \(end_of("hi"))]"
       + (if .axis == null or .axis == .over then ""
          else " (\(.axis) \([.bracket_values[]? | select(. != null) | tostring] | unique
                            | join(" to ")))" end)
   else "none, \(.reason // "no reason given")" end)
