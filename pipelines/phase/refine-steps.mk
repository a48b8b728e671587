# refine-steps.mk - measures more step counts where the two models meet: the step counts that
# `pareto --suggest` names are added to STEPS and measured. This ends when the intervals of the
# crossovers are narrower than half an octave (a factor of 1.41), when no step count lies between,
# or when BUDGET_MINUTES are over. Added step counts stay.
$(R)/steps/suggest.ndjson: $(R)/steps/metrics.ndjson $(SCORED) $(R)/stamp/pareto $(TOOL)-pareto \
    | $(QUIET)
	$(call say,pareto --suggest)\
	    $(beside) $(BIN)/pareto $(pareto_flags) --suggest --octaves 0.5 \
	    $(filter %.ndjson,$^) -o $@

.PHONY: refine-steps
refine-steps: | $(PIPE) ##run more step counts until the crossovers are precise
	@MAKE='$(MAKE) --no-print-directory' pipelines/bin/refine-steps $(R) $(steps_STEPS) \
	    $(BUDGET_MINUTES)
