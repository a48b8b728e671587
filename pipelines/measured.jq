# measured.jq - what is worth keeping of metric records: machine and commit once, then the numbers
# that people ask for, each with its settings, interval and launches. For data/measured.
def wanted: ["e2e_ns", "ttft_ns", "tpot_ns", "output_tokens_per_s", "mfu_ratio", "mbu_ratio",
             "decode_mbu_ratio", "memory_weights_bytes", "memory_kv_bytes",
             "memory_activations_bytes", "memory_requested_peak_bytes",
             "memory_process_peak_bytes"];
if .kind == "meta" then
  {schema, kind, run, tool, version, commit, argv, seed, start, machine} | select(.machine)
elif .kind == "metric" and (.metric as $m | wanted | index($m)) and .value != null then
  {schema, kind, run, config, point, model, arch, paradigm, dtype, quant, device, batch, steps,
   gen_length, block_length, max_new, contract, weights_random, metric, value, lo, hi, lo_reason,
   level, n, launches, tainted, disturbed, unit, direction}
  | with_entries(select(.value != null or (.key | IN("lo", "hi"))))
elif .kind == "forecast" then .
else empty end
