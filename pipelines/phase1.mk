# phase1.mk - design: what this machine is and can do at most, whether it is fit to measure, and the
# schedules as data.

comma := ,
# Launches of each system: what the profile begins with, or what refine has come to.
launches_of = $(if $(wildcard $(R)/$(1)/refined),$(shell n=$$(< $(R)/$(1)/refined); \
                  echo $$((n > $(2) ? n : $(2)))),$(2))

aa_SYSTEMS  := llada,llama
aa_STEPS    := $(or $(AA_STEPS),$(AA_LENGTH))
aa_BATCH    := 1
aa_LENGTH   := $(AA_LENGTH)
aa_BLOCK    := $(AA_LENGTH)
aa_LAUNCHES := $(call launches_of,aa,$(AA_LAUNCHES))
aa_PROMPTS  := $(if $(TIMED_PROMPTS),$(R)/timed-prompts.ndjson,$(R)/prompts.ndjson)
aa_CONTRACT := fixed

# the third way is swept along the steps of its fit
systems := llada,llama$(if $(LTM),$(comma)ltm)
fitted   = $(if $(LTM),--vi-steps $(1))
steps_SYSTEMS  := $(systems)
# what make refine-steps found wanting
-include $(R)/steps/added.mk
steps_STEPS    := $(STEPS)$(STEPS_ADDED:%=,%)
steps_SWEEP     = $(SWEEP) $(call fitted,$(LTM_STEPS))
steps_CONTRACT := $(CONTRACT)
# beside our metrics what other benchmarks would print, and the tokens by their rules
steps_MEASURE  := --dialects
steps_BATCH    := 1
steps_LENGTH   := $(GEN_LENGTH)
steps_BLOCK    := $(BLOCK_LENGTH)
steps_ANSWERS  := $(if $(METHODS)$(LTM),$(R)/steps/exact.ndjson)
steps_METHODS  := $(if $(METHODS),$(R)/methods.ndjson)
steps_LAUNCHES := $(call launches_of,steps,$(LAUNCHES))
steps_PROMPTS  := $(if $(TIMED_PROMPTS),$(R)/timed-prompts.ndjson,$(R)/prompts.ndjson)

# With TIMED_PROMPTS the same points once more, on all prompts and not timed: what quality is of.
ANSWERED         := $(if $(TIMED_PROMPTS),answers)
answers_SYSTEMS  := $(steps_SYSTEMS)
answers_STEPS    := $(steps_STEPS)
answers_SWEEP     = $(steps_SWEEP)
answers_CONTRACT := $(steps_CONTRACT)
answers_BATCH    := $(steps_BATCH)
answers_LENGTH   := $(steps_LENGTH)
answers_BLOCK    := $(steps_BLOCK)
answers_METHODS  := $(steps_METHODS)
answers_LAUNCHES := 1
answers_WAY      := alone
answers_TIMING   := --warmup 0 $(if $(FORCE),--force)
answers_PROMPTS  := $(R)/prompts.ndjson
$(foreach s,LLADA LLAMA LTM,$(eval answers_$(s)_FLAGS := $(ANSWER_FLAGS)))

# One sweep a length: every batch size, the first prompts only, exactly that many tokens from both.
# (Indices of an array are sorted, and each is there once.)
steps_for = $(shell for k in $(call split,$(SCALE_PER_STEP)); do n[($(1)+k-1)/k]=; done; \
                IFS=$(comma); echo "$${!n[*]}")
define scale_settings
length-$(1)_SYSTEMS  := $(systems)
length-$(1)_SWEEP    := $(call fitted,$(SCALE_LTM_STEPS))
length-$(1)_STEPS    := $(call steps_for,$(1))
length-$(1)_BATCH    := $(SCALE_BATCH)
length-$(1)_LENGTH   := $(1)
length-$(1)_BLOCK    := $(shell echo $$(( $(1) % $(BLOCK_LENGTH) ? $(1) : $(BLOCK_LENGTH) )))
length-$(1)_LAUNCHES := $(call launches_of,length-$(1),$(SCALE_LAUNCHES))
length-$(1)_PROMPTS  := $(R)/scale-prompts.ndjson
length-$(1)_CONTRACT := fixed
length-$(1)_METHODS  := $(if $(METHODS),$(R)/scale-methods.ndjson)
endef
$(foreach l,$(LENGTHS),$(eval $(call scale_settings,$(l))))
$(eval $(call planned,aa))
# each model is three parties of a pair (phase 3)
AA_PARTIES := self twin slow
aa_FILES    = $(foreach p,$(AA_PARTIES),$(aa_NAMES:%=$(R)/aa/launch/%-$(p).ndjson))
$(foreach s,steps $(ANSWERED) $(SCALES),$(eval $(call launches,$(s))))
$(foreach s,steps $(SCALES),$(eval $(call metrics,$(s))))

text-$(R)/stamp/timed = $(TIMED_PROMPTS) $(SCALE_PROMPTS)

# So many of the prompts as are timed in phase 4, and in phase 5: as many of each task as there
# are, the first of each.
timed_COUNT := $(TIMED_PROMPTS)
scale_COUNT := $(SCALE_PROMPTS)
$(R)/timed-prompts.ndjson $(R)/scale-prompts.ndjson: $(R)/%-prompts.ndjson: $(R)/prompts.ndjson \
    $(R)/stamp/timed pipelines/first-of-each.jq
	@jq -sc -f pipelines/first-of-each.jq --argjson count $($*_COUNT) $< > $@.tmp
	@mv $@.tmp $@

# Taken anew by every phase1, not a prerequisite of anything: load and clocks change by the minute,
# so every launch begins with a look of its own and watches each of its batches (driver --help).
# Here the processors are watched for a second. Of several GPUs the first that programs here may
# see.
# Processors in use between two first lines of /proc/stat a second apart.
in_use   := awk -v hz="$$(getconf CLK_TCK)" \
    '{ now = $$2 + $$3 + $$4 + $$7 + $$8 + $$9 } NR == 2 { printf "%.2f", (now - old) / hz } \
    { old = now }'
GOVERNOR := /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor
smi      := nvidia-smi -i "$${gpu%%,*}" --format=csv,noheader,nounits
smi_asks := name,driver_version,temperature.gpu,memory.used,memory.total,clocks.sm,clocks.max.sm
$(R)/fitness.ndjson: pipelines/fitness.jq FORCE | $(QUIET)
	@mkdir -p $(@D)
	@exec 9< $(QUIET); flock -s 9; gpu=$${CUDA_VISIBLE_DEVICES:-0}; \
	state=$$($(smi) --query-gpu=$(smi_asks),clocks_event_reasons.active 2>/dev/null) || \
	state=$$($(smi) --query-gpu=$(smi_asks),clocks_throttle_reasons.active 2>/dev/null) || \
	state=; \
	others=$$($(smi) --query-compute-apps=pid 2>/dev/null) || others=; \
	jq -nc -f pipelines/fitness.jq --arg fp '$(FP)' --arg cores "$$(nproc)" \
	    --arg load "$$({ head -n 1 /proc/stat; sleep 1; head -n 1 /proc/stat; } | $(in_use))" \
	    --arg governor "$$(cat $(GOVERNOR) 2>/dev/null)" \
	    --arg gpu "$$state" --arg others "$$others" > $@.tmp
	@mv $@.tmp $@
	@jq -r .text $@
	@[ -z '$(STRICT)' ] || jq -e .fit $@ > /dev/null

text-$(R)/stamp/roof = $(ROOF_FLAGS)

# Where the generators run and as quiet as they: what `measure` holds their work against.
$(R)/ceilings.ndjson: $(R)/stamp/roof $(R)/stamp/tool-probe-roof | $(PIPE)
	$(call say,probe-roof)\
	    $(once) $(alone) $(BIN)/probe-roof $(ROOF_FLAGS) -o $@

# What is measured with what: data set and judge by name and hash, for the page.
text-$(R)/stamp/workload = $(PROFILE) $(LLADA) $(LLAMA) $(LTM) $(JUDGE) / $(TOY) / $(TIMED_PROMPTS)

# the trainings that made the weights of a folder, where it says so
trainings = $(or $(wildcard $(1)/training.ndjson),/dev/null)
$(R)/workload.ndjson: $(R)/prompts.ndjson $(R)/stamp/workload $(R)/stamp/model-JUDGE \
    pipelines/workload.jq \
    $(wildcard $(foreach m,$(LLADA) $(LLAMA) $(LTM),$(m)/training.ndjson))
	@{ jq -cS 'select(.kind == "prompt" or .kind == null)' $< > $@.prompts; \
	jq -sc -f pipelines/workload.jq --arg profile '$(PROFILE)' --arg file '$(PROMPT_FILE)' \
	    --arg file_sha "$$(sha256sum < $(PROMPT_FILE) | cut -c 1-64)" --arg seed '$(SEED)' \
	    --arg choice '$(PROMPT_CHOICE)' --arg timed '$(TIMED_PROMPTS)' \
	    --arg workload "$$(sha256sum < $@.prompts | cut -c 1-12)" \
	    --arg llada '$(LLADA)' --arg llama '$(LLAMA)' --arg ltm '$(LTM)' \
	    --arg judge '$(JUDGE)' --arg toy '$(TOY)' \
	    --slurpfile llada_training $(call trainings,$(LLADA)) \
	    --slurpfile llama_training $(call trainings,$(LLAMA)) \
	    --slurpfile ltm_training $(if $(LTM),$(call trainings,$(LTM)),/dev/null) \
	    --arg judge_sha "$$(sha256sum < $(R)/stamp/model-JUDGE | cut -c 1-64)" $@.prompts; } > $@.tmp
	@rm $@.prompts; mv $@.tmp $@
	@jq -r '.text, .training_text // empty, .warning // empty' $@

.PHONY: phase1
phase1: $(R)/fitness.ndjson $(R)/ceilings.ndjson $(R)/workload.ndjson $(R)/aa/launches.mk \
    $(R)/steps/launches.mk \
    $(SCALES:%=$(R)/%/launches.mk) ## design: machine, limits, fitness, schedules; seconds

# What would end a run after launches is tried before the first: schedules are written, prompts
# chosen, and the judge's files are read.
$(R)/stamp/judge: $(R)/stamp/model-JUDGE $(TOOL)-prep-prompts
	@echo '{"id":"p","text":"a"}' | \
	    $(BIN)/prep-prompts -q --no-meta --count 1 --fits $(JUDGE) - -o $@.tmp && rm $@.tmp
	@touch $@

.PHONY: ready
ready: $(foreach s,aa steps $(ANSWERED) $(SCALES),$(R)/$(s)/launches.mk) $(R)/prompts.ndjson \
    $(R)/quant/prompts.ndjson $(R)/stamp/judge ## all that can be known before the launches
