# quantizations.jq - prints make quantizations as text: for each system and format the bytes of the
# weights, the time of a token, the perplexity with its change in percent, and the accuracy; "-" if
# it was not measured. Inputs: comparison records; run with -sr.
def digits($n): if . == null then "-" else . * pow(10; $n) | round / pow(10; $n) end;
map(select(.kind == "comparison" and .by == "option")) | group_by([.arch, .setting])[]
| (map(select(.effect != "disagreement") | {key: .metric, value: .}) | from_entries) as $m
| ($m.ppl // $m.elbo_ppl) as $ppl | $m.memory_weights_bytes as $bytes
| $m.norm_latency_ns_per_token as $time
| [.[0].arch, .[0].setting,
   "\($bytes.config_value | if . then . / 1048576 else . end | digits(2)) MiB (\(
      $bytes.value | digits(3)) of none)",
   "\($time.config_value | if . then . / 1e6 else . end | digits(2)) ms a token (\(
      $time.value | digits(2)))",
   "ppl \($ppl.config_value | digits(4)) (\(
      $ppl.value | if . then 100 * (. - 1) else . end | digits(2)) %)",
   "accuracy \($m.accuracy.config_value | digits(3))"]
| join("  ")
