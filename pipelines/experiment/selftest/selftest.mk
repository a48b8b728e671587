# selftest.mk - make selftest: applies the statistics to simulated experiments whose truth is known.
# Counts how often an interval holds the truth, how often a true difference is found, and how often
# a difference is found where there is none. Takes a minute.

# simulated experiments
REPETITIONS ?= 2000
# number of the first simulation; 100001 gives simulations that chose no constant of the project
FIRST       ?= 1

.PHONY: selftest
selftest: $(BUILD)/tests/unit/test-selftest ##develop check the statistics on simulated runs
	@$< $(REPETITIONS) none $(FIRST)
