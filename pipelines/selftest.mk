# selftest.mk - the statistics on simulated experiments whose truth is known: how often intervals
# hold it, differences are found, and nothing is found where nothing is. A minute of arithmetic.
REPETITIONS ?= 2000

.PHONY: selftest
selftest: $(BUILD)/tests/unit/test-selftest ## does the harness tell the truth? (REPETITIONS=2000)
	@$< $(REPETITIONS)
