# prior.jq - qualities of texts and bounds under two laws of latents as those of two options:
# learned-prior, and the base, N(0, I). For compare --by option.
select(.kind == "quality")
| .option = (if .z == "dit" or .prior == "dit" then "learned-prior" else "base" end)
| .point = (.point // .config) + "-" + .option
