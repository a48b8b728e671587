# nemotron-3b - Nemotron-Labs-Diffusion 3B against itself: by blocks, left to right, by own guesses
LLADA        := nvidia/Nemotron-Labs-Diffusion-3B
LLAMA        := nvidia/Nemotron-Labs-Diffusion-3B
JUDGE        := mistralai/Mistral-7B-v0.3
GB           := 7.7 7.7 14
MEMORY       := 24
PROFILE      := gpu
GEN_LENGTH   := 128
BLOCK_LENGTH := 32
MASK_BLOCKS  := 1
SWEEP        := --unmask threshold --threshold 0.6,0.75,0.9,0.99
METHODS      := self-draft
