# gpu-8b - the 8B shapes with random weights on a GPU of 24 GB or more: minutes. Speed and memory
# are real, quality is null.
#
# Like cpu-8b, but 4, 8 and 16 steps are measured; the times of 32 to 128 steps lie on the line.
include pipelines/profiles/cpu-8b.mk
WARMUP        := 3
# no turns: on an H200 the waiting process took a third of a core and disturbed the running one
TURNS         :=
WARMUP_MOST   := 3
GEN_FLAGS     := --device cuda --dtype bf16
SHAPE_FORMATS := none
SHAPE_BATCH   := 1,4,8,16,32
SHAPE_STEPS   := 4,8,16
