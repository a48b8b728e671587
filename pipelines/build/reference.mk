# reference.mk - builds the float64 implementation that the engine is compared with. It is built
# from its own files alone: nothing of lib/ or kernels/ is compiled in or linked.
reference_link = $(CC) -std=c11 -D_GNU_SOURCE -I. $(CFLAGS) $(WARN) $(SANITIZE) $(filter %.c,$^) \
    -o $@.tmp $(shell $(PKG) --libs jansson) -lm && mv $@.tmp $@

$(BUILD)/tests/reference: tests/reference/reference.c tests/reference/families.c \
                          tests/reference/rules.c tests/reference/canvas.c \
                          tests/reference/model.c tests/reference/families.h \
                          tests/reference/rules.h tests/reference/canvas.h \
                          tests/reference/model.h config.mk
	@mkdir -p $(@D)
	$(reference_link)

$(BUILD)/tests/make-checkpoint $(BUILD)/tests/make-gguf: $(BUILD)/tests/%: \
    tests/reference/%.c config.mk
	@mkdir -p $(@D)
	$(reference_link)
