# phase3.mk - harness: can it tell the same from the different? One model runs under two names, its
# launches in turn as those of two systems are (A B B A ...): they must come out SAME. And once more
# with the times of its records multiplied by a known factor, which must come out SLOWER: that tests
# the resolution of the statistics, not the clock. LLaMA alone: it is the base of every ratio.
SLOWED := 1.05
# Half of the zone that SAME means: how far launches are added (make refine).
AA_PRECISION ?= 0.01

# Those whose place among four is the second or the third: llama-001, 002, 005, 006 ...
AA_TWIN = $(shell printf '%s\n' $(aa_NAMES) | awk -F - '$$NF % 4 == 1 || $$NF % 4 == 2')
AA_SELF = $(filter-out $(AA_TWIN),$(aa_NAMES))
named   = jq -c 'select(.kind == "generation") | .model = "$(1)" | .config += " as=$(1)" | \
    .point = (.point // .config) + "-$(1)"'

$(R)/aa/self.ndjson: $(aa_FILES)
	@cat $(AA_SELF:%=$(R)/aa/launch/%.ndjson) | $(call named,self) > $@.tmp && mv $@.tmp $@

$(R)/aa/twin.ndjson: $(aa_FILES)
	@cat $(AA_TWIN:%=$(R)/aa/launch/%.ndjson) | $(call named,twin) > $@.tmp && mv $@.tmp $@

$(R)/aa/slow.ndjson: $(aa_FILES)
	@cat $(AA_TWIN:%=$(R)/aa/launch/%.ndjson) | $(call named,slow) | \
	    jq -c '(.e2e_ns, .batch_ns | numbers) *= $(SLOWED)' > $@.tmp && mv $@.tmp $@

$(R)/aa/both.ndjson: $(foreach n,self twin slow,$(R)/aa/$(n).ndjson) $(TOOL)-measure | $(QUIET)
	$(call say,measure A/A)$(beside) $(BIN)/measure $(filter %.ndjson,$^) -o $@

text-$(R)/stamp/aa-precision = $(AA_PRECISION)
$(R)/aa/ratios.ndjson: $(R)/aa/both.ndjson $(R)/aa/stopped $(R)/stamp/aa-precision \
    $(TOOL)-compare | $(QUIET)
	$(call say,compare A/A)\
	    $(beside) $(BIN)/compare --by model --base self --cost e2e_ns \
	    --precision $(AA_PRECISION) --stopped "$$(cat $(R)/aa/stopped)" $< -o $@

$(R)/aa/verdict.ndjson: $(R)/aa/ratios.ndjson pipelines/same.jq
	@jq -sc -f pipelines/same.jq --arg factor $(SLOWED) $< > $@.tmp
	@jq -r .text $@.tmp
	@[ -z '$(STRICT)' ] || jq -e .pass $@.tmp > /dev/null
	@mv $@.tmp $@

.PHONY: phase3
phase3: $(R)/prompts.ndjson $(R)/aa/metrics.ndjson $(R)/aa/verdict.ndjson \
    ## harness: A/A test, AA_LAUNCHES=
