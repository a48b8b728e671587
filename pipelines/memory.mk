# memory.mk - memory techniques: what quantization costs in quality and saves in memory. Each
# contestant as it is and with its matrices in int8 and in nf4, on the same prompts: likelihoods of
# the references and answers are compared prompt by prompt. Part of phase 5.
#
#   $(R)/quant/SYSTEM-QUANT.ndjson, likelihood-SYSTEM-QUANT.ndjson -> comparison.ndjson
QUANTS        ?= int8 nf4
# prompts, other ones than those of the sweeps
QUANT_CHOICE  ?= --count $(LIKELIHOOD_PROMPTS)
QUANT_STEPS   ?= $(lastword $(call split,$(STEPS)))
QUANT_LENGTH  ?= $(GEN_LENGTH)
QUANT_BATCH   ?= 8
QUANT_SAMPLES ?= $(LIKELIHOOD_SAMPLES)

$(R)/quant/settings: FORCE
	$(call stamp,$(QUANT_CHOICE) $(QUANT_STEPS) $(QUANT_LENGTH) $(QUANT_BATCH) $(QUANT_SAMPLES) \
	    $(BLOCK_LENGTH) $(PROMPT_FILE) $(PROMPT_FLAGS) $(SEED) / $(GEN_FLAGS) / $(LLADA_FLAGS) / \
	    $(LLAMA_FLAGS) / $(SCORE_FLAGS))

$(R)/quant/prompts.ndjson: $(PROMPT_FILE) $(R)/quant/settings $(R)/stamp/tool-prep-prompts | $(PIPE)
	$(call say,prompts of quant)\
	    $(BIN)/prep-prompts --seed $$(($(SEED) + 1)) $(QUANT_CHOICE) $(PROMPT_FEWER) \
	    $(PROMPT_FLAGS) $(PROMPT_FILE) -o $@

# Answered is what has an answer to compare with; without any, one batch shows the memory.
$(R)/quant/questions.ndjson: $(R)/quant/prompts.ndjson
	@jq -sc 'map(select(.id)) | ((map(select(.answer)) | select(. != [])) // .[:$(QUANT_BATCH)])[]' \
	    $< > $@.tmp && mv $@.tmp $@

$(R)/quant/references.ndjson: $(R)/quant/prompts.ndjson
	@jq -c 'select(.reference != null)' $< > $@.tmp && mv $@.tmp $@

QUANT_ALL := none $(QUANTS)
define quant
$(R)/quant/llada-$(1).ndjson: $(R)/quant/questions.ndjson $(R)/stamp/model-LLADA \
    $(R)/stamp/tool-gen-llada | $(PIPE)
	$$(call say,gen-llada $(1))\
	    $(alone) $(BIN)/gen-llada -m $(LLADA) --quant $(1) --steps $(QUANT_STEPS) \
	    --gen-length $(QUANT_LENGTH) --block-length $(BLOCK_LENGTH) --batch $(QUANT_BATCH) \
	    --seed $(SEED) $(GEN_FLAGS) $(LLADA_FLAGS) $$< -o $$@

$(R)/quant/llama-$(1).ndjson: $(R)/quant/questions.ndjson $(R)/stamp/model-LLAMA \
    $(R)/stamp/tool-gen-llama | $(PIPE)
	$$(call say,gen-llama $(1))\
	    $(alone) $(BIN)/gen-llama -m $(LLAMA) --quant $(1) --max-new $(QUANT_LENGTH) \
	    --batch $(QUANT_BATCH) --seed $(SEED) $(GEN_FLAGS) $(LLAMA_FLAGS) $$< -o $$@

$(R)/quant/likelihood-llada-$(1).ndjson: $(R)/quant/references.ndjson $(R)/stamp/model-LLADA \
    $(R)/stamp/tool-score-ppl | $(PIPE)
	$$(call say,score-ppl llada $(1))\
	    $(beside) $(BIN)/score-ppl --mode elbo --samples $(QUANT_SAMPLES) -m $(LLADA) \
	    --quant $(1) --target reference --seed $(SEED) $(SCORE_FLAGS) $$< -o $$@

$(R)/quant/likelihood-llama-$(1).ndjson: $(R)/quant/references.ndjson $(R)/stamp/model-LLAMA \
    $(R)/stamp/tool-score-ppl | $(PIPE)
	$$(call say,score-ppl llama $(1))\
	    $(beside) $(BIN)/score-ppl --mode nll -m $(LLAMA) --quant $(1) --target reference \
	    --seed $(SEED) $(SCORE_FLAGS) $$< -o $$@
endef
$(foreach q,$(QUANT_ALL),$(eval $(call quant,$(q))))
QUANT_RUNS := $(foreach q,$(QUANT_ALL),$(R)/quant/llada-$(q).ndjson $(R)/quant/llama-$(q).ndjson)
QUANT_LIKELIHOOD := $(QUANT_RUNS:$(R)/quant/%=$(R)/quant/likelihood-%)

$(R)/quant/metrics.ndjson: $(QUANT_RUNS) $(BIN)/measure | $(QUIET)
	$(call say,measure quant)\
	    $(beside) $(BIN)/measure $(QUANT_RUNS) -o $@

$(R)/quant/exact.ndjson: $(QUANT_RUNS) $(BIN)/score-exact | $(QUIET)
	$(call say,score-exact quant)\
	    $(beside) $(BIN)/score-exact $(QUANT_RUNS) -o $@

# With the answers themselves: how many differ, and where they part (robustness.mk has the rest).
$(R)/quant/comparison.ndjson: $(R)/quant/metrics.ndjson $(R)/quant/exact.ndjson \
    $(QUANT_LIKELIHOOD) $(QUANT_RUNS) $(BIN)/compare | $(QUIET)
	$(call say,compare)\
	    $(beside) $(BIN)/compare --by quant --seed $(SEED) $(filter %.ndjson,$^) -o $@

# Without a quantization there is nothing to compare.
QUANT := $(if $(QUANTS),$(R)/quant/comparison.ndjson)

# The level of both generators in all that follows, kept in local.mk.
.PHONY: extreme restore
extreme: ## from now on both models run at --level aggressive (LEVEL=moderate: at that one)
	@touch local.mk && sed -i '/^LEVEL := /d' local.mk
	@echo 'LEVEL := $(if $(findstring command,$(origin LEVEL)),$(LEVEL),aggressive)' >> local.mk

restore: ## both models run as they are again; what make pruning made of them goes
	@touch local.mk && sed -i '/^LEVEL := /d' local.mk
	@rm -rf $(RESULTS)/*/prune/models
