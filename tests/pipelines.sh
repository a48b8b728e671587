# pipelines.sh - tests that a change makes `make` write the files that depend on it, and no others.
# The rules run with stand-ins for the tools, in a separate tree. One file because each case begins
# with the tree that the case before it left.
. tests/house/tap.sh

tree=$scratch/tree
house=$PWD/tests/house
mkdir -p "$tree"/{tools,lib/base/cli,data/corpus,data/prompts,plots}
cp -r Makefile config.mk pipelines "$tree"
rm -rf "$tree"/pipelines/{build/reference.mk,experiment/models}
cp lib/base/version.c "$tree/lib/base"
cp lib/base/cli/opt.h "$tree/lib/base/cli"
cp tests/house/stand-in "$tree"
cp data/methods.ndjson "$tree/data"
jq -c 'select(.option | . == "base" or . == "int8" or . == "nf4" or . == "lookup")' \
    data/ablation.ndjson >"$tree/data/ablation.ndjson"
echo 'int nothing(void); int nothing(void) { return 0; }' >"$tree/lib/base/nothing.c"
tools='prep-prompts schedule gen-llada gen-llama gen-ltm probe-roof measure score-ppl
    score-exact score-text pareto compare conclude plot report forecast bundle train-prior'
for t in $tools; do
    cat >"$tree/tools/$t.c" <<'END'
#include <unistd.h>
int main(int argc, char **argv)
{
    char *v[199] = {"stand-in"};
    for (int i = 0; i < argc; i++)
        v[i + 1] = argv[i];
    return execv("./stand-in", v);
}
END
done
for m in llada llama ltm judge; do
    mkdir -p "$tree/data/models/$m-demo"
    echo '{}' >"$tree/data/models/$m-demo/config.json"
done
for m in llama llada; do
    echo '{"model":"llama-demo","rows":2000000}' >"$tree/data/models/$m-demo/training.ndjson"
done
echo '{"model":"ltm-demo","rows":1000000}' >"$tree/data/models/ltm-demo/training.ndjson"
echo '{"model":"llada-demo","rows":3140000}' >>"$tree/data/models/llada-demo/training.ndjson"
echo '{}' >"$tree/data/prompts/human.ndjson"
for f in test test-lists valid train; do echo '{}' | gzip -n >"$tree/data/corpus/$f.ndjson.gz"; done
cd "$tree" || exit 1

# again ARGUMENTS...: runs make and sets $ran to the tools that make ran, with their counts.
again()
{
    rm -f ran
    touch ran
    env -i PATH="$PATH" make --no-print-directory CUDA=0 MPI= CPU_LEVELS= CFLAGS=-O0 HARDEN= \
        FP=here LAUNCHES=3 AA_LAUNCHES=2 SCALE_LAUNCHES=1 STEPS=2,4,8 BUDGET_MINUTES=0 \
        REFINED="aa steps length-64 length-32" "$@" >log 2>&1
    status=$?
    ran=$(cut -d ' ' -f 1 ran | sort | uniq -c | awk '{ print $2 ":" $1 }' | paste -sd ' ')
}

# did TEXT WANTED: tests that the last run succeeded and ran exactly the tools WANTED.
did()
{
    [ "$status" -eq 0 ] && [ "$ran" = "$2" ]
    ok $? "$1"
    [ "$status" -eq 0 ] && [ "$ran" = "$2" ] || {
        echo "# wanted: $2"
        echo "# status $status, ran: $ran"
        tail -n 5 log | sed 's/^/# /'
    }
}

again -j4 all BUDGET_MINUTES=2
[ "$status" -eq 0 ] && [ "$(tail -n 1 log)" = "$PWD/results/here/demo/report.html" ]
ok $? "make -j4 all ends with the path of the report"
[ "$status" -eq 0 ] || tail -n 20 log | sed 's/^/# /'
cp ran first-ran
[ -s results/here/demo/crossover-demo.tar.gz ] && grep -q '^bundle .*report.html.*steps/launch' ran
ok $? "the run is sealed: page, records of every launch"
passes=results/here/demo/answers/passes.ndjson
grep -q "^compare -q --same-ids 1 .*/steps/launch/.* -o $passes" ran &&
    grep -q "^report .*$passes" ran &&
    [ "$(grep -c '^gen-.*--warmup 0 .* results/here/demo/answers/prompts-' ran)" -eq 12 ] &&
    cat results/here/demo/answers/prompts-00?.ndjson | sort >"$scratch/parts" &&
    grep '"kind":"prompt"' results/here/demo/prompts.ndjson | sort | cmp -s - "$scratch/parts" &&
    grep -q '^gen-llada .* results/here/demo/timed-prompts.ndjson' ran
ok $? "all prompts are answered once, some of them timed, and the ids are compared"
steps=results/here/demo/steps
grep -q "^compare -q --aup $steps/generations.ndjson $steps/exact.ndjson -o $steps/aup" ran &&
    grep -q "^compare -q --split $steps/launch/.* results/here/demo/ceilings.ndjson -o" ran &&
    grep -q "^report .*$steps/aup.ndjson $steps/split.ndjson" ran &&
    grep -q "^bundle .*steps/aup.ndjson .*steps/split.ndjson" ran
ok $? "the page and the sealed run have tokens per pass and the parts of a step"
base=results/here/demo/baseline
grep -q "^compare -q --same-ids 0.75 $base/llada-cpu.ndjson $base/llada-ref.ndjson " ran
ok $? "every answer of the first device is looked for in those of the other"
again refine BUDGET_MINUTES=2
[ "$status" -eq 0 ] && [ "$(grep -c '^refined .* before: ' log)" -eq 4 ]
ok $? "a second refine with the same minutes adds nothing to any sweep"
# The self-test asks for launches by the whole interval of the clock that needs fewer launches. It
# asks for at most as many as there are, and a clock without an interval does not count.
sed -n '/^most()/,/max. "$1"; }/p' pipelines/bin/refine >most.sh
twins() # HALF-WIDTH of cpu_ns, the same of e2e_ns
{
    jq -nc '{kind: "comparison", setting: "twin", precision: 0.01, launches: 8} as $r |
        ($ARGS.positional | map(tonumber? // null)) as $h | range(2) | $r + {metric: "\(.)",
        lo: ($h[.] | if . then -. | exp else null end), hi: ($h[.] | if . then exp else null end)}
        ' --args "$@" >twins.ndjson
    (. ./most.sh && most twins.ndjson)
}
[ "$(twins 0.012 none) $(twins 0.009 none) $(twins 0.04 0.03) $(twins none 0.0099)" = "4 0 8 0" ]
ok $? "a clock whose launches were all disturbed does not end the self-test"
again all
did "a second run does nothing" ""
again -n all
[ "$status" -eq 0 ] && ! grep -q "build/bin\|^  cc" log && [ "$(wc -l <log)" -lt 30 ]
ok $? "after a complete run make -n all prints only the summaries"
again all COMMIT=other+
did "unchanged code under another commit, or in a changed tree, repeats nothing" ""
find results -path '*/stamp/*' -o -name settings -o -name points -o -name flags |
    xargs -d '\n' touch
again all
[ "$status" -eq 0 ] && ! grep -q '^gen-\|^score-ppl\|^probe-roof' ran
ok $? "touched stamps repeat nothing that is timed or scored by a model"
cp -r results copied && rm -r results && mv copied results
again -j2 all BUDGET_MINUTES=2
[ "$status" -eq 0 ] && ! grep -q '^gen-\|^score-ppl\|^probe-roof' ran &&
    grep -q 'kept: .*/steps/launch/llada-000.ndjson was made of the same' log
ok $? "a copy of the results repeats nothing, and a message says so"
again all BUDGET_MINUTES=2
did "after that a further run does nothing" ""
jq -e '.prompt_file == "data/corpus/test.ndjson.gz" and .judge == "data/models/judge-demo" and
    (.prompt_file_sha256 | length) == 64 and .warning == null' \
    results/here/demo/workload.ndjson >/dev/null
ok $? "data set and judge are in a record"
jq -e '(.training_text |
        test(": llama-demo 2 million rows .* 5.1 million, 2.6 times as many; ltm-")) and .ltm ==
        "data/models/ltm-demo" and .training == [{model: "llama-demo", rows: 2000000},
        {model: "llada-demo", rows: 5140000}, {model: "ltm-demo", rows: 1000000}]' \
    results/here/demo/workload.ndjson >/dev/null
ok $? "a record holds the training of the contestants and of the models they began as"
grep -q '^schedule .*--systems llada,llama,ltm .*--vi-steps 0,2' first-ran &&
    grep -q '^gen-ltm -m data/models/ltm-demo --schedule .*steps/launch/ltm-' first-ran &&
    ! grep -q '^gen-ltm .*length-64/launch/ltm-' first-ran &&
    grep -q '^score-ppl --mode elbo -m data/models/ltm-demo .*elbo-ltm' first-ran
ok $? "phase 4 sweeps the latent model along the steps of its fit"
again phase5 PROFILE=quick
grep -q '^schedule .*--systems llada,llama,ltm .*--vi-steps 4' ran &&
    grep -q '^gen-ltm .*length-32/launch/ltm-' ran
ok $? "phase 5 has the latent model if SCALE_LTM_STEPS is set"
again phase4 PROFILE=quick LTM=
[ "$status" -eq 0 ] && ! grep -q 'gen-ltm\|vi-steps' ran &&
    grep -q -- '--systems llada,llama --' ran
ok $? "LTM= leaves out the latent model"
again decoding PROFILE=quick
grep -q '^schedule .*--methods [^ ]*/all-methods.ndjson' ran && grep -q '^compare --methods' ran &&
    grep -q '^plot --type methods' ran
ok $? "make decoding runs every method, compares and draws them"
[ "$(jq -r .method results/here/demo/methods.ndjson | paste -sd ' ')" = \
    "vanilla dual-threshold dual-factor streaming plain lookup" ]
ok $? "METHODS: the named methods, and their bases"
again phase4 PROFILE=quick METHODS=magic
[ "$status" -ne 0 ] && [ -z "$ran" ] && grep -q 'METHODS: magic: expected names of vanilla' log
ok $? "an unknown method is refused before anything runs"
again report PROFILE=quick
[ "$status" -eq 0 ] && ! grep -q '^report .*decoding/' ran
ok $? "without PAGE the page does not show the experiment"
again load PROFILE=quick
[ "$status" -eq 0 ] && grep -q '^schedule .* --admit continuous --arrival-rate 8,32' ran &&
    grep -q '^measure .* --ttft-limit-ms 500 .*quick/load/launch/llama-' ran &&
    grep -q '^pareto .*quick/load/metrics.ndjson' ran
ok $? "make load sweeps rates of arrivals, with limits, and compares the models along them"
again load PROFILE=quick LOAD_RATES=0,4 -n
grep -q 'load/endpoints.jq' log
ok $? "make load holds a load at rate 0 against the rules, also beside other rates"
again load PROFILE=quick LOAD_LIMITS='--ttft-limit-ms 100'
did "make load with other limits repeats no launch" "measure:1 pareto:1"
again load PROFILE=quick LOAD_LIMITS='--ttft-limit-ms 100'
did "a second make load runs nothing" ""
grep -q 'load: phase 4 shows no step count .* by accuracy, so LLaDA takes QUANT_STEPS=4 steps' log
ok $? "make load says that its step count is not one that phase 4 shows to be as good"
x_q() { # METRIC AT: as phase 4 writes it
    jq -cn --arg metric "$1" --argjson at "$2" '{kind: "crossover", name: "X_q", over: "steps",
        contract: "answer", quality_metric: $metric, exists: true, at: $at}'
}
cp results/here/quick/pareto.ndjson before.ndjson
{ x_q accuracy 16 | sed 's/16/16.0/'; x_q judge_ppl 64; x_q accuracy 32 | jq -c '.task = "story"'
  x_q accuracy 64 | jq -c '.rival = "fastest"'; } >>results/here/quick/pareto.ndjson
again load PROFILE=quick
grep -q '^schedule .* --steps 16 .*--arrival-rate 8,32' ran &&
    grep -q '^pareto .*quick/load/x_q.ndjson' ran &&
    [ "$(jq -c '[.quality_metric, (.at | floor)]' results/here/quick/load/x_q.ndjson)" = \
        '["accuracy",16]' ] && ! grep -q 'load: phase 4 shows' log &&
    ! grep -q 'quick/steps/launch' ran
ok $? "make load takes the step count that phase 4 shows to be as good by the first quality"
again load PROFILE=quick LOAD_STEPS=8
grep -q '^schedule .* --steps 8 ' ran && ! grep -q 'load: phase 4 shows' log
ok $? "LOAD_STEPS names another step count"
cp results/here/quick/pareto.ndjson both.ndjson
x_q accuracy 8 | jq -c '.exists = null | .at = null' >>results/here/quick/pareto.ndjson
again load PROFILE=quick -n
grep -q 'load: phase 4 shows' log
ok $? "a step count must be as good as each LLaMA"
mv both.ndjson results/here/quick/pareto.ndjson
again report PROFILE=quick PAGE=load
[ "$status" -eq 0 ] && grep -q '^plot --type load .*quick/load/metrics.ndjson' ran &&
    grep -q '^report .*quick/load/pareto.ndjson .*quick/load/metrics.ndjson' ran
ok $? "PAGE=load: the page has the table and the figure of prompts that arrive"
mv before.ndjson results/here/quick/pareto.ndjson

again report PROFILE=quick PAGE=decoding
grep -q '^report .*quick/decoding/by-method.ndjson' ran
ok $? "PAGE=decoding: the page shows the methods"
again -n report PROFILE=quick PAGE=magic
[ "$status" -ne 0 ] && grep -q 'PAGE=magic (64): expected a list of decoding' log
ok $? "an unknown name in PAGE is an error"
again bundle PROFILE=quick PAGE=decoding
[ "$status" -eq 0 ] && grep -q '^bundle .*decoding/by-method.ndjson' ran &&
    ! grep -q '^bundle .*data/methods' ran
ok $? "PAGE=decoding: the bundle has them too, and only files of the run"
again ablation PROFILE=quick
pairs=$(jq -s 'map(.systems // [1, 2] | map(select(. != "ltm")) | length) | add' \
    data/ablation.ndjson)
[ "$status" -eq 0 ] && [ "$(grep -c '^gen-.*--launch' ran)" -eq $((3 * pairs)) ] &&
    [ "$(grep '^gen-.*--launch' ran | sed -n "1p;$((2 * pairs))p" | sed 's/.*run.//' |
        paste -sd ' ')" = "llada-base-1.ndjson llada-base-2.ndjson" ] &&
    grep -q '^gen-llama .*--quant nf4 .*/run/llama-nf4-3.ndjson' ran &&
    grep -q '^compare --by option --base base' ran
ok $? "make ablation runs base and options in turn, every other time backwards"
[ "$status" -eq 0 ] || tail -n 5 log | sed 's/^/# /'
again ablation PROFILE=quick
did "a second make ablation runs nothing" ""
sed -i 's/--lookup 10/--lookup 4/' data/ablation.ndjson
again ablation PROFILE=quick ABLATION_LAUNCHES=4
[ "$(grep '^gen-' ran | grep -c -- '--lookup 4')" -eq 5 ] &&
    [ "$(grep -c '^gen-' ran)" -eq $((pairs + 4)) ]
ok $? "an option with other flags runs again; the others run only the new launch"
echo 69 >status
again ablation PROFILE=quick ABLATION_LAUNCHES=5
rm status
[ "$status" -eq 0 ] && [ ! -s results/here/quick/ablation/run/llama-int8-5.ndjson ]
ok $? "pairs in an instruction set that this machine does not have are left out"
again report PROFILE=quick PAGE=ablation
grep -q '^report .*quick/ablation/outcomes.ndjson' ran
ok $? "with PAGE=ablation the page shows the outcomes"
again -n report PROFILE=quick PAGE=latent-ablation
[ "$status" -eq 0 ]
ok $? "PAGE may name an experiment that has not run yet"
again ablation PROFILE=quick ABLATION=latent-ablation ABLATION_MORE=
[ "$status" -eq 0 ] && [ "$(grep -c '^gen-ltm.*--launch' ran)" -eq 3 ] &&
    [ "$(grep -c '^gen-ll' ran)" -eq 0 ] && ! grep -q '^plot' ran &&
    [ -e results/here/quick/latent-ablation/outcomes.ndjson ]
ok $? "make latent-ablation runs the options of the third way alone, in a folder of its own"
prior="results/here/quick/latent-ablation/prior.ndjson PROFILE=quick ABLATION=latent-ablation"
# shellcheck disable=SC2086
again $prior
did "a prior of latents is learned in a copy of the model, and held against N(0, I)" \
    "compare:1 gen-ltm:1 score-ppl:3 train-prior:1"
# shellcheck disable=SC2086
again $prior PRIOR_DRAWN=7
did "a second run does not learn the prior again" "compare:1 gen-ltm:1 score-ppl:3"
again phase4 PROFILE=h200 LLADA=org/large LLAMA=org/other PROMPT_FILE=system
[ "$status" -ne 0 ] && [ -z "$ran" ] &&
    grep -q 'PROFILE=h200 with org/large org/other: JUDGE would be of the demonstration' log
ok $? "a profile for own checkpoints asks for a judge before anything runs"
again -n phase4 PROFILE=cpu LLADA=org/large LLAMA=org/other JUDGE=org/judge
grep -q 'PROFILE=cpu with org/large org/other: PROMPT_FILE would be' log
ok $? "a profile for own checkpoints asks for prompts"
for given in "TOYS=1" "JUDGE=org/judge PROMPT_FILE=human" "LLADA=synth:llada-1b LLAMA=synth:x" \
    "LLADA=data/models/llada-demo LLAMA=data/models/llama-demo"; do
    again -n results/here/cpu/prompts.ndjson PROFILE=cpu LLADA=org/large LLAMA=org/other $given
    [ "$status" -eq 0 ]
    ok $? "a profile for own checkpoints runs with $given"
done
# refused TEXT PATTERN ARGUMENTS...: tests that make ends before any tool runs, with one line that
# has PATTERN.
refused()
{
    local text=$1 pattern=$2
    shift 2
    again "$@"
    [ "$status" -ne 0 ] && [ -z "$ran" ] && [ "$(wc -l <log)" -eq 1 ] && grep -q "$pattern" log
    ok $? "$text"
}
refused "a profile for own checkpoints does not run the embedded models by default" \
    'PROFILE=h200 (64): .* got no LLADA= LLAMA=. .* LLADA=data/models/llada-demo' all PROFILE=h200
refused "one embedded model beside a checkpoint is refused too" \
    'PROFILE=cpu (64): .* got no LLAMA=.' \
    phase1 PROFILE=cpu LLADA=org/large JUDGE=org/judge PROMPT_FILE=human
refused "a data set that is not there is named, with what is expected" \
    'PROMPT_FILE=no/where (66): no such file; expected a data set' all PROMPT_FILE=no/where
refused "blocks that do not fill the answer: the message has the names of make's settings" \
    'GEN_LENGTH=16 (64): expected a multiple of BLOCK_LENGTH=32' phase4 GEN_LENGTH=16
again phase4 PROFILE=quick SEED=4 STEPS=bad
[ "$status" -ne 0 ] && grep -q 'steps are bad' log && ! grep -q '^gen-' ran &&
    ! grep -q 'No rule' log
ok $? "an invalid setting of a schedule is reported before any launch, as the only message"
again -j2 all PROFILE=quick SEED=4 JUDGE=nowhere
[ "$status" -ne 0 ] && ! grep -q '^gen-\|^probe-roof' ran
ok $? "a judge that is not there is found before any launch"
again -n results/here/demo/prompts.ndjson PROMPTS=4
grep -q -- '--count 4 ' log
ok $? "PROMPTS=4 wins over the choice of the profile"
touch no-references
again phase1 phase4 PROFILE=quick SEED=5
rm no-references
[ "$status" -eq 0 ] && ! grep -q '^score-ppl --mode [nek]' ran &&
    [ -f results/here/quick/likelihood/nll.ndjson ] && [ -s results/here/quick/pareto.ndjson ] &&
    grep -q 'No prompt has a reference: likelihoods of references are left out' log
ok $? "prompts without references have no likelihoods, and a message says so"
[ ! -s results/here/quick/steps/aup.ndjson ] && [ -s results/here/quick/steps/split.ndjson ] &&
    grep -q 'left out: aup.ndjson' log && ! grep -q 'left out: split' log
ok $? "prompts without right answers have no tokens per pass by accuracy, and phase 4 goes on"
jq -e '.text | test("10 are timed")' results/here/demo/workload.ndjson >/dev/null &&
    jq -e '.text | test("are timed") | not' results/here/quick/workload.ndjson >/dev/null
ok $? "the number of timed prompts is stated if it is not all"
again -n results/here/demo/prompts.ndjson PROMPT_FILE=lists
grep -q 'data/corpus/test-lists.ndjson.gz -o results/here/demo/prompts.ndjson' log
ok $? "PROMPT_FILE=lists are the lists of words"
printf '{"id":"%s","text":"x","task":"%s"}\n' a sum b sum c story d sum e story |
    jq -srj --argjson count 4 -f pipelines/phase/first-of-each.jq | jq -sj 'map(.id) | add' |
    grep -qx '"*abce"*'
ok $? "the timed prompts are the first of each task, equally many"
again replicate
[ "$status" -ne 0 ] && grep -q '^STORED=data/demo/stored.ndjson: no such file' log
ok $? "make replicate without a stored run names the missing file"
again release-run
did "make release-run after a complete run measures nothing" ""
again replicate
did "make replicate compares the run with the stored one" "compare:1" &&
    grep -q '^compare --stored data/demo/stored.ndjson results/here/demo/claims.ndjson ' ran
ok $? "make replicate compares claims"
echo '{"kind":"claim","name":"answer","text":"altered"}' >data/demo/stored.ndjson
again replicate
[ "$status" -ne 0 ]
ok $? "an altered claim fails make replicate"
again robustness
did "robustness uses the runs of phase 5" ""
again all
[ "$(tail -n 2 log | head -n 1)" = 'the answer' ] &&
    [ "$(tail -n 1 log)" = "$PWD/results/here/demo/report.html" ]
ok $? "make all ends with the answer and the path of the page"
launches=$(find results/here/demo/steps/launch -name '*.ndjson' | wc -l)
rm results/here/demo/stamp/model-JUDGE
again -j4 phase2 phase3
did "prompts inspected for another phase repeat no launch" "prep-prompts:1"
again phase4 STEPS=2,4,8,16
did "one more step count adds its pairs only" \
    "compare:3 gen-llada:7 gen-llama:7 gen-ltm:7 measure:1 pareto:1 plot:4 schedule:2 \
score-exact:1 score-ppl:2 score-text:1"
[ "$(find results/here/demo/steps/launch -name '*.ndjson' | wc -l)" -eq $((launches + 9)) ]
ok $? "the earlier launches are still there"
again phase3 STEPS=2,4,8,16 AA_LAUNCHES=4
did "more launches are added to those that are there" \
    "compare:2 gen-llada:6 gen-llama:6 measure:1 schedule:1"
again all STEPS=2,4,8,16 AA_LAUNCHES=2
echo 'int more(void); int more(void) { return 1; }' >>tools/pareto.c
again all STEPS=2,4,8,16
did "other code in pareto.c reruns from pareto on" "bundle:1 conclude:1 pareto:2 plot:6 report:4"
rm results/here/demo/figures/ratio.svg
again figures STEPS=2,4,8,16
did "a deleted figure is drawn again, alone" "plot:1"
again all STEPS=2,4,8,16
touch tools/gen-llada.c lib/base/nothing.c
again phase4 STEPS=2,4,8,16
did "compiling the same code again repeats nothing" ""
echo 'int more(void); int more(void) { return 1; }' >>tools/gen-llada.c
again phase2 STEPS=2,4,8,16
did "other code in gen-llada repeats its generations, not those of gen-llama" \
    "compare:1 gen-llada:3 measure:1"
planned()
{
    jq -s 'map(select(.system == "llada")) | length' results/here/demo/steps/schedule.ndjson
}
echo 2 >more
again refine STEPS=2,4,8,16 BUDGET_MINUTES=0.08
[ "$status" -eq 0 ] && [ "$(planned)" -gt 3 ] && grep -q 'refined steps: .* ended by budget' log &&
    [ "$(cat results/here/demo/steps/stopped)" = budget ] && grep -q -- '--stopped budget' ran
ok $? "refine adds launches until its minutes are over, and the records say so"
[ "$status" -eq 0 ] || tail -n 20 log | sed 's/^/# /'
refined=$(planned)
again all STEPS=2,4,8,16 BUDGET_MINUTES=0.08
[ "$status" -eq 0 ] && [ "$(planned)" = "$refined" ] &&
    grep -q "refined steps before: $refined launches of each system, ended by budget" log
ok $? "a sweep that used these minutes before gets no more launches"
rm more results/here/demo/*/ratios.ndjson
again refine STEPS=2,4,8,16 BUDGET_MINUTES=2
[ "$(planned)" = "$refined" ] && [ "$(cat results/here/demo/steps/stopped)" = precision ]
ok $? "a precise sweep gets no more launches and keeps its own"
again -n refine STEPS=2,4,8,16 BUDGET_MINUTES=2
[ "$status" -eq 0 ] && [ ! -s ran ]
ok $? "make -n refine runs no tool"
rm -rf results/here/demo/*/refined
again all STEPS=2,4,8,16
echo '{"changed":1}' >data/models/judge-demo/config.json
again results/here/demo/steps/judge.ndjson STEPS=2,4,8,16
grep -q '^score-ppl --mode judge' ran
ok $? "another judge scores again"
again phase4 STEPS=2,4,8,16 JUDGE=data/models/llama-demo
grep -q 'WARNING: the judge is LLAMA itself' log
ok $? "a judge that is also a contestant gives a warning"
again phase4 STEPS=2,4,8,16 LLADA=org/large LTM=data/models/ltm-demo
grep -q 'WARNING: JUDGE is the embedded demonstration model' log
ok $? "the embedded judge of other contestants gives a warning"
again results/here/demo/workload.ndjson LLADA=org/large LTM=data/models/ltm-demo
jq -e '.toys == ["PROMPT_FILE", "JUDGE"] and (.warning | test("^Toys: prompts and judge"))' \
    results/here/demo/workload.ndjson >/dev/null
ok $? "the page's record holds the warning about the embedded judge"
jq -e '.training_text == null and .training[1] == {model: "large", rows: null}' \
    results/here/demo/workload.ndjson >/dev/null
ok $? "training data that no option names are null"
again phase4 STEPS=2,4,8,16
[ "$status" -eq 0 ] && ! grep -q WARNING log
ok $? "a judge that is no contestant gives no warning"
again -n phase5 STEPS=2,4,8,16
[ "$status" -eq 0 ] && [ ! -s ran ]
ok $? "make -n runs no tool"
again plan STEPS=2,4,8,16
grep -q 'steps: 18 launches, 18 done' log
ok $? "make plan counts launches"
again phase2 LLAMA="x/q';touch X;'"
[ "$status" -ne 0 ] && [ ! -e X ] && [ ! -s ran ] && [ "$(wc -l <log)" -eq 1 ] &&
    grep -q "LLAMA=x/q.*a name with ' ; spaces" log
ok $? "a name that the shell would take apart is refused with the reason, and runs nothing"
for call in "SEED=1;touch X;:" 'SEED=$(shell touch X)' "RUN=a'b" 'ANY=`touch X`' "PKG=touch X;"; do
    for dry in '' -n; do
        # shellcheck disable=SC2086  # no word where it is empty
        again $dry phase2 "$call"
        [ "$status" -ne 0 ] && [ ! -e X ] && [ ! -s ran ] && [ "$(wc -l <log)" -eq 1 ] &&
            grep -q 'a value with .* in it would be interpreted by the shell or make (64)' log
        ok $? "make $dry $call is refused before anything runs"
    done
done
! SEED='1;touch X;:' make --no-print-directory CUDA=0 -n phase2 >log 2>&1 &&
    [ ! -e X ] && grep -q '^Makefile.*SEED=1;touch X;:: a value with ;' log
ok $? "such a setting from the environment is refused too"
for line in 'SEED = 1;touch X;:' 'override GEN_FLAGS = $(SEED) `touch X`' 'MINE = | touch X'; do
    echo "$line" >local.mk
    again -n phase2
    [ "$status" -ne 0 ] && [ ! -e X ] && [ ! -s ran ] && [ "$(wc -l <log)" -eq 1 ] &&
        grep -q 'local.mk: [A-Z_]*=.*: a value with .* in it would be interpreted by the shell' log
    ok $? "a local.mk with $line is refused before anything runs"
done
printf '%s\n' 'MANY := 2' 'LLADA_FLAGS = --threads $(firstword $(MANY) 1)' >local.mk
again print-LLADA_FLAGS
[ "$(cat log)" = '--threads 2' ]
ok $? "local.mk may use the language of make"
echo 'WARMUP = 2 3' >local.mk
again -n phase2
[ "$status" -ne 0 ] && grep -q 'WARMUP=2 3 (64): expected an integer from 0 to 9*\.' log
ok $? "an integer setting of local.mk is checked"
rm local.mk
for value in '' 0x10 1,5 -1 1e3 017 100000000000000000000; do
    again phase2 SEED="$value"
    [ "$status" -ne 0 ] && [ ! -s ran ] && [ "$(wc -l <log)" -eq 1 ] &&
        grep -q "SEED=$value (64): expected an integer from 0 to 9*\." log
    ok $? "make SEED='$value' is refused before anything runs"
done
again -n phase2 SEED=0 GEN_LENGTH=32 PROMPTS=999999999999999 TURNS= BUDGET_MINUTES=0.5
[ "$status" -eq 0 ]
ok $? "integers of one to 15 digits are accepted"
mkdir "$scratch/it's"
cp -r Makefile config.mk pipelines "$scratch/it's"
make -C "$scratch/it's" --no-print-directory CUDA=0 test >log 2>&1
grep -q "it's: a name with ' in it" log
ok $? "a folder whose name has such a character is refused too"
read -r _ born host <.build.tmp
sleep 60 & # stands in for a make at work
echo "$! $(sed 's/.*) //' /proc/$!/stat | cut -d ' ' -f 20) $host" >.build.tmp
again all STEPS=2,4,8,16
[ "$status" -ne 0 ] && [ ! -s ran ] && [ "$(wc -l <log)" -eq 1 ] &&
    grep -q "busy (75): make is at work here, process $!;" log
ok $? "a second make in one folder ends with one line"
again -n all STEPS=2,4,8,16
[ "$status" -eq 0 ]
ok $? "make -n runs beside another make"
mkdir "$scratch/copy"
cp -r Makefile config.mk pipelines .build.tmp "$scratch/copy"
make -C "$scratch/copy" --no-print-directory CUDA=0 print-BUILD uninstall >log 2>&1
! grep -q busy log
ok $? "a copied folder, with its .build.tmp, is not locked"
"$scratch/copy/pipelines/bin/holder" /proc/build.tmp $$ >log 2>&1
[ $? -eq 73 ] && [ ! -s log ]
ok $? "a folder that cannot be written has exit code 73 and no message of the shell"
kill $!
echo "$! 1 $host" >.build.tmp
wait $! 2>/dev/null
again all STEPS=2,4,8,16
[ "$status" -eq 0 ] && [ "$(cut -d ' ' -f 1 .build.tmp)" != $! ]
ok $? "the lock of a killed make does not stop the next one"
csi=$(printf '\302\233')
again phase4 STEPS=2,4,8,16 LLADA="data/models/lla${csi}31m" LTM=data/models/ltm-demo
[ "$status" -eq 0 ] && grep -q 'lla.*31m 2 1: ' log && ! grep -q "$csi" log
ok $? "a control character in a model's name does not reach the terminal"
again all STEPS=2,4,8,16
again paper STEPS=2,4,8,16
did "each figure as PDF" "plot:11"
grep -q -- '--type pareto --width 8.4 .*paper/pareto-scale.pdf' ran
ok $? "each PDF has the width of a column, and its type from its name"
echo 6 >steps-wanted
again refine-steps STEPS=2,4,8,16 BUDGET_MINUTES=9
did "refine-steps adds the step counts that are wanted, once" \
    "gen-llada:7 gen-llama:7 gen-ltm:7 measure:1 pareto:2 schedule:2 score-exact:1 score-ppl:1 \
score-text:1"
[ "$(cat results/here/demo/steps/added.mk)" = 'STEPS_ADDED := 6' ] &&
    grep -q 'steps: 2,4,8,16,6, ended by precision' log
ok $? "added step counts stay for later calls"
echo 6 12 >steps-wanted
rm results/here/demo/steps/suggest.ndjson
again refine-steps STEPS=2,4,8,16 BUDGET_MINUTES=0
[ "$status" -eq 0 ] && grep -q 'steps: 2,4,8,16,6, ended by budget' log
ok $? "without minutes no step count is added"
rm results/here/demo/steps/added.mk
echo 1 >status
again phase4 STEPS=2,4,8,16,32
[ "$status" -eq 0 ] && grep -q '^gen-llada' ran && grep -q '^pareto' ran
ok $? "records that failed (exit 1) stop no phase"
echo 65 >status
again phase4 STEPS=2,4,8,16,32,64
[ "$status" -ne 0 ]
ok $? "bad data (exit 65) stop a phase"
rm -f status
pipelines/bin/lenient sh -c 'exit 69'
[ $? -eq 69 ] && pipelines/bin/lenient sh -c 'exit 1'
ok $? "a phase ends with the exit status of its failed command"
again all PROFILE=cpu-8b
did "shapes with random weights: short sweeps of each format and batch, no quality" \
    "forecast:1 gen-llada:12 gen-llama:12 measure:4 prep-prompts:1 probe-roof:1 schedule:4"
again all PROFILE=cpu-8b SHAPE_TO=256
did "other step counts are forecast again; nothing is measured again" "forecast:1"
again all PROFILE=cpu-8b SHAPE_TO=256 SHAPE_LENGTH=128,512
did "another length is four more sweeps; those of the first length stay" \
    "forecast:1 gen-llada:12 gen-llama:12 measure:4 schedule:4"
echo 'STEPS := 2,4' >local.mk
flags() { env -i PATH="$PATH" make -s CPU_LEVELS= HARDEN= FP=here "$@" print-GEN_FLAGS; }
again extreme
[ "$status" -eq 0 ] && [ "$(flags)" = "--threads 1 --level aggressive" ] &&
    [ "$(flags GEN_FLAGS='--threads 3')" = "--threads 3 --level aggressive" ]
ok $? "make extreme sets the level of both generators"
again extreme LEVEL=moderate
[ "$status" -eq 0 ] && [ "$(flags)" = "--threads 1 --level moderate" ] &&
    [ "$(wc -l <local.mk)" -eq 2 ]
ok $? "LEVEL= names another level for make extreme"
again restore
[ "$status" -eq 0 ] && [ "$(flags)" = "--threads 1" ] && [ "$(cat local.mk)" = 'STEPS := 2,4' ]
ok $? "make restore leaves the generators as they are"
again extreme LEVEL=most
[ "$status" -ne 0 ] && grep -q 'LEVEL=most: expected exact, mild, moderate or aggressive' log
ok $? "an unknown level is refused"
rm local.mk

# link SIGNAL: make gets it while the linker has written half of build/bin/plot
mkdir "$scratch/half"
cat >"$scratch/half/cc" <<'END'
#!/bin/bash
real=${PATH#*:}
case " $* " in *" -c "*) PATH=$real exec cc "$@" ;; esac
while [ "$1" != -o ]; do shift; done
echo half >"$2"
touch "${0%/*}/linking"
sleep 60
END
chmod +x "$scratch/half/cc"
link()
{
    rm -f "$scratch/half/linking"
    set -m # a process group of its own, which takes SIGINT
    env -i PATH="$scratch/half:$PATH" make --no-print-directory CPU_LEVELS= CFLAGS=-O0 HARDEN= \
        FP=here build/bin/plot >log 2>&1 &
    set +m
    for _ in {1..300}; do
        [ ! -e "$scratch/half/linking" ] || break
        sleep 0.1
    done
    kill -s "$1" -- -$!
    ! wait $! && [ -e "$scratch/half/linking" ]
}
for signal in INT TERM KILL; do
    rm -f build/bin/plot
    link $signal && [ ! -e build/bin/plot ]
    ok $? "$signal while a tool is linked leaves no tool"
done
again build/bin/plot
[ "$status" -eq 0 ] && cp build/bin/plot whole && touch tools/plot.c && link INT &&
    cmp -s build/bin/plot whole
ok $? "an interrupted link leaves the earlier tool as it was"
again build/bin/plot
[ "$status" -eq 0 ] && [ build/bin/plot -nt tools/plot.c ] && ! grep -q half build/bin/plot
ok $? "the next make links it again"

again results/here/demo/answers/prompts-000.ndjson GEN_FLAGS="--threads 2"
[ "$status" -eq 0 ] && grep '"kind":"prompt"' results/here/demo/prompts.ndjson |
    cmp -s - results/here/demo/answers/prompts-000.ndjson
ok $? "generators with several threads answer all prompts in one launch, also after quarters"

for profile in demo quick; do
    again -pnB --trace PROFILE=$profile phase{1,2,3,4,5,6,7} ready \
        "results/here/$profile"/{stored,steps/suggest}.ndjson
    "$house/prerequisites" results/here <log >missing
    ok $? "each file that a recipe of $profile names is a prerequisite of it"
    sed 's/^/# /' missing
done
sed '/tables.tex:/s| results/here/quick/robust/isa.ndjson||' log |
    "$house/prerequisites" results/here >missing
[ "$(cat missing)" = "results/here/quick/tables.tex: results/here/quick/robust/isa.ndjson" ]
ok $? "planted: a missing prerequisite is found"
finish
