# common.mk - where results lie, what makes them stale, and how timing is kept quiet.
#
# All results are below $(R) = results/MACHINE/PROFILE. Expensive files depend on stamps: small
# files that are rewritten only when their text changes (settings, checkpoints, the code of a
# generator), and never because a program was built again.

# MACHINE is a hash of the description of this machine, so each machine has a folder of its own.
ifndef FP
FP := $(shell pipelines/bin/machine)
endif
RESULTS := results/$(FP)

# The file of a pair names models and a profile, and has settings that replace settings of the
# profile. The file is therefore included twice: before the file of the profile, and after it.
PAIRS := $(sort $(basename $(notdir $(wildcard pipelines/pairs/*.mk))))
ifneq ($(filter-out $(PAIRS),$(PAIR)),)
$(error PAIR=$(PAIR) (64): expected one of $(PAIRS) (make pairs lists them))
endif
ifneq ($(PAIR),)
include pipelines/pairs/$(PAIR).mk
GIVEN := LLADA LLAMA JUDGE
endif
R := $(RESULTS)/$(PAIR:%=%-)$(PROFILE)

PROFILES := $(basename $(notdir $(wildcard pipelines/profiles/*.mk)))
ifeq ($(filter $(PROFILE),$(PROFILES)),)
$(error PROFILE=$(PROFILE): expected one of $(PROFILES) (files of pipelines/profiles))
endif
include pipelines/profiles/$(PROFILE).mk
ifneq ($(PAIR),)
PROMPT_FILE := human
QUALITY     := judge_ppl:0.1
include pipelines/pairs/$(PAIR).mk
endif
ifneq ($(filter-out 1,$(MASK_BLOCKS)),)
$(error MASK_BLOCKS=$(MASK_BLOCKS) (64): expected 1 or nothing)
endif
# Models with a mask of blocks have no likelihood bound, so no likelihood of prompts is computed.
ifneq ($(MASK_BLOCKS),)
LIKELIHOOD_PROMPTS := 0
QUANTS             :=
ABLATION_BLOCK      = $(BLOCK_LENGTH)
endif
include pipelines/phase/settings.mk

# $(call digits,TEXT): the characters of a text, apart. $(call whole,NAME): an error if the value of
# the setting is not an integer that shells and records hold: at most 15 digits, and no 0 before
# others, which would make it octal in a shell.
digits = $(subst 0,0 ,$(subst 1,1 ,$(subst 2,2 ,$(subst 3,3 ,$(subst 4,4 ,$(subst 5,5 ,$(subst \
             6,6 ,$(subst 7,7 ,$(subst 8,8 ,$(subst 9,9 ,$(1)))))))))))
whole  = $(if $(or $(word 2,$($(1))),$(filter-out 0 1 2 3 4 5 6 7 8 9,$(call digits,$($(1)))),\
                   $(word 16,$(call digits,$($(1)))),$(filter 0%,$(filter-out 0,$($(1)))),\
                   $(if $(strip $($(1))),,empty)),\
             $(error $(1)=$($(1)) (64): expected an integer from 0 to 999999999999999))
$(foreach v,$(INTEGERS),$(if $(filter undefined,$(origin $(v))),,$(call whole,$(v))))

.PHONY: pairs
pairs: ##look list pairs of models, their size, and whether they are on this machine
	@pipelines/bin/pairs $(PAIRS:%=pipelines/pairs/%.mk)

# Prerequisites with $$ are expanded when all files are read; $$* is then the stem of the pattern.
.SECONDEXPANSION:

# ---- values of settings ----

split  = $(subst $(,), ,$(1))
joined = $(subst --threads ,--threads=,$(subst --device ,--device=,$(1)))

PROMPTS_lists   := data/corpus/test-lists.ndjson.gz
PROMPTS_human   := data/prompts/human.ndjson
PROMPTS_system  := $(RESULTS)/system.txt
PROMPT_FEWER    := $(if $(filter human %/human.ndjson,$(PROMPT_FILE)),--allow-fewer)
override PROMPT_FILE := $(or $(PROMPTS_$(PROMPT_FILE)),$(PROMPT_FILE))
# PROMPTS=N on the command line also replaces a choice that the profile made.
ifeq ($(origin PROMPTS) $(origin PROMPT_CHOICE),command line file)
PROMPT_CHOICE   := --count $(PROMPTS)
endif
ifneq ($(filter-out exact mild moderate aggressive,$(LEVEL)),)
$(error LEVEL=$(LEVEL): expected exact, mild, moderate or aggressive)
endif
ifneq ($(LEVEL),)
override GEN_FLAGS += --level $(LEVEL)
endif
PAGED := $(call split,$(PAGE))
ifneq ($(filter-out decoding load ablation latent-ablation peer,$(PAGED)),)
$(error PAGE=$(PAGE) (64): expected a list of decoding, load, ablation, latent-ablation, peer)
endif
# primary: the words of the primary analysis, the first goal of QUALITY: [TASK] METRIC MARGIN.
# primary_metric: its METRIC. primary_task: its TASK; empty: none.
primary        := $(subst :, ,$(firstword $(call split,$(QUALITY))))
primary_metric := $(word $(if $(word 3,$(primary)),2,1),$(primary))
primary_task   := $(if $(word 3,$(primary)),$(word 1,$(primary)))
pareto_flags     = --seed $(SEED) --margin '$(MARGIN)' $(PARETO_FLAGS)
$(foreach v,$(NAMES),$(call plain,$(v)=,$($(v))))
TIMING = --warmup $(WARMUP) --warmup-most $(WARMUP_MOST) --again $(AGAIN) $(if $(FORCE),--force)

# Removes control characters from text of records before it reaches a terminal.
PLAIN = jq -Rr -f pipelines/phase/plain.jq

# ---- recipes ----

# $(call stamp,TEXT): the recipe of a stamp whose name is a pattern. Other stamps are variables
# text-FILE (see the Makefile).
stamp = @text=$(call quoted,$(1)); [ -f $@ ] && [ "$$(< $@)" = "$$text" ] || \
    { mkdir -p $(@D); printf '%s\n' "$$text" > $@; }

# $(alone) comes before a command that is timed, $(beside) before a command that would disturb a
# timed one. With RUN other machines do the work, and their scheduler keeps commands apart. Failed
# records do not stop the phases (pipelines/bin/lenient).
QUIET  := $(RESULTS)/.quiet
alone   = pipelines/bin/lenient $(if $(RUN),$(RUN),flock -x $(QUIET))
beside  = pipelines/bin/lenient flock -s $(QUIET)
# $(untimed) comes before a generator whose times are not used. A generator with one thread runs
# beside other jobs of make -j; with more threads it runs alone.
untimed = $(if $(and $(filter --threads=1,$(call joined,$(GEN_FLAGS))),$(if $(RUN),,1)),$(beside),\
              $(alone))
$(QUIET):
	@mkdir -p $(@D) && touch $@

# $(given) comes before a command whose input may be empty: the output is then empty, too.
given   = [ -s $< ] || { echo '    left out: no record in $<' >&2; : > $@; exit 0; };

# $(once) comes before all other prefixes. It keeps an output whose prerequisites have the bytes
# that they had when the output was made.
once    = MADE='$@' MADE_OF='$^' pipelines/bin/once

# Before anything is timed, all tools must be built and the files of the judge must be there.
PIPE_TOOLS := prep-prompts schedule gen-llada gen-llama $(if $(LTM),gen-ltm) probe-roof \
              measure score-ppl score-exact score-text \
              pareto compare plot report forecast bundle $(if $(BERT),score-bert)
PIPE       := $(PIPE_TOOLS:%=$(BIN)/%) $(QUIET) $(R)/stamp/judge

# $(TOOL)-NAME is a hash of the code of a tool, without commit and debug lines. The rule of
# seen-NAME computes the hash after the tool is linked, and writes the file only if the hash
# differs. The rule of tool-NAME has an empty recipe marked +, so that make -n also sees whether the
# file changed.
TOOL := $(R)/stamp/tool
.PRECIOUS: $(R)/stamp/seen-%
$(R)/stamp/seen-%: $(BIN)/%
	@mkdir -p $(@D)
	@objcopy --strip-all -R .note.gnu.build-id -R .crossover_commit $< $@.tmp
	@sha256sum < $@.tmp | cmp -s - $(@D)/tool-$* || sha256sum < $@.tmp > $(@D)/tool-$*
	@rm $@.tmp && touch $@
$(R)/stamp/tool-%: $(R)/stamp/seen-% ; +

# The rooms that a generator links.
ENGINE_OBJ := $(filter $(BUILD)/obj/kernels/% $(foreach r,run latent decode train network \
                checkpoint text setting record base,$(BUILD)/obj/lib/$(r)/%),$(LIB_OBJ))

# The stamp of a checkpoint: its name and, for a folder, the hashes of its files.
CHECKPOINTS := $(if $(filter-out $(READERS) tools install uninstall clean test fuzz all gpu-%,\
                   $(or $(MAKECMDGOALS),tools)),\
                   LLADA LLAMA LTM JUDGE BERT DRAFT BASELINE_LLADA BASELINE_LLAMA)
$(foreach m,$(CHECKPOINTS),$(eval $(R)/stamp/model-$(m): $(shell \
    [ "$$(pipelines/bin/checkpoint '$($(m))')" = "$$(cat $(R)/stamp/model-$(m) 2>&1)" ] || \
    echo FORCE)))
$(CHECKPOINTS:%=$(R)/stamp/model-%): $(R)/stamp/model-%: | pipelines/bin/checkpoint
	@mkdir -p $(@D)
	@pipelines/bin/checkpoint '$($*)' > $@.tmp && mv $@.tmp $@

# Takes only prompts that fit the context of every model together with the longest answer.
PROMPT_FITS = --fits $(LLADA),$(LLAMA)$(LTM:%=,%) --room $(GEN_LENGTH)
text-$(R)/stamp/prompts = $(PROMPT_FILE) $(PROMPT_CHOICE) $(PROMPT_FLAGS) $(PROMPT_FITS) $(SEED)

$(R)/prompts.ndjson: $(PROMPT_FILE) $(R)/stamp/prompts $(R)/stamp/tool-prep-prompts | $(PIPE)
	$(call say,prompts)\
	    $(once) pipelines/bin/lenient $(BIN)/prep-prompts --seed $(SEED) \
	    $(PROMPT_CHOICE) $(PROMPT_FITS) $(PROMPT_FEWER) $(PROMPT_FLAGS) $(PROMPT_FILE) -o $@

# These texts are read once for a machine. To read them again, remove the file.
$(PROMPTS_system): | pipelines/bin/system-text
	@mkdir -p $(@D)
	$(call say,system-text)pipelines/bin/system-text > $@.tmp
	@mv $@.tmp $@

# ---- which sweeps this call of make needs ----

# Each launch is a file, and the schedule of a sweep decides the names of these files. So make must
# know the schedule before it can name its targets: make includes launches.mk, which sweep.mk
# writes. With make -n, and with goals that only look, make reads the launches.mk that exists, so
# that nothing is built or written.
GOALS   := $(or $(MAKECMDGOALS),tools)
LENGTHS := $(call split,$(SCALE_LENGTHS))
SCALES  := $(LENGTHS:%=length-%)
# $(call shape_of,FORMAT,BATCH,LENGTH): the name of a sweep of make shapes. The first of several
# lengths is not part of the name.
shape_of = shape-$(1)-$(2)$(if $(filter $(3),$(firstword $(call split,$(SHAPE_LENGTH)))),,-$(3))
SHAPES  := $(foreach q,$(SHAPE_FORMATS),$(foreach b,$(call split,$(SHAPE_BATCH)),$(foreach l,\
               $(call split,$(SHAPE_LENGTH)),$(call shape_of,$(q),$(b),$(l)))))
# With TIMED_PROMPTS all prompts are also answered untimed; only these answers are scored.
ANSWERED := $(if $(TIMED_PROMPTS),answers)
# goals that need the whole run, and the experiments that PAGE names
whole   := phase1 phase6 phase7 figures paper report bundle replicate results/%
DECODED := $(if $(filter decoding,$(PAGED)),$(whole))
LOADED  := $(if $(filter load,$(PAGED)),$(whole))
ABLATED := outcomes $(if $(filter $(or $(ABLATION),ablation),$(PAGED)),$(whole))
ifneq ($(filter shapes measured,$(GOALS)),)
SWEEPS  := $(SHAPES)
else
SWEEPS  := $(sort $(if $(filter $(whole) phase3,$(GOALS)),aa) \
                  $(if $(filter $(whole) phase4,$(GOALS)),steps) \
                  $(if $(filter $(DECODED) decoding,$(GOALS)),decoding) \
                  $(if $(filter $(LOADED) load,$(GOALS)),load) \
                  $(if $(filter $(whole) phase5,$(GOALS)),$(SCALES)))
endif
# without records there are no figures, so these goals need no sweep
HAS_RECORDS := $(wildcard $(R)/steps/metrics.ndjson $(R)/shapes.ndjson)
LOOKS   := $(or $(DRY),$(if $(filter-out $(if $(HAS_RECORDS),,figures paper),$(GOALS)),,looks))
LISTS   := $(patsubst %,$(R)/%/launches.mk,$(SWEEPS) $(if $(filter steps,$(SWEEPS)),$(ANSWERED)))
ifeq ($(LOOKS),)
include $(LISTS)
else
$(foreach f,$(wildcard $(LISTS)),$(eval $(file <$(f))))
endif
$(foreach s,$(SWEEPS) $(ANSWERED),$(eval $(s)_FILES := $($(s)_NAMES:%=$(R)/$(s)/launch/%.ndjson)))

# ---- settings of several sweeps ----

# Launches of each model: the number of the profile, or the larger number that make refine wrote.
launches_of = $(if $(wildcard $(R)/$(1)/refined),$(shell n=$$(< $(R)/$(1)/refined); \
                  echo $$((n > $(2) ? n : $(2)))),$(2))
systems       := llada,llama$(if $(LTM),$(,)ltm)
timed_prompts := $(if $(TIMED_PROMPTS),$(R)/timed-prompts.ndjson,$(R)/prompts.ndjson)
# $(call fitted,STEPS): the latent model is swept along the steps of its fit
fitted         = $(if $(LTM),--vi-steps $(1))
# With MASK_BLOCKS the length of a block is fixed. Commands that fill an answer as one block
# therefore use these four functions:
#   $(call one_block,LENGTH)       the block length
#   $(call in_blocks,LENGTH)       the answer length, rounded up to whole blocks
#   $(call blocks_in,LENGTH)       the number of blocks, as an expression of the shell
#   $(call steps_in,LENGTH,STEPS)  the step count, rounded up to a multiple of the number of blocks
one_block      = $(if $(MASK_BLOCKS),$(BLOCK_LENGTH),$(1))
in_blocks      = $(if $(MASK_BLOCKS),$(call multiple,$(BLOCK_LENGTH),$(1)),$(1))
blocks_in      = $(if $(MASK_BLOCKS),(($(1) - 1) / $(BLOCK_LENGTH) + 1),1)
steps_in       = $(if $(MASK_BLOCKS),$(call multiple,$(call blocks_in,$(1)),$(2)),$(2))
multiple       = $(shell echo $$(( ($(2) + $(1) - 1) / $(1) * $(1) )))
# step counts that make refine-steps has added
-include $(R)/steps/added.mk

# ---- refusals ----

# Checkpoints of the user need data and a judge of the user. A profile for such checkpoints (OWN :=
# 1) refuses to run without them. With other profiles the page calls the embedded data and judge
# toys.
OWNED := $(filter-out data/models/% synth:%,$(LLADA) $(LLAMA) $(LTM))
TOY   := $(strip $(if $(OWNED),$(if $(filter data/corpus/%,$(PROMPT_FILE)),PROMPT_FILE) \
             $(if $(filter data/models/%,$(JUDGE)),JUDGE)))
runs  := $(filter phase% all refine refine-steps ready decoding load ablation robustness \
             quantizations exact pruning caps release-run $(whole),$(GOALS))
# make refuses what it can check by itself before anything runs. The number in a message is the exit
# status that a tool has for this error.
ABSENT  := $(strip $(if $(and $(PAIR),$(runs)),\
               $(foreach m,$(sort $(LLADA) $(LLAMA) $(JUDGE) $(DRAFT)),\
                   $(if $(filter here,$(shell pipelines/bin/cached $(m))),,$(m)))))
ifneq ($(ABSENT),)
$(error PAIR=$(PAIR) (66): these models are not complete in the local Hugging Face cache: \
$(ABSENT). Fetch them: $(ABSENT:%=hf download %;) (sizes: make pairs))
endif
unnamed := $(filter-out $(GIVEN),LLADA LLAMA)
ifneq ($(and $(OWN),$(unnamed),$(if $(TOYS),,1),$(runs)),)
$(error PROFILE=$(PROFILE) (64): expected checkpoints of your own, got no $(unnamed:%=%=). Give \
$(unnamed:%=%=MODEL) and JUDGE=MODEL, each a folder or a name in the Hugging Face cache, or name \
those of the demonstration: $(foreach v,$(unnamed),$(v)=$($(v))))
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
