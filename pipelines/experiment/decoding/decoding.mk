# decoding.mk - ways of decoding side by side: methods of data/methods.ndjson that any model has,
# on the prompts of phase 4, one answer at a time to the end of its text, held against the first
# method of its model. A method is settings, so its points are those of any sweep.
#
#   $(R)/decoding/metrics.ndjson, exact.ndjson -> comparison.ndjson -> figures/methods.svg
METHODS_FILE := data/methods.ndjson
# launches of each method
DECODING_LAUNCHES ?= $(LAUNCHES)

# The named ones of the file, and the first of each system.
$(R)/methods.ndjson: $(R)/stamp/methods $(METHODS_FILE) pipelines/experiment/decoding/methods.jq
	@jq -cn --arg names '$(METHODS)' --arg draft '$(DRAFT)' \
	    -f pipelines/experiment/decoding/methods.jq $(METHODS_FILE) > $@.tmp
	@mv $@.tmp $@

# Those that any model can run, and those that METHODS names for its drafter.
$(R)/all-methods.ndjson: $(METHODS_FILE) $(R)/stamp/methods
	@jq -c --arg names '$(if $(DRAFT),$(METHODS))' 'select(.only == null and (.drafter == null or \
	    (.method as $$m | $$names | split(" ") | index($$m))))' $< > $@.tmp
	@mv $@.tmp $@

# Phase 5 has step counts of its own, so the base methods are left out.
$(R)/scale-methods.ndjson: $(METHODS_FILE) $(R)/stamp/scale-methods
	@jq -c 'select(.method as $$m | "$(SCALE_METHODS)" | split(" ") | index($$m))' $< > $@.tmp
	@mv $@.tmp $@

text-$(R)/stamp/methods = $(METHODS)$(DRAFT:%= %)
text-$(R)/stamp/scale-methods = $(SCALE_METHODS)

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

# The page tells of all methods where they were run, else of those of phase 4.
DECODING := $(R)/decoding/by-method.ndjson $(R)/decoding/ratios.ndjson \
            $(R)/decoding/metrics.ndjson $(R)/all-methods.ndjson
BY_METHOD = $(if $(filter $(DECODED) decoding,$(GOALS)),$(DECODING),\
              $(if $(METHODS),$(R)/steps/by-method.ndjson $(R)/methods.ndjson))

.PHONY: decoding
decoding: $(DECODING) $(R)/figures/methods.svg ##run speed and accuracy of every decoding method
	@jq -r -n -f pipelines/experiment/decoding/decoding.jq $(DECODING) | $(PLAIN)
