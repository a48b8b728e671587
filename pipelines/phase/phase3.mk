# phase3.mk - phase 3, harness: tests whether the design can tell equal from different. Each model
# runs as three parties, in the design of the experiment: the model, a twin, and a slow twin that
# computes one pass in 19 twice. The twin must come out SAME and the slow twin SLOWER, by processor
# time and by the wall clock.
#
# The commands of the schedule are in sweep.mk; those of the launches are here.
SWEPT       += aa
aa_SYSTEMS  := llada,llama
aa_LENGTH   := $(call in_blocks,$(AA_LENGTH))
aa_STEPS    := $(call steps_in,$(aa_LENGTH),$(or $(AA_STEPS),$(aa_LENGTH)))
aa_BATCH    := 1
aa_ROUNDS   := $(AA_ROUNDS)
aa_BLOCK    := $(call one_block,$(AA_LENGTH))
aa_CONTRACT := fixed
aa_LAUNCHES := $(call launches_of,aa,$(AA_LAUNCHES))
aa_PROMPTS  := $(timed_prompts)
# The self-test runs more rounds over the prompts instead of repeating disturbed batches.
aa_TIMING   := $(if $(filter 1,$(AA_ROUNDS)),$(TIMING),\
                   $(subst --again $(AGAIN),--again 0,$(TIMING)))
aa_PARTIES  := self twin slow

# every 19th pass runs twice: about 1.05 times the work. (With 20, which has a factor in common with
# the passes of most answers, LLaMA would never repeat a prefill.)
HANDICAP := 19
SLOWED   := 1.05

# Sweeps whose parties are one model under several names list them in NAME_PARTIES. PARTY runs the
# programs of BIN_PARTY (default: $(BIN)) with the options FLAGS_PARTY.
FLAGS_slow  = --handicap $(HANDICAP)
party       = -- $(or $(BIN_$(1)),$(BIN))/gen-$(2) -m $($(3)) --schedule $< \
    --launch $$((10\#$(lastword $(subst -, ,$*)))) $(aa_TIMING) --seed $(SEED) \
    $(GEN_FLAGS) $($(3)_FLAGS) $(aa_PROMPTS) -o $(@D)/$*-$(1).ndjson $(FLAGS_$(1))
# programs that changed under the same path make another party
hash_of     = $(if $(1),$(shell cat $(1)/gen-llada $(1)/gen-llama 2>/dev/null | sha256sum))
party_files = $(foreach p,$($(1)_PARTIES),$(2:%=$(R)/$(1)/launch/%-$(p).ndjson))
named       = jq -c 'select(.kind == "generation") | .model = "$(1)" | .config += " as=$(1)" | \
    .point = (.point // .config) + "-$(1)" | del(.handicap)'

# $(call parties,NAME)
define parties
$(1)_FILES := $(call party_files,$(1),$($(1)_NAMES))
$(call party_files,$(1),%): $(R)/$(1)/launch/%.plan $(aa_PROMPTS) $(R)/stamp/$(1)-flags \
    $(foreach s,LLADA LLAMA,$(R)/stamp/model-$(s)) \
    $(foreach s,llada llama,$(R)/stamp/tool-gen-$(s)) | $(PIPE)
	$$(call say,$(1) $$*)\
	    $$(call complete,$(patsubst %,$$(@D)/$$*-%.ndjson,$($(1)_PARTIES))) \
	    $$(once) $$(alone) pipelines/bin/side-by-side $$(@D) $$(SEED) \
	    $$(lastword $$(subst -, ,$$*)) $$(way) $$(foreach p,$($(1)_PARTIES),$$(call \
	    party,$$(p),$$(firstword $$(subst -, ,$$*)),$$(MODEL_$$(firstword $$(subst -, ,$$*)))))
	@touch $(patsubst %,$$(@D)/$$*-%.ndjson,$($(1)_PARTIES))

text-$(R)/stamp/$(1)-flags = $$(aa_TIMING) $$(way) $$(GEN_FLAGS) / $$(LLADA_FLAGS) / \
    $$(LLAMA_FLAGS) $$(foreach p,$($(1)_PARTIES),$$(call hash_of,$$(BIN_$$(p))) $$(FLAGS_$$(p)))

$($(1)_PARTIES:%=$(R)/$(1)/%.ndjson): $(R)/$(1)/%.ndjson: $$($(1)_FILES)
	@cat $($(1)_NAMES:%=$(R)/$(1)/launch/%-$$*.ndjson) | $$(call named,$$*) > $$@.tmp
	@mv $$@.tmp $$@

$(R)/$(1)/both.ndjson: $($(1)_PARTIES:%=$(R)/$(1)/%.ndjson) $(TOOL)-measure | $(QUIET)
	$$(call say,measure $(1))$$(beside) $$(BIN)/measure $$(filter %.ndjson,$$^) -o $$@

$(R)/$(1)/ratios.ndjson: $(R)/$(1)/both.ndjson $(R)/$(1)/stopped $(R)/stamp/aa-precision \
    $(TOOL)-compare | $(QUIET)
	$$(call say,compare $(1))\
	    $$(beside) $$(BIN)/compare --by model --base $(firstword $($(1)_PARTIES)) --cost e2e_ns \
	    --precision $$(AA_PRECISION) --stopped "$$$$(cat $(R)/$(1)/stopped)" $$< -o $$@
endef
$(eval $(call parties,aa))

text-$(R)/stamp/aa-precision = $(AA_PRECISION)

$(R)/aa/verdict.ndjson: $(R)/aa/ratios.ndjson $(TOOL)-compare | $(QUIET)
	$(call say,compare self-test)\
	    $(beside) $(BIN)/compare --self-test $(SLOWED) $< -o $@.tmp
	@jq -r '.text // empty' $@.tmp
	@[ -z '$(STRICT)' ] || jq -se 'map(select(.kind == "check")) | all(.pass)' $@.tmp > /dev/null
	@mv $@.tmp $@

.PHONY: phase3
phase3: $(R)/prompts.ndjson $(R)/aa/verdict.ndjson \
    ##run self-test: equal models must be SAME, a slow twin SLOWER

# ---- gate ----

# make gate: is this build slower than an older one? Both builds run the same models in turns, in
# the design of the self-test, so that a busy machine slows both builds.
SWEPT += gate
$(foreach v,SYSTEMS STEPS BATCH ROUNDS LENGTH BLOCK CONTRACT,$(eval gate_$(v) := $(aa_$(v))))
gate_LAUNCHES := $(AA_LAUNCHES)
gate_PARTIES  := old new
BIN_old       := $(OLD)
$(eval $(call parties,gate))

$(R)/gate/verdict.ndjson: $(R)/gate/ratios.ndjson $(TOOL)-compare FORCE | $(QUIET)
	@$(beside) $(BIN)/compare --gate $(GATE) $< -o $@

.PHONY: gate
gate: | $(PIPE) ##develop fail if generation is slower than in OLD=FOLDER; 1 to 4 minutes
	@[ -x '$(OLD)/gen-llada' ] && [ -x '$(OLD)/gen-llama' ] || { echo 'OLD=$(OLD): expected the' \
	    'folder of gen-llada and gen-llama of another build, as OTHER/build/bin' >&2; exit 64; }
	@$(MAKE) --no-print-directory SWEEPS=gate $(R)/gate/verdict.ndjson
