# models.mk - trains the embedded trio again: two contestants of one size on the same text, and a
# larger judge that neither of them is. An interrupted training goes on where it stood.
#
# The LLaDA-type sees the text twice as often: a masked row teaches about half of its tokens.
TRAIN_TEXT := data/corpus/train.ndjson.gz
VALID_TEXT := data/corpus/heldout.ndjson.gz

TRAIN_llada-demo := --arch llada --seed 1 --steps 8000 --min-len 64 --max-len 112
TRAIN_llama-demo := --arch llama --kv-heads 2 --ffn 832 --seed 1 --steps 4000
TRAIN_judge-demo := --arch llama --kv-heads 2 --width 320 --layers 5 --heads 10 --ffn 1024 \
                    --seed 2 --steps 2000

TRAININGS := train-llada-demo train-llama-demo train-judge-demo
.PHONY: models $(TRAININGS)
models: $(TRAININGS) ## train the embedded models again

$(TRAININGS): train-%: $(TRAIN_TEXT) $(VALID_TEXT) $(BIN)/train-lm | $(QUIET)
	@mkdir -p data/models/$*
	$(alone) $(BIN)/train-lm $(TRAIN_$*) --valid $(VALID_TEXT) --out data/models/$* $(TRAIN_TEXT) \
	    -o data/models/$*/loss.ndjson
