# gpu-bench.mk - make gpu-bench: the limits of a GPU, how close kernels and 8B models come to them,
# and the goals of data/gpu-goals.json beside the measurements.
#
#   make gpu-bench
#   make gpu-bench GPU_DEVICE=cuda:1 GPU_SHAPES=1b GPU_DTYPES=bf16 GPU_PARTS=models GPU_JOBS=after
#   make gpu-bench GPU_MODEL=org/model      also how fast its weights are loaded
#   make gpu-bench GPU_MODEL=build/checkpoint/llama3-8b    random weights, written first
#   make gpu-bench GPU_PEER='COMMAND'       with another engine in a column of its own
#   make gpu-goals                          the goals beside the records that are there
#
# Each part is a process and a file of its own, gpu-bench/PART.ndjson below the machine's results.
# The first parts answer most goals; kernels come last. A part is not run again while its settings
# and the code are the same, so an interrupted run continues. The records of a part that was
# interrupted, failed, or took longer than GPU_LIMIT seconds are in PART.open.ndjson.
#
# COMMAND runs once, when the device is free, and prints a JSON object a line
# (data/peers/README.md). Without a usable device make prints one line and "Error 69" (its own exit
# status is 2, as always).

# device
GPU_DEVICE ?= cuda
# what to measure: ceilings, kernels, models
GPU_PARTS  ?= ceilings,kernels,models
# shapes of the models
GPU_SHAPES ?= 8b,1b
# number formats of the weights
GPU_DTYPES ?= bf16,int8,nf4,fp8,f32
# measurements of a model
GPU_JOBS   ?= after,full,block,parts,gap,memory,load
# repeats of a measurement
GPU_REPEAT ?= 3
# seconds that one part may take
GPU_LIMIT  ?= 900
# checkpoint whose loading is timed
GPU_MODEL  ?=
# command of another engine
GPU_PEER   ?=
# more options of the bench
GPU_BENCH_FLAGS ?=

# The shared object that was built here, unless CROSSOVER_CUDA names another one.
GPU_OBJECT := $(or $(CROSSOVER_CUDA),$(if $(HAVE_CUDA),$(abspath $(CUDA_SO))))
GPU_OUR_OBJECT := $(if $(CROSSOVER_CUDA),,$(if $(HAVE_CUDA),$(CUDA_SO)))
GPU_WITH    = $(if $(GPU_OBJECT),CROSSOVER_CUDA='$(GPU_OBJECT)')
GPU_OUT     = $(RESULTS)/gpu-bench

# gpu-bench and gpu-check need jq and a device. If one is missing, they compile and start nothing.
.PHONY: gpu-jq gpu-present
gpu-jq:
	@command -v jq > /dev/null || \
	    { echo 'jq is needed and not here (./bootstrap installs it)' >&2; exit 69; }
gpu-present: $(BIN)/gen-llama $(GPU_OUR_OBJECT) | gpu-jq
	@echo '{"id":"p","prompt_ids":[1]}' | $(GPU_WITH) $(BIN)/gen-llama -m synth:tiny-llama \
	    --device $(GPU_DEVICE) --max-new 1 -q > /dev/null

# The files that a part depends on because they hold the measured code. For the device these are
# sources, because nvcc makes a different object from the same sources each time.
GPU_CODE := $(or $(wildcard $(CROSSOVER_CUDA)),$(if $(HAVE_CUDA),$(BUILD)/obj/cuda-flags.txt \
                 $(CUDA_FILES) $(wildcard kernels/*.h lib/base/*.h) $(CUDA_BASE)))
$(RESULTS)/gpu-%/code: $(ENGINE_OBJ) $(GPU_CODE)
	@mkdir -p $(@D)
	@sha256sum $^ | sha256sum > $@.tmp; cmp -s $@.tmp $@ && rm $@.tmp || mv $@.tmp $@

# The recipe of a part: $(gpu_command) writes PART.open.ndjson, which is then renamed to $@. The
# first prerequisites are the settings and the code; an open file with other settings is removed.
# The trap lets a command that is stopped together with make write its end record. flock is not the
# parent of the command, because flock would not wait for the command.
gpu_open = $(basename $@).open$(suffix $@)
define gpu_part
@echo '-- $(notdir $(@D)): $(basename $(@F))'
@trap : TERM INT HUP; mkdir -p $(@D); rm -f $@; \
 for newer in $^; do [ ! $(gpu_open) -ot $$newer ] || rm -f $(gpu_open); done; \
 status=0; { flock -x 9 && $(gpu_command); } 9>> $(QUIET) || status=$$?; \
 case $$status in \
 0) mv $(gpu_open) $@; exit ;; \
 77) echo '$(basename $(@F)): not run here'; exit 0 ;; \
 124) why='out of time (GPU_LIMIT=$(GPU_LIMIT))' ;; \
 *) why="ended with $$status" ;; esac; \
 echo "$(basename $(@F)): $$why" | tee -a $(@D)/failed >&2; exit $$status
endef
gpu_limit = timeout --foreground -k 30 $(GPU_LIMIT)
# $(call gpu_all,FOLDER,TARGET): makes all parts that can be made, one after the other. $$status is
# then 0 if all parts exist. The commands after this call run even if make is stopped.
gpu_all = trap : TERM INT HUP; mkdir -p $(1); : > $(1)/failed; status=0; \
    $(MAKE) -k -j1 --no-print-directory $(2) || status=$$?
gpu_failed = [ ! -s $(1)/failed ] || { echo 'Not done:'; sed 's/^/  /' $(1)/failed; } >&2

# ---- the parts, in their order ----

gpu_space  := $(subst x,,x x)
GPU_FIRST  := $(firstword $(call split,$(GPU_SHAPES)))
GPU_OTHERS := $(filter-out $(GPU_FIRST),$(call split,$(GPU_SHAPES)))
GPU_NARROW := $(filter-out bf16 f32,$(call split,$(GPU_DTYPES)))
GPU_WIDE   := $(filter f32,$(call split,$(GPU_DTYPES)))
GPU_TYPES  := $(filter bf16,$(call split,$(GPU_DTYPES))) $(GPU_NARROW)
GPU_PASSES := $(filter-out load,$(call split,$(GPU_JOBS)))
# The first shape is first decoded in its narrow types; the other jobs are a later part.
GPU_AFTER  := $(filter after,$(GPU_PASSES))
GPU_MORE   := $(filter-out after,$(GPU_PASSES))

GPU_MODELS := $(if $(GPU_PASSES),$(patsubst %,$(GPU_FIRST)-%,$(filter bf16,$(GPU_TYPES)))) \
    $(if $(GPU_AFTER),$(GPU_NARROW:%=$(GPU_FIRST)-%)) \
    $(if $(GPU_MODEL),$(filter load,$(call split,$(GPU_JOBS)))) $(if $(GPU_PEER),peer) \
    $(if $(GPU_MORE),$(GPU_NARROW:%=$(GPU_FIRST)-%-more)) \
    $(if $(GPU_PASSES),$(foreach s,$(GPU_OTHERS),$(GPU_TYPES:%=$(s)-%)) \
        $(foreach s,$(GPU_FIRST) $(GPU_OTHERS),$(GPU_WIDE:%=$(s)-%)))
GPU_KERNELS := $(foreach s,$(GPU_FIRST) $(GPU_OTHERS),kernels-$(s))
gpu_chosen = $(if $(filter $(1),$(call split,$(GPU_PARTS))),$(2))
GPU_BENCH_NAMES := $(call gpu_chosen,ceilings,ceilings) \
    $(call gpu_chosen,models,$(GPU_MODELS)) $(call gpu_chosen,kernels,$(GPU_KERNELS))

# the options of bench for a part, from the words of its name
gpu_types = $(or $(filter bf16,$(GPU_TYPES)),$(firstword $(GPU_TYPES) f32))
gpu_jobs  = $(subst $(gpu_space),$(,),$(strip $(if $(word 3,$(1)),$(GPU_MORE),$(if \
    $(filter $(firstword $(1))-$(word 2,$(1)),$(GPU_NARROW:%=$(GPU_FIRST)-%)),$(GPU_AFTER),\
    $(GPU_PASSES)))))
gpu_flags_ceilings = --only ceilings
gpu_flags_kernels  = --only kernels --shapes $(word 2,$(1)) --dtypes $(GPU_DTYPES)
gpu_flags_load     = --only models --jobs load --shapes $(GPU_FIRST) --dtypes $(gpu_types) \
                     --model '$(GPU_MODEL)'
gpu_flags_model    = --only models --shapes $(word 1,$(1)) --dtypes $(word 2,$(1)) \
                     --jobs $(gpu_jobs)
gpu_flags = $(call gpu_flags_$(or $(filter ceilings kernels load,$(firstword $(1))),model),$(1)) \
    --device $(GPU_DEVICE) --repeat $(GPU_REPEAT) $(GPU_BENCH_FLAGS)

.PRECIOUS: $(GPU_OUT)/%.key $(BUILD)/checkpoint/%
$(GPU_OUT)/%.key: FORCE
	$(call stamp,$(call gpu_flags,$(subst -, ,$*)))

# The bench program is an order-only prerequisite: a newer one does not make measurements invalid.
$(GPU_OUT)/%.ndjson: gpu_command = $(GPU_WITH) $(gpu_limit) $(firstword $(BENCH_PROG)) \
    $(call gpu_flags,$(subst -, ,$*)) -o $(gpu_open)
$(GPU_OUT)/%.ndjson: $(GPU_OUT)/%.key $(GPU_OUT)/code | $(QUIET) $(firstword $(BENCH_PROG)) \
    $(GPU_OUR_OBJECT)
	$(gpu_part)

# A checkpoint with random weights. It is large; make clean removes it.
$(BUILD)/checkpoint/%: | $(BUILD)/tests/bench/write-checkpoint
	$(call say,write-checkpoint $*)$(BUILD)/tests/bench/write-checkpoint --shape $* $@
$(GPU_OUT)/load.ndjson: | $(filter $(BUILD)/checkpoint/%,$(GPU_MODEL))

# The records of another engine are joined to ours only when the goals are printed, so the engine
# may be measured later.
$(GPU_OUT)/peer.key: FORCE
	$(call stamp,$(subst ','\'',$(GPU_PEER)))
$(GPU_OUT)/peer.json: gpu_command = $(firstword $(BENCH_PROG)) --only peer \
    --device $(GPU_DEVICE) --shapes $(GPU_SHAPES) --dtypes $(GPU_DTYPES) --jobs $(GPU_JOBS) \
    --repeat $(GPU_REPEAT) --peer-limit $(GPU_LIMIT) --peer-command $(call quoted,$(GPU_PEER)) \
    -o $(gpu_open)
$(GPU_OUT)/peer.json: $(GPU_OUT)/peer.key | $(QUIET) $(firstword $(BENCH_PROG))
	$(gpu_part)

# ---- results ----

.PHONY: gpu-bench gpu-bench-parts gpu-goals
gpu-bench-parts: $(patsubst %/peer.ndjson,%/peer.json,$(GPU_BENCH_NAMES:%=$(GPU_OUT)/%.ndjson))

gpu-goals: $(GPU_OUT)/code | gpu-jq ##look the goals for a GPU beside what make gpu-bench measured
	@find $(GPU_OUT) -name '*.ndjson' ! -newer $< -printf 'OF OTHER CODE: %f\n'
	@jq -nr --slurpfile goals data/gpu-goals.json \
	    --slurpfile peer $(or $(wildcard $(GPU_OUT)/peer.json),/dev/null) \
	    -f pipelines/experiment/gpu/goals.jq /dev/null $(wildcard $(GPU_OUT)/*.ndjson) | \
	    tee $(GPU_OUT)/goals.txt

# Every part has records of the ceilings; the figure gets one record of each ceiling.
gpu_roofs = [inputs | select(.kind == "roofline")] | (map(select(.ceiling)) | unique_by(.unit)[]), \
    (.[] | select(.ceiling | not))
gpu_picture = jq -nc '$(gpu_roofs)' $(GPU_OUT)/*.ndjson | \
    CROSSOVER_SHARE='$(CURDIR)' $(BIN)/plot --type roofline -o $(GPU_OUT)/roofline.svg

gpu-bench: gpu-present $(firstword $(BENCH_PROG)) $(BIN)/plot \
    ##run limits of a GPU, speed of kernels and models, goals
	@$(call gpu_all,$(GPU_OUT),gpu-bench-parts); \
	 $(MAKE) --no-print-directory gpu-goals; \
	 if ! ls $(GPU_OUT)/*.ndjson > /dev/null 2>&1; then :; \
	 elif ! command -v gnuplot > /dev/null; then echo 'No picture: gnuplot is not here'; \
	 else $(gpu_picture) || status=1; fi; \
	 echo 'Records: $(GPU_OUT)/*.ndjson'; \
	 $(call gpu_failed,$(GPU_OUT)); \
	 exit $$status
