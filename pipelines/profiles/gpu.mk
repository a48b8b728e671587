# gpu - one GPU of 80 GB or more, 8B checkpoints in bf16; what the profiles of single cards share.
PROMPTS       := 128
STEPS         := 16,32,64,128,256
GEN_LENGTH    := 256
BLOCK_LENGTH  := 32
LAUNCHES      := 5
WARMUP        := 3
SCALE_LENGTHS := 128,512,1024,2048
SCALE_BATCH   := 1,4,8,16,32
SCALE_PROMPTS := 32
BASELINE_PROMPTS := 2
BASELINE_LENGTH := 16
BASELINE_DEVICES := cpu cuda
GEN_FLAGS     := --device cuda --dtype bf16
# int8 and nf4 are the CPU's so far
QUANTS        :=
