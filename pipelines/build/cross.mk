# cross.mk - make cross-check: the kernel tests of level neon, compiled for aarch64 and run by
# qemu-user on this machine. Kernels need only libc, so no other library of aarch64 is needed.
CROSS       := aarch64-linux-gnu
CROSS_BUILD := build-$(CROSS)
CROSS_SRC   := $(filter-out lib/base/hash.c lib/base/regex.c lib/base/version.c kernels/peak-% \
                   kernels/amx-%,$(wildcard kernels/*.c kernels/ref/*.c lib/base/*.c)) \
               kernels/peak-arm.c kernels/amx-other.c kernels/cuda/device/segments.c
CROSS_TESTS := $(patsubst %.c,$(CROSS_BUILD)/%,$(call SELECT,$(sort \
                   $(wildcard tests/kernels/test-*.c))))

# Emulated instructions take 20 to 50 times as long as those of this machine.
.PHONY: cross-check
cross-check: ##develop kernel tests of level neon under qemu-user (T=WORD: some)
	@for p in $(CROSS)-gcc qemu-aarch64; do command -v $$p > /dev/null || { \
	    echo "cross-check: $$p was not found (Debian: gcc-$(CROSS), qemu-user)" >&2; \
	    exit 69; }; done
	@$(MAKE) CPU=aarch64 CC=$(CROSS)-gcc BUILD=$(CROSS_BUILD) CPU_LEVELS=neon CUDA=0 MPI= LIBS= \
	    LIB_SRC='$(CROSS_SRC)' $(CROSS_TESTS)
	@bad=0; for t in $(CROSS_TESTS); do \
	    qemu-aarch64 -L /usr/$(CROSS) $$t > $$t.tap || { bad=1; echo "$$t failed ($$?)"; }; \
	done; cat $(CROSS_TESTS:%=%.tap) | awk '/^ok/ { good++ } /^not ok/ { print; bad++ } \
	    END { printf "%d passed, %d failed\n", good, bad }'; exit $$bad
