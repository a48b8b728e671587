# shapes.jq - what a batch takes at each step count, and where the two are alike: a line a record of
# kind forecast, from make shapes (run with -r).
def seconds: if . then . / 1e5 | round / 10000 else "?" end;
select(.kind == "forecast")
| "\(.model) \(.quant) batch=\(.batch): "
  + if .what == "line"
    then "\(.steps) steps \(.e2e_ns | seconds) s [\(.lo | seconds), \(.hi | seconds)], "
         + "modelled from steps \(.measured_steps | map(tostring) | join(", "))"
    else "as long as \(.llama) (\(.llama_e2e_ns | seconds) s) at "
         + "\(if .steps then .steps * 10 | round / 10 else "no" end) steps"
    end
