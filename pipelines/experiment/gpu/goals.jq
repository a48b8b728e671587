# goals.jq - prints make gpu-goals as text: one line for each goal, with the verdict, the goal and
# the measured value. Inputs: the records of all parts; run with -nr, --slurpfile goals
# data/gpu-goals.json and, if there is another engine, --slurpfile peer with its lines.
def left($n): . + " " * ([$n - length, 0] | max);
def right($n): " " * ([$n - length, 0] | max) + .;
def round_off: if fabs < 100 then . * 100 | round / 100 else . * 10 | round / 10 end | tostring;

def agrees($of): . as $r
  | all($of | to_entries[]; .value as $v | $r[.key] as $has
        | if ($v | type) == "array" then $v | index([$has]) else $has == $v end);

# our rate / the rate of the other engine for the same work
def with_peer: . as $r
  | (if .tokens_per_s and .peer_ratio == null then
       [$ARGS.named.peer // [] | .[] | select(.work == $r.work
          and (.model == null or .model == $r.model) and (.dtype == null or .dtype == $r.dtype))][0]
     else null end) as $line
  | if $line.tokens_per_s then .peer_ratio = .tokens_per_s / $line.tokens_per_s else . end;

def goal: if has("least") then ">= \(.least)" elif has("most") then "<= \(.most)" else "" end;

[inputs | with_peer] | . as $records
| ([.[] | select(.ceiling and .unit == "bf16" and .remark) | .remark] | unique
   | .[] | "IN DOUBT: bf16 ceiling: \(.)"),
  ($goals[0].goals[]
   | . as $g
   | [$records[] | select(agrees($g.of) and has($g.field))] as $found
   | [$found[] | .[$g.field] | numbers | . * ($g.scale // 1)] as $values
   | ((has("least")) != ($g.every // false)) as $largest
   | (if $largest then $values | max else $values | min end) as $value
   | (if $value == null then "not measured"
      elif has("least") then (if $value >= $g.least then "met" else "missed" end)
      elif has("most") then (if $value <= $g.most then "met" else "missed" end)
      else "-" end) as $verdict
   | (if $value != null then "\($value | round_off | right(9)) \($g.unit)"
      else ([$found[] | .[$g.field + "_reason"] // empty] | first) // "" end) as $said
   | "\($verdict | left(12))  \($g.what | left(60)) \(goal | right(8))  \($said)" | sub(" +$"; ""))
