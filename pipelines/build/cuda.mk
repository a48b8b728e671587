# cuda.mk - the CUDA back end: one shared object beside the tools, loaded when a device is there.
#
# The tests also run kernels/cuda on the host (emulate.mk).

# folder of the CUDA toolkit
CUDA_HOME ?= /usr/local/cuda
# CUDA compiler; "nvcc -ccbin g++-11" names a host compiler
NVCC      ?= $(firstword $(wildcard $(CUDA_HOME)/bin/nvcc) $(shell command -v nvcc))
HAVE_CUDA := $(if $(filter 0,$(CUDA)),,$(NVCC))
ifeq ($(CUDA)$(HAVE_CUDA),1)
$(error CUDA=1: no nvcc in $(CUDA_HOME)/bin or on the PATH (set CUDA_HOME=, or NVCC=))
endif

CUDA_SO    := $(BIN)/libcrossover-cuda.so
CUDA_FILES := $(wildcard kernels/cuda/*.* kernels/cuda/*/*.*)
CUDA_SRC   := $(filter %.cu,$(CUDA_FILES))
CUDA_C     := $(filter %.c,$(CUDA_FILES))
# the files of the library that the CUDA object needs, compiled for a shared object
CUDA_BASE  := $(CUDA_C) $(wildcard kernels/quant*.c) kernels/dtype.c lib/base/buf.c \
              lib/base/cgroup.c lib/base/clock.c lib/base/cpus.c lib/base/err.c lib/base/file.c \
              lib/base/mem.c lib/base/out.c lib/base/plain.c lib/base/pool.c

PIC = $(BUILD)/obj/pic
.PRECIOUS: $(PIC)/%.o
$(PIC)/%.o: %.c $(BUILD)/obj/flags.txt
	@mkdir -p $(@D)
	$(call say,cc $< (shared))$(CC) $(ALL_CFLAGS) -fPIC -fvisibility=hidden -c $< -o $@

ifneq ($(HAVE_CUDA),)
CUDA_OBJ  := $(CUDA_SRC:%.cu=$(BUILD)/obj/%.o)
CUDA_KNOWN = $(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch))
CUDA_MAJOR = $(shell $(NVCC) --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
CUDA_WANT  = $(filter $(CUDA_KNOWN),80 86 89 90 100 120)
# architectures, such as "90a" or "80 89" (default: those of this file that nvcc knows, and PTX of
# the newest for later cards)
CUDA_ARCH ?= $(if $(filter 11,$(CUDA_MAJOR)),$(CUDA_WANT),$(patsubst 90,90a,$(CUDA_WANT)))
CUDA_CODE := $(foreach a,$(CUDA_ARCH),-gencode arch=compute_$(a)$(,)code=sm_$(a))
CUDA_PTX  := $(lastword $(filter-out %a,$(CUDA_ARCH)))
CUDA_FLAGS := -std=c++17 -O3 -lineinfo -I. -DPLATFORM=\"kernels/cuda/nvidia.cuh\" \
    $(CUDA_CODE) $(if $(CUDA_PTX),-gencode arch=compute_$(CUDA_PTX)$(,)code=compute_$(CUDA_PTX)) \
    -Werror all-warnings -Xcompiler -fPIC$(,)-Wall$(,)-Wextra$(,)-Werror$(,)-fvisibility=hidden

# -z defs: no symbol may be missing. The machine needs only the C library and libcuda. cuBLASLt is
# opened at run time, from the toolkit if the system has none.
CUDA_RPATH := -Xlinker -rpath$(,)$(CUDA_HOME)/lib64
CUDA_LINK := -cudart static -Xcompiler -static-libstdc++$(,)-static-libgcc \
    -Xlinker --exclude-libs=ALL$(,)-z$(,)defs $(CUDA_RPATH)

text-$(BUILD)/obj/cuda-flags.txt = $(NVCC) $(CUDA_FLAGS)

$(BUILD)/obj/%.o: %.cu $(BUILD)/obj/cuda-flags.txt
	@mkdir -p $(@D)
	$(call say,nvcc $<)$(NVCC) $(CUDA_FLAGS) -MMD -MF $(@:.o=.d) -c $< -o $@

# A dependency file may name a header that was removed; this must not stop the build.
kernels/cuda/%.h: ;
kernels/cuda/%.cuh: ;

$(CUDA_SO): $(CUDA_OBJ) $(CUDA_BASE:%.c=$(PIC)/%.o)
	@mkdir -p $(@D)
	$(call say,nvcc $@)$(NVCC) -shared $(CUDA_LINK) $^ -o $@.tmp && mv $@.tmp $@

tools: $(CUDA_SO)

# The tools look for the object in their own folder, then in this folder.
libdir := $(DESTDIR)$(PREFIX)/lib/crossover
install: install-cuda
.PHONY: install-cuda
install-cuda: $(CUDA_SO)
	install -D -m 755 $< '$(libdir)/libcrossover-cuda.so'
endif
