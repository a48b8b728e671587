# phase7.mk - phase 7, reproducibility: seals the run in one archive (bundle --verify checks it),
# and compares the claims of this run with the claims of a stored run. Files of the repository are
# not sealed, because the commit names them.
SEALED = $(filter $(R)/%,$(R)/prompts.ndjson $(foreach s,aa steps $(ANSWERED) $(SCALES), \
    $(R)/$(s)/schedule.ndjson $($(s)_FILES)) \
    $(R)/aa/both.ndjson $(foreach s,steps $(SCALES),$(R)/$(s)/metrics.ndjson) \
    $(R)/steps/generations.ndjson $(TRACE) $(TOLD) $(FIGURE_FILES) $(PAGES) \
    $(R)/baseline/checkpoints.sha256)

$(R)/crossover-$(PROFILE).tar.gz: $(SEALED) $(TOOL)-bundle
	@$(BIN)/bundle --folder $(R) $(sort $(SEALED:$(R)/%=%)) -o $@

# The claims of a run, stored for others who repeat the run.
$(R)/stored.ndjson: $(R)/claims.ndjson
	@grep '"kind":"claim"' $< > $@.tmp && mv $@.tmp $@

.PHONY: bundle replicate release-run phase7
bundle phase7: $(R)/crossover-$(PROFILE).tar.gz ##run seal the run in one archive; seconds
	@echo 'bundle: $(CURDIR)/$<'

# compare --stored: 0 agrees, 1 differs, 69 no time could be compared
replicate: $(R)/claims.ndjson $(TOOL)-compare ##run compare this run with a stored run (STORED=FILE)
	@[ -f '$(STORED)' ] || { echo 'STORED=$(STORED): no such file; expected the' \
	    'stored.ndjson of a run' >&2; exit 66; }
	@$(BIN)/compare --stored '$(STORED)' $< -o $(R)/replicate.ndjson

release-run: ##develop make all, and store its claims in data/PROFILE
	@$(MAKE) --no-print-directory all
	@$(MAKE) --no-print-directory $(R)/stored.ndjson $(R)/figures/pareto.svg
	@mkdir -p data/$(PROFILE)
	@cp $(R)/stored.ndjson $(R)/figures/pareto.svg data/$(PROFILE)/
	@echo 'stored: data/$(PROFILE)/stored.ndjson, data/$(PROFILE)/pareto.svg'

# refine adds launches, and make knows new launches only after it reads its files again. So all
# calls make for each stage. A profile may replace the phases by another target (ALL), whose result
# is the file ALL_MAKES.
all: ##run all seven phases, more launches until ratios are precise, the report
	@$(if $(ALL),:,$(MAKE) --no-print-directory ready)
	@$(MAKE) --no-print-directory $(or $(ALL),refine)
	@$(if $(ALL),:,$(MAKE) --no-print-directory phase1 phase2 phase3 phase4 phase5 phase6 phase7)
	@$(if $(ALL),:,jq -r 'select(.name == "answer").text' $(R)/claims.ndjson | $(PLAIN))
	@echo '$(CURDIR)/$(R)/$(or $(ALL_MAKES),report.html)'

# make plan: for each sweep the launches that are done, the launches that are to run, and their time
# at the speed of the finished launches. The schedule gives the numbers, or the settings if there is
# no schedule yet. $(call planned,SWEEP)
planned = $$(( $(words $(call split,$($(1)_SYSTEMS))) * $($(1)_LAUNCHES) ))
renewed = $(if $(call same,$(strip $(text-$(R)/$(1)/settings) $(text-$(R)/$(1)/points)),\
              $(file <$(R)/$(1)/settings) $(file <$(R)/$(1)/points)),,the settings have changed)
plan_of = { find $(R)/$(1)/launch -name '*.ndjson' -exec cat {} + 2>/dev/null || :; } | \
    jq -nr -f pipelines/phase/plan.jq --arg sweep $(1) --arg planned $(planned) \
        --arg plans "$$(find $(R)/$(1)/launch -name '*.plan' 2>/dev/null | wc -l)" \
        --arg done "$$(find $(R)/$(1)/launch -name '*.ndjson' 2>/dev/null | wc -l)" \
        --arg renewed '$(renewed)'
.PHONY: plan
plan: ##look launches that are there, launches to run, and their time
	@$(foreach s,aa steps $(ANSWERED) $(SCALES),$(call plan_of,$(s));)

.PHONY: container-check
container-check: ##develop run the Dockerfile in a chroot; needs root and a Debian mirror; minutes
	@tests/house/container . $(CONTAINER_BASE)

# The outcomes of make ablation and make exact, of this run if they exist, else the stored ones.
FOUND = $(firstword $(wildcard $(R)/ablation/outcomes.ndjson data/demo/outcomes.ndjson)) \
    $(firstword $(wildcard $(R)/latent-ablation/outcomes.ndjson data/demo/latent-outcomes.ndjson)) \
    $(firstword $(wildcard $(R)/exact/exactness.ndjson data/demo/exactness.ndjson))
.PHONY: requirements faults
faults: ##look faults and bad input: what is expected, where it is tested, what is missing
	@awk -F '\t' '/^#/ { next } { rows++; lacking += $$5 != ""; \
	    printf "%-4s %s: %s\n", $$1, $$2, $$3; gsub(/::/, ": ", $$4); gsub(/ ; /, "\n       ", $$4); \
	    if ($$4 != "-") print "       " $$4; if ($$5) print "       missing: " $$5 } \
	    END { print rows " rows, " lacking " with something missing" }' data/faults.tsv
requirements: ##look every requirement with its files, its test, its state and its verdict
	@{ $(if $(FOUND),jq -nr -f pipelines/phase/found.jq $(FOUND);) \
	    cat data/verdicts.tsv data/requirements.tsv; } | awk -f pipelines/phase/requirements.awk
