# prior.jq - tags qualities of texts and bounds for compare --by option: with the option
# learned-prior, or with base if the prior was N(0, I).
select(.kind == "quality")
| .option = (if .z == "dit" or .prior == "dit" then "learned-prior" else "base" end)
| .point = (.point // .config) + "-" + .option
