# phase5.mk - scale: batch size by output length at several speeds, exactly so many tokens from
# both, with the quality of the same answers; out of memory is a result. From these the batch size
# and the length at which the faster of the two changes. With it what quantization costs and saves
# (memory.mk),
# and what number formats, batch sizes and instruction sets change in answers (robustness.mk).
SCALE := $(SCALES:%=$(R)/%/metrics.ndjson)

# Every size is a ratio of the two systems; p values are adjusted over all sizes together.
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
    ## scale: SCALE_BATCH= SCALE_LENGTHS= QUANTS=
	@jq -sr -f pipelines/phase/scale.jq $(R)/scale/pareto.ndjson | $(PLAIN)
