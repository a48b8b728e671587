# llada2-mini - LLaDA2.0 mini (blocks of 32) against Ling mini 2.0, the model that it was made of
LLADA        := inclusionAI/LLaDA2.0-mini
LLAMA        := inclusionAI/Ling-mini-2.0
JUDGE        := mistralai/Mistral-Nemo-Base-2407
GB           := 33 33 24
MEMORY       := 48
PROFILE      := gpu
GEN_LENGTH   := 256
BLOCK_LENGTH := 32
MASK_BLOCKS  := 1
STEPS        := 256
SWEEP        := --unmask dynamic --threshold 0.6,0.75,0.85,0.95
SCALE_PER_STEP := 1,2,4
METHODS      := lookup
QUANT_STEPS  := 256
