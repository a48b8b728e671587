# load.mk - make load: prompts that arrive at random times, as those of users do. How long each
# model takes from the arrival of a prompt to the end of its answer, the rate of requests up to
# which LLaDA takes less time (X_rate), and up to which each model keeps limits.
#
# Prompts of phase 4 come at every rate of LOAD_RATES, and a place in the batch goes to the next
# prompt. Both models get the same times. At rate 0 a prompt comes when there is a place for it, so
# LOAD_BATCH prompts are always at work; endpoints.jq holds such a load against the rules of MLPerf
# Endpoints.
#
#   $(R)/load/metrics.ndjson -> pareto.ndjson

# prompts that come per second, in the mean; 0: LOAD_BATCH of them are always at work
LOAD_RATES    ?= 0.25,0.5,1,2,4
# prompts that run at once, at most; a list for a load at rate 0
LOAD_BATCH    ?= 16
# denoising steps; name the count at which phase 4 shows LLaDA to be as good
LOAD_STEPS    ?= $(QUANT_STEPS)
# limits of the goodput, ms to the first token and per token after it
LOAD_LIMITS   ?= --ttft-limit-ms 500 --itl-limit-ms 50
# launches of each model
LOAD_LAUNCHES ?= $(LAUNCHES)

load_SYSTEMS  := llada,llama
load_STEPS    := $(LOAD_STEPS)
load_CONTRACT := answer
load_BATCH    := $(LOAD_BATCH)
load_LENGTH   := $(GEN_LENGTH)
load_BLOCK    := $(BLOCK_LENGTH)
load_SWEEP    := --admit continuous --arrival-rate $(LOAD_RATES)
load_LAUNCHES := $(LOAD_LAUNCHES)
load_PROMPTS  := $(R)/prompts.ndjson
load_LIMITS   := $(LOAD_LIMITS)
SWEPT         += load

text-$(R)/stamp/load = $(LOAD_LIMITS)
$(R)/load/metrics.ndjson: $(R)/stamp/load

$(R)/load/pareto.ndjson: $(R)/load/metrics.ndjson $(R)/stamp/pareto $(TOOL)-pareto | $(QUIET)
	$(call say,pareto load)$(beside) $(BIN)/pareto $(pareto_flags) $< -o $@

.PHONY: load
load: $(R)/load/pareto.ndjson $(R)/load/metrics.ndjson \
    ##run prompts that arrive at random times: latency and goodput by rate, X_rate
	@{ jq -sr -f pipelines/phase/scale.jq $<; \
	   jq -sr -f pipelines/experiment/load/load.jq $(R)/load/metrics.ndjson; \
	   $(if $(filter 0,$(call split,$(LOAD_RATES))),jq -nr -f pipelines/experiment/load/endpoints.jq \
	       $(load_FILES) $(R)/load/metrics.ndjson;) } | $(PLAIN)
