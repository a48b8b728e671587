# distinct.jq - of timed generations that ended well, one of each (point, prompt, answer)
foreach (inputs | select(.kind == "generation" and .phase == "timed")
         | select(.status == "ok" or .status == null)) as $g
    ({seen: {}};
     ([$g.point // $g.config, $g.workload, $g.id, $g.token_ids] | tojson) as $key
     | .fresh = (.seen[$key] | not) | .seen[$key] = true;
     select(.fresh) | $g)
