# distinct.jq - selects each distinct answer of the timed generations without an error once for its
# point and prompt; `copies` counts the generations with this answer. If answers are drawn anew in
# each launch, a prompt has several. If other prompts were timed than scored, $timed is a timed
# generation. The selected answers then get the workload of $timed, because quality and times are
# joined by workload, and the number of all prompts.
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
