# phase1.mk - phase 1, design: records this machine and its limits, judges whether it is quiet
# enough to measure on, and makes the schedules of all sweeps.

text-$(R)/stamp/timed = $(TIMED_PROMPTS) $(SCALE_PROMPTS)

# The prompts that phases 4 and 5 time: the first prompts of each task, as many of each task if
# there are enough.
timed_COUNT := $(TIMED_PROMPTS)
scale_COUNT := $(SCALE_PROMPTS)
$(R)/timed-prompts.ndjson $(R)/scale-prompts.ndjson: $(R)/%-prompts.ndjson: $(R)/prompts.ndjson \
    $(R)/stamp/timed pipelines/phase/first-of-each.jq
	@jq -sc -f pipelines/phase/first-of-each.jq --argjson count $($*_COUNT) $< > $@.tmp
	@mv $@.tmp $@

# How quiet the machine is now. Every make phase1 looks again, and no file depends on the result:
# load and clocks change by the minute, so each launch looks for itself and watches each of its
# batches. The processors are watched for a second. With several GPUs the first visible one is
# watched.
#
# in_use: the number of busy processors, from two first lines of /proc/stat a second apart
in_use   := awk -v hz="$$(getconf CLK_TCK)" \
    '{ now = $$2 + $$3 + $$4 + $$7 + $$8 + $$9 } NR == 2 { printf "%.2f", (now - old) / hz } \
    { old = now }'
GOVERNOR := /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor
smi      := nvidia-smi -i "$${gpu%%,*}" --format=csv,noheader,nounits
smi_asks := name,driver_version,temperature.gpu,memory.used,memory.total,clocks.sm,clocks.max.sm
$(R)/fitness.ndjson: pipelines/phase/fitness.jq FORCE | $(QUIET)
	@mkdir -p $(@D)
	@exec 9< $(QUIET); flock -s 9; gpu=$${CUDA_VISIBLE_DEVICES:-0}; \
	state=$$($(smi) --query-gpu=$(smi_asks),clocks_event_reasons.active 2>/dev/null) || \
	state=$$($(smi) --query-gpu=$(smi_asks),clocks_throttle_reasons.active 2>/dev/null) || \
	state=; \
	others=$$($(smi) --query-compute-apps=pid 2>/dev/null) || others=; \
	jq -nc -f pipelines/phase/fitness.jq --arg fp '$(FP)' --arg cores "$$(nproc)" \
	    --arg load "$$({ head -n 1 /proc/stat; sleep 1; head -n 1 /proc/stat; } | $(in_use))" \
	    --arg governor "$$(cat $(GOVERNOR) 2>/dev/null)" \
	    --arg gpu "$$state" --arg others "$$others" > $@.tmp
	@mv $@.tmp $@
	@jq -r .text $@
	@[ -z '$(STRICT)' ] || jq -e .fit $@ > /dev/null

text-$(R)/stamp/roof = $(ROOF_FLAGS)

# The limits of the machine, probed on the device of the generators and, like them, alone. measure
# divides the work of the generators by these limits.
$(R)/ceilings.ndjson: $(R)/stamp/roof $(R)/stamp/tool-probe-roof | $(PIPE)
	$(call say,probe-roof)\
	    $(once) $(alone) $(BIN)/probe-roof $(ROOF_FLAGS) -o $@

# A record of the data set, the models and the judge by name and hash, for the page.
text-$(R)/stamp/workload = $(PROFILE) $(LLADA) $(LLAMA) $(LTM) $(JUDGE) / $(TOY) / $(TIMED_PROMPTS)

# the records of the trainings that made the weights of a folder, if it has them
trainings = $(or $(wildcard $(1)/training.ndjson),/dev/null)
$(R)/workload.ndjson: $(R)/prompts.ndjson $(R)/stamp/workload $(R)/stamp/model-JUDGE \
    pipelines/phase/workload.jq \
    $(wildcard $(foreach m,$(LLADA) $(LLAMA) $(LTM),$(m)/training.ndjson))
	@{ jq -cS 'select(.kind == "prompt" or .kind == null)' $< > $@.prompts; \
	jq -sc -f pipelines/phase/workload.jq --arg profile '$(PROFILE)' --arg file '$(PROMPT_FILE)' \
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
    $(SCALES:%=$(R)/%/launches.mk) ##run machine, limits, quietness, schedules; seconds

# Errors that would end a run after hours are found before its first launch: schedules are written,
# prompts are chosen, and the files of the judge are read.
$(R)/stamp/judge: $(R)/stamp/model-JUDGE $(TOOL)-prep-prompts
	@echo '{"id":"p","text":"a"}' | \
	    $(BIN)/prep-prompts -q --no-meta --count 1 --fits $(JUDGE) - -o $@.tmp && rm $@.tmp
	@touch $@

.PHONY: ready
ready: $(foreach s,aa steps $(ANSWERED) $(SCALES),$(R)/$(s)/launches.mk) $(R)/prompts.ndjson \
    $(R)/quant/prompts.ndjson $(R)/stamp/judge ##run find errors before the first launch
