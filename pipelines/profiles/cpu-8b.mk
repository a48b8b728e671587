# cpu-8b - the 8B shapes with random weights on a processor: hours. Speed and memory are real,
# quality is null. It needs 24 GB of memory, because the weights are 16 GB in bf16.
#
# 128 tokens of prompt, 128 tokens to generate, batch sizes 1 and 4. A pass of 256 rows takes
# seconds, a pass of 1024 rows takes a minute or more without AMX, and all passes take the same
# time. So 1, 2 and 4 steps are measured. The times of 16 to 128 steps are on the line through these
# points and are marked `modelled`; their interval is over five launches. A batch has as many
# prompts as it needs, because the work does not depend on the prompt. A launch makes the weights
# once and runs all points of its model. bf16 at batch 4 takes most of the time; SHAPE_BATCH=1
# leaves it out.
LLADA       := synth:llada-8b
LLAMA       := synth:llama3-8b
ALL         := shapes
ALL_MAKES   := shapes.ndjson
LAUNCHES    := 5
WARMUP      := 3
WARMUP_MOST := 3
# the memory holds only one model of 16 GB at a time, so the models do not take turns
TURNS       :=
AGAIN       := 1
GEN_FLAGS   := --device cpu --dtype bf16
SHAPE_FORMATS := none int8
SHAPE_BATCH   := 1,4
