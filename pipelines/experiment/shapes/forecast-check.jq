# forecast-check.jq - the errors of forecast --check as a table: for each measured machine and each
# published source the number of figures and forecast / figure. Ratios of rates are inverted,
# because a rate forecast too high and a time forecast too low both are optimism: above 1 the
# forecast is too slow. Then crossovers, whose ratio above 1 favours LLaDA, and the side to which
# forecasts err. Run with -sr.
def three: if . >= 100 then round else . * 100 | round / 100 end;
def slower: if .metric | test("_per_s$") then 1 / .ratio else .ratio end;
def median: sort | if length % 2 == 1 then .[length / 2 | floor]
                   else (.[length / 2 - 1] + .[length / 2]) / 2 end;
def place: .source | sub(" \\([0-9a-f]{12}\\)$"; "");
def of: if .against == "publication" then "published: \(.source)"
        else "measured: \(place), \(if .hardware == "measured" then "its ceilings"
                                    else "data sheet" end)" end;
def what: (if .paradigm == "autoregressive" then "LLaMA" else "LLaDA" end)
    + (if (.quant // "none") == "none" then "" else " \(.quant)" end);
def row: "| \(join(" | ")) |";
def held: select(.ratio != null);
map(select(.kind == "forecast" and .modelled)) as $ours
| ($ours | map(select(.what == "check" and .metric != "steps"))) as $all
| ($ours | map(select(.what == "check" and .metric == "steps"))) as $meet
| ["forecast (modelled) against", "model", "figures", "time forecast / known: median",
   "least", "most"] | row, (map("---") | .[2:] |= map("---:") | row),
  ($all | map(held | . + {of: of, who: what, slower: slower})
   | group_by([.against, .of, .who])[]
   | map(.slower) as $r
   | [.[0].of, .[0].who, ($r | length), ($r | median | three), ($r | min | three),
      ($r | max | three)] | map(tostring) | row),
  "", "Without a forecast: \($all | map(select(.ratio == null)) | group_by(.ratio_reason)
      | map("\(length) (\(.[0].ratio_reason))") | join(", ")).",
  if $meet == [] then empty else "",
  (["crossover of", "format", "batch", "measured steps", "forecast", "forecast / measured"]
   | row, (map("---") | .[2:] |= map("---:") | row)),
  ($meet | sort_by([of, .quant, .batch])[] | held
   | [of, (if .quant == "none" then .dtype else .quant end), .batch, (.reference_value | three),
      (.value | three), (.ratio | three)] | map(tostring) | row) end,
  "", ($ours[] | select(.what == "bias") | "- \(.text)")
