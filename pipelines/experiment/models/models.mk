# models.mk - make models: trains the embedded models again: a LLaDA-type and a LLaMA-type of one
# shape on the same text, a larger judge, and a latent thought model. An interrupted training
# continues.
#
# Both contestants begin with the weights of a short training of the LLaMA-type (8.2 million rows),
# because a masked row teaches less than a row of next tokens; LLaDA 2.0 begins in this way too.
# Both then see the same files, and as many rows in all: 70,041,600. 16 % of the drawn rows are
# stories, 75 % sums, 9 % lists. The LLaDA-type sees them in stages, the LLaMA-type mixed. The last
# training of the LLaMA-type has three times the lists, which corrects the mixture of its earlier
# trainings.
#
# The fourth training of the LLaDA-type teaches arithmetic: in most of its rows the response is
# given up to a random place (--cut), so that the model fills a result while it sees the operands.
# In the next two trainings the LLaDA-type learns lists in short rows, and the last one restores the
# sums.
#
# The valid part of the corpus gives the validation losses, and settings are chosen by these losses.
# No training and no choice reads the test part. The rows are counted in training.ndjson of each
# model.
#
# The judge is packed: in nf4 it takes a third of the bytes.
#
# `make models TRAIN_PRECISION=bf16` is 1.7 to 2 times as fast on a processor that multiplies bf16.
# It ends at other weights with the same loss. The third training of the LLaMA-type was in bf16. The
# last training of the LLaMA-type ran on an H200 in f32 (TRAIN_DEVICE=cuda), in 80 s. last one ran
# on an H200 in f32, in 80 s: TRAIN_DEVICE=cuda.
TRAIN_PRECISION := f32
TRAIN_DEVICE := cpu
TRAIN_TEXT := data/corpus/train.ndjson.gz
LIST_TEXT  := data/corpus/train-lists.ndjson.gz
VALID_TEXT := data/corpus/valid.ndjson.gz

LLAMA_SHAPE := --arch llama --kv-heads 2 --ffn 832
LLADA_SHAPE := --arch llada --kv-heads 2 --ffn 832
LLAMA_DEMO  := data/models/llama-demo
LLADA_DEMO  := data/models/llada-demo
LTM_DEMO    := data/models/ltm-demo
LLADA_AGAIN := --min-len 48 --max-len 96 --oversample sum --times 8 --whole 0.1
# $(call train,FLAGS,MODEL,LOSS,TEXTS)
train = $(alone) $(BIN)/train-lm $(1) --precision $(TRAIN_PRECISION) --valid $(VALID_TEXT) \
        --out data/models/$(2) $(4) -o data/models/$(2)/$(3).ndjson && $(call sums,data/models/$(2))
# $(call sums,FOLDER): writes the SHA256SUMS that `sha256sum -c SHA256SUMS` checks
sums = cd $(1) && sha256sum config.json tokenizer.json model.safetensors > SHA256SUMS

TRAININGS := train-llama-first train-llada-demo train-llama-second train-llama-third \
             train-llama-demo train-judge-demo train-ltm-demo
.PHONY: models $(TRAININGS)
models: $(TRAININGS) ##develop train the embedded models again
$(TRAININGS): $(TRAIN_TEXT) $(LIST_TEXT) $(VALID_TEXT) $(BIN)/train-lm | $(QUIET)

train-llama-first:
	@mkdir -p $(LLAMA_DEMO)
	$(call train,$(LLAMA_SHAPE) --seed 1 --steps 4000,llama-demo,loss-first,$(TRAIN_TEXT))

train-llada-demo: train-llama-first
	@mkdir -p $(LLADA_DEMO)
	$(call train,$(LLADA_SHAPE) --seed 1 --init $(LLAMA_DEMO) --steps 5000 --rate 0.0015 \
	    --min-len 56 --max-len 104 --oversample sum --times 4 --whole 0.25 \
	    ,llada-demo,loss-first,$(TRAIN_TEXT))
	$(call train,$(LLADA_SHAPE) --seed 3 --init $(LLADA_DEMO) --steps 3000 --rate 0.0012 \
	    $(LLADA_AGAIN),llada-demo,loss-second,$(TRAIN_TEXT))
	$(call train,$(LLADA_SHAPE) --seed 4 --init $(LLADA_DEMO) --steps 2500 --rate 0.0006 \
	    $(LLADA_AGAIN),llada-demo,loss-third,$(TRAIN_TEXT))
	$(call train,$(LLADA_SHAPE) --seed 11 --init $(LLADA_DEMO) --steps 6000 --rate 0.001 \
	    --rows 4096 --min-len 40 --max-len 88 --oversample sum --times 8 --whole 0.1 --cut 0.6 \
	    ,llada-demo,loss-fourth,$(TRAIN_TEXT))
	$(call train,$(LLADA_SHAPE) --seed 31 --init $(LLADA_DEMO) --steps 1500 --rate 0.001 \
	    --min-len 40 --max-len 56 --oversample sum --times 2 --whole 0.1 --cut 0.5 --limit 32000 \
	    ,llada-demo,loss-fifth,$(LIST_TEXT) $(TRAIN_TEXT))
	$(call train,$(LLADA_SHAPE) --seed 33 --init $(LLADA_DEMO) --steps 1200 --rate 0.0008 \
	    --warmup 50 --min-len 40 --max-len 64 --oversample replace --times 4 --whole 0.1 --cut 0.5 \
	    --limit 32000,llada-demo,loss-sixth,$(LIST_TEXT) $(TRAIN_TEXT))
	$(call train,$(LLADA_SHAPE) --seed 32 --init $(LLADA_DEMO) --steps 2500 --rate 0.0004 \
	    --warmup 50 --rows 4096 --min-len 40 --max-len 88 --oversample sum --times 6 --whole 0.1 \
	    --cut 0.6 \
	    ,llada-demo,loss,$(TRAIN_TEXT) $(LIST_TEXT))

# The LLaMA-type continues only after the LLaDA-type has begun with the weights of the LLaMA-type.
train-llama-second: train-llada-demo
	$(call train,$(LLAMA_SHAPE) --seed 21 --init $(LLAMA_DEMO) --steps 3000 --rate 0.001 \
	    --oversample sum --times 3,llama-demo,loss-second,$(TRAIN_TEXT) $(LIST_TEXT))
train-llama-third: train-ltm-demo
	$(call train,$(LLAMA_SHAPE) --seed 51 --init $(LLAMA_DEMO) --steps 3400 --rate 0.001 \
	    --rows 4096 --oversample sum --times 7 --limit 32000 --report 100 \
	    ,llama-demo,loss-third,$(TRAIN_TEXT) $(LIST_TEXT))
train-llama-demo: train-llama-third \
                  $(if $(filter cuda%,$(TRAIN_DEVICE)),$(if $(HAVE_CUDA),$(CUDA_SO)))
	$(call train,$(LLAMA_SHAPE) --seed 61 --init $(LLAMA_DEMO) --steps 10200 --rate 0.0005 \
	    --rows 4096 --oversample sum --times 36 --report 100 --loss whole --loaders 3 \
	    --device $(TRAIN_DEVICE) \
	    ,llama-demo,loss,$(TRAIN_TEXT) $(LIST_TEXT) $(LIST_TEXT) $(LIST_TEXT))

train-judge-demo: $(BIN)/pack-model
	@mkdir -p data/models/judge-whole/judge-demo
	$(call train,--arch llama --kv-heads 2 --width 320 --layers 5 --heads 10 --ffn 1024 --seed 2 \
	    --steps 2000,judge-whole/judge-demo,loss,$(TRAIN_TEXT))
	@rm -rf data/models/judge-demo
	$(BIN)/pack-model --quant nf4 -m data/models/judge-whole/judge-demo \
	    --out data/models/judge-demo -o /dev/null
	$(call sums,data/models/judge-demo)
	@mv data/models/judge-whole/judge-demo/loss.ndjson data/models/judge-demo
	@rm -r data/models/judge-whole

# The latent thought model begins with the weights of the LLaMA-type. It gets latents and a window
# of 48 tokens, so that text further back reaches a token only through layers or latents. In a step
# a row goes through the network five times. Few steps of a fit and a low rate keep the posteriors
# near the prior.
train-ltm-demo: train-llama-second
	@mkdir -p $(LTM_DEMO)
	$(call train,--arch ltm --kv-heads 2 --ffn 832 --latents 2 --window 48 --seed 41 \
	    --init $(LLAMA_DEMO) --vi-steps 4 --vi-rate 0.2 --rows 1024 --max-len 112 --rate 0.0006 \
	    --warmup 50 --oversample sum --times 2 --steps 420 --report 20 \
	    ,ltm-demo,loss,$(TRAIN_TEXT))
