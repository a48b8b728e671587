# cpu-8b - the 8B shapes with drawn weights on a processor: hours. Speed and memory are real,
# quality is null. make all PROFILE=cpu-8b needs 24 GB of memory: 16 GB of weights in bf16, then
# int8.
#
# 128 tokens of prompt, 128 tokens to generate, batch sizes 1 and 4. A pass of 256 rows takes
# seconds, a pass of 1024 rows takes a minute or more without AMX, and all passes take the same
# time. So 1, 2 and 4 steps are measured; the times of 16 to 128 steps lie on the line through them,
# are marked `modelled`, and have the interval of five launches and the residual of the line. One
# prompt for each place of the batch is enough, because the work does not depend on the prompt. A
# launch draws the weights once and runs all points of its model. Most of the time is for bf16 at
# batch 4; SHAPE_BATCH=1 leaves it out.
LLADA       := synth:llada-8b
LLAMA       := synth:llama3-8b
ALL         := shapes
ALL_MAKES   := shapes.ndjson
LAUNCHES    := 5
WARMUP      := 3
WARMUP_MOST := 3
# the memory holds only one model of 16 GB at a time
TURNS       :=
AGAIN       := 1
GEN_FLAGS   := --device cpu --dtype bf16
SHAPE_FORMATS := none int8
SHAPE_BATCH   := 1,4
