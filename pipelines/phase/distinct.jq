# distinct.jq - selects one of each (point, prompt, answer) of the timed generations without an
# error; `copies` says how many it stands for. A prompt whose answers are drawn anew in each launch
# has several. Where the timed prompts are others, $timed is one of their answers, because quality
# joins times by the workload; the prompts are then those of all parts together.
reduce (inputs | select(.kind == "generation" and .phase == "timed")
        | select(.status == "ok" or .status == null)) as $g
    ({first: {}, n: {}};
     ([$g.point // $g.config, $g.workload, $g.id, $g.token_ids // $g.text] | tojson) as $key
     | .n[$key] = ((.n[$key] // 0) + ($g.copies // 1))
     | if .first[$key] then . else .first[$key] = $g end)
| .n as $n | .first | (map(.id) | unique | length) as $prompts
| keys_unsorted[] as $key | .[$key] + {copies: $n[$key]}
| if $ARGS.named.timed then .workload = $ARGS.named.timed[0].workload | .prompts = $prompts
  else . end
