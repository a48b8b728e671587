# phase4.mk - phase 4, quality against computation: the step sweep, its quality, the front, the
# crossover.
#
# The sweep is called steps. This file has its settings and what is made of its answers; sweep.mk
# has the commands that generate and measure it.
SWEPT          += steps $(ANSWERED)
steps_SYSTEMS  := $(systems)
steps_STEPS    := $(STEPS)$(STEPS_ADDED:%=,%)
steps_SWEEP     = $(SWEEP) $(call fitted,$(LTM_STEPS))
steps_CONTRACT := $(CONTRACT)
steps_BATCH    := 1
steps_LENGTH   := $(GEN_LENGTH)
steps_BLOCK    := $(BLOCK_LENGTH)
steps_METHODS  := $(if $(METHODS),$(R)/methods.ndjson)
steps_LAUNCHES := $(call launches_of,steps,$(LAUNCHES))
steps_PROMPTS  := $(timed_prompts)
steps_ANSWERS  := $(if $(METHODS)$(LTM),$(R)/steps/exact.ndjson)

# With TIMED_PROMPTS the points of the sweep run once more, untimed, on all prompts. A generator
# with one thread leaves cores idle, so each launch answers a quarter of the prompts, and make -j
# runs launches at once. (Each launch loads its model again, so more parts would gain less.)
answers_SYSTEMS  := $(steps_SYSTEMS)
answers_STEPS    := $(steps_STEPS)
answers_SWEEP     = $(steps_SWEEP)
answers_CONTRACT := $(steps_CONTRACT)
answers_BATCH    := $(steps_BATCH)
answers_LENGTH   := $(steps_LENGTH)
answers_BLOCK    := $(steps_BLOCK)
answers_METHODS  := $(steps_METHODS)
answers_LAUNCHES := $(if $(filter --threads=1,$(call joined,$(GEN_FLAGS))),4,1)
answers_PROMPTS  := $(R)/answers/prompts-%.ndjson
answers_WAY      := alone
answers_LOCK      = $(untimed)
answers_TIMING   := --warmup 0 $(if $(FORCE),--force)

# The prompts of launch $*. (Only patterns name these files, so make would remove them.)
.PRECIOUS: $(R)/answers/prompts-%.ndjson
$(R)/answers/prompts-%.ndjson: $(R)/prompts.ndjson $(R)/answers/settings
	@awk '/"kind":"prompt"/ && n++ % $(answers_LAUNCHES) == "$*" % $(answers_LAUNCHES)' $< > $@.tmp
	@mv $@.tmp $@

text-$(R)/stamp/score = $(SCORE_FLAGS)

text-$(R)/stamp/likelihood = \
    $(LIKELIHOOD_PROMPTS) $(LIKELIHOOD_SAMPLES) $(LIKELIHOOD_ORDERS) $(SEED) \
    $(if $(LTM),$(LIKELIHOOD_FIT))

text-$(R)/stamp/pareto = $(PARETO_FLAGS) $(MARGIN) $(SEED)

# The answers that quality is computed from. Each distinct answer is scored once, because repeats of
# a greedy answer have the same score.
QUALITY_OF = $(if $(ANSWERED),$(answers_FILES),$(steps_FILES))
$(R)/steps/generations.ndjson: $(QUALITY_OF) $(firstword $(steps_FILES)) \
    pipelines/phase/distinct.jq
	@jq -cn -f pipelines/phase/distinct.jq $(if $(ANSWERED),--slurpfile timed <(grep -m 1 \
	    '"kind":"generation"' $(firstword $(steps_FILES)))) $(QUALITY_OF) > $@.tmp && mv $@.tmp $@

# Timed and untimed answers must have the same ids, except for latents, which each launch draws
# anew.
without_ltm = $(foreach f,$(1),$(if $(findstring /ltm-,$(f)),,$(f)))
$(R)/answers/passes.ndjson: $(answers_FILES) $(steps_FILES) $(TOOL)-compare
	@$(BIN)/compare -q --same-ids 1 <(cat $(call without_ltm,$(answers_FILES))) \
	    $(call without_ltm,$(steps_FILES)) -o $@ || [ $$? -eq 1 ]
	@jq -r '.text // empty' $@ | $(PLAIN)

# The judge must be a third model, and no smaller than the models that it judges; else there is a
# warning. (The stamp of a checkpoint is its name and the hashes of its files.)
small_judge = $(if $(filter %/judge-demo,$(JUDGE)),\
                  $(filter-out data/models/%-demo,$(LLADA) $(LLAMA) $(LTM)))
judged      = LLADA LLAMA $(if $(LTM),LTM)
$(R)/judge.words: $(foreach m,JUDGE $(judged),$(R)/stamp/model-$(m))
	@judge=$$(tail -n +2 $(R)/stamp/model-JUDGE); for m in $(judged); do \
	    files=$$(tail -n +2 $(R)/stamp/model-$$m); \
	    if cmp -s $(R)/stamp/model-JUDGE $(R)/stamp/model-$$m || \
	        { [ -n "$$files" ] && [ "$$files" = "$$judge" ]; }; \
	    then echo "the judge is $$m itself, so it judges its own texts; name a third model with" \
	        "JUDGE="; fi; \
	done > $@.tmp
	@small='$(strip $(small_judge))'; [ -z "$$small" ] || echo "JUDGE is the embedded demonstration" \
	    "model and cannot judge $$small: name one with JUDGE=" >> $@.tmp
	@mv $@.tmp $@
	@sed 's/^/WARNING: /' $@ | $(PLAIN) >&2

# Traces one answer from pass to pass, by each rule of TRACE_UNMASK. (With random weights a trace
# would mean nothing.)
text-$(R)/stamp/trace = \
    $(TRACE_UNMASK) $(GEN_LENGTH) $(BLOCK_LENGTH) $(SEED) $(GEN_FLAGS) $(LLADA_FLAGS)

TRACE := $(if $(filter synth:%,$(LLADA)),,$(R)/steps/trace.ndjson)
$(R)/steps/trace.ndjson: $(R)/prompts.ndjson $(R)/stamp/trace $(R)/stamp/model-LLADA \
    $(R)/stamp/tool-gen-llada | $(PIPE)
	@mkdir -p $(@D)
	$(call say,gen-llada trace)\
	    $(once) $(untimed) $(BIN)/gen-llada -m $(LLADA) --unmask $(TRACE_UNMASK) \
	    --gen-length $(GEN_LENGTH) --block-length $(BLOCK_LENGTH) --limit 1 --seed $(SEED) \
	    $(GEN_FLAGS) $(LLADA_FLAGS) --trace $@ $< -o /dev/null

$(R)/steps/judge.ndjson: $(R)/steps/generations.ndjson $(R)/stamp/model-JUDGE \
    $(R)/stamp/score $(R)/stamp/tool-score-ppl | $(PIPE) $(R)/judge.words
	$(call say,score-ppl judge)\
	    $(once) $(beside) $(BIN)/score-ppl --mode judge -m $(JUDGE) $(SCORE_FLAGS) $< -o $@

$(R)/steps/exact.ndjson: $(R)/steps/generations.ndjson $(TOOL)-score-exact | $(QUIET)
	$(call say,score-exact)\
	    $(beside) $(BIN)/score-exact $< -o $@

# Scores how close answers are to the references of the prompts: by n-grams and words, and with
# BERT=NAME also by the vectors of an encoder.
$(R)/steps/text.ndjson: $(R)/steps/generations.ndjson $(TOOL)-score-text | $(QUIET)
	$(call say,score-text)\
	    $(beside) $(BIN)/score-text $< -o $@

$(R)/steps/bert.ndjson: $(R)/steps/generations.ndjson $(R)/stamp/model-BERT \
    $(R)/stamp/tool-score-bert | $(PIPE)
	$(call say,score-bert)\
	    $(once) $(beside) $(BIN)/score-bert -m $(BERT) $< -o $@

# Likelihoods of the reference answers. LLaMA has exact ones. LLaDA has a bound over all orders, and
# a bound for each step count. The latent model has a bound by draws that its fit has not seen.
# Prompts without references have no likelihood.
$(R)/likelihood/prompts.ndjson: $(R)/prompts.ndjson $(R)/stamp/likelihood
	@mkdir -p $(@D)
	@jq -c 'select(.reference != null)' $< | awk 'NR <= $(LIKELIHOOD_PROMPTS)' > $@.tmp
	@mv $@.tmp $@

KSTEP      := $(foreach k,$(call split,$(KSTEPS)),$(R)/likelihood/kstep-$(k).ndjson)
LIKELIHOOD := $(R)/likelihood/nll.ndjson $(R)/likelihood/elbo.ndjson $(KSTEP)
$(R)/likelihood/nll.ndjson: OF = --mode nll -m $(LLAMA)
$(R)/likelihood/nll.ndjson: $(R)/stamp/model-LLAMA
$(R)/likelihood/elbo.ndjson: OF = --mode elbo -m $(LLADA) --samples $(LIKELIHOOD_SAMPLES)
$(R)/likelihood/elbo.ndjson: $(R)/stamp/model-LLADA
$(KSTEP): OF = --mode kstep -m $(LLADA) --orders $(LIKELIHOOD_ORDERS) --steps $(*:kstep-%=%)
$(KSTEP): $(R)/stamp/model-LLADA
$(LIKELIHOOD): $(R)/likelihood/%.ndjson: $(R)/likelihood/prompts.ndjson $(R)/stamp/score \
    $(R)/stamp/tool-score-ppl | $(PIPE)
	$(call say,score-ppl $*)\
	    $(given) $(once) $(beside) $(BIN)/score-ppl $(OF) --target reference --seed $(SEED) \
	    $(SCORE_FLAGS) $< -o $@

# The latent model is scored by the bound of whole texts, because the difference of two bounds is
# not a bound.
LATENT_BOUND := $(if $(LTM),$(R)/likelihood/elbo-ltm.ndjson)
$(R)/likelihood/texts.ndjson: $(R)/likelihood/prompts.ndjson
	@jq -c '.text += .reference' $< > $@.tmp && mv $@.tmp $@

$(R)/likelihood/elbo-ltm.ndjson: $(R)/likelihood/texts.ndjson $(R)/stamp/score \
    $(R)/stamp/model-LTM $(R)/stamp/tool-score-ppl | $(PIPE)
	$(call say,score-ppl elbo-ltm)\
	    $(given) $(once) $(beside) $(BIN)/score-ppl --mode elbo -m $(LTM) \
	    --vi-steps $(LIKELIHOOD_FIT) \
	    --samples $(LIKELIHOOD_SAMPLES) --seed $(SEED) $(SCORE_FLAGS) $< -o $@

SCORED := $(R)/steps/judge.ndjson $(R)/steps/exact.ndjson $(R)/steps/text.ndjson \
          $(if $(BERT),$(R)/steps/bert.ndjson)
$(R)/pareto.ndjson: $(R)/steps/metrics.ndjson $(SCORED) $(R)/stamp/pareto $(TOOL)-pareto | $(QUIET)
	$(call say,pareto)\
	    $(beside) $(BIN)/pareto $(pareto_flags) $(filter %.ndjson,$^) -o $@

# These files have tokens per pass with accuracy under parallelism, and the parts of the time of a
# step. Not every run has both: a task may have no right answers, and launches on several machines
# have no ceilings of one machine. compare then says why with status 65, and the file is empty.
STEP_PARTS := $(R)/steps/aup.ndjson $(R)/steps/split.ndjson
$(R)/steps/aup.ndjson: $(R)/steps/generations.ndjson $(R)/steps/exact.ndjson
$(R)/steps/split.ndjson: $(steps_FILES) $(R)/ceilings.ndjson
$(STEP_PARTS): $(R)/steps/%.ndjson: $(TOOL)-compare | $(QUIET)
	$(call say,compare $*)\
	    $(beside) $(BIN)/compare -q --$* $(filter %.ndjson,$^) -o $@ || \
	    { [ $$? -eq 65 ] && echo '    left out: $(@F)' >&2 && : > $@; }

.PHONY: phase4
PASSES := $(ANSWERED:%=$(R)/%/passes.ndjson)
PHASE4 := $(R)/pareto.ndjson $(STEP_PARTS) $(PASSES) $(LIKELIHOOD) $(LATENT_BOUND) \
          $(R)/figures/pareto.svg $(R)/figures/steps.svg
phase4: $(PHASE4) ##run quality and speed by steps, front, crossover; most of the time
	@jq -sr -f pipelines/phase/summary.jq $(R)/steps/metrics.ndjson $(R)/steps/judge.ndjson \
	    $(R)/pareto.ndjson | $(PLAIN)
	@sed 's/^/WARNING: /' $(R)/judge.words | $(PLAIN)
