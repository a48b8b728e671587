# sdar-4b - SDAR 4B Chat (blocks of 4) against Qwen3 4B, the model that it was made of
LLADA        := JetLM/SDAR-4B-Chat
LLAMA        := Qwen/Qwen3-4B
JUDGE        := mistralai/Mistral-7B-v0.3
GB           := 8.8 8.0 14
MEMORY       := 24
PROFILE      := gpu
GEN_LENGTH   := 128
BLOCK_LENGTH := 4
MASK_BLOCKS  := 1
STEPS        := 128
SWEEP        := --unmask dynamic --threshold 0.6,0.75,0.85,0.95
SCALE_PER_STEP := 1,2,4
METHODS      := lookup
QUANT_STEPS  := 128
