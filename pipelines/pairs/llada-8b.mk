# llada-8b - LLaDA 8B Instruct against LLaMA 3 8B Instruct, as in LLaDA's paper
LLADA        := GSAI-ML/LLaDA-8B-Instruct
LLAMA        := meta-llama/Meta-Llama-3-8B-Instruct
JUDGE        := mistralai/Mistral-Nemo-Base-2407
GB           := 16 16 24
MEMORY       := 40
PROFILE      := gpu
BLOCK_LENGTH := 32
METHODS      := dual-threshold grow lookup
