# phase5.mk - phase 5, scale: runs batch sizes and output lengths at several speeds, with equally
# many tokens from each model, and scores the same answers. Out of memory is a result. From these
# follow the batch size and the length at which the faster model changes. Phase 5 also runs two
# experiments: what quantization costs and saves (experiment/memory), and how far number formats,
# batch sizes and instruction sets change answers (experiment/robustness).
#
# Each length is a sweep, length-N, with every batch size; sweep.mk has the commands.
SWEPT += $(SCALES)
# denoising steps for N tokens at each of SCALE_PER_STEP, rounded up, without repeats
steps_for = $(shell b='$(call blocks_in,$(1))'; for k in $(call split,$(SCALE_PER_STEP)); do \
                n[(($(1)+k-1)/k+b-1)/b*b]=; done; IFS=,; echo "$${!n[*]}")
# the length of a block; if BLOCK_LENGTH does not divide the answer, the answer is one block
block_for = $(shell echo $$(( $(1) % $(BLOCK_LENGTH) ? $(call one_block,$(1)) : $(BLOCK_LENGTH) )))
define scale_settings
length-$(1)_SYSTEMS  := $(if $(SCALE_LTM_STEPS),$(systems),llada,llama)
length-$(1)_STEPS    := $(call steps_for,$(1))
length-$(1)_SWEEP    := $(if $(SCALE_LTM_STEPS),$(call fitted,$(SCALE_LTM_STEPS)))
length-$(1)_CONTRACT := fixed
length-$(1)_BATCH    := $(SCALE_BATCH)
length-$(1)_LENGTH   := $(1)
length-$(1)_BLOCK    := $(call block_for,$(1))
length-$(1)_METHODS  := $(if $(SCALE_METHODS),$(R)/scale-methods.ndjson)
length-$(1)_LAUNCHES := $(call launches_of,length-$(1),$(SCALE_LAUNCHES))
length-$(1)_PROMPTS  := $(R)/scale-prompts.ndjson
endef
$(foreach l,$(LENGTHS),$(eval $(call scale_settings,$(l))))

SCALE := $(SCALES:%=$(R)/%/metrics.ndjson)

# The ratio of the two models at each size. p values are adjusted over all sizes together.
RATIOS := $(R)/ratios.ndjson
$(RATIOS): $(SCALE) $(R)/stamp/precision $(TOOL)-compare | $(QUIET)
	$(call say,compare sizes)\
	    $(beside) $(BIN)/compare $(ratio_flags) --stopped "$$(sort -u $(SCALE:metrics.ndjson=stopped) \
	    | paste -sd ' ')" $(SCALE) -o $@

$(R)/scale/generations.ndjson: $(foreach s,$(SCALES),$($(s)_FILES)) pipelines/phase/distinct.jq
	@mkdir -p $(@D)
	@jq -cn -f pipelines/phase/distinct.jq $(filter %.ndjson,$^) > $@.tmp && mv $@.tmp $@

$(R)/scale/judge.ndjson: $(R)/scale/generations.ndjson $(R)/stamp/model-JUDGE \
    $(R)/stamp/score $(R)/stamp/tool-score-ppl | $(PIPE) $(R)/judge.words
	$(call say,score-ppl judge of scale)\
	    $(once) $(beside) $(BIN)/score-ppl --mode judge -m $(JUDGE) $(SCORE_FLAGS) $< -o $@

$(R)/scale/exact.ndjson: $(R)/scale/generations.ndjson $(TOOL)-score-exact | $(QUIET)
	$(call say,score-exact scale)\
	    $(beside) $(BIN)/score-exact $< -o $@

SCALE_SCORED := $(R)/scale/judge.ndjson $(R)/scale/exact.ndjson
$(R)/scale/pareto.ndjson: $(SCALE) $(SCALE_SCORED) $(R)/stamp/pareto $(TOOL)-pareto | $(QUIET)
	$(call say,pareto scale)\
	    $(beside) $(BIN)/pareto $(pareto_flags) $(filter %.ndjson,$^) -o $@

.PHONY: phase5
phase5: $(SCALE) $(RATIOS) $(R)/scale/pareto.ndjson $(QUANT) $(ROBUST) \
    $(foreach f,throughput memory ratio,$(R)/figures/$(f).svg) \
    ##run scale: batch sizes, lengths, memory, quantization
	@jq -sr -f pipelines/phase/scale.jq $(R)/scale/pareto.ndjson | $(PLAIN)
