# lease.mk - make lease: packs tests and measurements for a machine with a GPU that has no compiler,
# make or jq and that can be used for minutes only.
#
#   make lease PROFILE=gpu-8b CUDA_ARCH=90a        build/lease.tar.xz; no GPU is needed here
#   tar xJf lease.tar.xz && pipelines/bin/lease    there: writes build/lease/out/lease-out.tar.gz
#   make lease-merge PROFILE=gpu-8b LEASE_OUT=lease-out.tar.gz CARD=h100    here: data/measured
#
# pipelines/bin/lease lists the parts. The package has tools with the libraries that such a machine
# may lack, the CUDA object, the device tests, the bench, jq, the embedded models, and the launches
# of make shapes.

# name of the card in the files that make lease-merge writes
CARD      ?=
# results that came back from the machine
LEASE_OUT ?=

LEASE       := $(BUILD)/lease
LEASE_PROGS  = $(addprefix $(BIN)/,gen-llama gen-llada gen-ltm score-ppl train-lm) $(CUDA_SO) \
               $(firstword $(BENCH_PROG)) $(BUILD)/gpu/programs
LEASE_FILES := pipelines/bin/lease pipelines/bin/side-by-side tests/gpu data/models \
               $(addprefix data/corpus/,valid.ndjson.gz train.ndjson.gz train-lists.ndjson.gz)
LEASE_PLANS  = $(SHAPES:%=$(R)/%/launches.mk) \
               $(foreach b,$(call split,$(SHAPE_BATCH)),$(R)/shape-prompts-$(b).ndjson)

.PHONY: lease lease-merge
ifneq ($(HAVE_CUDA),)
lease: $(LEASE_PROGS) $(GPU_TEST_PROG) $(LEASE_PLANS) \
    ##develop pack tests and measurements for a machine with a GPU
	@pipelines/bin/pack-lease $(LEASE) $(LEASE_PROGS) "$$(command -v jq)"
	@rm -rf $(LEASE)/gpu; mkdir $(LEASE)/gpu
	@for t in $(GPU_TEST_NAMES); do ln -s ../bin/programs $(LEASE)/gpu/$$t; done
	@$(MAKE) --no-print-directory -n shapes FP=$(FP) | grep -o 'pipelines/bin/side-by-side .*' | \
	    sed 's|$(BIN)/|$(LEASE)/bin/|g' > $(LEASE)/launches
	@tar -cf - $(LEASE) $(LEASE_FILES) $(wildcard $(R)/shape-*) | \
	    xz -T0 --lzma2=preset=2,dict=64MiB > $(BUILD)/lease.tmp
	@mv $(BUILD)/lease.tmp $(BUILD)/lease.tar.xz; ls -l $(BUILD)/lease.tar.xz
else
lease:
	@echo 'make lease needs nvcc and CUDA=1' >&2; exit 69
endif

lease-merge: $(addprefix $(BIN)/,measure forecast) \
    ##develop store the results of a lease in data/measured (LEASE_OUT=, CARD=)
	@[ -f '$(LEASE_OUT)' ] && [ -n '$(CARD)' ] || \
	    { echo 'make lease-merge needs LEASE_OUT=FILE and CARD=NAME (64)' >&2; exit 64; }
	@BIN=$(BIN) pipelines/bin/merge-lease '$(LEASE_OUT)' '$(CARD)' $(LEASE)/back $(dir $(MEASURED)) \
	    $(SHAPE_TO)
