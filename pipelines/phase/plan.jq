# plan.jq - a line on a sweep: launches planned, done, and the time that the rest will take. Inputs
# are the generations that are there; run with -n and $sweep, $plans, $done.
($plans | tonumber) as $plans | ($done | tonumber) as $done
| ([inputs | select(.kind == "generation") | (.batch_ns // .e2e_ns // 0) / (.batch // 1)]
    | add // 0 | . / 1e9) as $seconds
| "\($sweep): \($plans) launches, \($done) done, " +
  if $done == 0 then "time not yet known"
  else "about \($seconds / $done * ($plans - $done) | ceil) s to go" end
