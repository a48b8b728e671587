# gpu-8b - the shapes of LLaDA 8B and LLaMA 3 8B with drawn weights on a GPU of 24 GB or more: speed
# and memory are real, quality is null. `make all PROFILE=gpu-8b`: minutes.
#
# 128 tokens of prompt and 128 to come, as cpu-8b has it. Passes are alike, so 4, 8 and 16 steps are
# measured and 32 to 128 are on the line through them, marked `modelled`, with the interval of five
# launches and the residual of the line.
LLADA       := synth:llada-8b
LLAMA       := synth:llama3-8b
ALL         := shapes
ALL_MAKES   := shapes.ndjson
LAUNCHES    := 5
WARMUP      := 1
WARMUP_MOST := 1
AGAIN       := 1
GEN_FLAGS   := --device cuda --dtype bf16
SHAPE_FORMATS := none
SHAPE_BATCH   := 1,8,32
SHAPE_STEPS   := 4,8,16
SHAPE_TO      := 16,32,64,128
