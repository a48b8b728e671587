# exact.mk - make exact: checks that options which claim to change no token change none. Every case
# of data/exact.ndjson is compared with its base, id by id, on EXACT_PROMPTS prompts of each model.
# make test does this on a few prompts (tests/cli/exact.bats).
#
#   $(R)/exact/prompts.ndjson -> exactness.ndjson

# number of prompts
EXACT_PROMPTS ?= 200
# tokens to generate
EXACT_LENGTH  ?= 32
# denoising steps
EXACT_STEPS   ?= 8
# more options of both generators
EXACT_FLAGS   ?=
E             := $(R)/exact
# whole blocks where the mask has blocks
exact_LENGTH  := $(call in_blocks,$(EXACT_LENGTH))
exact_STEPS   := $(call steps_in,$(EXACT_LENGTH),$(EXACT_STEPS))
EXACT_BLOCK   := $(call one_block,$(EXACT_LENGTH))

text-$(E)/settings = $(EXACT_PROMPTS) $(exact_LENGTH) $(EXACT_BLOCK) $(exact_STEPS) \
    $(EXACT_FLAGS) $(PROMPT_FILE) $(PROMPT_FLAGS) $(SEED) / $(LLADA) $(LLAMA) $(JUDGE)

$(E)/prompts.ndjson: $(PROMPT_FILE) $(E)/settings $(R)/stamp/tool-prep-prompts | $(PIPE)
	$(call say,prompts of exact)\
	    $(BIN)/prep-prompts --seed $(SEED) --count $(EXACT_PROMPTS) --fits $(LLADA),$(LLAMA) \
	    --room $(exact_LENGTH) $(PROMPT_FEWER) $(PROMPT_FLAGS) $(PROMPT_FILE) -o $@

$(E)/exactness.ndjson: data/exact.ndjson $(E)/prompts.ndjson pipelines/bin/exact \
    $(foreach m,LLADA LLAMA JUDGE,$(R)/stamp/model-$(m)) \
    $(foreach t,gen-llada gen-llama compare,$(R)/stamp/tool-$(t)) | $(PIPE)
	$(call say,exact)\
	    $(beside) env BIN='$(BIN)' LLADA='$(LLADA)' LLAMA='$(LLAMA)' JUDGE='$(JUDGE)' \
	    EXACT_LENGTH=$(exact_LENGTH) EXACT_BLOCK=$(EXACT_BLOCK) EXACT_STEPS=$(exact_STEPS) \
	    pipelines/bin/exact $< $(E)/prompts.ndjson $(E)/run $(EXACT_FLAGS) > $@.tmp && mv $@.tmp $@

.PHONY: exact keep-exact
exact: $(E)/exactness.ndjson ##run check that exact options change no token (EXACT_PROMPTS=)
	@jq -nr -f pipelines/experiment/exact/exactness.jq $< | $(PLAIN)

keep-exact: $(E)/exactness.ndjson ##develop store the records of make exact in data/PROFILE
	@mkdir -p data/$(PROFILE) && cp $< data/$(PROFILE)/exactness.ndjson
