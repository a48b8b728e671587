# shapes.mk - make shapes: measures speed and memory of two shapes with random weights. Quality is
# null.
#
# The prompts are token ids, as many prompts as a batch holds. With equal lengths and contract fixed
# every prompt is the same work, so more prompts would add nothing. Each pass computes the whole
# canvas, so time is a line in the steps (lib/forecast/along.h), and a few step counts are enough.
# SHAPE_STEPS are measured; the last of them checks the line through the others (residual_ratio).
# SHAPE_TO are modelled; their times are records of kind forecast.
#
# Each length is a separate sweep. The name of the sweep of the first length has no LENGTH.
#
#   $(R)/shape-FORMAT-BATCH[-LENGTH]/metrics.ndjson -> $(R)/shapes.ndjson

# file that make measured writes
MEASURED      ?= data/measured/$(PROFILE)-$(FP).ndjson
# With MASK_BLOCKS each block is filled in SHAPE_STEPS steps. The default decoding of such a model
# chooses the number of passes and computes only a part of the canvas, so options replace it.
shape_steps    = $(if $(MASK_BLOCKS),$(shell for k in $(call split,$(SHAPE_STEPS)); do \
    n[k*$(call blocks_in,$(1))]=; done; IFS=,; echo "$${!n[*]}"),$(SHAPE_STEPS))
# $(call shape_settings,SWEEP,FORMAT,BATCH,LENGTH)
define shape_settings
$(1)_SYSTEMS  := llada,llama
$(1)_STEPS    := $(call shape_steps,$(4))
$(1)_CONTRACT := fixed
$(1)_BATCH    := $(3)
$(1)_LENGTH   := $(call in_blocks,$(4))
$(1)_BLOCK    := $(call one_block,$(4))
$(1)_LAUNCHES := $(LAUNCHES)
$(1)_PROMPTS  := $(R)/shape-prompts-$(3).ndjson
$(1)_LLADA_FLAGS := --quant $(2)$(if $(MASK_BLOCKS), --unmask schedule --cache none)
$(1)_LLAMA_FLAGS := --quant $(2)
endef
$(foreach q,$(SHAPE_FORMATS),$(foreach b,$(call split,$(SHAPE_BATCH)),$(foreach l,\
    $(call split,$(SHAPE_LENGTH)),$(eval \
    $(call shape_settings,$(call shape_of,$(q),$(b),$(l)),$(q),$(b),$(l))))))
SWEPT += $(SHAPES)

shape_prompt = {id: "p\($$p)", prompt_ids: [range($$n) | (7919 * . + 104729 * $$p) % 400 + 5]}
text-$(R)/stamp/shape-prompts = $(SHAPE_PROMPT)

# Prompts are kept: if make made them again, all sweeps would be measured again.
.PRECIOUS: $(R)/shape-prompts-%.ndjson
$(R)/shape-prompts-%.ndjson: $(R)/stamp/shape-prompts
	@jq -nc --argjson n $(SHAPE_PROMPT) 'range($*) as $$p | $(shape_prompt)' > $@.tmp
	@mv $@.tmp $@

text-$(R)/stamp/shape-to = $(SHAPE_TO)

$(R)/shapes.ndjson: $(SHAPES:%=$(R)/%/metrics.ndjson) $(R)/ceilings.ndjson $(R)/stamp/shape-to \
    $(TOOL)-forecast | $(QUIET)
	$(call say,forecast along steps)\
	    $(beside) $(BIN)/forecast --along-steps --steps $(SHAPE_TO) $(filter %.ndjson,$^) -o $@

.PHONY: shapes
shapes: $(R)/shapes.ndjson ##run speed and memory of the 8B shapes (PROFILE=cpu-8b)
	@jq -r -f pipelines/experiment/shapes/shapes.jq $<

# The records that data/measured keeps, with the machine and the commit.
.PHONY: measured
measured: $(SHAPES:%=$(R)/%/metrics.ndjson) $(R)/ceilings.ndjson $(R)/shapes.ndjson \
    ##develop store the records of make shapes in data/measured
	@mkdir -p $(dir $(MEASURED))
	@jq -sc -f pipelines/experiment/shapes/measured.jq $^ > $(MEASURED).tmp
	@mv $(MEASURED).tmp $(MEASURED)
	@echo '$(MEASURED)'

# The errors of forecast for all stored measurements and published numbers; runs no model.
CHECKED := $(wildcard data/measured/*.ndjson)
$(RESULTS)/forecast-check.ndjson: $(CHECKED) data/published.ndjson data/hardware.ndjson \
    $(TOOL)-forecast | $(QUIET)
	$(call say,forecast --check)\
	    $(beside) $(BIN)/forecast -q --check $(CHECKED) -o $@

.PHONY: forecast-check
forecast-check: $(RESULTS)/forecast-check.ndjson \
    ##look the errors of forecast against measurements
	@jq -sr -f pipelines/experiment/shapes/forecast-check.jq $<
