# phase5.mk - scale: batch size by output length, equal work for both; out of memory is a result.
# With it what quantization costs and saves (memory.mk).
SCALE := $(SCALES:%=$(R)/%/metrics.ndjson)

# Every size is a ratio of the two systems; p values are adjusted over all sizes together.
RATIOS := $(R)/ratios.ndjson
$(RATIOS): $(SCALE) $(R)/stamp/precision $(BIN)/compare | $(QUIET)
	$(call say,compare sizes)\
	    $(beside) $(BIN)/compare $(ratio_flags) --stopped "$$(sort -u $(SCALE:metrics.ndjson=stopped) \
	    | paste -sd ' ')" $(SCALE) -o $@

.PHONY: phase5
phase5: $(SCALE) $(RATIOS) $(QUANT) \
    $(foreach f,throughput memory ratio,$(R)/figures/$(f).svg) ## scale: batch, length, memory
