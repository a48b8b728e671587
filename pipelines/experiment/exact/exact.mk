# exact.mk - make exact: what claims to change no token, proven on EXACT_PROMPTS generations of each
# contestant: every case of data/exact.ndjson beside what it is held against, id by id. `make test`
# does the same on a few prompts (tests/cli/exact.bats).
#
#   $(R)/exact/prompts.ndjson -> exactness.ndjson
EXACT_PROMPTS ?= 200
EXACT_LENGTH  ?= 32
EXACT_STEPS   ?= 8
EXACT_FLAGS   ?=
E             := $(R)/exact

text-$(E)/settings = $(EXACT_PROMPTS) $(EXACT_LENGTH) $(EXACT_STEPS) $(EXACT_FLAGS) $(PROMPT_FILE) \
    $(PROMPT_FLAGS) $(SEED) / $(LLADA) $(LLAMA) $(JUDGE)

$(E)/prompts.ndjson: $(PROMPT_FILE) $(E)/settings $(R)/stamp/tool-prep-prompts | $(PIPE)
	$(call say,prompts of exact)\
	    $(BIN)/prep-prompts --seed $(SEED) --count $(EXACT_PROMPTS) --fits $(LLADA),$(LLAMA) \
	    --room $(EXACT_LENGTH) $(PROMPT_FEWER) $(PROMPT_FLAGS) $(PROMPT_FILE) -o $@

$(E)/exactness.ndjson: data/exact.ndjson $(E)/prompts.ndjson pipelines/bin/exact \
    pipelines/experiment/exact/exact.jq \
    $(foreach m,LLADA LLAMA JUDGE,$(R)/stamp/model-$(m)) \
    $(foreach t,gen-llada gen-llama,$(R)/stamp/tool-$(t)) | $(PIPE)
	$(call say,exact)\
	    $(beside) env BIN='$(BIN)' LLADA='$(LLADA)' LLAMA='$(LLAMA)' JUDGE='$(JUDGE)' \
	    EXACT_LENGTH=$(EXACT_LENGTH) EXACT_STEPS=$(EXACT_STEPS) \
	    pipelines/bin/exact $< $(E)/prompts.ndjson $(E)/run $(EXACT_FLAGS) > $@.tmp && mv $@.tmp $@

.PHONY: exact keep-exact
exact: $(E)/exactness.ndjson ## what claims to change no token, on EXACT_PROMPTS=200 generations
	@jq -nr -f pipelines/experiment/exact/exactness.jq $< | $(PLAIN)

keep-exact: $(E)/exactness.ndjson ## keep what make exact found in data/PROFILE
	@mkdir -p data/$(PROFILE) && cp $< data/$(PROFILE)/exactness.ndjson
