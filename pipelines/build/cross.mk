# cross.mk - make cross-check: the kernel tests of the levels of aarch64, compiled for it and run by
# qemu-user on this machine. Kernels need only libc, so no other library of aarch64 is needed.
CROSS       := aarch64-linux-gnu
CROSS_BUILD := build-$(CROSS)
CROSS_SRC   := $(filter-out lib/base/hash.c lib/base/regex.c lib/base/version.c kernels/peak-% \
                   kernels/amx-%,$(wildcard kernels/*.c kernels/ref/*.c lib/base/*.c)) \
               kernels/peak-arm.c kernels/amx-other.c kernels/cuda/device/segments.c
CROSS_TESTS := $(patsubst %.c,$(CROSS_BUILD)/%,$(call SELECT,$(sort \
                   $(wildcard tests/kernels/test-*.c))))
# Processors that lack instructions, and the best level of each. Its products are tested there, too.
CROSS_CPUS  := cortex-a53:neon cortex-a76:dotprod
CROSS_BEST  := $(filter %/test-quant-products,$(CROSS_TESTS))
CROSS_TAPS  := $(CROSS_TESTS:%=%.tap) $(foreach t,$(CROSS_BEST),$(foreach c,$(CROSS_CPUS),\
                   $t-$(firstword $(subst :, ,$c)).tap))
# $(call cross_run,PROCESSOR,TEST,TAP)
cross_run   = qemu-aarch64 -cpu $(1) -L /usr/$(CROSS) $(2) > $(3) || \
                  { bad=1; echo "$(2) failed on $(1) ($$?)"; }

# Emulated instructions take 20 to 50 times as long as those of this machine.
.PHONY: cross-check
cross-check: ##develop kernel tests of the levels of aarch64 under qemu-user (T=WORD: some)
	@for p in $(CROSS)-gcc qemu-aarch64; do command -v $$p > /dev/null || { \
	    echo "cross-check: $$p was not found (Debian: gcc-$(CROSS), qemu-user)" >&2; \
	    exit 69; }; done
	@$(MAKE) CPU=aarch64 CC=$(CROSS)-gcc BUILD=$(CROSS_BUILD) \
	    CPU_LEVELS='$(CPU_LEVELS_aarch64)' CUDA=0 MPI= LIBS= LIB_SRC='$(CROSS_SRC)' $(CROSS_TESTS)
	@bad=0; for t in $(CROSS_TESTS); do $(call cross_run,max,$$t,$$t.tap); done; \
	for t in $(CROSS_BEST); do for c in $(CROSS_CPUS) max:$(firstword $(CPU_LEVELS_aarch64)); do \
	    cpu=$${c%:*} tap=$$t.tap; [ $$cpu = max ] || { tap=$$t-$$cpu.tap; \
	        $(call cross_run,$$cpu,$$t,$$tap); }; \
	    best=$$(awk '/few rows/ { print $$4; exit }' $$tap); [ "$$best" = $${c#*:} ] || { \
	        bad=1; echo "$$cpu: best level '$$best', not $${c#*:}"; }; \
	done; done; cat $(CROSS_TAPS) | awk '/^ok/ { good++ } /^not ok/ { print; bad++ } \
	    END { printf "%d passed, %d failed\n", good, bad }'; exit $$bad
