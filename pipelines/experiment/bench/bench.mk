# bench.mk - make bench: the limits of this machine, and how close kernels and models come to them.
#
#   make bench                                    ceilings, kernels, models of the small shapes
#   make bench BENCH=models BENCH_SHAPES=small,1b BENCH_DTYPES=bf16,int8 BENCH_REPEAT=5
#   make bench BENCH=wkv                         time mixing of RWKV 6 and 7 in its forms
#   make bench BENCH=training                    bytes and time of steps that compute layers again
#   make bench BENCH=activations                 bytes at the size of a small language model
#   make bench BENCH=solvers                     error against evaluations of solvers of latents
#   make bench BENCH=tools BENCH_STREAM=10G      how fast the tools read records (in TMPDIR)
#   make bench BENCH_PEER='COMMAND'              another engine beside ours: data/peers/README.md
#
# If llama-bench is on the PATH (and llama-batched-bench, llama-diffusion-cli), it runs on files of
# the same shapes, in turn with our programs; its results are the peer column. No peer is needed. A
# peer that fails or takes longer than BENCH_LIMIT seconds is named once. gpu-bench.mk measures a
# GPU.

# parts: ceilings, kernels, models, growth, tools, wkv, training, activations, solvers
BENCH        ?= ceilings,kernels,models,growth,tools
# shapes of the models
BENCH_SHAPES ?= small
# number formats of the weights
BENCH_DTYPES ?= f32,bf16,int8,nf4
# repeats of a measurement
BENCH_REPEAT ?= 3
# wall: elapsed time; cpu: processor time, for a machine that other programs use too
BENCH_CLOCK  ?= wall
# bytes of records that the tools read
BENCH_STREAM ?= 16M
# seconds that a peer may take
BENCH_LIMIT  ?= 900
# command of another engine
BENCH_PEER   ?=
# more options of the bench
BENCH_FLAGS  ?=

BENCH_LIB := $(BUILD)/libcrossover.a $(BUILD)/obj/lib/base/version.o
BENCH_OBJ := $(addprefix $(BUILD)/obj/tests/bench/,bench.o card.o task.o data.o walk.o \
    kernels.o attention.o wkv.o training.o solvers.o models.o passes.o parts.o whole.o growth.o \
    tools.o peer.o command.o)
WRITE_OBJ := $(BUILD)/obj/tests/bench/write-checkpoint.o
GGUF_OBJ  := $(addprefix $(BUILD)/obj/tests/bench/,write-gguf.o ggml-blocks.o)

# A shared object, loaded by LD_PRELOAD, whose clocks give llama.cpp's tools processor time.
BENCH_SO   := $(BUILD)/tests/bench/processor-clock.so
$(BENCH_SO): tests/bench/processor-clock.c $(BUILD)/obj/flags.txt
	@mkdir -p $(@D)
	$(call say,cc $<)$(CC) $(ALL_CFLAGS) -fPIC -shared $< -o $@

BENCH_PROG := $(addprefix $(BUILD)/tests/bench/,bench write-gguf write-checkpoint)
$(BUILD)/tests/bench/bench: $(BENCH_OBJ) $(BENCH_LIB)
$(BUILD)/tests/bench/write-gguf: $(GGUF_OBJ) $(BENCH_LIB)
$(BUILD)/tests/bench/write-checkpoint: $(WRITE_OBJ) $(BENCH_LIB)
$(BENCH_PROG):
	@mkdir -p $(@D)
	$(link)

# The model files of the peer, SHAPE.TYPE.gguf. They are large; make clean removes them.
PEER_DIR   := $(BUILD)/peer
PEER_TYPES := $(sort $(patsubst q4,q4_0,$(patsubst nf4,q4_0,$(patsubst int8,q8_0,\
                  $(filter-out fp8,$(subst $(,), ,$(BENCH_DTYPES)))))))
PEER_small := small-llama small-llada
PEER_1b    := llama3.2-1b llada3.2-1b
PEER_8b    := llama3-8b llada-8b
PEER_qwen3-0.6b := qwen3-0.6b
PEER_llada-moe-7b-a1b := llama3.2-1b llada-moe-7b-a1b
PEER_FILES := $(foreach s,$(subst $(,), ,$(BENCH_SHAPES)),$(foreach m,$(PEER_$(s)),\
                  $(PEER_TYPES:%=$(PEER_DIR)/$(m).%.gguf)))
PEER       := $(if $(findstring models,$(BENCH)),$(shell command -v llama-bench))

$(PEER_DIR)/%.gguf: $(BUILD)/tests/bench/write-gguf
	@mkdir -p $(@D)
	$(call say,write-gguf $*)\
	    $< --shape $(basename $*) --type $(patsubst .%,%,$(suffix $*)) $@

BENCH_OUT  = $(RESULTS)/bench
BENCH_NEEDS := $(firstword $(BENCH_PROG)) $(BENCH_SO) $(BIN)/plot $(if $(PEER),$(PEER_FILES)) \
    $(if $(findstring tools,$(BENCH)),$(BIN)/measure $(BIN)/score-exact $(BIN)/score-text \
        $(BIN)/report $(BIN)/pareto $(BIN)/compare)
.PHONY: bench
bench: $(BENCH_NEEDS) ##run limits of this machine, speed of kernels and models (BENCH=)
	@mkdir -p $(BENCH_OUT)
	flock -x $(QUIET) $< --only $(BENCH) --shapes $(BENCH_SHAPES) --dtypes $(BENCH_DTYPES) \
	    --repeat $(BENCH_REPEAT) --clock $(BENCH_CLOCK) --bin $(BIN) \
	    --stream $(BENCH_STREAM) --peer-limit $(BENCH_LIMIT) \
	    $(if $(PEER),--peer $(PEER_DIR)) \
	    $(if $(BENCH_PEER),--peer-command $(call quoted,$(BENCH_PEER))) $(BENCH_FLAGS) \
	    -o $(BENCH_OUT)/bench.ndjson
	CROSSOVER_SHARE='$(CURDIR)' $(BIN)/plot --type roofline $(BENCH_OUT)/bench.ndjson \
	    -o $(BENCH_OUT)/roofline.svg
	@echo 'Records and picture: $(BENCH_OUT)/bench.ndjson $(BENCH_OUT)/roofline.svg'

# Tests of the bench programs.
$(BUILD)/tests/unit/test-ggml-blocks: $(BUILD)/obj/tests/bench/ggml-blocks.o
test: $(if $(filter %/bench.bats %/bench-tables.bats %/gpu-parts.bats,$(TEST_SH)),\
          $(BENCH_PROG) $(BENCH_SO))
