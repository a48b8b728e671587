# workload.jq - writes one record about the models, the judge and the prompts of a run, for the
# page. The record has the training compute of a model if the model's folder records it
# (training.ndjson): rows of text that went through the network and back, including the rows of the
# initial weights. Inputs: prompts, slurped.
def rows: if length == 0 or any(.[]; .rows == null) then null else map(.rows) | add end;
def name: sub("/+$"; "") | sub(".*/"; "");
def millions: "\(. / 1e5 | round / 10) million";
def times: (. * 10 | round / 10) as $t | if $t == 1 then "as many" else "\($t) times as many" end;
def training: [{model: ($llama | name), rows: ($llama_training | rows)},
               {model: ($llada | name), rows: ($llada_training | rows)},
               (select($ltm != "") | {model: ($ltm | name), rows: ($ltm_training | rows)})];
def told: .[0].rows as $a | if any(.rows == null) then null else
    "Training compute: \(.[0].model) \($a | millions) rows of text, "
    + (.[1:] | map("\(.model) \(.rows | millions), \(.rows / $a | times)") | join("; ")) + "." end;
def counts: group_by(.task)[] | "\(.[0].task // "without task") \(length)";
{schema: "crossover/1", kind: "workload", run: "local", profile: $profile, llada: $llada,
 llama: $llama, ltm: (if $ltm == "" then null else $ltm end), judge: $judge,
 judge_files_sha256: $judge_sha,
 prompt_file: $file, prompt_file_sha256: $file_sha,
 choice: $choice, seed: $seed, workload: $workload, prompts: length,
 training: training, training_text: (training | told),
 toys: ($toy | split(" ")),
 text: ("Prompts: \(length) of \($file) (\([counts] | join(", ")); SHA-256 \($file_sha[0:12])), "
        + "chosen by \($choice) with seed \($seed)"
        + (if (($timed | tonumber?) // length) < length
           then "; \($timed) are timed, as many of each task; all count for quality" else "" end)
        + "; workload \($workload). Judge: \($judge)."
        + (if any(.[]; .reference != null) then "" else
           " No prompt has a reference: likelihoods of references are left out." end)),
 warning: (if $toy == "" then null else
     "Toys: " + ({"PROMPT_FILE": "the prompts are those of the demonstration",
                  "JUDGE": "the judge is the demonstration's small model",
                  "PROMPT_FILE JUDGE": "prompts and judge are those of the demonstration"}[$toy])
     + ". The quality below says little about \($llada) and \($llama)." end)}
