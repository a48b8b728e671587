# measured.jq - selects the records of a run that data/measured keeps (slurped): machine and commit
# once, the limits of the machine, then the metrics, each with its settings, interval and launches.
# This is everything that forecast reads (--check, --along-steps).
#
# The streams are not complete any more, so their meta records become parent records; tools then
# accept the result. The machine of a metric is the machine of its launches (the parent record of
# measure). If another machine computed the metric, analysis_machine names that machine.
def wanted: ["e2e_ns", "ttft_ns", "tpot_ns", "output_tokens_per_s", "mfu_ratio", "mbu_ratio",
             "prefill_mfu_ratio", "decode_mbu_ratio", "energy_j_per_token", "power_mean_w",
             "memory_weights_bytes", "memory_kv_bytes", "memory_activations_bytes",
             "memory_requested_peak_bytes", "memory_allocated_peak_bytes",
             "memory_reserved_peak_bytes", "memory_process_peak_bytes"];
# members of a metric record that are left out: how the metric was computed, and launch details
def unwanted: ["method", "min", "max", "p90", "p95", "p99", "cold", "warmup", "timed", "partial",
               "failed", "oom", "steady", "warmup_steady", "deterministic", "repeat_ratio",
               "distinct_ratio", "status", "prompt", "tokenizer"];
def kept: . as $r | with_entries(select(
    (.value != null or (.key | IN("lo", "hi")))
    and (.key as $k | unwanted | index($k) | not)
    and (.key != "launch_values" or $r.metric == "e2e_ns")
    and ((.key | endswith("_reason") | not) or .key == "lo_reason")));
# Removes the folders of absolute paths: only the measured machine has them.
def named: if . == null then . else map(gsub("(?<before>^|[=,])/[^=,]*/"; .before)) end;
(first(.[] | select(.kind == "parent" and .machine and (.tool | startswith("gen-")))) // null)
    as $launch
| ($launch | if . then {schema, kind, run, tool, version, commit, argv: (.argv | named), seed,
                        start, machine, backend} else empty end),
  (map(select(.kind == "roofline" and .ceiling == true)) | unique[]),
  (.[] | if .kind == "meta" and .machine then
      {schema, kind: "parent", run, tool, version, commit, argv: (.argv | named), seed, start,
       machine, note}
      | if $launch and .machine.fingerprint != $launch.machine.fingerprint
        then .analysis_machine = .machine | .machine = $launch.machine else . end
      | with_entries(select(.value != null))
    elif .kind == "metric" and (.metric as $m | wanted | index($m)) and .value != null then kept
    elif .kind == "forecast" then .
    else empty end)
