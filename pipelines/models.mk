# models.mk - trains the embedded trio again: two contestants of one shape on the same text, and a
# larger judge that neither of them is. An interrupted training goes on where it stood.
#
# The LLaDA-type begins with the weights of the LLaMA-type and learns to denoise, as LLaDA 2.0 was
# made: a masked row teaches a fraction of what a row of next tokens does, and from nothing it would
# need many hours of a core to learn to copy a name out of the prompt. For the same reason it sees
# the sums of the text four times as often.
TRAIN_TEXT := data/corpus/train.ndjson.gz
VALID_TEXT := data/corpus/heldout.ndjson.gz

SHAPE := --kv-heads 2 --ffn 832 --seed 1
TRAIN_llama-demo := --arch llama $(SHAPE) --steps 4000
TRAIN_llada-demo := --arch llada $(SHAPE) --init data/models/llama-demo --steps 5000 --rate 0.0015 \
                    --min-len 56 --max-len 104 --oversample sum --times 4 --whole 0.25
TRAIN_judge-demo := --arch llama --kv-heads 2 --width 320 --layers 5 --heads 10 --ffn 1024 \
                    --seed 2 --steps 2000

TRAININGS := train-llama-demo train-llada-demo train-judge-demo
.PHONY: models $(TRAININGS)
models: $(TRAININGS) ## train the embedded models again

train-llada-demo: train-llama-demo
$(TRAININGS): train-%: $(TRAIN_TEXT) $(VALID_TEXT) $(BIN)/train-lm | $(QUIET)
	@mkdir -p data/models/$*
	$(alone) $(BIN)/train-lm $(TRAIN_$*) --valid $(VALID_TEXT) --out data/models/$* $(TRAIN_TEXT) \
	    -o data/models/$*/loss.ndjson
