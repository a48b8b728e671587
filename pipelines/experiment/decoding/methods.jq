# methods.jq - selects the methods of a file that $names names, and the first of each system, their
# base. $draft: the drafter of DRAFT; empty: none. Run with -n.
($names | split(" ") | map(select(. != ""))) as $wanted
| [inputs | select(.kind == "method")] as $all
| ($wanted - ($all | map(.method))) as $unknown
| if $unknown != [] then
    "METHODS: \($unknown | join(", ")): expected names of \($all | map(.method) | join(", "))\n"
    | halt_error(64)
  elif $draft == "" and any($all[]; .drafter and (.method as $m | $wanted | index($m))) then
    "METHODS: \($all | map(select(.drafter).method) | join(", ")) need DRAFT=MODEL\n"
    | halt_error(64)
  else ($all | group_by(.system) | map(.[0].method)) as $first
    | $all[] | select(.method as $m | ($wanted + $first) | index($m)) end
