# phase4.mk - quality against computation: the step sweep, its quality, the front, the crossover.

text-$(R)/stamp/score = $(SCORE_FLAGS)

text-$(R)/stamp/likelihood = \
    $(LIKELIHOOD_PROMPTS) $(LIKELIHOOD_SAMPLES) $(LIKELIHOOD_ORDERS) $(SEED) \
    $(if $(LTM),$(LIKELIHOOD_FIT))

text-$(R)/stamp/pareto = $(PARETO_FLAGS) $(MARGIN) $(SEED)

# What quality is of: the answers to all prompts where only some are timed. One of each distinct
# answer: repeats of a greedy answer are scored once.
QUALITY_OF = $(if $(ANSWERED),$(answers_FILES),$(steps_FILES))
$(R)/steps/generations.ndjson: $(QUALITY_OF) $(firstword $(steps_FILES)) \
    pipelines/phase/distinct.jq
	@jq -cn -f pipelines/phase/distinct.jq $(if $(ANSWERED),--slurpfile timed <(grep -m 1 \
	    '"kind":"generation"' $(firstword $(steps_FILES)))) $(QUALITY_OF) > $@.tmp && mv $@.tmp $@

# Those that were timed and those that were not have to be the same. Latents are drawn anew in each
# launch.
$(R)/answers/passes.ndjson: $(answers_FILES) $(steps_FILES) pipelines/phase/passes.jq
	@jq -nc -f pipelines/phase/passes.jq $(foreach f,$(answers_FILES) $(steps_FILES),\
	    $(if $(findstring /ltm-,$(f)),,$(f))) > $@.tmp && mv $@.tmp $@
	@jq -r .text $@

# A judge has to be a third one, and no smaller than those it judges: said aloud where it is not.
# The stamp of a checkpoint is its name and the hashes of its files.
small_judge = $(if $(filter %/judge-demo,$(JUDGE)),\
                  $(filter-out data/models/%-demo,$(LLADA) $(LLAMA) $(LTM)))
judged      = LLADA LLAMA $(if $(LTM),LTM)
$(R)/judge.words: $(foreach m,JUDGE $(judged),$(R)/stamp/model-$(m))
	@judge=$$(tail -n +2 $(R)/stamp/model-JUDGE); for m in $(judged); do \
	    files=$$(tail -n +2 $(R)/stamp/model-$$m); \
	    if cmp -s $(R)/stamp/model-JUDGE $(R)/stamp/model-$$m || \
	        { [ -n "$$files" ] && [ "$$files" = "$$judge" ]; }; \
	    then echo "the judge is $$m itself: its verdict on its own texts is no third opinion"; fi; \
	done > $@.tmp
	@small='$(strip $(small_judge))'; [ -z "$$small" ] || echo "JUDGE is the embedded demonstration" \
	    "model and cannot judge $$small: name one with JUDGE=" >> $@.tmp
	@mv $@.tmp $@
	@sed 's/^/WARNING: /' $@ | $(PLAIN) >&2

# One answer from pass to pass, vanilla and by a rule that commits as it is sure: the passes of
# TRACE_UNMASK, not their times. What drawn weights would commit is an invention.
text-$(R)/stamp/trace = \
    $(TRACE_UNMASK) $(GEN_LENGTH) $(BLOCK_LENGTH) $(SEED) $(GEN_FLAGS) $(LLADA_FLAGS)

TRACE := $(if $(filter synth:%,$(LLADA)),,$(R)/steps/trace.ndjson)
$(R)/steps/trace.ndjson: $(R)/prompts.ndjson $(R)/stamp/trace $(R)/stamp/model-LLADA \
    $(R)/stamp/tool-gen-llada | $(PIPE)
	@mkdir -p $(@D)
	$(call say,gen-llada trace)\
	    $(once) $(alone) $(BIN)/gen-llada -m $(LLADA) --unmask $(TRACE_UNMASK) \
	    --gen-length $(GEN_LENGTH) --block-length $(BLOCK_LENGTH) --limit 1 --seed $(SEED) \
	    $(GEN_FLAGS) $(LLADA_FLAGS) --trace $@ $< -o /dev/null

$(R)/steps/judge.ndjson: $(R)/steps/generations.ndjson $(R)/stamp/model-JUDGE \
    $(R)/stamp/score $(R)/stamp/tool-score-ppl | $(PIPE) $(R)/judge.words
	$(call say,score-ppl judge)\
	    $(once) $(beside) $(BIN)/score-ppl --mode judge -m $(JUDGE) $(SCORE_FLAGS) $< -o $@

$(R)/steps/exact.ndjson: $(R)/steps/generations.ndjson $(TOOL)-score-exact | $(QUIET)
	$(call say,score-exact)\
	    $(beside) $(BIN)/score-exact $< -o $@

# How near answers come to references, where prompts have any: in n-grams and words, and with
# BERT=NAME in the vectors of an encoder.
$(R)/steps/text.ndjson: $(R)/steps/generations.ndjson $(TOOL)-score-text | $(QUIET)
	$(call say,score-text)\
	    $(beside) $(BIN)/score-text $< -o $@

$(R)/steps/bert.ndjson: $(R)/steps/generations.ndjson $(R)/stamp/model-BERT \
    $(R)/stamp/tool-score-bert | $(PIPE)
	$(call say,score-bert)\
	    $(once) $(beside) $(BIN)/score-bert -m $(BERT) $< -o $@

# What the models themselves say of the reference answers: exact for LLaMA; for LLaDA a bound over
# all orders, and one for each step count; for latents a bound by draws that no fit has seen.
# Prompts without references have none of these (workload.jq says so).
$(R)/likelihood/prompts.ndjson: $(R)/prompts.ndjson $(R)/stamp/likelihood
	@mkdir -p $(@D)
	@jq -c 'select(.reference != null)' $< | sed -n '1,$(LIKELIHOOD_PROMPTS)p' > $@.tmp
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

# Of whole texts: the difference of two bounds is none.
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

.PHONY: phase4
PASSES := $(ANSWERED:%=$(R)/%/passes.ndjson)
PHASE4 := $(R)/pareto.ndjson $(PASSES) $(LIKELIHOOD) $(LATENT_BOUND) \
          $(R)/figures/pareto.svg $(R)/figures/steps.svg
phase4: $(PHASE4) ## quality by steps, front, crossover: STEPS= SWEEP= LAUNCHES=; most of the time
	@jq -sr -f pipelines/phase/summary.jq $(R)/steps/metrics.ndjson $(R)/steps/judge.ndjson \
	    $(R)/pareto.ndjson | $(PLAIN)
	@sed 's/^/WARNING: /' $(R)/judge.words | $(PLAIN)
