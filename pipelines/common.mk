# common.mk - where results lie, what makes them stale, and how timing is kept quiet.
#
# Everything a run makes is below $(R) = results/<machine fingerprint>/<profile>. Expensive files
# depend on stamps: small files that are rewritten only when what they describe changes (settings,
# checkpoints, the code inside a generator), never on the times of binaries.

# The machine: another one, other results.
ifndef FP
FP := $(shell pipelines/machine)
endif
RESULTS := results/$(FP)
R       := $(RESULTS)/$(PROFILE)

PROFILES := $(basename $(notdir $(wildcard pipelines/profiles/*.mk)))
ifeq ($(filter $(PROFILE),$(PROFILES)),)
$(error PROFILE=$(PROFILE): expected one of $(PROFILES) (files of pipelines/profiles))
endif
include pipelines/profiles/$(PROFILE).mk

# What a profile may leave out.
PROMPT_FILE     ?= data/corpus/test.ndjson.gz
PROMPT_FLAGS    ?=
# PROMPT_FILE=lists: lists of words to copy, reverse, shuffle, replace in; they show what is lost
# where several words are committed at once
# PROMPT_FILE=human: prompts written for this project, all of them where more are asked for;
# PROMPT_FILE=system: paragraphs of manual pages and licences that are installed here
PROMPTS_lists   := data/corpus/test-lists.ndjson.gz
PROMPTS_human   := data/prompts/human.ndjson
PROMPTS_system  := $(RESULTS)/system.txt
PROMPT_FEWER    := $(if $(filter human %/human.ndjson,$(PROMPT_FILE)),--allow-fewer)
override PROMPT_FILE := $(or $(PROMPTS_$(PROMPT_FILE)),$(PROMPT_FILE))
PROMPTS         ?= 64
# which prompts of the file: a number in all, or --per-task N of each task, or --per-task TASK=N,...
PROMPT_CHOICE   ?= --count $(PROMPTS)
ifeq ($(origin PROMPTS) $(origin PROMPT_CHOICE),command line file)
PROMPT_CHOICE   := --count $(PROMPTS)
endif
# of these the first that the launches of phase 4 time; then all are answered once more at each
# point, and not timed, for the quality (empty: all are timed, and quality is of those answers)
TIMED_PROMPTS   ?=
SEED            ?= 1
STEPS           ?= 16,32,64,128,256
GEN_LENGTH      ?= 256
BLOCK_LENGTH    ?= 32
# what both systems deliver in phase 4: answer (each its text, to its end), fixed (all of
# GEN_LENGTH), or both; phase 5 is fixed
CONTRACT        ?= answer
# other settings to sweep beside STEPS, crosswise: "--unmask schedule,threshold --threshold 0.7,0.9"
SWEEP           ?=
# Launches of each system to begin with: fewer than 5 give no interval. make refine adds more until
# the ratio of the two systems is known within PRECISION (0.02: +-2 %) or its minutes are over.
LAUNCHES        ?= 5
PRECISION       ?= 0.02
BUDGET_MINUTES  ?= 30
ROUNDS          ?= 1
# warm-up batches of each point: at least, and at most until their times are steady
WARMUP          ?= 3
WARMUP_MOST     ?= 8
# how often a timed batch that the machine disturbed is run again
AGAIN           ?= 3
AA_LAUNCHES     ?= 12
AA_LENGTH       ?= $(GEN_LENGTH)
AA_STEPS        ?=
SCALE_LENGTHS   ?= 128,512,1024,2048
SCALE_BATCH     ?= 1,4,8,16,32
SCALE_LAUNCHES  ?= 5
SCALE_PROMPTS   ?= 32
# tokens that one denoising step commits in the scale sweep
SCALE_PER_STEP  ?= 1,2,4,8
BASELINE_PROMPTS ?= 4
BASELINE_LENGTH ?= 32
BASELINE_DEVICES ?= ref cpu
# rounds over the same prompts in which the share of the machine's limits is measured
SHARE_ROUNDS    ?= 3
# matrices of the baselines (activations and sums are f32), and what stands for the contestants
BASELINE_DTYPE  ?= f32
BASELINE_LLADA  ?= $(LLADA)
BASELINE_LLAMA  ?= $(LLAMA)
LIKELIHOOD_PROMPTS ?= 64
# masks drawn for each text by the likelihood bound, and orders by the K-step bound
LIKELIHOOD_SAMPLES ?= 128
LIKELIHOOD_ORDERS ?= 4
# steps at which the K-step likelihood bound is taken
KSTEPS          ?= $(STEPS)
# what make shapes measures: number formats, batches, tokens, step counts; and the step counts that
# are said by them
SHAPE_FORMATS   ?= none int8
SHAPE_BATCH     ?= 1,4
SHAPE_PROMPT    ?= 128
SHAPE_LENGTH    ?= 128
SHAPE_STEPS     ?= 1,2,4
SHAPE_TO        ?= 16,32,64,128
# the rules whose passes over one answer are drawn side by side
TRACE_UNMASK    ?= schedule,factor
# flags for both generators, for one of them, and for score-ppl
GEN_FLAGS       ?=
# --level of both generators: what saves memory, by one word (make extreme, make restore)
LEVEL           ?=
ifneq ($(filter-out exact mild moderate aggressive,$(LEVEL)),)
$(error LEVEL=$(LEVEL): expected exact, mild, moderate or aggressive)
endif
ifneq ($(LEVEL),)
override GEN_FLAGS += --level $(LEVEL)
endif
LLADA_FLAGS     ?=
LLAMA_FLAGS     ?=
# The third way, a latent thought model: its checkpoint (empty: it is left out), the steps of a fit
# in phase 4, those in phase 5, and those before its likelihood bound is taken.
LTM             ?=
LTM_STEPS       ?= 0,4,16,64
SCALE_LTM_STEPS ?= 4
LIKELIHOOD_FIT  ?= 64
LTM_FLAGS       ?=
SCORE_FLAGS     ?=
# what probe-roof probes: the device and the threads of the generators
joined           = $(subst --threads ,--threads=,$(subst --device ,--device=,$(1)))
ROOF_FLAGS      ?= $(filter --device=% --threads=%,$(call joined,$(GEN_FLAGS)))
# what a kilowatt-hour and an hour of the machine cost, in CURRENCY: with either, cost metrics
PRICE_KWH       ?=
PRICE_HOUR      ?=
CURRENCY        ?= EUR
PRICES           = $(if $(PRICE_KWH)$(PRICE_HOUR),--currency '$(CURRENCY)' \
                       $(PRICE_KWH:%=--price-kwh %) $(PRICE_HOUR:%=--price-hour %))
# an encoder (BERT, RoBERTa): phase 4 scores answers with references by BERTScore, too
BERT            ?=
# flags of pareto: margins, the cost
PARETO_FLAGS    ?=
# The primary analysis, TASK:METRIC:MARGIN of each task or METRIC:MARGIN of all prompts: the margin
# is a loss of quality that counts as none, absolute for shares, relative for perplexities.
QUALITY         ?= judge_ppl:0.1
# The same for pareto and compare; of qualities that it does not name, 5 %.
MARGIN          ?= 5%$(shell printf '%s\n' $(subst $(,), ,$(QUALITY)) | awk -F : \
    '{ m = $$(NF - 1); v = $$NF; printf ",%s=%s", m, (m ~ /ppl$$/) ? 100 * v "%" : v }')
pareto_flags     = --seed $(SEED) --margin '$(MARGIN)' $(PARETO_FLAGS)
# share of baseline prompts on which two back ends must give identical ids
AGREE           ?= 0.75
# STRICT=1: a machine unfit to measure, or an A/A test that does not come out SAME, is an error
STRICT          ?=
# FORCE=1: time on a GPU that other processes compute on, too
FORCE           ?=

$(foreach v,PROMPT_FILE BASELINE_LLADA BASELINE_LLAMA,$(call plain,$(v)=,$($(v))))

# What lines that quote records pass on their way to a terminal.
PLAIN = jq -Rr -f pipelines/plain.jq

split = $(subst $(,), ,$(1))
TIMING = --warmup $(WARMUP) --warmup-most $(WARMUP_MOST) --again $(AGAIN) $(if $(FORCE),--force)

# $(call stamp,TEXT): the recipe of a stamp whose name is a pattern. All others are variables
# text-FILE (Makefile).
stamp = @text=$(call quoted,$(1)); [ -f $@ ] && [ "$$(< $@)" = "$$text" ] || \
    { mkdir -p $(@D); printf '%s\n' "$$text" > $@; }

# $(alone) is put before what is timed, $(beside) before what would disturb it. With RUN, another
# machine does the work and its scheduler keeps order. Records that failed do not stop the phases.
QUIET  := $(RESULTS)/.quiet
alone   = pipelines/lenient $(if $(RUN),$(RUN),flock -x $(QUIET))
beside  = pipelines/lenient flock -s $(QUIET)
$(QUIET):
	@mkdir -p $(@D) && touch $@

# $(given) before a command whose records none may have: of no record it makes an empty file.
given   = [ -s $< ] || { echo '    left out: no record in $<' >&2; : > $@; exit 0; };

# $(once) before these: where the prerequisites hold what they held, what was made of them is kept.
once    = MADE='$@' MADE_OF='$^' pipelines/once

# The tools of a pipeline are all built, and the judge is there, before anything is timed.
PIPE_TOOLS := prep-prompts gen-llada gen-llama $(if $(LTM),gen-ltm) probe-roof measure score-ppl \
              score-exact score-text \
              pareto compare plot report forecast bundle $(if $(BERT),score-bert)
PIPE       := $(PIPE_TOOLS:%=$(BIN)/%) $(QUIET) $(R)/stamp/judge

# The code inside a tool as it was linked, without the commit and debug lines: $(TOOL)-NAME. It is
# looked at when the tool was linked (seen-NAME), and written only when it is another one. (A recipe
# of nothing but + lets make -n see that, too.)
TOOL := $(R)/stamp/tool
.PRECIOUS: $(R)/stamp/seen-%
$(R)/stamp/seen-%: $(BIN)/%
	@mkdir -p $(@D)
	@objcopy --strip-all -R .note.gnu.build-id -R .crossover_commit $< $@.tmp
	@sha256sum < $@.tmp | cmp -s - $(@D)/tool-$* || sha256sum < $@.tmp > $(@D)/tool-$*
	@rm $@.tmp && touch $@
$(R)/stamp/tool-%: $(R)/stamp/seen-% ; +

# All that a generator may link.
ENGINE_OBJ := $(filter-out $(foreach r,stat analysis figure report,$(BUILD)/obj/lib/$(r)/%), \
                $(LIB_OBJ))

# A checkpoint: its name and, for a folder, the hashes of its files.
CHECKPOINTS := $(if $(filter-out $(READERS) tools install uninstall clean test fuzz all,\
                   $(or $(MAKECMDGOALS),tools)),\
                   LLADA LLAMA LTM JUDGE BERT BASELINE_LLADA BASELINE_LLAMA)
$(foreach m,$(CHECKPOINTS),$(eval $(R)/stamp/model-$(m): $(shell \
    [ "$$(pipelines/checkpoint '$($(m))')" = "$$(cat $(R)/stamp/model-$(m) 2>&1)" ] || echo FORCE)))
$(CHECKPOINTS:%=$(R)/stamp/model-%): $(R)/stamp/model-%: | pipelines/checkpoint
	@mkdir -p $(@D)
	@pipelines/checkpoint '$($*)' > $@.tmp && mv $@.tmp $@

# Only prompts that all contestants can take with the longest answer to come.
PROMPT_FITS = --fits $(LLADA),$(LLAMA)$(LTM:%=,%) --room $(GEN_LENGTH)
text-$(R)/stamp/prompts = $(PROMPT_FILE) $(PROMPT_CHOICE) $(PROMPT_FLAGS) $(PROMPT_FITS) $(SEED)

$(R)/prompts.ndjson: $(PROMPT_FILE) $(R)/stamp/prompts $(R)/stamp/tool-prep-prompts | $(PIPE)
	$(call say,prompts)\
	    $(once) pipelines/lenient $(BIN)/prep-prompts --seed $(SEED) $(PROMPT_CHOICE) $(PROMPT_FITS) \
	    $(PROMPT_FEWER) $(PROMPT_FLAGS) $(PROMPT_FILE) -o $@

# Made once for a machine; remove it to read the texts again.
$(PROMPTS_system): | pipelines/system-text
	@mkdir -p $(@D)
	$(call say,system-text)pipelines/system-text > $@.tmp
	@mv $@.tmp $@

# turns: the processes of a pair work prompt by prompt, one at a time; alone: one after the other,
# where another machine does the work, or memory holds one model only (TURNS=).
TURNS ?= 1
way   := $(if $(and $(TURNS),$(if $(RUN),,1)),turns,alone)
MODEL_llada := LLADA
MODEL_llama := LLAMA
MODEL_ltm   := LTM
of_systems = $(foreach s,$(call split,$($(1)_SYSTEMS)),$(R)/$(1)/launch/$(s)-%$(2))
# $(call generate,SWEEP,SYSTEM,MODEL)
generate   = $(BIN)/gen-$(2) -m $($(3)) --schedule $$(@D)/$(2)-$$*.plan --launch $$$$((10\#$$*)) \
    $($(1)_TIMING) --seed $(SEED) $(GEN_FLAGS) $($(3)_FLAGS) $($(1)_$(3)_FLAGS) $($(1)_PROMPTS) \
    -o $$(@D)/$(2)-$$*.ndjson
# $(call complete,FILES): $(once) looks at one file. It is not kept where one of FILES is missing.
complete   = for f in $(1); do [ -f $$f ] || rm -f $@; done;

# A sweep is a set of points for one system or several, cut into launches: fresh processes over
# shuffled points. Its settings are the variables NAME_SYSTEMS, _STEPS, _BATCH, _LENGTH, _BLOCK,
# _CONTRACT, _SWEEP (any settings of prep-prompts --schedule, as
# "--unmask threshold --threshold 0.7,0.9"), _METHODS (a file of them, run too),
# _LAUNCHES, _PROMPTS, _TIMING, _LLADA_FLAGS, _LLAMA_FLAGS, _LTM_FLAGS. prep-prompts writes the
# schedule.
# While only the points change, what an earlier schedule held stays as it was: a new point adds
# launches and repeats none. With other settings it is written afresh, and launches that come out
# the same stay.
#
#   $(R)/NAME/schedule.ndjson -> launches.mk (their names) and launch/SYSTEM-NNN.plan
#                             -> launch/SYSTEM-NNN.ndjson -> metrics.ndjson
define planned
$(1)_TIMING ?= $(TIMING)
text-$(R)/$(1)/settings = \
    $$($(1)_SYSTEMS) $$($(1)_LENGTH) $$($(1)_BLOCK) $$($(1)_LAUNCHES) $$(ROUNDS) \
    $$(SEED)

text-$(R)/$(1)/points = $$($(1)_STEPS) $$($(1)_BATCH) $$($(1)_CONTRACT) $$($(1)_SWEEP)

$(R)/$(1)/schedule.ndjson: $(R)/$(1)/settings $(R)/$(1)/points $($(1)_METHODS) \
    | $(BIN)/prep-prompts
	@if [ -f $$@ ]; then cp -p $$@ $$@.before; fi
	$$(call say,schedule of $(1))\
	    $(BIN)/prep-prompts --schedule --launches $($(1)_LAUNCHES) --systems $($(1)_SYSTEMS) \
	    --steps $($(1)_STEPS) --batch $($(1)_BATCH) --gen-length $($(1)_LENGTH) \
	    --block-length $($(1)_BLOCK) --contract $($(1)_CONTRACT) $($(1)_SWEEP) \
	    $($(1)_METHODS:%=--methods %) \
	    --rounds $(ROUNDS) --seed $(SEED) \
	    $$$$([ ! $$@ -nt $$< ] && ! cmp -s $$< $$@.settings || echo --previous $$@.before) -o $$@
	@cp $$< $$@.settings

$(R)/$(1)/launches.mk: $(R)/$(1)/schedule.ndjson
	@mkdir -p $$(@D)/launch
	@jq -r 'select(.kind == "launch") | "\(.launch) \(.system) \(tojson)"' $$< | sort -n | \
	 while read -r n system line; do \
	    printf -v name '%s-%03d' "$$$$system" "$$$$n"; plan=$$(@D)/launch/$$$$name.plan; \
	    printf '%s\n' "$$$$line" > $$$$plan.tmp; \
	    cmp -s $$$$plan.tmp $$$$plan && rm $$$$plan.tmp || mv $$$$plan.tmp $$$$plan; \
	    echo "$(1)_NAMES += $$$$name"; \
	 done > $$@.tmp
	@for plan in $$(@D)/launch/*.plan; do \
	    grep -q " $$$$(basename $$$$plan .plan)$$$$" $$@.tmp || rm $$$$plan; done
	@mv $$@.tmp $$@

ifneq ($(filter $(1),$(SWEEPS) $(if $(filter steps,$(SWEEPS)),$(ANSWERED))),)
include $(R)/$(1)/launches.mk
endif

.PRECIOUS: $(R)/$(1)/launch/%.plan
$(R)/$(1)/launch/%.plan: | $(R)/$(1)/launches.mk
	@test -f $$@

text-$(R)/$(1)/flags = $$($(1)_TIMING) $$($(1)_WAY) $$(GEN_FLAGS) / $$(LLADA_FLAGS) \
    $$($(1)_LLADA_FLAGS) / $$(LLAMA_FLAGS) $$($(1)_LLAMA_FLAGS) \
    $$(if $$(LTM),/ $$(LTM_FLAGS) $$($(1)_LTM_FLAGS))
endef

# The launches of one number are a pair: one of each system, side by side. What a rule with a
# pattern makes, it makes at once.
define launches
$(call planned,$(1))
$(1)_WAY ?= $(way)
$(call of_systems,$(1),.ndjson): $(call of_systems,$(1),.plan) $(R)/$(1)/flags $($(1)_PROMPTS) \
    $(foreach s,$(call split,$($(1)_SYSTEMS)),$(R)/stamp/model-$(MODEL_$(s)) \
        $(R)/stamp/tool-gen-$(s)) | $(PIPE)
	$$(call say,pair $$* of $(1))\
	    $$(call complete,$$(patsubst %.plan,%.ndjson,$$(filter %.plan,$$^))) \
	    $$(once) $(alone) pipelines/side-by-side $$(@D) $(SEED) $$* $$($(1)_WAY) \
	    $(foreach s,$(call split,$($(1)_SYSTEMS)),-- $(call generate,$(1),$(s),$(MODEL_$(s))))
	@touch $(foreach s,$(call split,$($(1)_SYSTEMS)),$$(@D)/$(s)-$$*.ndjson)

$(1)_FILES = $$($(1)_NAMES:%=$(R)/$(1)/launch/%.ndjson)
endef

text-$(R)/stamp/prices = $(PRICES)

# $(call metrics,NAME): metric records of a sweep, once its launches are known; why there are no
# more launches (the schedule was carried out, or what refine found); ratios of the two systems, and
# of what NAME_ANSWERS scores.
define metrics
$(R)/$(1)/stopped: $(R)/$(1)/schedule.ndjson
	@$$(once) sh -c 'echo launches > $$@'

$(R)/$(1)/metrics.ndjson: $($(1)_FILES) $(R)/ceilings.ndjson $(R)/$(1)/stopped \
    $(R)/stamp/prices $(TOOL)-measure | $(QUIET)
	@[ -n '$$($(1)_FILES)' ] || { echo 'no launches in $(R)/$(1)/schedule.ndjson' >&2; exit 65; }
	$$(call say,measure $(1))\
	    $(beside) $(BIN)/measure $($(1)_MEASURE) --verify $(PRICES) \
	    --stopped "$$$$(cat $(R)/$(1)/stopped)" $$($(1)_FILES) $(R)/ceilings.ndjson -o $$@

$(R)/$(1)/ratios.ndjson: $(R)/$(1)/metrics.ndjson $($(1)_ANSWERS) $(R)/stamp/precision \
    $(TOOL)-compare | $(QUIET)
	$$(call say,compare $(1))\
	    $(beside) $(BIN)/compare $(ratio_flags) --stopped "$$$$(cat $(R)/$(1)/stopped)" $$< \
	    $($(1)_ANSWERS) -o $$@
endef

ratio_flags = --by paradigm --cost e2e_ns --precision $(PRECISION) \
    $(if $(MARGIN),--margin $(MARGIN))
text-$(R)/stamp/precision = $(PRECISION) $(MARGIN)

# Which schedules this call of make must know before it can name its targets.
GOALS   := $(or $(MAKECMDGOALS),tools)
LENGTHS := $(call split,$(SCALE_LENGTHS))
SCALES  := $(LENGTHS:%=length-%)
whole   := phase1 phase6 phase7 figures paper report plan bundle replicate results/%
# the methods are part of the page once make decoding has run them
DECODED := $(if $(wildcard $(R)/decoding/by-method.ndjson),$(whole))
# and so are the options that save memory or time, once make ablation has
ABLATED := outcomes \
           $(if $(wildcard $(R)/$(or $(ABLATION),ablation)/outcomes.ndjson),$(whole))
SHAPES  := $(foreach q,$(SHAPE_FORMATS),$(foreach b,$(call split,$(SHAPE_BATCH)),shape-$(q)-$(b)))
ifneq ($(filter shapes measured,$(GOALS)),)
SWEEPS  := $(SHAPES)
else
SWEEPS  := $(sort $(if $(filter $(whole) phase3,$(GOALS)),aa) \
                  $(if $(filter $(whole) phase4,$(GOALS)),steps) \
                  $(if $(filter $(DECODED) decoding,$(GOALS)),decoding) \
                  $(if $(filter $(whole) phase5,$(GOALS)),$(SCALES)))
endif

# Own checkpoints want data and a judge of their own. A profile that is for them (OWN := 1) asks for
# these before anything runs; elsewhere the page says above its answers what is a toy.
OWNED := $(filter-out data/models/% synth:%,$(LLADA) $(LLAMA) $(LTM))
TOY   := $(strip $(if $(OWNED),$(if $(filter data/corpus/%,$(PROMPT_FILE)),PROMPT_FILE) \
             $(if $(filter data/models/%,$(JUDGE)),JUDGE)))
runs  := $(filter phase% all refine refine-steps ready decoding ablation robustness quantizations \
             exact pruning caps release-run $(whole),$(GOALS))
# Errors that make can find without running anything are said before anything runs, with the status
# that a tool would have.
unnamed := $(filter-out $(GIVEN),LLADA LLAMA)
ifneq ($(and $(OWN),$(unnamed),$(if $(TOYS),,1),$(runs)),)
$(error PROFILE=$(PROFILE) (64): expected checkpoints of your own, got no $(unnamed:%=%=). Give \
$(unnamed:%=%=MODEL) and JUDGE=MODEL, a folder or a name in the Hugging Face cache each, or name \
the demonstration's: $(foreach v,$(unnamed),$(v)=$($(v))))
endif
ifneq ($(if $(runs),$(filter-out $(PROMPTS_system) $(wildcard $(PROMPT_FILE)),$(PROMPT_FILE))),)
$(error PROMPT_FILE=$(PROMPT_FILE) (66): no such file; expected a data set (JSONL, ShareGPT, \
WikiText, text, plain or packed), or human, lists or system)
endif
ifneq ($(if $(runs),$(shell echo $$(( $(GEN_LENGTH) % $(BLOCK_LENGTH) )))),$(if $(runs),0))
$(error GEN_LENGTH=$(GEN_LENGTH) (64): expected a multiple of BLOCK_LENGTH=$(BLOCK_LENGTH))
endif
ifneq ($(and $(OWN),$(TOY),$(if $(TOYS),,1),$(runs)),)
$(error PROFILE=$(PROFILE) with $(OWNED): $(TOY) would be of the demonstration. Name a data set \
with PROMPT_FILE=FILE (or human, system) and a third, larger model with JUDGE=MODEL; TOYS=1 goes \
on, and the page says so)
endif
