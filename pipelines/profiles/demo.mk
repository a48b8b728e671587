# demo - the embedded trio on this machine: with the build, 10 minutes on two cores of a Zen 3 and
# 3.5 on two of a Zen 5.
# The margins of QUALITY need 150 sums (10 points of accuracy) and 60 stories (10 % of perplexity).
PROMPT_CHOICE := --per-task sum=150,story=60
TIMED_PROMPTS := 10
# A disturbed batch is repeated once. Processor time decides where too few launches are undisturbed
# by elapsed time.
AGAIN         := 1
STEPS         := 2,4,8,16,32,64
# Models of this size gain little from a second thread, and other processes disturb one thread less.
GEN_FLAGS     := --threads 1
GEN_LENGTH    := 64
BLOCK_LENGTH  := 32
QUALITY       ?= sum:accuracy:0.1 story:judge_ppl:0.1
METHODS       := dual-factor dual-threshold streaming lookup
LAUNCHES      := 5
PRECISION     := 0.05
# Only the self-test gets more launches, until it is precise enough to be SAME within 2 %.
REFINED       := aa
BUDGET_MINUTES := 3
WARMUP_MOST   := 3
AA_LAUNCHES   := 8
AA_PRECISION  := 0.01
# The speed of a machine changes within tens of milliseconds, so many short answers in turn are more
# precise than few long ones. LLaDA makes 19 passes a prompt, of which the slow twin repeats one
# (HANDICAP).
AA_LENGTH     := 8
AA_STEPS      := 1
AA_ROUNDS     := 19
# Phase 4 runs the faster methods. No sentence of the report on batches or lengths needs them.
SCALE_METHODS :=
SCALE_LENGTHS := 32,64
SCALE_BATCH   := 1,8
SCALE_LAUNCHES := 5
SCALE_PROMPTS := 8
# Tokens that LLaDA commits in a step. Phase 4 measures smaller numbers.
SCALE_PER_STEP := 4,16
LOAD_RATES    := 8,16,32,64
BASELINE_PROMPTS := 4
BASELINE_LENGTH := 32
LIKELIHOOD_PROMPTS := 12
LIKELIHOOD_SAMPLES := 32
LIKELIHOOD_ORDERS := 2
QUANT_CHOICE  := --per-task 32
QUANT_STEPS   := 16
QUANT_BATCH   := 16
QUANT_SAMPLES := 8
ABLATION_BATCH  := 8
ABLATION_STEPS  := 16
ABLATION_LENGTH := 32
ABLATION_BLOCK  := 16
# The embedded latent thought model is compared with the two other embedded models only.
LTM           ?= $(if $(filter-out data/models/%,$(LLADA) $(LLAMA)),,data/models/ltm-demo)
LTM_STEPS     := 0,2
# The latent model is left out of phase 5: it does not run in batches.
SCALE_LTM_STEPS :=
# The bound of the latent model is tighter without a fit than after a fit of a few steps.
LIKELIHOOD_FIT := 0
