# pruning.jq - prints make pruning as text: each pruned model compared with its source. Inputs:
# prune and comparison records; run with -sr.
def round3: . * 1000 | round / 1000;
def points: . * 1000 | round / 10 | if . > 0 then "+\(.)" else "\(.)" end;
def interval(f): if .lo == null then "" else " [\(.lo | f), \(.hi | f)]" end;
(map(select(.kind == "comparison" and .by == "model"))
 | group_by(.setting) | map({key: .[0].setting, value: .}) | from_entries) as $of
| map(select(.kind == "prune"))
| sort_by(.source_model, .recovery_steps // 0, .score, .removed_ratio)[]
| . as $p | ($of[.model] // []) as $c
| ($c | map(select(.effect == "ratio" and (.metric | endswith("ppl"))))[0]) as $ppl
| ($c | map(select(.effect == "difference" and .metric == "accuracy"))[0]) as $right
| ($c | map(select(.effect == "ratio" and .metric == "output_tokens_per_s"))[0]) as $speed
| "\(.model): \(.removed_ratio * 1000 | round / 10) % of the parameters gone"
  + " (\(.heads)/\(.kv_heads) of \(.source_heads)/\(.source_kv_heads) heads, \(.ffn) of"
  + " \(.source_ffn) units), \(.packed_bytes / 10000 | round / 100) of"
  + " \(.source_bytes / 10000 | round / 100) MB"
  + (if $ppl then "; \($ppl.metric) x \($ppl.value | round3)\($ppl | interval(round3))" else "" end)
  + (if $right then "; accuracy \($right.value | points)\($right | interval(points)) points"
     else "" end)
  + (if $speed.value then "; tokens/s x \($speed.value | round3)" else "" end)
