# exactness.jq - prints make exact as text. It fails (exit 5) if a case that may change no token
# changed one, or if a comparison is empty. Inputs: records of kind exactness; run with -nr.
[inputs | select(.kind == "exactness")]
| (.[] | "\(.arch) \(.case) (\(.flags)): "
    + (if .outcome_reason then .outcome_reason else
        "\(.differing_answers) of \(.answers) answers differ, in \(.differing_tokens) of "
        + "\(.tokens) ids"
        + (if .claimed then "" else "; none is claimed to be the same" end) end)),
  (map(select(.answers and .claimed))
   | "\(length) cases that may change no id, on \(map(.answers) | add // 0) answers: "
     + "\(map(select(.outcome != "held")) | length) do"),
  (map(select(.claimed and .outcome == "not held")) as $bad
   | if $bad != [] then
       "error: ids changed where none may: \($bad | map("\(.arch) \(.case)") | join(", "))\n"
       | halt_error(5)
     elif all(.[]; .answers == null) then "error: nothing was compared\n" | halt_error(5)
     else empty end)
