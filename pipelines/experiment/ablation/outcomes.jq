# outcomes.jq - prints make ablation as text: one line for each option and system, with its claims
# below. If answers changed where none may change, it fails (exit 5). Inputs: records of kind
# ablation; run with -nr.
def two: if type != "number" then "-" elif . == 0 then "0"
    else (1 - (fabs | log10 | floor)) as $n | if $n > 0 then . * pow(10; $n) | round / pow(10; $n)
         else round end end;
def percent: if type != "number" then "-"
    else (. * 1000 | round / 10 + 0) as $p | "\(if $p > 0 then "+" else "" end)\($p) %" end;
def signed(none): if .lo == null then .value - none | percent
    else "\(.value - none | percent) [\(.lo - none | percent), \(.hi - none | percent)]" end;
def bytes: if type != "number" then "-" elif . >= 1e9 then "\(. / 1e9 | two) GB"
    else "\(. / 1e5 | round / 10) MB" end;
# the value of an effect without a change
def none: if .effect == "difference" then 0 else 1 end;
def quality: "\(.metric) \(signed(none))";
def line: "\(.arch) \(.option)\(if .flags == "" then "" else " (\(.flags))" end)"
    + "\(if .against then " beside \(.against)" else "" end): "
    + if .not_run_reason then .not_run_reason else
      "\(.memory_weights_bytes | bytes) weights, \(.memory_kv_bytes | bytes) cache, "
      + "\(.memory_activations_bytes | bytes) activations; peak "
      + (if .memory_ratio then .memory_ratio - 1 | percent else "-" end)
      + (if .time_ratio
         then ", time \({value: .time_ratio, lo: .time_lo, hi: .time_hi} | signed(1))" else "" end)
      + (if .output_tokens_per_s then ", \(.output_tokens_per_s | round) tokens/s" else "" end)
      + ([.qualities[] | ", \(quality)"] | join(""))
      + (if .answers then "; \(.differing_answers) of \(.answers) answers differ" else "" end) end;
[inputs | select(.kind == "ablation")]
| (.[] | line,
      (.claims[] | "    \(.row) \(.outcome): \(.text)"
          + (if .value != null then " (\(quality))" else "" end)
          + (if .outcome_reason then "; \(.outcome_reason)" else "" end))),
  (map(.claims[].outcome) | group_by(.) | map("\(length) \(.[0])") | "claims: " + join(", ")),
  (map(select(.exact and (.differing_answers // 0) > 0)) | select(. != [])
   | "error: tokens changed where none may: \(map("\(.arch) \(.option)") | join(", "))\n"
   | halt_error(5))
