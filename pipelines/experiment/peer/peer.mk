# peer.mk - make peer: runs another engine, behind an OpenAI-type server, on the prompts of phases 4
# and 5.
#
# The engine is another software stack, and every record says so. The page shows it in its own
# section, and its ratios to our LLaMA are ratios of two programs. The server must run already. make
# peer does not start the server, and warms it only by the first prompts of each launch.
#
#   $(PEER)/steps     the load of phase 4: one request at a time
#   $(PEER)/length-N  the loads of phase 5: as many requests in flight as batches have prompts

# make peer: the API of the server, such as http://127.0.0.1:8080/v1
URL             ?=
# make peer: the model that the server has (a folder, FILE.gguf, or a cached name), whose tokenizer
# checks the server's counts. Empty: they are not checked
MODEL           ?=
# make peer: more options of gen-endpoint, such as --api chat
PEER_FLAGS      ?=
# make peer: limits of the goodput, ms to the first token and per token after it
PEER_LIMITS     ?= --ttft-limit-ms 500 --itl-limit-ms 50

PEER        := $(R)/peer
PEER_SWEEPS := steps $(SCALES)
text-$(R)/stamp/peer = $(URL) $(MODEL) $(PEER_FLAGS) $(GEN_LENGTH) $(CONTRACT) $(LAUNCHES) \
    $(SCALE_BATCH) $(SCALE_LAUNCHES) $(SEED)

# the settings of a sweep of the phase; --batch is here the number of requests in flight
peer_steps   := --batch 1 --gen-length $(GEN_LENGTH) --contract $(CONTRACT) --launches $(LAUNCHES)
peer_length   = --batch $(SCALE_BATCH) --gen-length $(1) --contract fixed \
                --launches $(SCALE_LAUNCHES)
peer_prompts  = $(if $(filter steps,$(1)),$(timed_prompts),$(R)/scale-prompts.ndjson)

$(PEER_SWEEPS:%=$(PEER)/%/schedule.ndjson): $(PEER)/%/schedule.ndjson: $(R)/stamp/peer \
    $(TOOL)-schedule | peer-ready
	@mkdir -p $(@D)
	@$(BIN)/schedule -q --systems endpoint --seed $(SEED) \
	    $(if $(filter steps,$*),$(peer_steps),$(call peer_length,$(*:length-%=%))) -o $@

# A finished launch is kept. If the server failed a request, the run goes on.
peer_ask = $(BIN)/gen-endpoint --url $(URL) $(MODEL:%=-m %) --warmup 2 --seed $(SEED) $(PEER_FLAGS)
$(PEER_SWEEPS:%=$(PEER)/%/metrics.ndjson): $(PEER)/%/metrics.ndjson: $(PEER)/%/schedule.ndjson \
    $$(call peer_prompts,$$*) $(TOOL)-gen-endpoint $(TOOL)-measure | $(PIPE)
	$(call say,peer $*)for k in $$(jq -r 'select(.kind == "launch").launch' $<); do \
	    [ $(@D)/launch-$$k.ndjson -nt $< ] || $(alone) $(peer_ask) --schedule $< --launch $$k \
	        $(call peer_prompts,$*) -o $(@D)/launch-$$k.ndjson || exit; \
	done
	@$(beside) $(BIN)/measure --verify $(PEER_LIMITS) \
	    $$(jq -r 'select(.kind == "launch") | "$(@D)/launch-\(.launch).ndjson"' $<) -o $@

# The answers to score, each distinct answer once. If phase 4 times only some prompts, the others
# are answered here too.
$(PEER)/answers.ndjson: $(PEER)/steps/metrics.ndjson $(R)/prompts.ndjson
	$(call say,peer answers)$(if $(TIMED_PROMPTS),$(alone) $(peer_ask) --gen-length $(GEN_LENGTH) \
	    --contract $(CONTRACT) $(R)/prompts.ndjson -o $@,\
	    jq -cn -f pipelines/phase/distinct.jq $(@D)/steps/launch-*.ndjson > $@.tmp && mv $@.tmp $@)

$(PEER)/exact.ndjson $(PEER)/text.ndjson: $(PEER)/%.ndjson: $(PEER)/answers.ndjson \
    $(TOOL)-score-exact $(TOOL)-score-text
	$(call say,score-$* of peer)$(beside) $(BIN)/score-$* -q $< -o $@

$(PEER)/judge.ndjson: $(PEER)/answers.ndjson $(R)/stamp/model-JUDGE $(TOOL)-score-ppl
	$(call say,score-ppl judge of peer)\
	    $(beside) $(BIN)/score-ppl -q --mode judge -m $(JUDGE) $(SCORE_FLAGS) $< -o $@

# Ratios to our LLaMA, for the measurements of phases 4 and 5 that exist.
PEER_SCORED := $(PEER)/exact.ndjson $(PEER)/text.ndjson $(PEER)/judge.ndjson
PEER_OURS   := $(wildcard $(R)/steps/metrics.ndjson $(SCALES:%=$(R)/%/metrics.ndjson))
$(PEER)/ratios.ndjson: $(PEER_SWEEPS:%=$(PEER)/%/metrics.ndjson) $(PEER_OURS) $(TOOL)-compare
	$(if $(PEER_OURS),$(call say,compare peer)$(beside) $(BIN)/compare -q --by stack \
	    --cost e2e_ns --seed $(SEED) $(filter %/metrics.ndjson,$^) -o $@,@: > $@)

# what the page shows with PAGE=peer
PEER_TOLD := $(if $(filter peer,$(PAGED)),$(PEER)/ratios.ndjson $(PEER_SCORED) \
                 $(PEER_SWEEPS:%=$(PEER)/%/metrics.ndjson))

.PHONY: peer peer-ready
peer-ready:
	@[ -n '$(URL)' ] || { echo 'make peer (64): expected URL=http://HOST:PORT/v1, and MODEL= for' \
	    'its tokenizer' >&2; exit 64; }
	@[ -n '$(CURL)' ] || { echo 'make peer (69): gen-endpoint needs libcurl (Debian:' \
	    'libcurl4-openssl-dev; ./bootstrap tools installs it)' >&2; exit 69; }
peer: $(PEER)/ratios.ndjson $(PEER_SCORED) \
    ##run another engine (URL=, MODEL=) on the prompts of phases 4 and 5
	@jq -sr -f pipelines/experiment/peer/peer.jq $^ \
	    $(PEER_SWEEPS:%=$(PEER)/%/metrics.ndjson) | $(PLAIN)
