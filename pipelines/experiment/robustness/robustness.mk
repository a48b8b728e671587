# robustness.mk - how far answers are those of the weights, and how far those of the arithmetic: the
# same prompts in other number formats, batch sizes and instruction sets. The runs of memory.mk
# without a quantization are the base; the first ROBUST_PROMPTS of its questions are answered again
# with one setting changed, and compared prompt by prompt: what share of answers and of their ids
# differ, where they part, and what that does to the accuracy. What quantizations do is compared in
# memory.mk. Part of phase 5.
#
#   $(R)/robust/SYSTEM-AXIS-VALUE.ndjson -> exact-AXIS.ndjson -> AXIS.ndjson (AXIS: dtype batch isa)
ROBUST_PROMPTS ?= 16
ROBUST_dtype   ?= f32 bf16
ROBUST_batch   ?= 1 8
# those of the instruction sets built here that this machine has
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

# $(call robust,SYSTEM,AXIS,VALUE): an empty file where the base has that value already, or where
# this machine lacks the instruction set (69), as the generator then says.
define robust
$(R)/robust/$(1)-$(2)-$(3).ndjson: $(R)/quant/$(1)-none.ndjson $(R)/robust/questions.ndjson
	$$(call say,gen-$(1) $(2) $(3))\
	    if [ "$$(call robust_base,$(2))" = $(3) ]; then : > $$@; else \
	        $$(once) $(alone) $$(robust_$(1)) --$(2) $(3) $(R)/robust/questions.ndjson -o $$@ || \
	            { code=$$$$?; [ $(2) = isa ] && [ $$$$code = 69 ] && : > $$@ || exit $$$$code; }; \
	    fi
endef

# $(call robust_axis,AXIS): against the base, where anything differs from it.
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

# Drawn weights choose between near equals: that their answers differ says nothing.
ROBUST := $(if $(filter synth:%,$(LLADA) $(LLAMA)),,\
              $(foreach a,dtype batch isa,$(if $(ROBUST_$(a)),$(R)/robust/$(a).ndjson)))
.PHONY: robustness
robustness: $(ROBUST) $(QUANT) ## how far number formats, batches, instruction sets change answers
	@jq -sr -f pipelines/experiment/robustness/robust.jq $(ROBUST) $(QUANT) | $(PLAIN)
