# phase6.mk - the figures, each from its own records, and the page that tells the story.
# A figure is of the type that its name begins with.
FIGURES := pareto pareto-scale steps frontier throughput ratio memory growth kinds roofline drift \
           loss

pareto_FROM     := $(R)/pareto.ndjson $(R)/steps/metrics.ndjson $(QUALITY)
steps_FROM      := $(R)/steps/metrics.ndjson $(QUALITY) $(R)/pareto.ndjson
pareto-scale_FROM := $(R)/scale/pareto.ndjson $(SCALE) $(SCALE_QUALITY)
frontier_FROM   := $(SCALE) $(R)/scale/pareto.ndjson
throughput_FROM := $(SCALE)
memory_FROM     := $(SCALE)
growth_FROM     := $(SCALE)
ratio_FROM      := $(SCALE)
kinds_FROM       = $(steps_FILES)
roofline_FROM   := $(R)/ceilings.ndjson $(R)/steps/metrics.ndjson $(SCALE)
drift_FROM       = $(steps_FILES)
loss_FROM       := $(wildcard $(LLADA)/loss.ndjson $(LLAMA)/loss.ndjson)

define figure
$(R)/figures/$(1).svg $(R)/figures/$(1).png: $$($(1)_FROM) $(BIN)/plot \
    $(wildcard plots/$(firstword $(subst -, ,$(1))).gp plots/style.gp) | $(QUIET)
	@mkdir -p $$(@D)
	$$(call say,plot $$(@F))\
	    CROSSOVER_SHARE='$(CURDIR)' $(beside) $(BIN)/plot --type $(firstword $(subst -, ,$(1))) \
	    $$($(1)_FROM) -o $$@
# One after the other: both leave the figure's script, data and caption beside them.
$(R)/figures/$(1).svg: | $(R)/figures/$(1).png

$(R)/paper/$(1).pdf: $(R)/figures/$(1).svg
	@mkdir -p $$(@D)
	$$(call say,plot $$(@F))\
	    CROSSOVER_SHARE='$(CURDIR)' $(beside) $(BIN)/plot --type $(firstword $(subst -, ,$(1))) \
	    --width $(WIDTH) $$($(1)_FROM) -o $$@
endef
# centimetres: a column (8.4), or the page (17.5)
WIDTH ?= 8.4
$(foreach f,$(FIGURES),$(eval $(call figure,$(f))))

# A loss curve is there only for checkpoints that were trained here.
DRAWN := $(foreach f,$(FIGURES),$(if $($(f)_FROM),$(f)))
FIGURE_FILES = $(foreach f,$(DRAWN),$(R)/figures/$(f).svg $(R)/figures/$(f).png)
.PHONY: figures paper report phase6
figures: $(FIGURE_FILES) ## only the figures (no models needed when records are there)
paper: $(DRAWN:%=$(R)/paper/%.pdf) ## the figures as PDF, WIDTH=8.4 or 17.5 cm
	@echo '$(CURDIR)/$(R)/paper'

TOLD = $(R)/pareto.ndjson $(R)/steps/metrics.ndjson $(QUALITY) $(SCALE) $(QUANT) $(ROBUST) \
       $(LIKELIHOOD) \
       $(R)/steps/ratios.ndjson $(RATIOS) \
       $(R)/aa/verdict.ndjson $(BASELINE) $(R)/ceilings.ndjson $(R)/workload.ndjson
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
