# caps-said.jq - prints make caps as text: one line for each run.
def two: . * 100 | round / 100;
"\(.model) in \(.cap): \(.offload_layers) layers outside; the counters \(.reserved_peak_bytes / 1e9
| two) GB, the control group \(if .group_peak then "\(.group_peak / 1e9 | two) GB"
else .group_peak_reason end); \(.measured_ratio | two) times as long, predicted \(
if .slow_down_ratio then .slow_down_ratio | two else "nothing" end)\(
if .same_ids then "" else "; OTHER IDS" end)\(if .tainted == [] then "" elif .tainted
then "; DISTURBED: \(.tainted | join(", "))" else "; nobody watched the machine" end)"
