# emulate.mk - code for other hardware, compiled for this machine so that make test runs it:
# kernels/cuda without a GPU, and the tiles of kernels/cpu/amx without AMX.
#
#   build/tests/tiles.a                 levels amx_LEVEL: tiles in plain C (tests/emulate/tmm.c),
#                                       with the vector instructions of LEVEL
#   build/tests/amx/                    tools that run level amx; every AMX instruction is a trap
#   build/tests/libcrossover-cuda.so    the CUDA back end on the emulated device (tests/emulate)
#   build/tests/cuda/test-*             tests of tests/cuda, linked with that back end
TILES := portable $(filter avx512bf16,$(CPU_LEVELS))
$(foreach l,$(TILES),$(eval CPU_FLAGS_amx_$(l) := $(CPU_FLAGS_$(l))))
$(foreach l,$(TILES),$(eval $(call cpu_level,amx_$(l),$(l),tests/emulate/tmm.h)))
$(TILES:%=$(BUILD)/obj/kernels/amx_%/cpu/cpu_ops.o): private CPU_FLAGS += -DTRAIN_IN_OPS
$(BUILD)/obj/tests/emulate/tmm.o: private ALL_CFLAGS += $(CPU_FLAGS)
$(BUILD)/tests/tiles.a: $(foreach l,$(TILES),$(call level_obj,amx_$(l))) \
    $(BUILD)/obj/tests/emulate/tmm.o
	@mkdir -p $(@D)
	@rm -f $@.tmp
	$(call say,ar $@)ar rcs $@.tmp $^ && mv $@.tmp $@

# Tests that compare levels also run the levels amx_LEVEL (tests/kernels/levels.h).
TILED := amx attention attention-back gemm products quant-products
TILED := $(TILED:%=$(BUILD)/tests/kernels/test-%)
$(TILED): $(BUILD)/tests/tiles.a
$(TILED:$(BUILD)/%=$(BUILD)/obj/%.o): $(BUILD)/obj/levels.txt
$(TILED): private LDLIBS := $(BUILD)/tests/tiles.a $(BUILD)/libcrossover.a $(LDLIBS)
$(TILED:$(BUILD)/%=$(BUILD)/obj/%.o): private ALL_CFLAGS += $(TILES:%=-DHAVE_TILES_%) \
    $(CPU_LEVELS:%=-DHAVE_CPU_%)

# Tools with the code of level amx, whose instructions trap (tests/cli/amx.bats).
TRAPPED := $(if $(filter amx,$(CPU_LEVELS)),gen-llada gen-llama train-lm)
TRAPPED := $(TRAPPED:%=$(BUILD)/tests/amx/%)
$(BUILD)/tests/amx/%: $(BUILD)/obj/tools/%.o $(BUILD)/obj/tests/emulate/amx_traps.o \
    $(BUILD)/obj/tests/emulate/tmm.o $(BUILD)/libcrossover.a $(BUILD)/obj/lib/base/version.o
	@mkdir -p $(@D)
	$(link)
$(BUILD)/tests/amx/train-lm: private LDLIBS += $(if $(MPI),$(shell pkg-config --libs $(MPI)))
test: $(if $(filter %/amx.bats,$(TEST_SH)),$(TRAPPED))

ifeq ($(origin CXX),default)
CXX := c++
endif
HAVE_CXX := $(shell command -v $(CXX))

EMULATE  := $(BUILD)/obj/emulate
EMULATED := $(BUILD)/tests/libcrossover-cuda.so
# library.cu looks for the vendor's library; tests/emulate has its own version of this file.
EMULATE_SRC := $(filter-out kernels/cuda/product/library.cu,$(CUDA_SRC)) \
               $(wildcard tests/emulate/*.cu tests/emulate/*.cc)
EMULATE_OBJ  = $(addprefix $(EMULATE)/,$(addsuffix .o,$(basename $(EMULATE_SRC))))
# Unaligned accesses fault on a GPU, but not on every processor.
EMULATE_TRAPS := $(if $(SAN),,-fsanitize=alignment -fsanitize-undefined-trap-on-error)
# The vector instructions of this machine, if it has AVX2. They make fmaf one instruction instead of
# a call. Multiplications and additions are not contracted, so the numbers do not depend on this.
EMULATE_ISA  = $(eval EMULATE_ISA := $(if $(filter-out $(CPU_KNOWS),avx2 bmi2 f16c fma movbe abm),,\
                   $(CPU_FLAGS_avx2)))$(EMULATE_ISA)
EMULATE_FLAGS = -std=c++17 -D_GNU_SOURCE -I. -Itests/emulate -O1 -g1 -Wall -Wextra -Werror \
    -Wno-unknown-pragmas -ffp-contract=off -fPIC -fvisibility=hidden \
    -DPLATFORM='"tests/emulate/emulate.cuh"' $(EMULATE_ISA) $(EMULATE_TRAPS) $(SANITIZE) \
    $(if $(filter thread,$(SAN)),-DWATCH_THREADS) -MMD -MP
# The emulated device and its library take far more time than the kernels, so they are compiled with
# -O3. ThreadSanitizer watches the kernels and not the emulated device (tests/emulate/sanitizers.h).
EMULATE_FLAGS_cc := -O3 $(if $(SAN),,-fno-sanitize=alignment) \
    $(if $(filter thread,$(SAN)),-fno-sanitize=thread)
# Headers take most of the time of a compilation, so one precompiled header has them all.
EMULATE_FIRST := $(EMULATE)/emulated.h
EMULATE_FLAGS_cu := -include $(EMULATE_FIRST)
# gcc 12 fails if the precompiled header was compiled with another -O level.
$(EMULATE)/tests/emulate/library.o: private EMULATE_FLAGS_cu := -O3

TEST_CU      := $(call SELECT,$(sort $(wildcard tests/cuda/test-*.cu)))
TEST_CU_PROG := $(TEST_CU:%.cu=$(BUILD)/%)

ifeq ($(HAVE_CXX),)
TEST_PROG += $(if $(TEST_CU),tests/emulate/absent.sh)
else
$(BUILD)/obj/emulate-flags.txt: STAMP = $(CXX) $(EMULATE_FLAGS) $(EMULATE_FLAGS_cc)
$(BUILD)/obj/emulate-flags.txt: FORCE
	@mkdir -p $(@D)
	@echo "$(STAMP)" | cmp -s - $@ || echo "$(STAMP)" > $@

$(EMULATE_FIRST).gch: tests/emulate/emulate.cuh $(BUILD)/obj/emulate-flags.txt
	@mkdir -p $(@D) && echo "#include \"$<\"" > $(EMULATE_FIRST)
	$(call say,c++ $<)$(CXX) $(EMULATE_FLAGS) -x c++-header -c $(EMULATE_FIRST) -o $@
emulate_compile = $(call say,c++ $<)$(CXX) $(EMULATE_FLAGS) $(EMULATE_FLAGS_$(1)) -x c++ -c $< -o $@
$(EMULATE)/%.o: %.cu $(EMULATE_FIRST).gch $(BUILD)/obj/emulate-flags.txt
	@mkdir -p $(@D)
	$(call emulate_compile,cu)
$(EMULATE)/%.o: %.cc $(BUILD)/obj/emulate-flags.txt
	@mkdir -p $(@D)
	$(call emulate_compile,cc)

$(EMULATED): $(EMULATE_OBJ) $(patsubst %.c,$(PIC)/%.o,$(wildcard $(CUDA_BASE)))
	@mkdir -p $(@D)
	$(call say,ld $@)$(CXX) -shared $(SANITIZE) $^ -o $@.tmp \
	    -Wl,--version-script=<(echo '{ global: crossover_cuda_open; local: *; };') && mv $@.tmp $@

$(BUILD)/libemulated.a: $(EMULATE_OBJ) $(CUDA_C:%.c=$(PIC)/%.o)
	@rm -f $@.tmp
	$(call say,ar $@)ar rcs $@.tmp $^ && mv $@.tmp $@

.PRECIOUS: $(EMULATE)/%.o $(BUILD)/tests/cuda/%
$(BUILD)/tests/cuda/%: $(EMULATE)/tests/cuda/%.o $(BUILD)/libemulated.a $(BUILD)/libcrossover.a \
    $(BUILD)/obj/lib/base/version.o
	@mkdir -p $(@D)
	$(call say,ld $@)$(CXX) $(SANITIZE) $(LDFLAGS) $^ -o $@.tmp $(LDLIBS) && mv $@.tmp $@

TEST_PROG += $(TEST_CU_PROG)
test: $(TEST_CU_PROG) $(if $(strip $(TEST_SH))$(filter %/test-leak,$(TEST_PROG)),$(EMULATED))
endif

# generations of each kind in make leak
GENERATIONS ?= 10000
.PHONY: leak
leak: $(BUILD)/tests/model/test-leak $(if $(HAVE_CXX),$(EMULATED)) \
    ##develop find memory leaks in GENERATIONS=10000 generations of each kind
	@GENERATIONS=$(GENERATIONS) TESTBIN='$(abspath $(BUILD))/tests' $<
