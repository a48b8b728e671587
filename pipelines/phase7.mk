# phase7.mk - reproducibility: one sealed archive, and new records against stored ones.
SEALED = $(sort $(R)/prompts.ndjson $(foreach s,aa steps $(SCALES),$(R)/$(s)/schedule.ndjson \
    $($(s)_FILES) $(R)/$(s)/metrics.ndjson) $(R)/steps/generations.ndjson $(TOLD) $(FIGURE_FILES) \
    $(R)/report.html $(R)/report.md $(R)/baseline/checkpoints.sha256)

# The manifest names every record, figure and page with its hash: sha256sum -c verifies a bundle.
$(R)/MANIFEST.sha256: $(SEALED)
	@cd $(R) && sha256sum $(sort $(SEALED:$(R)/%=%)) > MANIFEST.sha256.tmp
	@mv $@.tmp $@

$(R)/crossover-$(PROFILE).tar.gz: $(R)/MANIFEST.sha256
	@tar --sort=name --mtime=@$${SOURCE_DATE_EPOCH:-0} --owner=0 --group=0 --numeric-owner \
	    -C $(R) -c MANIFEST.sha256 $(sort $(SEALED:$(R)/%=%)) | gzip -n > $@.tmp
	@mv $@.tmp $@

# Records of an earlier run: a file, or the published ones.
STORED ?= data/$(PROFILE)/metrics.ndjson
.PHONY: bundle replicate phase7
bundle phase7: $(R)/crossover-$(PROFILE).tar.gz ## a sealed bundle of the run; seconds
	@echo 'bundle: $(CURDIR)/$<'

replicate: $(R)/steps/metrics.ndjson $(QUALITY) ## this run against stored records (STORED=FILE)
	@jq -sc -f pipelines/replicate.jq --slurpfile stored $(STORED) $^ > $(R)/replicate.ndjson.tmp
	@mv $(R)/replicate.ndjson.tmp $(R)/replicate.ndjson
	@jq -r .text $(R)/replicate.ndjson | $(PLAIN)
	@[ -s $(R)/replicate.ndjson ] || echo 'nothing in $(STORED) can be compared with this run' >&2
	@jq -se 'length > 0 and all(.pass)' $(R)/replicate.ndjson > /dev/null

# The launches that refine adds are known to make only when it reads its files again. A profile may
# say that another target is all that makes sense, and what it leaves.
ALL_MAKES ?= report.html
all: ## all seven phases and the report, refined
	@$(MAKE) --no-print-directory $(or $(ALL),refine)
	@$(if $(ALL),:,$(MAKE) --no-print-directory phase1 phase2 phase3 phase4 phase5 phase6 phase7)
	@echo '$(CURDIR)/$(R)/$(ALL_MAKES)'

# What a run would do: points of every schedule, launches there and to come, and how long those take
# at the speed of the ones that are there.
.PHONY: plan
plan: $(foreach s,aa steps $(SCALES),$(R)/$(s)/launches.mk) ## launches and time still to run
	@for s in aa steps $(SCALES); do \
	    find $(R)/$$s/launch -name '*.ndjson' -exec cat {} + | jq -nr -f pipelines/plan.jq \
	        --arg sweep $$s --arg plans $$(find $(R)/$$s/launch -name '*.plan' | wc -l) \
	        --arg done $$(find $(R)/$$s/launch -name '*.ndjson' | wc -l); \
	done
