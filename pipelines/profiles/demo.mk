# demo - the embedded trio on this machine: meant for ten minutes on two cores.
# 150 sums can show 10 points, 60 stories 10 %
PROMPT_CHOICE := --per-task sum=150,story=60
TIMED_PROMPTS := 10
# processor time is the first clock here, and other processes do not add to it
AGAIN         := 1
STEPS         := 2,4,8,16,32,64
# so small models gain little by a second thread, and a busy machine disturbs one thread less
GEN_FLAGS     := --threads 1
GEN_LENGTH    := 64
BLOCK_LENGTH  := 32
QUALITY       ?= sum:accuracy:0.1 story:judge_ppl:0.1
METHODS       := dual-factor dual-threshold streaming lookup
LAUNCHES      := 5
PRECISION     := 0.05
BUDGET_MINUTES := 2
WARMUP_MOST   := 3
AA_LAUNCHES   := 10
AA_LENGTH     := 32
AA_STEPS      := 16
SCALE_METHODS := dual-threshold
SCALE_LENGTHS := 32,64
SCALE_BATCH   := 1,8
SCALE_LAUNCHES := 5
SCALE_PROMPTS := 8
# fewer a step are phase 4's
SCALE_PER_STEP := 4,16
BASELINE_PROMPTS := 8
BASELINE_LENGTH := 32
LIKELIHOOD_PROMPTS := 32
LIKELIHOOD_SAMPLES := 32
LIKELIHOOD_ORDERS := 2
QUANT_CHOICE  := --per-task 64
QUANT_STEPS   := 16
QUANT_BATCH   := 16
QUANT_SAMPLES := 8
ABLATION_BATCH  := 8
ABLATION_STEPS  := 16
ABLATION_LENGTH := 32
ABLATION_BLOCK  := 16
# the embedded latent thought model beside the embedded two
LTM           ?= $(if $(filter-out data/models/%,$(LLADA) $(LLAMA)),,data/models/ltm-demo)
LTM_STEPS     := 0,2
# the latent model has no batch to scale
SCALE_LTM_STEPS :=
# its bound is tighter where a fit begins than after a few steps of one
LIKELIHOOD_FIT := 0
