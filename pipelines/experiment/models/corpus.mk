# corpus.mk - make corpus: writes the corpus that the embedded models learn, from fixed seeds. The
# files are packed so that equal seeds give equal bytes. The packed files are committed.
CORPUS_SEED    := 20260101
CORPUS_TRAIN   := 24000
CORPUS_VALID   := 2000
CORPUS_TEST    := 1000
CORPUS_MIX     := 0.4
CORPUS_LISTS   := 24000
CORPUS_LISTS_VALID := 800
CORPUS_LISTS_TEST  := 1600
CORPUS_DIR     := data/corpus

# $(call write,FILE,FLAGS)
write = $(BIN)/write-corpus $(2) --seed $(CORPUS_SEED) | gzip -9n > $(CORPUS_DIR)/.$(1).tmp && \
        mv $(CORPUS_DIR)/.$(1).tmp $(CORPUS_DIR)/$(1).ndjson.gz

.PHONY: corpus
corpus: $(BIN)/write-corpus ##develop write data/corpus again from its seeds
	@mkdir -p $(CORPUS_DIR)
	$(call write,train,--part train --count $(CORPUS_TRAIN) --mix $(CORPUS_MIX))
	$(call write,valid,--part valid --count $(CORPUS_VALID) --mix $(CORPUS_MIX))
	$(call write,test,--part test --count $(CORPUS_TEST) --mix $(CORPUS_MIX) \
	    --apart $(CORPUS_VALID))
	$(call write,train-lists,--part train --lists --count $(CORPUS_LISTS))
	$(call write,valid-lists,--part valid --lists --count $(CORPUS_LISTS_VALID))
	$(call write,test-lists,--part test --lists --count $(CORPUS_LISTS_TEST) \
	    --apart $(CORPUS_LISTS_VALID))
