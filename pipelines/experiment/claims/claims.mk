# claims.mk - make claims: verdicts on the speeds that others have published; runs nothing.
#
# Each row of data/published.ndjson is held against the limits of its card: forecast with all of its
# arithmetic and bandwidth, or bandwidth alone where this program has no such shape.
$(RESULTS)/claims.ndjson: data/published.ndjson data/hardware.ndjson $(TOOL)-forecast | $(QUIET)
	$(call say,claims)$(BIN)/forecast -q --claims -o $@

.PHONY: claims
claims: $(RESULTS)/claims.ndjson $(RESULTS)/claims.svg \
    ##look published speeds against the limits of their cards
	@jq -sr -f pipelines/experiment/claims/table.jq $<

$(RESULTS)/claims.svg: $(RESULTS)/claims.ndjson plots/claims.gp plots/style.gp $(TOOL)-plot \
    | $(QUIET)
	$(call say,plot claims)$(BIN)/plot -q --type claims $< -o $@
