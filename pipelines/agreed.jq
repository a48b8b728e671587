# agreed.jq - the checks of replicate.jq (slurped) in words: each that differs or cannot be
# compared, then how many agree with the run that is $stored.
def count(f): map(select(f)) | length;
(.[] | select(.pass != true) | .text),
"\(count(.pass)) agree, \(count(.pass == false)) differ, \(count(.pass == null)) " +
"cannot be compared here; stored run: \($stored)"
