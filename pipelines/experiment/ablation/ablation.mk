# ablation.mk - make ablation: compares every option of data/ablation.ndjson, and every memory
# level, with the base (the first line of the file), for both models on the same prompts. The
# results are memory by kind, latency, throughput, quality with paired intervals, and whether the
# claims of the file hold. Each launch is a fresh process. The launches take turns: the base and the
# options in order, then in reverse order, and so on. To add an option, add a line to the file.
#
# One batch of each launch is timed. The quality comes from ABLATION_PROMPTS untimed answers.
#
#   $(A)/run/SYSTEM-OPTION-LAUNCH.ndjson -> timed.ndjson -> metrics.ndjson
#   $(A)/SYSTEM-OPTION.ndjson -> answers.ndjson -> exact.ndjson
#       -> comparison.ndjson -> outcomes.ndjson -> the page
#
# ABLATION=latent-ablation does the same with the latent thought model, in a folder of its own.

# folder of the results: ablation or latent-ablation
ABLATION          ?= ablation
# models: llada llama, or ltm
ABLATION_SYSTEMS  ?= $(if $(filter latent-%,$(ABLATION)),ltm,llada llama)
A                 := $(R)/$(ABLATION)
OPTIONS_FILE      := data/ablation.ndjson
# number of prompts
ABLATION_PROMPTS  ?= 64
# launches of each option
ABLATION_LAUNCHES ?= $(LAUNCHES)
# batch size
ABLATION_BATCH    ?= $(QUANT_BATCH)
# denoising steps
ABLATION_STEPS    ?= $(QUANT_STEPS)
# tokens to generate
ABLATION_LENGTH   ?= $(QUANT_LENGTH)
# tokens of a LLaDA block
ABLATION_BLOCK    ?= $(BLOCK_LENGTH)
# texts that pack-model calibrates on
ABLATION_TEXTS    ?= data/corpus/train.ndjson.gz
# steps of a fit of the latent thought model
ABLATION_FIT      ?= 16
# warm-up and repeats
ABLATION_TIMING   ?= --warmup 1 --warmup-most 2 --again $(AGAIN) $(if $(FORCE),--force)
# the base has no level
ABLATION_FLAGS    := $(filter-out --level $(LEVEL),$(GEN_FLAGS))

$(A)/options.mk: $(OPTIONS_FILE) pipelines/experiment/ablation/options.jq
	@mkdir -p $(@D)
	@jq -nr -f pipelines/experiment/ablation/options.jq $< > $@.tmp && mv $@.tmp $@

ifneq ($(filter ablation $(ABLATED),$(GOALS)),)
ifeq ($(LOOKS),)
include $(A)/options.mk
else
$(if $(wildcard $(A)/options.mk),$(eval $(file <$(A)/options.mk)))
endif
endif

text-$(A)/settings = $(ABLATION_STEPS) $(ABLATION_BATCH) $(ABLATION_LENGTH) $(ABLATION_BLOCK) \
    $(SEED) / $(ABLATION_TIMING) $(ABLATION_FLAGS) / $(LLADA_FLAGS) / $(LLAMA_FLAGS) \
    $(if $(filter ltm,$(ABLATION_SYSTEMS)),/ $(option_GEN_ltm))

text-$(A)/prompts = $(ABLATION_PROMPTS)

$(A)/questions.ndjson $(A)/references.ndjson: $(A)/%: $(R)/quant/% \
    $(A)/prompts
	@sed -n '1,$(ABLATION_PROMPTS)p' $< > $@.tmp && mv $@.tmp $@

$(A)/batch.ndjson: $(A)/questions.ndjson $(A)/settings
	@sed -n '1,$(ABLATION_BATCH)p' $< > $@.tmp && mv $@.tmp $@

# A latent model is scored by the bound of whole texts, because the difference of two bounds is not
# a bound.
$(A)/texts.ndjson: $(A)/references.ndjson
	@jq -c '.text += .reference' $< > $@.tmp && mv $@.tmp $@
option_TEXTS_ltm   := texts
option_TARGET_ltm  := text
option_texts  = $(or $(option_TEXTS_$(1)),references)
option_target = $(or $(option_TARGET_$(1)),reference)

option_GEN_llada    = --steps $(ABLATION_STEPS) --gen-length $(ABLATION_LENGTH) \
    --block-length $(ABLATION_BLOCK) $(LLADA_FLAGS)
option_GEN_llama    = --max-new $(ABLATION_LENGTH) $(LLAMA_FLAGS)
option_GEN_ltm      = --max-new $(ABLATION_LENGTH) --vi-steps $(ABLATION_FIT) $(LTM_FLAGS)
option_MODE_ltm     = --mode elbo --vi-steps $(ABLATION_FIT) --samples $(QUANT_SAMPLES)
option_MODEL_ltm   := LTM
option_MODE_llada   = --mode elbo --samples $(QUANT_SAMPLES)
option_MODE_llama  := --mode nll
option_MODEL_llada := LLADA
option_MODEL_llama := LLAMA
# the checkpoint of an option: the model itself, or the packed model that pack-model makes of it
option_model = $(if $(option_PACK_$(2)),$(A)/model/$(1)-$(2),$($(option_MODEL_$(1))))
option_made  = $(if $(option_PACK_$(2)),$(A)/pack-$(1)-$(2).ndjson) \
    $(A)/flags-$(2) $(R)/stamp/model-$(option_MODEL_$(1))
option_run   = $(BIN)/gen-$(1) -m $(call option_model,$(1),$(2)) $(option_GEN_$(1)) \
    --contract answer --batch $(ABLATION_BATCH) --seed $(SEED) $(ABLATION_FLAGS) \
    $(option_FLAGS_$(2))
# If this machine cannot run an option (69), its file is empty. The file is also empty after a usage
# error (64) of an option with `needs`, unless OPTION_FITS decides about this option.
may_lack = || { code=$$$$?; case $$$$code in \
    69$(if $(filter-out a mask without blocks,$(option_NEEDS_$(1))),|64)) : > $$@ ;; \
    *) exit $$$$code ;; esac; }

define option_flags
text-$(A)/flags-$(1) = $(option_FLAGS_$(1)) / $(option_PACK_$(1)) / $(option_SCORE_$(1))
endef

# $(call option_rules,SYSTEM,OPTION): the rules for the checkpoint of an option (if it needs its
# own), for its answers and for its likelihood.
define option_rules
$(A)/pack-$(1)-$(2).ndjson: $(A)/flags-$(2) \
    $(R)/stamp/model-$(option_MODEL_$(1)) | $(BIN)/pack-model $(QUIET)
	$$(call say,pack-model $(1) $(2))\
	    rm -rf $(A)/model/$(1)-$(2); mkdir -p $(A)/model; \
	    $(beside) $(BIN)/pack-model $(subst TEXTS,$(ABLATION_TEXTS),$(option_PACK_$(2))) \
	    -m $($(option_MODEL_$(1))) \
	    --out $(A)/model/$(1)-$(2) -o $$@

$(A)/$(1)-$(2).ndjson: $(A)/questions.ndjson $(A)/settings \
    $(call option_made,$(1),$(2)) $(R)/stamp/tool-gen-$(1) | $(PIPE)
	$$(call say,gen-$(1) $(2))\
	    $$(once) $(alone) $(call option_run,$(1),$(2)) $$< -o $$@ $(call may_lack,$(2))

$(A)/likelihood-$(1)-$(2).ndjson: $(A)/$(call option_texts,$(1)).ndjson \
    $(A)/settings $(call option_made,$(1),$(2)) $(R)/stamp/tool-score-ppl | $(PIPE)
	$$(call say,score-ppl $(1) $(2))\
	    $$(given) $$(once) $(beside) $(BIN)/score-ppl $(option_MODE_$(1)) \
	    -m $(call option_model,$(1),$(2)) \
	    --target $(call option_target,$(1)) --seed $(SEED) $(SCORE_FLAGS) $(option_SCORE_$(2)) \
	    $$< -o $$@ \
	    $(call may_lack,$(2))
endef

# $(call option_launch,SYSTEM,OPTION,LAUNCH)
define option_launch
$(A)/run/$(1)-$(2)-$(3).ndjson: $(A)/batch.ndjson \
    $(call option_made,$(1),$(2)) $(R)/stamp/tool-gen-$(1) | $(PIPE)
	@mkdir -p $$(@D)
	$$(call say,gen-$(1) $(2) $(3))\
	    $$(once) $(alone) $(call option_run,$(1),$(2)) --launch $(3) $(ABLATION_TIMING) $$< -o $$@ \
	    $(call may_lack,$(2))
endef

# the words of a list in reverse order
backwards = $(if $(1),$(call backwards,$(wordlist 2,$(words $(1)),$(1))) $(firstword $(1)))
system_of = $(firstword $(subst -, ,$(1)))
option_of = $(patsubst $(call system_of,$(1))-%,%,$(1))
# Options that need a mask without blocks are left out if the mask has blocks (MASK_BLOCKS).
OPTION_FITS  := $(foreach o,$(option_NAMES),\
    $(if $(and $(MASK_BLOCKS),$(filter blocks,$(option_NEEDS_$(o)))),,$(o)))
OPTION_PAIRS := $(foreach o,$(OPTION_FITS),\
    $(foreach s,$(filter $(ABLATION_SYSTEMS),$(option_SYSTEMS_$(o))),$(s)-$(o)))
# bases of options that are compared with another option than the first one
OPTION_BASES := $(sort $(foreach b,$(option_AGAINST),$(if $(filter %-$(b),$(OPTION_PAIRS)),$(b))))
OPTION_BACK  := $(call backwards,$(OPTION_PAIRS))
OPTION_TURNS := $(if $(option_NAMES),$(shell seq $(ABLATION_LAUNCHES)))
OPTION_RUNS  := $(foreach n,$(OPTION_TURNS),\
    $(foreach p,$(if $(filter %1 %3 %5 %7 %9,$(n)),$(OPTION_PAIRS),$(OPTION_BACK)),\
        $(A)/run/$(p)-$(n).ndjson))
OPTION_ANSWERS := $(OPTION_PAIRS:%=$(A)/%.ndjson)
# An option without flags for score-ppl has the likelihood of the base and is not scored again.
option_scored = $(option_SCORE_$(1))$(option_PACK_$(1))$(filter $(firstword $(option_NAMES)),$(1))
OPTION_LIKELIHOOD := $(foreach p,$(OPTION_PAIRS),\
    $(if $(call option_scored,$(call option_of,$(p))),$(A)/likelihood-$(p).ndjson))
$(foreach o,$(option_NAMES),$(eval $(call option_flags,$(o))))
$(foreach p,$(OPTION_PAIRS),\
    $(eval $(call option_rules,$(call system_of,$(p)),$(call option_of,$(p)))))
$(foreach n,$(OPTION_TURNS),$(foreach p,$(OPTION_PAIRS),\
    $(eval $(call option_launch,$(call system_of,$(p)),$(call option_of,$(p)),$(n)))))

# $(call named_option,KIND,TAIL,POINTS): takes the option of records from the name of their file.
# Timed and untimed answers have different prompts, so they are different points.
named_option = jq -c '\
    (input_filename | capture("(llada|llama|ltm)-(?<o>[^/]+?)$(2)[.]ndjson$$").o) as $$o \
    | select(.kind == "$(1)") | .option = $$o | .config += " option=\($$o)" \
    | .point = (.point // .config) + "-\($$o)-$(3)"'

$(A)/timed.ndjson: $(OPTION_RUNS) $(A)/options.mk
	@$(call named_option,generation,-[0-9]+,timed) $(OPTION_RUNS) > $@.tmp && mv $@.tmp $@

$(A)/answers.ndjson: $(OPTION_ANSWERS) $(A)/options.mk
	@$(call named_option,generation,,answers) $(OPTION_ANSWERS) > $@.tmp && mv $@.tmp $@

$(A)/likelihood.ndjson: $(OPTION_LIKELIHOOD) $(A)/options.mk
	@$(call named_option,quality,,texts) $(OPTION_LIKELIHOOD) > $@.tmp && mv $@.tmp $@

$(A)/metrics.ndjson: $(A)/timed.ndjson $(TOOL)-measure | $(QUIET)
	$(call say,measure ablation)$(beside) $(BIN)/measure $< -o $@

$(A)/exact.ndjson: $(A)/answers.ndjson $(TOOL)-score-exact | $(QUIET)
	$(call say,score-exact ablation)$(beside) $(BIN)/score-exact $< -o $@

$(A)/comparison.ndjson: $(A)/metrics.ndjson $(A)/exact.ndjson \
    $(A)/likelihood.ndjson $(A)/answers.ndjson $(TOOL)-compare | $(QUIET)
	$(call say,compare ablation)\
	    for base in $(firstword $(option_NAMES)) $(OPTION_BASES); do \
	        $(beside) $(BIN)/compare --by option --base $$base --cost e2e_ns \
	            --precision $(PRECISION) --seed $(SEED) $(filter %.ndjson,$^); \
	    done > $@.tmp && mv $@.tmp $@

# latent.mk adds samples of effects that no option of a generator shows.
$(A)/outcomes.ndjson: $(A)/metrics.ndjson $(A)/comparison.ndjson \
    $(OPTIONS_FILE) $(TOOL)-compare | $(QUIET)
	$(call say,compare claims)\
	    $(beside) $(BIN)/compare --claims $(OPTIONS_FILE) \
	    $(filter-out $(OPTIONS_FILE),$(filter %.ndjson,$^)) -o $@

# make fits: the models, memory levels, batch sizes and lengths that fit a GPU of each size. The
# memory is forecast, not measured.

# models
FIT_MODELS ?= synth:llada-8b,synth:llama3-8b,synth:llada3.2-1b,synth:llama3.2-1b
# sizes of the GPU memory in GB
FIT_GB     ?= 4,6,8,12,16,24,80
text-$(R)/stamp/fits = $(FIT_MODELS) $(FIT_GB)

$(R)/fits.ndjson: $(R)/stamp/fits $(TOOL)-forecast | $(QUIET)
	$(call say,forecast --fit)\
	    $(beside) $(BIN)/forecast --fit $(FIT_GB) -m $(FIT_MODELS) --batch 1,4,8,16,32 \
	    --gen-length 128,512,2048 -o $@

# The options that the page shows with PAGE=ablation.
OPTION_TOLD := $(if $(filter $(ABLATED),$(GOALS)),$(A)/outcomes.ndjson) \
               $(if $(filter latent-ablation,$(PAGED)),\
                   $(filter-out $(A)/%,$(R)/latent-ablation/outcomes.ndjson))
ifneq ($(ABLATION),latent-ablation)
$(R)/latent-ablation/outcomes.ndjson:
	@echo 'PAGE=latent-ablation: expected $@; make latent-ablation writes it' >&2; exit 66
endif

.PHONY: ablation fits
ablation: $(A)/outcomes.ndjson ##run every option alone: memory, time, quality, claims
	@jq -nr -f pipelines/experiment/ablation/outcomes.jq $(A)/outcomes.ndjson | $(PLAIN)

fits: $(R)/fits.ndjson ##look which model, level, batch and length fit which GPU (planned)
	@jq -nr -f pipelines/experiment/ablation/fits.jq $< | $(PLAIN)

# Stored outcomes are for make requirements (also make outcomes ABLATION=latent-ablation).

# file that make outcomes writes
OUTCOMES ?= data/$(PROFILE)/$(if $(filter latent-%,$(ABLATION)),latent-)outcomes.ndjson
.PHONY: outcomes
outcomes: $(A)/outcomes.ndjson ##develop store the outcomes of make ablation in data/PROFILE
	@mkdir -p $(dir $(OUTCOMES))
	@cp $< $(OUTCOMES) && echo '$(OUTCOMES)'
