# shapes.mk - how fast two shapes are and what memory they take, whatever their weights: the sweep
# of a profile whose models are drawn (synth:), where quality is null and passes are alike.
#
# Prompts are ids, as many as a batch has: with equal lengths and contract fixed every prompt is the
# same work, so more of them would say nothing more. Nor would more steps: a pass computes the whole
# canvas, so time is a line in the steps (lib/forecast/along.h). A few short sweeps are
# measured, SHAPE_STEPS, the last of them a check of the line through the others (residual_ratio),
# and the times of SHAPE_TO are records of kind forecast, modelled, with what they rest on.
#
#   $(R)/shape-FORMAT-BATCH/metrics.ndjson -> $(R)/shapes.ndjson
define shape_settings
shape-$(1)-$(2)_SYSTEMS  := llada,llama
shape-$(1)-$(2)_STEPS    := $(SHAPE_STEPS)
shape-$(1)-$(2)_CONTRACT := fixed
shape-$(1)-$(2)_BATCH    := $(2)
shape-$(1)-$(2)_LENGTH   := $(SHAPE_LENGTH)
shape-$(1)-$(2)_BLOCK    := $(SHAPE_LENGTH)
shape-$(1)-$(2)_LAUNCHES := $(LAUNCHES)
shape-$(1)-$(2)_PROMPTS  := $(R)/shape-prompts-$(2).ndjson
shape-$(1)-$(2)_LLADA_FLAGS := --quant $(1)
shape-$(1)-$(2)_LLAMA_FLAGS := --quant $(1)
endef
$(foreach q,$(SHAPE_FORMATS),$(foreach b,$(call split,$(SHAPE_BATCH)),\
    $(eval $(call shape_settings,$(q),$(b)))))
$(foreach s,$(SHAPES),$(eval $(call launches,$(s))))
$(foreach s,$(SHAPES),$(eval $(call metrics,$(s))))

shape_prompt = {id: "p\($$p)", prompt_ids: [range($$n) | (7919 * . + 104729 * $$p) % 400 + 5]}
text-$(R)/stamp/shape-prompts = $(SHAPE_PROMPT)

$(R)/shape-prompts-%.ndjson: $(R)/stamp/shape-prompts
	@jq -nc --argjson n $(SHAPE_PROMPT) 'range($*) as $$p | $(shape_prompt)' > $@.tmp
	@mv $@.tmp $@

text-$(R)/stamp/shape-to = $(SHAPE_TO)

$(R)/shapes.ndjson: $(SHAPES:%=$(R)/%/metrics.ndjson) $(R)/ceilings.ndjson $(R)/stamp/shape-to \
    $(TOOL)-forecast | $(QUIET)
	$(call say,forecast along steps)\
	    $(beside) $(BIN)/forecast --along-steps --steps $(SHAPE_TO) $(filter %.ndjson,$^) -o $@

.PHONY: shapes
shapes: $(R)/shapes.ndjson ## speed and memory of two shapes with drawn weights (PROFILE=cpu-8b)
	@jq -r -f pipelines/experiment/shapes/shapes.jq $<

# What of it is worth keeping, with machine and commit inside.
MEASURED ?= data/measured/$(PROFILE)-$(FP).ndjson
.PHONY: measured
measured: $(SHAPES:%=$(R)/%/metrics.ndjson) $(R)/ceilings.ndjson $(R)/shapes.ndjson ## keep it \
    in data/measured
	@mkdir -p $(dir $(MEASURED))
	@jq -sc -f pipelines/experiment/shapes/measured.jq $^ > $(MEASURED).tmp
	@mv $(MEASURED).tmp $(MEASURED)
	@echo '$(MEASURED)'

# What a forecast is worth: its errors against all that was measured and published, from records
# that are there; nothing is run.
CHECKED := $(wildcard data/measured/*.ndjson)
$(RESULTS)/forecast-check.ndjson: $(CHECKED) data/published.ndjson data/hardware.ndjson \
    $(TOOL)-forecast | $(QUIET)
	$(call say,forecast --check)\
	    $(beside) $(BIN)/forecast -q --check $(CHECKED) -o $@

.PHONY: forecast-check
forecast-check: $(RESULTS)/forecast-check.ndjson ## the errors of forecast where they are known
	@jq -sr -f pipelines/experiment/shapes/forecast-check.jq $<
