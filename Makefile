# Makefile - builds the tools and runs the tests; the makefiles of pipelines/ run the seven phases.
#
#   make            the tools, in build/bin
#   make all        all seven phases and the report     make phase4   one phase
#   make test       the tests                           make help     every target
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := tools
DRY         := $(findstring n,$(firstword -$(MAKEFLAGS)))
MAKEFLAGS   += --no-builtin-rules
export LC_ALL := C
export TZ := UTC
CPU := $(shell uname -m)

filed    = $(foreach v,$(.VARIABLES),$(if $(filter file override,$(origin $(v))),$(v)))
OWN_VARIABLES := $(filed)
-include local.mk
LOCAL := $(filter-out OWN_VARIABLES $(OWN_VARIABLES),$(filed))
include config.mk

# Values reach shells. So all values that a user sets are checked here, once, before anything runs:
# the variables of the command line and of local.mk, and settings (NAME ?= VALUE) that come from the
# environment. Names of files and models may not have spaces either. pipelines/phase/common.mk
# checks the names and the integers that local.mk and profiles set. $(call plain,WHAT,TEXT,MORE): an
# error if TEXT has characters that the shell or make would interpret. MORE says what to do.
hash   := \#
quote  := '
SIGNS  := $(quote) " ` \ ; & | < > * ? ! $(hash) $$ ( ) [ ] { }
define newline


endef
signs   = $(strip $(foreach c,$(SIGNS),$(findstring $(c),$(1))) \
              $(if $(findstring $(newline),$(1)),lines))
spaces  = $(if $(word 2,$(1)),spaces)
shown   = with $(1) in it would be interpreted by the shell or make (64)
plain   = $(if $(call signs,$(2))$(call spaces,$(2)),$(error $(1)$(2): a name $(call shown,$(strip \
              $(call signs,$(2)) $(call spaces,$(2)))): $(or $(3),rename it or make a link)))
quoted  = '$(subst $(quote),$(quote)\$(quote)$(quote),$(1))'
NAMES    := LLADA LLAMA LTM JUDGE BERT BASELINE_LLADA BASELINE_LLAMA PROMPT_FILE STORED PREFIX \
            DESTDIR OLD FROM TWIN_DIR
# Each setting; and +NAME if its default is an integer.
FOUND    := $(shell sed -n -e 's|^\([A-Za-z_]*\) *?= *[0-9][0-9]*$$|\1 +\1|p' -e t \
                -e 's|^\([A-Za-z_]*\) *?=.*|\1|p' Makefile config.mk \
                $(wildcard pipelines/*/*.mk pipelines/experiment/*/*.mk))
SETTINGS := $(sort TOYS CONTAINER_BASE CROSSOVER_CUDA $(filter-out +%,$(FOUND)))
# Settings that must be integers. The settings that are left out may also be a list, a fraction or
# empty.
INTEGERS := $(filter-out BUDGET_MINUTES LOAD_BATCH SCALE_LTM_STEPS SHAPE_LENGTH TURNS,\
                $(patsubst +%,%,$(filter +%,$(FOUND))))
# the origin of a variable: "command", "environment" or another word
origin_of = $(firstword $(origin $(1)))
SET := $(strip $(foreach v,$(.VARIABLES),\
           $(if $(filter command,$(call origin_of,$(v))),$(v))) \
       $(foreach v,$(SETTINGS),$(if $(filter environment,$(call origin_of,$(v))),$(v))))
# Values are checked unexpanded, because make would run a $(shell) in them; but local.mk is written
# in the language of make, so its values are expanded. The value of GPU_PEER is a command and may
# have such characters.
COMMANDS := GPU_PEER
$(foreach v,$(filter $(NAMES),$(SET)),$(call plain,$(v)=,$(value $(v))))
$(foreach v,$(filter-out $(NAMES) $(COMMANDS),$(SET)),$(if $(call signs,$(value $(v))),\
    $(error $(v)=$(value $(v)): a value $(call shown,$(call signs,$(value $(v)))))))
$(foreach v,$(filter-out $(NAMES) $(COMMANDS),$(LOCAL)),$(if $(call signs,$($(v))),\
    $(error local.mk: $(v)=$($(v)): a value $(call shown,$(call signs,$($(v)))))))

ifeq ($(origin CC),default)
CC := cc
endif
BUILD   := build$(if $(SAN),-san$(filter-out 1,$(SAN)))
BIN     := $(BUILD)/bin
, := ,
SANITIZE_1      := -fsanitize=address$(,)undefined -fno-sanitize-recover=all
SANITIZE_thread := -fsanitize=thread
SANITIZE_coverage := -fprofile-instr-generate -fcoverage-mapping
SANITIZE_fuzz   := -fsanitize=fuzzer-no-link$(,)address$(,)undefined -fno-sanitize-recover=all
SANITIZE := $(SANITIZE_$(SAN))
WARN    := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
# $(call known,FLAGS): the flags that the compiler and the C library accept for an empty program.
# First all flags are tried together; only if that fails, each flag is tried alone.
refuses = $(shell printf '\043include <stdio.h>\n' | \
              $(CC) -Werror -O2 -fPIE $(1) -x c -c -o /dev/null - 2>&1 || echo no)
known   = $(if $(call refuses,$(1)),$(foreach f,$(1),$(if $(call refuses,$(f)),,$(f))),$(1))
BRANCHES_x86_64  := -fcf-protection
BRANCHES_aarch64 := -mbranch-protection=standard
FORTIFY  := -D_FORTIFY_SOURCE=3
wanted    = $(if $(SAN),,$(FORTIFY)) -fstack-clash-protection $(BRANCHES_$(CPU))
hardened  = $(if $(SAN),,-U_FORTIFY_SOURCE $(or $(filter $(FORTIFY),$(1)),-D_FORTIFY_SOURCE=2)) \
            -fstack-protector-strong -fPIE $(filter-out $(FORTIFY),$(1))
# HARDEN is computed once, when the first rule that compiles needs it.
HARDEN    = $(eval HARDEN := $(call hardened,$(call known,$(wanted))))$(HARDEN)
# options of the compiler; -g1 has line numbers and links faster than -g
CFLAGS  ?= -O2 -g1
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -I. $(CFLAGS) $(WARN) $(HARDEN) $(SANITIZE) -MMD -MP
LIBS    := jansson libpcre2-8 libutf8proc libarchive zlib libcrypto
PKG     := pkg-config $(if $(STATIC),--static)
# libarchive needs libxml2 (for xar). Its pkg-config file does not name what libxml2 needs: ICU,
# which is C++.
LDLIBS  := $(if $(STATIC),-Wl$(,)-Bstatic) $(shell $(PKG) --libs $(LIBS) 2>/dev/null) \
           $(if $(STATIC),$(filter-out -lm,$(shell $(PKG) --libs libxml-2.0)) -lstdc++) \
           $(if $(STATIC),-Wl$(,)-Bdynamic) -lm -lpthread -ldl
LDFLAGS += -pie -Wl,-z,relro,-z,now

# Only one make at a time works in a folder. The makes that it calls count as the same make.
READERS := help settings pairs plan style print-%
WORK    := $(filter-out $(READERS),$(or $(MAKECMDGOALS),tools))
ifneq ($(filter-out tools install uninstall clean,$(WORK)),)
$(call plain,,$(CURDIR),move this folder)
endif
ifneq ($(if $(DRY),,$(filter-out $(CROSSOVER_HELD),$(firstword $(WORK:%=$(CURDIR))))),)
HOLDER := $(shell pipelines/bin/holder '.$(subst /,-,$(BUILD)).tmp' $$PPID)
$(if $(HOLDER),$(error $(BUILD): busy (75): make is at work here, process $(HOLDER); wait for it))
$(if $(filter-out 0,$(.SHELLSTATUS)),$(error $(CURDIR): this folder is read-only (73): copy it to \
    build there))
endif
export CROSSOVER_HELD := $(CURDIR)

# Prints one line for each file that is made; V=1 prints the commands instead.
V :=
say = $(if $(V),,@echo '  $(1)';)

# COMMIT: from the file .commit that make dist wrote, else from git. The archive may lie in the
# folder of another repository.
COMMIT := $(or $(shell grep -v Format .commit 2>/dev/null | cut -c 1-12),\
               $(shell git describe --always --dirty=+ --abbrev=12 2>/dev/null),unknown)

# lib/ and kernels/ are one archive; the rooms that know only records are a second archive.
# kernels/cpu is compiled once for each instruction set. The loop that measures the fastest
# multiplication has a file for each processor family (kernels/peak.h).
PEAK_x86_64 := x86
PEAK_aarch64 := arm
PEAK := $(wildcard kernels/peak-$(or $(PEAK_$(CPU)),other).c)
AMX  := $(wildcard kernels/amx-$(if $(filter x86_64,$(CPU)),x86,other).c)
# Training on several processes needs an MPI library; MPI= (empty) leaves it out.
MPI  := $(shell for p in ompi-c mpich; do \
            pkg-config --exists $$p 2>/dev/null && echo $$p && break; done)
# Only gen-endpoint needs libcurl. Without libcurl this tool is left out.
CURL := $(shell pkg-config --exists libcurl 2>/dev/null && echo 1)
LIB_SRC := $(filter-out lib/base/version.c kernels/peak-% kernels/amx-% lib/train/ranks-% \
               $(if $(CURL),,lib/remote/http.c), \
               $(wildcard lib/*/*.c lib/*/*/*.c kernels/*.c)) \
           $(wildcard lib/train/ranks-$(if $(MPI),mpi,none).c) $(PEAK) $(AMX) \
           $(wildcard kernels/ref/*.c kernels/cuda/device/segments.c)
# The level amx has its own matrix products, by tiles. AMX_SRC lists these files and the files that
# call the products. All other code is that of a lower level, the base (kernels/cpu/level.h).
AMX_SRC := $(wildcard kernels/cpu/amx/*.c) $(patsubst %,kernels/cpu/%.c,gemm head cpu_ops \
               cpu_train_ops attention/attention attention/attention-back)
CPU_SRC := $(filter-out kernels/cpu/amx/%,$(wildcard kernels/cpu/*.c kernels/cpu/*/*.c))
level_obj = $(patsubst kernels/%.c,$(BUILD)/obj/kernels/$(1)/%.o, \
                $(if $(filter amx%,$(1)),$(AMX_SRC),$(CPU_SRC)))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o) \
           $(foreach l,portable $(CPU_LEVELS),$(call level_obj,$(l)))
TOOLS   := $(filter-out $(if $(CURL),,gen-endpoint),$(patsubst tools/%.c,%,$(wildcard tools/*.c)))
# Tools that read and write records and run no model. Their archive has no kernel and no decoder.
RECORD_TOOLS := $(filter bundle compare conclude import-bench measure pareto plot report schedule \
                    score-exact score-text,$(TOOLS))
RECORD_ROOMS := report figure analysis remote text setting record stat base
RECORD_OBJ   := $(filter $(foreach r,$(RECORD_ROOMS),$(BUILD)/obj/lib/$(r)/%),$(LIB_OBJ))

.PHONY: tools
tools: $(TOOLS:%=$(BIN)/%) ##build the tools, in build/bin
	$(if $(CURL),,@echo 'gen-endpoint is left out: it needs libcurl (Debian:' \
	    'libcurl4-openssl-dev; ./bootstrap tools installs it)' >&2)

# Keep files that only pattern rules make. (.SECONDARY keeps them too, but then make sometimes makes
# an up-to-date file again, if one of its prerequisites was checked before.)
.PRECIOUS: $(BUILD)/obj/%.o $(BIN)/% $(BUILD)/tests/%
$(BUILD)/obj/%.o: %.c $(BUILD)/obj/flags.txt
	@mkdir -p $(@D)
	$(call say,cc $<)$(CC) $(ALL_CFLAGS) -c $< -o $@

# Kernels are compiled with -O3 and with contraction into fused multiply-adds (FMA), because their
# results are defined with FMA. Level 3 of FORTIFY checks sizes at run time, which these loops do
# not need.
CPU_FLAGS       = -O3 -ffp-contract=fast -fno-math-errno -fno-trapping-math -Wno-psabi \
    $(if $(findstring SOURCE=3,$(HARDEN)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
CPU_FLAGS_portable   :=
CPU_FLAGS_neon       :=
CPU_FLAGS_dotprod    := -march=armv8.2-a+dotprod
CPU_FLAGS_i8mm       := -march=armv8.2-a+dotprod+i8mm
CPU_FLAGS_avx2       := -march=x86-64-v3 -mtune=generic
CPU_FLAGS_avxvnni    := $(CPU_FLAGS_avx2) -mavxvnni
CPU_FLAGS_avx512     := -march=x86-64-v4 -mprefer-vector-width=512
CPU_FLAGS_avx512bf16 := $(CPU_FLAGS_avx512) -mavx512bf16 -mavx512vnni -mavx512vbmi
CPU_FLAGS_amx        := $(CPU_FLAGS_avx512bf16) -mamx-tile -mamx-bf16 -mamx-int8
CPU_BASE_amx         := avx512bf16
# $(call cpu_level,NAME,LEVEL,TMM): the rule that compiles level NAME. LEVEL is the level whose
# vector code is used: NAME itself, or the base of NAME. TMM is the file with the tile instructions
# of NAME.
define cpu_level
$(BUILD)/obj/kernels/$(1)/cpu/%.o: kernels/cpu/%.c $(BUILD)/obj/flags.txt
	@mkdir -p $$(@D)
	$$(call say,cc $$< ($(1)))\
	    $(CC) $$(ALL_CFLAGS) $$(CPU_FLAGS) $$(CPU_FLAGS_$(1)) -DLEVEL=$(2) \
	        -DISA='"kernels/cpu/vectors/isa_$(2).h"' \
	        $(if $(filter-out $(1),$(2)),-DOWN=$(1) -DTMM='"$(3)"' \
	        -DDENSE='"kernels/cpu/amx/tiled.h"') -c $$< -o $$@
# int8 sums are exact. The few fp32 operations after them must round alike at every level, so they
# are not contracted.
$(addprefix $(BUILD)/obj/kernels/$(1)/cpu/,format/format_int8.o format/format_q4.o \
    amx/amx_int8.o): \
    private CPU_FLAGS += -ffp-contract=off
endef
$(foreach l,portable $(CPU_LEVELS),\
    $(eval $(call cpu_level,$(l),$(or $(CPU_BASE_$(l)),$(l)),kernels/cpu/amx/tmm.h)))
# The statistics spend most time in sums of many draws. Vector instructions give the same bits here.
$(BUILD)/obj/lib/stat/bootstrap.o: private ALL_CFLAGS += -O3
# The loops that probe the limits of the machine must not be limited by the compiler.
$(BUILD)/obj/lib/run/probe/ceiling.o $(BUILD)/obj/kernels/peak-%.o: private ALL_CFLAGS += -O3
# Loading with --quant spends most of its time in these files. Vectors give the same bits here.
# CLONES is computed once, at its first use. It is empty with a sanitizer: the program would choose
# a level before the sanitizer is ready. Without -ffp-contract=off some levels would fuse a product
# and a sum, and round differently.
QUANT_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard kernels/quant*.c))
CLONES_x86_64 := __attribute__((target_clones("arch=x86-64-v4","arch=x86-64-v3","default")))
clones_refused = $(shell echo '$(CLONES_$(CPU)) int f(void) { return 0; } int main() { f(); }' | \
                     $(CC) -Werror -fPIE -x c -o /dev/null - $(LDFLAGS) 2>&1 || echo no)
CLONES = $(eval CLONES := $(if $(SAN)$(clones_refused),,$(CLONES_$(CPU))))$(CLONES)
$(QUANT_OBJ): private ALL_CFLAGS += -O3 -ffp-contract=off -DEACH_LEVEL='$(CLONES)'
$(addprefix $(BUILD)/obj/lib/checkpoint/,checkpoint.o tensor.o tensor-blocks.o): \
    private ALL_CFLAGS += -O3
$(BUILD)/obj/kernels/peak-arm.o: private ALL_CFLAGS += -march=armv8.2-a+dotprod+bf16+i8mm
$(addprefix $(BUILD)/obj/kernels/,ops.o train.o): $(BUILD)/obj/levels.txt
$(addprefix $(BUILD)/obj/kernels/,ops.o train.o): private ALL_CFLAGS += $(CPU_LEVELS:%=-DHAVE_CPU_%)

# -isystem: the compiler does not warn about the header of MPI.
ifneq ($(MPI),)
$(BUILD)/obj/lib/train/ranks-mpi.o: private ALL_CFLAGS += \
    $(patsubst -I%,-isystem %,$(shell pkg-config --cflags-only-I $(MPI)))
$(BIN)/train-lm: private LDLIBS += $(shell pkg-config --libs $(MPI))
endif
$(BIN)/gen-endpoint: private LDLIBS += $(if $(CURL),$(shell pkg-config --libs libcurl))

# A variable text-FILE makes FILE a stamp: a file with that text, written again only when the text
# changes (the rules are at the end of this file).
text-$(BUILD)/obj/commit.txt = $(COMMIT)
text-$(BUILD)/obj/flags.txt = $(CC) $(ALL_CFLAGS) $(CPU_FLAGS) \
    $(foreach l,$(CPU_LEVELS_$(CPU)),$(l) $(CPU_FLAGS_$(l)))
# If CPU_LEVELS changes, only the table of levels and the code of new levels are compiled.
text-$(BUILD)/obj/levels.txt = $(CPU_LEVELS)
$(BUILD)/obj/lib/base/version.o: private ALL_CFLAGS += -DCOMMIT='"$(COMMIT)"'
$(BUILD)/obj/lib/base/version.o: $(BUILD)/obj/commit.txt

# Archives and programs are written under another name and then renamed. make keeps .PRECIOUS files
# when it is interrupted, and no half-written file may be kept.
$(BUILD)/libcrossover.a: $(LIB_OBJ)
$(BUILD)/librecords.a: $(RECORD_OBJ)
$(BUILD)/libcrossover.a $(BUILD)/librecords.a:
	@rm -f $@.tmp
	$(call say,ar $@)ar rcs $@.tmp $^ && mv $@.tmp $@

link = $(call say,ld $@)$(CC) $(SANITIZE) $(LDFLAGS) $^ -o $@.tmp $(LDLIBS) && mv $@.tmp $@
$(BIN)/%: $(BUILD)/obj/tools/%.o $(BUILD)/libcrossover.a $(BUILD)/obj/lib/base/version.o
	@mkdir -p $(@D)
	$(link)
$(RECORD_TOOLS:%=$(BIN)/%): $(BIN)/%: $(BUILD)/obj/tools/%.o $(BUILD)/librecords.a \
    $(BUILD)/obj/lib/base/version.o
	@mkdir -p $(@D)
	$(link)

# Tests in C: tests/{unit,kernels,model,fuzz}/test-*.c are TAP programs, tests/fixtures/*.c are
# helpers of the shell tests. T=WORD runs only the tests whose path contains WORD. The linker gold
# links the tests in a quarter of the time.
$(BUILD)/tests/%: private LDFLAGS += $(if $(SAN),,$(if $(shell command -v ld.gold),-fuse-ld=gold))
$(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(BUILD)/libcrossover.a $(BUILD)/obj/lib/base/version.o
	@mkdir -p $(@D)
	$(link)

T         :=
SELECT     = $(if $(T),$(foreach t,$(1),$(if $(findstring $(T),$(t)),$(t))),$(1))
TEST_IN   := unit kernels model fuzz
TEST_C    := $(call SELECT,$(sort $(wildcard $(foreach d,$(TEST_IN),tests/$(d)/test-*.c))))
TEST_SH   := $(call SELECT,$(sort $(wildcard tests/*.sh tests/cli/*.sh tests/cli/*.bats)))
TEST_PROG := $(TEST_C:%.c=$(BUILD)/%)
# These tests have short loops: optimizing the code would take longer than the loops do.
$(foreach d,unit fuzz,$(BUILD)/obj/tests/$(d)/%.o): private ALL_CFLAGS += -O1
HELPERS   := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fixtures/*.c)) \
             $(if $(wildcard pipelines/build/reference.mk),$(BUILD)/tests/reference \
                 $(BUILD)/tests/make-checkpoint $(BUILD)/tests/make-gguf)

.PHONY: test style install uninstall clean help settings all
test: $(TEST_PROG) $(if $(strip $(TEST_SH)),$(TOOLS:%=$(BIN)/%) $(HELPERS)) \
    ##develop run the tests (T=WORD: some; SAN=1)
	@BUILD='$(BUILD)' BIN='$(abspath $(BIN))' TESTBIN='$(abspath $(BUILD))/tests' \
	    tests/run $(TEST_PROG) $(TEST_SH)

# Runs the targets of tests/fuzz under clang's libFuzzer, in a build folder of its own (SAN=fuzz).
# The folder keeps crashes (finds/TARGET-crash-...) and inputs that reached new code
# (corpus/TARGET).
MINUTES   := 30
FUZZ      := build-sanfuzz
FUZZED    := $(call SELECT,$(patsubst tests/fuzz/test-%.c,%,$(wildcard tests/fuzz/test-*.c)))
.PHONY: fuzz
fuzz: ##develop search for input that breaks a reader (MINUTES=30 in all; T=WORD: some; needs clang)
	@$(if $(FUZZED),,echo "fuzz: T=$(T): expected a word of tests/fuzz/test-*.c" >&2; exit 64)
	@echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | \
	    clang -fsanitize=fuzzer -x c -o /dev/null - || { \
	    echo 'fuzz: expected clang with libFuzzer (Debian: clang, libclang-rt-dev)' >&2; exit 69; }
	@$(MAKE) SAN=fuzz CC=clang CUDA=0 MPI= CPU_LEVELS= WARN=-w \
	    $(foreach t,test search,$(FUZZED:%=$(FUZZ)/tests/fuzz/$(t)-%))
	@tests/fuzz/search $(FUZZ) $(MINUTES) $(FUZZED)
$(BUILD)/obj/tests/fuzz/search-%.o: tests/fuzz/test-%.c $(BUILD)/obj/flags.txt
	@mkdir -p $(@D)
	$(call say,cc $< (search))$(CC) $(ALL_CFLAGS) -DFUZZ_SEARCH -c $< -o $@
$(BUILD)/tests/fuzz/search-%: private SANITIZE += -fsanitize=fuzzer
# The readers of these targets get their input from memory, not from files (tests/fuzz/memory.h).
FED := checkpoint config dataset encoder manifest records settings shards tables tokenizer \
       wordpiece
$(foreach t,test search,$(FED:%=$(BUILD)/tests/fuzz/$(t)-%)): private LDFLAGS += \
    $(addprefix -Wl$(,)--wrap=,file_read file_exists hub_model_name safetensors_open_folder \
    input_open input_file input_read input_failed input_check input_note input_name input_close)

# Measures unit tests, fuzz targets and tests of readers of checkpoints, in a build folder of its
# own (SAN=coverage).
COVERAGE  := build-sancoverage
COVERING  := $(wildcard tests/unit/test-*.c tests/fuzz/test-*.c $(foreach n,tokenizer checkpoint \
                 config chat pack prompt families,tests/model/test-$(n)*.c))
.PHONY: coverage
coverage: ##develop shares of lines and branches of readers and lib/stat that tests reach (clang)
	@$(MAKE) SAN=coverage CC=clang CUDA=0 MPI= CPU_LEVELS= WARN=-w \
	    $(COVERING:%.c=$(COVERAGE)/%)
	@tests/coverage $(COVERAGE) $(COVERING:%.c=$(COVERAGE)/%)

style: ##develop lengths of functions, files and lines against their limits
	@tests/house/budgets .

bindir  := $(DESTDIR)$(PREFIX)/bin
datadir := $(DESTDIR)$(PREFIX)/share/crossover
mandir  := $(DESTDIR)$(PREFIX)/share/man/man1
compdir := $(DESTDIR)$(PREFIX)/share/bash-completion/completions
SHARED   = $(wildcard plots/*.gp data/*.json data/*.ndjson)
install: tools ##build install tools, manual pages and completion (PREFIX=, DESTDIR=)
	install -d '$(bindir)' '$(datadir)/plots' '$(datadir)/data' '$(mandir)' '$(compdir)'
	install -m 755 $(TOOLS:%=$(BIN)/%) '$(bindir)'
	for t in $(TOOLS); do $(BIN)/$$t --help-man > "$(mandir)/$$t.1"; \
	    $(BIN)/$$t --help-completion > "$(compdir)/$$t"; done
	for f in $(SHARED) README.md LICENSE; do install -D -m 644 "$$f" "$(datadir)/$$f"; done

uninstall: ##build remove the installed files
	rm -f $(TOOLS:%='$(bindir)'/%) $(TOOLS:%='$(mandir)'/%.1) $(TOOLS:%='$(compdir)'/%)
	rm -rf '$(datadir)' '$(DESTDIR)$(PREFIX)/lib/crossover'

# The archive has only committed files; the same commit gives the same bytes.
VERSION  = $(shell sed -n 's/.*version_text.*"\(.*\)".*/\1/p' lib/base/version.c)
DIST     = build/crossover-$(VERSION).tar.gz
.PHONY: dist
dist: ##build write the sources of this commit as an archive, build/crossover-VERSION.tar.gz
	@git rev-parse --git-dir >/dev/null || { echo 'dist: expected a clone with .git' >&2; exit 66; }
	@git diff --quiet HEAD || echo 'dist: changes that are not committed are left out' >&2
	@mkdir -p $(dir $(DIST))
	git archive --prefix=crossover-$(VERSION)/ HEAD | gzip -n > $(DIST).tmp
	mv $(DIST).tmp $(DIST)

clean: ##build remove everything that was built; results stay
	rm -rf build build-san build-santhread build-sanfuzz build-sancoverage \
	    build-aarch64-linux-gnu

# help and settings end quietly if their reader stops early (make help | head); 141 means SIGPIPE.
enough = || [ $$? -eq 141 ]
help: ##look print this list
	@(pipelines/bin/targets Makefile $(PIPELINES) && \
	  echo 'Profiles (PROFILE=NAME, files of pipelines/profiles):' && \
	  sed -sn '1s/^# \([^ ]*\) - \([^.]*\).*/\1 \2/p' pipelines/profiles/*.mk | \
	      while read -r name text; do printf '  %-16s %s\n' "$$name" "$$text"; done && \
	  echo 'Settings: make TARGET NAME=VALUE; make settings prints all of them.' && \
	  echo '  Profiles of GPUs need LLADA=, LLAMA= and JUDGE=: a folder or a Hugging Face name each.' \
	 ) $(enough)

settings: ##look print every setting with its default and its meaning
	@pipelines/bin/settings $(enough)

print-%:
	@echo $(call quoted,$($*))

.PHONY: FORCE
FORCE:

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
# The order matters: first settings and stamps; then other things to build, the experiments, and the
# phases, which use the names of these files; last sweep.mk with the commands of all named sweeps.
PIPELINES := pipelines/phase/common.mk $(sort $(wildcard pipelines/build/*.mk \
                 pipelines/experiment/*/*.mk)) \
             $(filter-out %/common.mk %/settings.mk %/sweep.mk,$(sort $(wildcard \
                 pipelines/phase/*.mk))) pipelines/phase/sweep.mk
include $(PIPELINES)

# Stamps. While make reads its files, it compares each text with its stamp. So a stamp that is up to
# date needs no command, and make -n prints none. (GNU make 4.3 sometimes keeps the line feed at the
# end of $(file <NAME). Without strip every stamp would then differ, and everything be compiled
# again.)
within = $(findstring _$(strip $(1))_,_$(strip $(2))_)
same   = $(and $(call within,$(1),$(2)),$(call within,$(2),$(1)))
# $(call stamp_rule,FILE,TEXT)
define stamp_rule
$(1): $(if $(call same,$(2),$(file <$(1))),,FORCE)
	@mkdir -p $$(@D) && printf '%s\n' $(subst $$,$$$$,$(call quoted,$(2))) > $$@
endef
ifneq ($(WORK),)
$(foreach v,$(filter text-%,$(.VARIABLES)),\
    $(eval $(call stamp_rule,$(v:text-%=%),$(strip $($(v))))))
endif
