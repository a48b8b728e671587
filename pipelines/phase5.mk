# phase5.mk - scale: batch size by output length, equal work for both; out of memory is a result.
SCALE := $(SCALES:%=$(R)/%/metrics.ndjson)

.PHONY: phase5
phase5: $(SCALE) $(foreach f,throughput memory ratio,$(R)/figures/$(f).svg) ## scale: batch, length
