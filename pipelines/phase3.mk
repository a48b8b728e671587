# phase3.mk - harness: can it tell the same from the different? One model runs under two names (its
# launches in turn), and once more slowed by a known factor; the first two must come out SAME.
SLOWED := 1.25

AA_EVEN = $(filter $(foreach d,0 2 4 6 8,%$(d).ndjson),$(aa_FILES))
AA_ODD  = $(filter-out $(AA_EVEN),$(aa_FILES))
rename  = jq -c 'select(.kind == "generation") | \
    .model += "-$(1)" | .config += " as=$(1)" | .point = (.point // .config) + "-$(1)"'

$(R)/aa/self.ndjson: $(aa_FILES)
	@cat $(AA_EVEN) | jq -c 'select(.kind == "generation")' > $@.tmp && mv $@.tmp $@

$(R)/aa/twin.ndjson: $(aa_FILES)
	@cat $(AA_ODD) | $(call rename,twin) > $@.tmp && mv $@.tmp $@

$(R)/aa/slow.ndjson: $(aa_FILES)
	@cat $(AA_ODD) | $(call rename,slow) | jq -c '.e2e_ns *= $(SLOWED)' > $@.tmp && mv $@.tmp $@

$(R)/aa/both.ndjson: $(foreach n,self twin slow,$(R)/aa/$(n).ndjson) $(BIN)/measure | $(QUIET)
	$(call say,measure A/A)$(beside) $(BIN)/measure $(filter %.ndjson,$^) -o $@

$(R)/aa/verdict.ndjson: $(R)/aa/both.ndjson pipelines/same.jq
	@jq -sc -f pipelines/same.jq --arg factor $(SLOWED) $< > $@.tmp
	@jq -r .text $@.tmp
	@[ -z '$(STRICT)' ] || jq -e .pass $@.tmp > /dev/null
	@mv $@.tmp $@

.PHONY: phase3
phase3: $(R)/prompts.ndjson $(R)/aa/metrics.ndjson $(R)/aa/verdict.ndjson \
    ## harness: A/A test, AA_LAUNCHES=
