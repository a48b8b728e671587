# gpu-check.mk - make gpu-check: the CUDA back end on the device that is here, against the CPU.
#
#   make gpu-check                 everything
#   make gpu-check QUICK=1         fewer prompts, runs and tools
#   make gpu-check GPU_DEVICE=cuda:1 GPU_CHECK=identity,repeat
#
# What is checked: tests/gpu/check. Without a usable device it says so in one line and ends with 69
# ("Error 69"; make itself ends with 2, as always).
QUICK     ?=
GPU_CHECK ?= tests,identity,tolerance,batch,repeat,sanitize

# Tests of tests/cuda run on any device, but for those of the emulated device itself and of calls
# that it lets fail. Those of tests/gpu need a real one.
EMULATED_ONLY := $(wildcard tests/cuda/test-emulator*.cu) tests/cuda/test-faults.cu \
                 tests/cuda/test-gemm.cu
GPU_TEST_CU   := $(filter-out $(EMULATED_ONLY),$(sort $(wildcard tests/cuda/test-*.cu))) \
                 $(wildcard tests/gpu/test-*.cu)
GPU_TEST_PROG := $(if $(HAVE_CUDA),$(GPU_TEST_CU:tests/%.cu=$(BUILD)/gpu/%))
GPU_OUR_OBJECT := $(if $(CROSSOVER_CUDA),,$(if $(HAVE_CUDA),$(CUDA_SO)))
GPU_CHECK_TOOLS := $(BIN)/gen-llama $(BIN)/gen-llada $(BIN)/score-ppl
GPU_WITH = $(if $(GPU_OBJECT),CROSSOVER_CUDA='$(GPU_OBJECT)')

# Past nvcc, which would look for code of devices in them.
GPU_LDLIBS = $(addprefix -Xlinker ,$(filter -l% -L% -B%,$(subst -Wl$(,),,$(LDLIBS))))

# Nothing is compiled for a device that is not there.
.PHONY: gpu-present
gpu-present: $(GPU_CHECK_TOOLS) $(GPU_OUR_OBJECT)
	@echo '{"id":"p","prompt_ids":[1]}' | $(GPU_WITH) $(BIN)/gen-llama -m synth:tiny-llama \
	    --device $(GPU_DEVICE) --max-new 1 -q > /dev/null

$(BUILD)/obj/gpu/%.o: tests/%.cu $(BUILD)/obj/cuda-flags.txt | gpu-present
	@mkdir -p $(@D)
	$(call say,nvcc $<)$(NVCC) $(CUDA_FLAGS) -MMD -MF $(@:.o=.d) -c $< -o $@

$(BUILD)/gpu/%: $(BUILD)/obj/gpu/%.o $(CUDA_OBJ) \
    $(patsubst %.c,$(PIC)/%.o,$(wildcard kernels/cuda/*.c)) $(BUILD)/libcrossover.a \
    $(BUILD)/obj/lib/base/version.o
	@mkdir -p $(@D)
	$(call say,nvcc $@)$(NVCC) -cudart static $(CUDA_RPATH) $^ -o $@ $(GPU_LDLIBS)

.PHONY: gpu-check
gpu-check: gpu-present $(GPU_TEST_PROG) ## the CUDA back end on a real device (QUICK=1)
	@mkdir -p $(RESULTS)
	@$(GPU_WITH) BIN='$(BIN)' tests/gpu/check $(if $(QUICK),--quick) --only $(GPU_CHECK) \
	    --device $(GPU_DEVICE) -o $(RESULTS)/gpu-check.ndjson $(GPU_TEST_PROG)
	@echo 'Records: $(RESULTS)/gpu-check.ndjson'
