# The comparisons of `make quantizations`, a line for each model and format: bytes of weights, time
# a token, perplexity and its change in percent, accuracy.
def digits($n): . * pow(10; $n) | round / pow(10; $n);
map(select(.kind == "comparison" and .by == "quant")) | group_by([.model, .setting])[]
| (map(select(.effect != "disagreement") | {key: .metric, value: .}) | from_entries) as $m
| ($m.ppl // $m.elbo_ppl) as $ppl
| [.[0].model, .[0].setting,
   "\($m.memory_weights_bytes | .config_value / 1048576 | digits(2)) MiB of weights (\(
      $m.memory_weights_bytes.value | digits(3)))",
   "\($m.norm_latency_ns_per_token | .config_value / 1e6 | digits(2)) ms a token (\(
      $m.norm_latency_ns_per_token.value | digits(2)))",
   "ppl \($ppl.config_value | digits(3)) (\(100 * ($ppl.value - 1) | digits(2)) %)",
   if $m.accuracy then "accuracy \($m.accuracy.config_value | digits(3))" else empty end]
| join("  ")
