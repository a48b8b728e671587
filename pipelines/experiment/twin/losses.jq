# losses.jq - prints a line for each side of a pair from the records of its training: rows, and the
# losses on held-out text in nats a token, the first and the last.
[.[] | select(.kind == "train" and .valid_loss != null)] | group_by(.model)[] |
"\(.[0].model) (\(.[0].arch)): \(.[-1].tokens) rows, " +
"held-out loss \(.[0].valid_loss) at \(.[0].tokens) rows, \(.[-1].valid_loss) at the end"
