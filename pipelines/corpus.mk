# corpus.mk - the corpus that the embedded models learn, written from fixed seeds and packed so that
# the same seeds give the same bytes. The packed files are committed; `make corpus` writes them
# again.
CORPUS_SEED    := 20260101
CORPUS_TRAIN   := 24000
CORPUS_HELDOUT := 2000
CORPUS_MIX     := 0.4
CORPUS_DIR     := data/corpus

.PHONY: corpus
corpus: $(BIN)/write-corpus ## write data/corpus again from its seeds
	@mkdir -p $(CORPUS_DIR)
	$(BIN)/write-corpus --part train --count $(CORPUS_TRAIN) --mix $(CORPUS_MIX) \
	  --seed $(CORPUS_SEED) | gzip -9n > $(CORPUS_DIR)/.train.tmp
	$(BIN)/write-corpus --part heldout --count $(CORPUS_HELDOUT) --mix $(CORPUS_MIX) \
	  --seed $(CORPUS_SEED) | gzip -9n > $(CORPUS_DIR)/.heldout.tmp
	mv $(CORPUS_DIR)/.train.tmp $(CORPUS_DIR)/train.ndjson.gz
	mv $(CORPUS_DIR)/.heldout.tmp $(CORPUS_DIR)/heldout.ndjson.gz
