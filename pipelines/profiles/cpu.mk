# cpu - checkpoints of about a billion parameters on a processor: hours.
OWN           := 1
PROMPTS       := 32
STEPS         := 16,32,64,128
GEN_LENGTH    := 128
BLOCK_LENGTH  := 32
LAUNCHES      := 5
SCALE_LENGTHS := 64,128
SCALE_BATCH   := 1,4
SCALE_PROMPTS := 4
BASELINE_PROMPTS := 1
BASELINE_LENGTH := 4
GEN_FLAGS     := --device cpu --dtype bf16
QUANT_CHOICE  := --count 16
QUANT_STEPS   := 32
QUANT_SAMPLES := 8
ROBUST_PROMPTS := 4
ROBUST_isa    := $(filter avx2 neon,$(CPU_LEVELS))
