# workload.jq - prompts (slurped) and names in, one record out: what a run is made of, for the page.
def counts: group_by(.task)[] | "\(.[0].task // "without task") \(length)";
{schema: "crossover/1", kind: "workload", run: "local", profile: $profile, llada: $llada,
 llama: $llama, judge: $judge, judge_files_sha256: $judge_sha,
 prompt_file: $file, prompt_file_sha256: $file_sha,
 choice: $choice, seed: $seed, workload: $workload, prompts: length,
 toys: ($toy | split(" ")),
 text: ("Prompts: \(length) of \($file) (\([counts] | join(", ")); SHA-256 \($file_sha[0:12])), "
        + "chosen by \($choice) with seed \($seed); workload \($workload). Judge: \($judge)."),
 warning: (if $toy == "" then null else
     "Toys: " + ({"PROMPT_FILE": "the prompts are those of the demonstration",
                  "JUDGE": "the judge is the demonstration's small model",
                  "PROMPT_FILE JUDGE": "prompts and judge are those of the demonstration"}[$toy])
     + ". The quality below says little about \($llada) and \($llama)." end)}
