# load.mk - make load: prompts that arrive at random times, as those of users do. How long each
# model takes from the arrival of a prompt to the end of its answer, the rate of requests up to
# which LLaDA takes less time (X_rate), and up to which each model keeps limits.
#
# Prompts of phase 4 come at every rate of LOAD_RATES, and a place in the batch goes to the next
# prompt. Both models get the same times. At rate 0 a prompt comes when there is a place for it, so
# LOAD_BATCH prompts are always at work; endpoints.jq holds such a load against the rules of MLPerf
# Endpoints.
#
# LLaDA takes the least step count that phase 4 shows to be as good as LLaMA (X_q, by the primary
# quality), so make phase4 comes first. Without such a count LLaDA takes QUANT_STEPS. The member
# as_good of X_rate says whether the count is shown to be as good.
#
#   $(R)/load/metrics.ndjson, x_q.ndjson -> pareto.ndjson -> figures/load.svg

# prompts that come per second, in the mean; 0: LOAD_BATCH of them are always at work
LOAD_RATES    ?= 0.25,0.5,1,2,4
# prompts that run at once, at most; a list for a load at rate 0
LOAD_BATCH    ?= 16
# denoising steps (default: the least count that phase 4 shows to be as good as LLaMA, else
# QUANT_STEPS)
LOAD_STEPS    ?= $(or $(good_steps),$(QUANT_STEPS))
# limits of the goodput, ms to the first token and per token after it
LOAD_LIMITS   ?= --ttft-limit-ms 500 --itl-limit-ms 50
# launches of each model
LOAD_LAUNCHES ?= $(LAUNCHES)

# X_q of the step sweep by the primary quality, over the prompts of its task or over all prompts
primary_x_q := select(.name == "X_q" and .over == "steps" and .contract == "answer" and \
    .quality_metric == "$(primary_metric)" and .rival != "fastest" and \
    (.task // "$(primary_task)") == "$(primary_task)")
# evaluated once, so that the warning below is about the steps that were run
good_steps  := $(if $(filter load,$(SWEEPS)),$(if $(wildcard $(R)/pareto.ndjson),$(shell jq -n \
    '[inputs | $(primary_x_q)] | select(all(.exists)) | map(.at | floor) | max // empty' \
    $(R)/pareto.ndjson)))

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

# make load runs nothing of phase 4: it reads the records of phase 4 that exist.
$(R)/load/x_q.ndjson: $(if $(filter steps,$(SWEEPS)),$(R)/pareto.ndjson) FORCE
	@mkdir -p $(@D)
	@cat $(R)/pareto.ndjson /dev/null 2> /dev/null | jq -c '$(primary_x_q)' > $@.tmp
	@cmp -s $@.tmp $@ && rm $@.tmp || mv $@.tmp $@

$(R)/load/pareto.ndjson: $(R)/load/metrics.ndjson $(R)/load/x_q.ndjson $(R)/stamp/pareto \
    $(TOOL)-pareto | $(QUIET)
	$(call say,pareto load)$(beside) $(BIN)/pareto $(pareto_flags) $(filter %.ndjson,$^) -o $@

# the records that the page shows with PAGE=load
LOAD_TOLD := $(if $(filter load,$(PAGED)),$(R)/load/pareto.ndjson $(R)/load/metrics.ndjson)

.PHONY: load
load: $(R)/load/pareto.ndjson $(R)/load/metrics.ndjson \
    ##run prompts that arrive at random times: latency and goodput by rate, X_rate
	@$(if $(or $(good_steps),$(filter-out $(QUANT_STEPS),$(LOAD_STEPS))),,echo 'load: phase 4 shows \
	    no step count to be as good as LLaMA by $(primary_metric), so LLaDA takes' \
	    'QUANT_STEPS=$(QUANT_STEPS) steps. Run make phase4 first, or name LOAD_STEPS=N.' >&2)
	@{ jq -sr -f pipelines/phase/scale.jq $<; \
	   jq -sr -f pipelines/experiment/load/load.jq $(R)/load/metrics.ndjson; \
	   $(if $(filter 0,$(call split,$(LOAD_RATES))),jq -nr -f pipelines/experiment/load/endpoints.jq \
	       $(load_FILES) $(R)/load/metrics.ndjson;) } | $(PLAIN)
