# latent.mk - make latent-ablation: the latent thought model (LTM) by the options of
# data/ablation.ndjson, as make ablation does it, and what no option of a generator shows: time
# mixing in its forms, what a token costs along a long answer with a cache and without, solvers of
# latents by evaluations, and trainings: threads that make batches, layers that are computed again,
# and formats that are learned with.
LATENT_TURNS  ?= 3
# rows of up to 4,096 tokens at the width of a small network; seconds a point
LATENT_SHAPES ?= small
LATENT_POINT  ?= 0.05
LATENT_LENGTH ?= 384
LATENT_LONG   ?= 2
# answers of shape ltm-l with time mixing, in tokens; drawn weights
LATENT_DRAWN  ?= 256
# trainings of LTM: of a few steps that are timed, and of some that learn with a format
LATENT_TEXT   ?= data/corpus/train.ndjson.gz
LATENT_STEPS  ?= 12
LATENT_AWARE  ?= 40
LATENT_SCORED ?= 32
LATENT        := $(R)/latent-ablation
latent_turns   = $(foreach n,$(shell seq $(LATENT_TURNS)),$(LATENT)/$(1)-$(n).ndjson)
LATENT_BENCH  := $(call latent_turns,bench)

$(LATENT_BENCH): $(LATENT)/bench-%.ndjson: $(BUILD)/tests/bench/bench | $(QUIET)
	@mkdir -p $(@D)
	$(call say,bench $*)\
	    $(alone) $< --only wkv,solvers,activations --shapes $(LATENT_SHAPES) \
	    --point $(LATENT_POINT) --seed $* --bin $(BIN) -q -o $@

$(LATENT)/long.ndjson: $(R)/prompts.ndjson $(LATENT)/long-flags $(R)/stamp/model-LTM \
    $(R)/stamp/tool-gen-ltm | $(PIPE)
	$(call say,gen-ltm long answers)\
	    $(alone) $(BIN)/gen-ltm -m $(LTM) --limit $(LATENT_LONG) --vi-steps 0 --cache on,off \
	    --max-new $(LATENT_LENGTH) --contract fixed --repeat $(LATENT_TURNS) --warmup 1 \
	    --seed $(SEED) $(GEN_FLAGS) $(LTM_FLAGS) $< -o $@

$(LATENT)/long-flags: FORCE
	$(call stamp,$(LATENT_LENGTH) $(LATENT_LONG) $(LATENT_TURNS) $(GEN_FLAGS) $(LTM_FLAGS))

LATENT_MIXED := $(LATENT)/drawn-rwkv6.ndjson $(LATENT)/drawn-rwkv7.ndjson
$(LATENT)/drawn-flags: FORCE
	$(call stamp,$(LATENT_DRAWN) $(LATENT_TURNS) $(GEN_FLAGS))
$(LATENT)/drawn-prompt.ndjson: | $(QUIET)
	@mkdir -p $(@D)
	@echo '{"id":"drawn","prompt_ids":[1,2,3,4,5,6,7,8]}' > $@
$(LATENT_MIXED): $(LATENT)/drawn-%.ndjson: $(LATENT)/drawn-prompt.ndjson $(LATENT)/drawn-flags \
    $(R)/stamp/tool-gen-ltm | $(PIPE)
	$(call say,gen-ltm ltm-l $*)\
	    $(alone) $(BIN)/gen-ltm -m synth:ltm-l-$* --z zero --max-new $(LATENT_DRAWN) \
	    --contract fixed --repeat $(LATENT_TURNS) --warmup 1 --dtype bf16 --seed $(SEED) \
	    $(GEN_FLAGS) $< -o $@

# $(call latent_train,FLAGS,FOLDER): a training of LTM from where it stands, in a folder of its own
# that is not gone on with.
latent_train = rm -rf $(2); mkdir -p $(2); \
    $(alone) $(BIN)/train-lm --from $(LTM) --vi-steps 1 --rows 512 --min-len 64 --max-len 112 \
    --limit 2000 --warmup 4 --rate 0.0003 --seed $(SEED) $(1) --out $(2) $(LATENT_TEXT) -q -o $@

latent_flags_plain   :=
latent_flags_loader  := --loaders 1
latent_flags_loaders := --loaders 2
latent_flags_again   := --checkpoint-every 1
LATENT_TIMED := $(foreach n,$(shell seq $(LATENT_TURNS)),$(foreach w,plain loader loaders again,\
    $(LATENT)/train-$(w)-$(n).ndjson))
LATENT_TRAIN  = $(LATENT)/train-flags $(R)/stamp/model-LTM $(R)/stamp/tool-train-lm
$(LATENT)/train-flags: FORCE
	$(call stamp,$(LATENT_TEXT) $(LATENT_STEPS) $(LATENT_AWARE) $(LATENT_SCORED) $(SEED))
$(LATENT_TIMED): $(LATENT)/train-%.ndjson: $(LATENT_TRAIN) | $(PIPE) $(BIN)/train-lm
	$(call say,train-lm $*)\
	    $(call latent_train,$(latent_flags_$(firstword $(subst -, ,$*))) \
	        --steps $(LATENT_STEPS) --report $(LATENT_STEPS),$(LATENT)/model/timed-$*) \
        && rm -rf $(LATENT)/model/timed-$*

LATENT_AWARES := $(foreach f,none int8 nf4,$(LATENT)/aware-$(f).ndjson)
$(LATENT_AWARES): $(LATENT)/aware-%.ndjson: $(LATENT_TRAIN) | $(PIPE) $(BIN)/train-lm
	$(call say,train-lm --qat $*)\
	    $(call latent_train,--qat $* --steps $(LATENT_AWARE) --report $(LATENT_AWARE),\
	        $(LATENT)/model/qat-$*)

# How good what was learned with a format (FORMAT-FORMAT), or without (none-FORMAT), is in it.
LATENT_BOUNDS := $(foreach b,none-int8 int8-int8 none-nf4 nf4-nf4,$(LATENT)/bound-$(b).ndjson)
$(LATENT_BOUNDS): $(LATENT)/bound-%.ndjson: $(LATENT)/texts.ndjson $(LATENT_AWARES) \
    $(R)/stamp/tool-score-ppl | $(PIPE)
	$(call say,score-ppl $*)\
	    $(beside) $(BIN)/score-ppl --mode elbo --vi-steps 0 --samples $(QUANT_SAMPLES) \
	    -m $(LATENT)/model/qat-$(firstword $(subst -, ,$*)) --limit $(LATENT_SCORED) \
	    --quant $(lastword $(subst -, ,$*)) --seed $(SEED) $(SCORE_FLAGS) $< -o $@

LATENT_ALL := $(LATENT_BENCH) $(LATENT)/long.ndjson $(LATENT_MIXED) $(LATENT_TIMED) $(LATENT_BOUNDS)
$(LATENT)/elsewhere.ndjson: $(LATENT_ALL) pipelines/latent.jq
	@jq -sc -f pipelines/latent.jq $(LATENT_ALL) > $@.tmp && mv $@.tmp $@

ABLATION_MORE := $(if $(filter latent-%,$(ABLATION)),$(LATENT)/elsewhere.ndjson)

.PHONY: latent-ablation
latent-ablation: ## every option of the latent thought model, its kernels, and whether claims held
	@[ -n '$(LTM)' ] || { echo 'LTM=: expected a latent thought model' >&2; exit 64; }
	@$(MAKE) --no-print-directory ablation ABLATION=latent-ablation
