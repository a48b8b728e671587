# claims.mk - make claims: verdicts on the speeds that others have published; runs nothing.
#
# Each row of data/published.ndjson is compared with the limits of its card: with a forecast that
# uses all arithmetic and bandwidth, or with bandwidth alone if this program does not know the
# shape.
$(RESULTS)/claims.ndjson: data/published.ndjson data/hardware.ndjson $(TOOL)-forecast | $(QUIET)
	$(call say,claims)$(BIN)/forecast -q --claims -o $@

.PHONY: claims
claims: $(RESULTS)/claims.ndjson $(RESULTS)/claims.svg \
    ##look published speeds against the limits of their cards
	@jq -sr -f pipelines/experiment/claims/table.jq $<

$(RESULTS)/claims.svg: $(RESULTS)/claims.ndjson plots/claims.gp plots/style.gp $(TOOL)-plot \
    | $(QUIET)
	$(call say,plot claims)$(BIN)/plot -q --type claims $< -o $@
