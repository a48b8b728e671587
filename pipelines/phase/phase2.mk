# phase2.mk - phase 2, baselines: records what the checkpoints are; checks that devices agree (each
# of BASELINE_DEVICES with the first, on the shortest prompts, with sums in f32); and measures the
# share of the machine's limits that both models reach with the settings of the sweeps.
$(R)/baseline/checkpoints.sha256: $(foreach m,LLADA LLAMA JUDGE,$(R)/stamp/model-$(m))
	@mkdir -p $(@D)
	@tail -n +1 $^ > $@.tmp && mv $@.tmp $@

text-$(R)/baseline/flags = \
    $(BASELINE_PROMPTS) $(baseline_LENGTH) $(baseline_BLOCK) $(BASELINE_DTYPE) $(LLADA_FLAGS) / \
    $(LLAMA_FLAGS)

shortest = map(select(.id)) | sort_by([.text, .prompt_ids, .messages] | tojson | length)
$(R)/baseline/prompts.ndjson: $(R)/prompts.ndjson $(R)/baseline/flags
	@jq -sc '$(shortest) | .[:$(BASELINE_PROMPTS)][]' $< > $@.tmp && mv $@.tmp $@

baseline_LENGTH := $(call in_blocks,$(BASELINE_LENGTH))
baseline_BLOCK  := $(call one_block,$(BASELINE_LENGTH))
baseline_STEPS  := $(shell b=$(baseline_BLOCK); echo $$(( $(baseline_LENGTH) / b * ((b + 3) / 4) )))
baseline_llada   = $(BIN)/gen-llada -m $(BASELINE_LLADA) --gen-length $(baseline_LENGTH) \
    --block-length $(baseline_BLOCK) --steps $(baseline_STEPS) $(LLADA_FLAGS)
baseline_llama   = $(BIN)/gen-llama -m $(BASELINE_LLAMA) --max-new $(baseline_LENGTH) $(LLAMA_FLAGS)
# baseline_of: word 1 or 2 of a stem SYSTEM-DEVICE
baseline_of     = $(word $(1),$(subst -, ,$*))
baseline_pairs  = $(foreach s,llada llama,$(1:%=$(s)-%))

$(patsubst %,$(R)/baseline/%.ndjson,$(call baseline_pairs,$(BASELINE_DEVICES))): \
    $(R)/baseline/%.ndjson: $(R)/baseline/prompts.ndjson $(R)/baseline/flags \
    $(R)/stamp/model-BASELINE_$$(MODEL_$$(call baseline_of,1)) \
    $(R)/stamp/tool-gen-$$(call baseline_of,1) | $(PIPE)
	$(call say,gen-$(call baseline_of,1) baseline on $(call baseline_of,2))\
	    $(once) $(alone) $(baseline_$(call baseline_of,1)) --device $(call baseline_of,2) \
	    --dtype $(BASELINE_DTYPE) $< -o $@

# Compares each other device with the first one. The other device is the base of compare, so that
# all answers of the first device count: an answer that the other device lacks is not identical.
BASELINE := $(patsubst %,$(R)/baseline/agree-%.ndjson,\
                $(call baseline_pairs,$(wordlist 2,9,$(BASELINE_DEVICES))))
$(BASELINE): $(R)/baseline/agree-%.ndjson: \
    $(R)/baseline/$$(call baseline_of,1)-$(firstword $(BASELINE_DEVICES)).ndjson \
    $(R)/baseline/%.ndjson $(TOOL)-compare
	@$(BIN)/compare -q --same-ids $(AGREE) $(word 2,$^) $(word 1,$^) -o $@.tmp || \
	    { jq -r '.text // empty' $@.tmp | $(PLAIN); exit 1; }
	@jq -r '.text // empty' $@.tmp | $(PLAIN)
	@mv $@.tmp $@

share_FLAGS = $(TIMING) $(SHARE_ROUNDS) $(GEN_LENGTH) $(BLOCK_LENGTH) $(SHARE_STEPS) $(GEN_FLAGS)
text-$(R)/baseline/share-flags = $(share_FLAGS) / $(LLADA_FLAGS) / $(LLAMA_FLAGS)

SHARE_STEPS := $(call steps_in,$(GEN_LENGTH),$(firstword $(call split,$(STEPS))))
LLADA_SHARE = --steps $(SHARE_STEPS) --gen-length $(GEN_LENGTH) --block-length $(BLOCK_LENGTH)
LLAMA_SHARE = --max-new $(GEN_LENGTH) --contract fixed
SHARE_RUNS := $(R)/baseline/share-llada.ndjson $(R)/baseline/share-llama.ndjson
$(SHARE_RUNS): $(R)/baseline/share-%.ndjson: $(R)/baseline/prompts.ndjson \
    $(R)/baseline/share-flags $(R)/stamp/model-$$(MODEL_$$*) $(R)/stamp/tool-gen-% | $(PIPE)
	$(call say,gen-$* share of the limits)\
	    $(once) $(alone) $(BIN)/gen-$* -m $($(MODEL_$*)) $($(MODEL_$*)_SHARE) $(TIMING) \
	    --repeat $(SHARE_ROUNDS) --seed $(SEED) $(GEN_FLAGS) $($(MODEL_$*)_FLAGS) $< -o $@

$(R)/baseline/shares.ndjson: $(SHARE_RUNS) $(R)/ceilings.ndjson $(TOOL)-measure | $(QUIET)
	$(call say,measure shares of the limits)\
	    $(beside) $(BIN)/measure $(filter %.ndjson,$^) -o $@

PHASE2 := $(R)/baseline/checkpoints.sha256 $(BASELINE) $(R)/baseline/shares.ndjson
.PHONY: phase2
phase2: $(PHASE2) ##run checkpoints, agreement of devices, share of the limits; seconds
	@jq -sr -f pipelines/phase/roof.jq $(R)/baseline/shares.ndjson | $(PLAIN)
