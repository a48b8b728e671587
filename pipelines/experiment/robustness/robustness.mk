# robustness.mk - how much of an answer depends on the arithmetic: the same prompts in other number
# formats, batch sizes and instruction sets. The unquantized runs of memory.mk are the base; the
# first ROBUST_PROMPTS of its questions are answered again with one setting changed, and compared
# prompt by prompt: the share of answers and of ids that differ, where they part, and the accuracy.
# Part of phase 5. (memory.mk compares quantizations.)
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
# the value of the base
robust_base = $$(jq -nr 'first(inputs | select(.kind == "generation")).$(1)' $<)

# $(call robust,SYSTEM,AXIS,VALUE): answers with this value. The file is empty where the base has
# the value already, or where the machine lacks the instruction set (69).
define robust
$(R)/robust/$(1)-$(2)-$(3).ndjson: $(R)/quant/$(1)-none.ndjson $(R)/robust/questions.ndjson
	$$(call say,gen-$(1) $(2) $(3))\
	    if [ "$$(call robust_base,$(2))" = $(3) ]; then : > $$@; else \
	        $$(once) $(alone) $$(robust_$(1)) --$(2) $(3) $(R)/robust/questions.ndjson -o $$@ || \
	            { code=$$$$?; [ $(2) = isa ] && [ $$$$code = 69 ] && : > $$@ || exit $$$$code; }; \
	    fi
endef

# $(call robust_axis,AXIS): comparisons with the base, unless every value is that of the base.
define robust_axis
$(foreach s,llada llama,$(foreach v,$(ROBUST_$(1)),$(eval $(call robust,$(s),$(1),$(v)))))
robust_$(1)_RUNS := $(foreach s,llada llama,$(R)/quant/$(s)-none.ndjson \
    $(foreach v,$(ROBUST_$(1)),$(R)/robust/$(s)-$(1)-$(v).ndjson))

$(R)/robust/exact-$(1).ndjson: $$(robust_$(1)_RUNS) $(TOOL)-score-exact | $(QUIET)
	$$(call say,score-exact $(1))\
	    $(beside) $(BIN)/score-exact $$(robust_$(1)_RUNS) -o $$@

$(R)/robust/$(1).ndjson: $$(robust_$(1)_RUNS) $(R)/robust/exact-$(1).ndjson \
    $(TOOL)-compare | $(QUIET)
	$$(call say,compare $(1))\
	    if [ -z "$$$$(find $(R)/robust -name '*-$(1)-*.ndjson' -size +0)" ]; then : > $$@; else \
	        $(beside) $(BIN)/compare --by $(1) --base "$$(call robust_base,$(1))" --seed $(SEED) \
	            $$(filter %.ndjson,$$^) -o $$@; fi
endef
$(foreach a,dtype batch isa,$(eval $(call robust_axis,$(a))))

# Drawn weights choose between near equals, so differences of their answers mean nothing.
ROBUST := $(if $(filter synth:%,$(LLADA) $(LLAMA)),,\
              $(foreach a,dtype batch isa,$(if $(ROBUST_$(a)),$(R)/robust/$(a).ndjson)))
.PHONY: robustness
robustness: $(ROBUST) $(QUANT) ##run changes of answers by format, batch, instruction set
	@jq -sr -f pipelines/experiment/robustness/robust.jq $(ROBUST) $(QUANT) | $(PLAIN)
