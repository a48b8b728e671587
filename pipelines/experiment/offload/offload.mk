# offload.mk - make caps: runs models in less memory than their weights need. Each model runs whole,
# then under each limit of CAPS (--mem-cap, --device-map auto, nothing quantized). Each run is in a
# control group whose limit is an eighth higher, so that the group measures the peak and does not
# limit it. The predicted time is compared with the measured time. make caps PROFILE=cpu-8b runs the
# 8B shapes: a run draws 16 GB of weights, and writes the layers that do not fit to TMPDIR
# (--offload-dir).
#
#   $(R)/caps/SYSTEM-CAP.ndjson, .group -> $(R)/caps/caps.ndjson

# memory limits
CAPS       ?= 8G 6G 4G
# tokens of the prompt
CAPS_ROWS  ?= 64
# options of gen-llada
CAPS_LLADA ?= --gen-length $(call in_blocks,64) --block-length $(call one_block,64) \
    --steps $(call steps_in,64,2)
# options of gen-llama
CAPS_LLAMA ?= --max-new 6 --ignore-eos
# options of both
CAPS_FLAGS ?= --device cpu --dtype bf16
# rounds, of which the last counts, and repeats of disturbed batches
CAPS_TIMING ?= --warmup 0 --repeat 2 --again 2

caps_gen_LLADA = $(BIN)/gen-llada -m $(LLADA) $(CAPS_LLADA)
caps_gen_LLAMA = $(BIN)/gen-llama -m $(LLAMA) $(CAPS_LLAMA)

text-$(R)/caps/settings = \
    $(CAPS_ROWS) / $(CAPS_LLADA) / $(CAPS_LLAMA) / $(CAPS_FLAGS) / $(CAPS_TIMING)

$(R)/caps/prompt.ndjson: $(R)/caps/settings
	@jq -nc --argjson n $(CAPS_ROWS) '1 as $$p | $(shape_prompt)' > $@.tmp && mv $@.tmp $@

CAPS_RUNS := $(foreach y,LLADA LLAMA,$(foreach c,whole $(CAPS),$(R)/caps/$(y)-$(c).ndjson))
# caps_of: word 1 or 2 of a stem SYSTEM-CAP. cap: the limit of a run, or nothing for the whole model
caps_of = $(word $(1),$(subst -, ,$*))
cap     = $(filter-out whole,$(call caps_of,2))
$(CAPS_RUNS): $(R)/caps/%.ndjson: $(R)/caps/prompt.ndjson \
    $(R)/stamp/model-$$(call caps_of,1) $(R)/stamp/tool-gen-llada $(R)/stamp/tool-gen-llama \
    pipelines/bin/within | $(PIPE)
	$(call say,$*)\
	    $(alone) $(if $(cap),pipelines/bin/within $$(( $$(numfmt --from=iec $(cap)) * 9 / 8 )) \
	        $(@:.ndjson=.group)) \
	    $(caps_gen_$(call caps_of,1)) $(CAPS_FLAGS) $(CAPS_TIMING) --launch 0 \
	    $(if $(cap),--mem-cap $(cap) --quant none --device-map auto) $< -o $@

$(R)/caps/caps.ndjson: $(CAPS_RUNS) pipelines/experiment/offload/caps.jq
	@for y in LLADA LLAMA; do for c in $(CAPS); do \
	    jq -nc --arg cap $$c --argjson bytes $$(numfmt --from=iec $$c) \
	        --slurpfile group $(R)/caps/$$y-$$c.group --slurpfile whole $(R)/caps/$$y-whole.ndjson \
	        --slurpfile run $(R)/caps/$$y-$$c.ndjson -f pipelines/experiment/offload/caps.jq; \
	done; done > $@.tmp && mv $@.tmp $@

.PHONY: caps
caps: $(R)/caps/caps.ndjson \
    ##run models under a memory limit: peak and slow-down against the prediction
	@jq -r -f pipelines/experiment/offload/caps-said.jq $<
