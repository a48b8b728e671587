# exact.jq - what a case of data/exact.ndjson changes: generations with its flags ($run) beside
# those that it is held against ($base), prompt by prompt, id by id. A case whose records do not
# show it proves nothing (65): `shows` has fields and their values, true for any but 0.
def answers: reduce (.[] | select(.kind == "generation")) as $g ({};
    .[$g.id] = (if has($g.id) or $g.status != "ok" then null else $g.token_ids end));
def shown($g): all($case.shows // {} | to_entries[];
    $g[.key] as $v | if .value == true then ($v // 0) > 0 else $v == .value end);
def differing($a; $b): [range([$a, $b | length] | max) | select($a[.] != $b[.])] | length;
($base | answers) as $a | ($run | answers) as $b
| ($run | map(select(.kind == "generation"))) as $g
| if all($g[]; shown(.)) then . else
    "\($case.case): its records do not show \($case.shows | tojson)\n" | halt_error(65) end
| ($a + $b | keys) as $ids
| [$ids[] | select($a[.] == null or $a[.] != $b[.])] as $other
| {schema: "crossover/1", kind: "exactness", run: "local", case: $case.case, text: $case.text,
   arch: $system, flags: $case.flags, base: ($case.base // ""),
   claimed: ($case.claimed != false), model: $g[0].model, device: $g[0].device, isa: $g[0].isa}
| if $g == [] and $case.needs then .outcome = "not applicable" | .outcome_reason =
      "it needs \($case.needs)"
  else . + {answers: ($ids | length), differing_answers: ($other | length),
            tokens: ([$a[] | length] | add // 0),
            differing_tokens: ([$other[] | differing($a[.] // []; $b[.] // [])] | add // 0)}
    | .outcome = (if .answers > 0 and .differing_answers == 0 then "held" else "not held" end)
  end
