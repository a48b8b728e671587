# latent.mk - make latent-ablation: the latent thought model (LTM) by the options of
# data/ablation.ndjson, as make ablation does it, and what no option of a generator shows: time
# mixing in its forms, what a token costs along a long answer with a cache and without, and what a
# learned prior of the latents is worth beside N(0, I).
LATENT_TURNS  ?= 3
# rows of up to 4,096 tokens at the width of a small network; seconds a point
LATENT_SHAPES ?= small
LATENT_POINT  ?= 0.05
LATENT_LENGTH ?= 384
LATENT_LONG   ?= 2
LATENT        := $(R)/latent-ablation
LATENT_BENCH  := $(foreach n,$(shell seq $(LATENT_TURNS)),$(LATENT)/wkv-$(n).ndjson)

$(LATENT_BENCH): $(LATENT)/wkv-%.ndjson: $(BUILD)/tests/bench/bench | $(QUIET)
	@mkdir -p $(@D)
	$(call say,bench wkv $*)\
	    $(alone) $< --only wkv --shapes $(LATENT_SHAPES) --point $(LATENT_POINT) --bin $(BIN) \
	    -q -o $@

$(LATENT)/long.ndjson: $(R)/prompts.ndjson $(LATENT)/long-flags $(R)/stamp/model-LTM \
    $(R)/stamp/tool-gen-ltm | $(PIPE)
	$(call say,gen-ltm long answers)\
	    $(alone) $(BIN)/gen-ltm -m $(LTM) --limit $(LATENT_LONG) --vi-steps 0 --cache on,off \
	    --max-new $(LATENT_LENGTH) --contract fixed --repeat $(LATENT_TURNS) --warmup 1 \
	    --seed $(SEED) $(GEN_FLAGS) $(LTM_FLAGS) $< -o $@

$(LATENT)/long-flags: FORCE
	$(call stamp,$(LATENT_LENGTH) $(LATENT_LONG) $(LATENT_TURNS) $(GEN_FLAGS) $(LTM_FLAGS))

$(LATENT)/elsewhere.ndjson: $(LATENT_BENCH) $(LATENT)/long.ndjson pipelines/latent.jq
	@jq -sc -f pipelines/latent.jq $(filter %.ndjson,$^) > $@.tmp && mv $@.tmp $@

# A prior is learned here, in a copy of the model, unless it has one; of a model that is a folder.
# By it and by N(0, I): the bound of given texts, and texts written from nothing, judged.
PRIOR_TEXT  ?= data/corpus/train.ndjson.gz
PRIOR_TRAIN ?= --count 1000 --vi-steps 4 --vi-rate 0.2 --width 64 --layers 2 --steps 1500
PRIOR_BOUND ?= --vi-steps 4 --vi-rate 0.2 --samples 8
PRIOR_DRAWN ?= 128
PRIOR_MODEL := $(if $(wildcard $(LTM)/prior.safetensors),$(LTM),$(LATENT)/model)
PRIOR_MADE  := $(if $(filter $(LTM),$(PRIOR_MODEL)),,$(LATENT)/train-prior.ndjson)

$(LATENT)/prior-flags: FORCE
	$(call stamp,$(PRIOR_TRAIN) $(SEED))

$(LATENT)/worth-flags: FORCE
	$(call stamp,$(PRIOR_BOUND) / $(PRIOR_DRAWN) $(ABLATION_LENGTH) $(GEN_FLAGS) / $(SCORE_FLAGS))

$(LATENT)/train-prior.ndjson: $(LATENT)/prior-flags $(PRIOR_TEXT) $(R)/stamp/model-LTM \
    $(R)/stamp/tool-train-prior | $(BIN)/train-prior $(QUIET)
	$(call say,train-prior)\
	    rm -rf $(LATENT)/model; cp -rL $(LTM) $(LATENT)/model; \
	    $(beside) $(BIN)/train-prior $(PRIOR_TRAIN) -m $(LATENT)/model --seed $(SEED) \
	    $(PRIOR_TEXT) -o $@

$(LATENT)/nothing.ndjson: $(LATENT)/worth-flags
	@jq -nc 'range($(PRIOR_DRAWN)) | {id: "nothing-\(.)", text: ""}' > $@.tmp && mv $@.tmp $@

$(LATENT)/drawn.ndjson: $(LATENT)/nothing.ndjson $(PRIOR_MADE) $(R)/stamp/model-LTM \
    $(R)/stamp/tool-gen-ltm | $(PIPE)
	$(call say,gen-ltm drawn latents)\
	    $(alone) $(BIN)/gen-ltm -m $(PRIOR_MODEL) --z prior,dit --temperature 1 --batch 16 \
	    --max-new $(ABLATION_LENGTH) --seed $(SEED) $(GEN_FLAGS) $< -o $@

$(LATENT)/drawn-judge.ndjson: $(LATENT)/drawn.ndjson $(R)/stamp/model-JUDGE \
    $(R)/stamp/tool-score-ppl | $(PIPE)
	$(call say,score-ppl drawn latents)\
	    $(beside) $(BIN)/score-ppl -m $(JUDGE) --seed $(SEED) $(SCORE_FLAGS) $< -o $@

PRIOR_BOUNDS := $(LATENT)/bound-normal.ndjson $(LATENT)/bound-dit.ndjson
$(PRIOR_BOUNDS): $(LATENT)/bound-%.ndjson: $(LATENT)/texts.ndjson $(LATENT)/worth-flags \
    $(PRIOR_MADE) $(R)/stamp/model-LTM $(R)/stamp/tool-score-ppl | $(PIPE)
	$(call say,score-ppl prior $*)\
	    $(beside) $(BIN)/score-ppl --mode elbo --prior $* -m $(PRIOR_MODEL) $(PRIOR_BOUND) \
	    --seed $(SEED) $(SCORE_FLAGS) $< -o $@

$(LATENT)/prior.ndjson: $(LATENT)/drawn-judge.ndjson $(PRIOR_BOUNDS) pipelines/prior.jq \
    $(BIN)/compare | $(QUIET)
	$(call say,compare priors)\
	    jq -c -f pipelines/prior.jq $(filter %.ndjson,$^) | $(beside) $(BIN)/compare \
	    --by option --base base --seed $(SEED) -o $@

ABLATION_MORE := $(if $(filter latent-%,$(ABLATION)),$(LATENT)/elsewhere.ndjson \
                 $(if $(wildcard $(LTM)/config.json),$(LATENT)/prior.ndjson))

.PHONY: latent-ablation
latent-ablation: ## every option of the latent thought model, its kernels, and whether claims held
	@[ -n '$(LTM)' ] || { echo 'LTM=: expected a latent thought model' >&2; exit 64; }
	@$(MAKE) --no-print-directory ablation ABLATION=latent-ablation
