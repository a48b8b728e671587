# agree.jq - counts the prompts on which two files of generations have the same ids. Arguments: $a,
# $b (the files, slurped), $arch, $first, $second (devices), $least (smallest share that passes).
def answers: [.[] | select(.kind == "generation" and .phase != "warmup")];
($a | answers) as $x
| ($b | answers | map({key: .id, value: .token_ids}) | from_entries) as $y
| ([$x[] | select(.token_ids != null and $y[.id] == .token_ids)] | length) as $same
| ([$x[] | .token_ids // [] | length] | add) as $ids
| {schema: "crossover/1", kind: "check", run: "local", check: "agree", arch: $arch,
   model: $x[0].model, dtype: $x[0].dtype, devices: [$first, $second],
   device_names: [$a, $b | answers[0].device_name], records: ($x | length), identical: $same,
   pass: ($x != [] and $same >= ($least | tonumber) * ($x | length)),
   text: "\($arch): \($same) of \($x | length) generations identical on \($first) and \($second
       ) (\($x[0].model), \($x[0].dtype // "any dtype"), \($ids) ids)"}
