# quick - a test that everything works: the embedded models, two minutes. Too few launches for
# intervals.
PROMPT_CHOICE := --per-task 6
STEPS         := 4,16,64
# small models gain little from a second thread, and one thread is disturbed less often than two
GEN_FLAGS     := --threads 1
GEN_LENGTH    := 64
BLOCK_LENGTH  := 32
QUALITY       ?= sum:accuracy:0.05 story:judge_ppl:0.1
METHODS       := dual-factor lookup
LAUNCHES      := 2
BUDGET_MINUTES := 0
AA_LAUNCHES   := 2
AA_LENGTH     := 16
SCALE_LENGTHS := 32
SCALE_BATCH   := 1,4
SCALE_LAUNCHES := 1
SCALE_PROMPTS := 4
LOAD_RATES    := 8,32
BASELINE_PROMPTS := 2
BASELINE_LENGTH := 16
LIKELIHOOD_PROMPTS := 6
LIKELIHOOD_SAMPLES := 8
LIKELIHOOD_ORDERS := 1
QUANT_CHOICE  := --per-task 6
QUANT_STEPS   := 4
QUANT_SAMPLES := 4
ABLATION_BATCH := 6
# the embedded latent thought model runs too, if both contestants are embedded models
LTM           ?= $(if $(filter-out data/models/%,$(LLADA) $(LLAMA)),,data/models/ltm-demo)
LTM_STEPS     := 0,4
SCALE_LTM_STEPS := 4
LIKELIHOOD_FIT := 4
