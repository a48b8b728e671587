# shapes.jq - prints make shapes as text: the time of a batch at each step count, the step count at
# which both models take the same time, and doubts about the line. Inputs: records of kind forecast;
# run with -r.
def seconds: if . then . / 1e5 | round / 10000 else "?" end;
def tenth: if . then . * 10 | round / 10 else "?" end;
def doubts: [(select(.line_holds == false)
              | "a point is \(.residual_ratio * 1000 | round / 10) % off the line"),
             (select(.is_far)
              | "\(.beyond_ratio | tenth) times beyond the measured steps"),
             (select(.lo == null) | "no interval: \(.lo_reason)")]
    | if . == [] then "" else "; DOUBTFUL: " + join(", ") end;
select(.kind == "forecast")
| "\(.model) \(.quant) batch=\(.batch) length=\(.new_tokens): "
  + if .what == "line"
    then "\(.steps) steps \(.e2e_ns | seconds) s [\(.lo | seconds), \(.hi | seconds)], "
         + "modelled from steps \(.measured_steps | map(tostring) | join(", "))"
    else "as long as \(.llama) (\(.llama_e2e_ns | seconds) s) at "
         + "\(if .steps then .steps | tenth else "no" end) steps"
         + "\(if .lo then " [\(.lo | tenth), \(.hi | tenth)]" else "" end)"
    end + doubts
