# endpoints.jq - what is known of the rules of MLPerf Endpoints (v1.0, 2026), held against a load
# with a fixed number of requests at work (make load LOAD_RATES=0 LOAD_BATCH=1,2,4,..): a curve of
# tokens per second against tokens per second and user, points as measured, and a line a rule. The
# checker of MLPerf knows more rules. Inputs: generations with their meta records, and metrics; only
# those at rate 0 count; run with -nr.
#
# Steady state: 1200 s a point; 600 s count in the region of lowest concurrency, whose bound is not
# public, so a point of 600 to 1200 s is named.
def digits: if . == null then "-" elif . < 10 then . * 100 | round / 100 else round end;
def kept($rule; $is; $what):
    "\(if $is then "kept" else "BROKEN" end): \($rule)"
    + if $what == null or $what == "" then "" else ": \($what)" end;
reduce (inputs | select(.kind == "generation" or .kind == "metric" or .kind == "meta")
        | select(.arrival_rate > 0 | not)) as $r
    ({points: {}, software: {}};
     if $r.kind == "meta" then .software["\($r.version) \($r.commit)"] = 1
     elif $r.kind == "metric" then
         if $r.metric == "tpot_ns" or $r.metric == "output_tokens_per_s"
         then .metrics[$r.model + " \($r.steps // "")"]["\($r.batch)"][$r.metric] = $r else . end
     elif $r.phase != "timed" then .
     else .points[$r.model + " \($r.steps // "")"]["\($r.batch)"] |= (
         .seeds["\($r.seed)"] = 1 | .open = (.open or $r.arrival_rate != 0)
         | .ids[$r.id] += 1 | .prompts = $r.prompts
         | .answers[$r.id] = ((.answers[$r.id] // {}) + {($r.token_ids | tostring): 1})
         | .ns["\($r.launch)"]["\($r.round)"] = $r.batch_ns) end)
| . as $all | .points | to_entries[] | .key as $model
| (.value | to_entries | map(.value + {at: (.key | tonumber)}) | sort_by(.at)) as $p
| ($p | map({at, s: ([.ns[] | add / 1e9] | min)})) as $long
| ($p | map(select((.ids | map(.) | unique | length) != 1 or (.ids | length) != .prompts).at))
    as $parts
| ([$p[].answers | keys[]] | unique | map(. as $id | [$p[].answers[$id] // {} | keys[]] | unique
    | length) | map(select(. > 1)) | length) as $other
| "\($model): requests at work, tokens/s, tokens/s and user (1 / p90 of the time a token)",
  ($p[] | $all.metrics[$model]["\(.at)"] as $m
    | "  \(.at): \($m.output_tokens_per_s.value | digits), "
      + "\($m.tpot_ns.p90 | if . then 1e9 / . else . end | digits)"),
  kept("7 to 32 points"; $p | length >= 7 and length <= 32; "\($p | length)"),
  kept("a fixed number of requests at work"; $p | all(.open | not); null),
  kept("steady state of 1200 s, or of 600 s where few requests are at work"; $long | all(.s >= 600);
       [$long[] | select(.s < 1200) | "\(.s | round) s at \(.at)"] | join(", ")),
  kept("whole passes over the data"; $parts == [];
       if $parts == [] then null else "not at \($parts)" end),
  kept("one seed and one build at all points";
       ([$p[].seeds | keys[]] | unique | length) == 1 and ($all.software | length) == 1;
       $all.software | keys | join(", ")),
  kept("the accuracy of all points is the same"; $other == 0;
       if $other == 0 then "all answers are the same" else "\($other) answers differ" end),
  kept("no value between measured points"; true; null)
