# gpu - one GPU of 80 GB or more, 8B checkpoints in bf16. The profiles of cards include this file.
OWN           := 1
PROMPTS       := 128
STEPS         := 16,32,64,128,256
GEN_LENGTH    := 256
BLOCK_LENGTH  := 32
METHODS       := dual-threshold grow lookup
LAUNCHES      := 5
WARMUP        := 3
# no turns: on an H200 the waiting process took a third of a core and disturbed the running one
TURNS         :=
SCALE_LENGTHS := 128,512,1024,2048
SCALE_BATCH   := 1,4,8,16,32
SCALE_PROMPTS := 32
GEN_FLAGS     := --device cuda --dtype bf16
SCORE_FLAGS   := --device cuda --dtype bf16
QUANTS        := int8 nf4 fp8
ROBUST_isa    :=

# Phase 2 compares a few ids with the CPU: bf16 matrices (half the memory) with f32 sums and
# activations on both devices, so that ids differ only after a near tie. With random weights the
# shape is smaller.
BASELINE_DEVICES := cpu cuda
BASELINE_DTYPE   := bf16-f32
BASELINE_PROMPTS := 4
BASELINE_LENGTH  := 8
BASELINE_LLADA   := $(LLADA:synth:llada-8b=synth:llada-1b)
BASELINE_LLAMA   := $(LLAMA:synth:llama3-8b=synth:llama3.2-1b)
