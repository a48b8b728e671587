# told.jq - what a step sweep found: a line for each configuration (latency, peak memory, quality or
# why there is none), then the crossovers. Inputs are the records of metrics, quality and pareto;
# run with -sr.
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
 | group_by([.model, .steps // 0, .config])[]
 | of("metric"; "e2e_ns") as $time | of("metric"; "memory_allocated_peak_bytes") as $memory
 | of("metric"; "memory_reserved_peak_bytes") as $reserved
 | of("quality"; "judge_ppl") as $quality
 | select($time)
 | "\($time.config): \($time | value(seconds))"
   + (if $memory then ", peak memory \($memory | value(bytes))" else "" end)
   + (if $reserved then " (reserved \($reserved | value(bytes)))" else "" end)
   + (if $quality then ", judge perplexity \($quality | value(three))" else "" end)),
(.[] | select(.kind == "crossover")
 | "\(.name)\(if .quality_metric then " by \(.quality_metric)" else "" end): " +
   if .exists then "\(.steps | tenth) steps [\(end_of("lo")), \(end_of("hi"))]"
   else "none, \(.reason // "no reason given")" end)
