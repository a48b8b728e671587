# latent.mk - make latent-ablation: the latent thought model (LTM) by the options of
# data/ablation.ndjson, as make ablation does it, and what no option of a generator shows: time
# mixing in its forms, and what a token costs along a long answer with a cache and without.
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

ABLATION_MORE := $(if $(filter latent-%,$(ABLATION)),$(LATENT)/elsewhere.ndjson)

.PHONY: latent-ablation
latent-ablation: ## every option of the latent thought model, its kernels, and whether claims held
	@[ -n '$(LTM)' ] || { echo 'LTM=: expected a latent thought model' >&2; exit 64; }
	@$(MAKE) --no-print-directory ablation ABLATION=latent-ablation
