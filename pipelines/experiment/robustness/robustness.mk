# robustness.mk - make robustness, and a part of phase 5: measures how much an answer depends on the
# arithmetic, with other number formats, batch sizes and instruction sets. The unquantized runs of
# memory.mk are the base. The first ROBUST_PROMPTS of their questions are answered again with one
# setting changed, and compared prompt by prompt: share of answers and of ids that differ, first id
# that differs, accuracy. memory.mk compares quantizations.
#
#   $(R)/robust/SYSTEM-AXIS-VALUE.ndjson -> exact-AXIS.ndjson -> AXIS.ndjson (AXIS: dtype batch isa)

# number of prompts
ROBUST_PROMPTS ?= 16
# number formats
ROBUST_dtype   ?= f32 bf16
# batch sizes
ROBUST_batch   ?= 1 8
# instruction sets; those that this machine lacks are left out
ROBUST_isa     ?= portable $(CPU_LEVELS)

text-$(R)/robust/settings = $(ROBUST_PROMPTS)

$(R)/robust/questions.ndjson: $(R)/quant/questions.ndjson $(R)/robust/settings
	@sed -n '1,$(ROBUST_PROMPTS)p' $< > $@.tmp && mv $@.tmp $@

robust_llada = $(BIN)/gen-llada -m $(LLADA) --steps $(QUANT_STEPS) --gen-length $(QUANT_LENGTH) \
    --block-length $(BLOCK_LENGTH) --batch $(QUANT_BATCH) --seed $(SEED) $(GEN_FLAGS) $(LLADA_FLAGS)
robust_llama = $(BIN)/gen-llama -m $(LLAMA) --max-new $(QUANT_LENGTH) \
    --batch $(QUANT_BATCH) --seed $(SEED) $(GEN_FLAGS) $(LLAMA_FLAGS)
# the value that the base has
robust_base = $$(jq -nr 'first(inputs | select(.kind == "generation")).$(1)' $<)

ROBUST_AXES := dtype batch isa
# SYSTEM, AXIS and VALUE of a stem SYSTEM-AXIS-VALUE
robust_of   = $(word $(1),$(subst -, ,$*))
# $(call robust_made,AXIS): the files of the runs with one setting changed. robust_runs: the base
# too
robust_made = $(foreach s,llada llama,$(ROBUST_$(1):%=$(R)/robust/$(s)-$(1)-%.ndjson))
robust_runs = $(R)/quant/llada-none.ndjson $(R)/quant/llama-none.ndjson $(call robust_made,$(1))

# The file is empty if the base already has the value, or if the machine lacks the instruction set
# (69).
$(foreach a,$(ROBUST_AXES),$(call robust_made,$(a))): $(R)/robust/%.ndjson: \
    $(R)/quant/$$(call robust_of,1)-none.ndjson $(R)/robust/questions.ndjson
	$(call say,gen-$(call robust_of,1) $(call robust_of,2) $(call robust_of,3))\
	    if [ "$(call robust_base,$(call robust_of,2))" = $(call robust_of,3) ]; then : > $@; else \
	        $(once) $(untimed) $(robust_$(call robust_of,1)) --$(call robust_of,2) \
	            $(call robust_of,3) $(R)/robust/questions.ndjson -o $@ || \
	            { code=$$?; [ $(call robust_of,2) = isa ] && [ $$code = 69 ] && : > $@ || \
	                exit $$code; }; \
	    fi

$(ROBUST_AXES:%=$(R)/robust/exact-%.ndjson): $(R)/robust/exact-%.ndjson: \
    $$(call robust_runs,$$*) $(TOOL)-score-exact | $(QUIET)
	$(call say,score-exact $*)\
	    $(beside) $(BIN)/score-exact $(call robust_runs,$*) -o $@

# Comparisons with the base; the file is empty if the base has every value.
$(ROBUST_AXES:%=$(R)/robust/%.ndjson): $(R)/robust/%.ndjson: $$(call robust_runs,$$*) \
    $(R)/robust/exact-%.ndjson $(TOOL)-compare | $(QUIET)
	$(call say,compare $*)\
	    if [ -z "$$(find $(R)/robust -name '*-$*-*.ndjson' -size +0)" ]; then : > $@; else \
	        $(beside) $(BIN)/compare --by $* --base "$(call robust_base,$*)" --seed $(SEED) \
	            $(filter %.ndjson,$^) -o $@; fi

# Random weights give tokens nearly equal probabilities, so their answers differ by chance.
ROBUST := $(if $(filter synth:%,$(LLADA) $(LLAMA)),,\
              $(foreach a,$(ROBUST_AXES),$(if $(ROBUST_$(a)),$(R)/robust/$(a).ndjson)))
.PHONY: robustness
robustness: $(ROBUST) $(QUANT) ##run changes of answers by format, batch, instruction set
	@jq -sr -f pipelines/experiment/robustness/robust.jq $(ROBUST) $(QUANT) | $(PLAIN)
