# pruning.mk - make pruning: measures what pruning costs. Each model without a share of its heads
# and hidden units, chosen by each score, is compared with the whole model on the prompts of
# memory.mk: likelihood of the references and accuracy of the answers (paired by prompt), bytes,
# tokens a second. For one of the scores the pruned model is also trained for a while. Not part of
# make all, because it makes and runs dozens of models.
#
#   $(R)/prune/models/NAME/, NAME.ndjson      pack-model (NAME: MODEL-SCORE-SHARE)
#   $(R)/prune/SYSTEM/NAME.ndjson, likelihood-NAME.ndjson -> comparison.ndjson

# shares of the heads and hidden units to remove
PRUNE_SHARES ?= 0.1 0.2 0.3 0.5
# scores of pack-model that choose what is removed
PRUNE_SCORES ?= first l2 gate activation
# number of prompts
PRUNE_PROMPTS ?= 64
# texts whose activations are the score; not those of the measurement
PRUNE_TEXTS  ?= data/corpus/train.ndjson.gz
# number of these texts
PRUNE_COUNT  ?= 64
# shares after which the model pruned by activation is trained on (0.3; own models: none)
PRUNE_RECOVER ?= $(if $(OWNED),,0.3)
# steps of this training
PRUNE_STEPS  ?= 200
# texts of this training
PRUNE_TRAIN_TEXTS ?= data/corpus/train.ndjson.gz data/corpus/train-lists.ndjson.gz

prune_all  := $(foreach s,$(PRUNE_SCORES),$(foreach n,$(PRUNE_SHARES),$(s)-$(n)))
prune_more := $(PRUNE_RECOVER:%=activation-%-trained)
text-$(R)/prune/settings = $(PRUNE_PROMPTS) $(PRUNE_TEXTS) $(PRUNE_COUNT) $(SEED)

text-$(R)/prune/training = $(PRUNE_STEPS) $(PRUNE_TRAIN_TEXTS)

$(R)/prune/questions.ndjson: $(R)/quant/questions.ndjson $(R)/prune/settings
	@sed -n '1,$(PRUNE_PROMPTS)p' $< > $@.tmp && mv $@.tmp $@

$(R)/prune/references.ndjson: $(R)/quant/references.ndjson $(R)/prune/settings
	@sed -n '1,$(PRUNE_PROMPTS)p' $< > $@.tmp && mv $@.tmp $@

# The colon of synth:NAME would read as a rule, so it becomes a dash; pack-model then says that
# random weights cannot be packed. If both sides of the pair are one checkpoint, the name has the
# side.
prune_side = $(if $(filter $(LLADA),$(LLAMA)),-$(1))
prune_name = $(subst :,-,$(notdir $(patsubst %/,%,$($(1)))))$(prune_side)-$(2)
prune_model = $(R)/prune/models/$(call prune_name,$(1),$(2))
gen-LLADA = $(BIN)/gen-llada --steps $(QUANT_STEPS) --gen-length $(QUANT_LENGTH) \
    --block-length $(BLOCK_LENGTH) $(LLADA_FLAGS)
gen-LLAMA = $(BIN)/gen-llama --max-new $(QUANT_LENGTH) $(LLAMA_FLAGS)
mode-LLADA = elbo --samples $(QUANT_SAMPLES)
mode-LLAMA = nll
# the options of the last training of the embedded models, with a lower peak of the learning rate
train-LLADA = --rate 0.0003 --min-len 40 --max-len 88 --oversample sum --times 6 --whole 0.1 \
    --cut 0.6
train-LLAMA = --rate 0.0003 --oversample sum --times 3

# $(call prune,SYSTEM,SCORE,SHARE)
define prune
$(call prune_model,$(1),$(2)-$(3)).ndjson: $(R)/stamp/model-$(1) $(R)/prune/settings \
    $(R)/stamp/tool-pack-model | $(PIPE) $(BIN)/pack-model
	@mkdir -p $$(@D) && rm -rf $$(@:.ndjson=)
	$$(call say,pack-model $(1) $(2) $(3))\
	    $(beside) $(BIN)/pack-model -q -m $($(1)) --prune-heads $(3) --prune-ffn $(3) \
	    --prune-score $(2) $(if $(filter activation,$(2)),--calibrate $(PRUNE_TEXTS) \
	    --limit $(PRUNE_COUNT)) --seed $(SEED) --out $$(@:.ndjson=) -o $$@
endef
$(foreach y,LLADA LLAMA,$(foreach s,$(PRUNE_SCORES),$(foreach n,$(PRUNE_SHARES),\
    $(eval $(call prune,$(y),$(s),$(n))))))

# $(call prune_train,SYSTEM,SHARE): the record of the trained model is a copy of the pruned model's.
define prune_train
$(call prune_model,$(1),activation-$(2)-trained).ndjson: \
    $(call prune_model,$(1),activation-$(2)).ndjson $(R)/prune/training \
    $(R)/stamp/tool-train-lm | $(PIPE) $(BIN)/train-lm
	@rm -rf $$(@:.ndjson=)
	$$(call say,train-lm $(1) $(2))\
	    $(beside) $(BIN)/train-lm -q --from $$(<:.ndjson=) --steps $(PRUNE_STEPS) --warmup 20 \
	    $$(train-$(1)) --seed $(SEED) --out $$(@:.ndjson=) $(PRUNE_TRAIN_TEXTS) -o $$@.loss
	@jq -c --arg name '$$(notdir $$(@:.ndjson=))' --argjson steps $(PRUNE_STEPS) \
	    'select(.kind == "prune") | .model = $$$$name | .recovery_steps = $$$$steps' $$< > $$@.tmp
	@mv $$@.tmp $$@
endef
$(foreach y,LLADA LLAMA,$(foreach n,$(PRUNE_RECOVER),$(eval $(call prune_train,$(y),$(n)))))

# $(call prune_run,SYSTEM,NAME,MODEL,RECORD): answers and likelihoods of one model.
define prune_run
$(R)/prune/$(1)/$(2).ndjson: $(R)/prune/questions.ndjson $(4) $(R)/stamp/tool-gen-llada \
    $(R)/stamp/tool-gen-llama | $(PIPE)
	@mkdir -p $$(@D)
	$$(call say,gen $(2))\
	    $(alone) $$(gen-$(1)) -m $(3) --batch $(QUANT_BATCH) --seed $(SEED) $(GEN_FLAGS) $$< -o $$@

$(R)/prune/$(1)/likelihood-$(2).ndjson: $(R)/prune/references.ndjson $(4) \
    $(R)/stamp/tool-score-ppl | $(PIPE)
	@mkdir -p $$(@D)
	$$(call say,score-ppl $(2))\
	    $$(given) $(beside) $(BIN)/score-ppl --mode $$(mode-$(1)) -m $(3) --target reference \
	    --seed $(SEED) $(SCORE_FLAGS) $$< -o $$@
endef
# $(call prune_system,SYSTEM)
define prune_system
prune_$(1)_names := whole $(foreach n,$(prune_all) $(prune_more),$(call prune_name,$(1),$(n)))
prune_$(1)_RUNS := $$(prune_$(1)_names:%=$(R)/prune/$(1)/%.ndjson)

$(R)/prune/$(1)/metrics.ndjson: $$(prune_$(1)_RUNS) $(TOOL)-measure | $(QUIET)
	$$(call say,measure prune $(1))$(beside) $(BIN)/measure $$(prune_$(1)_RUNS) -o $$@

$(R)/prune/$(1)/exact.ndjson: $$(prune_$(1)_RUNS) $(TOOL)-score-exact | $(QUIET)
	$$(call say,score-exact prune $(1))$(beside) $(BIN)/score-exact $$(prune_$(1)_RUNS) -o $$@

$(R)/prune/$(1)/comparison.ndjson: $(R)/prune/$(1)/metrics.ndjson $(R)/prune/$(1)/exact.ndjson \
    $$(prune_$(1)_names:%=$(R)/prune/$(1)/likelihood-%.ndjson) $(TOOL)-compare | $(QUIET)
	$$(call say,compare prune $(1))\
	    $(beside) $(BIN)/compare --by model --base '$(call prune_base,$(1))' \
	    --cost output_tokens_per_s --seed $(SEED) $$(filter %.ndjson,$$^) -o $$@
endef
# the name of the whole model in records
prune_base = $(notdir $(patsubst %/,%,$($(1))))
$(foreach y,LLADA LLAMA,$(eval $(call prune_system,$(y))))
$(foreach y,LLADA LLAMA,$(eval $(call prune_run,$(y),whole,$($(y)),$(R)/stamp/model-$(y)))\
    $(foreach n,$(prune_all) $(prune_more),\
        $(eval $(call prune_run,$(y),$(call prune_name,$(y),$(n)),\
        $(call prune_model,$(y),$(n)),$(call prune_model,$(y),$(n)).ndjson))))

PRUNING := $(foreach y,LLADA LLAMA,$(R)/prune/$(y)/comparison.ndjson \
    $(foreach n,$(prune_all) $(prune_more),$(call prune_model,$(y),$(n)).ndjson))
.PHONY: pruning
pruning: $(PRUNING) \
    ##run quality, speed and bytes of pruned models (PRUNE_SHARES=)
	@jq -sr -f pipelines/experiment/pruning/pruning.jq $(PRUNING) | $(PLAIN)
