# gpu-bench.mk - make gpu-bench: what a GPU can do at most, how near to it kernels and 8B models
# come, and the goals of data/gpu-goals.json beside what was measured.
#
#   make gpu-bench
#   make gpu-bench GPU_DEVICE=cuda:1 GPU_SHAPES=1b GPU_DTYPES=bf16 GPU_PARTS=models GPU_JOBS=after
#   make gpu-bench GPU_MODEL=org/model      also: how fast its weights are loaded
#   make gpu-bench GPU_PEER='COMMAND'       with a peer column
#
# COMMAND is run once, before anything of ours is on the device. It prints a JSON object a line,
#
#   {"work": "decode 128 after 128, batch 1", "tokens_per_s": 61.5, "model": "llama3-8b",
#    "dtype": "bf16", "peer": "transformers"}
#
# where model and dtype may be left out when they do not matter. `work` as in our records: a full
# pass counts its rows as tokens. Without a usable device bench says so in one line and ends with
# 69 ("Error 69"; make itself ends with 2, as always).
GPU_DEVICE ?= cuda
GPU_PARTS  ?= ceilings,kernels,models
GPU_SHAPES ?= 8b,1b
GPU_DTYPES ?= bf16,int8,nf4,fp8,f32
GPU_JOBS   ?= after,full,block,gap,memory,load
GPU_REPEAT ?= 3
GPU_MODEL  ?=
GPU_PEER   ?=
GPU_BENCH_FLAGS ?=

# The object that was built here, unless the environment names another.
GPU_OBJECT := $(or $(CROSSOVER_CUDA),$(if $(HAVE_CUDA),$(abspath $(CUDA_SO))))
GPU_OUT     = $(RESULTS)/gpu-bench
GPU_GOALS   = jq -nr --slurpfile goals data/gpu-goals.json -f pipelines/goals.jq

GPU_NEEDS  := $(firstword $(BENCH_PROG)) $(BIN)/plot \
              $(if $(CROSSOVER_CUDA),,$(if $(HAVE_CUDA),$(CUDA_SO)))
.PHONY: gpu-bench
gpu-bench: $(GPU_NEEDS) ## a GPU against its ceilings, and its goals (GPU_SHAPES=, GPU_PEER=)
	@mkdir -p $(GPU_OUT)
	@$(if $(GPU_OBJECT),CROSSOVER_CUDA='$(GPU_OBJECT)') flock -x $(QUIET) $< \
	    --device $(GPU_DEVICE) --only $(GPU_PARTS) --shapes $(GPU_SHAPES) \
	    --dtypes $(GPU_DTYPES) --jobs $(GPU_JOBS) --repeat $(GPU_REPEAT) \
	    $(if $(GPU_MODEL),--model '$(GPU_MODEL)') \
	    $(if $(GPU_PEER),--peer-command '$(subst ','\'',$(GPU_PEER))') $(GPU_BENCH_FLAGS) \
	    -o $(GPU_OUT)/bench.ndjson
	@CROSSOVER_SHARE='$(CURDIR)' $(BIN)/plot --type roofline $(GPU_OUT)/bench.ndjson \
	    -o $(GPU_OUT)/roofline.svg
	@$(GPU_GOALS) $(GPU_OUT)/bench.ndjson | tee $(GPU_OUT)/goals.txt
	@echo 'Records and picture: $(GPU_OUT)/bench.ndjson $(GPU_OUT)/roofline.svg'
