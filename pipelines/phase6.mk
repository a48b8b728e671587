# phase6.mk - the figures, each from its own records, and the page that tells the story.
FIGURES := pareto throughput memory ratio steps roofline drift loss

pareto_FROM     := $(R)/pareto.ndjson $(R)/steps/metrics.ndjson $(QUALITY)
steps_FROM      := $(R)/steps/metrics.ndjson $(QUALITY) $(R)/pareto.ndjson
throughput_FROM := $(SCALE)
memory_FROM     := $(SCALE)
ratio_FROM      := $(SCALE)
roofline_FROM   := $(R)/ceilings.ndjson $(R)/steps/metrics.ndjson $(SCALE)
drift_FROM       = $(steps_FILES)
loss_FROM       := $(wildcard $(LLADA)/loss.ndjson $(LLAMA)/loss.ndjson)

define figure
$(R)/figures/$(1).svg $(R)/figures/$(1).png: $$($(1)_FROM) $(BIN)/plot $(wildcard plots/$(1).gp) \
    $(wildcard plots/style.gp) | $(QUIET)
	@mkdir -p $$(@D)
	$$(call say,plot $$(@F))\
	    CROSSOVER_SHARE='$(CURDIR)' $(beside) $(BIN)/plot --type $(1) $$($(1)_FROM) -o $$@
# One after the other: both leave the figure's script, data and caption beside them.
$(R)/figures/$(1).svg: | $(R)/figures/$(1).png
endef
$(foreach f,$(FIGURES),$(eval $(call figure,$(f))))

# A loss curve is there only for checkpoints that were trained here.
DRAWN := $(foreach f,$(FIGURES),$(if $($(f)_FROM),$(f)))
FIGURE_FILES = $(foreach f,$(DRAWN),$(R)/figures/$(f).svg $(R)/figures/$(f).png)
.PHONY: figures report phase6
figures: $(FIGURE_FILES) ## only the figures (no models needed when records are there)

TOLD = $(R)/pareto.ndjson $(R)/steps/metrics.ndjson $(QUALITY) $(SCALE) $(QUANT) $(LIKELIHOOD) \
       $(R)/steps/ratios.ndjson $(RATIOS) \
       $(R)/aa/verdict.ndjson $(BASELINE) $(R)/ceilings.ndjson
# The page says of the embedded models what they can show.
EMBEDDED = $(if $(filter data/models/%,$(LLADA) $(LLAMA)),--embedded)

$(R)/report.html: $(TOLD) $(FIGURE_FILES) $(BIN)/report | $(QUIET)
	$(call say,report $(@F))\
	    $(beside) $(BIN)/report -q --format html --figures $(R)/figures $(EMBEDDED) \
	    $(TOLD) -o $@

$(R)/report.md: $(TOLD) $(FIGURE_FILES) $(BIN)/report | $(QUIET)
	$(call say,report $(@F))\
	    $(beside) $(BIN)/report -q --format markdown --figures $(R)/figures $(EMBEDDED) \
	    $(TOLD) -o $@

report phase6: $(R)/report.html $(R)/report.md ## report: figures and the page; seconds
	@echo 'report: $(CURDIR)/$(R)/report.html'
