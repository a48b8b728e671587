# phase6.mk - phase 6: draws the figures, each from its own records, and writes the report. The
# first word of a figure's name is its type.
FIGURES := pareto pareto-scale steps throughput ratio memory growth load trace roofline \
           drift training methods

# the records of methods, which name them
NAMED           := $(if $(METHODS),$(R)/methods.ndjson)
pareto_FROM     := $(R)/pareto.ndjson $(R)/steps/metrics.ndjson $(SCORED) $(NAMED)
steps_FROM      := $(R)/steps/metrics.ndjson $(SCORED) $(R)/pareto.ndjson $(NAMED)
pareto-scale_FROM := $(R)/scale/pareto.ndjson $(SCALE) $(SCALE_SCORED) $(NAMED)
throughput_FROM := $(SCALE) $(NAMED)
memory_FROM     := $(SCALE) $(NAMED)
growth_FROM     := $(SCALE) $(NAMED)
ratio_FROM      := $(SCALE) $(NAMED)
load_FROM       := $(LOAD_TOLD)
trace_FROM      := $(TRACE)
roofline_FROM   := $(R)/ceilings.ndjson $(R)/steps/metrics.ndjson $(SCALE)
drift_FROM       = $(steps_FILES)
methods_FROM     = $(BY_METHOD) $(if $(filter $(R)/steps/%,$(BY_METHOD)),$(R)/steps/metrics.ndjson)
training_FROM   := $(wildcard $(foreach m,$(LLADA) $(LLAMA) $(LTM),$(m)/loss.ndjson))

# The figures of phase 4 show the quality of the primary analysis.
pareto_FLAGS := --quality $(primary_metric)
steps_FLAGS  := $(pareto_FLAGS)
$(foreach f,pareto steps,$(R)/figures/$(f).svg $(R)/figures/$(f).png): $(R)/stamp/quality

# the type of the figure $*, its gnuplot files, and the command that draws it
figure_type  = $(firstword $(subst -, ,$*))
figure_plots = $(wildcard plots/$(figure_type).gp plots/style.gp)
draw = $(call say,plot $(@F))\
    mkdir -p $(@D) && CROSSOVER_SHARE='$(CURDIR)' $(beside) $(BIN)/plot --type $(figure_type) $(1) \
    $($*_FLAGS) $($*_FROM) -o $@

$(FIGURES:%=$(R)/figures/%.png): $(R)/figures/%.png: $$($$*_FROM) $(TOOL)-plot $$(figure_plots) \
    | $(QUIET)
	$(draw)
# An SVG file is drawn after the PNG file, because both write the figure's script, data and caption.
$(FIGURES:%=$(R)/figures/%.svg): $(R)/figures/%.svg: $$($$*_FROM) $(TOOL)-plot $$(figure_plots) \
    | $(QUIET) $(R)/figures/%.png
	$(draw)
$(FIGURES:%=$(R)/paper/%.pdf): $(R)/paper/%.pdf: $(R)/figures/%.svg
	$(call draw,--width $(WIDTH))

# Only figures that have records are drawn. A training curve needs a checkpoint that was trained
# here, a trace needs weights that are not random.
DRAWN := $(foreach f,$(FIGURES),$(if $($(f)_FROM),$(f)))
FIGURE_FILES = $(foreach f,$(DRAWN),$(R)/figures/$(f).svg $(R)/figures/$(f).png)
.PHONY: figures paper report phase6 no-records
no-records:
	@echo 'no records in $(R): make phase4 phase5 writes them' >&2; exit 66
figures: $(if $(HAS_RECORDS),$(FIGURE_FILES),no-records) ##look draw the figures of a run again
paper: $(if $(HAS_RECORDS),$(DRAWN:%=$(R)/paper/%.pdf),no-records) ##look draw the figures as PDF
	@echo '$(CURDIR)/$(R)/paper'

# One row for each run on this machine that has an answer. The name of a run is the name of its
# folder. Only claim records are passed on: the end record of a stream proves that nothing in it was
# edited.
CONCLUDED := $(wildcard $(RESULTS)/*/claims.ndjson)
name_runs := select(.kind == "claim") | .run = (input_filename | split("/")[-2])
.PHONY: over-pairs
over-pairs: $(TOOL)-plot ##look draw one figure over all pairs and profiles that have results
	@[ -n '$(CONCLUDED)' ] || { echo 'no answers in $(RESULTS): make all PAIR=NAME writes them' >&2; \
	    exit 66; }
	$(call say,plot pairs)jq -c '$(name_runs)' $(CONCLUDED) | \
	    CROSSOVER_SHARE='$(CURDIR)' $(BIN)/plot -q --type pairs - -o $(RESULTS)/pairs.svg
	@echo '$(CURDIR)/$(RESULTS)/pairs.svg'

# Records of how quiet the machine was before each launch, and during phase 1.
$(R)/quiet.ndjson: $(foreach s,aa steps $(SCALES),$($(s)_FILES)) \
    | $(if $(filter phase1,$(GOALS)),$(R)/fitness.ndjson)
	@for f in $^; do launch=$${f#$(R)/}; \
	    sed -n "/\"kind\":\"fitness\"/s|}\$$|,\"sweep\":\"$${launch%%/*}\"}|p" $$f; \
	 done > $@.tmp
	@cat $(R)/fitness.ndjson >> $@.tmp 2>/dev/null || :
	@mv $@.tmp $@

# The claims of the run. The page, make all and make replicate print them.
text-$(R)/stamp/quality = $(QUALITY) $(CONTRACT)

$(R)/claims.ndjson: $(R)/steps/metrics.ndjson $(R)/steps/generations.ndjson $(SCORED) $(SCALE) \
    $(R)/pareto.ndjson $(R)/aa/verdict.ndjson $(R)/quiet.ndjson $(NAMED) $(R)/stamp/quality \
    $(TOOL)-conclude | $(QUIET)
	$(call say,conclude)\
	    $(beside) $(BIN)/conclude -q --quality '$(QUALITY)' \
	    --contract $(firstword $(call split,$(CONTRACT))) $(filter %.ndjson,$^) -o $@

TOLD = $(R)/claims.ndjson $(BY_METHOD) $(OPTION_TOLD) $(R)/pareto.ndjson $(R)/scale/pareto.ndjson \
       $(R)/steps/metrics.ndjson $(SCORED) $(STEP_PARTS) $(SCALE) \
       $(SCALE_SCORED) $(QUANT) $(ROBUST) $(LIKELIHOOD) $(LATENT_BOUND) \
       $(R)/steps/ratios.ndjson $(RATIOS) \
       $(R)/aa/verdict.ndjson $(PASSES) $(BASELINE) $(R)/ceilings.ndjson $(R)/quiet.ndjson \
       $(R)/workload.ndjson $(R)/prompts.ndjson $(LOAD_TOLD) $(PEER_TOLD)
# If the models are the embedded ones, the page says what such models can show.
EMBEDDED = $(if $(filter data/models/%,$(LLADA) $(LLAMA)),--embedded)

text-$(R)/stamp/page = $(PAGED)

# All forms of the page are made from the same records.
PAGES := $(R)/report.html $(R)/tables.html $(R)/report.md $(R)/tables.tex
FORMAT_report.html := html
FORMAT_tables.html := tables
FORMAT_report.md   := markdown
FORMAT_tables.tex  := latex
$(PAGES): $(TOLD) $(R)/judge.words $(FIGURE_FILES) $(R)/stamp/page $(TOOL)-report | $(QUIET)
	$(call say,report $(@F))\
	    $(beside) $(BIN)/report -q --format $(FORMAT_$(@F)) --figures $(R)/figures $(EMBEDDED) \
	    --remarks $(R)/judge.words $(TOLD) -o $@

report phase6: $(PAGES) ##run figures, the page and its tables (PAGE=decoding,ablation); seconds
	@echo 'report: $(CURDIR)/$(R)/report.html'
