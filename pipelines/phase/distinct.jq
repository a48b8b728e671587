# distinct.jq - of timed generations that ended well, one of each (point, prompt, answer), and for
# how many it stands: `copies`. Answers that are drawn anew in every launch are several of a prompt.
# Where other prompts were timed than these, $timed is one answer of those: quality joins times by
# the workload.
reduce (inputs | select(.kind == "generation" and .phase == "timed")
        | select(.status == "ok" or .status == null)) as $g
    ({first: {}, n: {}};
     ([$g.point // $g.config, $g.workload, $g.id, $g.token_ids] | tojson) as $key
     | .n[$key] = ((.n[$key] // 0) + ($g.copies // 1))
     | if .first[$key] then . else .first[$key] = $g end)
| .n as $n | .first | keys_unsorted[] as $key | .[$key] + {copies: $n[$key]}
| if $ARGS.named.timed then .workload = $ARGS.named.timed[0].workload else . end
