# gpu-8b - the shapes of LLaDA 8B and LLaMA 3 8B with drawn weights on a GPU of 24 GB or more: speed
# and memory are real, quality is null. `make all PROFILE=gpu-8b`: minutes.
#
# As cpu-8b, but 4, 8 and 16 steps are measured, and 32 to 128 are on the line through them.
include pipelines/profiles/cpu-8b.mk
WARMUP        := 3
# turns were not tried on a GPU yet: two processes hold the device
TURNS         :=
WARMUP_MOST   := 3
GEN_FLAGS     := --device cuda --dtype bf16
SHAPE_FORMATS := none
SHAPE_BATCH   := 1,8,32
SHAPE_STEPS   := 4,8,16
