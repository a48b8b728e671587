# plain.jq - a line that quotes records, as it may stand on a terminal: without control characters
# and marks that change the direction of writing. Run with -Rr.
gsub("[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]"; "\ufffd")
