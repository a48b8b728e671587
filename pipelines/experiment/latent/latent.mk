# latent.mk - make latent-ablation: make ablation for the latent thought model (LTM), and five
# effects that no option of its generator shows: the forms of time mixing; the time of a token along
# a long answer, with and without a cache; a learned prior of the latents against N(0, I); the error
# of solvers by number of evaluations; and training with more threads, with layers computed again,
# and in other number formats.

# repeats of the bench and of the timed trainings
LATENT_TURNS  ?= 5
# shapes of the bench (--shapes); small: up to 4,096 tokens at the width of a small network
LATENT_SHAPES ?= small
# seconds that the bench spends on a point
LATENT_POINT  ?= 0.05
# tokens of a long answer
LATENT_LENGTH ?= 384
# number of long answers
LATENT_LONG   ?= 2
# rounds of long answers with a cache
LATENT_on     ?= 10
# rounds of long answers without a cache; each takes much longer than with one
LATENT_off    ?= 3
# tokens of an answer of the shapes ltm-l-rwkv6 and ltm-l-rwkv7 with random weights
LATENT_DRAWN  ?= 256
# texts of the trainings
LATENT_TEXT   ?= data/corpus/train.ndjson.gz
# steps of a timed training
LATENT_STEPS  ?= 12
# steps of a training in a number format
LATENT_AWARE  ?= 40
# texts whose likelihood bound is computed after such a training
LATENT_SCORED ?= 32
# texts that the prior is learned from
PRIOR_TEXT    ?= data/corpus/train.ndjson.gz
# options of train-prior
PRIOR_TRAIN   ?= --count 1000 --vi-steps 4 --vi-rate 0.2 --width 64 --layers 2 --steps 1500
# options of score-ppl for the bound under each prior
PRIOR_BOUND   ?= --vi-steps 4 --vi-rate 0.2 --samples 8
# texts generated from nothing under each prior
PRIOR_DRAWN   ?= 128
LATENT        := $(R)/latent-ablation
LATENT_TURN   := $(shell seq $(LATENT_TURNS))
latent_turns   = $(foreach n,$(LATENT_TURN),$(LATENT)/$(1)-$(n).ndjson)
LATENT_BENCH  := $(call latent_turns,bench)

$(LATENT_BENCH): $(LATENT)/bench-%.ndjson: $(BUILD)/tests/bench/bench | $(QUIET)
	@mkdir -p $(@D)
	$(call say,bench $*)\
	    $(alone) $< --only wkv,solvers,activations --shapes $(LATENT_SHAPES) \
	    --point $(LATENT_POINT) --seed $* --bin $(BIN) -q -o $@

LATENT_LONGS := $(LATENT)/long-on.ndjson $(LATENT)/long-off.ndjson
$(LATENT_LONGS): $(LATENT)/long-%.ndjson: $(R)/prompts.ndjson $(LATENT)/long-flags \
    $(R)/stamp/model-LTM $(R)/stamp/tool-gen-ltm | $(PIPE)
	$(call say,gen-ltm long answers cache $*)\
	    $(once) $(alone) $(BIN)/gen-ltm -m $(LTM) --limit $(LATENT_LONG) --vi-steps 0 --cache $* \
	    --max-new $(LATENT_LENGTH) --contract fixed --repeat $(LATENT_$*) --warmup 1 \
	    --seed $(SEED) $(GEN_FLAGS) $(LTM_FLAGS) $< -o $@

text-$(LATENT)/long-flags = \
    $(LATENT_LENGTH) $(LATENT_LONG) $(LATENT_on) $(LATENT_off) $(GEN_FLAGS) \
    $(LTM_FLAGS)

LATENT_MIXED := $(LATENT)/drawn-rwkv6.ndjson $(LATENT)/drawn-rwkv7.ndjson
text-$(LATENT)/drawn-flags = $(LATENT_DRAWN) $(LATENT_TURNS) $(GEN_FLAGS)
$(LATENT)/drawn-prompt.ndjson: | $(QUIET)
	@mkdir -p $(@D)
	@echo '{"id":"drawn","prompt_ids":[1,2,3,4,5,6,7,8]}' > $@
$(LATENT_MIXED): $(LATENT)/drawn-%.ndjson: $(LATENT)/drawn-prompt.ndjson $(LATENT)/drawn-flags \
    $(R)/stamp/tool-gen-ltm | $(PIPE)
	$(call say,gen-ltm ltm-l $*)\
	    $(once) $(alone) $(BIN)/gen-ltm -m synth:ltm-l-$* --z zero --max-new $(LATENT_DRAWN) \
	    --contract fixed --repeat $(LATENT_TURNS) --warmup 1 --dtype bf16 --seed $(SEED) \
	    $(GEN_FLAGS) $< -o $@

# $(call latent_train,FLAGS,FOLDER): continues the training of LTM in FOLDER, which is emptied
# first.
latent_train = rm -rf $(2); mkdir -p $(2); \
    $(alone) $(BIN)/train-lm --from $(LTM) --vi-steps 1 --rows 512 --min-len 64 --max-len 112 \
    --limit 2000 --warmup 4 --rate 0.0003 --seed $(SEED) $(1) --out $(2) $(LATENT_TEXT) -q -o $@

latent_flags_plain   :=
latent_flags_loader  := --loaders 1
latent_flags_loaders := --loaders 2
latent_flags_again   := --checkpoint-every 1
LATENT_TIMED := $(foreach n,$(LATENT_TURN),$(foreach w,plain loader loaders again,\
    $(LATENT)/train-$(w)-$(n).ndjson))
LATENT_TRAIN  = $(LATENT)/train-flags $(R)/stamp/model-LTM $(R)/stamp/tool-train-lm
text-$(LATENT)/train-flags = $(LATENT_TEXT) $(LATENT_STEPS) $(LATENT_AWARE) $(LATENT_SCORED) $(SEED)
$(LATENT_TIMED): $(LATENT)/train-%.ndjson: $(LATENT_TRAIN) | $(PIPE) $(BIN)/train-lm
	$(call say,train-lm $*)\
	    $(call latent_train,$(latent_flags_$(firstword $(subst -, ,$*))) \
	        --steps $(LATENT_STEPS) --report $(LATENT_STEPS),$(LATENT)/trained/timed-$*) \
        && rm -rf $(LATENT)/trained/timed-$*

LATENT_AWARES := $(foreach f,none int8 nf4,$(LATENT)/aware-$(f).ndjson)
$(LATENT_AWARES): $(LATENT)/aware-%.ndjson: $(LATENT_TRAIN) | $(PIPE) $(BIN)/train-lm
	$(call say,train-lm --qat $*)\
	    $(call latent_train,--qat $* --steps $(LATENT_AWARE) --report $(LATENT_AWARE),\
	        $(LATENT)/trained/qat-$*)

# bound-TRAINED-FORMAT: the bound in FORMAT after a training in TRAINED (none: without a format).
LATENT_BOUNDS := $(foreach b,none-int8 int8-int8 none-nf4 nf4-nf4,$(LATENT)/bound-$(b).ndjson)
$(LATENT_BOUNDS): $(LATENT)/bound-%.ndjson: $(LATENT)/texts.ndjson $(LATENT_AWARES) \
    $(R)/stamp/tool-score-ppl | $(PIPE)
	$(call say,score-ppl $*)\
	    $(once) $(beside) $(BIN)/score-ppl --mode elbo --vi-steps 0 --samples $(QUANT_SAMPLES) \
	    -m $(LATENT)/trained/qat-$(firstword $(subst -, ,$*)) --limit $(LATENT_SCORED) \
	    --quant $(lastword $(subst -, ,$*)) --seed $(SEED) $(SCORE_FLAGS) $< -o $@

LATENT_ALL := $(LATENT_BENCH) $(LATENT_LONGS) $(LATENT_MIXED) $(LATENT_TIMED) $(LATENT_BOUNDS)
$(LATENT)/elsewhere.ndjson: $(LATENT_ALL) pipelines/experiment/latent/latent.jq $(TOOL)-compare \
    | $(QUIET)
	$(call say,compare samples)\
	    jq -sc -f pipelines/experiment/latent/latent.jq $(LATENT_ALL) | \
	    $(beside) $(BIN)/compare --samples -o $@

# The prior is learned in a copy of the model, unless the model has a prior. The model must be a
# folder. Two qualities are compared between the learned prior and N(0, I): the bound of given
# texts, and the judge's perplexity of texts that are generated without a prompt.
PRIOR_MODEL := $(if $(wildcard $(LTM)/prior.safetensors),$(LTM),$(LATENT)/with-prior)
PRIOR_MADE  := $(if $(filter $(LTM),$(PRIOR_MODEL)),,$(LATENT)/train-prior.ndjson)

text-$(LATENT)/prior-flags = $(PRIOR_TRAIN) $(SEED)

text-$(LATENT)/worth-flags = \
    $(PRIOR_BOUND) / $(PRIOR_DRAWN) $(ABLATION_LENGTH) $(GEN_FLAGS) / $(SCORE_FLAGS)

$(LATENT)/train-prior.ndjson: $(LATENT)/prior-flags $(PRIOR_TEXT) $(R)/stamp/model-LTM \
    $(R)/stamp/tool-train-prior | $(BIN)/train-prior $(QUIET)
	$(call say,train-prior)\
	    rm -rf $(LATENT)/with-prior; cp -rL $(LTM) $(LATENT)/with-prior; \
	    $(beside) $(BIN)/train-prior $(PRIOR_TRAIN) -m $(LATENT)/with-prior --seed $(SEED) \
	    $(PRIOR_TEXT) -o $@

$(LATENT)/nothing.ndjson: $(LATENT)/worth-flags
	@jq -nc 'range($(PRIOR_DRAWN)) | {id: "nothing-\(.)", text: ""}' > $@.tmp && mv $@.tmp $@

$(LATENT)/drawn.ndjson: $(LATENT)/nothing.ndjson $(PRIOR_MADE) $(R)/stamp/model-LTM \
    $(R)/stamp/tool-gen-ltm | $(PIPE)
	$(call say,gen-ltm drawn latents)\
	    $(once) $(alone) $(BIN)/gen-ltm -m $(PRIOR_MODEL) --z prior,dit --temperature 1 --batch 16 \
	    --max-new $(ABLATION_LENGTH) --seed $(SEED) $(GEN_FLAGS) $< -o $@

$(LATENT)/drawn-judge.ndjson: $(LATENT)/drawn.ndjson $(R)/stamp/model-JUDGE \
    $(R)/stamp/tool-score-ppl | $(PIPE)
	$(call say,score-ppl drawn latents)\
	    $(once) $(beside) $(BIN)/score-ppl -m $(JUDGE) --seed $(SEED) $(SCORE_FLAGS) $< -o $@

PRIOR_BOUNDS := $(LATENT)/bound-normal.ndjson $(LATENT)/bound-dit.ndjson
$(PRIOR_BOUNDS): $(LATENT)/bound-%.ndjson: $(LATENT)/texts.ndjson $(LATENT)/worth-flags \
    $(PRIOR_MADE) $(R)/stamp/model-LTM $(R)/stamp/tool-score-ppl | $(PIPE)
	$(call say,score-ppl prior $*)\
	    $(once) $(beside) $(BIN)/score-ppl --mode elbo --prior $* -m $(PRIOR_MODEL) $(PRIOR_BOUND) \
	    --seed $(SEED) $(SCORE_FLAGS) $< -o $@

$(LATENT)/prior.ndjson: $(LATENT)/drawn-judge.ndjson $(PRIOR_BOUNDS) \
    pipelines/experiment/latent/prior.jq $(TOOL)-compare | $(QUIET)
	$(call say,compare priors)\
	    jq -c -f pipelines/experiment/latent/prior.jq $(filter %.ndjson,$^) | \
	    $(beside) $(BIN)/compare --by option --base base --seed $(SEED) -o $@

ABLATION_MORE := $(if $(filter latent-%,$(ABLATION)),$(LATENT)/elsewhere.ndjson \
                 $(if $(wildcard $(LTM)/config.json),$(LATENT)/prior.ndjson))
$(A)/outcomes.ndjson: $(ABLATION_MORE)

.PHONY: latent-ablation
latent-ablation: ##run make ablation for the latent thought model
	@[ -n '$(LTM)' ] || { echo 'LTM=: expected a latent thought model' >&2; exit 64; }
	@$(MAKE) --no-print-directory ablation ABLATION=latent-ablation
