# cpu-8b - the shapes of LLaDA 8B and LLaMA 3 8B with drawn weights on a processor: speed and memory
# are real, quality is null. `make all PROFILE=cpu-8b`: 16 GB in bf16 (24 GB are enough), then int8.
#
# 128 tokens of prompt and 128 to come, batch 1 and 4. A pass of 256 rows takes seconds, one of 1024
# a minute and more without AMX, and passes are alike: what is measured are 1, 2 and 4 steps, seven
# passes in place of 240, and 16 to 128 steps are on the line through them, marked `modelled`, with
# the interval of five launches and the residual of the line. One prompt a place of the batch
# suffices, as the work does not depend on it. Batches of this length need no warm-up.
# One launch draws the weights once (45 s) and runs all points of its system. On two cores of an
# Emerald Rapids server about two hours in bf16 and int8 together, most of it bf16 at batch 4:
# SHAPE_BATCH=1 takes half of one.
LLADA       := synth:llada-8b
LLAMA       := synth:llama3-8b
ALL         := shapes
ALL_MAKES   := shapes.ndjson
LAUNCHES    := 5
WARMUP      := 3
WARMUP_MOST := 3
# memory holds one model of 16 GB
TURNS       :=
AGAIN       := 1
GEN_FLAGS   := --device cpu --dtype bf16
SHAPE_FORMATS := none int8
SHAPE_BATCH   := 1,4
