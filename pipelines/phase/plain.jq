# plain.jq - makes a line that quotes records safe for a terminal: replaces control characters, and
# marks that change the direction of writing. Run with -Rr.
gsub("[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]"; "\ufffd")
