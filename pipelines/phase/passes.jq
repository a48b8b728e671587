# passes.jq - answers that were timed and answers that quality is of, of the same prompts at the
# same points: they have to be the same ids. Inputs (-n): files of generations, those of the quality
# (in a folder answers/) first.
reduce (inputs | select(.kind == "generation" and .phase == "timed")
        | select(.status == "ok" or .status == null)) as $g
    ({of: {}, n: 0, same: 0};
     ([$g.config, $g.id] | tojson) as $key
     | if input_filename | test("/answers/") then .of[$key] = $g.token_ids
       else .n += 1 | .same += (if .of[$key] == $g.token_ids then 1 else 0 end) end)
| {schema: "crossover/1", kind: "check", run: "local", check: "passes", records: .n,
   identical: .same, pass: (.n > 0 and .same == .n),
   text: "\(.same) of \(.n) timed answers are those that quality is of"}
