# methods.jq - selects the methods of a file that $names lists; with $base true also the first
# method of each system, its base. $draft is the drafter of DRAFT, $family its family (empty without
# a drafter). Run with -n.
($names | split(" ") | map(select(. != ""))) as $wanted
| [inputs | select(.kind == "method")] as $all
| ($wanted - ($all | map(.method))) as $unknown
| ($all | map(select(.drafter and (.method as $m | $wanted | index($m))))) as $drafted
| if $unknown != [] then
    "METHODS: \($unknown | join(", ")): expected names of \($all | map(.method) | join(", "))\n"
    | halt_error(64)
  elif $draft == "" and $drafted != [] then
    "METHODS: \($all | map(select(.drafter).method) | join(", ")) need DRAFT=MODEL\n"
    | halt_error(64)
  elif any($drafted[]; .drafter != $family) then
    ($drafted | map(select(.drafter != $family))[0]) as $one
    | "METHODS: \($one.method) needs a drafter of family \($one.drafter): DRAFT=\($draft) has "
      + "family \($family)\n"
    | halt_error(64)
  else ($all | group_by(.system) | map(.[0].method | select($base))) as $first
    | $all[] | select(.method as $m | ($wanted + $first) | index($m)) end
