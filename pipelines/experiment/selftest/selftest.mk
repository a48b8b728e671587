# selftest.mk - the statistics on simulated experiments whose truth is known: how often an interval
# holds the truth, how often a difference is found, and how often one is found where there is none.
# A minute of arithmetic.

# simulated experiments
REPETITIONS ?= 2000
# number of the first simulation; 100001 gives simulations that chose no constant of the project
FIRST       ?= 1

.PHONY: selftest
selftest: $(BUILD)/tests/unit/test-selftest ##develop check the statistics on simulated runs
	@$< $(REPETITIONS) none $(FIRST)
