# sweep.mk - the commands of a sweep: a set of points for one model or several, cut into launches
# (fresh processes over shuffled points), so that the models of a pair interleave.
#
# A makefile adds a NAME to SWEPT and sets the variables of the sweep (defaults in brackets):
#   NAME_SYSTEMS   models: llada,llama,ltm        NAME_LAUNCHES  launches of each model
#   NAME_STEPS     denoising steps                NAME_PROMPTS   file of prompts
#   NAME_BATCH     batch sizes                    NAME_ANSWERS   more scored answers to compare
#   NAME_LENGTH    tokens to generate             NAME_METHODS   file of more methods to run
#   NAME_BLOCK     tokens of a block              NAME_TIMING    warm-up and repeats (TIMING)
#   NAME_CONTRACT  answer, fixed or both          NAME_WAY       turns or alone, see way (turns)
#   NAME_SWEEP     more settings to sweep         NAME_LOCK      $(alone) or $(beside) ($(alone))
#   NAME_ROUNDS    rounds over the prompts (ROUNDS)
#   NAME_LIMITS    limits of the goodput
#   NAME_LLADA_FLAGS, NAME_LLAMA_FLAGS, NAME_LTM_FLAGS  options of one generator
#
# The files of a sweep, in this order ($* is its NAME):
#   schedule.ndjson             schedule      which points each launch runs
#   launches.mk, launch/*.plan                the schedule, cut into launches
#   launch/SYSTEM-NNN.ndjson    gen-SYSTEM    generations: most of the time
#   metrics.ndjson              measure       latency, throughput, memory
#   ratios.ndjson               compare       ratios of the models, with verdicts
SWEPT_PAIRS := $(filter-out aa gate,$(SWEPT))
SWEPT_TIMED := $(filter-out answers,$(SWEPT_PAIRS))

# ---- schedule ----

# Changed settings make a new schedule. If only points are new, they are added to the old schedule,
# whose launches are not repeated.
define schedule_stamps
text-$(R)/$(1)/settings = $$($(1)_SYSTEMS) $$($(1)_LENGTH) $$($(1)_BLOCK) $$($(1)_LAUNCHES) \
    $$(or $$($(1)_ROUNDS),$$(ROUNDS)) $$(SEED)
text-$(R)/$(1)/points = $$($(1)_STEPS) $$($(1)_BATCH) $$($(1)_CONTRACT) $$($(1)_SWEEP)
text-$(R)/$(1)/flags = $$(or $$($(1)_TIMING),$$(TIMING)) $$(or $$($(1)_WAY),$$(way)) \
    $$(GEN_FLAGS) / $$(LLADA_FLAGS) $$($(1)_LLADA_FLAGS) / $$(LLAMA_FLAGS) \
    $$($(1)_LLAMA_FLAGS)$$(call draft_of,$(1),llama) \
    $$(if $$(LTM),/ $$(LTM_FLAGS) $$($(1)_LTM_FLAGS))
endef
$(foreach s,$(SWEPT),$(eval $(call schedule_stamps,$(s))))

$(SWEPT:%=$(R)/%/schedule.ndjson): $(R)/%/schedule.ndjson: $(R)/%/settings $(R)/%/points \
    $$($$*_METHODS) | $(BIN)/schedule
	@if [ -f $@ ]; then cp -p $@ $@.before; fi
	$(call say,schedule of $*)\
	    $(BIN)/schedule --launches $($*_LAUNCHES) --systems $($*_SYSTEMS) \
	    --steps $($*_STEPS) --batch $($*_BATCH) --gen-length $($*_LENGTH) \
	    --block-length $($*_BLOCK) --contract $($*_CONTRACT) $($*_SWEEP) \
	    $($*_METHODS:%=--methods %) --rounds $(or $($*_ROUNDS),$(ROUNDS)) --seed $(SEED) \
	    $$([ ! $@ -nt $< ] && ! cmp -s $< $@.settings || echo --previous $@.before) -o $@
	@cp $< $@.settings

# A plan that stays the same keeps its date, so that its launch is not repeated.
$(SWEPT:%=$(R)/%/launches.mk): $(R)/%/launches.mk: $(R)/%/schedule.ndjson
	@mkdir -p $(@D)/launch
	@jq -r 'select(.kind == "launch") | "\(.launch) \(.system) \(tojson)"' $< | sort -n | \
	 while read -r n system line; do \
	    printf -v name '%s-%03d' "$$system" "$$n"; plan=$(@D)/launch/$$name.plan; \
	    printf '%s\n' "$$line" > $$plan.tmp; \
	    cmp -s $$plan.tmp $$plan && rm $$plan.tmp || mv $$plan.tmp $$plan; \
	    echo "$*_NAMES += $$name"; \
	 done > $@.tmp
	@for plan in $(@D)/launch/*.plan; do \
	    grep -q " $$(basename $$plan .plan)$$" $@.tmp || rm $$plan; done
	@mv $@.tmp $@

# ---- launches ----

# turns: the processes of a pair work prompt by prompt, one at a time. alone: one process after the
# other.
way := $(if $(and $(TURNS),$(if $(RUN),,1)),turns,alone)
MODEL_llada := LLADA
MODEL_llama := LLAMA
MODEL_ltm   := LTM
# sweep: the sweep whose launch is made. parties: its models
sweep    = $(notdir $(patsubst %/launch,%,$(@D)))
parties  = $(call split,$($(sweep)_SYSTEMS))
# $(call draft_of,SWEEP,SYSTEM): the option --draft, for LLaMA in sweeps with methods
draft_of = $(if $($(1)_METHODS),$(if $(filter llama,$(2)),$(DRAFT:%= --draft %)))
# $(call generate,SYSTEM,MODEL): the command of one launch
generate = $(BIN)/gen-$(1) -m $($(2)) --schedule $(@D)/$(1)-$*.plan --launch $$((10\#$*)) \
    $(or $($(sweep)_TIMING),$(TIMING)) --seed $(SEED) $(GEN_FLAGS) $($(2)_FLAGS) \
    $($(sweep)_$(2)_FLAGS)$(call draft_of,$(sweep),$(1)) $(subst %,$*,$($(sweep)_PROMPTS)) \
    -o $(@D)/$(1)-$*.ndjson
# $(call complete,FILES): removes the target if one of FILES is missing, because $(once) checks only
# the target.
complete = for f in $(1); do [ -f $$f ] || rm -f $@; done;
run_pair = $(call say,pair $* of $(sweep))\
	    $(call complete,$(parties:%=$(@D)/%-$*.ndjson)) \
	    $(once) $(or $($(sweep)_LOCK),$(alone)) pipelines/bin/side-by-side $(@D) $(SEED) $* \
	    $(or $($(sweep)_WAY),$(way)) \
	    $(foreach s,$(parties),-- $(call generate,$(s),$(MODEL_$(s))))

# One launch of each model is a pair. A pattern rule with several targets runs its recipe once.
# $(call pair,NAME)
of_systems = $(foreach s,$(call split,$($(1)_SYSTEMS)),$(R)/$(1)/launch/$(s)-%$(2))
define pair
$(call of_systems,$(1),.ndjson): $(call of_systems,$(1),.plan) $(R)/$(1)/flags $($(1)_PROMPTS) \
    $(foreach s,$(call split,$($(1)_SYSTEMS)),$(R)/stamp/model-$(MODEL_$(s)) \
        $(R)/stamp/tool-gen-$(s)) $(if $(call draft_of,$(1),llama),$(R)/stamp/model-DRAFT) | $(PIPE)
	$$(run_pair)
	@touch $$(parties:%=$$(@D)/%-$$*.ndjson)
endef
$(foreach s,$(SWEPT_PAIRS),$(eval $(call pair,$(s))))

.PRECIOUS: $(R)/%.plan
$(R)/%.plan: | $(R)/$$(firstword $$(subst /, ,$$*))/launches.mk
	@test -f $@

# ---- metrics ----

text-$(R)/stamp/precision = $(PRECISION) $(MARGIN)

# the reason why a sweep has no more launches: all of the schedule ran, or a reason of make refine
$(SWEPT:%=$(R)/%/stopped): $(R)/%/stopped: $(R)/%/schedule.ndjson
	@$(once) sh -c 'echo launches > $@'

$(SWEPT_TIMED:%=$(R)/%/metrics.ndjson): $(R)/%/metrics.ndjson: $$($$*_FILES) $(R)/ceilings.ndjson \
    $(R)/%/stopped $(TOOL)-measure | $(QUIET)
	@[ -n '$($*_FILES)' ] || { echo 'no launches in $(R)/$*/schedule.ndjson' >&2; exit 65; }
	$(call say,measure $*)\
	    $(beside) $(BIN)/measure --verify --stopped "$$(cat $(R)/$*/stopped)" \
	    $($*_LIMITS) $($*_FILES) $(R)/ceilings.ndjson -o $@

ratio_flags = --by paradigm --cost e2e_ns --precision $(PRECISION) \
    $(if $(MARGIN),--margin $(MARGIN))
$(SWEPT_TIMED:%=$(R)/%/ratios.ndjson): $(R)/%/ratios.ndjson: $(R)/%/metrics.ndjson \
    $$($$*_ANSWERS) $(R)/stamp/precision $(TOOL)-compare | $(QUIET)
	$(call say,compare $*)\
	    $(beside) $(BIN)/compare $(ratio_flags) --stopped "$$(cat $(R)/$*/stopped)" $< \
	    $($*_ANSWERS) -o $@
