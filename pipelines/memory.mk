# memory.mk - memory techniques: what quantization costs in quality and saves in memory and time.
# Each contestant as it is and with its matrices in each of QUANTS, on the same prompts: likelihoods
# of the references and answers are compared prompt by prompt. Part of phase 5. `make quantizations`
# does the same for QUANTS_ALL, which take longer.
#
#   $(R)/quant/SYSTEM-QUANT.ndjson, likelihood-SYSTEM-QUANT.ndjson -> comparison.ndjson, time.ndjson
#                                                     of QUANTS_ALL: all-comparison, all-time
QUANTS        ?= int8 nf4
QUANTS_ALL    ?= $(sort int8 int8-vector nf4 nf4-f32 fp4 $(QUANTS))
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

QUANT_EACH := none $(sort $(QUANTS) $(QUANTS_ALL))
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
$(foreach q,$(QUANT_EACH),$(eval $(call quant,$(q))))

# $(call quantizations,PREFIX,LIST): what is compared, of the formats of a list.
define quantizations
$(1)quant_RUNS := $(foreach q,none $(2),$(R)/quant/llada-$(q).ndjson $(R)/quant/llama-$(q).ndjson)

$(R)/quant/$(1)metrics.ndjson: $$($(1)quant_RUNS) $(BIN)/measure | $(QUIET)
	$$(call say,measure $(1)quant)\
	    $(beside) $(BIN)/measure $$($(1)quant_RUNS) -o $$@

$(R)/quant/$(1)exact.ndjson: $$($(1)quant_RUNS) $(BIN)/score-exact | $(QUIET)
	$$(call say,score-exact $(1)quant)\
	    $(beside) $(BIN)/score-exact $$($(1)quant_RUNS) -o $$@

# With the answers themselves: how many differ, and where they part (robustness.mk has the rest).
$(R)/quant/$(1)comparison.ndjson: $(R)/quant/$(1)metrics.ndjson $(R)/quant/$(1)exact.ndjson \
    $$($(1)quant_RUNS:$(R)/quant/%=$(R)/quant/likelihood-%) $$($(1)quant_RUNS) $(BIN)/compare \
    | $(QUIET)
	$$(call say,compare $(1)quant)\
	    $(beside) $(BIN)/compare --by quant --seed $(SEED) $$(filter %.ndjson,$$^) -o $$@

$(R)/quant/$(1)time.ndjson: $(R)/quant/$(1)metrics.ndjson $(BIN)/compare | $(QUIET)
	$$(call say,compare time of $(1)quant)\
	    $(beside) $(BIN)/compare --by quant --cost norm_latency_ns_per_token $$< -o $$@
endef
$(eval $(call quantizations,,$(QUANTS)))
$(eval $(call quantizations,all-,$(QUANTS_ALL)))

# Without a quantization there is nothing to compare.
QUANT := $(if $(QUANTS),$(R)/quant/comparison.ndjson $(R)/quant/time.ndjson)

.PHONY: quantizations
quantizations: $(R)/quant/all-comparison.ndjson $(R)/quant/all-time.ndjson \
    ## every number format beside the others: QUANTS_ALL=
	@jq -sr -f pipelines/quantizations.jq $^

# The level of both generators in all that follows, kept in local.mk.
.PHONY: extreme restore
extreme: ## from now on both models run at --level aggressive (LEVEL=moderate: at that one)
	@touch local.mk && sed -i '/^LEVEL := /d' local.mk
	@echo 'LEVEL := $(if $(findstring command,$(origin LEVEL)),$(LEVEL),aggressive)' >> local.mk

restore: ## both models run as they are again; what make pruning made of them goes
	@touch local.mk && sed -i '/^LEVEL := /d' local.mk
	@rm -rf $(RESULTS)/*/prune/models
