# decoding.mk - make decoding: compares the methods of data/methods.ndjson that any model has with
# the first method of their model. They answer the prompts of phase 4, one at a time, to the end of
# the text. A method is a set of settings, so its points are measured like the points of any sweep.
#
#   $(R)/decoding/metrics.ndjson, exact.ndjson -> comparison.ndjson -> figures/methods.svg
METHODS_FILE := data/methods.ndjson
# launches of each method
DECODING_LAUNCHES ?= $(LAUNCHES)

# make stops if no method uses the drafter of DRAFT, because it would be loaded for nothing.
ifneq ($(and $(DRAFT),$(runs)),)
DRAFTED := $(shell jq -r 'select(.drafter).method' $(METHODS_FILE))
ifeq ($(filter $(DRAFTED),$(METHODS) $(SCALE_METHODS)),)
$(error DRAFT=$(DRAFT) (64): no method uses it: expected METHODS= with one of $(DRAFTED))
endif
endif

# $(call select_methods,NAMES,BASE): selects the methods of the file that NAMES lists. If BASE is
# true, also the first method of each system. A method that needs a drafter of another family than
# DRAFT is an error.
select_methods = $(if $(DRAFT),family=$$($(BIN)/gen-llama -q --no-meta --explain -m $(LLAMA) \
        $(GEN_FLAGS) $(LLAMA_FLAGS) --draft $(DRAFT) --draft-tokens 1 \
        <<< '{"prompt": "a"}' | jq -r .draft_arch) && \
    )jq -cn --arg names '$(1)' --argjson base $(2) --arg draft '$(DRAFT)' \
        --arg family "$${family-}" -f pipelines/experiment/decoding/methods.jq $(METHODS_FILE)
TO_SELECT := pipelines/experiment/decoding/methods.jq $(METHODS_FILE) \
             $(if $(DRAFT),$(R)/stamp/model-DRAFT $(R)/stamp/model-LLAMA)
SELECTS   := $(if $(DRAFT),$(BIN)/gen-llama)

$(R)/methods.ndjson: $(R)/stamp/methods $(TO_SELECT) | $(SELECTS)
	@$(call select_methods,$(METHODS),true) > $@.tmp
	@mv $@.tmp $@

# The methods that any model can run, and the methods that METHODS names for its drafter.
any_model := . as $$row | select(.only == null and \
    (.drafter == null or ($$names | split(" ") | index($$row.method))))
$(R)/all-methods.ndjson: $(METHODS_FILE) $(R)/stamp/methods \
    $(if $(METHODS),$(R)/methods.ndjson)
	@jq -c --arg names '$(if $(DRAFT),$(METHODS))' '$(any_model)' $< > $@.tmp
	@mv $@.tmp $@

# Phase 5 has step counts of its own, so the base methods are left out.
$(R)/scale-methods.ndjson: $(R)/stamp/scale-methods $(TO_SELECT) | $(SELECTS)
	@$(call select_methods,$(SCALE_METHODS),false) > $@.tmp
	@mv $@.tmp $@

text-$(R)/stamp/methods = $(METHODS)$(DRAFT:%= %)
text-$(R)/stamp/scale-methods = $(SCALE_METHODS)$(DRAFT:%= %)

decoding_SYSTEMS  := llada,llama
decoding_STEPS    := $(GEN_LENGTH)
decoding_CONTRACT := answer
decoding_BATCH    := 1
decoding_LENGTH   := $(GEN_LENGTH)
decoding_BLOCK    := $(BLOCK_LENGTH)
decoding_LAUNCHES := $(DECODING_LAUNCHES)
decoding_PROMPTS  := $(R)/prompts.ndjson
decoding_ANSWERS  := $(R)/decoding/exact.ndjson
decoding_METHODS  := $(R)/all-methods.ndjson
SWEPT             += decoding

# the methods of a sweep
methods_of_decoding := $(R)/all-methods.ndjson
methods_of_steps    := $(R)/methods.ndjson
$(R)/decoding/by-method.ndjson $(R)/steps/by-method.ndjson: $(R)/%/by-method.ndjson: \
    $(R)/%/metrics.ndjson $(R)/%/exact.ndjson $$(methods_of_$$*) $(TOOL)-compare | $(QUIET)
	$(call say,compare methods of $*)\
	    $(beside) $(BIN)/compare --methods $(methods_of_$*) --cost e2e_ns --seed $(SEED) \
	    --precision $(PRECISION) $(R)/$*/metrics.ndjson $(R)/$*/exact.ndjson -o $@

$(R)/decoding/generations.ndjson: $(decoding_FILES) pipelines/phase/distinct.jq
	@jq -cn -f pipelines/phase/distinct.jq $(decoding_FILES) > $@.tmp && mv $@.tmp $@

$(R)/decoding/exact.ndjson: $(R)/decoding/generations.ndjson $(TOOL)-score-exact | $(QUIET)
	$(call say,score-exact of decoding)\
	    $(beside) $(BIN)/score-exact $< -o $@

# The page shows all methods if make decoding ran, else the methods of phase 4.
DECODING := $(R)/decoding/by-method.ndjson $(R)/decoding/ratios.ndjson \
            $(R)/decoding/metrics.ndjson $(R)/all-methods.ndjson
BY_METHOD = $(if $(filter $(DECODED) decoding,$(GOALS)),$(DECODING),\
              $(if $(METHODS),$(R)/steps/by-method.ndjson $(R)/methods.ndjson))

.PHONY: decoding
decoding: $(DECODING) $(R)/figures/methods.svg ##run speed and accuracy of every decoding method
	@jq -r -n -f pipelines/experiment/decoding/decoding.jq $(DECODING) | $(PLAIN)
