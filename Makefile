# Makefile - builds the tools, runs the tests, and (pipelines/*.mk) the seven phases.
#
#   make            the tools, in build/bin
#   make all        all seven phases and the report     make phase4   one phase
#   make test       the tests                           make help     every target
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.SECONDARY:
.DEFAULT_GOAL := tools
MAKEFLAGS   += --no-builtin-rules
export LC_ALL := C
export TZ := UTC

-include local.mk
include config.mk

ifeq ($(origin CC),default)
CC := cc
endif
BUILD   := build$(if $(SAN),-san$(filter-out 1,$(SAN)))
BIN     := $(BUILD)/bin
, := ,
SANITIZE := $(if $(filter 1,$(SAN)),-fsanitize=address$(,)undefined -fno-sanitize-recover=all,$(if $(filter thread,$(SAN)),-fsanitize=thread))
WARN    := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
HARDEN  := $(if $(SAN),,-D_FORTIFY_SOURCE=2) -fstack-protector-strong -fPIE
CFLAGS  ?= -O2 -g
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -I. $(CFLAGS) $(WARN) $(HARDEN) $(SANITIZE) -MMD -MP
LIBS    := jansson libpcre2-8 libutf8proc libarchive zlib libcrypto
PKG     := pkg-config $(if $(STATIC),--static)
LDLIBS   = $(if $(STATIC),-Wl$(,)-Bstatic) $(shell $(PKG) --libs $(LIBS)) $(if $(STATIC),-Wl$(,)-Bdynamic) -lm -lpthread
LDFLAGS += -pie -Wl,-z,relro,-z,now

COMMIT := $(shell git describe --always --dirty=+ --abbrev=12 2>/dev/null || echo unknown)

# Everything in lib/ and kernels/ is one archive; kernels/cpu is compiled once per processor level.
LIB_SRC := $(filter-out lib/base/version.c,$(wildcard lib/*/*.c)) $(wildcard kernels/*.c kernels/ref/*.c)
CPU_SRC := $(wildcard kernels/cpu/*.c)
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o) \
           $(foreach l,base $(CPU_LEVELS),$(CPU_SRC:kernels/cpu/%.c=$(BUILD)/obj/kernels/cpu/$(l)/%.o))
TOOLS   := $(patsubst tools/%.c,%,$(wildcard tools/*.c))

.PHONY: tools
tools: $(TOOLS:%=$(BIN)/%) ## build the tools (build/bin)

$(BUILD)/obj/%.o: %.c config.mk Makefile
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c $< -o $@

# -O3 and contraction into fused multiply-adds: the kernels' numbers are defined with FMA.
CPU_FLAGS_base :=
CPU_FLAGS_v3   := -march=x86-64-v3 -mtune=generic
CPU_FLAGS_v4   := -march=x86-64-v4 -mprefer-vector-width=512
define cpu_level
$(BUILD)/obj/kernels/cpu/$(1)/%.o: kernels/cpu/%.c config.mk Makefile
	@mkdir -p $$(@D)
	$(CC) $$(ALL_CFLAGS) -O3 -ffp-contract=fast -fno-math-errno -fno-trapping-math $$(CPU_FLAGS_$(1)) -DLEVEL=$(1) -c $$< -o $$@
endef
$(foreach l,base $(CPU_LEVELS),$(eval $(call cpu_level,$(l))))
$(BUILD)/obj/kernels/backend.o: ALL_CFLAGS += $(CPU_LEVELS:%=-DHAVE_CPU_%)

$(BUILD)/obj/commit.txt: FORCE
	@mkdir -p $(@D)
	@echo '$(COMMIT)' | cmp -s - $@ || echo '$(COMMIT)' > $@
$(BUILD)/obj/lib/base/version.o: ALL_CFLAGS += -DCOMMIT='"$(COMMIT)"'
$(BUILD)/obj/lib/base/version.o: $(BUILD)/obj/commit.txt

$(BUILD)/libcrossover.a: $(LIB_OBJ)
	@rm -f $@
	ar rcs $@ $^

$(BIN)/%: $(BUILD)/obj/tools/%.o $(BUILD)/libcrossover.a $(BUILD)/obj/lib/base/version.o
	@mkdir -p $(@D)
	$(CC) $(SANITIZE) $(LDFLAGS) $^ -o $@ $(LDLIBS)

# Tests in C: each file is one TAP program.
$(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(BUILD)/libcrossover.a $(BUILD)/obj/lib/base/version.o
	@mkdir -p $(@D)
	$(CC) $(SANITIZE) $(LDFLAGS) $^ -o $@ $(LDLIBS)

.PHONY: FORCE
FORCE:

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
-include $(wildcard pipelines/*.mk)
