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

# The streams of tools are cut, so their meta records become parent records. The paths of that
# machine are removed.
lease_kept = jq -c 'select(.kind != "end") | if .kind == "meta" then {schema, kind: "parent", run, \
    tool, version, commit, seed, start, machine} else . end'
lease_to = $(dir $(MEASURED))gpu-$$part-$(CARD).ndjson
lease_ceilings = jq -c 'select(.kind == "roofline" and .ceiling)'
# A generation that a limit ended has no end record, and is left out. Part caps is not stored,
# because records do not name the cap.
lease-merge: $(addprefix $(BIN)/,measure forecast) \
    ##develop store the results of a lease in data/measured (LEASE_OUT=, CARD=)
	@[ -f '$(LEASE_OUT)' ] && [ -n '$(CARD)' ] || \
	    { echo 'make lease-merge needs LEASE_OUT=FILE and CARD=NAME (64)' >&2; exit 64; }
	@rm -rf $(LEASE)/back; mkdir -p $(LEASE)/back $(dir $(MEASURED))
	@tar -xzf '$(LEASE_OUT)' -C $(LEASE)/back
	@b=$(LEASE)/back; for part in check bench; do ls $$b/$$part*.ndjson > /dev/null 2>&1 || continue; \
	    cat $$b/$$part*.ndjson | $(lease_kept) > $(lease_to); done; \
	    cat /dev/null $$(ls $$b/bench*.ndjson 2> /dev/null) | $(lease_ceilings) > $$b/ceilings
	@b=$(LEASE)/back; for part in vector formats lengths caches; do \
	    runs=$$(grep -l '"kind":"end"' $$b/$$part-*.ndjson 2> /dev/null) || continue; \
	    $(BIN)/measure --verify --stopped launches $$runs $$b/ceilings -o $$b/$$part.metrics && \
	    jq -sc -f pipelines/experiment/shapes/measured.jq $$b/$$part.metrics $$b/ceilings \
	        > $(lease_to) || exit; done
	@b=$(LEASE)/back part=8b; [ ! -d $$b/shapes ] || { [ -s $$b/ceilings ] && \
	    for d in $$b/shapes/shape-*-*/; do $(BIN)/measure --verify --stopped launches \
	        $${d}launch/*.ndjson $$b/ceilings -o $${d}metrics || exit; done && \
	    $(BIN)/forecast --along-steps --steps $(SHAPE_TO) $$b/shapes/*/metrics $$b/ceilings \
	        -o $$b/along && \
	    jq -sc -f pipelines/experiment/shapes/measured.jq $$b/shapes/*/metrics $$b/ceilings \
	        $$b/along > $(lease_to); }
	@ls $(dir $(MEASURED))gpu-*-$(CARD).ndjson
