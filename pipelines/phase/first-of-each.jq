# first-of-each.jq - selects $count prompts of the input (slurped) and keeps their order. Each task
# gives as many; if a task has fewer, the other tasks give more.
[.[] | select(.text != null or .prompt_ids != null or .messages != null)]
| to_entries | group_by(.value.task)
| map(to_entries | map({rank: .key, at: .value.key, prompt: .value.value})) | add // []
| sort_by(.rank, .at)[:$count] | sort_by(.at)[] | .prompt
