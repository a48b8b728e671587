# plain.jq - removes control characters, and marks that change the direction of writing, from a line
# that quotes records, so that a terminal can show it. Run with -Rr.
gsub("[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]"; "\ufffd")
