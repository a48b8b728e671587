# refine.mk - sequential sampling: launches are added to the sweeps until the ratios of the two
# systems (of the A/A test: of the model and itself) are known within PRECISION, or until
# BUDGET_MINUTES are over. The stopping rule is a half-width and never a significance, so repeated
# looking does not bias the result; `make selftest` shows this. Launches stay: later calls begin
# with them. The precisions are written first, because refine notes them with each sweep that ended.
.PHONY: refine
refine: | $(PIPE) $(R)/stamp/aa-precision $(R)/stamp/precision \
    ##run more launches until ratios are precise or BUDGET_MINUTES are over
	@MAKE='$(MAKE) --no-print-directory' pipelines/bin/refine $(R) $(BUDGET_MINUTES) \
	    $(REFINED)
