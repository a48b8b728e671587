# claims.jq - verdicts on published speeds: is a claim within the limits of the card, beyond them,
# or not to be judged, and what is missing? Run with -sc, --slurpfile hardware; input: the rows of
# data/published.ndjson, and forecast --check --mfu 1 --mbu 1, which forecasts them at the limits of
# the data sheet.
#
# roofline_ratio is the share of that limit which the claim reaches. Where this program has no such
# shape, the limit is that of bandwidth alone: a pass reads `active_weights` at least. Then
# needs_tokens_per_pass is what a pass must commit of a text, at the full bandwidth, for the claimed
# rate; where the passes of the claim are known too, the two together give the share.
# Bytes of a weight; those of 4 bits without their scales, which formats store differently.
def bytes: {none: 2, fp8: 1, int8: 1, nvfp4: 0.5, nf4: 0.5, q4: 0.5, mxfp4: 0.5}[.quant // "none"];
def rate: if .metric == "output_tokens_per_s" then .value
          elif .metric == "e2e_ns" then .batch * .new_tokens / .value * 1e9 else null end;
def missing($card): .assumed + [if $card == null then "hardware" else empty end,
    (("batch", "prompt_tokens", "new_tokens") as $k | select(.[$k] == null) | $k),
    if .paradigm != "autoregressive" and .steps == null and .tokens_per_pass == null
    then "steps" else empty end] | unique;
def needs($card): if $card and .active_weights and .batch
    then rate * .active_weights * bytes / ($card.bytes_per_s * .devices * .batch) else null end;
# The most tokens of a text that a pass can commit; 0: not known. One is always committed.
def most: if .paradigm == "autoregressive" then 1 else .block_length // .new_tokens // 0 end;
def passes: if .paradigm == "autoregressive" then 1 else .tokens_per_pass end;
($hardware | INDEX(.name)) as $cards
| (map(select(.kind == "forecast" and .against == "publication")) | INDEX(.name)) as $model
| map(select(.kind == null and .metric)) as $rows | ($rows | INDEX(.name)) as $row
| def judged: . as $r | $cards[.hardware] as $card | needs($card) as $needs
      | (if $model[.name].ratio then
             if .metric | test("_per_s$") then 1 / $model[.name].ratio else $model[.name].ratio end
         elif $needs and passes then $needs / passes else null end) as $share
      | {name, system, source, model, hardware, paradigm, batch, counting, value, metric,
         share: $share, needs: $needs, missing: missing($card),
         why: (if $share or ($needs and ($needs <= ([most, 1] | max) or .block_length)) then null
               elif $card == null then "its hardware is not in the table, or not stated"
               elif .batch == null then "its batch is not stated"
               elif $needs and most == 0 then "the length of its blocks is not stated"
               else $model[.name].ratio_reason end),
         beyond: (($share // 0) > 1 or (.block_length and ($needs // 0) > .block_length))};
  $rows[] | judged as $own | (.baseline | if . then $row[.] | judged else null end) as $base
| {schema: "crossover/1", kind: "claim_verdict", run: "claims"}
+ ($own | del(.share, .needs, .why, .beyond))
+ {verdict: (if $own.beyond then "beyond" elif $own.why then "not comparable" else "within" end),
   verdict_reason: $own.why, roofline_ratio: $own.share, needs_tokens_per_pass: $own.needs}
+ if $base then {baseline: $base.name, speedup: (.value / $base.value),
                 baseline_bandwidth_ratio: $base.share} else {} end
| with_entries(select(.value != null or .key == "roofline_ratio"))
