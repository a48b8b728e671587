# phase3.mk - harness: can it tell equal from different? Each model runs as three parties, in the
# design of the experiment: itself, a twin, and a slow twin that computes one pass in 19 twice.
# The twin must come out SAME and the slow twin SLOWER, by processor time and by the wall clock.
#
# The commands of the schedule are in sweep.mk; those of the launches are here.
SWEPT       += aa
aa_SYSTEMS  := llada,llama
aa_STEPS    := $(or $(AA_STEPS),$(AA_LENGTH))
aa_BATCH    := 1
aa_ROUNDS   := $(AA_ROUNDS)
aa_LENGTH   := $(AA_LENGTH)
aa_BLOCK    := $(AA_LENGTH)
aa_CONTRACT := fixed
aa_LAUNCHES := $(call launches_of,aa,$(AA_LAUNCHES))
aa_PROMPTS  := $(timed_prompts)
# More rounds over the prompts take the place of repeats of disturbed batches.
aa_TIMING   := $(if $(filter 1,$(AA_ROUNDS)),$(TIMING),\
                   $(subst --again $(AGAIN),--again 0,$(TIMING)))
AA_PARTIES  := self twin slow
aa_FILES    := $(foreach p,$(AA_PARTIES),$(aa_NAMES:%=$(R)/aa/launch/%-$(p).ndjson))

# every 19th pass runs twice: about 1.05 times the work. (With 20, which has a factor in common with
# the passes of most answers, LLaMA would never repeat a prefill.)
HANDICAP := 19
SLOWED   := 1.05

aa_party    = $(BIN)/gen-$(1) -m $($(2)) --schedule $< \
    --launch $$((10\#$(lastword $(subst -, ,$*)))) $(aa_TIMING) --seed $(SEED) \
    $(GEN_FLAGS) $($(2)_FLAGS) $(aa_PROMPTS) -o $(@D)/$*-$(3).ndjson
aa_parties  = -- $(call aa_party,$(1),$(2),self) -- $(call aa_party,$(1),$(2),twin) \
    -- $(call aa_party,$(1),$(2),slow) --handicap $(HANDICAP)
$(foreach p,$(AA_PARTIES),$(R)/aa/launch/%-$(p).ndjson): $(R)/aa/launch/%.plan $(aa_PROMPTS) \
    $(R)/stamp/aa-flags \
    $(foreach s,LLADA LLAMA,$(R)/stamp/model-$(s)) \
    $(foreach s,llada llama,$(R)/stamp/tool-gen-$(s)) | $(PIPE)
	$(call say,A/A $*)\
	    $(call complete,$(AA_PARTIES:%=$(@D)/$*-%.ndjson)) \
	    $(once) $(alone) pipelines/bin/side-by-side $(@D) $(SEED) \
	    $(lastword $(subst -, ,$*)) $(way) \
	    $(call aa_parties,$(firstword $(subst -, ,$*)),$(MODEL_$(firstword $(subst -, ,$*))))
	@touch $(AA_PARTIES:%=$(@D)/$*-%.ndjson)

text-$(R)/stamp/aa-flags = $(aa_TIMING) $(way) $(GEN_FLAGS) / $(LLADA_FLAGS) / $(LLAMA_FLAGS) \
    $(HANDICAP)

named    = jq -c 'select(.kind == "generation") | .model = "$(1)" | .config += " as=$(1)" | \
    .point = (.point // .config) + "-$(1)" | del(.handicap)'
$(AA_PARTIES:%=$(R)/aa/%.ndjson): $(R)/aa/%.ndjson: $(aa_FILES)
	@cat $(aa_NAMES:%=$(R)/aa/launch/%-$*.ndjson) | $(call named,$*) > $@.tmp && mv $@.tmp $@

$(R)/aa/both.ndjson: $(AA_PARTIES:%=$(R)/aa/%.ndjson) $(TOOL)-measure | $(QUIET)
	$(call say,measure A/A)$(beside) $(BIN)/measure $(filter %.ndjson,$^) -o $@

text-$(R)/stamp/aa-precision = $(AA_PRECISION)
$(R)/aa/ratios.ndjson: $(R)/aa/both.ndjson $(R)/aa/stopped $(R)/stamp/aa-precision \
    $(TOOL)-compare | $(QUIET)
	$(call say,compare A/A)\
	    $(beside) $(BIN)/compare --by model --base self --cost e2e_ns \
	    --precision $(AA_PRECISION) --stopped "$$(cat $(R)/aa/stopped)" $< -o $@

$(R)/aa/verdict.ndjson: $(R)/aa/ratios.ndjson $(TOOL)-compare | $(QUIET)
	$(call say,compare self-test)\
	    $(beside) $(BIN)/compare --self-test $(SLOWED) $< -o $@.tmp
	@jq -r '.text // empty' $@.tmp
	@[ -z '$(STRICT)' ] || jq -se 'map(select(.kind == "check")) | all(.pass)' $@.tmp > /dev/null
	@mv $@.tmp $@

.PHONY: phase3
phase3: $(R)/prompts.ndjson $(R)/aa/verdict.ndjson \
    ##run self-test: equal models must be SAME, a slow twin SLOWER
