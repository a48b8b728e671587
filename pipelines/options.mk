# options.mk - ablation: every option of data/ablation.ndjson alone, and every level of saving, on
# both contestants, against the base (its first row) on the same prompts: memory by kind, latency,
# throughput, quality with paired intervals, and whether what was claimed of it held. Launches are
# fresh processes in turn: base and options one after the other, then the same backwards, and so on.
# A new option is a line of the file.
#
# What is timed is one batch in each launch; what quality is of, ABLATION_PROMPTS answers, is made
# once and not timed.
#
#   $(R)/ablation/run/SYSTEM-OPTION-LAUNCH.ndjson -> timed.ndjson -> metrics.ndjson
#   $(R)/ablation/SYSTEM-OPTION.ndjson -> answers.ndjson -> exact.ndjson
#       -> comparison.ndjson -> outcomes.ndjson -> figures/waterfall.svg, the page
OPTIONS_FILE      := data/ablation.ndjson
ABLATION_PROMPTS  ?= 64
ABLATION_LAUNCHES ?= $(LAUNCHES)
ABLATION_BATCH    ?= $(QUANT_BATCH)
ABLATION_STEPS    ?= $(QUANT_STEPS)
ABLATION_LENGTH   ?= $(QUANT_LENGTH)
ABLATION_BLOCK    ?= $(BLOCK_LENGTH)
ABLATION_TIMING   ?= --warmup 1 --warmup-most 2 --again $(AGAIN) $(if $(FORCE),--force)
# the base has no level
ABLATION_FLAGS    := $(filter-out --level $(LEVEL),$(GEN_FLAGS))

$(R)/ablation/options.mk: $(OPTIONS_FILE) pipelines/options.jq
	@mkdir -p $(@D)
	@jq -nr -f pipelines/options.jq $< > $@.tmp && mv $@.tmp $@

ifneq ($(filter ablation $(ABLATED),$(GOALS)),)
-include $(R)/ablation/options.mk
endif

$(R)/ablation/settings: FORCE
	$(call stamp,$(ABLATION_STEPS) $(ABLATION_BATCH) $(ABLATION_LENGTH) $(ABLATION_BLOCK) \
	    $(SEED) / $(ABLATION_TIMING) $(ABLATION_FLAGS) / $(LLADA_FLAGS) / $(LLAMA_FLAGS))

$(R)/ablation/prompts: FORCE
	$(call stamp,$(ABLATION_PROMPTS))

$(R)/ablation/questions.ndjson $(R)/ablation/references.ndjson: $(R)/ablation/%: $(R)/quant/% \
    $(R)/ablation/prompts
	@sed -n '1,$(ABLATION_PROMPTS)p' $< > $@.tmp && mv $@.tmp $@

$(R)/ablation/batch.ndjson: $(R)/ablation/questions.ndjson $(R)/ablation/settings
	@sed -n '1,$(ABLATION_BATCH)p' $< > $@.tmp && mv $@.tmp $@

option_GEN_llada    = --steps $(ABLATION_STEPS) --gen-length $(ABLATION_LENGTH) \
    --block-length $(ABLATION_BLOCK) $(LLADA_FLAGS)
option_GEN_llama    = --max-new $(ABLATION_LENGTH) $(LLAMA_FLAGS)
option_MODE_llada   = --mode elbo --samples $(QUANT_SAMPLES)
option_MODE_llama  := --mode nll
option_MODEL_llada := LLADA
option_MODEL_llama := LLAMA
# what is run: the contestant, or what pack-model makes of it
option_model = $(if $(option_PACK_$(2)),$(R)/ablation/model/$(1)-$(2),$($(option_MODEL_$(1))))
option_made  = $(if $(option_PACK_$(2)),$(R)/ablation/pack-$(1)-$(2).ndjson) \
    $(R)/ablation/flags-$(2) $(R)/stamp/model-$(option_MODEL_$(1))
option_run   = $(BIN)/gen-$(1) -m $(call option_model,$(1),$(2)) $(option_GEN_$(1)) \
    --contract answer --batch $(ABLATION_BATCH) --seed $(SEED) $(ABLATION_FLAGS) \
    $(option_FLAGS_$(2))
# What this machine cannot run (69) leaves an empty file; so does what is bad usage here (64) of an
# option that says what it needs.
may_lack = || { code=$$$$?; case $$$$code in \
    69$(if $(option_NEEDS_$(1)),|64)) : > $$@ ;; *) exit $$$$code ;; esac; }

define option_flags
$(R)/ablation/flags-$(1): FORCE
	$$(call stamp,$(option_FLAGS_$(1)) / $(option_PACK_$(1)) / $(option_SCORE_$(1)))
endef

# $(call option_rules,SYSTEM,OPTION): its checkpoint, if it has one of its own, its answers and its
# likelihood.
define option_rules
$(R)/ablation/pack-$(1)-$(2).ndjson: $(R)/ablation/flags-$(2) \
    $(R)/stamp/model-$(option_MODEL_$(1)) | $(BIN)/pack-model $(QUIET)
	$$(call say,pack-model $(1) $(2))\
	    rm -rf $(R)/ablation/model/$(1)-$(2); mkdir -p $(R)/ablation/model; \
	    $(beside) $(BIN)/pack-model $(option_PACK_$(2)) -m $($(option_MODEL_$(1))) \
	    --out $(R)/ablation/model/$(1)-$(2) -o $$@

$(R)/ablation/$(1)-$(2).ndjson: $(R)/ablation/questions.ndjson $(R)/ablation/settings \
    $(call option_made,$(1),$(2)) $(R)/stamp/tool-gen-$(1) | $(PIPE)
	$$(call say,gen-$(1) $(2))\
	    $(alone) $(call option_run,$(1),$(2)) $$< -o $$@ $(call may_lack,$(2))

$(R)/ablation/likelihood-$(1)-$(2).ndjson: $(R)/ablation/references.ndjson \
    $(R)/ablation/settings $(call option_made,$(1),$(2)) $(R)/stamp/tool-score-ppl | $(PIPE)
	$$(call say,score-ppl $(1) $(2))\
	    $(beside) $(BIN)/score-ppl $(option_MODE_$(1)) -m $(call option_model,$(1),$(2)) \
	    --target reference --seed $(SEED) $(SCORE_FLAGS) $(option_SCORE_$(2)) $$< -o $$@ \
	    $(call may_lack,$(2))
endef

# $(call option_launch,SYSTEM,OPTION,LAUNCH)
define option_launch
$(R)/ablation/run/$(1)-$(2)-$(3).ndjson: $(R)/ablation/batch.ndjson \
    $(call option_made,$(1),$(2)) $(R)/stamp/tool-gen-$(1) | $(PIPE)
	@mkdir -p $$(@D)
	$$(call say,gen-$(1) $(2) $(3))\
	    $(alone) $(call option_run,$(1),$(2)) --launch $(3) $(ABLATION_TIMING) $$< -o $$@ \
	    $(call may_lack,$(2))
endef

# Words of a list the other way round.
backwards = $(if $(1),$(call backwards,$(wordlist 2,$(words $(1)),$(1))) $(firstword $(1)))
system_of = $(firstword $(subst -, ,$(1)))
option_of = $(patsubst $(call system_of,$(1))-%,%,$(1))
OPTION_PAIRS := $(foreach o,$(option_NAMES),$(foreach s,$(option_SYSTEMS_$(o)),$(s)-$(o)))
OPTION_BACK  := $(call backwards,$(OPTION_PAIRS))
OPTION_TURNS := $(if $(option_NAMES),$(shell seq $(ABLATION_LAUNCHES)))
OPTION_RUNS  := $(foreach n,$(OPTION_TURNS),\
    $(foreach p,$(if $(filter %1 %3 %5 %7 %9,$(n)),$(OPTION_PAIRS),$(OPTION_BACK)),\
        $(R)/ablation/run/$(p)-$(n).ndjson))
OPTION_ANSWERS := $(OPTION_PAIRS:%=$(R)/ablation/%.ndjson)
# An option that says nothing for score-ppl has the likelihood of the base.
option_scored = $(option_SCORE_$(1))$(option_PACK_$(1))$(filter $(firstword $(option_NAMES)),$(1))
OPTION_LIKELIHOOD := $(foreach p,$(OPTION_PAIRS),\
    $(if $(call option_scored,$(call option_of,$(p))),$(R)/ablation/likelihood-$(p).ndjson))
$(foreach o,$(option_NAMES),$(eval $(call option_flags,$(o))))
$(foreach p,$(OPTION_PAIRS),\
    $(eval $(call option_rules,$(call system_of,$(p)),$(call option_of,$(p)))))
$(foreach n,$(OPTION_TURNS),$(foreach p,$(OPTION_PAIRS),\
    $(eval $(call option_launch,$(call system_of,$(p)),$(call option_of,$(p)),$(n)))))

# $(call named_option,KIND,TAIL): records say whose they are by the names of their files. Answers
# that are timed and those that are not are of two sets of prompts, so they are two points.
named_option = jq -c '\
    (input_filename | capture("(llada|llama)-(?<o>[^/]+?)$(2)[.]ndjson$$").o) as $$o \
    | select(.kind == "$(1)") | .option = $$o | .config += " option=\($$o)" \
    | .point = (.point // .config) + "-\($$o)-$(3)"'

$(R)/ablation/timed.ndjson: $(OPTION_RUNS) $(R)/ablation/options.mk
	@$(call named_option,generation,-[0-9]+,timed) $(OPTION_RUNS) > $@.tmp && mv $@.tmp $@

$(R)/ablation/answers.ndjson: $(OPTION_ANSWERS) $(R)/ablation/options.mk
	@$(call named_option,generation,,answers) $(OPTION_ANSWERS) > $@.tmp && mv $@.tmp $@

$(R)/ablation/likelihood.ndjson: $(OPTION_LIKELIHOOD) $(R)/ablation/options.mk
	@$(call named_option,quality,,texts) $(OPTION_LIKELIHOOD) > $@.tmp && mv $@.tmp $@

$(R)/ablation/metrics.ndjson: $(R)/ablation/timed.ndjson $(BIN)/measure | $(QUIET)
	$(call say,measure ablation)$(beside) $(BIN)/measure $< -o $@

$(R)/ablation/exact.ndjson: $(R)/ablation/answers.ndjson $(BIN)/score-exact | $(QUIET)
	$(call say,score-exact ablation)$(beside) $(BIN)/score-exact $< -o $@

$(R)/ablation/comparison.ndjson: $(R)/ablation/metrics.ndjson $(R)/ablation/exact.ndjson \
    $(R)/ablation/likelihood.ndjson $(R)/ablation/answers.ndjson $(BIN)/compare | $(QUIET)
	$(call say,compare ablation)\
	    $(beside) $(BIN)/compare --by option --base $(firstword $(option_NAMES)) --cost e2e_ns \
	    --precision $(PRECISION) --seed $(SEED) $(filter %.ndjson,$^) -o $@

$(R)/ablation/outcomes.ndjson: $(R)/ablation/metrics.ndjson $(R)/ablation/comparison.ndjson \
    $(OPTIONS_FILE) pipelines/ablation.jq
	@jq -cn -f pipelines/ablation.jq --slurpfile options $(OPTIONS_FILE) \
	    $(filter %/metrics.ndjson %/comparison.ndjson,$^) > $@.tmp
	@mv $@.tmp $@

# Which model, level, batch and length a GPU of which size holds: planned, not measured.
FIT_MODELS ?= synth:llada-8b,synth:llama3-8b,synth:llada3.2-1b,synth:llama3.2-1b
FIT_GB     ?= 4,6,8,12,16,24,80
$(R)/stamp/fits: FORCE
	$(call stamp,$(FIT_MODELS) $(FIT_GB))

$(R)/fits.ndjson: $(R)/stamp/fits $(BIN)/forecast | $(QUIET)
	$(call say,forecast --fit)\
	    $(beside) $(BIN)/forecast --fit $(FIT_GB) -m $(FIT_MODELS) --batch 1,4,8,16,32 \
	    --gen-length 128,512,2048 -o $@

# The page tells of the options where they were run.
OPTION_TOLD := $(if $(filter ablation $(ABLATED),$(GOALS)),\
                   $(R)/ablation/outcomes.ndjson $(R)/fits.ndjson)

.PHONY: ablation fits
ablation: $(R)/ablation/outcomes.ndjson $(R)/figures/waterfall.svg $(R)/figures/fit.svg \
    ## every option alone: memory, time, quality, and whether claims held
	@jq -nr -f pipelines/outcomes.jq $(R)/ablation/outcomes.ndjson | $(PLAIN)

fits: $(R)/fits.ndjson ## which model, level, batch and length fit which GPU; planned
	@jq -nr -f pipelines/fits.jq $< | $(PLAIN)

# What was found is kept, for make requirements.
OUTCOMES ?= data/$(PROFILE)/outcomes.ndjson
.PHONY: outcomes
outcomes: $(R)/ablation/outcomes.ndjson ## keep what make ablation found in data/PROFILE
	@mkdir -p $(dir $(OUTCOMES))
	@cp $< $(OUTCOMES) && echo '$(OUTCOMES)'
