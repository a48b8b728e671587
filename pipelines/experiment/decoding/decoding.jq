# decoding.jq - prints make decoding as text: the speed of each method relative to the base of its
# model, and the change in accuracy. Inputs: comparison records by method; run with -rn.
def round2: . * 100 | round / 100;
def sign: if . > 0 then "+\(.)" else "\(.)" end;
def points: . * 1000 | round / 10 | sign;
def interval(f): if .lo == null then "" else " [\(.lo | f), \(.hi | f)]" end;
reduce (inputs | select(.kind == "comparison" and .by == "method")) as $r ({};
    .[$r.setting] += {model: $r.model}
    + (if $r.metric == "e2e_ns" and $r.effect == "ratio"
       then {speed: {value: (1 / $r.value), lo: (if $r.hi then 1 / $r.hi else null end),
                     hi: (if $r.lo then 1 / $r.lo else null end)}}
       elif $r.metric == "accuracy" and $r.effect == "difference" then {accuracy: $r}
       else {} end))
| to_entries | map(select(.value.speed)) | sort_by(.value.model, -.value.speed.value)[]
| "\(.value.model) \(.key): \(.value.speed.value | round2) times as fast"
  + (.value.speed | interval(round2))
  + (if .value.accuracy
     then ", accuracy \(.value.accuracy.value | points)\(.value.accuracy | interval(points)) points"
     else "" end)
