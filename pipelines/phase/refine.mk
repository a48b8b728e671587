# refine.mk - sequential sampling: launches are added to the sweeps until the ratios of the two
# systems (of the A/A test: of the model and itself) are known within PRECISION, or until
# BUDGET_MINUTES are over. What stops it is a half-width, never a significance, so looking does no
# harm that `make selftest` would not show. What is reached stays: later calls begin with it.
.PHONY: refine
refine: | $(PIPE) ##run more launches until ratios are precise or BUDGET_MINUTES are over
	@MAKE='$(MAKE) --no-print-directory' pipelines/bin/refine $(R) $(BUDGET_MINUTES) \
	    aa steps $(SCALES)
