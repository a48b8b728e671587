# roof.jq - prints the share of the machine's limits that each model reaches, one line for each
# model. Inputs: metric records, slurped; run with -r.
def percent: if .value != null then "\(.value * 1000 | round / 10) %"
    else "? (\(.value_reason // "no reason given"))" end;
def of($metric): map(select(.metric == $metric))[0];
map(select(.kind == "metric")) | group_by([.model, .point // .config])[]
| of("mbu_ratio") as $bytes | of("mfu_ratio") as $flops | select($bytes and $flops)
| of("decode_mbu_ratio") as $decode | of("prefill_mfu_ratio") as $prefill
| "\($bytes.model): \($bytes | percent) of memory bandwidth, \($flops | percent) of peak \(
    $bytes.flops_unit // "arithmetic")"
  + (if $decode.value != null and $prefill.value != null
     then "; prompts \($prefill | percent) of peak, then \($decode | percent) of bandwidth"
     else "" end)
