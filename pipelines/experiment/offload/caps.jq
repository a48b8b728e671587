# caps.jq - compares a run under a memory limit ($run) with the run of the whole model ($whole):
# memory by the counters and by the control group, time of the passes, and the predicted slow-down.
def passes: map(select(.kind == "generation")) | last;
($run | passes) as $r | ($whole | passes) as $w
| ($r.batch_ns / $w.batch_ns) as $measured
| {schema: "crossover/1", kind: "cap", run: $r.run, config: $r.config, model: $r.model,
   machine: ($run | map(select(.kind == "meta"))[0].machine),
   commit: ($run | map(select(.kind == "meta"))[0].commit),
   cap: $cap, cap_bytes: $bytes, dtype: $r.dtype, offload_layers: $r.offload_layers,
   offload_bytes: $r.offload_bytes, offload_bytes_per_s: $r.offload_bytes_per_s,
   reserved_peak_bytes: $r.memory.reserved_peak_bytes,
   process_peak_bytes: $r.memory.process_peak_bytes,
   whole_ns: $w.batch_ns, batch_ns: $r.batch_ns, offload_wait_ns: $r.offload_wait_ns,
   slow_down_ratio: $r.slow_down_ratio, measured_ratio: $measured,
   error_ratio: (if $r.slow_down_ratio then $r.slow_down_ratio / $measured - 1 else null end),
   tainted: (if $r.tainted and $w.tainted then $r.tainted + $w.tainted | unique else null end),
   same_ids: ($r.token_ids == $w.token_ids)}
+ $group[0]
