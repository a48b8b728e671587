# gpu-check.mk - make gpu-check: compares the CUDA back end on this machine's device with the CPU.
#
#   make gpu-check                 everything
#   make gpu-check QUICK=1         fewer prompts, runs and tools
#   make gpu-check GPU_DEVICE=cuda:1 GPU_CHECK=identity,repeat,sanitize-memcheck GPU_LIMIT=300
#
# tests/gpu/check has the checks. As in gpu-bench each part has a file of its own, gpu-check/PART,
# below the machine's results, and a part that has passed is not run again while code and settings
# are the same. A part of sanitize is one program under one tool. GPU_LIMIT: seconds of one program.
# Without a usable device make prints one line and "Error 69" (its own exit status is 2, as always).

# 1: fewer prompts, runs and tools
QUICK     ?=
# checks to run; sanitize-TOOL: one tool of compute-sanitizer
GPU_CHECK ?= tests,identity,tolerance,batch,repeat,sanitize

# Tests of tests/cuda run on any device, except those that need the emulated device: tests of the
# emulator itself, of failing calls, of its library, and of the text of nvidia.cuh. Tests of
# tests/gpu need a real device. All
# tests are links to one program, so that the kernels are linked once. The name of the link selects
# the main() of the test.
EMULATED_ONLY := $(wildcard tests/cuda/test-emulator*.cu) tests/cuda/test-faults.cu \
                 tests/cuda/test-gemm.cu tests/cuda/test-nvidia.cu
GPU_TEST_CU   := $(filter-out $(EMULATED_ONLY),$(sort $(wildcard tests/cuda/test-*.cu))) \
                 $(wildcard tests/gpu/test-*.cu)
GPU_TEST_PROG := $(if $(HAVE_CUDA),$(addprefix $(BUILD)/gpu/,$(notdir $(GPU_TEST_CU:.cu=))))
GPU_CHECK_TOOLS := $(BIN)/gen-llama $(BIN)/gen-llada $(BIN)/gen-ltm $(BIN)/score-ppl
GPU_CHECK_OUT = $(RESULTS)/gpu-check

# -Xlinker passes these libraries to the linker; nvcc would search them for device code.
GPU_LDLIBS = $(addprefix -Xlinker ,$(filter -l% -L% -B%,$(subst -Wl$(,),,$(LDLIBS))))

GPU_TEST_NAMES := $(notdir $(GPU_TEST_CU:.cu=))
GPU_TEST_OBJ   := $(GPU_TEST_CU:tests/%.cu=$(BUILD)/obj/gpu/%.o) $(BUILD)/obj/gpu/programs.o

$(BUILD)/obj/gpu/%.o: tests/%.cu $(BUILD)/obj/cuda-flags.txt
	@mkdir -p $(@D)
	$(call say,nvcc $<)$(NVCC) $(CUDA_FLAGS) -MMD -MT $@ -MF $(@:.o=.d) -c $< -o $@.tmp
	@objcopy --redefine-sym main=main_$(subst -,_,$(notdir $*)) $@.tmp && mv $@.tmp $@

text-$(BUILD)/obj/gpu/names = $(GPU_TEST_NAMES)
$(BUILD)/obj/gpu/programs.o: tests/gpu/programs.c $(BUILD)/obj/gpu/names
	$(call say,cc $<)$(CC) $(ALL_CFLAGS) \
	    '-DTESTS=$(foreach t,$(GPU_TEST_NAMES),TEST($(subst -,_,$t)))' -c $< -o $@

.PRECIOUS: $(BUILD)/obj/gpu/%.o $(GPU_CHECK_OUT)/%.key
$(BUILD)/gpu/programs: $(GPU_TEST_OBJ) $(CUDA_OBJ) $(CUDA_C:%.c=$(PIC)/%.o) \
    $(BUILD)/libcrossover.a $(BUILD)/obj/lib/base/version.o
	@mkdir -p $(@D)
	$(call say,nvcc $@)$(NVCC) -cudart static $(CUDA_RPATH) $^ -o $@.tmp $(GPU_LDLIBS) && \
	    mv $@.tmp $@
$(BUILD)/gpu/test-%: $(BUILD)/gpu/programs
	@ln -sf programs $@

# sanitize and sanitize-TOOL become a part for each program, sanitize-TOOL-PROGRAM. If there is
# nothing to run, one part says so. Programs whose kernels fail on purpose and programs without
# kernels are left out.
GPU_SANITIZER  := $(or $(shell command -v compute-sanitizer),$(wildcard \
    $(CUDA_HOME)/bin/compute-sanitizer $(CUDA_HOME)/compute-sanitizer/compute-sanitizer))
GPU_SANITIZE   := $(if $(QUICK),memcheck synccheck,memcheck racecheck initcheck synccheck)
GPU_SANITIZED  := $(if $(GPU_SANITIZER),$(filter-out test-lost test-watchdog \
    test-choices test-attention-plan, $(notdir $(GPU_TEST_PROG))))
gpu_sanitize    = $(foreach t,$(1),$(GPU_SANITIZED:%=sanitize-$(t)-%))
gpu_tools       = $(if $(filter sanitize,$(1)),$(GPU_SANITIZE),$(patsubst \
    sanitize-%,%,$(filter sanitize-%,$(1))))
gpu_check_part  = $(or $(strip $(call gpu_sanitize,$(gpu_tools))),$(1))
GPU_CHECK_NAMES := $(foreach p,$(call split,$(GPU_CHECK)),$(call gpu_check_part,$(p)))

gpu_words    = $(subst -, ,$(1))
gpu_what     = $(if $(filter sanitize-%,$*),sanitize-$(word 2,$(call gpu_words,$*)),$*)
gpu_programs = $(if $(filter tests,$*),$(GPU_TEST_PROG),$(filter \
    %/$(*:$(gpu_what)-%=%),$(GPU_TEST_PROG)))

$(GPU_CHECK_OUT)/code: $(wildcard tests/cuda/* tests/gpu/* $(GPU_CHECK_TOOLS:$(BIN)/%=tools/%.c))
$(GPU_CHECK_OUT)/%.key: FORCE
	$(call stamp,$(GPU_DEVICE) $(QUICK) $(LLAMA) $(LLADA))
$(GPU_CHECK_OUT)/%.ndjson: gpu_command = $(GPU_WITH) BIN='$(BIN)' LIMIT=$(GPU_LIMIT) \
    tests/gpu/check $(if $(QUICK),--quick) --only $(gpu_what) \
    --device $(GPU_DEVICE) --machine $(FP) -o $(gpu_open) $(gpu_programs)
$(GPU_CHECK_OUT)/%.ndjson: $(GPU_CHECK_OUT)/%.key $(GPU_CHECK_OUT)/code | $(QUIET) \
    $(GPU_CHECK_TOOLS) $(GPU_OUR_OBJECT) $(GPU_TEST_PROG)
	$(gpu_part)

gpu_count = def n($$v): map(select(. == $$v)) | length; [inputs.pass] | \
    "\(n(true)) passed, \(n(false)) failed, \(n(null)) not run"

.PHONY: gpu-check gpu-check-parts
gpu-check-parts: $(GPU_CHECK_NAMES:%=$(GPU_CHECK_OUT)/%.ndjson)
gpu-check: gpu-present $(GPU_CHECK_TOOLS) ##develop test the CUDA back end on a device (QUICK=1)
	@$(call gpu_all,$(GPU_CHECK_OUT),gpu-check-parts); \
	 for p in $(GPU_CHECK_NAMES:%=$(GPU_CHECK_OUT)/%); do \
	    for f in $$p.ndjson $$p.open.ndjson; do [ ! -f $$f ] || cat $$f; done; done | \
	 jq -nr '$(gpu_count)'; \
	 echo 'Records: $(GPU_CHECK_OUT)/*.ndjson'; \
	 $(call gpu_failed,$(GPU_CHECK_OUT)); \
	 exit $$status
