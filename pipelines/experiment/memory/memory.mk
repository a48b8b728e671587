# memory.mk - make quantizations, and a part of phase 5: measures what quantization costs and saves
# in quality, memory and time. Each model runs unquantized and with its matrices in each format of
# QUANTS on the same prompts. Likelihoods of the references and answers are compared prompt by
# prompt. make quantizations does this for QUANTS_ALL, which takes longer: f16 is --dtype f16; mixed
# is a packed checkpoint with a format for each part of each layer.
#
#   $(R)/quant/SYSTEM-QUANT.ndjson, likelihood-SYSTEM-QUANT.ndjson -> comparison.ndjson, time.ndjson
#                                  of QUANTS_ALL, by option: all.ndjson -> all-comparison, all-time

# formats of make quantizations
QUANTS_ALL    ?= $(sort f16 int8 int8-vector nf4 nf4-f32 fp4 q4 mixed $(QUANTS))
# bytes of the format mixed, as a share of the whole checkpoint
QUANT_SHARE   ?= 0.4
# texts that the format mixed is calibrated on
QUANT_TEXTS   ?= data/corpus/train.ndjson.gz
# number of these texts
QUANT_HEARD   ?= 32
# options of prep-prompts that choose the prompts; another seed than that of the sweeps
QUANT_CHOICE  ?= --count $(or $(filter-out 0,$(LIKELIHOOD_PROMPTS)),$(PROMPTS))

text-$(R)/quant/settings = \
    $(QUANT_CHOICE) $(QUANT_STEPS) $(QUANT_LENGTH) $(QUANT_BATCH) \
    $(QUANT_SAMPLES)$(if $(filter 0,$(LIKELIHOOD_PROMPTS)), unscored) \
    $(BLOCK_LENGTH) $(PROMPT_FILE) $(PROMPT_FLAGS) $(SEED) / $(GEN_FLAGS) / $(LLADA_FLAGS) / \
    $(LLAMA_FLAGS) / $(SCORE_FLAGS)

$(R)/quant/prompts.ndjson: $(PROMPT_FILE) $(R)/quant/settings $(R)/stamp/tool-prep-prompts | $(PIPE)
	$(call say,prompts of quant)\
	    $(once) $(BIN)/prep-prompts --seed $$(($(SEED) + 1)) $(QUANT_CHOICE) --allow-fewer \
	    $(PROMPT_FLAGS) $(PROMPT_FILE) -o $@

# Prompts with a reference answer. If no prompt has one, a single batch is enough to measure memory.
$(R)/quant/questions.ndjson: $(R)/quant/prompts.ndjson
	@jq -sc 'map(select(.id)) | ((map(select(.answer)) | select(. != [])) // .[:$(QUANT_BATCH)])[]' \
	    $< > $@.tmp && mv $@.tmp $@

# empty if no likelihood is computed (LIKELIHOOD_PROMPTS=0)
$(R)/quant/references.ndjson: $(R)/quant/prompts.ndjson
	@jq -c 'select(.reference != null and $(LIKELIHOOD_PROMPTS) > 0)' $< > $@.tmp && mv $@.tmp $@

text-$(R)/quant/mixing = $(QUANT_SHARE) $(QUANT_TEXTS) $(QUANT_HEARD) $(SEED)

# The checkpoint of a model in the format mixed.
$(R)/quant/pack-LLADA.ndjson $(R)/quant/pack-LLAMA.ndjson: $(R)/quant/pack-%.ndjson: \
    $(R)/quant/mixing $(R)/stamp/model-% $(R)/stamp/tool-pack-model | $(PIPE) $(BIN)/pack-model
	$(call say,pack-model $* mixed)\
	    rm -rf $(R)/quant/model/$*; mkdir -p $(R)/quant/model; \
	    $(beside) $(BIN)/pack-model -q -m $($*) --budget-share $(QUANT_SHARE) \
	    --calibrate $(QUANT_TEXTS) --limit $(QUANT_HEARD) --seed $(SEED) \
	    --out $(R)/quant/model/$* -o $@

# $(call quant_of,SYSTEM,FORMAT): the flags of a format. quant_made: the files that a format needs.
quant_of   = -m $(if $(filter mixed,$(2)),$(R)/quant/model/$(1),$($(1))) \
    $(if $(filter f16,$(2)),--dtype f16,$(if $(filter mixed,$(2)),,--quant $(2)))
quant_made = $(R)/stamp/model-$(1) $(if $(filter mixed,$(2)),$(R)/quant/pack-$(1).ndjson)

QUANT_EACH := none $(sort $(QUANTS) $(QUANTS_ALL))
$(QUANT_EACH:%=$(R)/quant/llada-%.ndjson): $(R)/quant/llada-%.ndjson: \
    $(R)/quant/questions.ndjson $$(call quant_made,LLADA,$$*) $(R)/stamp/tool-gen-llada | $(PIPE)
	$(call say,gen-llada $*)\
	    $(once) $(alone) $(BIN)/gen-llada $(call quant_of,LLADA,$*) --steps $(QUANT_STEPS) \
	    --gen-length $(QUANT_LENGTH) --block-length $(BLOCK_LENGTH) --batch $(QUANT_BATCH) \
	    --seed $(SEED) $(GEN_FLAGS) $(LLADA_FLAGS) $< -o $@

$(QUANT_EACH:%=$(R)/quant/llama-%.ndjson): $(R)/quant/llama-%.ndjson: \
    $(R)/quant/questions.ndjson $$(call quant_made,LLAMA,$$*) $(R)/stamp/tool-gen-llama | $(PIPE)
	$(call say,gen-llama $*)\
	    $(once) $(alone) $(BIN)/gen-llama $(call quant_of,LLAMA,$*) --max-new $(QUANT_LENGTH) \
	    --batch $(QUANT_BATCH) --seed $(SEED) $(GEN_FLAGS) $(LLAMA_FLAGS) $< -o $@

quant_score = $(given) $(once) $(beside) $(BIN)/score-ppl $(1) $(call quant_of,$(2),$*) \
    --target reference --seed $(SEED) $(SCORE_FLAGS) $< -o $@
$(QUANT_EACH:%=$(R)/quant/likelihood-llada-%.ndjson): $(R)/quant/likelihood-llada-%.ndjson: \
    $(R)/quant/references.ndjson $$(call quant_made,LLADA,$$*) $(R)/stamp/tool-score-ppl | $(PIPE)
	$(call say,score-ppl llada $*)\
	    $(call quant_score,--mode elbo --samples $(QUANT_SAMPLES),LLADA)

$(QUANT_EACH:%=$(R)/quant/likelihood-llama-%.ndjson): $(R)/quant/likelihood-llama-%.ndjson: \
    $(R)/quant/references.ndjson $$(call quant_made,LLAMA,$$*) $(R)/stamp/tool-score-ppl | $(PIPE)
	$(call say,score-ppl llama $*)\
	    $(call quant_score,--mode nll,LLAMA)

quant_RUNS := $(foreach q,none $(QUANTS),$(R)/quant/llada-$(q).ndjson $(R)/quant/llama-$(q).ndjson)

$(R)/quant/metrics.ndjson: $(quant_RUNS) $(TOOL)-measure | $(QUIET)
	$(call say,measure quant)$(beside) $(BIN)/measure $(quant_RUNS) -o $@

$(R)/quant/exact.ndjson: $(quant_RUNS) $(TOOL)-score-exact | $(QUIET)
	$(call say,score-exact quant)$(beside) $(BIN)/score-exact $(quant_RUNS) -o $@

# Generations are inputs too: compare counts the answers that differ and finds the first difference.
$(R)/quant/comparison.ndjson: $(R)/quant/metrics.ndjson $(R)/quant/exact.ndjson \
    $(quant_RUNS:$(R)/quant/%=$(R)/quant/likelihood-%) $(quant_RUNS) $(TOOL)-compare | $(QUIET)
	$(call say,compare quant)\
	    $(beside) $(BIN)/compare --by quant --seed $(SEED) $(filter %.ndjson,$^) -o $@

$(R)/quant/time.ndjson: $(R)/quant/metrics.ndjson $(TOOL)-compare | $(QUIET)
	$(call say,compare time of quant)\
	    $(beside) $(BIN)/compare --by quant --cost norm_latency_ns_per_token $< -o $@

# The formats of QUANTS_ALL differ in more than the setting quant. So the name of the file becomes
# the option of its records, and records are compared by option.
quant_ALL := $(foreach q,none $(QUANTS_ALL),$(foreach s,llada llama likelihood-llada \
                 likelihood-llama,$(R)/quant/$(s)-$(q).ndjson))
$(R)/quant/all.ndjson: $(quant_ALL)
	@jq -c '(input_filename | capture("(llada|llama)-(?<o>[^/]+)[.]ndjson$$").o) as $$o \
	    | select(.kind == "generation" or .kind == "quality") | .option = $$o \
	    | .model = .arch | .config += " option=\($$o)" | .point = "\(.kind)-\(.arch)-\($$o)"' \
	    $^ > $@.tmp && mv $@.tmp $@

$(R)/quant/all-metrics.ndjson: $(R)/quant/all.ndjson $(TOOL)-measure | $(QUIET)
	$(call say,measure all quant)$(beside) $(BIN)/measure $< -o $@

$(R)/quant/all-exact.ndjson: $(R)/quant/all.ndjson $(TOOL)-score-exact | $(QUIET)
	$(call say,score-exact all quant)$(beside) $(BIN)/score-exact $< -o $@

quant_by = $(BIN)/compare --by option --base none
$(R)/quant/all-comparison.ndjson: $(R)/quant/all-metrics.ndjson $(R)/quant/all-exact.ndjson \
    $(R)/quant/all.ndjson $(TOOL)-compare | $(QUIET)
	$(call say,compare all quant)\
	    $(beside) $(quant_by) --seed $(SEED) $(filter %.ndjson,$^) -o $@

$(R)/quant/all-time.ndjson: $(R)/quant/all-metrics.ndjson $(TOOL)-compare | $(QUIET)
	$(call say,compare time of all quant)\
	    $(beside) $(quant_by) --cost norm_latency_ns_per_token $< -o $@

# Without a quantization there is nothing to compare.
QUANT := $(if $(QUANTS),$(R)/quant/comparison.ndjson $(R)/quant/time.ndjson)

.PHONY: quantizations
quantizations: $(R)/quant/all-comparison.ndjson $(R)/quant/all-time.ndjson \
    ##run bytes, time and quality of every number format (QUANTS_ALL=)
	@jq -sr -f pipelines/experiment/memory/quantizations.jq $^

# local.mk keeps the level of the generators for all later runs.
.PHONY: extreme restore
extreme: ##run save memory in all later runs: --level aggressive (LEVEL=moderate)
	@touch local.mk && sed -i '/^LEVEL := /d' local.mk
	@echo 'LEVEL := $(if $(findstring command,$(origin LEVEL)),$(LEVEL),aggressive)' >> local.mk

restore: ##run undo make extreme; remove pruned models
	@touch local.mk && sed -i '/^LEVEL := /d' local.mk
	@rm -rf $(RESULTS)/*/prune/models
