# measured.jq - what is worth keeping of a run (slurped): machine and commit once, the ceilings,
# then the numbers that people ask for, each with its settings, interval and launches: all that
# forecast reads (--check, --along-steps). For data/measured.
#
# Tools read it: meta records are kept as parents, because their streams are not whole any more.
# The machine of a number is the one that its launches ran on (the parent record of `measure`), not
# the one on which it was summed up: that one is kept as analysis_machine where it is another.
def wanted: ["e2e_ns", "ttft_ns", "tpot_ns", "output_tokens_per_s", "mfu_ratio", "mbu_ratio",
             "prefill_mfu_ratio", "decode_mbu_ratio", "energy_j_per_token", "power_mean_w",
             "memory_weights_bytes", "memory_kv_bytes", "memory_activations_bytes",
             "memory_requested_peak_bytes", "memory_process_peak_bytes"];
# what a metric record says besides: how it was summed up, and its shape below the interval
def unwanted: ["method", "min", "max", "p90", "p95", "p99", "cold", "warmup", "timed", "partial",
               "failed", "oom", "steady", "warmup_steady", "deterministic", "repeat_ratio",
               "distinct_ratio", "status", "prompt", "tokenizer"];
def kept: . as $r | with_entries(select(
    (.value != null or (.key | IN("lo", "hi")))
    and (.key as $k | unwanted | index($k) | not)
    and (.key != "launch_values" or $r.metric == "e2e_ns")
    and ((.key | endswith("_reason") | not) or .key == "lo_reason")));
(first(.[] | select(.kind == "parent" and .machine and (.tool | startswith("gen-")))) // null)
    as $launch
| ($launch | if . then {schema, kind, run, tool, version, commit, argv, seed, start, machine,
                        backend} else empty end),
  (map(select(.kind == "roofline" and .ceiling == true)) | unique[]),
  (.[] | if .kind == "meta" and .machine then
      {schema, kind: "parent", run, tool, version, commit, argv, seed, start, machine, note}
      | if $launch and .machine.fingerprint != $launch.machine.fingerprint
        then .analysis_machine = .machine | .machine = $launch.machine else . end
      | with_entries(select(.value != null))
    elif .kind == "metric" and (.metric as $m | wanted | index($m)) and .value != null then kept
    elif .kind == "forecast" then .
    else empty end)
