# prior.jq - tags qualities of texts and bounds with the option learned-prior, or with base where
# the prior was N(0, I), for compare --by option.
select(.kind == "quality")
| .option = (if .z == "dit" or .prior == "dit" then "learned-prior" else "base" end)
| .point = (.point // .config) + "-" + .option
