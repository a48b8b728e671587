# phase5.mk - scale: batch size by output length, equal work for both; out of memory is a result.
# With it what quantization costs and saves (memory.mk).
SCALE := $(SCALES:%=$(R)/%/metrics.ndjson)

.PHONY: phase5
phase5: $(SCALE) $(QUANT) \
    $(foreach f,throughput memory ratio,$(R)/figures/$(f).svg) \
    ## scale: SCALE_BATCH= SCALE_LENGTHS= QUANTS=
