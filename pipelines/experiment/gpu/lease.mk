# lease.mk - make lease: packs what a machine with a GPU needs that has no compiler, make or jq.
#
#   make lease PROFILE=gpu-8b CUDA_ARCH=90a    build/lease.tar.xz; no GPU is needed here
#   (there) tar xJf lease.tar.xz && pipelines/bin/lease    results: build/lease/out/lease-out.tar.gz
#
# pipelines/bin/lease lists the parts. The package has tools with the libraries that such a machine
# may lack, the CUDA object, the device tests, the bench, jq, the embedded models, and the launches
# of PROFILE=gpu-8b.
LEASE       := $(BUILD)/lease
LEASE_PROGS  = $(addprefix $(BIN)/,gen-llama gen-llada gen-ltm score-ppl) $(CUDA_SO) \
               $(firstword $(BENCH_PROG))
LEASE_FILES := pipelines/bin/lease pipelines/bin/side-by-side tests/gpu data/models \
               data/corpus/valid.ndjson.gz
LEASE_PLANS  = $(SHAPES:%=$(R)/%/launches.mk) \
               $(foreach b,$(call split,$(SHAPE_BATCH)),$(R)/shape-prompts-$(b).ndjson)

.PHONY: lease
lease: $(LEASE_PROGS) $(GPU_TEST_PROG) $(LEASE_PLANS) ##develop pack tests and measurements for a machine with a GPU
	@pipelines/bin/pack-lease $(LEASE) $(LEASE_PROGS) $$(command -v jq)
	@mkdir -p $(LEASE)/gpu && for p in $(GPU_TEST_PROG); do strip -o $(LEASE)/gpu/$${p##*/} $$p; done
	@$(MAKE) --no-print-directory -n shapes FP=$(FP) | grep -o 'pipelines/bin/side-by-side .*' | \
	    sed 's|$(BIN)/|$(LEASE)/bin/|g' > $(LEASE)/launches
	@tar -cJf $(BUILD)/lease.tmp $(LEASE) $(LEASE_FILES) $(wildcard $(R)/shape-*) && \
	    mv $(BUILD)/lease.tmp $(BUILD)/lease.tar.xz && ls -l $(BUILD)/lease.tar.xz
