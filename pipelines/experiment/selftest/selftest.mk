# selftest.mk - the statistics on simulated experiments whose truth is known: how often intervals
# hold it, differences are found, and nothing is found where nothing is. A minute of arithmetic.
# FIRST numbers the first simulation: FIRST=100001 makes 2,000 that nothing was chosen by.
REPETITIONS ?= 2000
FIRST       ?= 1

.PHONY: selftest
selftest: $(BUILD)/tests/unit/test-selftest ## does the harness tell the truth? (REPETITIONS=2000)
	@$< $(REPETITIONS) none $(FIRST)
