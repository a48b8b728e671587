# phase2.mk - baselines: what the checkpoints are, whether the devices agree (the first one of
# BASELINE_DEVICES against the others, on the shortest prompts, with sums in f32), and the share of
# the machine's limits that both models reach with the settings of the sweeps.
$(R)/baseline/checkpoints.sha256: $(foreach m,LLADA LLAMA JUDGE,$(R)/stamp/model-$(m))
	@mkdir -p $(@D)
	@tail -n +1 $^ > $@.tmp && mv $@.tmp $@

text-$(R)/baseline/flags = \
    $(BASELINE_PROMPTS) $(BASELINE_LENGTH) $(BASELINE_DTYPE) $(LLADA_FLAGS) / \
    $(LLAMA_FLAGS)

shortest = map(select(.id)) | sort_by([.text, .prompt_ids, .messages] | tojson | length)
$(R)/baseline/prompts.ndjson: $(R)/prompts.ndjson $(R)/baseline/flags
	@jq -sc '$(shortest) | .[:$(BASELINE_PROMPTS)][]' $< > $@.tmp && mv $@.tmp $@

BASELINE_STEPS := $(shell echo $$(( ($(BASELINE_LENGTH) + 3) / 4 )))
define baseline
$(R)/baseline/llada-$(1).ndjson: $(R)/baseline/prompts.ndjson $(R)/baseline/flags \
    $(R)/stamp/model-BASELINE_LLADA $(R)/stamp/tool-gen-llada | $(PIPE)
	$$(call say,gen-llada baseline on $(1))\
	    $$(once) $(alone) $(BIN)/gen-llada -m $(BASELINE_LLADA) --device $(1) \
	    --dtype $(BASELINE_DTYPE) --gen-length $(BASELINE_LENGTH) --block-length $(BASELINE_LENGTH) \
	    --steps $(BASELINE_STEPS) $(LLADA_FLAGS) $$< -o $$@

$(R)/baseline/llama-$(1).ndjson: $(R)/baseline/prompts.ndjson $(R)/baseline/flags \
    $(R)/stamp/model-BASELINE_LLAMA $(R)/stamp/tool-gen-llama | $(PIPE)
	$$(call say,gen-llama baseline on $(1))\
	    $$(once) $(alone) $(BIN)/gen-llama -m $(BASELINE_LLAMA) --device $(1) \
	    --dtype $(BASELINE_DTYPE) --max-new $(BASELINE_LENGTH) $(LLAMA_FLAGS) $$< -o $$@

# Compares each other device with the first one.
$(R)/baseline/agree-%-$(1).ndjson: $(R)/baseline/%-$(firstword $(BASELINE_DEVICES)).ndjson \
    $(R)/baseline/%-$(1).ndjson pipelines/phase/agree.jq
	@jq -nc -f pipelines/phase/agree.jq --slurpfile a $$(word 1,$$^) \
	    --slurpfile b $$(word 2,$$^) --arg arch $$* \
	    --arg first $(firstword $(BASELINE_DEVICES)) --arg second $(1) --arg least $(AGREE) > $$@.tmp
	@jq -r .text $$@.tmp | $(PLAIN)
	@jq -e .pass $$@.tmp > /dev/null && mv $$@.tmp $$@
endef
$(foreach d,$(BASELINE_DEVICES),$(eval $(call baseline,$(d))))
BASELINE := $(foreach d,$(wordlist 2,9,$(BASELINE_DEVICES)),$(R)/baseline/agree-llada-$(d).ndjson \
                                                            $(R)/baseline/agree-llama-$(d).ndjson)

share_FLAGS = $(TIMING) $(SHARE_ROUNDS) $(GEN_LENGTH) $(BLOCK_LENGTH) $(SHARE_STEPS) $(GEN_FLAGS)
text-$(R)/baseline/share-flags = $(share_FLAGS) / $(LLADA_FLAGS) / $(LLAMA_FLAGS)

SHARE_STEPS = $(firstword $(call split,$(STEPS)))
LLADA_SHARE = --steps $(SHARE_STEPS) --gen-length $(GEN_LENGTH) --block-length $(BLOCK_LENGTH)
LLAMA_SHARE = --max-new $(GEN_LENGTH) --contract fixed
define share
$(R)/baseline/share-$(1).ndjson: $(R)/baseline/prompts.ndjson $(R)/baseline/share-flags \
    $(R)/stamp/model-$(2) $(R)/stamp/tool-gen-$(1) | $(PIPE)
	$$(call say,gen-$(1) share of the limits)\
	    $$(once) $(alone) $(BIN)/gen-$(1) -m $($(2)) $($(2)_SHARE) $(TIMING) \
	    --repeat $(SHARE_ROUNDS) --seed $(SEED) $(GEN_FLAGS) $($(2)_FLAGS) $$< -o $$@
endef
$(eval $(call share,llada,LLADA))
$(eval $(call share,llama,LLAMA))

$(R)/baseline/shares.ndjson: $(foreach s,llada llama,$(R)/baseline/share-$(s).ndjson) \
    $(R)/ceilings.ndjson $(TOOL)-measure | $(QUIET)
	$(call say,measure shares of the limits)\
	    $(beside) $(BIN)/measure $(filter %.ndjson,$^) -o $@

PHASE2 := $(R)/baseline/checkpoints.sha256 $(BASELINE) $(R)/baseline/shares.ndjson
.PHONY: phase2
phase2: $(PHASE2) ##run checkpoints, agreement of devices, share of the limits; seconds
	@jq -sr -f pipelines/phase/roof.jq $(R)/baseline/shares.ndjson | $(PLAIN)
