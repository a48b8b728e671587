# twin.mk - make twin FROM=MODEL: trains a pair of models that differ only in the way they write.
#
# Both sides begin with the weights of MODEL and are trained on as many rows of the same text, with
# the same options: one from left to right, one as a denoiser in the layout of published conversions
# (a2d). An interrupted training continues with the same command.
#
#   MODEL -> $(TWIN)-ar, $(TWIN)-mdlm: checkpoints, each with the records of its loss

# checkpoint that make twin begins with: a folder, a GGUF file or a name in the cache
FROM       ?=
# folder of the twins
TWIN_DIR   ?= results/twins
# mask of the denoiser: mdlm (every token sees all) or bd3lm (blocks of 32 that see the blocks
# before). The name of its folder ends with this word
TWIN_MASK  ?= mdlm
# steps of each side
TWIN_STEPS ?= 500
# tokens of a training step; a side reads TWIN_ROWS x TWIN_STEPS tokens
TWIN_ROWS  ?= 2048
# texts of both sides, {text, reference} records
TWIN_TEXT  ?= $(TRAIN_TEXT)
# held-out texts for the loss
TWIN_VALID ?= $(VALID_TEXT)
# options of train-lm for both sides (on a GPU: with --device cuda)
TWIN_FLAGS ?= --precision bf16 --rate 0.0003 --warmup 20 --report 10 --save 20

.PHONY: twin
ifeq ($(FROM),)
twin: ##run continue the training of FROM=MODEL, once autoregressive, once as a denoiser
	@echo "make twin (64): expected FROM=MODEL, a checkpoint that writes left to right" >&2; exit 64
else
ifneq ($(filter-out mdlm bd3lm,$(TWIN_MASK)),)
$(error TWIN_MASK=$(TWIN_MASK) (64): expected mdlm or bd3lm)
endif
TWIN       := $(TWIN_DIR)/$(patsubst %.gguf,%,$(notdir $(FROM:%/=%)))
TWINS      := ar $(TWIN_MASK)
twin-mdlm  := --arch a2d
twin-bd3lm := --arch a2d
text-$(TWIN).settings = $(FROM) $(TWIN_STEPS) $(TWIN_ROWS) $(TWIN_FLAGS) $(SEED)

define twin_side
$(TWIN)-$(1)/config.json: $(TWIN).settings $(TWIN_TEXT) $(TWIN_VALID) | $(BIN)/train-lm $(QUIET)
	@mkdir -p $$(@D); [ -e $$(@D)/train.state ] || rm -f $$(@D)/loss.ndjson
	$$(call say,train-lm $$(@D))\
	    $(beside) $(BIN)/train-lm --from $(FROM) $(twin-$(1)) --steps $(TWIN_STEPS) \
	    --rows $(TWIN_ROWS) $(TWIN_FLAGS) --seed $(SEED) --valid $(TWIN_VALID) --out $$(@D) \
	    $(TWIN_TEXT) >> $$(@D)/loss.ndjson
endef
$(foreach s,$(TWINS),$(eval $(call twin_side,$(s))))

twin: $(TWINS:%=$(TWIN)-%/config.json)
	@jq -rs -f pipelines/experiment/twin/losses.jq $(^D:%=%/loss.ndjson)
	@echo "measure it: make all LLADA=$(TWIN)-$(TWIN_MASK) LLAMA=$(TWIN)-ar\
	$(if $(filter bd3lm,$(TWIN_MASK)), MASK_BLOCKS=1)"
endif
