# phase7.mk - reproducibility: one sealed archive (bundle --verify proves it), and what a run states
# against what a stored one did. Of what the page was told of, files of the sources are known by the
# commit.
SEALED = $(filter $(R)/%,$(R)/prompts.ndjson $(foreach s,aa steps $(ANSWERED) $(SCALES), \
    $(R)/$(s)/schedule.ndjson $($(s)_FILES)) \
    $(R)/aa/both.ndjson $(foreach s,steps $(SCALES),$(R)/$(s)/metrics.ndjson) \
    $(R)/steps/generations.ndjson $(TRACE) $(TOLD) $(FIGURE_FILES) $(PAGES) \
    $(R)/baseline/checkpoints.sha256)

$(R)/crossover-$(PROFILE).tar.gz: $(SEALED) $(TOOL)-bundle
	@$(BIN)/bundle --folder $(R) $(sort $(SEALED:$(R)/%=%)) -o $@

# What a run keeps for those who repeat it: the claims alone, without who made them.
STORED ?= data/$(PROFILE)/stored.ndjson
$(R)/stored.ndjson: $(R)/claims.ndjson
	@grep '"kind":"claim"' $< > $@.tmp && mv $@.tmp $@

.PHONY: bundle replicate release-run phase7
bundle phase7: $(R)/crossover-$(PROFILE).tar.gz ## a sealed bundle of the run; seconds
	@echo 'bundle: $(CURDIR)/$<'

# conclude: 0 agrees, 1 differs, 69 no time could be compared
replicate: $(R)/claims.ndjson $(TOOL)-conclude ## this run against a stored one (STORED=FILE)
	@[ -f '$(STORED)' ] || { echo 'STORED=$(STORED): no such file; expected the' \
	    'stored.ndjson of a run' >&2; exit 66; }
	@$(BIN)/conclude --against '$(STORED)' $< -o $(R)/replicate.ndjson

release-run: ## all, then what make replicate compares with into data/PROFILE
	@$(MAKE) --no-print-directory all
	@$(MAKE) --no-print-directory $(R)/stored.ndjson $(R)/figures/pareto.svg
	@mkdir -p data/$(PROFILE)
	@cp $(R)/stored.ndjson $(R)/figures/pareto.svg data/$(PROFILE)/
	@echo 'stored: data/$(PROFILE)/stored.ndjson, data/$(PROFILE)/pareto.svg'

# The launches that refine adds are known to make only when it reads its files again. A profile may
# say that another target is all that makes sense, and what it leaves.
ALL_MAKES ?= report.html
all: ## all seven phases and the report, refined
	@$(if $(ALL),:,$(MAKE) --no-print-directory ready)
	@$(MAKE) --no-print-directory $(or $(ALL),refine)
	@$(if $(ALL),:,$(MAKE) --no-print-directory phase1 phase2 phase3 phase4 phase5 phase6 phase7)
	@$(if $(ALL),:,jq -r 'select(.name == "answer").text' $(R)/claims.ndjson | $(PLAIN))
	@echo '$(CURDIR)/$(R)/$(ALL_MAKES)'

# What a run would do: points of every schedule, launches there and to come, and how long those take
# at the speed of the ones that are there.
.PHONY: plan
plan: $(foreach s,aa steps $(ANSWERED) $(SCALES),$(R)/$(s)/launches.mk) \
    ## launches and time still to run
	@for s in aa steps $(ANSWERED) $(SCALES); do \
	    find $(R)/$$s/launch -name '*.ndjson' -exec cat {} + | jq -nr -f pipelines/phase/plan.jq \
	        --arg sweep $$s --arg plans $$(find $(R)/$$s/launch -name '*.plan' | wc -l) \
	        --arg done $$(find $(R)/$$s/launch -name '*.ndjson' | wc -l); \
	done

.PHONY: container-check
container-check: ## build the Dockerfile line by line in a chroot: root, a Debian mirror; minutes
	@tests/house/container . $(CONTAINER_BASE)

# What make ablation and make exact found of claims, here or when it was kept.
FOUND = $(firstword $(wildcard $(R)/ablation/outcomes.ndjson data/demo/outcomes.ndjson)) \
    $(firstword $(wildcard $(R)/latent-ablation/outcomes.ndjson data/demo/latent-outcomes.ndjson)) \
    $(firstword $(wildcard $(R)/exact/exactness.ndjson data/demo/exactness.ndjson))
.PHONY: requirements
requirements: ## what the comparison has to deliver: where it is, its test, its state, its verdict
	@{ $(if $(FOUND),jq -nr -f pipelines/phase/found.jq $(FOUND);) \
	    cat data/verdicts.tsv data/requirements.tsv; } | awk -f pipelines/phase/requirements.awk
