# passes.jq - checks that timed and untimed answers to the same prompts at the same points have the
# same ids. Inputs (-n): files of generations, first the untimed ones (in a folder answers/).
reduce (inputs | select(.kind == "generation" and .phase == "timed")
        | select(.status == "ok" or .status == null)) as $g
    ({scored: {}, n: 0, same: 0};
     ([$g.config, $g.id] | tojson) as $key
     | if input_filename | test("/answers/") then .scored[$key] = $g.token_ids
       else .n += 1 | .same += (if .scored[$key] == $g.token_ids then 1 else 0 end) end)
| {schema: "crossover/1", kind: "check", run: "local", check: "passes", records: .n,
   identical: .same, pass: (.n > 0 and .same == .n),
   text: "\(.same) of \(.n) timed answers are the scored ones"}
