# stored.jq - what a run keeps for those who repeat it: a line for each point, with what ran there,
# its metrics, its quality, the most memory that any of its answers took (metrics are of undisturbed
# batches alone, which are others each time), and a mark for the token ids of each answer; the
# crossovers; first who measured, and on which machine the launches ran. Inputs (-n): the first
# lines of the launches, metrics, quality, generations, pareto.
# jq has no SHA-256: a mark is two polynomials modulo primes, 56 bits together.
def mark: reduce .[] as $id ([1, 1]; [(.[0] * 48271 + $id + 1) % 67108859,
                                      (.[1] * 69621 + $id + 1) % 1073741789])
    | "\(.[0])-\(.[1])";
# As many digits as any of these is known to: a stored run is read by people, too.
def digits: if type == "number" and . != 0 and . != floor
    then (fabs | log10 | floor | 9 - .) as $n | . * pow(10; $n) | round / pow(10; $n) else . end;
def key: "\(.config) on \(.workload)";
def files: .checkpoint.files // [] | map(.sha256) | join(" ");
def facts: {config, workload, model, arch, device, device_name, isa, library, dtype, kv_dtype,
            quant, threads, contract, batch, steps, max_new, gen_length};
def measured: {value: .value | digits, lo: .lo | digits, hi: .hi | digits}
    + if .metric == "e2e_ns" then {disturbed, launches: [.launch_values[]?.value | digits]}
      else {} end;
reduce inputs as $r ({points: {}, about: null, machine: null, checkpoints: {}, crossovers: []};
    if $r.kind == "meta" and $r.checkpoint.model != null and ($r.tool | startswith("gen-"))
    then .checkpoints[$r.checkpoint.model] = ($r | files) | .machine //= $r.machine
    elif $r.kind == "meta" and .about == null and $r.tool == "measure"
    then .about = ($r | {version, commit, start, machine})
    elif $r.kind == "metric" and $r.value != null
    then .points[$r | key] |= (($r | facts) + (. // {}) + {metrics:
             ((.metrics // {}) + {($r.metric): ($r | measured)})})
    elif $r.kind == "quality" and $r.summary == true and $r.value != null
    then .points[$r | key] |= (. + {quality: ((.quality // {}) + {($r.metric): ($r | measured)})})
    elif $r.kind == "generation"
    then .points[$r | key] |= (. + {ids: ((.ids // {}) + {($r.id): ($r.token_ids | mark)}),
             memory: (reduce ($r.memory // {} | to_entries[] | select(.value | type == "number"))
                      as $m (.memory // {}; .[$m.key] = ([.[$m.key], $m.value] | max)))})
    elif $r.kind == "crossover"
    then .crossovers += [$r | {name, quality_metric, llada, llama_config, gen_length, contract,
                               exists, at: .at | digits, lo: .lo | digits, hi: .hi | digits}]
    else . end)
| .checkpoints as $files
| {schema: "crossover/1", kind: "stored", run: "local", what: "run"} + .about
  + if .machine then {machine} else {} end,
  (.points[] | select(.metrics) | {schema: "crossover/1", kind: "stored", run: "local",
       what: "point"} + . + {checkpoint: $files[.model]}),
  (.crossovers[] | {schema: "crossover/1", kind: "stored", run: "local", what: "crossover"} + .)
