# ablation.jq - one record an option and system of $systems, from metrics and comparisons by option
# of make ablation, and the options themselves (-n --slurpfile options): memory by kind, time and
# quality against the base (the first option, or the one that `against` names), and for each claim
# whether it held.
#
# An effect is value / base, of shares value - base. A claim holds where the whole interval keeps
# its bound, and does not where none of it does. Counters have no interval: the value decides.
($systems | split(" ")) as $here | $options[0].option as $first
| def systems: .systems // ["llada", "llama"] | .[] | select(IN($here[]));
def is_counter: endswith("_bytes") or . == "differing_answers_ratio";

# {metric, comparison}: option and system -> metric -> record
reduce inputs as $r ({};
    if $r.kind == "metric" and $r.option then .metric[$r.arch][$r.option][$r.metric] = $r
    elif $r.kind == "comparison" and $r.by == "option"
    then .effect[$r.arch][$r.base_setting // $first][$r.setting]
        [$r.metric | sub("^elbo_"; "")] = $r
    else . end)
| . as $all
| $options[] | . as $o | systems as $s
| (.against // $first) as $base
| ($all.metric[$s][$o.option] // {}) as $run | ($all.metric[$s][$base] // {}) as $other
| ($o.device != null and $run.e2e_ns.device != $o.device) as $nothing
| (if $nothing then {} else $run end) as $mine
| (if $nothing then {} else $all.effect[$s][$base][$o.option] // {} end) as $effect
| ($o.exact | index($s) != null) as $exact
| "it needs \($o.needs // "what this machine lacks")" as $lacks
| def value($m): $mine[$m].value;
  def ratio($m): if (value($m) // 0) > 0 and ($other[$m].value // 0) > 0
      then value($m) / $other[$m].value else null end;
  def measured($m): if $m | endswith("_bytes") then {value: ratio($m), effect: "ratio"}
      else $effect[$m] // {} | {value, lo, hi, n}
           + (if .effect then {effect: (if .effect == "ratio" then "ratio" else "difference" end)}
              else {} end) end;
  def judge: . as $c | measured(.metric) as $e
      | (if .metric | is_counter then [$e.value, $e.value] else [$e.lo, $e.hi] end) as [$lo, $hi]
      | $c + $e
      | if $e.value == null
        then .outcome = "not applicable"
             | .outcome_reason = (if $mine == {} and $effect == {} then $lacks
                                  elif $other[$c.metric].value == 0 then "the base has none of it"
                                  else "it was not measured" end)
        elif $lo == null
        then .outcome = "undecided" | .outcome_reason = "too few for an interval"
        elif ($c.most != null and $hi <= $c.most) or ($c.least != null and $lo >= $c.least)
        then .outcome = "held"
        elif ($c.most != null and $lo > $c.most) or ($c.least != null and $hi < $c.least)
        then .outcome = "not held"
        else .outcome = "undecided" | .outcome_reason = "the interval holds the bound" end;
  ($effect.differing_answers_ratio // {n: null, value: null}) as $differ
| {schema: "crossover/1", kind: "ablation", run: "local", option: $o.option, text: $o.text,
   flags: ([$o.pack, $o.flags | values | select(. != "")] | join(" ")), arch: $s,
   exact: $exact, stair: $o.stair, answers: $differ.n,
   differing_answers: (if $differ.value == null then null
                       else $differ.value * $differ.n | round end)}
  + (if $o.against then {against: $o.against} else {} end)
  + (if $mine == {} and $effect != {} then {} elif $mine == {} then {not_run_reason: $lacks}
     else ($mine.e2e_ns // {}) as $t
          | {model: $t.model, device: $t.device, launches: $t.launches} end)
  + ([("weights", "kv", "activations", "allocated_peak", "reserved_peak") | "memory_\(.)_bytes"
      | {(.): value(.)}] | add)
  + {memory_ratio: ratio("memory_allocated_peak_bytes"), e2e_ns: value("e2e_ns"),
     output_tokens_per_s: value("output_tokens_per_s"),
     time_ratio: $effect.e2e_ns.value, time_lo: $effect.e2e_ns.lo, time_hi: $effect.e2e_ns.hi,
     qualities: [$effect["ppl", "accuracy"] | values | {metric, effect, value, lo, hi, n}],
     claims: [(select($exact and $o.option != $first and $o.flags != "")
               | {row: "0-51", text: "no answer changes", metric: "differing_answers_ratio",
                  most: 0}),
              $o.claims[]? | judge]}
