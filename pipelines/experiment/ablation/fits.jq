# fits.jq - prints make fits as text: for each model, level and length the largest batch that a GPU
# of each size holds. Inputs: records of kind forecast, what fit; run with -nr.
[inputs | select(.kind == "forecast" and .what == "fit")]
| group_by(.model)[] | group_by(-.memory_weights_bytes)[] | group_by(.new_tokens)[]
| .[0] as $f | . as $all
| "\($f.model) \($f.level), \($f.prompt_tokens) + \($f.new_tokens) tokens: "
  + ([$f.capacity_gb[] as $gb
      | ([$all[] | select(.fits_gb != null and .fits_gb <= $gb).batch] | max // "-") as $most
      | "\($gb) GB \($most)"] | join(", "))
