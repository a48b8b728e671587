# forecast-check.jq - prints the errors of forecast --check as a table: for each measured machine
# and each published source the number of figures and their errors; above 1 the forecast is too
# slow. Then the crossovers, whose ratio above 1 favours LLaDA, and the side to which forecasts err.
# Run with -sr.
def three: if . >= 100 then round else . * 100 | round / 100 end;
def row: "| \(map(tostring) | join(" | ")) |";
def place: .source | sub(" \\([0-9a-f]{12}\\)$"; "");
def of: if .against == "publication" then "published: \(.source)"
        else "measured: \(place), \(if .hardware == "measured" then "its ceilings"
                                    else "data sheet" end)" end;
map(select(.kind == "forecast" and .modelled)) as $ours
| ($ours | map(select(.what == "check"))) as $all
| ($all | map(select(.metric == "steps" and .ratio != null))) as $meet
| ["forecast (modelled) against", "model", "figures", "time forecast / known: median",
   "least", "most"] | row, (map("---") | .[2:] |= map("---:") | row),
  ($ours | map(select(.what == "errors")) | sort_by(.source, .model)[]
   | [.source, .model, .n, (.ratio | three), (.least | three), (.most | three)] | row),
  "", "Without a forecast: \($all | map(select(.metric != "steps" and .ratio == null))
      | group_by(.ratio_reason) | map("\(length) (\(.[0].ratio_reason))") | join(", ")).",
  if $meet == [] then empty else "",
  (["crossover of", "format", "batch", "measured steps", "forecast", "forecast / measured"]
   | row, (map("---") | .[2:] |= map("---:") | row)),
  ($meet | sort_by([of, .quant, .batch])[]
   | [of, (if .quant == "none" then .dtype else .quant end), .batch, (.reference_value | three),
      (.value | three), (.ratio | three)] | row) end,
  "", ($ours[] | select(.what == "bias") | "- \(.text)")
