# goals.jq - goals beside what bench measured, a line each. Inputs are the records; run with -nr and
# --slurpfile goals data/gpu-goals.json.
def left($n): . + " " * ([$n - length, 0] | max);
def right($n): " " * ([$n - length, 0] | max) + .;
def round_off: if fabs < 100 then . * 100 | round / 100 else . * 10 | round / 10 end | tostring;

def agrees($of): . as $r
  | all($of | to_entries[]; .value as $v | $r[.key] as $has
        | if ($v | type) == "array" then $v | index([$has]) else $has == $v end);

[inputs] as $records
| $goals[0].goals[]
| . as $g
| [$records[] | select(agrees($g.of) and has($g.field))] as $found
| [$found[] | .[$g.field] | numbers | . * ($g.scale // 1)] as $values
| ((has("least")) != ($g.every // false)) as $largest
| (if $largest then $values | max else $values | min end) as $value
| (if $value == null then "-  "
   elif has("least") then (if $value >= $g.least then "met" else "NOT" end)
   else (if $value <= $g.most then "met" else "NOT" end) end) as $verdict
| (if $value != null then "\($value | round_off | right(9)) \($g.unit)"
   else ([$found[] | .[$g.field + "_reason"] // empty] | first) // "not measured" end) as $said
| "\($verdict)  \($g.what | left(58)) "
  + "\(if has("least") then ">= \(.least)" else "<= \(.most)" end | right(8))"
  + "  \($said)"
