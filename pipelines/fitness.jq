# fitness.jq - is this machine quiet enough to measure on? One record from facts given as arguments.
($load | tonumber) as $busy
| ($cores | tonumber) as $n
| [
    (if $busy > 0.5 * $n + 0.5
     then "load \($busy) on \($n) cores: something else is running" else empty end),
    (if $governor != "" and $governor != "performance"
     then "cpu governor is \($governor)" else empty end),
    (if $gpu != "" then "other processes on the GPU: \($gpu | gsub("\n"; " "))" else empty end)
  ] as $reasons
| {schema: "crossover/1", kind: "fitness", run: "local", machine_fingerprint: $fp, cores: $n,
   load: $busy, governor: (if $governor == "" then null else $governor end),
   fit: ($reasons | length == 0), reasons: $reasons,
   text: "machine \($fp): \($n) cores, load \($busy), \(
       if $reasons == [] then "fit to measure" else "NOT FIT: " + ($reasons | join("; ")) end)"}
