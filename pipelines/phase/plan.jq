# plan.jq - prints one line about a sweep: launches planned and done, and the time that the missing
# launches will take. Inputs are the generations that exist. Run with -n and $sweep, $planned
# (launches by the settings), $plans (launches of the schedule), $done, $renewed (the reason why the
# schedule does not have the current settings, or "").
($plans | tonumber) as $plans | ($done | tonumber) as $done
| ([inputs | select(.kind == "generation") | (.batch_ns // .e2e_ns // 0) / (.batch // 1)]
    | add // 0 | . / 1e9) as $seconds
| if $plans == 0 then "\($sweep): about \($planned) launches, 0 done, no schedule yet"
  else "\($sweep): \($plans) launches, \($done) done, "
      + (if $done == 0 then "time not yet known"
         else "about \($seconds / $done * ($plans - $done) | ceil) s to go" end)
      + (if $renewed == "" then "" else "; \($renewed)" end) end
